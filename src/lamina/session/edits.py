"""What a person or a model shapes by hand: pins, snips, what is opened again, what is taken back. Both kinds of session have it.

None of it calls a model. Each change is a record, announced as a break where it changes what was sent, and can be undone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ..conversation import revision
from ..conversation.state import Conversation
from ..core.blocks import Text
from ..core.errors import InputError, UsageError
from ..core.log import Log
from ..core.records import Boundary, Clear, Pin, Span, Spill, new_id
from ..core.view import Item

if TYPE_CHECKING:  # layer 4 is loaded when somebody asks for it
    from ..fork.host import Source
    from ..layers.l4_compact.plan import Pivot
    from ..layers.l4_compact.step import CompactionPreview
    from ..tools.expand import ExpandedPage
    from .expand import Expansion

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


class UndoneDecision(NamedTuple):
    id: str
    kind: str  # compaction | clearing | snip | collapse | pin


class SessionEdits:
    _c: Conversation
    _open: Callable[[], AbstractContextManager[None]]
    _expansion: Expansion | None = None

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

    def expand(self, node: str, *, page_number: int = 1) -> ExpandedPage:
        """Show what a summary, a placeholder or a marker stands for, or a spilled result or a pin, page by page."""
        with self._open():
            return self._opened(node, page_number)

    def _opened(self, node: str, number: int | None) -> ExpandedPage:
        """`expand` for a tool, which runs while its turn holds the session; None: all pages."""
        if self._expansion is None:
            from .expand import Expansion

            self._expansion = Expansion(self._c)
        return self._expansion.open(node, number)

    def hide_messages(self, first: str = "", last: str = "", *, turns: str = "") -> str:
        """Take messages out of what the model sees: those between two ids, or whole turns by their numbers in `turns`, from 1: "2" or
        "2-4". Returns the id of the decision."""
        with self._open():
            from ..layers.l4_compact import collapse

            if turns:
                first, last = self._turn_range(turns)
            return collapse.snip(self._c, first, last or first).uuid

    def _turn_range(self, wanted: str) -> tuple[str, str]:
        turns = self.turns
        first, _, last = wanted.strip().partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            raise InputError("turns", f"{wanted!r} is no number and no range", "say 2, or 2-4")
        low, high = int(first), int(last or first)
        if not 1 <= low <= high <= len(turns):
            raise InputError("turns", f"{wanted} is not there", f"there are {len(turns)}")
        return turns[low - 1].first, turns[high - 1].last

    @property
    def turns(self) -> list[TurnInView]:
        """The turns in view, oldest first: what each began with, and the ids of its first and last message."""
        from ..conversation.compaction.cuts import is_said

        items = self._c.log.view.items
        starts = [index for index, item in enumerate(items) if is_said(item)]
        return [turn_in_view(items[start:end]) for start, end in pairwise([*starts, len(items)])]

    def preview_compaction(self, *, pivot: Pivot | None = None) -> CompactionPreview:
        """What compact() would do, without a call and without a change (B1)."""
        with self._open():
            from ..layers.l4_compact import step as compact

            return compact.preview(self._c, pivot=pivot)


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
