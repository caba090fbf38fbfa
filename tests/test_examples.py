"""The examples run as they stand and show what their text says."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest


@cache
def said_by(example: Path) -> str:
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "name",
    [
        "openai_loop.py",
        *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("anthropic_loop.py", "recall_loop.py", "coding_task.py")),
    ],
)
def test_an_example_runs_and_reads_most_of_its_input_from_the_cache(name: str, root: Path) -> None:
    said = said_by(root / "examples" / name)
    share = int(said.splitlines()[-1].partition("%")[0])
    assert share > 50
    assert "0 breaks" in said


@pytest.mark.exhaustive
def test_the_coding_task_is_done_with_a_model_and_without(root: Path) -> None:
    said = said_by(root / "examples" / "coding_task.py")
    assert said.count("(it failed)") == 2, "the test fails before each repair"
    assert said.count("The tests pass now.") == 2
    assert "stopped after 2 rounds" in said
    assert "6 requests, 0 refused" in said


def test_a_compaction_of_the_example_is_opened_and_taken_back(root: Path) -> None:
    said = said_by(root / "examples" / "compact_and_undo.py")
    assert "compacted: " in said
    assert "False" not in said
    assert said.splitlines()[-1] == "taken back, byte for byte: True"


def test_the_memory_of_the_example_is_found_changed_and_restored(root: Path) -> None:
    said = said_by(root / "examples" / "memory.py")
    assert said.startswith("found: testing-db")
    assert "restored: Deploys go out on Tuesdays\nleft: deploys\n" in said


@pytest.mark.exhaustive
@pytest.mark.spec("Q7")
def test_memories_come_to_the_messages_of_the_example_once_each(root: Path) -> None:
    said = said_by(root / "examples" / "recall_loop.py")
    brought = [line.partition(": ")[2] for line in said.splitlines() if line.startswith("  in the request")]
    assert brought == ["testing-db.md"] * 3 + ["testing-db.md, deploy-day.md"]
    assert "my list holds 8 messages and none of it: True" in said


@pytest.mark.spec("U2")
def test_every_layer_works_under_the_loop_of_the_readme(root: Path) -> None:
    said = said_by(root / "examples" / "whole_session.py")
    fired = dict(line.split() for line in said.splitlines()[2:-1])
    assert list(fired) == ["spill", "expand", "clearing", "notes", "compaction", "extraction", "recall", "dream"]
    assert all(int(count) > 0 for count in fired.values()), fired
    assert said.splitlines()[-1] == "refused requests: 0"
