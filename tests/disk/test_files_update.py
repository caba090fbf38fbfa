"""update and the guard: of any number of processes none loses another's change; waiting is bounded; no lock, no write."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from lamina.core.errors import DiskError, DiskFull, LockHeld, LockUnsupported, PathRefused
from lamina.disk import crash_points as crash
from lamina.disk import files
from lamina.disk.files import read, update
from lamina.disk.locks.lock_file import guard, guard_at

from .processes import needs_fork, together


def add(line: bytes) -> Callable[[bytes | None], bytes | None]:
    return lambda old: (old or b"") + line


def wait_for_guards(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monkeypatch.setattr(files, "guard_at", partial(guard_at, timeout=seconds))


@pytest.mark.spec("Z3")
@needs_fork
@pytest.mark.parametrize("processes", [4, pytest.param(16, marks=pytest.mark.exhaustive)])
def test_many_processes_with_forty_updates_each_lose_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, processes: int
) -> None:
    path = tmp_path / "index"
    wait_for_guards(monkeypatch, 600)

    def act(number: int) -> None:
        for turn in range(40):
            assert update(path, add(b"%d %d\n" % (number, turn)), durability="process")

    together(processes, act)
    lines = path.read_bytes().splitlines()
    assert len(lines) == processes * 40
    for number in range(processes):
        assert [line for line in lines if line.startswith(b"%d " % number)] == [b"%d %d" % (number, turn) for turn in range(40)]


def test_the_function_sees_none_for_a_missing_file_and_the_content_after_that(tmp_path: Path) -> None:
    seen = list[bytes | None]()

    def next_one(old: bytes | None) -> bytes:
        seen.append(old)
        return (old or b"") + b"x"

    assert update(tmp_path / "d" / "f", next_one)
    assert update(tmp_path / "d" / "f", next_one)
    assert seen == [None, b"x"]


@pytest.mark.parametrize("answer", [None, b"same"])
def test_no_change_writes_nothing(tmp_path: Path, answer: bytes | None) -> None:
    (tmp_path / "f").write_bytes(b"same")
    before = (tmp_path / "f").stat()
    assert not update(tmp_path / "f", lambda _: answer)
    assert (tmp_path / "f").stat().st_ino == before.st_ino


def test_a_function_that_raises_changes_nothing_and_frees_the_guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_guards(monkeypatch, 0)

    def broken(_: bytes | None) -> bytes:
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        update(tmp_path / "f", broken)
    assert read(tmp_path / "f", 10) is None
    assert update(tmp_path / "f", add(b"x"))


def test_a_guard_that_is_taken_ends_in_lock_held_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_guards(monkeypatch, 0.01)
    with guard(tmp_path / ".f.lock"), pytest.raises(LockHeld) as caught:
        update(tmp_path / "f", add(b"x"))
    assert caught.value.path == str(tmp_path / ".f.lock")
    assert read(tmp_path / "f", 10) is None


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL])
def test_a_file_system_without_locks_is_refused_before_anything_is_written(tmp_path: Path, code: int) -> None:
    (tmp_path / "f").write_bytes(b"old")

    def no_locks(name: str, _: int) -> None:
        if name == "lock.flock":
            raise OSError(code, os.strerror(code))

    with crash.watched(no_locks), pytest.raises(LockUnsupported):
        update(tmp_path / "f", add(b"x"))
    assert (tmp_path / "f").read_bytes() == b"old"


def test_a_plain_replace_needs_no_locks(tmp_path: Path) -> None:
    def no_locks(name: str, _: int) -> None:
        if name == "lock.flock":
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with crash.watched(no_locks):
        files.replace(tmp_path / "f", b"x")
    assert os.listdir(tmp_path) == ["f"]


def test_the_guard_stays_and_a_planted_link_in_its_place_is_refused(tmp_path: Path) -> None:
    update(tmp_path / "f", add(b"x"))
    assert (tmp_path / ".f.lock").read_bytes() == b""
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / ".g.lock").symlink_to(tmp_path / "victim")
    os.link(tmp_path / "victim", tmp_path / ".h.lock")
    for name in ("g", "h"):
        with pytest.raises(PathRefused):
            update(tmp_path / name, add(b"x"))
    assert (tmp_path / "victim").read_bytes() == b"precious"


def test_a_file_too_large_to_be_ours_is_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_UPDATE", 10)
    (tmp_path / "f").write_bytes(b"x" * 11)
    with pytest.raises(DiskError, match="larger"):
        update(tmp_path / "f", add(b"x"))


def test_a_full_disk_leaves_the_content_and_frees_the_guard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wait_for_guards(monkeypatch, 0)
    (tmp_path / "f").write_bytes(b"old")

    def full(name: str, size: int) -> None:
        if size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with crash.watched(full), pytest.raises(DiskFull):
        update(tmp_path / "f", add(b"x"))
    assert update(tmp_path / "f", add(b" and new"))
    assert (tmp_path / "f").read_bytes() == b"old and new"
