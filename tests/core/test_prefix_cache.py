"""The caches that need no marks."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import pytest
from hypothesis import example, given
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


class Slow:
    """The same rules on whole prefixes: a dict of prefixes with the time of their last use, without hashing."""

    def __init__(self, ttl: float | None) -> None:
        self.ttl = ttl
        self.used: dict[tuple[str, ...], float] = {}

    def use(self, names: tuple[str, ...], now: float) -> int:
        """Return the tokens that are read of these blocks, the first of which is the model."""
        prefixes = [names[: at + 1] for at in range(len(names))]
        known = [*(self._alive(prefix, now) for prefix in prefixes), False].index(False)
        beside = {prefix[-1] for prefix in self.used if prefix[:-1] == names[:known]} if 0 < known < len(names) else set()
        self.used |= dict.fromkeys(prefixes, now)
        if not beside:
            return TOKENS * max(0, known - 1)
        # A block that is not known counts for the start of its JSON that it shares with another one at its place.
        shared = SIZE if names[known] in beside else START
        return TOKENS * (known - 1) + TOKENS * shared // SIZE

    def _alive(self, prefix: tuple[str, ...], now: float) -> bool:
        used = self.used.get(prefix)
        return used is not None and (self.ttl is None or now - used < self.ttl)


# One block each; they have the same size, and their JSON has the same start.
TOKENS = 40
MESSAGES = {name: ask(f"{name}----")["messages"][0] for name in "abc"}
SIZE, START = len('{"type":"text","text":"a----"}'), len('{"type":"text","text":"')
STEPS = st.tuples(st.text("abc", max_size=9), st.sampled_from(["m", "n"]), st.sampled_from([1, 100, 300]))


@given(st.lists(STEPS, max_size=15), st.sampled_from([None, 300.0]), st.booleans())
def test_a_prefix_cache_agrees_with_a_slow_one(steps: list[tuple[str, str, int]], ttl: float | None, shared: bool) -> None:
    cache, slow, now = PrefixCache(ttl=ttl, shared=shared, count=lambda block: TOKENS), Slow(ttl), 0.0
    for names, model, wait in steps:
        use = cache.use({"model": model, "messages": [MESSAGES[name] for name in names]}, now)
        assert (use.read, use.total) == (slow.use((model, *names), now), TOKENS * len(names))
        now += wait


@example([(("c", "m", 1), set()), (("", "n", 1), set()), (("ca", "n", 1), {1})])
@given(st.lists(st.tuples(STEPS, st.sets(st.integers(0, 8), max_size=4)), max_size=15))
def test_a_cache_of_shared_messages_gives_the_same_figures_as_one_that_reads_everything_again(
    steps: list[tuple[tuple[str, str, int], set[int]]],
) -> None:
    caches = [CacheModel(minimum=0, shared=shared) for shared in (True, False)]
    now = 0.0
    for (names, model, wait), marks in steps:
        messages = [MESSAGES[name] for name in names]
        for at in marks:
            if at < len(messages):
                (block,) = messages[at]["content"]
                messages[at] = {"role": "user", "content": [{**block, "cache_control": {"type": "ephemeral"}}]}
        one, other = (cache.use({"model": model, "messages": messages}, now) for cache in caches)
        assert one == other
        now += wait


def test_a_cache_of_shared_messages_links_what_is_new_in_a_request_however_long_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    linked: list[object] = []

    def counting(*given: Any, **more: Any) -> Any:
        linked.append(given)
        return blake2b(*given, **more)

    monkeypatch.setattr("lamina.core.cache.caches.blake2b", counting)
    for cache in (CacheModel(minimum=0, shared=True), openai_cache(shared=True)):
        messages: list[dict[str, Any]] = []
        for at in range(100):
            messages += ask(f"question {at}", f"answer {at}")["messages"]
            linked.clear()
            cache.use({"model": "m", "messages": list(messages), "cache_control": {"type": "ephemeral"}}, at)
            assert len(linked) <= 5  # the model (twice to look and to store), the new blocks, and the last one without its mark
