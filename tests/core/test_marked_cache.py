"""The cache with marks: each documented rule, and a comparison with a slow model that stores whole prefixes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.cache import HOUR, MINUTES_5, CacheModel, CacheUse, PromptReader, minimum_tokens
from lamina.core.cache.caches import DELETED_TOKENS, MAX_ENTRIES

MARK = {"type": "ephemeral"}
LONG = {"type": "ephemeral", "ttl": "1h"}
# One block of these is 1,000 tokens, so every prefix of two is long enough to be cached.
WORDS = 4_000
# As documented: the block with the mark and 19 before it.
LOOK_BACK = 20


def block(name: str, mark: dict[str, str] | None = None) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "text", "text": name.ljust(WORDS, ".")}
    return made if mark is None else {**made, "cache_control": mark}


def ask(
    names: str, *, marks: dict[int, dict[str, str]] | None = None, system: dict[str, str] | None = LONG, **more: Any
) -> dict[str, Any]:
    """A request with a tool, a system prompt and one message per letter; by default the last one is marked."""
    chosen = {len(names) - 1: MARK} if marks is None else marks
    messages = [
        {"role": "user" if at % 2 == 0 else "assistant", "content": [block(name, chosen.get(at))]}
        for at, name in enumerate(names)
    ]
    base: dict[str, Any] = {
        "model": "claude-sonnet-5",
        "tools": [{"name": "Read", "description": "x" * WORDS}],
        "system": [block("system", system)],
        "messages": messages,
    }
    return {**base, **more}


def figures(use: CacheUse) -> tuple[int, int, int, int]:
    return use.read, use.write_1h, use.write_5m, use.plain


TOOLS = PromptReader().read(ask("a")).pieces[0].tokens


@pytest.mark.spec("K1")
def test_the_first_request_writes_and_the_next_reads_what_it_wrote() -> None:
    cache = CacheModel()
    assert figures(cache.use(ask("a"), 0)) == (0, TOOLS + 1_000, 1_000, 0)
    assert figures(cache.use(ask("abc"), 10)) == (TOOLS + 2_000, 0, 2_000, 0)
    assert figures(cache.use(ask("abcde"), 20)) == (TOOLS + 4_000, 0, 2_000, 0)


def test_what_stands_behind_the_last_mark_is_plain_input() -> None:
    assert figures(CacheModel().use(ask("abc", marks={0: MARK}), 0)) == (0, TOOLS + 1_000, 1_000, 2_000)


def test_without_marks_nothing_is_cached() -> None:
    cache = CacheModel()
    for now in range(2):
        assert figures(cache.use(ask("ab", marks={}, system=None), now)) == (0, 0, 0, TOOLS + 3_000)


@pytest.mark.spec("A1")
def test_a_fork_reads_its_parent_s_prefix_and_does_not_disturb_it() -> None:
    cache = CacheModel()
    cache.use(ask("abc"), 0)
    assert cache.use(ask("abcF"), 1).read == TOOLS + 4_000
    assert cache.use(ask("abcde"), 2).read == TOOLS + 4_000


def test_an_entry_lives_five_minutes_and_each_read_starts_them_again() -> None:
    cache = CacheModel()
    cache.use(ask("a", system=None), 0)
    assert cache.use(ask("a", system=None), MINUTES_5 - 1).read == TOOLS + 2_000
    assert cache.use(ask("a", system=None), 2 * MINUTES_5 - 2).read == TOOLS + 2_000
    assert cache.use(ask("a", system=None), 3 * MINUTES_5 - 2).read == 0


def test_after_five_minutes_the_hour_s_part_is_still_there() -> None:
    cache = CacheModel()
    cache.use(ask("a"), 0)
    assert figures(cache.use(ask("a"), MINUTES_5)) == (TOOLS + 1_000, 0, 1_000, 0)
    assert figures(cache.use(ask("a"), MINUTES_5 + HOUR)) == (0, TOOLS + 1_000, 1_000, 0)


def test_finding_an_entry_by_looking_back_keeps_it_alive() -> None:
    cache = CacheModel()
    cache.use(ask("a", system=None), 0)
    cache.use(ask("ab", system=None), 200)
    assert cache.use(ask("aX", system=None), 400).read == TOOLS + 2_000


def test_reading_far_ahead_keeps_the_marked_entries_before_it_alive() -> None:
    cache = CacheModel()
    cache.use(ask("ab", marks={0: MARK, 1: MARK}), 0)
    cache.use(ask("ab", marks={0: MARK, 1: MARK}), 200)
    assert cache.use(ask("aX"), 400).read == TOOLS + 2_000


@pytest.mark.parametrize(("blocks", "read"), [(LOOK_BACK - 1, True), (LOOK_BACK, False)])
def test_a_mark_looks_back_twenty_blocks_and_no_further(blocks: int, read: bool) -> None:
    cache = CacheModel()
    names = "".join(chr(ord("a") + at) for at in range(blocks))
    cache.use(ask("A", system=None), 0)
    assert bool(cache.use(ask("A" + names, system=None), 1).read) is read


def test_a_second_mark_at_the_end_of_the_last_request_finds_what_the_first_misses() -> None:
    cache = CacheModel()
    names = "".join(chr(ord("a") + at) for at in range(26))
    cache.use(ask("A", system=None), 0)
    marks = {0: MARK, len(names): MARK}
    assert cache.use(ask("A" + names, system=None, marks=marks), 1).read == TOOLS + 2_000


def test_entries_are_written_only_where_marks_stand() -> None:
    cache = CacheModel()
    cache.use(ask("abc", system=None), 0)
    assert cache.use(ask("abX", system=None), 1).read == 0


@pytest.mark.parametrize(
    ("model", "minimum"),
    [
        ("claude-sonnet-5", 1_024),
        ("claude-sonnet-4-6", 1_024),
        ("claude-opus-4-1-20250805", 1_024),
        ("claude-opus-4-8", 1_024),
        ("claude-opus-5-5", 512),
        ("claude-fable-5-1", 512),
        ("claude-sonnet-5-5", 512),
        ("claude-haiku-5-5", 512),
        ("claude-opus-4-7", 2_048),
        ("claude-opus-4-5-20251101", 4_096),
        ("anthropic/claude-haiku-4-5", 4_096),
        ("claude-3-5-haiku-latest", 2_048),
        ("some-other-model", 1_024),
    ],
)
def test_every_model_family_has_its_own_minimum(model: str, minimum: int) -> None:
    assert minimum_tokens(model) == minimum


def test_a_prefix_below_the_minimum_is_not_cached_and_no_error_is_raised() -> None:
    cache = CacheModel()
    body = {"model": "claude-sonnet-5", "messages": [{"role": "user", "content": [block("a", MARK)]}]}
    for now in range(2):
        use = cache.use(body, now)
        assert figures(use) == (0, 0, 0, 1_000)
        assert use.marks[0].outcome == "short"


CHANGES: list[tuple[str, Callable[[dict[str, Any]], dict[str, Any]], int]] = [
    ("model", lambda body: {**body, "model": "claude-sonnet-5-x"}, 0),
    ("tools", lambda body: {**body, "tools": [{**body["tools"][0], "description": "y" * WORDS}]}, 0),
    ("system", lambda body: {**body, "system": [block("other", LONG)]}, 1),
    ("speed", lambda body: {**body, "speed": "fast"}, 1),
    ("web search", lambda body: {**body, "tools": [*body["tools"], {"type": "web_search_20250305", "name": "web_search"}]}, 1),
    ("tool choice", lambda body: {**body, "tool_choice": {"type": "any"}}, 2),
    ("thinking", lambda body: {**body, "thinking": {"type": "enabled", "budget_tokens": 2_000}}, 2),
    ("effort", lambda body: {**body, "output_config": {"effort": "low"}}, 2),
    ("image", lambda body: {**body, "messages": [*body["messages"], {"role": "user", "content": [{"type": "image"}]}]}, 2),
    ("nothing", lambda body: {**body, "thinking": {"type": "disabled"}, "metadata": {"user_id": "u"}}, 3),
]


@pytest.mark.parametrize(("change", "levels"), [case[1:] for case in CHANGES], ids=[case[0] for case in CHANGES])
def test_a_change_loses_its_level_and_those_behind_it(change: Callable[[dict[str, Any]], dict[str, Any]], levels: int) -> None:
    """A request with three levels (tools, system, messages), each with a mark at its end."""
    cache = CacheModel(minimum=0)
    body = ask("ab")
    body["tools"] = [{**body["tools"][0], "cache_control": LONG}]
    before = {**body, "tools": list(body["tools"])}
    cache.use(before, 0)
    after = change(before)
    if levels == 0 and after["tools"] is not before["tools"]:
        after["tools"][0]["cache_control"] = LONG
    assert cache.use(after, 1).read == [0, TOOLS, TOOLS + 1_000, TOOLS + 3_000][levels]


def test_a_citation_switch_loses_system_and_messages() -> None:
    cache = CacheModel()

    def body(cited: bool) -> dict[str, Any]:
        document = {"type": "document", "source": {"type": "text", "data": "x"}, "citations": {"enabled": cited}}
        made = ask("a", tools=[{"name": "Read", "description": "x" * 8_000, "cache_control": LONG}])
        return {**made, "messages": [*made["messages"], {"role": "user", "content": [document]}]}

    tools = PromptReader().read(body(False)).pieces[0].tokens
    cache.use(body(False), 0)
    assert cache.use(body(True), 1).read == tools


@pytest.mark.spec("M4")
def test_deleted_results_keep_the_prefix_and_cost_only_their_marker() -> None:
    cache = CacheModel()
    first = with_results(2)
    cache.use(first, 0)
    whole = PromptReader().read(first).tokens
    result = PromptReader().read(first).pieces[-1].tokens
    edited = {**with_results(3), "cache_edits": {"delete": ["t0", "t1", "gone"]}}
    use = cache.use(edited, 1)
    assert use.read == whole - 2 * (result - DELETED_TOKENS)
    assert use.deleted == ("t0", "t1")
    assert use.cleared == 2 * (result - DELETED_TOKENS)


@pytest.mark.spec("M4")
def test_deletions_stay_with_the_entry_and_are_lost_when_it_expires() -> None:
    cache = CacheModel()
    cache.use(with_results(2), 0)
    cache.use({**with_results(3), "cache_edits": {"delete": ["t0"]}}, 1)
    saved = PromptReader().read(with_results(1)).pieces[-1].tokens - DELETED_TOKENS
    total = PromptReader().read(with_results(4)).tokens
    assert cache.use(with_results(4), 2).total == total - saved
    assert cache.use(with_results(4), 2 + MINUTES_5).total == total
    again = {**with_results(4), "cache_edits": {"delete": ["t0"]}}
    assert cache.use(again, 3 + 2 * MINUTES_5).total == total - saved


@pytest.mark.spec("M4")
def test_whoever_reads_an_edited_entry_sees_the_edit() -> None:
    cache = CacheModel()
    cache.use(with_results(2), 0)
    cache.use({**with_results(3), "cache_edits": {"delete": ["t0"]}}, 1)
    fork = with_results(2)
    fork["messages"].append({"role": "user", "content": [block("directive", MARK)]})
    assert cache.use(fork, 2).total == PromptReader().read(fork).tokens - (
        PromptReader().read(fork).pieces[2].tokens - DELETED_TOKENS
    )


def with_results(rounds: int) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": [block("go")]}]
    for at in range(rounds):
        messages.append({"role": "assistant", "content": [{"type": "tool_use", "id": f"t{at}", "name": "Read", "input": {}}]})
        messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{at}", "content": "r" * WORDS}]})
    messages[-1] = {"role": "user", "content": [{**messages[-1]["content"][0], "cache_control": MARK}]}
    return {"model": "claude-sonnet-5", "messages": messages}


def test_looking_stores_nothing() -> None:
    cache = CacheModel()
    assert cache.look(ask("a"), 0) == cache.look(ask("a"), 1)
    assert len(cache) == 0


def test_every_mark_says_what_became_of_it() -> None:
    cache = CacheModel()
    cache.use(ask("ab"), 0)
    use = cache.use(ask("abcd", marks={1: MARK, 3: MARK}), 1)
    assert [mark.outcome for mark in use.marks] == ["covered", "read", "written"]
    assert use.hit == "messages.1.content.0"


def test_the_usage_is_what_the_api_would_report() -> None:
    wire = CacheModel().use(ask("ab"), 0).usage(5).wire()
    assert wire["cache_creation_input_tokens"] == wire["cache_creation"]["ephemeral_5m_input_tokens"] + TOOLS + 1_000
    assert (wire["input_tokens"], wire["output_tokens"]) == (0, 5)


def test_the_store_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.core.cache.caches.MAX_ENTRIES", 10)
    cache = CacheModel()
    for at in range(100):
        cache.use(ask(chr(65 + at % 26), system=None, model=f"m{at}"), at)
    assert len(cache) <= 10 < MAX_ENTRIES
    assert cache.use(ask(chr(65 + 99 % 26), system=None, model="m99"), 100).read


def test_a_cleared_cache_has_forgotten_everything() -> None:
    cache = CacheModel()
    cache.use(ask("a"), 0)
    cache.clear()
    assert cache.use(ask("a"), 1).read == 0


class Slow:
    """The same rules on whole prefixes: a plain list of (prefix, expiry, lifetime) without hashing."""

    def __init__(self) -> None:
        self.entries: list[tuple[tuple[str, ...], float, int]] = []

    def use(self, names: tuple[str, ...], marks: dict[int, int], now: float) -> tuple[int, int, int, int]:
        live = {prefix for prefix, expires, _ in self.entries if expires > now}
        hit = 0
        for mark in marks:
            for at in range(mark + 1, max(0, mark + 1 - LOOK_BACK), -1):
                if names[:at] in live:
                    hit = max(hit, at)
                    break
        used = {names[:hit]} | {names[: mark + 1] for mark in marks if mark < hit}
        self.entries = [(p, now + ttl if p in used and p in live else e, ttl) for p, e, ttl in self.entries if e > now]
        hour = max([hit, *(mark + 1 for mark, ttl in marks.items() if ttl == HOUR)])
        last = max([hit, *(mark + 1 for mark in marks)])
        for mark, ttl in marks.items():
            if mark >= hit:
                self.entries = [entry for entry in self.entries if entry[0] != names[: mark + 1]]
                self.entries.append((names[: mark + 1], now + ttl, ttl))
        return hit, hour - hit, last - hour, len(names) - last


STEPS = st.lists(
    st.tuples(
        st.text("ab", min_size=1, max_size=30),
        st.sets(st.integers(0, 29), max_size=4),
        st.integers(0, 4),
        st.sampled_from([1, 100, MINUTES_5, HOUR]),
    ),
    max_size=12,
)


@given(STEPS)
def test_the_model_agrees_with_a_slow_one(steps: list[tuple[str, set[int], int, int]]) -> None:
    cache, slow, now = CacheModel(minimum=0, count=lambda block: 1), Slow(), 0.0
    for names, places, hours, wait in steps:
        chosen = sorted(place for place in places if place < len(names))
        ttls = {place: HOUR if index < hours else MINUTES_5 for index, place in enumerate(chosen)}
        content = [
            {"type": "text", "text": name}
            | ({"cache_control": {"type": "ephemeral", "ttl": "1h" if ttls[at] == HOUR else "5m"}} if at in ttls else {})
            for at, name in enumerate(names)
        ]
        use = cache.use({"model": "m", "messages": [{"role": "user", "content": content}]}, now)
        assert figures(use) == slow.use(tuple(names), ttls, now)
        assert use.total == len(names)
        now += wait
