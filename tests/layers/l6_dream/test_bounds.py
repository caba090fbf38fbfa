"""A dream reads before it writes, writes only its copy, and is bounded."""

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
from lamina.tools.permissions.request import Allow, Deny
from lamina.tools.registry import builtin_tools
from lamina.tools.tool import Context, FileChange, KeeperVerdict, ToolOutput


class ToolRunner:
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
def tool_runner(tmp_path: Path) -> ToolRunner:
    return ToolRunner(tmp_path)


def said(kept: KeeperVerdict | None) -> str:
    assert kept is not None
    assert kept.is_error
    return kept.said


@pytest.mark.spec("D3")
def test_nothing_is_written_before_index_and_memories_were_seen(tool_runner: ToolRunner) -> None:
    assert said(tool_runner.keep("a.md")) == FIRST
    tool_runner.read("MEMORY.md")
    tool_runner.bounds.asked()
    assert said(tool_runner.keep("a.md")) == FIRST
    tool_runner.read("b.md")
    assert said(tool_runner.keep("a.md")) == FIRST, "in the same answer the model has not seen it yet"
    tool_runner.bounds.asked()
    assert tool_runner.keep("a.md") is None, "the tool may write it"


@pytest.mark.spec("D3")
def test_a_read_that_failed_or_is_of_memory_itself_shows_nothing(tool_runner: ToolRunner) -> None:
    tool_runner.read("MEMORY.md")
    tool_runner.ran("Read", failed=True, file_path=str(tool_runner.work / "a.md"))
    tool_runner.ran("Read", file_path=str(tool_runner.memory / "a.md"))
    tool_runner.bounds.asked()
    assert said(tool_runner.keep("a.md")) == FIRST


@pytest.mark.spec("D3")
def test_what_is_not_there_need_not_be_read(tmp_path: Path) -> None:
    tool_runner = ToolRunner(tmp_path, index=False, topics=False)
    assert tool_runner.keep("a.md") is None


@pytest.mark.spec("D4", "Z8")
@pytest.mark.parametrize("path", ["../record.md", "/etc/notes.md", "a.txt", "../../../a.md"])
def test_only_texts_of_the_copy_are_written(tool_runner: ToolRunner, path: str) -> None:
    tool_runner.oriented()
    assert "Only .md files in the copy" in said(tool_runner.keep(path))


@pytest.mark.spec("D4")
def test_a_file_without_content_is_removed_from_the_copy_and_the_index_never(tool_runner: ToolRunner) -> None:
    tool_runner.oriented()
    (tool_runner.work / "a.md").write_text("old")
    kept = tool_runner.keep("a.md", "  \n")
    assert kept is not None
    assert not kept.is_error
    assert not (tool_runner.work / "a.md").exists()
    assert said(tool_runner.keep("MEMORY.md", "\n")) == NO_INDEX
    assert said(tool_runner.keep("b.md", unread="Read it first.")) == "Read it first."


@pytest.mark.spec("D4", "Z7")
def test_files_and_bytes_are_bounded(tool_runner: ToolRunner) -> None:
    tool_runner.oriented()
    for number in range(MOST_FILES):
        assert tool_runner.keep(f"{number}.md") is None
    assert said(tool_runner.keep("more.md")) == TOO_MANY
    assert tool_runner.keep("0.md") is None, "one that was written may be written again"
    assert said(tool_runner.keep("0.md", "x" * MOST_BYTES)) == TOO_LARGE


@pytest.mark.spec("D4")
def test_what_was_touched_is_known_in_order(tool_runner: ToolRunner) -> None:
    tool_runner.oriented()
    tool_runner.keep("b.md")
    tool_runner.keep("sub/a.md")
    tool_runner.keep("b.md")
    tool_runner.keep(tool_runner.memory / "c.md")
    assert list(tool_runner.bounds.touched) == ["b.md", "sub/a.md"]


@pytest.mark.spec("D3")
def test_transcripts_are_not_read(tool_runner: ToolRunner) -> None:
    yes = Allow("yes")
    past, inside = (
        call("Read", file_path=str(tool_runner.past / "s.jsonl")),
        call("Read", file_path=str(tool_runner.memory / "logs" / "x.md")),
    )
    assert tool_runner.bounds.judge(past, yes) == Deny(ONLY_SEARCHED)
    assert tool_runner.bounds.judge(inside, yes) is yes
    assert tool_runner.bounds.judge(inside, Deny("no")) == Deny("no")


@pytest.mark.spec("D3", "Z7")
def test_a_search_in_transcripts_is_a_narrow_one(tool_runner: ToolRunner, tmp_path: Path) -> None:
    (tool_runner.past / "s.jsonl").write_text("".join(f"{number} the importer\n" for number in range(60)))
    (tool_runner.memory / "a.md").write_text("the importer\n")
    [grep] = [tool for tool in tool_runner.bounds.tools(builtin_tools()) if tool.name == "Grep"]
    context = Context(cwd=tmp_path)
    found = grep.run({"pattern": "importer", "path": str(tool_runner.past), "head_limit": 0}, context)
    assert str(found.content).splitlines()[0] == "s:11: 10 the importer"
    assert found.facts == {"lines": 50}
    for no_term in ("ab", "  ab ", "x" * 201):
        assert grep.run({"pattern": no_term, "path": str(tool_runner.past)}, context).content == NO_TERM
    assert not grep.run({"pattern": "进口商", "path": str(tool_runner.past)}, context).is_error
    ordinary = grep.run({"pattern": "importer", "path": str(tool_runner.memory)}, context)
    assert "a.md" in str(ordinary.content)
    assert "No transcript contains" in str(grep.run({"pattern": "nobody", "path": str(tool_runner.past)}, context).content)
    for _ in range(MOST_SEARCHES - 3):
        assert not grep.run({"pattern": "importer", "path": str(tool_runner.past)}, context).is_error
    assert grep.run({"pattern": "importer", "path": str(tool_runner.past)}, context).content == TOO_OFTEN
