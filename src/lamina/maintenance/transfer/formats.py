"""The supported formats, and how the format of a source (a file, a directory of text files or a database) is detected.

Owns the closed set of formats and what is opened in a source. Invariants: detection depends only on the content and the name;
if two formats match, the more specific one wins, and if none does, the error lists the formats. Any source takes bounded
memory; only regular files are read, no links inside the source are followed, and nothing blocks. A file that is too large or
not text is reported and skipped in a directory, and an error if it is the source itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, assert_never, get_args

from ...core.errors import DiskError, InputError
from ...core.front_matter import read_front_matter
from ...disk.faults import AbsentIsFine, reporting
from ...disk.regular_file import open_regular
from ...disk.trees.rootdir import RootDir
from ...language.text import Text
from . import basic_memory, claude_mem, mcp_memory, mem0
from .agents_md import read_agents_md
from .claude_code import read_claude_code
from .codex import HANDBOOK, is_codex, read_codex
from .portable_topic import Imported, document
from .project_choice import ANY_PROJECT, ProjectChoice

WrittenFormat: TypeAlias = Literal["claude-code", "codex", "agents-md", "mcp-memory", "mem0"]
Format: TypeAlias = WrittenFormat | Literal["basic-memory", "claude-mem"]
WRITTEN_FORMATS: tuple[WrittenFormat, ...] = get_args(WrittenFormat)
# The formats that can be read; the last two are not written.
FORMATS: tuple[Format, ...] = (*WRITTEN_FORMATS, "basic-memory", "claude-mem")

# Ten times the size of ten thousand ordinary memories.
MOST_BYTES = 64 << 20
# A larger file is not a memory: the store's own limit is a quarter of this.
MOST_FILE_BYTES = 1 << 20
MOST_FILES = 20_000
# Codex keeps its notes three levels deep; folders of notes are rarely deeper than this.
DEEPEST = 8
SUFFIXES = (".md",)


class MemorySource(NamedTuple):
    """The text files of a source: relative path → text, or the single file under its name. A database has rows instead."""

    name: str
    files: Mapping[str, str]
    times: Mapping[str, float]
    is_directory: bool
    rows: claude_mem.ClaudeMemRows | None = None

    @property
    def text(self) -> str:
        return next(iter(self.files.values()), "")


def read_source(path: Path, choice: ProjectChoice = ANY_PROJECT) -> tuple[MemorySource, list[str]]:
    """Return the source and a message for each skipped file; InputError or DiskError if it cannot be read.

    `choice` chooses among the projects of a program that keeps them all in one place.
    """
    name = os.fspath(path)
    if "\0" in name:
        raise InputError(ascii(name), "is not a valid path")
    real = Path(os.path.realpath(path))
    if (database := claude_mem.database_at(real)) is not None:
        return MemorySource(name, {}, {}, False, claude_mem.read_rows(database, choice)), []
    notes = basic_memory.notes_at(real, choice)
    if notes is None and choice.wanted is not None and real.exists():
        raise InputError(name, "has no projects to choose from", "leave out --project")
    real = notes or real
    if real.is_dir():
        return _directory(real, name)
    with AbsentIsFine(), reporting(name), open_regular(real) as file:
        data, changed = file.read(MOST_BYTES + 1), os.fstat(file.fileno()).st_mtime
        if len(data) > MOST_BYTES:
            raise InputError(name, Text("is larger than {limit} MB", limit=MOST_BYTES >> 20), "import it in parts")
        return MemorySource(name, {real.name: _text(data, name)}, {real.name: changed}, False), []
    raise InputError(name, "not found", "pass a file or directory to import")


def _text(data: bytes | None, name: str) -> str:
    if data is not None and b"\0" not in data:
        with suppress(UnicodeDecodeError):
            return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    raise InputError(name, "is not UTF-8 text", "pass the file that contains the memories")


def _directory(real: Path, name: str) -> tuple[MemorySource, list[str]]:
    files, times, problems, total = dict[str, str](), dict[str, float](), list[str](), 0
    with RootDir.open(real, create=False, shared=True) as root:
        for file, size, changed in _walk(root, "", DEEPEST):
            total += min(size, MOST_FILE_BYTES)
            if len(files) >= MOST_FILES or total > MOST_BYTES:
                limit = f"{MOST_FILES:,} files or {MOST_BYTES >> 20} MB"
                raise InputError(name, f"contains more than {limit} of text", "pass the memory directory itself")
            try:
                if size > MOST_FILE_BYTES:
                    raise InputError(file, Text("is larger than {limit} MB", limit=MOST_FILE_BYTES >> 20))
                files[file], times[file] = _text(root.read_bytes(file, MOST_FILE_BYTES), file), changed
            except (DiskError, InputError) as error:
                problems.append(f"{file!a} {error.problem} and was skipped")
    return MemorySource(name, files, times, True), problems


def _walk(root: RootDir, rel: str, depth: int) -> Iterator[tuple[str, int, float]]:
    for entry in root.listdir(rel):
        below = f"{rel}/{entry.name}" if rel else entry.name
        if entry.name.startswith("."):
            continue
        if entry.is_dir and depth > 1:
            yield from _walk(root, below, depth - 1)
        elif not entry.is_dir and entry.name.endswith(SUFFIXES):
            yield below, entry.size, entry.mtime_ns / 1e9


# Formats


def detect(source: MemorySource) -> Format:
    """Return the format of the source; InputError if none matches."""
    found: Format | None
    if source.rows is not None:
        found = "claude-mem"
    elif source.is_directory:
        found = _of_directory(source.files)
    else:
        found = _of_file(source)
    if found is None:
        raise InputError(source.name, "is in an unknown format", f"choose one with --format ({', '.join(FORMATS)})")
    return found


def _of_directory(files: Mapping[str, str]) -> Format | None:
    if is_codex(files):
        return "codex"
    if any(map(basic_memory.is_note, files.values())):
        return "basic-memory"
    return "claude-code" if any(file.endswith(".md") for file in files) else None


def _of_file(source: MemorySource) -> Format | None:
    text = source.text.strip()
    if text.startswith(("{", "[")):
        whole = document(text, "", strict=False)
        first = document(text.split("\n", 1)[0], "", strict=False) if whole is None else whole
        if mcp_memory.looks_like(first):
            return "mcp-memory"
        return "mem0" if mem0.looks_like(whole) else None
    if is_codex({HANDBOOK: text}):
        return "codex"
    if basic_memory.is_note(source.text):
        return "basic-memory"
    if read_front_matter(source.text).fields.keys() & {"name", "description", "type", "metadata"}:
        return "claude-code"
    name = Path(source.name).name.casefold()
    return "agents-md" if text and name.endswith((".md", ".markdown")) else None


def read(source: MemorySource, format: Format) -> Imported:
    """Read all memories of a source; InputError if it is not in that format at all."""
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
        case "basic-memory":
            return basic_memory.read_basic_memory(source.files, times=source.times)
        case "claude-mem":
            if source.rows is None:
                raise InputError(source.name, "is not a claude-mem database", "pass ~/.claude-mem or its claude-mem.db")
            return claude_mem.read_claude_mem(source.rows)
        case _:
            assert_never(format)


def _one(source: MemorySource, what: str) -> str:
    if source.is_directory:
        raise InputError(source.name, "is a directory", f"pass {what} in it")
    return source.text
