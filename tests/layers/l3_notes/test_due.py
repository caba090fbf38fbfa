"""When the notes are due: a table."""

from __future__ import annotations

import pytest

from lamina.core.policy import NotesPolicy
from lamina.layers.l3_notes.plan import Cursor, FailedUpdates, Why, due, lowered, still_failed

POLICY = NotesPolicy()
CURSOR = Cursor(10_000, "m1")


def ask(
    cursor: Cursor | None,
    tokens: int,
    *,
    calls: int = 0,
    called: bool = False,
    failed: FailedUpdates | None = None,
    scale: float = 1.0,
) -> Why | None:
    return due(
        cursor,
        tokens=tokens,
        calls=lambda: calls,
        called=called,
        policy=POLICY,
        scaled=lambda budget: int(budget * scale),
        failed=failed or FailedUpdates(),
        retries=2,
    )


CASES = [
    pytest.param(None, 9_999, 5, False, None, id="not yet"),
    pytest.param(None, 10_000, 0, True, "first", id="first at ten thousand, calls or not"),
    pytest.param(CURSOR, 14_999, 9, False, None, id="growth is always required"),
    pytest.param(CURSOR, 15_000, 2, True, None, id="two calls, and the last answer called"),
    pytest.param(CURSOR, 15_000, 3, True, "grown", id="three calls"),
    pytest.param(CURSOR, 15_000, 0, False, "grown", id="the last answer called none"),
    pytest.param(CURSOR, 9_000, 9, False, None, id="shrunk"),
]


@pytest.mark.spec("N3")
@pytest.mark.parametrize(("cursor", "tokens", "calls", "called", "expected"), CASES)
def test_notes_are_due_by_growth_and_calls(
    cursor: Cursor | None, tokens: int, calls: int, called: bool, expected: Why | None
) -> None:
    assert ask(cursor, tokens, calls=calls, called=called) == expected


@pytest.mark.spec("T9")
def test_in_a_small_window_notes_are_due_earlier() -> None:
    assert ask(None, 1_000, scale=0.1) == "first"
    assert ask(Cursor(1_000, "m"), 1_500, scale=0.1) == "grown"
    assert ask(Cursor(1_000, "m"), 1_499, scale=0.1) is None


@pytest.mark.spec("N3", "B3")
def test_what_failed_is_tried_again_at_once_a_few_times_then_only_after_growth() -> None:
    for times in (1, 2):
        assert ask(CURSOR, 15_000, failed=FailedUpdates(times, 15_000)) == "grown"
    assert ask(CURSOR, 19_999, failed=FailedUpdates(3, 15_000)) is None
    assert ask(CURSOR, 20_000, failed=FailedUpdates(3, 15_000)) == "grown"
    assert ask(None, 12_000, failed=FailedUpdates(3, 10_000)) is None


@pytest.mark.spec("N3", "B3")
def test_after_too_many_failures_there_are_no_more_tries_until_a_compaction() -> None:
    stopped = FailedUpdates(POLICY.breaker, 15_000, "b1")
    assert ask(CURSOR, 900_000, failed=stopped) is None
    assert ask(CURSOR, 900_000, failed=FailedUpdates(POLICY.breaker - 1, 15_000)) == "grown"
    assert still_failed(stopped, 16_000, "b1") == stopped
    assert still_failed(stopped, 16_000, "b2") == FailedUpdates()


@pytest.mark.spec("N3")
def test_a_count_that_falls_does_not_end_the_tries() -> None:
    failed = still_failed(FailedUpdates(5, 150_000, "b1"), 20_000, "b1")
    assert failed == FailedUpdates(5, 20_000, "b1")
    assert ask(CURSOR, 24_999, failed=failed) is None
    assert ask(CURSOR, 25_000, failed=failed) == "grown"


def test_a_cursor_follows_a_count_that_falls_and_none_that_rises() -> None:
    assert lowered(CURSOR, 4_000) == Cursor(4_000, "m1")
    assert lowered(CURSOR, 40_000) == CURSOR
