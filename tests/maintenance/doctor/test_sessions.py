"""Transcripts, forks and the home: problems are found, repaired with a backup, and left alone in other programs' files."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from lamina.disk.locks.lock_file import LifeLock
from lamina.disk.transcripts.jsonl import Health, read_lines
from lamina.disk.transcripts.store import lock_path
from lamina.session.session import Session

from .patient import DAY, Patient


def record(number: int, **more: object) -> bytes:
    value = {
        "type": "user",
        "sessionId": "s",
        "uuid": f"u{number}",
        "parentUuid": None,
        "message": {"role": "user", "content": "hé"},
    }
    return json.dumps(value | {"lamina": {"v": 1}} | more, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def objects(path: Path) -> list[object]:
    return [line.value.get("uuid") for line in read_lines(path)]


DAMAGE = {
    "torn": record(1) + record(2)[:40] + b"\n" + record(3),
    "torn and glued": record(1) + record(2)[:40] + record(3) + record(4),
    "glued": record(1) + record(2).rstrip(b"\n") + record(3) + record(4),
    "NUL": record(1) + b"\0" * 300 + record(2) + record(3),
    "no JSON": record(1) + b"hello there\n" + record(2),
    "no object": record(1) + b"17\n" + record(2),
    "torn end": record(1) + record(2) + record(3)[:50],
}


@pytest.mark.spec("Z4", "Z12")
@pytest.mark.parametrize("data", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_transcript_is_found_and_mended_with_a_backup(patient: Patient, data: bytes) -> None:
    path = patient.transcript("s", data, age=DAY)
    before, time = objects(path), path.stat().st_mtime_ns
    [found] = [*patient.found("damaged-transcript"), *patient.found("rescued-records")]
    assert found.file == str(path)
    done, left = patient.fix()
    assert [each.ok for each in done if each.kind == found.kind] == [True]
    health = Health()
    assert [line.value.get("uuid") for line in read_lines(path, health=health)] == before
    assert health.kinds == {}
    assert (patient.project / "s" / "damaged.jsonl").read_bytes() == data
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.stat().st_mtime_ns == time
    assert not {"damaged-transcript", "rescued-records"} & {each.kind for each in left.findings}


@pytest.mark.spec("Z4")
def test_records_stay_where_they_stood(patient: Patient) -> None:
    data = record(1) + b"\0" * 300 + record(2)[:40] + b"\n" + record(3) + b"junk\n" + record(4)
    path = patient.transcript("s", data)
    before = {line.value["uuid"]: line.offset for line in read_lines(path)}
    patient.fix()
    assert {line.value["uuid"]: line.offset for line in read_lines(path)} == before
    assert path.stat().st_size == len(data)


def test_a_second_repair_keeps_the_first_backup(patient: Patient) -> None:
    path = patient.transcript("s", record(1) + b"junk\n" + record(2))
    patient.fix()
    with open(path, "ab") as file:
        file.write(b"more junk\n")
    patient.fix()
    assert (patient.project / "s" / "damaged.jsonl").read_bytes().count(b"junk") == 1
    assert (patient.project / "s" / "damaged-2.jsonl").read_bytes().count(b"junk") == 1


def test_a_session_can_be_continued_after_its_repair(patient: Patient) -> None:
    with Session("offline", home=patient.home, cwd=patient.cwd) as session:
        session.add_user("the first thing")
        name = session.id
    path = patient.project / f"{name}.jsonl"
    with open(path, "ab") as file:
        file.write(b'{"type":"user","sess\n')
    patient.fix()
    assert patient.kinds(area="sessions") == set()
    with Session("offline", home=patient.home, cwd=patient.cwd, resume=name) as session:
        assert "the first thing" in json.dumps(session.messages)
        assert session.notices == []


@pytest.mark.parametrize("whose", ["live", "foreign"])
def test_a_transcript_that_somebody_else_writes_is_left_alone(patient: Patient, whose: str) -> None:
    line = record(2) if whose == "live" else json.dumps({"type": "user", "sessionId": "s", "uuid": "x"}).encode() + b"\n"
    data = record(1) + b"junk\n" + line
    path = patient.transcript("s", data)
    lock = LifeLock.acquire(lock_path(path)) if whose == "live" else None
    try:
        [found] = patient.found("damaged-transcript")
        assert found.fix is None
        patient.fix()
    finally:
        if lock is not None:
            lock.close()
    assert path.read_bytes() == data


@pytest.mark.skipif(os.name == "nt", reason="other locks there")
def test_a_transcript_whose_lock_cannot_be_looked_at_is_readable_and_left_alone(patient: Patient) -> None:
    path = patient.transcript("s", DAMAGE["no JSON"])
    lock_path(path).mkdir(parents=True)
    assert patient.found("unreadable") == []
    [found] = patient.found("damaged-transcript")
    assert found.fix is None
    assert "in use by an unknown process" in found.remedy


def test_what_a_killed_fork_left_is_removed_and_a_living_one_is_not(patient: Patient) -> None:
    growing = patient.project / "new-id" / "fork.jsonl"
    growing.parent.mkdir(mode=0o700)
    growing.write_bytes(record(1))
    growing.chmod(0o600)
    with LifeLock.acquire(growing.with_name("writer.lock")) or pytest.fail("locked"):
        assert patient.found("stale-fork") == []
    [found] = patient.found("stale-fork")
    assert found.file == str(growing)
    patient.fix()
    assert not growing.exists()


@pytest.mark.spec("Z9")
def test_a_home_that_is_not_private_is_found_and_closed(patient: Patient) -> None:
    patient.transcript("s", record(1)).chmod(0o640)
    patient.home.chmod(0o755)
    (patient.home / "settings.json").write_text("{}")
    (patient.home / "settings.json").chmod(0o644)
    assert len(patient.found("not-private")) == 3
    patient.fix()
    assert patient.found("not-private") == []
    assert stat.S_IMODE(patient.home.stat().st_mode) == 0o700


@pytest.mark.spec("Z12")
def test_what_the_list_of_sessions_leaves_out_is_said(patient: Patient) -> None:
    os.mkfifo(patient.project / "pipe.jsonl")
    (patient.project / "link.jsonl").symlink_to("/dev/zero")
    assert {Path(found.file).name for found in patient.found("not-plain")} == {"pipe.jsonl", "link.jsonl"}


def test_transcripts_beyond_the_budget_are_named_and_not_read(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.maintenance.doctor.sessions.MOST_READ", 1_000)
    patient.transcript("old", (record(1) + b"junk\n") * 10, age=DAY)
    patient.transcript("new", record(1) + b"junk\n")
    [found] = patient.found("damaged-transcript")
    assert found.file.endswith("new.jsonl")
    [left] = patient.found("not-looked-at")
    assert left.problem.startswith("1 of 2 transcripts")


def test_a_transcript_in_a_newer_format_is_said(patient: Patient) -> None:
    patient.transcript("s", record(1) + record(2, lamina={"v": 999, "kind": "later"}, type="system"))
    kinds = patient.kinds(area="sessions")
    assert kinds == {"newer-format"}


@pytest.mark.spec("Z4", "Z12")
def test_records_with_one_id_and_parents_that_go_round_are_found(patient: Patient) -> None:
    patient.transcript("twice", record(1) + record(2, parentUuid="u1") + record(2, parentUuid="u1"), age=DAY)
    patient.transcript("round", record(1, parentUuid="u3") + record(2, parentUuid="u1") + record(3, parentUuid="u2"), age=DAY)
    patient.transcript("fine", record(1) + record(2, parentUuid="u1"), age=DAY)
    texts = sorted(found.problem for found in patient.found("odd-tree"))
    assert texts == [
        "round.jsonl: 1 record is its own ancestor (a cycle of parents); the order in the file counts.",
        "twice.jsonl: 1 record has the id of an earlier record; the later one counts.",
    ]
