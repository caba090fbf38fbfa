"""Finds the original text behind an id: a pin, a spilled result, or the messages that a change removed from view."""

from __future__ import annotations

from pathlib import Path

from ..conversation.compaction.user_messages import words_of
from ..conversation.state import Conversation
from ..core.blocks import ToolResult
from ..core.log import Log
from ..core.receipts import read_receipt
from ..core.records import Clear, Message, Spill
from ..disk.session_files.spills import DIRECTORY
from ..disk.transcripts.store import load_whole
from ..layers.l1_results.reopen import spilled_text
from ..layers.l4_compact.expand import find_decision, page_of, stands_for, text_of
from ..tools.tool import ExpandedPage

# Minimum length of an abbreviated id.
SHORTEST = 4


class Expansion:
    """Expands ids of one conversation.

    Removed messages never change and their pages are usually read in a row, so the last text is cached.
    """

    def __init__(self, c: Conversation) -> None:
        self._c = c
        self._node = ""
        self._text = ""

    def open(self, node: str, number: int | None) -> ExpandedPage:
        """Return one page of the text, or all of it if `number` is None."""
        text = self._whole(node)
        return page_of(text, number) if number is not None else ExpandedPage(text, 1, 1)

    def _whole(self, node: str) -> str:
        if (pinned := self._pin_text(node)) is not None:
            return pinned
        if (spill := self._spill(node)) is not None:
            return spilled_text(spill, self._c.directory)
        if (call := self._cleared(node)) is not None:
            return call
        if self._node != node:
            self._text, self._node = text_of(stands_for(self._c.store, node)), node
        return self._text

    def _pin_text(self, node: str) -> str | None:
        """Return the full text of a pin, which a compaction may have shortened in view. A pinned message is read from the log."""
        matching = [pin for uuid, pin in self._c.log.view.pins.items() if uuid.startswith(node)] if len(node) >= SHORTEST else []
        if len(matching) != 1:
            return None
        if matching[0].text is not None:
            return matching[0].text
        records = (one for one in self._c.store.read() if isinstance(one, Message) and one.uuid == matching[0].target)
        return words_of([block for record in records for block in record.blocks])

    def _cleared(self, call: str) -> str | None:
        """Return the result of a call that was cleared. Its marker names the call if the model cannot open files."""
        found = cleared_in(self._c.log, call)
        if found is None and self._c.start and find_decision(self._c.store, call) is None:
            found = cleared_in(load_whole(self._c.store), call)
        if found is None:
            return None
        blocks = (block for item in stands_for(self._c.store, found.uuid) for block in item.blocks)
        return next((block.text for block in blocks if isinstance(block, ToolResult) and block.tool_use_id == call), None)

    def _spill(self, node: str) -> Spill | None:
        """Look for the spill in memory, then in the whole log: a compaction drops the record from memory but keeps the file."""
        found = spill_in(self._c.log, node)
        if found is None and node and self._c.start and find_decision(self._c.store, node) is None:
            found = spill_in(load_whole(self._c.store), node)
        return found


def find_result(c: Conversation, name: str) -> Path:
    """Return the file of a cleared result: in this session's directory, or in that of the session it continues."""
    own = (c.directory or Path()) / DIRECTORY / name
    cleared = (one for one in c.log.decisions.values() if isinstance(one, Clear))
    saved = (part.where for one in cleared for part in read_receipt(one.uuid, one.receipt).ranges if part.fate == "cleared")
    elsewhere = (Path(where).with_name(name) for where in saved if where)
    return next((path for path in (own, *elsewhere) if path.is_file()), own)


def cleared_in(log: Log, call: str) -> Clear | None:
    clears = (one for one in log.decisions.values() if isinstance(one, Clear))
    return next((one for one in clears if call in one.markers), None)


def spill_in(log: Log, node: str) -> Spill | None:
    spills = (one for one in log.decisions.values() if isinstance(one, Spill))
    return next((one for one in spills if node in (one.uuid, one.tool_use_id)), None)
