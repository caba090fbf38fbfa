"""`lamina.Memory`: what a program sees of a project's memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.core.errors import InputError, PathRefused, SettingError
from lamina.core.settings import Settings
from lamina.memory.memory import Memory
from lamina.memory.store.change_sets import turn_act
from lamina.memory.store.contract import ChangeReason, Proposed, Saved
from lamina.memory.store.draft import Draft

FAST = {"durability": "process"}


def saved(memory: Memory, name: str = "testing-db", **given: str) -> Saved:
    done = memory.save(name, type="project", description="d", body=f"about {name}", **given)  # type: ignore[arg-type]  # scope
    assert isinstance(done, Saved)
    return done


@pytest.mark.spec("S1", "S6")
def test_a_project_has_one_memory_that_outlives_its_opener(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        saved(memory)
        home = Path(os.environ["LAMINA_HOME"])
        assert memory.path.parent.parent == home / "projects"
    with Memory.open(tmp_path) as memory:
        assert [topic.name for topic in memory.topics()] == ["testing-db"]
        topic = memory.get("Testing-DB")
        assert topic is not None
        assert topic.body == "about testing-db\n"


def test_two_paths_are_two_tenants(tmp_path: Path) -> None:
    with (
        Memory.open(path=tmp_path / "one", settings=Settings(**FAST)) as one,
        Memory.open(path=tmp_path / "two", settings=Settings(**FAST)) as two,
    ):
        saved(one)
        assert two.topics() == []
        assert one.path == tmp_path / "one"


@pytest.mark.spec("G1")
def test_a_path_that_may_not_be_used_is_refused(tmp_path: Path) -> None:
    for bad in ("/", "/etc/x/y", os.environ["HOME"]):
        with pytest.raises(PathRefused):
            Memory.open(tmp_path, path=bad)


@pytest.mark.spec("B4")
def test_what_is_forgotten_comes_back(tmp_path: Path) -> None:
    with Memory.open(path=tmp_path / "memory", settings=Settings(**FAST)) as memory:
        saved(memory)
        assert memory.remove("testing-db", why=ChangeReason("user", "outdated"))
        assert not memory.remove("testing-db")
        assert memory.index() == ""
        assert memory.restore("testing-db").body == "about testing-db\n"
        log = memory.log("testing-db")
        assert [version.action for version in log] == ["restore", "remove", "save"]
        assert "+about testing-db" in memory.diff(log[-1].id)
        assert memory.content(log[0].id) == memory.content(log[2].id)


@pytest.mark.spec("W1")
def test_a_team_has_its_own_index_and_its_topics_are_named_for_it(tmp_path: Path) -> None:
    with Memory.open(path=tmp_path / "memory", settings=Settings(team=True, **FAST)) as memory:
        saved(memory, "mine")
        assert saved(memory, "ours", scope="team").topic.file == "team/ours.md"
        assert [topic.file for topic in memory.topics()] == ["mine.md", "team/ours.md"]
        assert sorted(header.file for header in memory.headers()) == ["mine.md", "team/ours.md"]
        assert [index.text for index in memory.indexes()] == ["- [mine](mine.md) — d", "- [ours](ours.md) — d"]
        for name in ("ours", "team/ours.md"):
            topic = memory.get(name)
            assert topic is not None
            assert topic.file == "team/ours.md"
        with pytest.raises(InputError, match="stay private"):
            memory.save("me", type="user", body="A person.", scope="team")
        assert memory.remove("team/ours.md")
        assert memory.restore("ours").file == "team/ours.md"
        assert {version.file for version in memory.log()} == {"mine.md", "team/ours.md"}


def test_without_a_team_there_is_nothing_to_save_to(tmp_path: Path) -> None:
    with Memory.open(path=tmp_path / "memory") as memory, pytest.raises(InputError, match="team memory is off"):
        saved(memory, scope="team")


@pytest.mark.spec("B5")
def test_memory_that_is_turned_off_is_empty(tmp_path: Path) -> None:
    with Memory.open(path=tmp_path / "memory", settings=Settings(**FAST)) as memory:
        saved(memory)
    with Memory.open(path=tmp_path / "memory", settings=Settings(memory=False)) as memory:
        assert memory.topics() == []
        assert memory.indexes() == []
        with pytest.raises(SettingError):
            saved(memory)


@pytest.mark.spec("B5")
def test_proposals_of_both_scopes_wait_in_one_list(tmp_path: Path) -> None:
    settings = Settings(team=True, memory_mode={"private": "confirm", "team": "confirm"}, **FAST)
    with Memory.open(path=tmp_path / "memory", settings=settings) as memory:
        for scope in ("private", "team"):
            done = memory.store(scope).save(Draft("x", type="project", description="d", body=scope), why=ChangeReason("dream"))
            assert isinstance(done, Proposed)
        assert [proposal.scope for proposal in memory.waiting()] == ["private", "team"]
        memory.accept(memory.waiting()[1].id)
        assert memory.reject(memory.waiting()[0].id)
        assert [topic.file for topic in memory.topics()] == ["team/x.md"]


@pytest.mark.spec("S4")
def test_an_index_that_is_too_long_is_loaded_in_part(tmp_path: Path) -> None:
    with Memory.open(path=tmp_path / "memory", settings=Settings(**FAST)) as memory:
        (memory.path / "MEMORY.md").write_text("".join(f"- [{n}](n{n}.md)\n" for n in range(300)))
        assert "has 300 lines (the limit is 200)" in memory.indexes()[0].text
        assert len(memory.index().splitlines()) == 300


@pytest.mark.spec("B4", "B5")
def test_the_changes_of_a_turn_are_taken_back_in_every_scope_and_mode(tmp_path: Path) -> None:
    turn, other = ChangeReason("agent", "", "s", "m1"), ChangeReason("agent", "", "s", "m2")
    settings = Settings(team=True, memory_mode={"private": "confirm", "team": "auto"}, **FAST)
    with Memory.open(path=tmp_path / "memory", settings=settings) as memory:
        saved(memory, "mine")
        saved(memory, "ours", scope="team")
        memory.save("proposed", description="d", body="x", why=turn)
        memory.save("waits", description="d", body="x", why=other)
        memory.save("ours", description="d", body="changed", scope="team", why=turn)
        memory.save("new", description="d", body="x", scope="team", why=turn)
        memory.save("new", description="d", body="y", scope="team", why=turn)
        changes = memory.changes_for("s", ["m1"])
        assert [(change.file, change.did) for change in changes] == [
            ("proposed.md", "proposed"),
            ("team/ours.md", "changed"),
            ("team/new.md", "saved"),
        ]
        assert memory.changes_for("another", ["m1"]) == []
        undone = memory.undo(turn_act("s", "m1"))
        assert [change.name for change in undone.back] == ["ours", "new"]
        assert undone.withdrawn == 1
        assert {topic.file: topic.body.strip() for topic in memory.topics()} == {
            "mine.md": "about mine",
            "team/ours.md": "about ours",
        }
        assert [proposal.name for proposal in memory.waiting()] == ["waits"]
    settings = Settings(team=True, memory_mode={"private": "auto", "team": "read-only"}, **FAST)
    with Memory.open(path=tmp_path / "memory", settings=settings) as memory:
        memory.redo(undone.act)
        assert [proposal.name for proposal in memory.waiting()] == ["proposed", "waits"]
        assert memory.undo(undone.act).sentences == tuple(
            f"{name} stays, because team memory is read-only." for name in ("ours", "new")
        )
