"""What changes a conversation between turns: a compaction entered, a rewind, an undo. Each is announced as a break (K3)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ..core.checkpoint import checkpoint_state
from ..core.errors import DiskError
from ..core.log import Log
from ..core.records import Boundary, Checkpoint, Record, Revoke, Rewind
from .state import Conversation


def compact(c: Conversation, boundary: Boundary, follow: Sequence[Record]) -> None:
    """Enter a compaction decided elsewhere: the boundary with its summary and restored context in one write, then a checkpoint,
    so that the next resume reads only what is kept, then what a list of sessions shows. A crash between any two lines leaves the
    old view or the new one, at worst with a title far from the end."""
    listed = listed_again(c)
    c.append([boundary, *follow], reason="compaction")
    uuid, parent, time = c.head()
    start = c.store.offset_of(boundary.kept or (boundary.uuid,))
    state = checkpoint_state(c.log, count=c.count.to_json(), **{name: value() for name, value in c.checkpointed.items()})
    c.append([Checkpoint(uuid, parent, time, boundary.uuid, start, state)])
    c.store.append_lines(listed)


def listed_again(c: Conversation) -> list[bytes]:
    """C4: what a list of sessions shows, to be written behind a compaction. It is no reason for one to fail."""
    from ..disk.session_list import look
    from ..disk.titles import listed_lines
    from .compaction.user_messages import said_in

    if c.store.path is None or (shown := look(c.store.path)) is None:
        return []
    said = said_in(c.log.view.items)
    with suppress(DiskError, OSError):
        return listed_lines(c.store.path, title=shown.title, prompt=said[-1] if said else "", leaf=c.log.tree.leaf)
    return []


def rewind(c: Conversation, target: str | None) -> None:
    """Go on from an earlier message; None: from nothing. One from before the last compaction, kept by it or not, has all of the
    conversation before it again, which memory does not hold."""
    if not _in_memory(c, target):
        c.reload(everything=True)
    c.background.abort("extraction")  # what is taken back is not remembered; the next review covers the rest
    uuid, parent, time = c.head()
    c.append([Rewind(uuid, parent, time, target)], reason="branch")


def _in_memory(c: Conversation, target: str | None) -> bool:
    """Whether the conversation up to this record is: all of the log, or what stands behind its last boundary."""
    if not c.start:
        return target is None or target in c.log.tree.nodes
    if target is None or target not in c.log.tree.nodes:
        return False
    last = next((uuid for uuid, made in reversed(c.log.decisions.items()) if isinstance(made, Boundary)), None)
    return c.log.tree.boundary_above(target) == last


def undo(c: Conversation, target: str) -> None:
    """Take back one decision: the view is what it would be without it. One that a later compaction took out of memory is judged by
    the whole log: the later one rests on it."""
    log = c.log if target in c.log.decisions else Log.load(c.store.read)
    log.check_undo(target)
    uuid, parent, time = c.head()
    c.append([Revoke(uuid, parent, time, target)], reason="undo")
    c.record_event("undo", {"decision": target, "count": c.count.to_json()})
