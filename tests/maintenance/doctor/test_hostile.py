"""Hostile directories with pipes, gigabytes, loops or thousands of files: checks are bounded and never block."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.disk.trees.survey import survey
from lamina.maintenance.doctor.files import check_files
from lamina.maintenance.doctor.index import check_index
from lamina.maintenance.doctor.memory_snapshot import MemoryDirectory, read_memory

from .patient import NOW, Patient

GIGABYTE = 1 << 30


def sparse(path: Path, size: int) -> None:
    with open(path, "wb") as file:
        file.truncate(size)
    path.chmod(0o600)


@pytest.mark.exhaustive
@pytest.mark.spec("Z7")
def test_a_gigabyte_in_any_place_costs_little(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    (patient.memory / ".history").mkdir(mode=0o700)
    (patient.memory / ".inbox").mkdir(mode=0o700)
    places = ["topic.md", "MEMORY.md", ".history/journal-000001.jsonl", ".history/heads.msgpack", ".inbox/0123456789ab.json"]
    for place in places:
        sparse(patient.memory / place, GIGABYTE)
    for name in ("settings.json", "trust.json", "include-approvals.json", "flags.json"):
        sparse(patient.home / name, GIGABYTE)
    sparse(patient.cwd / "CLAUDE.md", GIGABYTE)
    sparse(patient.project / "session.jsonl", GIGABYTE)
    read = 0
    real = os.read

    def counted(fd: int, size: int) -> bytes:
        nonlocal read
        data = real(fd, size)
        read += len(data)
        return data

    monkeypatch.setattr(os, "read", counted)
    kinds = {found.kind for found in patient.look().findings}
    assert {"oversize", "index-full", "journal-damage", "inbox-damage", "setting", "not-looked-at"} <= kinds
    assert read < 256 << 20


@pytest.mark.spec("Z7")
def test_pipes_and_loops_in_every_place_do_not_block(patient: Patient) -> None:
    (patient.memory / ".history").mkdir(mode=0o700)
    (patient.memory / ".inbox").mkdir(mode=0o700)
    memory, home, cwd = patient.memory, patient.home, patient.cwd
    places = [memory / name for name in ("a.md", "MEMORY.md", ".history/journal-000001.jsonl", ".inbox/0123456789ab.json")]
    places += [home / name for name in ("settings.json", "trust.json", "include-approvals.json", "flags.json")]
    (cwd / ".claude").mkdir()
    places += [cwd / "CLAUDE.md", cwd / ".claude" / "settings.json", patient.project / "s.jsonl"]
    for place in places:
        os.mkfifo(place)
    (memory / "loop").symlink_to(memory)
    (memory / "self.md").symlink_to("self.md")
    (cwd / "AGENTS.md").symlink_to("AGENTS.md")
    report = patient.look()
    assert report.seen_all
    assert {"not-plain", "setting"} <= {found.kind for found in report.findings}
    patient.fix()


def test_a_crowd_of_equals_is_found_without_comparing_each_with_each(patient: Patient) -> None:
    body = " ".join(f"word{number}" for number in range(60))
    for number in range(400):
        patient.topic(f"t{number}.md", f"{body} {number}", description=f"What number {number} does to the queue")
    assert len(patient.found("near-duplicate")) == 399


def test_names_that_are_no_unicode_or_hold_controls_are_survived(patient: Patient) -> None:
    name = os.fsencode(patient.memory) + b"/bad\xff\x1b[31m.md"
    with open(name, "wb") as file:
        file.write(b"\xff\xfe\x00")
    os.chmod(name, 0o600)
    deep = patient.memory
    for number in range(30):
        deep = deep / f"d{number}"
    deep.mkdir(parents=True, mode=0o700)
    report = patient.look()
    assert any(found.kind == "unreadable" for found in report.findings)
    patient.fix()


def test_a_directory_beyond_the_limit_is_said_and_no_line_is_lost(patient: Patient) -> None:
    for number in range(20):
        patient.topic(f"t{number:02}.md", f"text {number}")
    patient.index("".join(f"- [t{number:02}](t{number:02}.md)\n" for number in range(20)))
    reading = read_memory(MemoryDirectory(patient.memory, patient.cwd), now=NOW)
    few = survey(patient.memory, most=5)
    assert reading is not None
    assert few is not None
    cut = reading._replace(found=few)
    assert [found.kind for found in check_files(cut)] == ["too-many"]
    assert list(check_index(cut)) == []


def test_memories_beyond_the_budget_are_counted(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.maintenance.doctor.memory_snapshot.MOST_BYTES", 400)
    for number in range(10):
        patient.topic(f"t{number}.md", f"text {number}")
    [found] = patient.found("too-many")
    assert "memories were not checked" in found.problem
