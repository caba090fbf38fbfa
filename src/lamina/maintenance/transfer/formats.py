"""Which formats there are, and which one a source has: told by what it holds, then by its name.

Owns the closed set of formats. Invariant: detection is a pure function of the content; a source that could be two things is the more
special one, and one that is none of them is refused with the list of formats.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal, TypeAlias, assert_never, get_args

from ...core.errors import InputError
from ...core.front_matter import read_front_matter
from . import mcp_memory, mem0
from .agents_md import read_agents_md
from .claude_code import read_claude_code
from .codex import HANDBOOK, is_codex, read_codex
from .documents import document
from .portable_topic import Imported
from .source import MemorySource

Format: TypeAlias = Literal["claude-code", "codex", "agents-md", "mcp-memory", "mem0"]
FORMATS: tuple[Format, ...] = get_args(Format)


def detect(source: MemorySource) -> Format:
    """InputError when the content says nothing we know."""
    found = _of_directory(source.files) if source.is_directory else _of_file(source)
    if found is None:
        remedy = f"if you know what it is, name it with --format ({', '.join(FORMATS)})"
        raise InputError(source.name, "is in none of the formats memories are imported from", remedy)
    return found


def _of_directory(files: Mapping[str, str]) -> Format | None:
    if is_codex(files):
        return "codex"
    return "claude-code" if any(file.endswith(".md") for file in files) else None


def _of_file(source: MemorySource) -> Format | None:
    text = source.text.strip()
    if text.startswith(("{", "[")):
        return _json(text)
    if is_codex({HANDBOOK: text}):
        return "codex"
    if read_front_matter(source.text).fields.keys() & {"name", "description", "type", "metadata"}:
        return "claude-code"
    name = PurePosixPath(source.name).name.casefold()
    return "agents-md" if text and name.endswith((".md", ".markdown")) else None


def _json(text: str) -> Format | None:
    whole = document(text, "", strict=False)
    first = document(text.split("\n", 1)[0], "", strict=False) if whole is None else whole
    if mcp_memory.looks_like(first):
        return "mcp-memory"
    return "mem0" if mem0.looks_like(whole) else None


def read(source: MemorySource, format: Format) -> Imported:
    """All memories of a source. InputError when it is not in that format at all."""
    match format:
        case "claude-code":
            return read_claude_code(source.files, times=source.times)
        case "codex":
            return read_codex(source.files if source.is_directory else {HANDBOOK: source.text}, times=source.times)
        case "agents-md":
            return read_agents_md(_one(source, "AGENTS.md"))
        case "mcp-memory":
            return mcp_memory.read_mcp_memory(_one(source, "memory.jsonl"))
        case "mem0":
            return mem0.read_mem0(_one(source, "its JSON file"))
        case _:
            assert_never(format)


def _one(source: MemorySource, what: str) -> str:
    if source.is_directory:
        raise InputError(source.name, "is a directory", f"name {what} in it")
    return source.text
