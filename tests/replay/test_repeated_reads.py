"""Repeated reads, and those caused by a policy."""

from __future__ import annotations

from typing import Any

import pytest

from lamina.core.blocks import ToolUse, read_block, tool_result
from lamina.replay.figures import ReplayFigures
from lamina.replay.repeated_reads import ReadTracker


def call(name: str, number: int, **given: Any) -> ToolUse:
    block = read_block({"type": "tool_use", "id": f"c{number}", "name": name, "input": given})
    assert isinstance(block, ToolUse)
    return block


def unseen(tool_use_id: str) -> bool:
    return False


FILE = {"file_path": "/a.py"}
NOTHING, AGAIN, REGRET = (ReplayFigures(repeated_reads=reads, regrets=regrets) for reads, regrets in ((0, 0), (1, 0), (1, 1)))


@pytest.mark.spec("B14")
@pytest.mark.parametrize(
    ("first", "then", "seen", "found"),
    [
        (("Read", FILE), ("Read", FILE), {"c0"}, AGAIN),
        (("Read", FILE), ("Read", FILE), set(), REGRET),
        (("Read", FILE), ("Read", {"file_path": "/b.py"}), set(), NOTHING),
        (("Read", {**FILE, "offset": 1, "limit": 50}), ("Read", {**FILE, "offset": 51, "limit": 50}), set(), NOTHING),
        (("Read", {**FILE, "offset": 1, "limit": 50}), ("Read", {**FILE, "offset": 50, "limit": 5}), set(), REGRET),
        (("Grep", {"pattern": "x"}), ("Grep", {"pattern": "x"}), set(), REGRET),
        (("Grep", {"pattern": "x"}), ("Grep", {"pattern": "y"}), set(), NOTHING),
        (("Bash", {"command": "pytest"}), ("Bash", {"command": "pytest"}), set(), NOTHING),
        (("Read", {}), ("Read", {}), set(), NOTHING),
    ],
)
def test_a_read_is_a_regret_when_what_it_shows_was_seen_and_taken_out(
    first: tuple[str, dict[str, Any]], then: tuple[str, dict[str, Any]], seen: set[str], found: ReplayFigures
) -> None:
    reads = ReadTracker()
    assert reads.called([call(first[0], 0, **first[1])], unseen) == NOTHING
    reads.came([tool_result("c0", "text")])
    assert reads.called([call(then[0], 1, **then[1])], seen.__contains__) == found


def test_a_file_that_was_changed_or_could_not_be_read_may_be_read_again() -> None:
    reads = ReadTracker()
    reads.called([call("Read", 0, **FILE)], unseen)
    reads.came([tool_result("c0", "no such file", is_error=True)])
    assert reads.called([call("Read", 1, **FILE)], unseen) == NOTHING
    reads.came([tool_result("c1", "text")])
    reads.called([call("Edit", 2, **FILE)], unseen)
    assert reads.called([call("Read", 3, **FILE)], unseen) == NOTHING


def test_two_reads_in_one_answer_are_no_repetition() -> None:
    assert ReadTracker().called([call("Read", 0, **FILE), call("Read", 1, **FILE)], unseen) == NOTHING
