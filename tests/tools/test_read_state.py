"""ReadState: what the model has seen, and whether it still holds."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lamina.tools import read_state
from lamina.tools.read_state import ReadRange, ReadState, digest


def note(state: ReadState, path: Path) -> None:
    state.note(path, ReadRange(digest(path.read_bytes())))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "f"
    made.write_bytes(b"old")
    return made


def test_an_unread_file_is_not_taken_for_read(path: Path) -> None:
    assert "has not been read in this conversation. Read it first" in (ReadState().problem(path, b"old") or "")


@pytest.mark.spec("X8")
def test_a_change_is_seen_even_when_size_and_time_stay_the_same(path: Path) -> None:
    state = ReadState()
    note(state, path)
    before = path.stat()
    path.write_bytes(b"new")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "changed by the user or another program since it was read" in (state.problem(path, path.read_bytes()) or "")


def test_a_file_that_was_only_touched_has_not_changed(path: Path) -> None:
    state = ReadState()
    note(state, path)
    os.utime(path, ns=(1, 1))
    assert state.problem(path, path.read_bytes()) is None


@pytest.mark.spec("X8")
def test_a_fork_inherits_what_was_read_and_keeps_its_own_account(path: Path, tmp_path: Path) -> None:
    state = ReadState()
    note(state, path)
    fork = state.clone()
    assert fork.problem(path, b"old") is None
    other = tmp_path / "g"
    other.write_bytes(b"x")
    note(fork, other)
    assert [file.path for file in fork.recent(9)] == [str(other.resolve()), str(path.resolve())]
    assert [file.path for file in state.recent(9)] == [str(path.resolve())]


def test_two_names_of_one_file_are_one_entry(path: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(path)
    state = ReadState()
    note(state, tmp_path / "link")
    assert state.problem(path, b"old") is None


def test_the_oldest_are_forgotten_when_there_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_state, "MAX_FILES", 3)
    state = ReadState()
    for name in "abcad":
        (tmp_path / name).write_bytes(b"x")
        note(state, tmp_path / name)
    assert [os.path.basename(file.path) for file in state.recent(9)] == ["d", "a", "c"]


def test_threads_may_share_it(tmp_path: Path) -> None:
    state = ReadState()
    paths = [tmp_path / str(number % 80) for number in range(800)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda path: state.note(path, ReadRange(b"")), paths))
    assert len(state.recent(99)) == 80
