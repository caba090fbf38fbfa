"""When a review is due, and which messages it covers."""

from __future__ import annotations

from typing import Any

import pytest

from lamina.core.view import Item
from lamina.layers.l5_extract.plan import (
    MOST_FAILURES,
    UNSAID,
    WROTE,
    is_final,
    range_start,
    skip_reason,
    stop_reason,
    wrote_memory,
)

from .making import answered, attached, called, came, said


def is_memory(path: str) -> bool:
    return path.startswith("/memory/")


@pytest.mark.spec("X2")
@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({}, "None"),
        ({"failures": MOST_FAILURES - 1}, "None"),
        ({"remote": True, "writable": False}, "ephemeral"),
        ({"writable": False}, "memory is read-only"),
        ({"writable": False, "off": "private memory is off"}, "private memory is off"),
        ({"off": "private memory is off"}, "None"),  # the team's is on
        ({"failures": MOST_FAILURES}, "failures"),
    ],
)
def test_each_gate_alone_stops_it(changed: dict[str, Any], why: str) -> None:
    gates: dict[str, Any] = {"remote": False, "off": None, "writable": True, "failures": 0}
    assert why in str(stop_reason(**{**gates, **changed}))


@pytest.mark.spec("X1")
@pytest.mark.parametrize(
    ("items", "final"),
    [
        ([], False),
        ([said("1", "hello")], False),
        ([said("1", "hello"), answered("2", "hi")], True),
        ([said("1", "hello"), answered("2", "hi", "stop_sequence")], True),
        ([said("1", "hello"), answered("2", "h", None)], False),
        ([said("1", "hello"), answered("2", "h", "max_tokens")], False),
        ([said("1", "hello"), answered("2", "h", "refusal")], False),
        ([said("1", "hello"), called("2", "Read", file_path="x")], False),
        ([said("1", "hello"), answered("2", "hi"), attached("3", "hook", "not done yet")], False),
    ],
)
def test_a_turn_ends_with_an_answer_that_calls_for_nothing(items: list[Item], final: bool) -> None:
    assert is_final(items) is final


@pytest.mark.spec("X4")
@pytest.mark.parametrize(("cursor", "start"), [(None, 0), ("2", 2), ("4", 4), ("gone", 0)])
def test_the_range_begins_behind_the_cursor_and_a_lost_cursor_means_all(cursor: str | None, start: int) -> None:
    items = [said("1", "a"), answered("2", "b"), said("3", "c"), answered("4", "d")]
    assert range_start(items, cursor) == start


@pytest.mark.spec("X3")
@pytest.mark.parametrize(
    ("items", "wrote"),
    [
        ([called("1", "Write", file_path="/memory/a.md"), came("2", "1", "Saved")], True),
        ([called("1", "Edit", file_path="/memory/a.md"), came("2", "1", "Changed")], True),
        ([called("1", "Write", file_path="/memory/a.md"), came("2", "1", "no", is_error=True)], False),
        ([called("1", "Write", file_path="/memory/a.md")], False),
        ([called("1", "Write", file_path="/project/a.md"), came("2", "1", "Saved")], False),
        ([called("1", "Read", file_path="/memory/a.md"), came("2", "1", "text")], False),
        ([called("1", "Write"), came("2", "1", "Saved")], False),
    ],
)
def test_only_a_write_of_memory_that_succeeded_counts(items: list[Item], wrote: bool) -> None:
    assert wrote_memory(items, is_memory) is wrote


@pytest.mark.spec("X3")
def test_why_a_range_needs_no_review() -> None:
    wrote = [said("0", "save it"), called("1", "Write", file_path="/memory/a.md"), came("2", "1", "Saved"), answered("3", "ok")]
    assert skip_reason(wrote, is_memory) == WROTE
    assert skip_reason([attached("1", "hook", "go on"), answered("2", "ok")], is_memory) == UNSAID
    assert skip_reason([said("1", "hello"), answered("2", "ok")], is_memory) is None
