"""Mending on a person's word: modes, forks, and the borders of a transcript's repair (the rest is shown in tests/doctor)."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from lamina.core.errors import DiskError, LockHeld, PathRefused
from lamina.disk.locks.lock_file import LifeLock
from lamina.disk.transcripts.jsonl import read_lines
from lamina.disk.transcripts.repairs import drop_fork, make_private, repair_transcript
from lamina.disk.transcripts.store import lock_path


def line(number: int, **more: object) -> bytes:
    value = {"type": "user", "sessionId": "s", "uuid": f"u{number}", "parentUuid": None, "lamina": {"v": 1}} | more
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


@pytest.mark.spec("Z9")
def test_modes_are_set_once_and_never_through_a_link(tmp_path: Path) -> None:
    file, directory, link = tmp_path / "file", tmp_path / "directory", tmp_path / "link"
    file.write_text("x")
    file.chmod(0o664)
    directory.mkdir(mode=0o755)
    link.symlink_to(file)
    assert (make_private(file), make_private(file)) == (True, False)
    assert (make_private(directory), make_private(directory)) == (True, False)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, directory)] == [0o600, 0o700]
    file.chmod(0o664)
    with pytest.raises(PathRefused):
        make_private(link)
    os.link(file, tmp_path / "second")
    with pytest.raises(PathRefused):
        make_private(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o664


def test_a_transcript_in_use_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(line(1) + b"junk\n")
    lock = LifeLock.acquire(lock_path(path))
    assert lock is not None
    with lock, pytest.raises(LockHeld):
        repair_transcript(path)
    assert repair_transcript(path).dropped == 1


def test_damage_that_would_move_a_checkpoint_is_left(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 become longer when they are replaced."""
    path = tmp_path / "s.jsonl"
    bad = line(1, text="x" * 20).replace(b"x" * 20, b"\xff" * 20)
    path.write_bytes(bad + line(2, kind="checkpoint"))
    before = path.read_bytes()
    with pytest.raises(DiskError, match="checkpoint"):
        repair_transcript(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path / "s") == ["writer.lock"]
    assert sorted(os.listdir(tmp_path)) == ["s", "s.jsonl"]


def test_without_a_checkpoint_it_may_grow(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    bad = line(1, text="x" * 20).replace(b"x" * 20, b"\xff" * 20)
    path.write_bytes(bad + line(2))
    repair_transcript(path)
    assert [found.value["uuid"] for found in read_lines(path)] == ["u1", "u2"]
    assert path.read_bytes().decode()


def test_a_lone_surrogate_survives_the_repair(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"junk " + line(1, text="\ud800"))
    repair_transcript(path)
    assert [found.value["uuid"] for found in read_lines(path)] == ["u1"]


def test_a_fork_that_is_gone_already_is_fine(tmp_path: Path) -> None:
    assert drop_fork(tmp_path / "id" / "fork.jsonl") is False
