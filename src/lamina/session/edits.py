"""Edits of a conversation by hand: pins, hidden messages, undo of a change, undo of a turn.

No edit calls a model. Each one is a record and can be undone. If it changes messages that were already sent, it is recorded as a
cache break too. Undoing a turn changes the conversation only: the memories it saved are named, and the user decides about them, because a
memory outlives its conversation.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ..conversation import revision
from ..conversation.compaction.cuts import is_said
from ..conversation.state import Conversation
from ..core.blocks import Text, ToolResult, ToolUse
from ..core.errors import InputError, UsageError
from ..core.log import Log
from ..core.receipts import read_receipt
from ..core.records import Boundary, Clear, Pin, Span, Spill, new_id
from ..core.view import Item
from ..disk.session_files.spills import DIRECTORY
from ..disk.transcripts.store import load_whole
from ..language.text import Text as Sentence

if TYPE_CHECKING:
    from ..memory.store.change_sets import SetChange
    from .memory_binding import MemoryBinding

# Minimum length of an abbreviated id.
SHORTEST = 4


class TurnInView(msgspec.Struct, frozen=True):
    """A turn as the model currently sees it."""

    words: str  # the text of the user message that started it
    messages: int  # number of messages in it
    first: str  # id of its first message
    last: str  # id of its last message


class Decision(msgspec.Struct, frozen=True):
    """A change of what the model sees, by a layer or by hand. All but a spill can be undone."""

    id: str
    kind: str  # compaction | partial | collapse | snip | clearing | spill | pin
    time: str
    trigger: str = ""  # of a compaction (auto, manual) or a clearing (size, cold, idle, repeated, auto, manual)
    messages: tuple[
        str, ...
    ] = ()  # ids of the messages that it hides, shortens or keeps; those of a compaction are shown by `expand`
    calls: tuple[str, ...] = ()  # ids of the tool calls whose results it replaces
    text: str = ""  # what a pin keeps: its text, or `message ID`


class UndoneTurn(msgspec.Struct, frozen=True):
    """The turn that `undo_turn` removed from the conversation."""

    words: str  # the user's message
    answers: int  # number of answers
    calls: tuple[str, ...]  # names of the tools that were called
    memories: tuple[SetChange, ...] = ()  # what it changed in memory; this is not undone yet
    files: tuple[str, ...] = ()  # other files that Write and Edit changed; they stay changed
    commands: tuple[str, ...] = ()  # shell commands that ran and may have changed files
    messages: tuple[str, ...] = ()  # the ids of its messages


def pin(c: Conversation, text: str | None, message: str | None) -> str:
    """Pin a text or a message, and return the id of the pin. A message that is pinned keeps its pin."""
    from ..conversation.pins import refuse_too_large

    if (text is None or not text.strip()) == (message is None):
        raise InputError("pin", "pass either a text or a message id")
    if message is not None:
        if all(item.uuid != message for item in c.log.view.items):
            raise InputError("pin", f"message {message} is not in view", "pin a message that the model currently sees")
        for uuid, existing in c.log.view.pins.items():
            if existing.target == message:
                return uuid
    record = Pin(new_id(), c.log.tree.leaf, c.clock(), target=message, text=text)
    refuse_too_large(c, record)
    c.append([record])
    return record.uuid


def decisions(c: Conversation) -> list[Decision]:
    """Return the changes that are in force, oldest first."""
    pins = [
        Decision(
            pin.uuid, "pin", pin.time, messages=(pin.target,) if pin.target else (), text=pin.text or f"message {pin.target}"
        )
        for pin in c.log.view.pins.values()
    ]
    return sorted((*_standing(c.log), *pins), key=lambda decision: decision.time)


def undo(c: Conversation, wanted: str | None) -> Decision:
    """Undo the change with this id, or the start of it; None means the latest change other than a pin."""
    decision = _undoable(c, wanted)
    revision.undo(c, decision.id)
    return decision


def _undoable(c: Conversation, wanted: str | None) -> Decision:
    if wanted is None:
        undoable = [decision for decision in _standing(c.log) if decision.kind != "spill"]
        if not undoable:
            raise UsageError("There is nothing to undo: this session has no compactions, clearings or hidden messages.")
        return undoable[-1]
    named = [decision for decision in decisions(c) if decision.id.startswith(wanted) and len(wanted) >= SHORTEST]
    spilled = any(decision.kind == "spill" for decision in named)
    if not named and c.start and len(wanted) >= SHORTEST:
        # A later compaction may have dropped it from memory. Then the undo fails and names the one to undo first.
        named = [decision for decision in _standing(load_whole(c.store)) if decision.id.startswith(wanted)]
    matches = [decision for decision in named if decision.kind != "spill"]
    if len(matches) != 1:
        problem = (
            f"{wanted!r} matches more than one change" if matches else Sentence("no change with id {wanted!r}", wanted=wanted)
        )
        hint = "a spilled result cannot be undone, use expand to read it" if spilled else "`lamina sessions show` lists the ids"
        raise InputError("undo", problem, hint)
    return matches[0]


def _standing(log: Log) -> list[Decision]:
    """Return the decisions in force, oldest first. A compaction on another branch is not."""
    records = log.decisions.values()
    return [_described(record) for record in records if not isinstance(record, Boundary) or record.uuid in log.tree.members]


def _described(record: Boundary | Clear | Span | Spill) -> Decision:
    match record:
        case Boundary():
            return Decision(record.uuid, "compaction", record.time, record.trigger)
        case Clear():
            return Decision(record.uuid, "clearing", record.time, record.trigger, tuple(record.shortened), tuple(record.markers))
        case Span():
            return Decision(record.uuid, record.kind, record.time, messages=record.ids)
        case Spill():
            return Decision(record.uuid, "spill", record.time, calls=(record.tool_use_id,))


def turns_in_view(c: Conversation) -> list[TurnInView]:
    """Return the turns that the model currently sees, oldest first."""
    items = c.log.view.items
    starts = [index for index, item in enumerate(items) if is_said(item)]
    turns = [items[start:end] for start, end in pairwise([*starts, len(items)])]
    return [TurnInView(" ".join(_words(turn[0]).split()), len(turn), turn[0].uuid, turn[-1].uuid) for turn in turns]


def hide(c: Conversation, first: str, last: str, turns: str) -> str:
    """Hide the messages from `first` to `last`, or whole turns by number, and return the id of the change."""
    from ..layers.l4_compact import collapse

    if not first and not turns:
        raise InputError("hide_messages", "no messages are named", "pass the ids of messages, or turns")
    if turns:
        listed = turns_in_view(c)
        low, _, high = turns.strip().partition("-")
        if not low.isdecimal() or (high and not high.isdecimal()):
            raise InputError("turns", Sentence("{wanted!r} is not a number or a range", wanted=turns), "use a form like 2 or 2-4")
        if not 1 <= int(low) <= int(high or low) <= len(listed):
            problem = Sentence(
                "turn {wanted} does not exist (the session has {n} turn)|turn {wanted} does not exist (the session has {n} turns)",
                wanted=turns,
                n=len(listed),
            )
            raise InputError("turns", problem)
        first, last = listed[int(low) - 1].first, listed[int(high or low) - 1].last
    return collapse.snip(c, first, last or first).uuid


def undo_turn(c: Conversation, memory: MemoryBinding) -> UndoneTurn:
    """Continue before the user's last message, and return what was removed."""
    items = c.log.view.items
    last = next((index for index in range(len(items) - 1, -1, -1) if is_said(items[index])), None)
    if last is None:
        raise UsageError("There is nothing to undo: this session has no user message in view.")
    removed = items[last:]
    answers = {item.key or item.uuid for item in removed if item.role == "assistant"}
    calls = [block.name for item in removed for block in item.blocks if isinstance(block, ToolUse)]
    revision.rewind(c, c.log.tree.nodes[removed[0].uuid].parent)
    messages = tuple(item.uuid for item in removed)
    files, commands = _lasting(c.cwd, memory, removed)
    memories = memory.changes_for(messages)
    return UndoneTurn(_words(removed[0]), len(answers), tuple(calls), memories, files, commands, messages)


