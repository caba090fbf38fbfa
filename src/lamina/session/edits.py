"""Manual edits of a conversation, for both kinds of session: pins, hidden messages, expansion and undo.

No edit calls a model. Each one is a record and can be undone. If it changes messages that were already sent, it is recorded as a
cache break too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from types import NoneType
from typing import TYPE_CHECKING

import msgspec

from ..conversation import revision
from ..conversation.state import Conversation
from ..core.blocks import Text, Wire
from ..core.errors import InputError, UsageError
from ..core.inputs import check_type
from ..core.log import Log
from ..core.records import Boundary, Clear, Pin, Span, Spill, new_id
from ..core.view import Item
from ..disk.transcripts.store import load_whole
from ..language.wording import counted

if TYPE_CHECKING:  # layer 4 is imported on first use
    from pathlib import Path

    from ..fork.host import Source
    from ..layers.l4_compact.plan import Pivot
    from ..layers.l4_compact.step import CompactionPreview
    from ..tools.tool import ExpandedPage
    from .expand import Expansion

# Minimum length of an abbreviated id.
SHORTEST = 4


class TurnInView(msgspec.Struct, frozen=True):
    """A turn as the model currently sees it."""

    words: str  # the text of the user message that started it
    messages: int  # number of messages in it
    first: str  # id of its first message
    last: str  # id of its last message


def turn_in_view(items: Sequence[Item]) -> TurnInView:
    words = " ".join(block.text for block in items[0].blocks if isinstance(block, Text))
    return TurnInView(" ".join(words.split()), len(items), items[0].uuid, items[-1].uuid)


class UndoneDecision(msgspec.Struct, frozen=True):
    """The change that `undo` reverted."""

    id: str
    kind: str  # compaction | clearing | snip | collapse | pin


class SessionEdits:
    """The methods that edit a conversation by hand."""

    _c: Conversation
    _open: Callable[[], AbstractContextManager[None]]
    _expansion: Expansion | None = None

    def pin(self, text: str | None = None, *, message: str | None = None) -> str:
        """Keep a text or a message word for word through every compaction.

        Args:
            text: The text to keep.
            message: Id of the message to keep. Give either this or `text`.

        Returns:
            The id of the pin; pass it to `undo` to remove the pin. Pinning the same message again returns the existing pin.

        Raises:
            InputError: Both or neither of the arguments are given, the message is not in view, or the text is too large.
        """
        check_type("text", text, str, NoneType)
        check_type("message", message, str, NoneType)
        with self._open():
            if (text is None or not text.strip()) == (message is None):
                raise InputError("pin", "pass either a text or a message id")
            if message is not None and all(item.uuid != message for item in self._c.log.view.items):
                raise InputError("pin", f"message {message} is not in view", "pin a message that the model currently sees")
            if message is not None and (known := self._pinned(message)) is not None:
                return known
            from ..conversation import pins

            pin = Pin(new_id(), self._c.log.tree.leaf, self._c.clock(), target=message, text=text)
            pins.refuse_too_large(self._c, pin)
            self._c.append([pin])
            return pin.uuid

    def _pinned(self, message: str) -> str | None:
        """Return the pin that already keeps this message, if any."""
        return next((pin.uuid for pin in self._c.log.view.pins.values() if pin.target == message), None)

    def restore_after_compaction(self, kind: str, key: str, text: Source | None) -> None:
        """Show a text to the model again after every compaction.

        Args:
            kind: What the text is: `skill`, `plan`, `tools`, `agents`, `mcp`, or a kind you define.
            key: Identifies the text within its kind. Registering the same kind and key again replaces the text and makes it the
                newest.
            text: The text, or a function that is called at each compaction and returns the text or None. None unregisters it.

        Raises:
            InputError: The kind or the key is empty.
        """
        check_type("kind", kind, str)
        check_type("key", key, str)
        with self._open():
            if not kind.strip() or not key.strip():
                raise InputError("restore_after_compaction", "the kind or the key is empty", "pass both")
            self._c.register_restorable(kind, key, text)

    @property
    def pins(self) -> dict[str, str]:
        """The pins in effect, by id: the pinned text, or `message ID` for a pinned message."""
        return {uuid: pin.text or f"message {pin.target}" for uuid, pin in self._c.log.view.pins.items()}

    def undo(self, decision: str | None = None) -> UndoneDecision:
        """Undo a compaction, a clearing, hidden or collapsed messages, or a pin.

        Args:
            decision: Id of the change, or the start of it. Defaults to the latest change other than a pin.

        Returns:
            The id and the kind of what was undone.

        Raises:
            UsageError: There is nothing to undo.
            UndoOrder: A later change depends on this one and must be undone first.
            InputError: The id is unknown or ambiguous.
        """
        check_type("decision", decision, str, NoneType)
        with self._open():
            found = self._undoable(decision)
            revision.undo(self._c, found.id)
            return found

    def _undoable(self, wanted: str | None) -> UndoneDecision:
        known = _standing(self._c.log)
        pins = [UndoneDecision(uuid, "pin") for uuid in self._c.log.view.pins]
        if wanted is None:
            if not known:
                raise UsageError("There is nothing to undo: this session has no compactions, clearings or hidden messages.")
            return known[-1]
        matching = [one for one in (*known, *pins) if one.id.startswith(wanted) and len(wanted) >= SHORTEST]
        if not matching and self._c.start and len(wanted) >= SHORTEST:
            # A later compaction may have dropped it from memory. Then the undo fails and names the one to undo first.
            matching = [one for one in _standing(load_whole(self._c.store)) if one.id.startswith(wanted)]
        if len(matching) != 1:
            problem = f"{wanted!r} matches more than one change" if matching else f"no change with id {wanted!r}"
            spilled = any(uuid.startswith(wanted) for uuid, one in self._c.log.decisions.items() if isinstance(one, Spill))
            hint = (
                "a spilled result cannot be undone, use expand to read it" if spilled else "`lamina sessions show` lists the ids"
            )
            raise InputError("undo", problem, hint)
        return matching[0]

    def expand(self, node: str, *, page_number: int = 1) -> ExpandedPage:
        """Return the original text behind a summary, placeholder, marker, spilled result or pin.

        Args:
            node: The id of the summary, change, tool call or pin.
            page_number: The page to return, counted from 1.

        Returns:
            The text of the page, its number and the number of pages.

        Raises:
            InputError: The id or the page does not exist.
        """
        check_type("node", node, str)
        check_type("page_number", page_number, int)
        with self._open():
            return self._opened(node, page_number)

    def _opened(self, node: str, number: int | None) -> ExpandedPage:
        """Expand without taking the lock, for a tool that runs while its turn holds the session. None returns all pages."""
        if self._expansion is None:
            from .expand import Expansion

            self._expansion = Expansion(self._c)
        return self._expansion.open(node, number)

    def _find_result(self, name: str) -> Path:
        """Return the file of a cleared result, for a tool that runs while its turn holds the session."""
        from .expand import find_result

        return find_result(self._c, name)

    def hide_messages(self, first: str = "", last: str = "", *, turns: str = "") -> str:
        """Hide messages from the model. The transcript keeps them, and `undo` shows them again.

        Args:
            first: Id of the first message to hide.
            last: Id of the last message to hide. Defaults to `first`.
            turns: Hide whole turns instead, by their position in the list `turns`, counted from 1: `"2"` or `"2-4"`.

        Returns:
            The id of the change, for `undo` and `expand`.

        Raises:
            InputError: The messages or turns do not exist, or cannot be hidden.
            UsageError: The setting `lamina.snip` disables hiding.
        """
        for name, text in (("first", first), ("last", last), ("turns", turns)):
            check_type(name, text, str)
        with self._open():
            from ..layers.l4_compact import collapse

            if not first and not turns:
                raise InputError("hide_messages", "no messages are named", "pass the ids of messages, or turns")
            if turns:
                first, last = self._turn_range(turns)
            return collapse.snip(self._c, first, last or first).uuid

    def _turn_range(self, wanted: str) -> tuple[str, str]:
        turns = self.turns
        first, _, last = wanted.strip().partition("-")
        if not first.isdecimal() or (last and not last.isdecimal()):
            raise InputError("turns", f"{wanted!r} is not a number or a range", "use a form like 2 or 2-4")
        low, high = int(first), int(last or first)
        if not 1 <= low <= high <= len(turns):
            raise InputError("turns", f"turn {wanted} does not exist (the session has {counted(len(turns), 'turn')})")
        return turns[low - 1].first, turns[high - 1].last

    @property
    def turns(self) -> list[TurnInView]:
        """The turns that the model currently sees, oldest first."""
        from ..conversation.compaction.cuts import is_said

        items = self._c.log.view.items
        starts = [index for index, item in enumerate(items) if is_said(item)]
        return [turn_in_view(items[start:end]) for start, end in pairwise([*starts, len(items)])]

    @staticmethod
    def compact_tool() -> Wire:
        """Return the definition of a tool with which the model can ask for a compaction.

        Pass it among the `tools` of the session. When the model calls it, pass the call to `answer_tool`, or send
        back the text that `request_compaction` returns.
        """
        from ..tools.conversation_tools import compact_tool
        from ..tools.tool import definition

        return definition(compact_tool())

    def request_compaction(self, instructions: str = "") -> str:
        """Compact before the next call, because the model asked for it.

        Args:
            instructions: What the summary should focus on.

        Returns:
            The text of the tool result: the request was accepted, or why not.
        """
        with self._open():
            return self._answer_request(instructions)

    def _answer_request(self, instructions: str) -> str:
        """Answer without taking the lock, for a tool that runs while its turn holds the session."""
        from ..layers.l4_compact import step as compact

        return compact.answer_request(self._c, instructions)

    def preview_compaction(self, *, pivot: Pivot | None = None) -> CompactionPreview:
        """Return what `compact` would do, without calling a model or changing anything.

        Args:
            pivot: As for `compact`.

        Returns:
            The ids that would be summarised and kept, the token counts before and after (an estimate), and the files and pins that
            would be restored.
        """
        with self._open():
            from ..layers.l4_compact import step as compact
            from ..layers.l4_compact.plan import Pivot

            check_type("pivot", pivot, Pivot, NoneType)
            return compact.preview(self._c, pivot=pivot)


def _standing(log: Log) -> list[UndoneDecision]:
    """Return the changes that can be undone, oldest first."""
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
