"""What a person or a model shapes by hand: pins, snips, what is opened again, what is taken back. Both kinds of session have it.

None of it calls a model. Each change is a record, announced as a break where it changes what was sent, and can be undone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ..conversation import revision
from ..conversation.state import Conversation
from ..core.blocks import Text
from ..core.errors import InputError, UsageError
from ..core.ids import new_id
from ..core.log import Log
from ..core.records import Boundary, Clear, Message, Pin, Span, Spill
from ..core.view import Item

if TYPE_CHECKING:  # layer 4 is loaded when somebody asks for it
    from ..fork.host import Source
    from ..layers.l4_compact.expand import Page
    from ..layers.l4_compact.plan import Pivot
    from ..layers.l4_compact.step import Preview
    from ..tools.expand import Opened

# The beginning of an id that is worth comparing.
SHORTEST = 4


class TurnInView(NamedTuple):
    """A turn in view."""

    words: str
    messages: int
    first: str
    last: str


def turn_in_view(items: Sequence[Item]) -> TurnInView:
    words = " ".join(block.text for block in items[0].blocks if isinstance(block, Text))
    return TurnInView(" ".join(words.split()), len(items), items[0].uuid, items[-1].uuid)


class LastOpened(msgspec.Struct):
    """What was opened last, as text: it never changes, and its pages are asked for one after another."""

    node: str = ""
    text: str = ""


class UndoneDecision(NamedTuple):
    id: str
    kind: str  # compaction | clearing | snip | collapse | pin


class SessionEdits:
    _c: Conversation
    _open: Callable[[], AbstractContextManager[None]]

    def pin(self, text: str | None = None, *, message: str | None = None) -> str:
        """Keep a text, or a message in view (by its id), word for word through every compaction (B2). The pin's id is returned."""
        with self._open():
            if (text is None or not text.strip()) == (message is None):
                raise InputError("pin", "give a text or a message's id, one of them")
            if message is not None and all(item.uuid != message for item in self._c.log.view.items):
                raise InputError("pin", f"message {message} is not in view", "pin one the model sees now")
            if message is not None and (known := self._pinned(message)) is not None:
                return known
            from ..conversation import pins

            pin = Pin(new_id(), self._c.log.tree.leaf, self._c.clock(), target=message, text=text)
            pins.refuse_too_large(self._c, pin)
            self._c.append([pin])
            return pin.uuid

    def _pinned(self, message: str) -> str | None:
        """A message is kept once, however often it is pinned."""
        return next((pin.uuid for pin in self._c.log.view.pins.values() if pin.target == message), None)

    def restore_after_compaction(self, kind: str, key: str, text: Source | None) -> None:
        """Have a text back in view behind every compaction (C4): a `skill`, the `plan`, `tools`, `agents`, `mcp`, or a kind of your
        own. A function is asked at each compaction and may answer None. The same kind and key again takes its place as the newest;
        None takes it away."""
        with self._open():
            if not kind.strip() or not key.strip():
                raise InputError("restore_after_compaction", "the kind or the key is empty", "name both")
            self._c.register_restorable(kind, key, text)

    @property
    def pins(self) -> dict[str, str]:
        """Pin → its text, or the id of the message it keeps."""
        return {uuid: pin.text or f"message {pin.target}" for uuid, pin in self._c.log.view.pins.items()}

    def undo(self, decision: str | None = None) -> UndoneDecision:
        """Take back a compaction, clearing, snip, collapse or pin: by its id, the beginning of one, or the last one made."""
        with self._open():
            found = self._undoable(decision)
            revision.undo(self._c, found.id)
            return found

    def _undoable(self, wanted: str | None) -> UndoneDecision:
        known = _standing(self._c.log)
        pins = [UndoneDecision(uuid, "pin") for uuid in self._c.log.view.pins]
        if wanted is None:
            if not known:
                raise UsageError("There is nothing to undo: no compaction, clearing or snip stands.")
            return known[-1]
        matching = [one for one in (*known, *pins) if one.id.startswith(wanted) and len(wanted) >= SHORTEST]
        if not matching and self._c.start and len(wanted) >= SHORTEST:
            # One that a later compaction took out of memory: the undo itself says which to undo first.
            matching = [one for one in _standing(Log.load(self._c.store.read)) if one.id.startswith(wanted)]
        if len(matching) != 1:
            problem = "begins more than one decision" if matching else "is no decision that stands"
            spilled = any(uuid.startswith(wanted) for uuid, one in self._c.log.decisions.items() if isinstance(one, Spill))
            hint = "a spill is not undone: expand opens its file" if spilled else "lamina sessions show lists them"
            raise InputError("undo", f"{wanted!r} {problem}", hint)
        return matching[0]

    def expand(self, node: str, *, page_number: int = 1) -> Page:
        """What a summary, a snip, a collapse or a clearing stands for, or a spilled result, page by page."""
        with self._open():
            from ..layers.l4_compact.expand import Page

            return Page(*self._opened(node, page_number))

    def _opened(self, node: str, number: int | None) -> Opened:
        """`expand` for a tool, which runs while its turn holds the session; None: all pages."""
        from ..layers.l1_results.reopen import open_spill
        from ..layers.l4_compact.expand import Page, page, stands_for
        from ..tools.expand import Opened

        if (pinned := self._pin_text(node)) is not None:
            shown = page_in(pinned, number or 1) if number is not None else Page(pinned, 1, 1)
        elif (spill := self._spilled(node)) is not None:
            held = open_spill(spill, self._c.directory)
            shown = page_in(held, number or 1) if number is not None else Page(_text_of(held), 1, 1)
        else:
            last = self._c.layer_state(LastOpened)
            if last.node != node:
                last.text = page(stands_for(self._c.store, node), 1, size=sys.maxsize).text
                last.node = node
            shown = page_in(last.text, number) if number is not None else Page(last.text, 1, 1)
        return Opened(*shown)

    def _pin_text(self, node: str) -> str | None:
        """All of what a pin keeps: a compaction may have had to cut it. A message's words are in the log."""
        from ..conversation.compaction.user_messages import words_of

        matching = [pin for uuid, pin in self._c.log.view.pins.items() if uuid.startswith(node)] if len(node) >= SHORTEST else []
        if len(matching) != 1:
            return None
        if matching[0].text is not None:
            return matching[0].text
        records = (one for one in self._c.store.read() if isinstance(one, Message) and one.uuid == matching[0].target)
        return words_of([block for record in records for block in record.blocks])

    def _spilled(self, node: str) -> Spill | None:
        """Among what is in memory, else in the whole log: a compaction takes the decision out of view, not the file."""
        from ..layers.l4_compact.expand import find_decision

        found = _spill_in(self._c.log, node)
        if found is None and node and self._c.start and find_decision(self._c.store, node) is None:
            found = _spill_in(Log.load(self._c.store.read), node)
        return found

    def hide_messages(self, first: str, last: str | None = None) -> str:
        """Take the messages between two ids out of what the model sees (C10); the decision's id is returned."""
        with self._open():
            from ..layers.l4_compact import collapse as fold

            return fold.snip(self._c, first, last or first).uuid

    @property
    def turns(self) -> list[TurnInView]:
        """The turns in view, oldest first: what each began with, and the ids of its first and last message."""
        from ..conversation.compaction.cuts import is_said

        items = self._c.log.view.items
        starts = [index for index, item in enumerate(items) if is_said(item)]
        return [turn_in_view(items[start:end]) for start, end in pairwise([*starts, len(items)])]

    def hide_turns(self, wanted: str) -> str:
        """Take turns out by their numbers in `turns`, from 1: "2" or "2-4"."""
        turns = self.turns
        first, _, last = wanted.strip().partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            raise InputError("turns", f"{wanted!r} is no number and no range", "say 2, or 2-4")
        low, high = int(first), int(last or first)
        if not 1 <= low <= high <= len(turns):
            raise InputError("turns", f"{wanted} is not there", f"there are {len(turns)}")
        return self.hide_messages(turns[low - 1].first, turns[high - 1].last)

    def preview_compaction(self, *, pivot: Pivot | None = None) -> Preview:
        """What compact() would do, without a call and without a change (B1)."""
        with self._open():
            from ..layers.l4_compact import step as compact

            return compact.preview(self._c, pivot=pivot)


