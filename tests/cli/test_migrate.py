"""`lamina migrate` and `lamina sessions clean` from the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.maintenance.made import answered, project

from lamina.memory.memory import Memory
from lamina.memory.store.project_identity import identify
from lamina.session.session import Session

from .running import here, lamina, misused


@pytest.fixture
def home() -> Path:
    return Path(os.environ["LAMINA_HOME"])


def talk(home: Path, cwd: Path) -> Path:
    cwd.mkdir(exist_ok=True)
    with Session("offline", home=home, cwd=cwd) as session:
        session.add_user("hello")
        session.before_call()
        session.after_call(answered("yes"))
        assert session.path is not None
        return session.path


@pytest.fixture
def moved(home: Path, tmp_path: Path) -> Path:
    """The new path of a project with a memory and a session."""
    old, new = tmp_path / "old", tmp_path / "new"
    talk(home, old)
    with Memory.open(old, home=home) as memory:
        memory.save("rule", body="Tests first.")
    identify(home, old)
    old.rename(new)
    return new


@pytest.mark.spec("B12")
def test_a_move_is_offered_at_the_start_listed_and_made(home: Path, tmp_path: Path, moved: Path) -> None:
    started = lamina("-p", "hello", cwd=moved)
    assert f"The memory of {tmp_path / 'old'}, which no longer exists, may belong here" in started.stderr
    rows = {row["path"]: row for row in json.loads(here("migrate", "--list", "--json").stdout)}
    assert (rows[str(tmp_path / "old")]["exists"], rows[str(tmp_path / "old")]["memories"]) == (False, 1)
    assert misused(here("migrate", "--list", "--from", str(tmp_path / "old"))), "a list moves nothing"
    asked = here("migrate", cwd=moved)
    assert asked.returncode == 2
    assert "--yes" in asked.stderr
    done = json.loads(here("migrate", "--yes", "--json", cwd=moved).stdout)
    assert (done["memories"], done["sessions"], done["left"]) == (1, 1, [])
    shown = here("memory", "list", "--json", cwd=moved)
    assert [row["name"] for row in json.loads(shown.stdout)] == ["rule"]
    assert misused(here("migrate", "--yes", cwd=moved)), "there is nobody left to be"


def test_by_name_and_only_where_the_old_path_is_gone(home: Path, tmp_path: Path, moved: Path) -> None:
    assert misused(here("migrate", "--from", str(moved), "--to", str(tmp_path), "--yes"))
    (tmp_path / "old").mkdir()
    refused = here("migrate", "--from", str(tmp_path / "old"), "--to", str(moved), "--yes")
    assert misused(refused)
    assert "still exists" in refused.stderr
    (tmp_path / "old").rmdir()
    done = here("migrate", "--from", str(tmp_path / "old"), "--to", str(moved), "--yes")
    assert done.stdout.startswith("Moved 1 memory and 1 session")


@pytest.mark.spec("B11")
def test_old_sessions_are_shown_removed_and_listed(home: Path, tmp_path: Path) -> None:
    old, young = talk(home, tmp_path / "p"), talk(home, tmp_path / "p")
    os.utime(old, (1_000_000_000, 1_000_000_000))
    assert misused(here("sessions", "clean", cwd=tmp_path / "p")), "nothing says how old"
    dry = json.loads(here("sessions", "clean", "--older-than", "30d", "--dry-run", "--json", cwd=tmp_path / "p").stdout)
    assert [row["session_id"] for row in dry["removed"]] == [old.stem]
    assert old.exists()
    assert here("sessions", "clean", "--older-than", "30d", cwd=tmp_path / "p").returncode == 2
    done = here("sessions", "clean", "--older-than", "30d", "--yes", cwd=tmp_path / "p")
    assert "1 session removed" in done.stdout
    assert list(project(home, tmp_path / "p").glob("*.jsonl")) == [young]
    assert old.stem in (home / "removed-sessions.jsonl").read_text()
    (home / "settings.json").write_text('{"cleanupPeriodDays": 30}')
    os.utime(young, (1_000_000_000, 1_000_000_000))
    started = lamina("-p", "hello", cwd=tmp_path / "p")
    assert "Removed 1 session older than 30 days" in started.stderr
    assert "removed" not in lamina("-p", "hello", cwd=tmp_path / "p").stderr
