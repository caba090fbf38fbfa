"""What changes a conversation between turns: a compaction entered, a rewind, an undo. Each is announced as a break (K3)."""

from __future__ import annotations

from collections.abc import Sequence

from .conversation import Conversation
from .core.checkpoint import checkpoint_state
from .core.log import Log
from .core.records import Boundary, Checkpoint, Record, Revoke, Rewind


def compact(c: Conversation, boundary: Boundary, follow: Sequence[Record]) -> None:
    """Enter a compaction decided elsewhere: the boundary with its summary and restored context in one write, then a checkpoint,
    so that the next resume reads only what is kept. A crash between any two lines leaves the old view or the new one."""
    c.enter([boundary, *follow], reason="compaction")
    uuid, parent, time = c.head()
    start = c.store.offset_of(boundary.kept or (boundary.uuid,))
    state = checkpoint_state(c.log, count=c.count.to_json(), **{name: value() for name, value in c.remembered.items()})
    c.enter([Checkpoint(uuid, parent, time, boundary.uuid, start, state)])


def rewind(c: Conversation, target: str | None) -> None:
    """Go on from an earlier message; None: from nothing."""
    if target is not None and target not in c.log.tree.nodes:
        c.reload(everything=True)
    uuid, parent, time = c.head()
    c.enter([Rewind(uuid, parent, time, target)], reason="branch")


def undo(c: Conversation, target: str) -> None:
    """Take back one decision: the view is what it would be without it. One that a later compaction took out of memory is judged by
    the whole log: the later one rests on it."""
    log = c.log if target in c.log.decisions else Log.load(c.store.read)
    log.check_undo(target)
    uuid, parent, time = c.head()
    c.enter([Revoke(uuid, parent, time, target)], reason="undo")
    c.tell("undo", {"decision": target, "count": c.count.to_json()})
