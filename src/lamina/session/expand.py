"""What an id in a conversation stands for, opened again: a pin, a spilled result, or what a decision took out of view."""

from __future__ import annotations

from ..conversation.compaction.user_messages import words_of
from ..conversation.state import Conversation
from ..core.log import Log
from ..core.records import Message, Spill
from ..layers.l1_results.reopen import spilled_text
from ..layers.l4_compact.expand import find_decision, page_of, stands_for, text_of
from ..tools.expand import ExpandedPage

# The beginning of an id that is worth comparing.
SHORTEST = 4


class Expansion:
    """Opens nodes of one conversation. What a decision took out never changes, and its pages are asked for one after another: the text
    opened last is kept."""

    def __init__(self, c: Conversation) -> None:
        self._c = c
        self._node = ""
        self._text = ""

    def open(self, node: str, number: int | None) -> ExpandedPage:
        """Return one page; all of it where `number` is None."""
        text = self._whole(node)
        return page_of(text, number) if number is not None else ExpandedPage(text, 1, 1)

    def _whole(self, node: str) -> str:
        if (pinned := self._pin_text(node)) is not None:
            return pinned
        if (spill := self._spill(node)) is not None:
            return spilled_text(spill, self._c.directory)
        if self._node != node:
            self._text, self._node = text_of(stands_for(self._c.store, node)), node
        return self._text

    def _pin_text(self, node: str) -> str | None:
        """All of what a pin keeps: a compaction may have had to cut it. A message's words are in the log."""
        matching = [pin for uuid, pin in self._c.log.view.pins.items() if uuid.startswith(node)] if len(node) >= SHORTEST else []
        if len(matching) != 1:
            return None
        if matching[0].text is not None:
            return matching[0].text
        records = (one for one in self._c.store.read() if isinstance(one, Message) and one.uuid == matching[0].target)
        return words_of([block for record in records for block in record.blocks])

    def _spill(self, node: str) -> Spill | None:
        """Among what is in memory, else in the whole log: a compaction takes the decision out of view, not the file."""
        found = spill_in(self._c.log, node)
        if found is None and node and self._c.start and find_decision(self._c.store, node) is None:
            found = spill_in(Log.load(self._c.store.read), node)
        return found


def spill_in(log: Log, node: str) -> Spill | None:
    spills = (one for one in log.decisions.values() if isinstance(one, Spill))
    return next((one for one in spills if node in (one.uuid, one.tool_use_id)), None)
