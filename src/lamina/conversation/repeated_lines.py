"""Records that are written again, so that other readers of a transcript follow a compaction, its undo and a rewind.

Other readers start at the last message of the file and follow `parentUuid`. They know no undo, and many do not know the messages
that a compaction keeps. If two lines have the same id, they take the later one. So some records are written again with another
parent:

    after a compaction   the first kept message, after the summary
    after its undo       the first kept message and the first message after the summary, in their old places; the boundary, without
                         its meaning
    after a rewind       the same, for the compactions that it left

and then the last message, because the last one in the file counts. Lamina skips these lines: its own records stay where they were
written first. A crash or a full disk costs other readers a detour, and Lamina nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ..core.blocks import Wire
from ..core.errors import DiskError
from ..core.record_lines import is_repeated, repeat_line
from ..core.records import Boundary, Preserved
from ..disk.transcripts.jsonl import objects_in
from .state import Conversation

# Stands for the end of the file: what is found before it is the newest line of a record.
END = ""


def repeat_after_compaction(c: Conversation, boundary: Boundary) -> None:
    preserved = boundary.preserved or Preserved("", ())
    anchor, uuids = preserved.anchor, preserved.uuids
    if uuids:
        _write(c, [(boundary.uuid, {uuids[0]: anchor})], last=uuids[-1])


def repeat_after_undo(c: Conversation, boundary: Boundary) -> None:
    places = _old_places(c, boundary)
    if (joint := c.log.tree.first_after(c.log.records_of(boundary.uuid))) is not None:
        places[joint] = places[boundary.uuid]
    _write(c, [(boundary.uuid, places)], last=c.log.tree.leaf)


def repeat_after_rewind(c: Conversation, left: Sequence[Boundary]) -> None:
    """`left` are the compactions that are no longer part of the conversation, oldest first."""
    _write(c, [(boundary.uuid, _old_places(c, boundary)) for boundary in reversed(left)], last=c.log.tree.leaf)


# The parent to write for each record; None keeps the one that it had before the compaction.
Places = dict[str, str | None]


def _old_places(c: Conversation, boundary: Boundary) -> Places:
    first = boundary.preserved.uuids[:1] if boundary.preserved is not None else ()
    before = boundary.logical_parent or ""
    return {boundary.uuid: c.log.moved.get(before, before), **dict.fromkeys(first)}


def _write(c: Conversation, changes: Sequence[tuple[str, Mapping[str, str | None]]], *, last: str | None) -> None:
    """Repeat the records of each change with their new parents, and then the last message up to `last`."""
    lines: dict[str, Wire] = {}
    with suppress(DiskError, OSError):
        for boundary, places in changes:
            for raw in _before(c, boundary, set(places)):
                lines[raw["uuid"]] = {**_plain(raw), "parentUuid": places[raw["uuid"]] or raw.get("parentUuid")}
        if (message := _last_message(c, last)) is not None:
            uuid = message["uuid"]
            lines[uuid] = lines.pop(uuid, message)
        c.store.append_lines([repeat_line(raw) for raw in lines.values()])


def _last_message(c: Conversation, last: str | None) -> Wire | None:
    """Return the newest line of the last message. Injected context is not one: the message above it counts."""
    last = c.log.moved.get(last or "", last)
    while last is not None:
        raw = next(_before(c, END, {last}), None)
        if raw is None or (raw.get("type") in ("user", "assistant") and not raw.get("isMeta")):
            return raw
        last = raw.get("parentUuid")
    return None


def _before(c: Conversation, boundary: str, wanted: set[str]) -> Iterator[Wire]:
    """Yield the newest line of each wanted record, newest first. Lines that the compaction itself repeated do not count."""
    after = boundary != END
    for _, line in c.store.lines_back():
        # Most lines name none of them, and need not be parsed.
        if not any(uuid.encode() in line for uuid in wanted) and boundary.encode() not in line:
            continue
        for raw in objects_in(line):
            uuid: Any = raw.get("uuid")
            after = after and uuid != boundary
            if uuid in wanted and not (after and is_repeated(raw)):
                wanted = wanted - {uuid}
                yield raw
        if not wanted:
            return


def _plain(raw: Wire) -> Wire:
    """Return the record as it is, and a boundary as a record without meaning."""
    return {**raw, "subtype": "lamina", "compactMetadata": {}} if raw.get("subtype") == "compact_boundary" else raw
