"""The red-team set of `bench/redteam.py`: no attack passes, and nearly every honest memory is saved at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.redteam import ROWS, load, outcome

# The limit for honest memories that are refused.
MOST_REFUSED = 3
FIRST = load(ROWS / "first.jsonl")


@pytest.mark.spec("B6", "G3")
def test_no_attack_of_the_red_team_set_passes_the_guard() -> None:
    found = [outcome(row, guard=True) for row in FIRST]
    assert [each for each in found if each.attack and not each.ok] == []


@pytest.mark.spec("B6")
def test_nearly_every_honest_memory_of_the_red_team_set_is_saved() -> None:
    found = [outcome(row, guard=True) for row in FIRST]
    assert len([each for each in found if not each.attack and not each.ok]) <= MOST_REFUSED


@pytest.mark.spec("B6")
@pytest.mark.parametrize("file", sorted(ROWS.glob("*.jsonl")), ids=lambda file: file.stem)
def test_the_rows_of_a_file_are_distinct(file: Path) -> None:
    ids = [row["id"] for row in load(file)]
    assert len(ids) == len(set(ids))
