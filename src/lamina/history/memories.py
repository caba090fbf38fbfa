"""Memories of Lamina and of other agents, read as they are.

Lamina and Claude Code keep one memory per file, next to an index. Codex keeps a handbook, a summary and notes: each section is a
memory here. Records of single sessions and procedures are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import msgspec

from ..memory.store.index import INDEX
from ..memory.store.topic import read_topic, without_bookkeeping
from .places import Origin, SourceFile
from .scan import Scan, ScannedTurn, one_line, shorten

# A longer file is not a memory; its beginning is read.
MOST_BYTES = 1 << 20
# Files of Codex with records of single sessions.
_RECORDS = ("raw_memories.md",)
_HEADING = re.compile(r"^#{1,2} (?P<name>[^\n]*)$", re.MULTILINE)


class SourceMemory(msgspec.Struct, frozen=True):
    origin: Origin
    name: str
    description: str
    type: str | None
    body: str
    path: str
    modified: float
    place: str = ""  # the name of the project's directory, empty if the memory belongs to no project


def read_memories(origin: Origin, path: str, data: bytes, modified: float, place: str = "") -> Iterator[SourceMemory]:
    """Yield the memories in one file."""
    words, name = data[:MOST_BYTES].decode("utf-8", "replace"), Path(path).name
    if origin == "codex":
        if name not in _RECORDS:
            yield from _sections(path, words, modified)
    elif name != INDEX:
        topic = read_topic(name, without_bookkeeping(words), modified)
        yield SourceMemory(origin, topic.name, topic.description, topic.type, topic.body, path, topic.modified, place)


def _sections(path: str, words: str, modified: float) -> Iterator[SourceMemory]:
    heads = [*_HEADING.finditer(words)]
    parts = [(Path(path).stem, words[: heads[0].start()] if heads else words)]
    ends = [*(head.start() for head in heads[1:]), len(words)]
    parts += (
        [(head["name"].strip(), words[head.end() : end]) for head, end in zip(heads, ends, strict=bool(heads))] if heads else []
    )
    for name, words in parts:
        body = words.strip()
        if body:
            first, _, rest = body.partition("\n")
            short = one_line(first) == first  # a description that is repeated in the text would count twice
            yield SourceMemory(
                "codex",
                one_line(name),
                one_line(body) if not short else first,
                None,
                rest.strip() if short else body,
                path,
                modified,
            )


def scan_memory(file: SourceFile, opened: BinaryIO, scan: Scan, turns: list[ScannedTurn]) -> int:
    """Add the memories of a file to the index, and return how much of it was read."""
    data = opened.read(MOST_BYTES)
    for number, found in enumerate(read_memories(file.origin, file.path, data, file.stamp.mtime_ns / 1e9)):
        head = f"{found.name}\n{found.description}"
        turns.append(ScannedTurn(number, "memory", iso_time(found.modified), shorten(f"{head}\n{found.body}"), head))
        scan.title, scan.prompt = scan.title or found.name, scan.prompt or found.description
    return len(data)


def iso_time(modified: float) -> str:
    return datetime.fromtimestamp(max(0.0, modified), UTC).isoformat(timespec="seconds")
