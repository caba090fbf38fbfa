"""`lamina forget` from the command line."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from tests.maintenance.made import NAME, make_home, texts

from lamina.disk.crash_points import watched

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


def test_a_dry_run_names_its_scope_and_what_other_projects_hold(home: Path, tmp_path: Path) -> None:
    make_home(home, tmp_path / "p")
    (tmp_path / "q").mkdir()
    theirs = Path(os.environ["HOME"]) / ".claude" / "projects" / "-elsewhere"
    theirs.mkdir(parents=True)
    row = {"type": "user", "uuid": "u", "parentUuid": None, "cwd": "/elsewhere", "message": {"role": "user", "content": NAME}}
    (theirs / "11111111-0000-4000-8000-000000000001.jsonl").write_text(json.dumps(row) + "\n")
    here_only = json.loads(here("forget", NAME, "--dry-run", "--json", cwd=tmp_path / "q").stdout)
    everywhere = json.loads(here("forget", NAME, "--dry-run", "--json", "--all-projects", cwd=tmp_path / "q").stdout)
    assert here_only["scope"] == str(tmp_path / "q")
    assert everywhere["scope"] == "all projects"
    assert everywhere["outside"] == {}
    own = [item["path"] for item in everywhere["removed"] if item["kind"] == "transcripts" and "subagents" not in item["path"]]
    assert here_only["outside"]["sessions"] == len(own) + 1
    assert here_only["outside"]["memories"] > 0
    told = here("forget", NAME, "--dry-run", cwd=tmp_path / "q").stdout
    assert f"Searched: {tmp_path / 'q'}." in told
    assert f"Other projects hold it too: {len(own) + 1} sessions, " in told
    assert "--all-projects" in told
    assert "Other projects" not in here("forget", "Nobody Known", "--dry-run", cwd=tmp_path / "q").stdout


def test_too_short_a_subject_is_misuse(tmp_path: Path) -> None:
    assert misused(here("forget", "a", "--yes", cwd=tmp_path))


@pytest.mark.spec("B11")
def test_it_exits_with_1_until_nothing_is_left_and_a_resume_finishes_it(home: Path, tmp_path: Path) -> None:
    make_home(home, tmp_path / "p")

    def full(name: str, size: int) -> None:
        if name == "rewrite.write":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with watched(full):
        stopped = here("forget", NAME, "--yes", cwd=tmp_path / "p")
    assert stopped.returncode == 1
    assert "the disk is full or the quota is used up" in stopped.stdout
    assert stopped.stdout.endswith("Unfinished. Run `lamina forget --resume` to finish it.\n")
    told = json.loads(here("forget", "--resume", "--json", cwd=tmp_path).stdout)
    assert [(one["subject"], one["unfinished"], one["left"]) for one in told] == [(NAME, False, [])]
    assert NAME not in texts(home)
    assert here("forget", "--resume", cwd=tmp_path).stdout == "No forget is unfinished.\n"


def test_a_disk_too_full_to_begin_is_one_sentence_and_removes_nothing(home: Path, tmp_path: Path) -> None:
    make_home(home, tmp_path / "p")
    before = texts(home)

    def full(name: str, size: int) -> None:
        if size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with watched(full):
        stopped = here("forget", NAME, "--yes", cwd=tmp_path / "p")
    assert (stopped.returncode, stopped.stdout, texts(home)) == (1, "", before)
    [line] = stopped.stderr.splitlines()
    assert "the disk is full" in line


def test_what_the_user_has_to_change_is_left_and_exits_with_1(home: Path, tmp_path: Path) -> None:
    make_home(home, tmp_path / "p")
    (home / "settings.json").write_text(json.dumps({"lamina": {"extraGuidelines": f"{NAME} is the boss"}}))
    assert here("forget", NAME, "--yes", cwd=tmp_path / "p").returncode == 1
    told = here("forget", NAME, "--yes", cwd=tmp_path / "p")
    assert (told.returncode, told.stdout) == (1, f"Nothing was removed.\nLeft: {home / 'settings.json'}: still contains it\n")


def test_a_subject_and_a_resume_do_not_go_together(tmp_path: Path) -> None:
    assert misused(here("forget", NAME, "--resume", cwd=tmp_path))
    assert misused(here("forget", cwd=tmp_path))
