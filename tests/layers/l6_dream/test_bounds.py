"""What a dream may look at and write: nothing before it has looked, its copy only, and not without end."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.core.blocks import ToolUse, read_block
from lamina.fork.tool_runner import CompletedCall
from lamina.layers.l6_dream.bounds import (
    FIRST,
    MOST_BYTES,
    MOST_FILES,
    MOST_SEARCHES,
    NO_INDEX,
    NO_TERM,
    ONLY_SEARCHED,
    TOO_LARGE,
    TOO_MANY,
    TOO_OFTEN,
    DreamBounds,
    DreamCopy,
)
from lamina.permissions.verdicts import Allow, Deny
from lamina.tools.registry import builtin_tools
from lamina.tools.tool import Context, FileChange, KeeperVerdict, ToolOutput


class Desk:
    def __init__(self, tmp_path: Path, *, index: bool = True, topics: bool = True) -> None:
        self.memory = tmp_path / "project" / "memory"
        self.work = self.memory / ".dreams" / "x" / "work"
        self.work.mkdir(parents=True)
        self.past = self.memory.parent
        self.bounds = DreamBounds(DreamCopy(self.work, self.memory, (self.past,), index, topics), tmp_path)

    def read(self, file: str) -> None:
        self.ran("Read", file_path=str(self.work / file))

    def ran(self, name: str, *, failed: bool = False, **given: str) -> None:
        self.bounds.saw(CompletedCall(call(name, **given), Allow("yes"), ToolOutput("…", is_error=failed)))

    def keep(self, file: str | Path, text: str = "Text.\n", unread: str | None = None) -> KeeperVerdict | None:
        return self.bounds.keep(FileChange(self.work / file, text.encode(), b"old", unread))

    def oriented(self) -> DreamBounds:
        self.read("MEMORY.md")
        self.read("a.md")
        self.bounds.asked()
        return self.bounds


def call(name: str, **given: str) -> ToolUse:
    block = read_block({"type": "tool_use", "id": "c1", "name": name, "input": given})
    assert isinstance(block, ToolUse)
    return block


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def said(kept: KeeperVerdict | None) -> str:
    assert kept is not None
    assert kept.is_error
    return kept.said


@pytest.mark.spec("D3")
def test_nothing_is_written_before_index_and_memories_were_seen(desk: Desk) -> None:
    assert said(desk.keep("a.md")) == FIRST
    desk.read("MEMORY.md")
    desk.bounds.asked()
    assert said(desk.keep("a.md")) == FIRST
    desk.read("b.md")
    assert said(desk.keep("a.md")) == FIRST, "in the same answer the model has not seen it yet"
    desk.bounds.asked()
    assert desk.keep("a.md") is None, "the tool may write it"


@pytest.mark.spec("D3")
def test_a_read_that_failed_or_is_of_memory_itself_shows_nothing(desk: Desk) -> None:
    desk.read("MEMORY.md")
    desk.ran("Read", failed=True, file_path=str(desk.work / "a.md"))
    desk.ran("Read", file_path=str(desk.memory / "a.md"))
    desk.bounds.asked()
    assert said(desk.keep("a.md")) == FIRST


@pytest.mark.spec("D3")
def test_what_is_not_there_need_not_be_read(tmp_path: Path) -> None:
    desk = Desk(tmp_path, index=False, topics=False)
    assert desk.keep("a.md") is None


@pytest.mark.spec("D4", "Z8")
@pytest.mark.parametrize("path", ["../record.md", "/etc/notes.md", "a.txt", "../../../a.md"])
def test_only_texts_of_the_copy_are_written(desk: Desk, path: str) -> None:
    desk.oriented()
    assert "Only files of the copy" in said(desk.keep(path))


@pytest.mark.spec("D4")
def test_a_file_without_content_is_removed_from_the_copy_and_the_index_never(desk: Desk) -> None:
    desk.oriented()
    (desk.work / "a.md").write_text("old")
    kept = desk.keep("a.md", "  \n")
    assert kept is not None
    assert not kept.is_error
    assert not (desk.work / "a.md").exists()
    assert said(desk.keep("MEMORY.md", "\n")) == NO_INDEX
    assert said(desk.keep("b.md", unread="Read it first.")) == "Read it first."


@pytest.mark.spec("D4", "Z7")
def test_files_and_bytes_are_bounded(desk: Desk) -> None:
    desk.oriented()
    for number in range(MOST_FILES):
        assert desk.keep(f"{number}.md") is None
    assert said(desk.keep("more.md")) == TOO_MANY
    assert desk.keep("0.md") is None, "one that was written may be written again"
    assert said(desk.keep("0.md", "x" * MOST_BYTES)) == TOO_LARGE


@pytest.mark.spec("D4")
def test_what_was_touched_is_known_in_order(desk: Desk) -> None:
    desk.oriented()
    desk.keep("b.md")
    desk.keep("sub/a.md")
    desk.keep("b.md")
    desk.keep(desk.memory / "c.md")
    assert list(desk.bounds.touched) == ["b.md", "sub/a.md"]


@pytest.mark.spec("D3")
def test_transcripts_are_not_read(desk: Desk) -> None:
    yes = Allow("yes")
    past, inside = call("Read", file_path=str(desk.past / "s.jsonl")), call("Read", file_path=str(desk.memory / "logs" / "x.md"))
    assert desk.bounds.judge(past, yes) == Deny(ONLY_SEARCHED)
    assert desk.bounds.judge(inside, yes) is yes
    assert desk.bounds.judge(inside, Deny("no")) == Deny("no")


@pytest.mark.spec("D3", "Z7")
def test_a_search_in_transcripts_is_a_narrow_one(desk: Desk, tmp_path: Path) -> None:
    (desk.past / "s.jsonl").write_text("".join(f"{number} the importer\n" for number in range(60)))
    (desk.memory / "a.md").write_text("the importer\n")
    [grep] = [tool for tool in desk.bounds.tools(builtin_tools()) if tool.name == "Grep"]
    context = Context(cwd=tmp_path)
    found = grep.run({"pattern": "importer", "path": str(desk.past), "head_limit": 0}, context)
    assert str(found.content).splitlines()[0] == "s:11: 10 the importer"
    assert found.facts == {"lines": 50}
    for no_term in ("ab", "  ab ", "x" * 201):
        assert grep.run({"pattern": no_term, "path": str(desk.past)}, context).content == NO_TERM
    assert not grep.run({"pattern": "进口商", "path": str(desk.past)}, context).is_error
    ordinary = grep.run({"pattern": "importer", "path": str(desk.memory)}, context)
    assert "a.md" in str(ordinary.content)
    assert "No transcript says" in str(grep.run({"pattern": "nobody", "path": str(desk.past)}, context).content)
    for _ in range(MOST_SEARCHES - 3):
        assert not grep.run({"pattern": "importer", "path": str(desk.past)}, context).is_error
    assert grep.run({"pattern": "importer", "path": str(desk.past)}, context).content == TOO_OFTEN
