"""Files with bytes that are not UTF-8: they cost what they hold, and nothing else fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.core.settings import Settings
from lamina.disk.trees.rootdir import RootDir
from lamina.memory.auto_memory import auto_memory
from lamina.memory.memory import Memory
from lamina.memory.store.directory import DirectoryStore
from lamina.memory.store.distinct import DISTINCT, read_distinct
from lamina.memory.store.modes import DECIDED, Inbox

NOT_TEXT = b'{"id": "\xff\xfe"}'


def opened(tmp_path: Path) -> Memory:
    return Memory.open(tmp_path, path=tmp_path / "memory", settings=Settings(durability="process"))


def test_a_line_of_the_journal_that_is_no_text_is_left_out(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.save("first", description="wombat", body="a")
        memory.save("second", description="quokka", body="b")
    journal = tmp_path / "memory/.history/journal-000001.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"wombat", b"wom\xffat"))
    with opened(tmp_path) as memory:
        memory.save("third", description="numbat", body="c")
        assert {change.name for change in memory.log()} >= {"second", "third"}
        assert [each.topic.name for each in memory.recall("wombat")] == ["first"]


def test_pairs_and_decisions_that_are_no_text_are_none(tmp_path: Path) -> None:
    with RootDir.open(tmp_path / "memory") as root:
        for file in (DISTINCT, f"{DECIDED}/x.json"):
            path = tmp_path / "memory" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(NOT_TEXT)
        assert read_distinct(root) == frozenset()
        assert Inbox(DirectoryStore(root)).decided() == []


@pytest.mark.parametrize("data", [b'{"autoMemoryEnabled": false, "x": "\xff"}', b"[" * 100_000, b"// no\n{}"])
def test_settings_of_claude_code_that_cannot_be_read_decide_nothing(tmp_path: Path, data: bytes) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_bytes(data)
    assert auto_memory(tmp_path, {"HOME": str(tmp_path)}).on
