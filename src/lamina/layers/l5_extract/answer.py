"""A review as one answer, for a model whose host has no file tools: it lists the memories between two tags, as JSON.

A fork keeps its parent's tool list, so this model could not call Read or Write. Instead the memories closest to the messages are in the
directive, in full, and only those can be replaced. Every entry goes through the same writer as a call of Write does. Invariant: an answer
that is not exactly such a list writes nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
from msgspec.structs import replace

from ...core.claude_home import new_memory_file
from ...core.decoding import UNDECODABLE
from ...core.errors import DiskError
from ...core.fence import escape, fence
from ...core.prompt_files import prompt_sections
from ...disk.files import read
from ...memory.recall.library import MemoryLibrary
from ...memory.store.contract import MOST_READ
from ...memory.store.draft import MOST_EVIDENCE
from ...memory.store.scopes import TEAM, MemoryLocation
from ...memory.store.topic import Kind, Topic, read_topic, write_topic
from ...tools.tool import FileChange

OPENING, CLOSING = "<memories>", "</memories>"
_BETWEEN = re.compile(rf"{OPENING}\s*(?P<list>.*?)\s*{CLOSING}", re.DOTALL)
# Three memories of a paragraph or two: enough to correct what the messages are about.
MOST_SHOWN = 3
MOST_SHOWN_CHARS = 4_000

NO_LIST = f"the answer had no list between {OPENING} and {CLOSING}"
NOT_SHOWN = "{file} exists and was not shown to the review in full, so it is not replaced."


Filled: TypeAlias = Annotated[str, msgspec.Meta(min_length=1)]


class AnsweredMemory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    file: Filled
    type: Kind
    description: Filled
    body: Filled
    evidence: tuple[str, ...] = ()


def read_memories(text: str) -> list[AnsweredMemory] | str:
    """Return the listed memories, or what is wrong with the answer."""
    found = _BETWEEN.findall(text)
    if not found:
        return NO_LIST
    try:
        return msgspec.json.decode(found[-1] or "[]", type=list[AnsweredMemory])
    except UNDECODABLE as error:
        return f"the list of memories is not valid: {error}"


def memories_shown(memory: MemoryLibrary, words: str) -> dict[str, str]:
    """Return the memories closest to the messages, by file. A long one is left out: it could not be replaced without being seen."""
    found = [one.topic.file for one in memory.recall(words, MOST_SHOWN)] if words.strip() else []
    texts = {file: read(memory.where(file), MOST_READ) for file in found}
    whole = {file: data.decode("utf-8", "replace") for file, data in texts.items() if data is not None}
    return {file: text for file, text in whole.items() if len(text) <= MOST_SHOWN_CHARS}


def render_shown(shown: Mapping[str, str]) -> str:
    if not shown:
        return ""
    texts = [f"{escape(file)}:\n{fence('recalled-memory', text)}" for file, text in shown.items()]
    return "\n\n".join([prompt_sections(__file__, "answer")["shown"], *texts])


def write_answered(
    wanted: Sequence[AnsweredMemory], place: MemoryLocation, shown: Mapping[str, str], writer: Callable[[FileChange], object]
) -> None:
    for one in wanted:
        writer(_change_for(one, _path_of(one, place), shown))


def _path_of(one: AnsweredMemory, place: MemoryLocation) -> Path:
    """Return the file's path. The writer refuses whatever is not a memory file."""
    if place.team is not None and one.file.startswith(f"{TEAM}/"):
        path = place.team / one.file.removeprefix(f"{TEAM}/")
    else:
        path = place.path / one.file
    name = path.name if os.path.lexists(path) else new_memory_file(path.parent, path.name, one.type)
    return path if name == path.name else path.with_name(name)


def _change_for(one: AnsweredMemory, path: Path, shown: Mapping[str, str]) -> FileChange:
    try:
        before = read(path, MOST_READ)
    except (DiskError, ValueError):
        before = None  # the writer or the store gives the reason
    old = before.decode("utf-8", "replace") if before is not None else None
    unread = None if old is None or shown.get(one.file) == old else NOT_SHOWN.format(file=one.file)
    known = read_topic(one.file, old or "", 0.0)
    fields = known.fields | {"evidence": list(one.evidence[:MOST_EVIDENCE])} if one.evidence else known.fields
    topic: Topic = replace(known, description=one.description, type=one.type, body=f"{one.body.strip()}\n", fields=fields)
    return FileChange(path, write_topic(topic, before=old).encode("utf-8", "replace"), before, unread)
