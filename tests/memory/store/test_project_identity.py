"""Which project a directory of the home belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.disk.paths.project import slug
from lamina.memory.store.project_identity import FILE_NAME, identify, list_known_projects, read_identity
from lamina.session.session import Session


@pytest.mark.spec("B12")
def test_the_first_look_notes_it_and_later_ones_only_read(tmp_path: Path) -> None:
    home, cwd = tmp_path / "home", tmp_path / "project"
    cwd.mkdir()
    first = identify(home, cwd)
    assert first is not None
    file = home / "projects" / slug(cwd) / FILE_NAME
    before = file.stat().st_mtime_ns
    assert identify(home, cwd) == first
    assert file.stat().st_mtime_ns == before
    assert file.stat().st_mode & 0o777 == 0o600
    assert [known.path for known in list_known_projects(home)] == [cwd]
    assert not list(cwd.iterdir()), "nothing is written into the working tree"


def test_a_file_that_is_none_costs_nothing_but_the_identity(tmp_path: Path) -> None:
    home, cwd = tmp_path / "home", tmp_path / "project"
    cwd.mkdir()
    directory = home / "projects" / slug(cwd)
    directory.mkdir(parents=True)
    (directory / FILE_NAME).write_text("{")
    assert read_identity(directory) is None
    assert identify(home, cwd) is not None


def test_two_paths_with_one_slug_do_not_share_an_identity(tmp_path: Path) -> None:
    home = tmp_path / "home"
    one, other = tmp_path / "a-b", tmp_path / "a.b"
    one.mkdir()
    other.mkdir()
    assert identify(home, one) is not None
    assert identify(home, other) is None


def test_a_directory_of_another_program_is_known_by_its_transcripts(tmp_path: Path) -> None:
    home, cwd = tmp_path / "home", tmp_path / "project"
    cwd.mkdir()
    with Session("offline", home=home, cwd=cwd) as session:
        session.add_user("x")
        session.before_call()
    assert [known.path for known in list_known_projects(home)] == [cwd]
