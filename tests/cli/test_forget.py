"""`lamina forget` from the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.maintenance.made import NAME, make_home, texts

from .running import here, misused, on_a_terminal


@pytest.fixture
def home() -> Path:
    return Path(os.environ["LAMINA_HOME"])


@pytest.mark.spec("B11")
def test_it_reports_what_went_where_by_kind(home: Path, tmp_path: Path) -> None:
    make_home(home, tmp_path / "p")
    dry = json.loads(here("forget", NAME, "--dry-run", "--json", cwd=tmp_path / "p").stdout)
    assert dry["dry_run"]
    assert NAME in texts(home)
    done = here("forget", NAME, "--yes", "--json", cwd=tmp_path / "p")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["counts"] == dry["counts"]
    assert {"path", "kind", "action", "places"} == set(told["removed"][0])
    assert (told["skipped"], told["left"]) == ([], [])
    assert NAME not in texts(home)
    again = here("forget", NAME, "--yes", cwd=tmp_path / "p")
    assert again.stdout == "No matches found.\n"


def test_without_a_yes_and_without_a_terminal_nothing_goes(home: Path, tmp_path: Path) -> None:
    make_home(home, tmp_path / "p")
    done = here("forget", NAME, cwd=tmp_path / "p")
    assert done.returncode == 2
    assert done.stdout == ""
    assert "--yes" in done.stderr.splitlines()[-1]
    assert NAME in texts(home)


@pytest.mark.skipif(os.name != "posix", reason="needs a terminal")
def test_on_a_terminal_nothing_to_remove_is_not_asked_about(home: Path, tmp_path: Path) -> None:
    written, code = on_a_terminal("forget", "Nobody Known", cwd=tmp_path)
    assert code == 0
    assert b"No matches found" in written


def test_what_is_left_in_other_projects_is_said(home: Path, tmp_path: Path) -> None:
    make_home(home, tmp_path / "p")
    (tmp_path / "q").mkdir()
    told = json.loads(here("forget", NAME, "--yes", "--json", cwd=tmp_path / "q").stdout)
    assert all("--all-projects" in left["why"] or "name contains" in left["why"] for left in told["left"])
    assert told["left"]
    assert here("forget", NAME, "--yes", cwd=tmp_path / "q").stdout.startswith("Nothing was removed.\nLeft: ")
    told = json.loads(here("forget", NAME, "--yes", "--json", "--all-projects", cwd=tmp_path / "q").stdout)
    assert told["left"] == []


def test_too_short_a_subject_is_misuse(tmp_path: Path) -> None:
    assert misused(here("forget", "a", "--yes", cwd=tmp_path))
