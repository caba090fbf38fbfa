"""Detecting the format of a source from its content."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.maintenance.transfer.made import bodies

from lamina.core.errors import InputError
from lamina.maintenance.transfer.formats import FORMATS, Format, MemorySource, detect, read


def file(name: str, text: str) -> MemorySource:
    return MemorySource(name, {name: text}, {}, False)


def directory(**files: str) -> MemorySource:
    return MemorySource("there", {name.replace("__", "/") + ".md": text for name, text in files.items()}, {}, True)


@pytest.mark.spec("B13")
@pytest.mark.parametrize(
    ("source", "format"),
    [
        (file("memory.json", '{"type":"entity","name":"a","entityType":"x","observations":[]}\n'), "mcp-memory"),
        (file("x", '\n{"type":"relation","from":"a","to":"b","relationType":"x"}\n{"type":"entity"}\n'), "mcp-memory"),
        (file("graph.json", '{"entities":[],"relations":[]}'), "mcp-memory"),
        (file("export.json", '{"results":[{"memory":"x"}]}'), "mem0"),
        (file("list.json", '[{"id":"1","memory":"x"}]'), "mem0"),
        (file("memories.json", '{\n "memories": [{"content":"x"}]\n}'), "mem0"),
        (file("AGENTS.md", "# Rules\n\nBe brief.\n"), "agents-md"),
        (file("topic.md", "---\nname: a\n---\n\nx\n"), "claude-code"),
        (file("MEMORY.md", "# Task Group: a\n\nscope: b\n"), "codex"),
        (directory(MEMORY="- [a](a.md)\n", a="x"), "claude-code"),
        (directory(MEMORY="# Task Group: a\n"), "codex"),
        (directory(memory_summary="v1\n"), "codex"),
        (directory(extensions__ad_hoc__notes__a="x"), "codex"),
    ],
)
def test_a_source_is_known_by_its_content(source: MemorySource, format: Format) -> None:
    assert detect(source) == format


@pytest.mark.parametrize(
    "source", [file("a.json", "{}"), file("b.txt", "hello"), file("c", ""), file("d.json", "[1]"), directory()]
)
def test_a_source_that_is_none_of_them_is_refused_with_the_list(source: MemorySource) -> None:
    with pytest.raises(
        InputError,
        match=r"choose one with --format \(claude-code, codex, .*, claude-mem\)",
    ):
        detect(source)


@pytest.mark.parametrize("format", ["agents-md", "mcp-memory", "mem0"])
def test_a_format_of_one_file_is_not_read_from_a_directory(format: Format) -> None:
    with pytest.raises(InputError, match="is a directory"):
        read(directory(a="x"), format)


@pytest.mark.spec("B13")
@given(
    bodies, st.sampled_from(FORMATS), st.sampled_from(["MEMORY.md", "a.md", "extensions/ad_hoc/notes/a.md", "memory_summary.md"])
)
def test_no_text_makes_a_reader_fail_with_anything_but_our_errors(text: str, format: Format, name: str) -> None:
    for source in (file(name, text), MemorySource("there", {name: text}, {name: 1.0}, True)):
        with suppress(InputError):
            detect(source)
        with suppress(InputError):
            read(source, format)
