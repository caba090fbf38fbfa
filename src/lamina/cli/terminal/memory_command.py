"""/memory: what is remembered, and which of it came to this conversation, and why."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

from ...core.records import Event, Record

if TYPE_CHECKING:
    from .loop import Chat


class RecalledMemory(NamedTuple):
    """A memory that was brought to a message of this conversation."""

    file: str
    why: str
    in_view: bool


def find_recalled(records: Iterable[Record], branch: Collection[str], view: Collection[str]) -> list[RecalledMemory]:
    """What was brought, in its order. What stands on another branch, taken back since, is left out."""
    found: list[RecalledMemory] = []
    for record in records:
        if not isinstance(record, Event) or record.name != "recall":
            continue
        attachment, files, why = (record.data.get(key) for key in ("attachment", "files", "why"))
        if attachment in branch and isinstance(files, list) and isinstance(why, list):
            found += [
                RecalledMemory(str(file), str(reason), attachment in view) for file, reason in zip(files, why, strict=False)
            ]
    return found


def show_memory(chat: Chat, rest: str) -> None:
    with chat.memory_source.open() as memory:
        if rest:
            topic = memory.get(rest)
            chat.screen.line(topic.body if topic is not None else f"Nothing of the name {rest!r} is remembered.")
            return
        found = memory.headers()
        for header in found:
            kind = f"[{header.type}] " if header.type else ""
            chat.screen.note(f"{header.name}: {kind}{header.description}", indent="  ")
        _brought(chat)
        words = "" if found else "Nothing is remembered here yet. "
        chat.screen.note(f"{words}`lamina memory` changes what is in {memory.path}.", "dim")


def _brought(chat: Chat) -> None:
    from ...disk.transcripts.store import read_transcript

    path = chat.agent.session.path
    if path is None or not path.exists():
        return
    with chat.agent.session._working() as c:
        branch, view = set(c.log.tree.members), {item.uuid for item in c.log.view.items}
    brought = find_recalled(read_transcript(path), branch, view)
    if brought:
        chat.screen.note("Came to this conversation:", "dim")
    for one in brought:
        gone = "" if one.in_view else "; no longer in view"
        chat.screen.note(f"{one.file.removesuffix('.md')} ({one.why}{gone})", indent="  ")
