"""Rewriting files and removing directories as a whole."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.core.errors import DiskError, PathRefused
from lamina.disk.regular_file import stamp_of
from lamina.disk.trees.rewrite import move, raw_lines, remove_empty, remove_tree, rewrite


def test_a_file_is_rewritten_with_its_time_and_stays_private(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\ntwo")
    os.utime(path, ns=(1_000_000_000, 1_000_000_000))
    before = stamp_of(path)
    assert before is not None
    assert b"".join(line.data for line in raw_lines(path)) == b"one\ntwo"
    assert [line.offset for line in raw_lines(path)] == [0, 4]
    rewrite(path, [b"o", b"", b"ne"], before=before)
    assert path.read_bytes() == b"one"
    assert path.stat().st_mtime_ns == 1_000_000_000
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["a"]


def test_a_file_that_somebody_changed_meanwhile_is_left_to_them(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one")
    before = stamp_of(path)
    assert before is not None
    path.write_bytes(b"theirs")
    with pytest.raises(DiskError, match="another program"):
        rewrite(path, [b"ours"], before=before)
    assert path.read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["a"]


def test_a_read_only_file_and_a_second_name_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one")
    path.chmod(0o400)
    before = stamp_of(path)
    assert before is not None
    with pytest.raises(PathRefused):
        rewrite(path, [b"x"], before=before)
    path.chmod(0o600)
    os.link(path, tmp_path / "b")
    with pytest.raises(PathRefused):
        rewrite(path, [b"x"], before=before)
    assert path.read_bytes() == b"one"


def test_a_tree_goes_and_what_its_links_lead_to_stays(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "x").write_text("x")
    gone = tmp_path / "gone"
    (gone / "deep" / "er").mkdir(parents=True)
    (gone / "deep" / "f").write_text("f")
    (gone / "link").symlink_to(kept)
    assert remove_tree(gone)
    assert not gone.exists()
    assert (kept / "x").exists()
    assert not remove_tree(gone)
    assert not remove_empty(kept)


def test_a_move_takes_nothings_place(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text(name)
    with pytest.raises(DiskError):
        move(tmp_path / "a", tmp_path / "b")
    with pytest.raises(PathRefused):
        move(tmp_path / "a" / "f", tmp_path / "b" / "f")
    move(tmp_path / "a", tmp_path / "new" / "c")
    assert (tmp_path / "new" / "c" / "f").read_text() == "a"
    with pytest.raises(PathRefused):
        move(tmp_path / "a", tmp_path / "d")
