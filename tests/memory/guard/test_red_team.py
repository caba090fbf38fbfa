"""The red-team set of `bench/redteam.py`: no attack passes, and nearly every honest memory is saved at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench import redteam_doors
from bench.redteam import ROWS, load, outcome

# The limit for honest memories that are refused.
MOST_REFUSED = 3
FILES = sorted(ROWS.glob("*.jsonl"))


@pytest.mark.spec("B6", "G3")
def test_no_attack_of_the_red_team_set_passes_the_guard() -> None:
    found = [outcome(row, guard=True) for file in FILES for row in load(file)]
    assert [each for each in found if each.attack and not each.ok] == []


@pytest.mark.spec("B6")
def test_nearly_every_honest_memory_of_the_red_team_set_is_saved() -> None:
    found = [outcome(row, guard=True) for file in FILES for row in load(file)]
    assert len([each for each in found if not each.attack and not each.ok]) <= MOST_REFUSED


@pytest.mark.spec("B6")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_rows_of_a_file_are_distinct(file: Path) -> None:
    ids = [row["id"] for row in load(file)]
    assert len(ids) == len(set(ids))


@pytest.mark.spec("G3", "U4", "W1")
@pytest.mark.parametrize("name", redteam_doors.ATTACKS)
def test_no_attack_by_another_door_passes(name: str, tmp_path: Path) -> None:
    assert redteam_doors.run(redteam_doors.ATTACKS[name], tmp_path, team="team" in name) == ""
