"""Which transcripts belong to a memory, and how many are newer than the last dream."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.disk.trees.rootdir import RootDir
from lamina.layers.l6_dream.gates import PLACES, check_empty, count_newer, register_place, transcript_places

SECOND = 1_000_000_000


def transcript(place: Path, name: str, seconds: int, text: str = "{}\n") -> Path:
    place.mkdir(parents=True, exist_ok=True)
    path = place / f"{name}.jsonl"
    path.write_text(text)
    os.utime(path, ns=(seconds * SECOND, seconds * SECOND))
    return path


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    path = tmp_path / "memory"
    path.mkdir(mode=0o700)
    return path


@pytest.mark.spec("D1")
def test_newer_ones_count_but_for_the_own_and_those_in_which_nothing_was_said(tmp_path: Path) -> None:
    here = tmp_path / "here"
    own = transcript(here, "own", 200)
    transcript(here, "old", 99)
    transcript(here, "same", 100)
    transcript(here, "new", 101)
    transcript(here, "empty", 102, "")
    (here / "dir.jsonl").mkdir()
    (here / "link.jsonl").symlink_to(here / "new.jsonl")
    (here / "notes.md").write_text("no transcript")
    assert count_newer([here, tmp_path / "gone"], 100 * SECOND, own=own, enough=10) == 1
    assert count_newer([here], None, own=own, enough=10) == 3
    assert count_newer([here], None, own=None, enough=2) == 2, "no further than needed"


@pytest.mark.spec("D1")
def test_a_directory_is_registered_once_and_found_again(memory: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "-home-one", tmp_path / "-home-two"
    assert register_place(memory, one)
    assert register_place(memory, two)
    entry = memory / PLACES / one.name
    before = entry.stat()
    assert register_place(memory, one)
    assert entry.stat().st_mtime_ns == before.st_mtime_ns
    assert entry.stat().st_mode & 0o777 == 0o600
    with RootDir.open(memory) as root:
        assert transcript_places(root, two) == (two, one)
        assert transcript_places(root, None) == (one, two)


@pytest.mark.spec("D1")
def test_without_a_memory_nothing_is_made(tmp_path: Path) -> None:
    assert not register_place(tmp_path / "memory", tmp_path / "here")
    assert not (tmp_path / "memory").exists()


@pytest.mark.spec("D1", "Z8")
def test_what_is_no_place_is_passed_over(memory: Path, tmp_path: Path) -> None:
    directory = memory / PLACES
    directory.mkdir(parents=True)
    (directory / "relative").write_text("relative")
    (directory / "other").write_text(str(tmp_path / "another name"))
    (directory / "nul").write_bytes(b"/a\0b")
    (directory / "dir").mkdir()
    (directory / "link").symlink_to("/etc/passwd")
    with RootDir.open(memory) as root:
        assert transcript_places(root, None) == ()


@pytest.mark.spec("D1", "F4")
def test_a_memory_that_cannot_be_written_costs_only_the_entry(memory: Path, tmp_path: Path) -> None:
    (memory / ".dreams").write_text("a file in the way")
    assert not register_place(memory, tmp_path / "here")


@pytest.mark.spec("D1")
def test_a_memory_with_nothing_but_our_own_files_is_empty(memory: Path, tmp_path: Path) -> None:
    register_place(memory, tmp_path / "here")
    assert check_empty(memory) == check_empty(tmp_path / "gone") is not None
    (memory / "a.md").write_text("Text.")
    assert check_empty(memory) is None
