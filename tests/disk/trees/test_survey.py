"""A look at a tree: every entry with its kind, no link followed, bounded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.core.errors import DiskError
from lamina.disk.trees import survey as tree_survey
from lamina.disk.trees.survey import look_at, survey


def test_every_entry_is_seen_as_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir(mode=0o750)
    (tmp_path / "sub" / "file.md").write_text("12345")
    (tmp_path / "link").symlink_to("/")
    os.mkfifo(tmp_path / "pipe")
    found = survey(tmp_path)
    assert found is not None
    assert {(seen.path, seen.kind) for seen in found.entries} == {
        ("sub", "directory"),
        ("sub/file.md", "file"),
        ("link", "link"),
        ("pipe", "other"),
    }
    by_path = {seen.path: seen for seen in found.entries}
    assert (by_path["sub/file.md"].size, by_path["sub/file.md"].name) == (5, "file.md")
    assert (by_path["sub"].private, by_path["link"].private) == (False, True)
    assert found.whole


def test_what_is_not_there_is_nothing_and_a_file_is_an_error(tmp_path: Path) -> None:
    assert survey(tmp_path / "nowhere") is None
    assert look_at(tmp_path / "nowhere") is None
    (tmp_path / "file").write_text("x")
    with pytest.raises(DiskError):
        survey(tmp_path / "file")


@pytest.mark.spec("Z7")
def test_a_large_or_deep_tree_is_cut_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        (tmp_path / f"d{number}").mkdir()
        (tmp_path / f"d{number}" / "x").write_text("x")
    cut = survey(tmp_path, most=10)
    assert cut is not None
    assert (len(cut.entries), cut.whole) == (10, False)
    monkeypatch.setattr(tree_survey, "MAX_DEPTH", 0)
    shallow = survey(tmp_path)
    assert shallow is not None
    assert (len(shallow.entries), shallow.whole) == (30, False)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may list everything")
def test_a_directory_that_cannot_be_listed_is_named(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o000)
    found = survey(tmp_path)
    assert found is not None
    assert found.unread == ("closed",)
