"""The caches that need no marks."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lamina.core.cache import CacheModel, PrefixCache, PromptReader, openai_cache


def ask(*texts: str, model: str = "m") -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": [{"type": "text", "text": text}]} for text in texts]}


def chat(*texts: str) -> dict[str, Any]:
    return {"model": "gpt-test", "messages": [{"role": "user", "content": text} for text in texts]}


def test_the_ideal_cache_reads_every_block_it_has_seen_at_that_place() -> None:
    cache = PrefixCache()
    assert cache.use(ask("a" * 40, "b" * 40)).read == 0
    assert (cache.use(ask("a" * 40, "b" * 40, "c" * 40)).read, cache.use(ask("a" * 40, "b" * 40)).read) == (20, 20)
    assert cache.use(ask("a" * 40, model="other")).read == 0


def test_the_ideal_cache_reads_into_the_block_that_differs() -> None:
    cache = PrefixCache()
    cache.use(ask("a" * 4_000 + "tail one"))
    read = cache.use(ask("a" * 4_000 + "tail two")).read
    assert 990 < read < 1_002


def test_the_ideal_cache_never_forgets() -> None:
    cache = PrefixCache()
    cache.use(ask("a" * 40), 0)
    assert cache.use(ask("a" * 40), 10**9).read == 10


def test_openai_s_cache_begins_at_1024_tokens_and_grows_in_steps_of_128() -> None:
    cache = openai_cache()
    short = PromptReader().read_chat(chat("a" * 3_000))
    long = PromptReader().read_chat(chat("a" * 3_000, "b" * 3_000))
    assert [cache.use(short, 0).read, cache.use(short, 1).read] == [0, 0]
    assert cache.use(long, 2).read == 0
    use = cache.use(long, 3)
    assert use.read == long.tokens - long.tokens % 128
    assert use.read + use.plain == long.tokens


def test_openai_s_cache_expires_and_a_read_keeps_it() -> None:
    cache = openai_cache()
    prompt = PromptReader().read_chat(chat("a" * 8_000))
    cache.use(prompt, 0)
    assert cache.use(prompt, 299).read
    assert cache.use(prompt, 598).read
    assert cache.use(prompt, 898).read == 0


def test_a_prefix_cache_starts_anew_when_it_is_full() -> None:
    cache = PrefixCache()
    cache.use(ask("a" * 40))
    cache.clear()
    assert cache.use(ask("a" * 40)).read == 0


@given(st.lists(st.lists(st.sampled_from(["one", "two", "three"]), min_size=1, max_size=12), max_size=10))
def test_no_cache_beats_the_ideal_one(requests: list[list[str]]) -> None:
    ideal, marked = PrefixCache(), CacheModel(minimum=0)
    for now, texts in enumerate(requests):
        body = ask(*texts)
        best = ideal.use(body, now)
        assert marked.use({**body, "cache_control": {"type": "ephemeral"}}, now).read <= best.read <= best.total
