"""A model's writes into memory with Write and Edit: the store saves, refuses, proposes or removes; nothing bypasses it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.core.settings import Settings
from lamina.memory.memory import Memory
from lamina.memory.store.contract import ChangeReason
from lamina.memory.tool_writes import MemoryFile, RequestedWrite, WriteOutcome, find_memory_file, write_memory_file

WHY = ChangeReason("agent", "asked for", "session-1", "message-1")
FAST = {"durability": "process"}
KEY = "sk-ant-" + "a1B2c3D4e5F6g7H8i9J0"


def topic(name: str = "testing-db", kind: str = "feedback", body: str = "Use a real one.", more: str = "") -> str:
    return f"---\nname: {name}\ndescription: Tests use a real database\ntype: {kind}\n{more}---\n\n{body}\n"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path, path=tmp_path / "memory", settings=Settings(**FAST)) as memory:
        yield memory


def opened(tmp_path: Path, **settings: object) -> Memory:
    return Memory.open(tmp_path, path=tmp_path / "memory", settings=Settings(**{**FAST, **settings}))


def put(memory: Memory, file: str, text: str, *, unread: str | None = None, before: bytes | None = None) -> WriteOutcome:
    """As a tool would, which knows the file as it is."""
    path = memory.path / file
    found = find_memory_file(memory.place, path)
    assert found is not None
    known = path.read_bytes() if before is None and path.exists() else before
    return write_memory_file(memory, found, RequestedWrite(path, text, known, unread), why=WHY)


def refused(done: WriteOutcome) -> str:
    assert done.is_error
    assert done.data is None
    assert done.notice is None
    return done.said


@pytest.mark.spec("S6", "B4")
def test_a_topic_is_saved_with_its_line_and_who_asked_for_it(memory: Memory) -> None:
    done = put(memory, "testing-db.md", topic())
    assert done.said.startswith("Saved the memory 'testing-db'")
    assert (done.notice, done.facts) == ("Saved memory: testing-db.", {"memory": "saved"})
    assert done.data == (memory.path / "testing-db.md").read_bytes() == topic().encode()
    assert memory.index() == "- [testing-db](testing-db.md) — Tests use a real database\n"
    [version] = memory.log()
    assert (version.action, version.why) == ("save", WHY)
    assert done.beside is not None
    assert done.beside.after.decode() == memory.index()


@pytest.mark.spec("S6")
def test_a_second_write_updates_and_the_same_text_changes_nothing(memory: Memory) -> None:
    put(memory, "testing-db.md", topic())
    done = put(memory, "testing-db.md", topic(body="Another."))
    assert (done.notice, done.facts) == ("Updated memory: testing-db.", {"memory": "updated"})
    again = put(memory, "testing-db.md", topic(body="Another."))
    assert (again.notice, again.is_error) == (None, False)
    assert "already has this content" in again.said
    assert again.facts == {"memory": "unchanged"}
    assert len(memory.log()) == 2
    assert memory.index().count("](") == 1


@pytest.mark.spec("S6")
def test_a_name_that_another_file_has_is_not_doubled(memory: Memory) -> None:
    put(memory, "testing-db.md", topic())
    assert "is already the name of the memory in testing-db.md" in refused(put(memory, "other.md", topic("Testing-DB")))
    assert [each.file for each in memory.topics()] == ["testing-db.md"]


@pytest.mark.spec("S7", "B4")
def test_an_empty_text_removes_the_memory_and_its_line(memory: Memory) -> None:
    put(memory, "testing-db.md", topic())
    done = put(memory, "testing-db.md", " \n")
    assert done.said.startswith("Removed the memory 'testing-db'")
    assert done.notice is not None
    assert (done.data, done.facts) == (None, {"memory": "removed"})
    assert not (memory.path / "testing-db.md").exists()
    assert memory.index() == ""
    assert memory.log()[0].action == "remove"
    assert memory.restore("testing-db").body == "Use a real one.\n"
    assert "nothing to remove" in refused(put(memory, "none.md", ""))


@pytest.mark.spec("B7")
def test_a_secret_is_left_out_and_said(memory: Memory) -> None:
    done = put(memory, "keys.md", topic("keys", body=f"The key of the staging server is {KEY}.", more=f"note: {KEY}\n"))
    assert "A secret was removed (Anthropic key)" in done.said
    for path in memory.path.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path


@pytest.mark.spec("S5")
def test_keys_of_the_front_matter_stay_when_the_model_leaves_them_out(memory: Memory) -> None:
    (memory.path / "a.md").write_text(topic("a", more="owner: ops  # on call\nevidence: [src/db.py]\n"))
    put(memory, "a.md", topic("a", body="New."))
    text = (memory.path / "a.md").read_text()
    assert "owner: ops  # on call\n" in text
    assert "evidence: [src/db.py]" in text
    assert text.endswith("New.\n")


@pytest.mark.spec("S5")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("just words\n", "no front matter"),
        ("---\nname: x\n---\n\ntext\n", "no description"),
        (topic(kind="opinion"), "unknown type 'opinion'"),
        ("---\nname: [\n---\ntext\n", "front matter"),
        (topic(body="x" * 300_000), "longer than"),
    ],
)
def test_a_text_that_is_no_memory_is_refused_with_what_to_write(memory: Memory, text: str, problem: str) -> None:
    said = refused(put(memory, "x.md", text))
    assert problem in said
    assert not (memory.path / "x.md").exists()
    assert memory.log() == []


def test_a_fault_that_was_there_before_is_not_held_against_a_change(memory: Memory) -> None:
    (memory.path / "old.md").write_text("A person's own words.\n")
    assert not put(memory, "old.md", "A person's own words.\nAnd more.\n").is_error
    assert "And more." in (memory.path / "old.md").read_text()


@pytest.mark.spec("S6")
def test_a_person_who_edits_meanwhile_wins(memory: Memory) -> None:
    put(memory, "testing-db.md", topic())
    known = (memory.path / "testing-db.md").read_bytes()
    (memory.path / "testing-db.md").write_text(topic(body="Mine."))
    for text in (topic(body="Theirs."), ""):
        assert "changed by someone else" in refused(put(memory, "testing-db.md", text, before=known))
    assert (memory.path / "testing-db.md").read_text() == topic(body="Mine.")


@pytest.mark.spec("X8")
def test_a_topic_that_was_not_read_is_not_replaced(memory: Memory) -> None:
    put(memory, "testing-db.md", topic())
    assert refused(put(memory, "testing-db.md", topic(body="x"), unread="Read it first.")) == "Read it first."


# Modes


@pytest.mark.spec("B5")
@pytest.mark.parametrize("mode", ["read-only", "off"])
def test_a_mode_that_takes_nothing_says_so(tmp_path: Path, mode: str) -> None:
    with opened(tmp_path) as memory:
        put(memory, "testing-db.md", topic())
    with opened(tmp_path, memory_mode={"private": mode}) as memory:
        for file, text in (("new.md", topic("new")), ("testing-db.md", ""), ("MEMORY.md", "- [a](testing-db.md)\n")):
            assert f"private memory is {mode}" in refused(put(memory, file, text))
        assert (memory.path / "testing-db.md").read_text() == topic()


@pytest.mark.spec("B5")
def test_in_confirm_mode_a_write_and_a_removal_wait_for_a_yes(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        put(memory, "testing-db.md", topic())
    with opened(tmp_path, memory_mode={"private": "confirm"}) as memory:
        new = put(memory, "deploys.md", topic("deploys"))
        gone = put(memory, "testing-db.md", "")
        assert not new.is_error
        assert "waits for the user's approval" in new.said
        assert new.facts == {"memory": "waiting"}
        assert [each.name for each in memory.topics()] == ["testing-db"]
        assert "no change is needed here" in refused(put(memory, "MEMORY.md", "- [a](testing-db.md)\n"))
        saving, removing = memory.waiting()
        assert (saving.action, saving.why) == ("save", WHY)
        assert "+Use a real one." in saving.diff
        assert removing.action == "remove"
        assert saving.id in str(new.notice)
        assert removing.id in str(gone.notice)
        memory.accept(saving.id)
        memory.accept(removing.id)
        assert [each.name for each in memory.topics()] == ["deploys"]


# The team's memory


@pytest.mark.spec("W1", "B7")
def test_the_team_gets_neither_a_persons_profile_nor_a_secret(tmp_path: Path) -> None:
    with opened(tmp_path, team=True) as memory:
        done = put(memory, "team/release.md", topic("release", "project"))
        assert done.notice == "Saved memory: release."
        assert memory.index("team").startswith("- [release](release.md)")
        assert memory.index() == ""
        assert "stay private" in refused(put(memory, "team/me.md", topic("me", "user")))
        for text in (topic("k", body=KEY), topic("k", more=f"note: {KEY}\n")):
            assert "contains a secret" in refused(put(memory, "team/k.md", text))
        assert "contains a secret" in refused(put(memory, "team/MEMORY.md", f"- [a](release.md) — {KEY}\n"))
        assert [each.file for each in memory.topics()] == ["team/release.md"]
        assert [index.path.parent.name for index in memory.indexes()] == ["team"]


@pytest.mark.spec("W1", "G1")
def test_a_team_directory_elsewhere_is_known_by_its_path(tmp_path: Path) -> None:
    elsewhere = tmp_path / "shared" / "team" / "memory"
    home = tmp_path / "home" / "of" / "lamina"
    settings = Settings(**FAST, team=True, team_memory_directory=str(elsewhere))
    with Memory.open(tmp_path, home=home, settings=settings) as memory:
        assert find_memory_file(memory.place, elsewhere / "x.md") == MemoryFile("team", "x.md")
        assert find_memory_file(memory.place, memory.path / "x.md") == MemoryFile("private", "x.md")
        done = write_memory_file(
            memory, MemoryFile("team", "x.md"), RequestedWrite(elsewhere / "x.md", topic("x"), None), why=WHY
        )
        assert not done.is_error
        [found] = memory.topics()
        assert memory.where(found.file) == elsewhere / "x.md"


@pytest.mark.parametrize("file", ["team/x.md", "logs/2026/x.md", "Team/x.md"])
def test_directories_with_another_meaning_take_no_topics(memory: Memory, file: str) -> None:
    assert "save it in the memory directory itself" in refused(put(memory, file, topic("x")))


# The index


@pytest.mark.spec("S3")
def test_lines_of_the_index_are_brought_into_shape(memory: Memory) -> None:
    put(memory, "testing-db.md", topic())
    long = "word " * 60
    text = f"---\nx: y\n---\n# Tests\n- [Real [db]](testing-db.md) — {long}\n- [gone](gone.md) — x\n{'content ' * 40}\n"
    done = put(memory, "MEMORY.md", text)
    assert "missing files were left out (gone.md)" in done.said
    lines = memory.index().splitlines()
    assert lines[0] == "# Tests"
    assert lines[1].startswith("- [Real (db)](testing-db.md) — word")
    assert all(len(line) <= 150 for line in lines)
    assert len(lines) == 3
    assert done.data == (memory.path / "MEMORY.md").read_bytes()


def test_a_line_said_anew_takes_the_place_of_ours(memory: Memory) -> None:
    put(memory, "testing-db.md", topic())
    put(memory, "MEMORY.md", memory.index() + "- [Databases](testing-db.md) — never mock them\n")
    assert memory.index() == "- [Databases](testing-db.md) — never mock them\n"


@pytest.mark.spec("X8")
def test_an_index_that_was_not_read_is_added_to_and_loses_nothing(memory: Memory) -> None:
    put(memory, "a.md", topic("a"))
    put(memory, "b.md", topic("b"))
    done = put(memory, "MEMORY.md", "- [Second](b.md) — x\n", unread="Read it first.")
    assert "all others stay" in done.said
    assert done.data is None
    assert memory.index() == "- [a](a.md) — Tests use a real database\n- [Second](b.md) — x\n"


def test_the_index_is_not_emptied(memory: Memory) -> None:
    put(memory, "a.md", topic("a"))
    assert "write its file with empty content" in refused(put(memory, "MEMORY.md", ""))
    assert "a.md" in memory.index()


@pytest.mark.spec("B7")
def test_a_secret_in_the_index_is_left_out(memory: Memory) -> None:
    put(memory, "a.md", topic("a"))
    done = put(memory, "MEMORY.md", f"- [a](a.md) — {KEY}\n")
    assert "A secret was removed" in done.said
    assert KEY not in memory.index()


# Which file is meant


@pytest.mark.spec("G1")
def test_a_path_is_known_by_any_spelling(memory: Memory, tmp_path: Path) -> None:
    assert find_memory_file(memory.place, tmp_path / "elsewhere.md") is None
    assert find_memory_file(memory.place, memory.path / "x.txt") is None
    assert find_memory_file(memory.place, memory.path / "sub" / "x.md") == MemoryFile("private", "sub/x.md")
    assert find_memory_file(memory.place, tmp_path / "memory-two" / "x.md") is None
    if sys.platform != "win32":
        (tmp_path / "link").symlink_to(memory.path)
        assert find_memory_file(memory.place, tmp_path / "link" / "x.md") == MemoryFile("private", "x.md")


@pytest.mark.spec("G1")
@pytest.mark.skipif(not hasattr(os, "symlink"), reason="needs links")
def test_hidden_files_and_links_are_refused(memory: Memory, tmp_path: Path) -> None:
    for file in (".history/x.md", ".git/x.md", ".inbox/x.md", ".x.md"):
        refused(put(memory, file, topic("x")))
        assert not (memory.path / file).exists()
    target = tmp_path / "outside.md"
    target.write_text("theirs")
    (memory.path / "link.md").symlink_to(target)
    refused(put(memory, "link.md", topic("x")))
    assert target.read_text() == "theirs"
