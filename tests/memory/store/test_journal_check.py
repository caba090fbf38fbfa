"""The journal and the inbox as they lie there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.memory.store.contract import ChangeReason
from lamina.memory.store.directory import DirectoryStore
from lamina.memory.store.draft import Draft
from lamina.memory.store.journal import digest_of
from lamina.memory.store.journal_check import MOST_SEGMENT, cache_damage, read_inbox, read_journal, said_since
from lamina.memory.store.modes import Inbox

ME = ChangeReason("user")


def store_at(path: Path, moment: float) -> DirectoryStore:
    return DirectoryStore.open(path, clock=lambda: moment, durability="process")


def save(path: Path, moment: float, body: str, why: ChangeReason = ME) -> str:
    with store_at(path, moment) as store:
        store.save(Draft("a", type="project", description="d", body=body), why=why)
    return digest_of((path / "a.md").read_bytes())


def since(path: Path, digest: str, text: str) -> float | None:
    with store_at(path, 0) as store:
        return said_since(read_journal(store.root), "a.md", digest, text)


@pytest.mark.spec("B4")
def test_a_text_is_as_old_as_the_first_version_that_held_it(tmp_path: Path) -> None:
    save(tmp_path / "memory", 10.0, "one\n")
    digest = save(tmp_path / "memory", 20.0, "one\ntwo\n", ChangeReason("agent"))
    assert [since(tmp_path / "memory", digest, text) for text in ("one", "two", "three")] == [10.0, 20.0, None]


@pytest.mark.parametrize(
    "why", [ChangeReason("dream"), ChangeReason("user", "imported from x"), ChangeReason("user", "merged from y")]
)
def test_what_was_brought_in_has_no_age(tmp_path: Path, why: ChangeReason) -> None:
    digest = save(tmp_path / "memory", 10.0, "one\n", why)
    assert since(tmp_path / "memory", digest, "one") is None


def test_a_file_that_is_not_as_the_journal_knows_it_has_no_age(tmp_path: Path) -> None:
    save(tmp_path / "memory", 10.0, "one\n")
    assert since(tmp_path / "memory", "0" * 64, "one") is None


def test_what_was_found_has_no_age_and_what_comes_after_it_has(tmp_path: Path) -> None:
    memory = tmp_path / "memory"
    memory.mkdir(mode=0o700)
    (memory / "a.md").write_text("---\nname: a\n---\n\none\n")
    digest = save(memory, 20.0, "one\ntwo\n")
    assert [since(memory, digest, text) for text in ("one", "two")] == [None, 20.0]


@pytest.mark.spec("Z12")
def test_damage_is_named_by_its_lines(tmp_path: Path) -> None:
    save(tmp_path / "memory", 10.0, "one\n")
    with open(tmp_path / "memory" / ".history" / "journal-000001.jsonl", "ab") as file:
        file.write(b'{"torn\n\n[]\n')
    with store_at(tmp_path / "memory", 0) as store:
        journal = read_journal(store.root)
        assert [(each.file, each.lines) for each in journal.damage] == [(".history/journal-000001.jsonl", (2, 4))]
        assert set(journal.last) == {"a.md"}


def test_a_segment_that_is_too_large_is_read_in_part(tmp_path: Path) -> None:
    save(tmp_path / "memory", 10.0, "one\n")
    with open(tmp_path / "memory" / ".history" / "journal-000001.jsonl", "ab") as file:
        file.truncate(4 * MOST_SEGMENT)
    with store_at(tmp_path / "memory2", 0):
        pass
    from lamina.disk.trees.rootdir import RootDir

    with RootDir.open(tmp_path / "memory") as root:
        journal = read_journal(root)
    assert set(journal.last) == {"a.md"}
    assert "larger than" in journal.damage[0].problem


@pytest.mark.spec("B5", "Z12")
def test_an_inbox_gives_its_proposals_and_names_what_is_none(tmp_path: Path) -> None:
    with store_at(tmp_path / "memory", 5.0) as store:
        Inbox(store).propose_save(Draft("a", description="d", body="b"), why=ME)
        (tmp_path / "memory" / ".inbox" / "0123456789ab.json").write_text("[]")
        (tmp_path / "memory" / ".inbox" / "readme.txt").write_text("x")
        waiting = read_inbox(store.root)
    assert [proposal.name for proposal in waiting.proposals] == ["a"]
    assert {each.file for each in waiting.damage} == {".inbox/0123456789ab.json", ".inbox/readme.txt"}


def test_a_broken_cache_is_said(tmp_path: Path) -> None:
    save(tmp_path / "memory", 10.0, "one\n")
    with store_at(tmp_path / "memory", 0) as store:
        assert cache_damage(store.root) is None
        (tmp_path / "memory" / ".history" / "heads.msgpack").write_bytes(b"\xc1")
        assert cache_damage(store.root) is not None


def test_a_cache_that_a_scan_wrote_is_not_said_to_be_broken(tmp_path: Path) -> None:
    for number in range(40):
        file = tmp_path / "memory" / f"topic-{number}.md"
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"---\nname: topic-{number}\ndescription: d\n---\n\nx\n")
        os.utime(file, (1_000_000_000, 1_000_000_000))
    with store_at(tmp_path / "memory", 0) as store:
        assert len(store.topic_files.headers()) == 40
        assert (tmp_path / "memory" / ".history" / "heads.msgpack").exists()
        assert cache_damage(store.root) is None
