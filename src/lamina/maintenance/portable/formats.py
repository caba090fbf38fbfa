"""Which formats there are, and which one a source has: told by what it holds, then by its name.

Owns the closed set of formats. Invariant: detection is a pure function of the content; a source that could be two things is the more
special one, and one that is none of them is refused with the list of formats.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, TypeAlias, assert_never, get_args

from ...core.errors import InputError
from ...core.front_matter import read_front_matter
from . import mcp_memory, mem0
from .agents_md import read_agents_md
from .claude_code import read_claude_code
from .codex import HANDBOOK, is_codex, read_codex
from .documents import document
from .values import Imported

Format: TypeAlias = Literal["claude-code", "codex", "agents-md", "mcp-memory", "mem0"]
FORMATS: tuple[Format, ...] = get_args(Format)


class Source(NamedTuple):
    """A source as it was read: path below a directory → text, or the one file under its name."""

    name: str
    files: Mapping[str, str]
    times: Mapping[str, float]
    is_directory: bool

    @property
    def text(self) -> str:
        return next(iter(self.files.values()), "")


def detect(source: Source) -> Format:
    """InputError when the content says nothing we know."""
    found = _directory(source) if source.is_directory else _file(source)
    if found is None:
        remedy = f"if you know what it is, name it with --format ({', '.join(FORMATS)})"
        raise InputError(source.name, "is in none of the formats memories are imported from", remedy)
    return found


def _directory(source: Source) -> Format | None:
    if is_codex(source.files):
        return "codex"
    return "claude-code" if any(file.endswith(".md") for file in source.files) else None


def _file(source: Source) -> Format | None:
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


def read(source: Source, format: Format) -> Imported:
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


def _one(source: Source, what: str) -> str:
    if source.is_directory:
        raise InputError(source.name, "is a directory", f"name {what} in it")
    return source.text
