"""Rewind and undo: what takes back a part of a conversation between turns. Each is announced as a break (K3)."""

from __future__ import annotations

from ..core.log import Log
from ..core.records import Boundary, Revoke, Rewind
from .state import Conversation


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
