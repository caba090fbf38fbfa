"""Rewind and undo: both revert part of a conversation between turns, and both are recorded as cache breaks."""

from __future__ import annotations

from ..core.errors import UsageError
from ..core.records import Boundary, Message, Revoke, Rewind
from ..disk.transcripts.store import load_whole
from ..language.wording import counted
from .price import last_item
from .state import Conversation
from .triggers import last_compaction


def rewind(c: Conversation, target: str | None) -> None:
    """Continue from an earlier message; None starts over.

    For a message from before the last compaction, the earlier conversation is loaded again in full, even if the compaction kept
    it.
    """
    if not _in_memory(c, target):
        c.reload(everything=True)
    c.background.abort("extraction")  # reverted messages must not become memories; the next extraction covers the rest
    decisions = [decision for decision in c.log.decisions.values() if decision.uuid in c.log.tree.members]
    compactions = [decision for decision in decisions if isinstance(decision, Boundary)]
    uuid, _, time = c.head()
    c.append([Rewind(uuid, target, time, target)], reason="branch")
    from .repeated_lines import repeat_after_rewind

    repeat_after_rewind(c, [boundary for boundary in compactions if boundary.uuid not in c.log.tree.members])


def _in_memory(c: Conversation, target: str | None) -> bool:
    """Return whether memory holds the conversation up to this record: all of the log, or everything since the last boundary."""
    if not c.start:
        return target is None or target in c.log.tree.nodes
    if target is None or target not in c.log.tree.nodes:
        return False
    last = last_compaction(c)
    return c.log.tree.boundary_above(target) == (last.uuid if last is not None else None)


def undo(c: Conversation, target: str) -> None:
    """Revert one decision, so that the view looks as if it had never been made.

    A decision that a later compaction dropped from memory is looked up in the whole log: the later one depends on it and must be
    undone first.
    """
    log = c.log if target in c.log.decisions else load_whole(c.store)
    log.check_undo(target)
    if target not in c.log.view.pins and c.background.running("summary") is not None:
        c.background.abort("summary")
        c.notify("The summary that was being made in the background was dropped, because the undo changed the conversation.")
    decision = log.decisions.get(target)
    if isinstance(decision, Boundary) and _begins_with(c, target):
        raise UsageError(f"Cannot undo {target}: the messages that this compaction replaced are not in this transcript.")
    uuid, _, time = c.head()
    parent = log.tree.leaf_without(log.records_of(target))
    if parent is None and isinstance(decision, Boundary):
        parent = decision.logical_parent  # it is known, but not in memory
    c.append([Revoke(uuid, parent, time, target)], reason="undo")
    if isinstance(decision, Boundary):
        from .repeated_lines import repeat_after_undo

        repeat_after_undo(c, decision)
        _report_gaps(c, decision)
    c.record_event("undo", {"decision": target, "since": last_item(c)})


def _begins_with(c: Conversation, boundary: str) -> bool:
    """Return whether a transcript begins with a compaction, because what it replaced is in another file or was cut off."""
    first = next((record for record in c.store.read() if isinstance(record, Message | Boundary) and not record.sidechain), None)
    return first is not None and first.uuid == boundary


def _report_gaps(c: Conversation, undone: Boundary) -> None:
    """Tell the user which records before an undone compaction the transcript lacks. An earlier compaction leaves no gaps in view."""
    visible = {undone.uuid, *(item.uuid for item in c.log.view.items)}
    lost = [parent for parent, record in c.log.tree.missing.items() if record in visible] if not c.start else []
    if lost:
        records = counted(len(lost), "record")
        c.notify(f"Not everything before the compaction was brought back: the transcript lacks {records} ({lost[0][:8]}).")
