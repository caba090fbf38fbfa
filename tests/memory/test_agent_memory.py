"""The location of an agent type's memory, and refused locations (A5, G1)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lamina.core.errors import PathRefused
from lamina.core.settings import Settings
from lamina.disk.trees.rootdir import RootDir
from lamina.memory.instructions import agent_instructions
from lamina.memory.memory import IGNORED, agent_memory_mode, open_agent_memory
from lamina.memory.store.contract import ChangeReason
from lamina.memory.store.scopes import AgentMemoryLocation, AgentScope, list_agent_roots, locate_agent_memory

SCOPES: tuple[AgentScope, ...] = ("user", "project", "local")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return (tmp_path / "person").resolve()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tree").mkdir()
    return (tmp_path / "tree").resolve()


def place_of(agent: str, scope: AgentScope, tree: Path, home: Path, settings: Settings | None = None) -> AgentMemoryLocation:
    return locate_agent_memory(agent, scope, cwd=tree, home=home / ".lamina", settings=settings or Settings(), user_home=home)


@pytest.mark.spec("A5")
def test_each_scope_has_its_directory_and_a_colon_becomes_a_dash(tree: Path, home: Path) -> None:
    found = [place_of("kit:tester", scope, tree, home).path for scope in SCOPES]
    assert found == [
        home / ".lamina" / "agent-memory" / "kit-tester",
        tree / ".claude" / "agent-memory" / "kit-tester",
        tree / ".claude" / "agent-memory-local" / "kit-tester",
    ]
    assert [path.parent for path in found] == list(
        list_agent_roots(cwd=tree, home=home / ".lamina", settings=Settings(), user_home=home)
    )


@pytest.mark.spec("A5")
def test_worktrees_and_subdirectories_share_one(tmp_path: Path, home: Path) -> None:
    main, other = tmp_path.resolve() / "main", tmp_path.resolve() / "other"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for command in (["init", "-q", str(main)], ["-C", str(main), "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    subprocess.run([*git, "-C", str(main), "worktree", "add", "-q", str(other)], check=True, capture_output=True)
    (main / "deep").mkdir()
    for scope in ("project", "local"):
        assert len({place_of("x", scope, cwd, home).path for cwd in (main, main / "deep", other)}) == 1


BAD_NAMES = [
    "../x",
    "..",
    ".",
    "",
    "a/b",
    "/etc",
    "x/../../y",
    "a\\b",
    "a\0b",
    "con",
    "a.",
    "x ",
    "a*b",
    "$HOME",
    "\ud800",
    "a" * 300,
]


@pytest.mark.spec("A5", "G1")
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("name", BAD_NAMES)
def test_no_name_of_a_type_leads_out_of_its_scope(tree: Path, home: Path, scope: AgentScope, name: str) -> None:
    with pytest.raises(PathRefused) as caught:
        place_of(name, scope, tree, home)
    assert str(caught.value).isprintable()


@pytest.mark.spec("A5", "G1")
@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
@pytest.mark.parametrize("scope", ["project", "local"])
def test_a_link_that_appears_after_the_look_is_not_followed(tmp_path: Path, tree: Path, home: Path, scope: AgentScope) -> None:
    place = place_of("x", scope, tree, home)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tree / ".claude").symlink_to(elsewhere)
    with pytest.raises(PathRefused, match="is not a directory"):
        open_agent_memory(place, settings=Settings(), cwd=tree)
    assert list(elsewhere.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_a_root_below_a_directory_is_walked_to_without_links(tmp_path: Path) -> None:
    with RootDir.open(tmp_path / "a" / "b" / "c", below=tmp_path) as root:
        root.replace("x.md", b"x")
    assert (tmp_path / "a" / "b" / "c" / "x.md").read_bytes() == b"x"
    (tmp_path / "a" / "link").symlink_to(tmp_path / "a" / "b")
    with pytest.raises(PathRefused):
        RootDir.open(tmp_path / "a" / "link" / "c", below=tmp_path)
    with RootDir.open(tmp_path / "a" / "link" / "c") as root:
        assert root.read_bytes("x.md", 10) == b"x"


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_where_a_person_keeps_their_own_is_their_business_but_no_place_for_keys(tree: Path, home: Path) -> None:
    kept = home / "kept"
    kept.mkdir(parents=True)
    (home / ".lamina").mkdir()
    (home / ".lamina" / "agent-memory").symlink_to(kept)
    assert place_of("x", "user", tree, home).path == kept / "x"
    (home / ".ssh").mkdir()
    (kept / "y").symlink_to(home / ".ssh")
    with pytest.raises(PathRefused, match="keys"):
        place_of("y", "user", tree, home)


@pytest.mark.spec("A5", "F3")
def test_the_stand_in_for_the_home_takes_the_local_scope(tree: Path, home: Path, tmp_path: Path) -> None:
    settings = Settings(remote=True, remote_memory_directory=str(tmp_path / "kept"))
    assert str(place_of("x", "local", tree, home, settings).path).startswith(str((tmp_path / "kept" / "projects").resolve()))
    assert place_of("x", "user", tree, home, settings).path == home / ".lamina" / "agent-memory" / "x"


def test_a_type_without_memory_or_a_session_without_any_has_it_off() -> None:
    assert agent_memory_mode(None, Settings()) == "off"
    assert agent_memory_mode("user", Settings(memory=False)) == "off"
    assert agent_memory_mode("local", Settings(memory_mode={"agentLocal": "confirm", "private": "off"})) == "confirm"


def test_its_journal_can_bring_back_what_it_was(tree: Path, home: Path) -> None:
    place = place_of("x", "project", tree, home)
    with open_agent_memory(place, settings=Settings(), cwd=tree) as memory:
        memory.save("edges", body="one", type="feedback", why=ChangeReason("agent"))
        memory.save("edges", body="two", type="feedback", why=ChangeReason("agent"))
        memory.remove("edges", why=ChangeReason("agent"))
        assert memory.restore("edges").body == "two\n"
    assert (place.path / IGNORED).read_text().splitlines()[1:] == [".history/", ".inbox/", ".memory.lock", ".gitignore"]
    assert os.stat(place.path / "edges.md").st_mode & 0o077 == 0


def test_a_gitignore_of_somebodys_own_stays(tree: Path, home: Path) -> None:
    place = place_of("x", "project", tree, home)
    place.path.mkdir(parents=True)
    (place.path / IGNORED).write_text("mine\n")
    open_agent_memory(place, settings=Settings(), cwd=tree).close()
    assert (place.path / IGNORED).read_text() == "mine\n"


@pytest.mark.parametrize("mode", ["auto", "confirm", "read-only", "off"])
def test_what_an_agent_is_told_is_the_same_bytes_each_time_and_names_what_it_may_do(tree: Path, home: Path, mode: str) -> None:
    place = place_of("x", "user", tree, home)
    texts = [agent_instructions(place, mode=mode, tools=["Read", "Write"], index="- [a](a.md)\n") for _ in range(2)]  # type: ignore[arg-type]
    assert texts[0] == texts[1]
    assert ("Saving takes two steps" in texts[0]) == (mode in ("auto", "confirm"))
    assert ("waits for the user's approval" in texts[0]) == (mode == "confirm")
    assert ("- [a](a.md)" in texts[0]) == (mode != "off")
