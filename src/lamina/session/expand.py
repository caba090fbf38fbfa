"""Finds the original text behind an id: a pin, a spilled result, or the messages that a change removed from view."""

from __future__ import annotations

from ..conversation.compaction.user_messages import words_of
from ..conversation.state import Conversation
from ..core.blocks import ToolResult
from ..core.log import Log
from ..core.records import Clear, Message, Spill
from ..disk.transcripts.store import load_whole
from ..layers.l1_results.reopen import spilled_text
from ..layers.l4_compact.expand import find_decision, page_of, stands_for, text_of
from ..tools.tool import ExpandedPage
from .edits import SHORTEST


class LastExpanded:
    """The last text that was expanded. Removed messages never change, and their pages are usually read in a row."""

    def __init__(self) -> None:
        self.node = ""
        self.text = ""


def open_page(c: Conversation, node: str, number: int | None) -> ExpandedPage:
    """Return one page of the text behind an id, or all of it if `number` is None."""
    text = _pin_text(c, node)
    if text is None and (spill := _spill(c, node)) is not None:
        text = spilled_text(spill, c.directory)
    if text is None and (text := _cleared_text(c, node)) is None:
        last = c.layer_state(LastExpanded)
        if last.node != node:
            last.text, last.node = text_of(stands_for(c.store, node)), node
        text = last.text
    return page_of(text, number) if number is not None else ExpandedPage(text, 1, 1)


def _pin_text(c: Conversation, node: str) -> str | None:
    """Return the full text of a pin, which a compaction may have shortened in view. A pinned message is read from the log."""
    pins = [pin for uuid, pin in c.log.view.pins.items() if uuid.startswith(node)] if len(node) >= SHORTEST else []
    if len(pins) != 1:
        return None
    if pins[0].text is not None:
        return pins[0].text
    records = (record for record in c.store.read() if isinstance(record, Message) and record.uuid == pins[0].target)
    return words_of([block for record in records for block in record.blocks])


def _spill(c: Conversation, node: str) -> Spill | None:
    """Look for the spill in memory, then in the whole log: a compaction drops the record from memory but keeps the file."""
    spill = spill_in(c.log, node)
    if spill is None and node and c.start and find_decision(c.store, node) is None:
        spill = spill_in(load_whole(c.store), node)
    return spill


def spill_in(log: Log, node: str) -> Spill | None:
    spills = (decision for decision in log.decisions.values() if isinstance(decision, Spill))
    return next((spill for spill in spills if node in (spill.uuid, spill.tool_use_id)), None)


def _cleared_text(c: Conversation, call: str) -> str | None:
    """Return the result of a call that was cleared. Its marker names the call if the model cannot open files."""
    clear = _clear_in(c.log, call)
    if clear is None and c.start and find_decision(c.store, call) is None:
        clear = _clear_in(load_whole(c.store), call)
    if clear is None:
        return None
    blocks = (block for item in stands_for(c.store, clear.uuid) for block in item.blocks)
    return next((block.text for block in blocks if isinstance(block, ToolResult) and block.tool_use_id == call), None)


def _clear_in(log: Log, call: str) -> Clear | None:
    clears = (decision for decision in log.decisions.values() if isinstance(decision, Clear))
    return next((clear for clear in clears if call in clear.markers), None)
