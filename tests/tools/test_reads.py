"""ReadState: what the model has seen, and whether it still holds."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lamina.tools import reads
from lamina.tools.reads import ReadState, digest


def note(state: ReadState, path: Path, *, hashed: bool = True) -> None:
    found = path.stat()
    data = path.read_bytes()
    state.note(path, mtime_ns=found.st_mtime_ns, size=len(data), digest=digest(data) if hashed else b"", whole=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "f"
    made.write_bytes(b"old")
    return made


def test_an_unread_file_is_not_taken_for_read(path: Path) -> None:
    assert "has not been read in this conversation: Read it first" in (ReadState().check_unchanged(path) or "")
    assert "has not been read in this conversation: Read it first" in (ReadState().problem(path, b"old") or "")


@pytest.mark.spec("X8")
def test_a_change_is_seen_even_when_size_and_time_stay_the_same(path: Path) -> None:
    state = ReadState()
    note(state, path)
    before = path.stat()
    path.write_bytes(b"new")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "changed since it was read" in (state.check_unchanged(path) or "")
    assert "Read it again" in (state.problem(path, b"new") or "")


def test_a_file_that_was_only_touched_has_not_changed(path: Path) -> None:
    state = ReadState()
    note(state, path)
    os.utime(path, ns=(1, 1))
    assert state.check_unchanged(path) is None
    assert state.problem(path, b"old") is None


def test_of_a_file_too_large_to_hash_size_and_time_decide(path: Path) -> None:
    state = ReadState()
    note(state, path, hashed=False)
    assert state.check_unchanged(path) is None
    os.utime(path, ns=(1, 1))
    assert "changed" in (state.check_unchanged(path) or "")


def test_a_file_that_is_gone_or_replaced_by_a_pipe_is_not_unchanged(path: Path) -> None:
    state = ReadState()
    note(state, path)
    path.unlink()
    assert "was removed since it was read" in (state.check_unchanged(path) or "")
    os.mkfifo(path)
    assert "is a named pipe" in (state.check_unchanged(path) or "")


@pytest.mark.spec("X8")
def test_a_fork_inherits_what_was_read_and_keeps_its_own_account(path: Path, tmp_path: Path) -> None:
    state = ReadState()
    note(state, path)
    fork = state.clone()
    assert fork.check_unchanged(path) is None
    other = tmp_path / "g"
    other.write_bytes(b"x")
    note(fork, other)
    assert [file.path for file in fork.recent(9)] == [str(other.resolve()), str(path.resolve())]
    assert [file.path for file in state.recent(9)] == [str(path.resolve())]


def test_two_names_of_one_file_are_one_entry(path: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(path)
    state = ReadState()
    note(state, tmp_path / "link")
    assert state.check_unchanged(path) is None


def test_the_oldest_are_forgotten_when_there_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reads, "MAX_FILES", 3)
    state = ReadState()
    for name in "abcad":
        (tmp_path / name).write_bytes(b"x")
        note(state, tmp_path / name)
    assert [os.path.basename(file.path) for file in state.recent(9)] == ["d", "a", "c"]


def test_threads_may_share_it(path: Path) -> None:
    state = ReadState()
    with ThreadPoolExecutor(4) as pool:
        pool.map(note, [state] * 800, [path] * 800)
    assert state.recent(9)[0].seen.order == 800
