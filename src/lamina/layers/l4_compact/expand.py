"""Expand a summary (B1): show the records that a compaction removed from the view, in order, as text in bounded pages.

Nothing extra is stored for this. The log is read from where the view of that time began up to the decision, and the decision's
receipt lists the records.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import Any, NamedTuple, TypeAlias

from ...core.blocks import Block, Document, Image, RedactedThinking, Text, Thinking, ToolResult, ToolUse, Unknown, canonical
from ...core.errors import InputError
from ...core.log import BY_RESUME, Log, seeded
from ...core.receipts import open_receipt, read_receipt
from ...core.records import Boundary, Clear, Message, Span
from ...core.view import Item
from ...disk.transcripts.resume import RecordSource, find_resume_point, records_in
from ...language.wording import counted, plural
from ...tools.tool import ExpandedPage

# A page of about 10,000 tokens, which a model can read at once without filling its window.
PAGE = 40_000

Decision: TypeAlias = Boundary | Span | Clear


class FoundDecision(NamedTuple):
    """A decision, and the offset from which its view can be rebuilt."""

    decision: Decision
    start: int
    state: dict[str, Any]


def find_decision(store: RecordSource, node: str) -> FoundDecision | None:
    """Find the compaction, fold or clearing with this id, or the compaction whose summary has it.

    The beginning of an id is enough. The search starts at the end of the transcript and parses only lines that contain the id."""
    wanted, by = node, ""
    lines = store.lines_back()
    for _, line in lines:
        if wanted.encode() not in line and not (by == "any" and b'"compact_boundary"' in line):
            continue
        for record in reversed(records_in(line)):
            match record:
                case Boundary() | Span() | Clear() if record.uuid.startswith(wanted) or (by and isinstance(record, Boundary)):
                    start, checkpoint = find_resume_point(lines)
                    return FoundDecision(record, start, checkpoint.state if checkpoint is not None else {})
                case Message(summary=True) if record.uuid.startswith(wanted):
                    # Other programs' summaries do not name their boundary, which is the one before them.
                    wanted, by = record.by or wanted, "" if record.by else "any"
                case _:
                    pass
    return None


def stands_for(store: RecordSource, node: str) -> list[Item]:
    """Return the items that the decision `node` removed from the view.

    Only the part of the log that was in view then is read. The whole log is read if that part is not consistent (another
    program's transcript, or a branch that starts earlier)."""
    located = find_decision(store, node) if node else None
    if located is None:
        raise InputError(node or "expand", "no compaction with this id exists in the transcript", "copy the id from its summary")
    if located.decision.receipt.get("by") == BY_RESUME:
        raise InputError(
            node, "the messages it replaces are too large to show", "search the transcript with `lamina sessions search`"
        )
    if located.start and (items := _out_of(store, located)) is not None:
        return items
    return _out_of(store, located._replace(start=0, state={})) or []


def _out_of(store: RecordSource, located: FoundDecision) -> list[Item] | None:
    """Return the removed items, or None if the part of the log that was read is not the view of that time."""
    decision = located.decision
    log = Log.load(
        lambda: takewhile(lambda record: record.uuid != decision.uuid, store.read(located.start)), lambda: seeded(located.state)
    )
    items = log.view.items
    if not decision.receipt:  # written by another program
        return None if located.start else [item for item in items if _taken(item, decision)]
    try:
        fates = open_receipt(read_receipt(decision.uuid, decision.receipt), [item.uuid for item in items])
    except InputError:
        if located.start:
            return None
        raise
    return [item for item in items if fates[item.uuid].fate != "kept"]


def _taken(item: Item, decision: Boundary | Span | Clear) -> bool:
    match decision:
        case Boundary():
            return item.uuid not in decision.kept
        case Span():
            return item.uuid in decision.ids
        case Clear():
            results = {block.tool_use_id for block in item.blocks if isinstance(block, ToolResult)}
            return item.uuid in {*decision.attachments, *decision.shortened} or not results.isdisjoint(decision.markers)


def text_of(items: Iterable[Item]) -> str:
    """Return the items as one text."""
    return "\n\n".join(
        f"[{item.role}{'' if item.kind == 'said' else f', {item.kind}'} {item.uuid}]\n{_rendered(item)}" for item in items
    )


def page_of(text: str, number: int) -> ExpandedPage:
    """Return one page of a text. Pages may end anywhere; joined together they are the whole text."""
    pages = max(1, -(-len(text) // PAGE))
    if not 1 <= number <= pages:
        remedy = plural(pages, "use page 1", f"use a page from 1 to {pages}")
        raise InputError("page", f"{number} does not exist, the text has {counted(pages, 'page')}", remedy)
    return ExpandedPage(text[(number - 1) * PAGE : number * PAGE], number, pages)


def _rendered(item: Item) -> str:
    return "\n".join(_block(block) for block in item.blocks)


def _block(block: Block) -> str:
    match block:
        case Text():
            return block.text
        case Thinking():
            return f"(thinking) {block.thinking}"
        case RedactedThinking():
            return "(thinking, redacted)"
        case ToolUse():
            return f"{block.name} {canonical(block.input).decode()}  (call {block.id})"
        case ToolResult():
            return f"(result of {block.tool_use_id}{', an error' if block.is_error else ''})\n{block.text}"
        case Image() | Document() | Unknown():
            return f"[{block.wire.get('type')}]"