def _lasting(cwd: Path, memory: MemoryBinding, removed: Iterable[Item]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the files outside memory that these messages changed, and their commands that may have changed some."""
    from ..tools.bash import has_run
    from ..tools.permissions.readonly.paths import within
    from ..tools.permissions.readonly.plan import ReadOnlyPlan, plan_readonly

    blocks = [block for item in removed for block in item.blocks]
    results = {block.tool_use_id: block for block in blocks if isinstance(block, ToolResult)}
    calls = [(block, results[block.id]) for block in blocks if isinstance(block, ToolUse) and block.id in results]
    directories = [str(path) for path in memory.directories]
    written = [_argument(call, "file_path") for call, result in calls if call.name in ("Write", "Edit") and not result.is_error]
    files = [path for path in written if not any(within(str(cwd / path), directory) for directory in directories)]
    ran = [_argument(call, "command") for call, result in calls if call.name == "Bash" and has_run(result)]
    plans = [(command, plan_readonly(command, cwd=cwd, roots=(cwd,))) for command in ran]
    return tuple(files), tuple(command for command, plan in plans if not isinstance(plan, ReadOnlyPlan))


def _argument(call: ToolUse, name: str) -> str:
    """Return an argument of a call. A host's own tool of the same name may take others."""
    return str(call.input.get(name, "")) if isinstance(call.input, dict) else ""


def _words(item: Item) -> str:
    return " ".join(block.text for block in item.blocks if isinstance(block, Text))


def find_result(c: Conversation, name: str) -> Path:
    """Return the file of a cleared result: in this session's directory, or in that of the session it continues."""
    own = (c.directory or Path()) / DIRECTORY / name
    clears = (decision for decision in c.log.decisions.values() if isinstance(decision, Clear))
    stored = (part.where for clear in clears for part in read_receipt(clear.uuid, clear.receipt).ranges if part.fate == "cleared")
    elsewhere = (Path(where).with_name(name) for where in stored if where)
    return next((path for path in (own, *elsewhere) if path.is_file()), own)
