"""Tables of what each kind of clearing decides."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from lamina.conversation.request import CacheEdits, ConfirmedEdits
from lamina.layers.l2_micro.plan import Clearing, Cycle, has_expired, pays, plan_edits, plan_idle, plan_size
from lamina.layers.l2_micro.step import api_options, clears_by_itself, read_applied

from .rows import LEFT, ids, registry_of

FULL = {"above_warning": True, "keep_tokens": 400, "keep_last": 3, "save_at_least": 200}


@pytest.mark.spec("M2")
@pytest.mark.parametrize(
    ("sizes", "changes", "cleared"),
    [
        pytest.param([100] * 10, {}, 6, id="oldest first until 400 remain"),
        pytest.param([100] * 10, {"above_warning": False}, 0, id="below the warning nothing happens"),
        pytest.param([100] * 4, {}, 0, id="no more than is to be kept"),
        pytest.param([100] * 6, {}, 0, id="180 would be saved, which is too little"),
        pytest.param([100] * 7, {}, 3, id="270 are enough"),
        pytest.param([500, 500, 500], {}, 0, id="the last three are never touched"),
        pytest.param([500, 500, 500, 500], {}, 1, id="only what is beyond the last three"),
        pytest.param([450, 10, 10, 10, 10], {}, 1, id="one big one is enough"),
        pytest.param([1, 1, 900, 10, 10, 10], {}, 1, id="short ones ahead of a big one stay"),
        pytest.param([100] * 10, {"keep_last": 0, "keep_tokens": 0}, 10, id="a policy that keeps nothing"),
        pytest.param([], {}, 0, id="nothing there"),
        pytest.param([0] * 50, {"keep_tokens": 0, "save_at_least": 0}, 0, id="results of no bytes"),
    ],
)
def test_size(sizes: list[int], changes: dict[str, int], cleared: int) -> None:
    rows = plan_size(registry_of(sizes), **{**FULL, **changes})  # type: ignore[arg-type]  # a table of ints and one bool
    assert len(rows) == cleared


@given(
    sizes=st.lists(st.integers(0, 300), max_size=40),
    keep_tokens=st.integers(0, 2_000),
    keep_last=st.integers(0, 5),
    save_at_least=st.integers(1, 1_000),
)
def test_the_search_decides_what_a_walk_would(sizes: list[int], keep_tokens: int, keep_last: int, save_at_least: int) -> None:
    rows = plan_size(
        registry_of(sizes), above_warning=True, keep_tokens=keep_tokens, keep_last=keep_last, save_at_least=save_at_least
    )
    left, saved, walked = sum(sizes), 0, []
    for number, tokens in enumerate(sizes[: max(0, len(sizes) - keep_last)]):
        if left <= keep_tokens:
            break
        left -= tokens
        saved += max(0, tokens - LEFT)
        walked += [str(number)] if tokens > LEFT else []
    assert ids(rows) == (walked if saved >= save_at_least else [])


@pytest.mark.spec("M3")
@pytest.mark.parametrize(
    ("idle", "keep", "cleared"),
    [(3_600, 5, 0), (3_601, 5, 5), (3_601, 0, 9), (3_601, 1, 9), (3_601, 50, 0), (0, 5, 0), (-7_200, 5, 0)],
)
def test_after_a_pause_all_but_the_newest_go(idle: float, keep: int, cleared: int) -> None:
    rows = plan_idle(registry_of([100] * 10), idle=idle, minutes=60, keep=keep)
    assert ids(rows) == [str(number) for number in range(cleared)]


@pytest.mark.spec("M4")
def test_with_more_than_twenty_registered_the_oldest_beyond_the_last_five_are_marked() -> None:
    assert plan_edits(registry_of([100] * 20), CacheEdits(), over=20, keep=5) == []
    rows = plan_edits(registry_of([100] * 21), CacheEdits(), over=20, keep=5)
    assert ids(rows) == [str(number) for number in range(16)]


@pytest.mark.spec("M4")
def test_marks_wait_for_their_confirmation_and_are_named_in_every_request() -> None:
    registry, edits = registry_of([100] * 21), CacheEdits()
    edits.mark(row.block.tool_use_id for row in plan_edits(registry, edits, over=20, keep=5))
    assert plan_edits(registry, edits, over=20, keep=5) == []
    first = edits.send()
    assert edits.send() == first, "a call that failed changes nothing"
    done = edits.confirm({"deleted": list(first[:10])})
    assert done == ConfirmedEdits(first[:10], False)
    assert (edits.send(), edits.open) == (first, True)
    assert edits.confirm({"deleted": list(first)}).ids == first[10:]
    assert (edits.send(), edits.open) == (first, False)
    assert edits.confirm({"deleted": list(first)}) == ConfirmedEdits((), False)


@pytest.mark.spec("M4")
@pytest.mark.parametrize("note", [None, {}, {"deleted": []}, {"deleted": "all"}, {"deleted": ["another"]}, [1], "yes"])
def test_a_provider_that_ignores_edits_is_asked_no_more(note: object) -> None:
    edits = CacheEdits()
    edits.mark(["0"])
    edits.send()
    assert edits.confirm(note).ignored
    assert edits.off
    assert edits.send() == ()


def test_marks_of_results_that_left_the_view_go() -> None:
    edits = CacheEdits()
    edits.mark(["0", "gone"])
    edits.prune(registry_of([100]))
    assert edits.send() == ("0",)


@pytest.mark.spec("M5")
def test_the_provider_is_asked_with_the_numbers_of_the_policy_and_thinking_first() -> None:
    asked = api_options(trigger=180_000, clear_at_least=140_000, excluded=["TodoWrite"], thinking=True)
    thoughts, results = asked["context_management"]["edits"]
    assert thoughts == {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}}
    assert results["type"] == "clear_tool_uses_20250919"
    assert results["trigger"] == {"type": "input_tokens", "value": 180_000}
    assert results["clear_at_least"] == {"type": "input_tokens", "value": 140_000}
    assert results["exclude_tools"] == ["TodoWrite"]
    assert clears_by_itself(asked)
    plain = api_options(trigger=1, clear_at_least=1, excluded=[], thinking=False)
    assert [edit["type"] for edit in plain["context_management"]["edits"]] == ["clear_tool_uses_20250919"]


@pytest.mark.parametrize(
    "options",
    [{}, {"context_management": None}, {"context_management": {"edits": "all"}}, {"context_management": {"edits": [1, {}]}}],
)
def test_other_options_clear_nothing(options: dict[str, object]) -> None:
    assert not clears_by_itself(options)


def test_what_the_server_applied_is_read_and_nonsense_is_nothing() -> None:
    note = {"applied_edits": [{"type": "a", "cleared_input_tokens": 5}, {"cleared_input_tokens": 7}, {"type": "b"}, 3]}
    assert read_applied(note).tokens == 12
    odd: tuple[object, ...] = (None, [], {"applied_edits": 1}, {"applied_edits": [{"x": 1}]})
    assert [read_applied(one).tokens for one in odd] == [0] * 4


# 40,000 of 160,000 saved, 100,000 behind them written again: the break costs 1.15 × 100,000, a call saves 4,000. The limit is
# 160,000 itself, so that 40 calls fit in once more.
CASE = Clearing(tokens=160_000, saved=40_000, rewritten=100_000, growth=1_000.0, limit=160_000)


@pytest.mark.parametrize(
    ("case", "answer"),
    [
        pytest.param(CASE, True, id="41 calls save 164,000 and the break costs 115,000"),
        pytest.param(replace(CASE, limit=147_000), False, id="28 calls save 112,000"),
        pytest.param(replace(CASE, limit=148_000), True, id="29 calls save 116,000"),
        pytest.param(replace(CASE, growth=2_000.0), False, id="a conversation that grows fast is full soon"),
        pytest.param(replace(CASE, rewritten=150_000), False, id="results far in front of much that stays"),
        pytest.param(replace(CASE, rewritten=0, limit=0), True, id="nothing stands behind them"),
        pytest.param(replace(CASE, growth=None), False, id="too young to tell"),
        pytest.param(replace(CASE, growth=0.0), False, id="it does not grow"),
        pytest.param(replace(CASE, growth=-5.0), False, id="it shrinks"),
        pytest.param(replace(CASE, limit=0), False, id="past the limit already: this call only"),
        pytest.param(replace(CASE, saved=0, rewritten=0), False, id="nothing saved"),
    ],
)
def test_what_pays_where_no_compaction_comes(case: Clearing, answer: bool) -> None:
    assert pays(case, after_compaction=None, cold=False) is answer
    assert pays(case, after_compaction=None, cold=True), "with a cold cache there is nothing to lose"


def test_an_entry_for_an_hour_costs_more_to_write() -> None:
    assert not pays(CASE, after_compaction=None, cold=False, hour=True)


@pytest.mark.parametrize(
    ("case", "left", "answer"),
    [
        pytest.param(CASE, Cycle(6_000, 0), False, id="reading 140,000 a call costs more than a summary now and then"),
        pytest.param(replace(CASE, rewritten=0), Cycle(6_000, 0), False, id="even with no break at all"),
        pytest.param(
            replace(CASE, saved=140_000, rewritten=5_000),
            Cycle(6_000, 35_000),
            True,
            id="nearly all of it are old results",
        ),
        pytest.param(
            replace(CASE, rewritten=1_000),
            Cycle(100_000, 40_000),
            True,
            id="a compaction would leave hardly less",
        ),
        pytest.param(replace(CASE, growth=None), Cycle(6_000, 0), False, id="too young to tell"),
        pytest.param(replace(CASE, limit=10_000), Cycle(6_000, 35_000), False, id="a limit below what a compaction leaves"),
    ],
)
def test_what_pays_where_a_compaction_would_come_instead(case: Clearing, left: Cycle, answer: bool) -> None:
    assert pays(case, after_compaction=left, cold=False) is answer
    assert pays(case, after_compaction=left, cold=True)


@given(
    count=st.integers(1_000, 200_000),
    saved=st.integers(1, 100_000),
    rewritten=st.integers(0, 200_000),
    growth=st.floats(1, 20_000),
    limit=st.integers(1_000, 200_000),
    kept=st.integers(0, 50_000),
)
def test_a_dearer_break_never_pays_where_a_cheaper_one_does_not(
    count: int, saved: int, rewritten: int, growth: float, limit: int, kept: int
) -> None:
    cheap = Clearing(count, min(saved, count), rewritten, growth, limit)
    dear = replace(cheap, rewritten=rewritten + 1_000)
    for left in (None, Cycle(5_000, kept)):
        assert pays(cheap, after_compaction=left, cold=False) or not pays(dear, after_compaction=left, cold=False)


@pytest.mark.parametrize(
    ("idle", "ttl", "automatic", "cold"),
    [
        (299, "5m", False, False),
        (300, "5m", False, True),
        (3_599, "1h", False, False),
        (3_600, "1h", False, True),
        (0, None, False, True),
        (3_599, None, True, False),
        (3_600, None, True, True),
        (300, "a day", False, False),
    ],
)
def test_when_a_cache_has_expired(idle: float, ttl: str | None, automatic: bool, cold: bool) -> None:
    assert has_expired(idle, ttl, automatic=automatic) is cold
