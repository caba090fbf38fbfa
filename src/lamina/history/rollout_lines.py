"""The lines of a Codex rollout, with those of the session that it continues.

A fork's file has new lines only. Its first line names a base and the byte where that part ends; the base may be a fork too, and may be
archived. A revert does the same within one session. Offsets in the session's own file are those of the file; lines of its bases come first
and have negative offsets. Read-only. The chain of bases is bounded, and a base that is missing costs one sentence.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from ..core.decoding import UNDECODABLE
from ..disk.regular_file import open_regular
from ..disk.transcripts.jsonl import MAX_LINE, Health, raw_lines
from .places import find_rollout

# Before every line of every chain.
BEGINNING = -(1 << 62)
# A fork of a fork of a fork; a longer chain is cut.
MOST_BASES = 100


class BasePart(NamedTuple):
    """The beginning of a file, up to `size` bytes."""

    path: str
    size: int


class BaseChain(NamedTuple):
    parts: tuple[BasePart, ...] = ()  # the oldest first
    missing: str = ""  # the id of a base that was not found, or was found too short


class _Base(msgspec.Struct, frozen=True):
    thread_id: str
    end_byte_offset: int


class _Meta(msgspec.Struct, frozen=True):
    history_base: _Base | None = None


class _FirstLine(msgspec.Struct, frozen=True):
    payload: _Meta


def find_bases(path: str | os.PathLike[str]) -> BaseChain:
    """Return the parts of other files that come before this one's lines."""
    file = own = os.path.abspath(path)
    parts: list[BasePart] = []
    short = ""
    while (base := _base_of(file)) is not None:
        found = find_rollout(file, base.thread_id) if len(parts) < MOST_BASES else None
        if found is None or found in (own, *(part.path for part in parts)):
            return BaseChain(tuple(reversed(parts)), base.thread_id)
        size = min(_size(found), max(0, base.end_byte_offset))
        short = base.thread_id if size < base.end_byte_offset else short
        parts.append(BasePart(found, size))
        file = found
    return BaseChain(tuple(reversed(parts)), short)


def _base_of(path: str) -> _Base | None:
    try:
        with open_regular(path, follow=False) as file:
            return msgspec.json.decode(file.readline(MAX_LINE), type=_FirstLine).payload.history_base
    except (*UNDECODABLE, OSError):
        return None


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def rollout_lines(path: str | os.PathLike[str], start: int, health: Health) -> Iterator[tuple[int, bytes]]:
    """Yield the lines from an offset on, with their offsets. Notes in `health` if a base is missing."""
    if start < 0:
        chain = find_bases(path)
        first = -sum(part.size for part in chain.parts)
        for part in chain.parts:
            for offset, raw in raw_lines(part.path, max(0, start - first), Health()):
                if offset >= part.size:
                    break
                yield first + offset, raw
            first += part.size
        health.missing = chain.missing
    yield from raw_lines(path, max(0, start), health)
