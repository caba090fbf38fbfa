"""A fix interrupted before each of its system calls leaves every file old or new, and the next run finishes it."""

from __future__ import annotations

import errno
import json
from pathlib import Path

import pytest
from tests.disk.crash.harness import Extent, Fail, Kill, Say, Short, every
from tests.disk.processes import needs_fork

from lamina.disk.transcripts.jsonl import read_lines
from lamina.maintenance.doctor.finding import Finding, PathFix, ToTrash
from lamina.maintenance.doctor.fixes import mend
from lamina.memory.store.index import read_entries

from .patient import NOW, Patient

pytestmark = needs_fork

OLD = f"- [a](a.md) — {'word ' * 60}\n- [gone](gone.md)\n"


def record(number: int) -> bytes:
    return (
        json.dumps({"type": "user", "sessionId": "s", "parentUuid": None, "uuid": f"u{number}", "lamina": {"v": 1}}).encode()
        + b"\n"
    )


DAMAGED = record(1) + b"junk\n" + record(2)


def prepare(directory: Path) -> None:
    patient = Patient(directory)
    patient.topic("a.md", "the same text")
    patient.topic("b.md", "the same text", description="What a.md is about, in so many words")
    patient.index(OLD)
    patient.transcript("s", DAMAGED)


def act(directory: Path, say: Say) -> None:
    """The fixes alone: a look opens many files and changes none."""
    patient = Patient(directory)
    memory = str(patient.memory)
    fixes = (PathFix("repair", str(patient.project / "s.jsonl")), ToTrash(memory, "b.md", "a.md"), PathFix("mend-index", memory))
    done = mend([Finding("memory", "identical", "", fix=fix) for fix in fixes], now=NOW)
    if all(each.ok for each in done):
        say("done")


@pytest.mark.spec("Z1", "Z2", "Z4")
@pytest.mark.parametrize("fault", [Kill(), Kill(torn=True), Fail(errno.ENOSPC), Short()], ids=str)
@pytest.mark.usefixtures("crash_points")
def test_whatever_stops_a_fix_nothing_is_half_and_the_next_one_ends_it(tmp_path: Path, fault: Kill | Fail | Short) -> None:
    stopped = 0
    # A kill is tried before every call; the other faults, which go other ways through the same code, before every third.
    step = 1 if fault == Kill() else 3
    for run in every(tmp_path, prepare, act, fault, step=step):
        stopped += bool(run.point)
        patient = Patient(run.directory)
        index = (patient.memory / "MEMORY.md").read_text()
        assert read_entries(index), run
        if not (patient.memory / "b.md").exists():
            with patient.store() as store:
                assert "the same text" in (store.history.content_of(store.log("b.md")[0].before) or ""), run
        transcript = patient.project / "s.jsonl"
        assert [line.value["uuid"] for line in read_lines(transcript)] == ["u1", "u2"], run
        backup = patient.project / "s" / "damaged.jsonl"
        assert transcript.read_bytes() == DAMAGED or backup.read_bytes() == DAMAGED, run
        _, report = patient.fix()
        assert [found for found in report.findings if found.fix is not None and found.kind != "leftover"] == [], run
        assert {entry.file for entry in read_entries((patient.memory / "MEMORY.md").read_text())} == {"a.md"}, run
    assert stopped > 20 // step or not Extent.every
