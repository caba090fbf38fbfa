"""The location of memory, and the settings that may not name it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from lamina.core.errors import PathRefused
from lamina.core.settings import Settings
from lamina.disk.paths.project import slug
from lamina.disk.settings_files import load_settings
from lamina.memory.store.scopes import MemoryLocation, locate_memory


def place_of(cwd: Path, home: Path, settings: Settings | None = None) -> MemoryLocation:
    return locate_memory(cwd=cwd, home=home / ".lamina", settings=settings or Settings(), user_home=home)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.mark.spec("S1")
def test_without_a_setting_memory_lies_under_the_slug_of_the_project(tmp_path: Path, home: Path) -> None:
    project = tmp_path / "some project"
    project.mkdir()
    place = place_of(project, home)
    assert place == (home / ".lamina" / "projects" / slug(project) / "memory", None, "default")
    assert not (home / ".lamina").exists()


@pytest.mark.spec("S1")
def test_subdirectories_and_worktrees_share_one_memory(tmp_path: Path, home: Path) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (["init", "-q", str(main)], ["-C", str(main), "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    subprocess.run([*git, "-C", str(main), "worktree", "add", "-q", str(tree)], check=True, capture_output=True)
    (main / "deep" / "er").mkdir(parents=True)
    assert {place_of(cwd, home).path for cwd in (main, main / "deep" / "er", tree)} == {place_of(main, home).path}
    assert place_of(tmp_path, home).path != place_of(main, home).path


@pytest.mark.spec("S2")
def test_a_variable_stands_before_settings_and_settings_before_the_default(tmp_path: Path, home: Path) -> None:
    (home / ".lamina").mkdir()
    (home / ".lamina" / "settings.json").write_text(json.dumps({"autoMemoryDirectory": "~/notes/memory"}))
    environ = {"HOME": str(home)}

    def path(**more: str) -> Path:
        settings = load_settings(cwd=tmp_path, environ=environ | more, managed_path=tmp_path / "none")
        return place_of(tmp_path, home, settings).path

    assert path() == home / "notes" / "memory"
    assert path(LAMINA_MEMORY_DIR=str(tmp_path / "by" / "variable")) == tmp_path / "by" / "variable"


@pytest.mark.spec("S2")
@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
@pytest.mark.parametrize("trusted", [False, True])
def test_settings_in_the_working_tree_never_name_it(tmp_path: Path, home: Path, name: str, trusted: bool) -> None:
    evil = {"autoMemoryDirectory": str(tmp_path / "a" / "b" / "evil"), "teamMemoryDirectory": str(tmp_path / "a" / "b" / "evil")}
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / name).write_text(json.dumps(evil))
    settings = load_settings(cwd=tmp_path, environ={"HOME": str(home)}, managed_path=tmp_path / "none", trusted=trusted)
    assert place_of(tmp_path, home, settings) == place_of(tmp_path, home)


@pytest.mark.spec("G1")
@pytest.mark.parametrize("bad", ["/", "/etc/x/y", "/one", "~/.ssh/memory"])
def test_a_directory_that_may_not_be_used_is_refused(tmp_path: Path, home: Path, bad: str) -> None:
    with pytest.raises(PathRefused):
        place_of(tmp_path, home, Settings(memory_directory=bad))


@pytest.mark.spec("W1")
def test_team_memory_has_its_own_directory_when_it_is_on(tmp_path: Path, home: Path) -> None:
    place = place_of(tmp_path, home, Settings(team=True))
    assert place.team == place.path / "team"
    shared = tmp_path / "shared" / "team"
    assert place_of(tmp_path, home, Settings(team=True, team_memory_directory=str(shared))).team == shared
    with pytest.raises(PathRefused):
        place_of(tmp_path, home, Settings(team=True, team_memory_directory="/etc/x/team"))


def test_on_a_machine_that_is_thrown_away_a_directory_stands_for_the_home(tmp_path: Path, home: Path) -> None:
    kept = tmp_path / "mount"
    settings = Settings(remote=True, remote_memory_directory=str(kept))
    assert place_of(tmp_path, home, settings).path == kept / "projects" / slug(tmp_path) / "memory"
