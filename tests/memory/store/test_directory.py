"""A directory of memories: two steps, one guard, a person's edits, and what is not a memory."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.disk.processes import needs_fork, together

from lamina.core.errors import DiskError, InputError, PathRefused
from lamina.disk import crash_points as crash
from lamina.memory.store.contract import MOST_READ, ChangeReason, Saved
from lamina.memory.store.directory import DirectoryStore
from lamina.memory.store.draft import Draft
from lamina.memory.store.index import MOST_LINES, read_entries

ME = ChangeReason("user", "a test")
NOW = 1_774_951_260.5


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest.fixture
def store(memory: Path) -> Iterator[DirectoryStore]:
    with DirectoryStore.open(memory, durability="process", clock=lambda: NOW) as opened:
        yield opened


def save(store: DirectoryStore, name: str = "testing-db", **given: Any) -> Saved:
    why = given.pop("why", ME)
    return store.save(Draft(name, **({"type": "feedback", "description": "d", "body": f"about {name}"} | given)), why=why)


def listed(store: DirectoryStore) -> list[str]:
    return [entry.file for entry in read_entries(store.index())]


@pytest.mark.spec("S3", "S5", "S6")
def test_a_save_writes_a_file_with_front_matter_and_one_index_line(store: DirectoryStore, memory: Path) -> None:
    save(store, description="Integration tests use a real database", body="No mocks.")
    assert (memory / "testing-db.md").read_text() == (
        "---\nname: testing-db\ndescription: Integration tests use a real database\ntype: feedback\n---\n\nNo mocks.\n"
    )
    assert (memory / "MEMORY.md").read_text() == "- [testing-db](testing-db.md) — Integration tests use a real database\n"


@needs_fork
@pytest.mark.spec("S6", "Z3")
@pytest.mark.parametrize("processes", [4, pytest.param(16, marks=pytest.mark.exhaustive)])
def test_many_processes_lose_nothing(memory: Path, processes: int) -> None:
    def act(number: int) -> None:
        with DirectoryStore.open(memory, durability="process") as mine:
            for round_ in range(40):
                save(mine, f"p{number}-{round_}")
                if round_ % 4 == 0:
                    save(mine, "shared", body=f"{number} {round_}")

    together(processes, act)
    with DirectoryStore.open(memory) as store:
        names = {f"p{number}-{round_}" for number in range(processes) for round_ in range(40)} | {"shared"}
        assert {topic.name for topic in store.topics()} == names
        files = {f"{name}.md" for name in names}
        assert set(listed(store)) == files if len(files) <= MOST_LINES else set(listed(store)) <= files
        assert len(store.log("shared")) == processes * 10
        assert len(store.log()) == processes * 50


@pytest.mark.spec("Z9")
@pytest.mark.parametrize("umask", [0, 0o077, 0o777])
def test_files_are_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with DirectoryStore.open(tmp_path / "deep" / "memory", durability="process") as store:
            save(store)
            store.remove("testing-db", why=ME)
            save(store)
    finally:
        os.umask(before)
    modes = {path.is_dir(): stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "deep").rglob("*")}
    assert modes == {True: 0o700, False: 0o600}


@pytest.mark.spec("S5")
def test_keys_and_comments_a_person_added_survive_an_update(store: DirectoryStore, memory: Path) -> None:
    save(store)
    file = memory / "testing-db.md"
    file.write_text(file.read_text().replace("type: feedback\n", "# mine\ntags: [a, 'b']\ntype: feedback\nlinks: {x: y}\n"))
    save(store, body="New body.")
    assert file.read_text() == (
        "---\nname: testing-db\ndescription: d\n# mine\ntags: [a, 'b']\ntype: feedback\nlinks: {x: y}\n---\n\nNew body.\n"
    )


CLAUDE = """---
name: role
description: A data scientist
metadata:
  node_type: memory
  type: user
  originSessionId: 11-22
  modified: 2026-01-01T00:00:00.000Z
---

