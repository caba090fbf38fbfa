"""The log: records form a tree (tree.py), one path through the tree is the conversation, and the view is a fold over that path.

`Log.add` costs O(1) for a record that extends the conversation. After a switch to another branch or a revoke it returns False, and
the caller must call `refold`. Keeping displaced slices to avoid this would be wrong for histories that were undone in the middle,
and folding 10,000 records takes only milliseconds.

A checkpoint stores the state that a resume needs from the records it does not read. After a compaction only the kept messages and
the records that follow are read again. Earlier decisions still apply to the kept messages: pins, frozen replacements of results,
and the prompt as it was sent. A log loaded from the checkpoint's offset with this state has the same view as one loaded from the
top.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from .blocks import ToolResult, ToolUse, Wire
from .copies import copy_with_containers
from .errors import UndoOrder, UsageError
from .prefix import Reason
from .records import (
    Attachment,
    Boundary,
    Clear,
    Event,
    Foreign,
    Grown,
    Message,
    Newer,
    Pin,
    Placed,
    Record,
    Revoke,
    Rewind,
    Snapshot,
    Span,
    Spill,
)
from .tree import Tree
from .view import View

# The author of a boundary that replaces what was too large to load when the session was resumed.
BY_RESUME = "resume"


class Log:
    """The tree, the view and the revoked decisions. The `read` argument of load and refold returns all records in file order."""

    def __init__(self, seed: Callable[[], View] = View) -> None:
        """`seed` makes the initial view of a fold: an empty one, or one with the state of a checkpoint."""
        self._seed = seed
        self.tree = Tree()
        self.view = seed()
        self.revoked: set[str] = set()
        # Decisions of this conversation, oldest first, for undo and for naming the reason of a break.
        self.decisions: dict[str, Boundary | Clear | Span | Spill] = {}
        self.events: dict[str, Event] = {}  # the last event of each name, oldest first; layers look up their own
        # The reason for a coming cache break: a decision since the last answer changed the messages already sent.
        self.due: Reason | None = None
        self.last_answer: str | None = None  # message id of the last answer, or the uuid of its record
        self.newer: int | None = None  # the format of a record that this version must not interpret
        self.skipped_kinds: dict[str, int] = {}
        # Summary → the last message that its compaction kept. Other programs put the kept messages after the summary, so for them
        # that message is the parent of what follows the summary.
        self.moved: dict[str, str] = {}
        self._owners: dict[str, str] = {}  # message or attachment → the decision that it belongs to

    @classmethod
    def load(cls, read: Callable[[], Iterable[Record]], seed: Callable[[], View] = View) -> Log:
        log = cls(seed)
        stale = False
        for record in read():
            stale = not log._enter(record, fold=not stale) or stale
        if stale:
            log.refold(read)
        return log

    def copy(self) -> Log:
        """Return a log that goes on from here without this one. The records are shared."""
        made = copy_with_containers(self)
        made.tree, made.view = self.tree.copy(), self.view.copy()
        return made

    @classmethod
    def tree_of(cls, records: Iterable[Record]) -> Tree:
        """Return the tree of a transcript, without keeping its messages in memory."""
        log = cls()
        for record in records:
            log._enter(record, fold=False)
        return log.tree

    def add(self, record: Record) -> bool:
        """Add a record. Return False if it does not extend the conversation; then the caller must call refold."""
        return self._enter(record, fold=True)

    def _enter(self, record: Record, *, fold: bool) -> bool:
        self._note_due(record)
        if isinstance(record, Newer):
            self.newer = max(self.newer or 0, record.found)
            return True
        if isinstance(record, Placed):
            extends = self._enter_tree(record)
            if extends and fold and self._counts(record):
                self._fold(self.view, record)
            return extends
        if record.uuid is not None:
            self.tree.attach(record.uuid, record.parent)
        if isinstance(record, Event):
            self.events.pop(record.name, None)  # keeps the newest event last, regardless of its timestamp
            self.events[record.name] = record
        elif isinstance(record, Foreign):
            self.skipped_kinds[record.kind] = self.skipped_kinds.get(record.kind, 0) + 1
        elif isinstance(record, Rewind):
            self.tree.rewind(record.target)
            return False
        return True

    def _note_due(self, record: Record) -> None:
        match record:
            case Message(role="assistant", silent=False, sidechain=False):
                self.due = None
                self.last_answer = record.message_id or record.uuid
            case Boundary(sidechain=False):
                self.due = "compaction"
            case Clear():
                # A clearing behind a compaction is part of the same break.
                self.due = "compaction" if self.due == "compaction" else "clearing"
            case Span():
                self.due = "collapse" if record.kind == "collapse" else "snip"
            case Revoke():
                self.due = "undo"
            case Rewind():
                self.due = "branch"
            case _:
                pass

    def _enter_tree(self, record: Placed) -> bool:
        if isinstance(record, Grown) and not self.tree.belongs(record):
            return True
        if self.tree.clashes(record):
            self.tree.duplicates += 1
            return True
        if isinstance(record, Grown):
            extends = self.tree.grow(record)
            self._note_owner(record)
            return extends
        extends = self.tree.hang(record)
        if isinstance(record, Revoke):
            self.revoked.add(record.target)
            self.decisions.pop(record.target, None)
            self.tree.retreat(self.records_of(record.target))
            return False
        return extends

    def _fold(self, view: View, record: Placed) -> None:
        node = self.tree.nodes.get(record.uuid)
        # Only results that joined out of order can follow a boundary that is not a member.
        view.add(record, rests_on=node.parent if node is not None and node.parent in self.tree.members else None)
        if isinstance(record, Boundary | Clear | Span | Spill):
            self.decisions[record.uuid] = record

    def refold(self, read: Callable[[], Iterable[Record]]) -> None:
        """Fold the records of the conversation again, without revoked decisions."""
        generation = self.view.generation
        view = self._seed()
        # The checkpoint may contain pins that were revoked after it.
        view.pins = {uuid: pin for uuid, pin in view.pins.items() if uuid not in self.revoked}
        # A record written twice keeps its first position and its last content.
        kept = {
            record.uuid: record
            for record in read()
            if isinstance(record, Placed) and (record.uuid in self.revoked or self._counts(record))
        }
        self.decisions = {}
        for record in kept.values():
            if record.uuid in self.revoked:
                view.note_undone(record)
            else:
                self._fold(view, record)
        view.generation += generation + 1
        self.view = view

    def prune(self) -> None:
        """Remove from the view what a rewind cut off. Used if the log cannot be read again because its disk is unavailable."""
        left = self.tree.nodes.keys() - self.tree.members.keys()
        self.view.drop(tuple(item.uuid for item in self.view.items if item.uuid in left))

    def _counts(self, record: Placed) -> bool:
        if record.uuid in self.revoked or self.tree.clashes(record):
            return False
        match record:
            case Message() | Attachment():
                if self._owners.get(record.uuid) in self.revoked:
                    return False
                return record.uuid in self.tree.members and self.tree.belongs(record)
            case Boundary():
                return record.uuid in self.tree.nodes
            case Snapshot():
                # The prompt does not depend on the branch: a resumed session sends the last one again.
                return True
            case _:
                return self.tree.holds(record)

    def records_of(self, decision: str) -> set[str]:
        """Return the ids of a decision and of the messages and attachments that belong to it."""
        return {decision, *(uuid for uuid, owner in self._owners.items() if owner == decision)}

    def _note_owner(self, record: Grown) -> None:
        if isinstance(record, Boundary):
            self.moved |= moved_by(record)
        elif record.by is not None:
            self._owners[record.uuid] = record.by
        else:
            self._note_summary(record)

    def _note_summary(self, record: Message | Attachment) -> None:
        """Find the boundary of a summary by another program, which does not name it: the nearest one above without a summary."""
        if not isinstance(record, Message) or not record.summary:
            return
        above = self.tree.boundary_above(record.uuid)
        if above is not None and above not in self._owners.values():
            self._owners[record.uuid] = above

    def check_undo(self, target: str) -> None:
        """Raise if `target` cannot be undone now.

        Span decisions depend on each other, so the latest is undone first. A clearing is independent. A spill is never undone.
        """
        decision = self.decisions.get(target)
        if isinstance(decision, Spill):
            file = f" ({decision.path})" if decision.path else ""
            raise UsageError(f"Cannot undo {target}: it is a spill, and its file{file} contains the full result.")
        if isinstance(decision, Boundary) and decision.receipt.get("by") == BY_RESUME:
            raise UsageError(
                f"Cannot undo {target}: the messages it replaces are too large to load. The transcript has all of them."
            )
        if decision is None or isinstance(decision, Clear):
            return
        spans = [
            uuid
            for uuid, decision in self.decisions.items()
            if isinstance(decision, Span) or (isinstance(decision, Boundary) and uuid in self.tree.members)
        ]
        if spans and spans[-1] != target:
            raise UndoOrder(target, spans[-1])


def moved_by(record: Record) -> dict[str, str]:
    """Return what a compaction adds to `Log.moved`."""
    preserved = record.preserved if isinstance(record, Boundary) else None
    return {preserved.anchor: preserved.uuids[-1]} if preserved is not None and preserved.uuids else {}


def checkpoint_state(log: Log, **more: Any) -> Wire:
    """Return the current state for a checkpoint; `more` is state of other packages (the estimator, cursors)."""
    view = log.view
    # A call in the view may still get its result, and decisions about that result must survive.
    calls = {block.id for _, block in view.blocks() if isinstance(block, ToolUse)}
    shown = calls | {block.tool_use_id for _, block in view.blocks() if isinstance(block, ToolResult)}
    return {
        "pins": [msgspec.to_builtins(pin) for pin in view.pins.values()],
        # The records after the checkpoint's offset tell whether a result that is shown once has been seen.
        "replaced": {
            call: content for call, content in view.replaced.items() if call in shown and view.once.get(call) != content
        },
        "once": {call: preview for call, preview in view.once.items() if call in shown},
        "shortened": {item.uuid: view.shortened[item.uuid] for item in view.items if item.uuid in view.shortened},
        "snapshot": msgspec.to_builtins(view.snapshot) if view.snapshot is not None else None,
        **more,
    }


def seeded(state: Wire) -> View:
    """Return an empty view with the state of a checkpoint. An invalid state is ignored; the records after it still count."""
    view = View()
    try:
        view.pins = {pin.uuid: pin for pin in msgspec.convert(state.get("pins") or [], list[Pin])}
        view.replaced = msgspec.convert(state.get("replaced") or {}, dict[str, str])
        view.once |= msgspec.convert(state.get("once") or {}, dict[str, str])
        view.shortened = msgspec.convert(state.get("shortened") or {}, dict[str, list[Wire]])
        view.snapshot = msgspec.convert(state.get("snapshot"), Snapshot | None)
    except msgspec.ValidationError:
        return View()
    return view