def _spill_in(log: Log, node: str) -> Spill | None:
    spills = (one for one in log.decisions.values() if isinstance(one, Spill))
    return next((one for one in spills if node in (one.uuid, one.tool_use_id)), None)


def _standing(log: Log) -> list[UndoneDecision]:
    """What can be undone, oldest first."""
    return [
        UndoneDecision(uuid, _kind(one))
        for uuid, one in log.decisions.items()
        if not isinstance(one, Spill) and (not isinstance(one, Boundary) or uuid in log.tree.members)
    ]


def _kind(decision: Boundary | Clear | Span | Spill) -> str:
    match decision:
        case Boundary():
            return "compaction"
        case Clear():
            return "clearing"
        case Span():
            return decision.kind
        case Spill():
            return "spill"


def _text_of(held: str | bytes) -> str:
    return held if isinstance(held, str) else held.decode("utf-8", "replace")


def page_in(held: str | bytes, number: int) -> Page:
    """One page of a spilled result."""
    from ..layers.l4_compact.expand import PAGE, Page

    text = _text_of(held)
    pages = max(1, -(-len(text) // PAGE))
    if not 1 <= number <= pages:
        raise InputError("page", f"there are {pages} pages", "ask for one of them")
    return Page(text[(number - 1) * PAGE : number * PAGE], number, pages)