Looks at logs.
"""


@pytest.mark.spec("S1", "S5")
def test_a_directory_of_claude_code_is_used_in_place(memory: Path) -> None:
    memory.mkdir()
    (memory / "role.md").write_text(CLAUDE)
    (memory / "MEMORY.md").write_text("# Notes\n- [My role](role.md) — data\n")
    with DirectoryStore.open(memory, clock=lambda: NOW) as store:
        topic = store.get("role")
        assert topic is not None
        assert (topic.type, topic.modified) == ("user", 1_767_225_600.0)
        save(store, "role", type=None, description="A data scientist", body="Looks at logs and metrics.")
        assert (memory / "role.md").read_text() == CLAUDE.replace(
            "modified: 2026-01-01T00:00:00.000Z", 'modified: "2026-03-31T10:01:00.500Z"'
        ).replace("logs.", "logs and metrics.")
        assert store.index().startswith("# Notes\n")


@pytest.mark.spec("S6")
def test_a_missing_index_is_made_from_the_memories(memory: Path) -> None:
    memory.mkdir()
    (memory / "role.md").write_text(CLAUDE)
    (memory / "plain.md").write_text("no front matter")
    (memory / "logs").mkdir()
    (memory / "logs" / "day.md").write_text("log")
    with DirectoryStore.open(memory) as store:
        assert store.index() == "- [plain](plain.md)\n- [role](role.md) — A data scientist\n"
        assert store.notices == (f"{memory / 'MEMORY.md'} was missing and was rebuilt from 2 memories.",)
        (memory / "MEMORY.md").unlink()
        save(store, "third")
        assert sorted(listed(store)) == ["plain.md", "role.md", "third.md"]


def test_a_file_that_is_not_listed_is_listed_when_it_is_saved_and_not_before(store: DirectoryStore, memory: Path) -> None:
    save(store)
    (memory / "role.md").write_text(CLAUDE)
    save(store, "other")
    assert listed(store) == ["other.md", "testing-db.md"]
    with DirectoryStore.open(memory) as again:
        assert listed(again) == ["other.md", "testing-db.md"]
    save(store, "role", body="now saved")
    assert listed(store) == ["other.md", "role.md", "testing-db.md"]


def test_a_line_that_a_person_took_out_stays_out(store: DirectoryStore, memory: Path) -> None:
    save(store)
    (memory / "MEMORY.md").write_text("# nothing\n")
    later = (memory / "testing-db.md").stat().st_mtime_ns + 1
    os.utime(memory / "MEMORY.md", ns=(later, later))
    with DirectoryStore.open(memory) as again:
        save(again, "other")
        assert listed(again) == ["other.md"]


def at_point(name: str, count: int, act: Any) -> Any:
    """Call `act` right before the count-th system call of that name, like a user who edits in the meantime."""
    seen = 0

    def watch(point: str, _: int) -> None:
        nonlocal seen
        seen += point == name
        if point == name and seen == count:
            act()

    return crash.watched(watch)


@pytest.mark.spec("S6", "Z3")
def test_an_edit_by_a_person_during_a_save_wins(store: DirectoryStore, memory: Path) -> None:
    save(store)
    file = memory / "testing-db.md"
    edited = file.read_text() + "By hand.\n"
    with at_point("temp.create", 1, lambda: file.write_text(edited)), pytest.raises(DiskError, match="changed by someone else"):
        save(store, body="Ours.")
    assert file.read_text() == edited
    save(store, body="Ours, again.")
    actions = [version.action for version in store.log("testing-db")]
    assert actions == ["save", "outside", "save", "save"]
    assert store.content(store.log("testing-db")[1].id) == edited


@pytest.mark.spec("S6", "Z3")
def test_an_edit_of_the_index_during_a_save_is_kept(store: DirectoryStore, memory: Path) -> None:
    save(store)
    index = memory / "MEMORY.md"
    with at_point("temp.create", 2, lambda: index.write_text("# My heading\n" + index.read_text())):
        save(store, "other")
    assert index.read_text().startswith("# My heading\n")
    assert listed(store) == ["other.md", "testing-db.md"]


def test_a_file_that_appears_during_a_save_is_not_overwritten(store: DirectoryStore, memory: Path) -> None:
    file = memory / "testing-db.md"
    with at_point("temp.create", 1, lambda: file.write_text("mine")), pytest.raises(DiskError):
        save(store)
    assert file.read_text() == "mine"


def test_an_edit_during_a_removal_keeps_the_file_and_its_line(store: DirectoryStore, memory: Path) -> None:
    save(store)
    file = memory / "testing-db.md"
    with at_point("temp.create", 1, lambda: file.write_text("edited")), pytest.raises(DiskError):
        store.remove("testing-db", why=ME)
    assert file.read_text() == "edited"
    assert listed(store) == ["testing-db.md"]


@pytest.mark.spec("Z8", "G1")
@pytest.mark.parametrize("kind", ["symlink", "hard link", "fifo", "directory"])
def test_what_is_no_plain_file_is_no_memory_and_is_never_written_through(
    store: DirectoryStore, tmp_path: Path, kind: str
) -> None:
    outside, there = tmp_path / "outside.md", store.root.path / "testing-db.md"
    outside.write_text("outside")
    match kind:
        case "symlink":
            there.symlink_to(outside)
        case "hard link":
            there.hardlink_to(outside)
        case "fifo":
            os.mkfifo(there)
        case _:
            there.mkdir()
    assert store.topics() == []
    assert store.topic_files.headers() == []
    assert store.get("testing-db") is None
    if kind == "directory":
        assert save(store).topic.file != "testing-db.md"
    else:
        with pytest.raises(PathRefused):
            save(store)
    assert outside.read_text() == "outside"


@pytest.mark.spec("Z8")
@pytest.mark.parametrize("name", ["MEMORY.md", ".memory.lock", ".history"])
def test_a_link_in_the_place_of_our_own_files_is_refused(memory: Path, tmp_path: Path, name: str) -> None:
    memory.mkdir()
    outside = tmp_path / "outside"
    outside.mkdir() if name == ".history" else outside.write_text("outside")
    (memory / name).symlink_to(outside)
    with DirectoryStore.open(memory) as store, pytest.raises(DiskError):
        save(store)
    assert list(outside.iterdir()) == [] if name == ".history" else outside.read_text() == "outside"


def test_a_memory_directory_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(PathRefused):
        DirectoryStore.open(tmp_path / "link")


def test_a_huge_file_is_read_in_part_and_never_replaced(store: DirectoryStore, memory: Path) -> None:
    save(store)
    with open(memory / "testing-db.md", "r+b") as file:
        file.truncate(1 << 30)
    topic = store.topics()[0]
    assert len(topic.body) <= MOST_READ
    assert any("read in part" in problem for problem in topic.problems)
    with pytest.raises(DiskError, match="larger than"):
        save(store)


@pytest.mark.exhaustive
@pytest.mark.spec("B4")
def test_a_long_file_made_by_hand_comes_back_from_the_trash(store: DirectoryStore, memory: Path) -> None:
    whole = "by hand\n" * 100_000
    (memory / "long.md").write_text(whole)
    assert store.remove("long", why=ME)
    store.restore("long", why=ME)
    assert (memory / "long.md").read_text() == whole


@pytest.mark.spec("B4")
def test_a_file_that_the_journal_could_not_give_back_is_not_touched(store: DirectoryStore, memory: Path) -> None:
    (memory / "latin.md").write_bytes(b"caf\xe9")
    for act in (lambda: store.remove("latin", why=ME), lambda: save(store, "latin")):
        with pytest.raises(DiskError, match="not UTF-8"):
            act()
    assert (memory / "latin.md").read_bytes() == b"caf\xe9"


def test_a_type_that_does_not_exist_is_refused(store: DirectoryStore) -> None:
    with pytest.raises(InputError, match="unknown type 'opinion'"):
        save(store, type="opinion")


def test_a_body_that_is_too_long_is_refused(store: DirectoryStore) -> None:
    with pytest.raises(InputError, match="longer than"):
        save(store, body="x" * 5_000_000)
    assert store.topics() == []


def test_front_matter_that_would_be_too_long_is_refused(store: DirectoryStore, memory: Path) -> None:
    head = "\n".join(f"key{number}: {'x' * 90}" for number in range(40))
    (memory / "testing-db.md").write_text(f"---\nname: testing-db\ndescription: d\n{head}\n---\nbody")
    with pytest.raises(InputError, match="too long"):
        save(store, description="y" * 400)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_may_not_be_written_is_still_read(memory: Path) -> None:
    memory.mkdir()
    (memory / "role.md").write_text(CLAUDE)
    memory.chmod(0o500)
    try:
        with DirectoryStore.open(memory) as store:
            assert [topic.name for topic in store.topics()] == ["role"]
            assert len(store.notices) == 1
    finally:
        memory.chmod(0o700)


@pytest.mark.spec("W1", "B7")
def test_a_team_takes_no_secrets_and_nothing_about_a_person(memory: Path) -> None:
    with DirectoryStore.open(memory / "team", scope="team", durability="process") as team:
        with pytest.raises(InputError, match="stay private"):
            save(team, type="user")
        with pytest.raises(InputError, match="contains a secret"):
            save(team, body="key sk-ant-api03-" + "a1" * 20)
        assert team.topics() == []
        save(team, type="project")
    with DirectoryStore.open(memory, durability="process") as store:
        assert store.topics() == []
        assert store.index() == ""


@pytest.mark.spec("S5")
def test_evidence_is_kept_in_the_front_matter(store: DirectoryStore, memory: Path) -> None:
    save(store, evidence=["src/db.py#Pool@9f86d081884c7d65", "docs/a.md"])
    assert 'evidence: ["src/db.py#Pool@9f86d081884c7d65", "docs/a.md"]\n' in (memory / "testing-db.md").read_text()
