"""What a summary stands for, opened again (B1): the records a compaction took out of view, in order, as text in bounded pages.

Nothing is kept for this: the log is read from where the view of that time began up to the decision, and the receipt says which records
it was about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any, NamedTuple, TypeAlias

from ...core.blocks import Block, Document, Image, RedactedThinking, Text, Thinking, ToolResult, ToolUse, Unknown, canonical
from ...core.errors import InputError
from ...core.log import Log, seeded
from ...core.receipts import open_receipt, read_receipt
from ...core.records import Boundary, Clear, Message, Record, Span
from ...core.view import Item
from ...disk.transcripts.resume import find_resume_point, records_in
from ...disk.transcripts.store import RecordSource
from ...tools.expand import ExpandedPage

# A page of about 10,000 tokens: what a model can read at once without filling a window with it.
PAGE = 40_000

Decision: TypeAlias = Boundary | Span | Clear


class FoundDecision(NamedTuple):
    """A decision, and from where its conversation can be folded."""

    decision: Decision
    start: int
    state: dict[str, Any]


def find_decision(store: RecordSource, node: str) -> FoundDecision | None:
    """The compaction, fold or clearing with this id, or the compaction whose summary has it; the beginning of an id will do. Looked
    for from the end, and only lines that name the id are parsed."""
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
                    # Summaries of other programs do not name their boundary: it is the one before them.
                    wanted, by = record.by or wanted, "" if record.by else "any"
                case _:
                    pass
    return None


def stands_for(store: RecordSource, node: str) -> list[Item]:
    """The items that the decision `node` took out of view, as they stood in it. Read is what was in view then; all of the log only
    where that does not hold together (a transcript of another program, a branch that leads to before)."""
    found = find_decision(store, node) if node else None
    if found is None:
        raise InputError(node or "expand", "there is no compaction with this id in the transcript", "see its summary for the id")
    if found.start and (items := _out_of(store, found)) is not None:
        return items
    return _out_of(store, found._replace(start=0, state={})) or []


def _out_of(store: RecordSource, found: FoundDecision) -> list[Item] | None:
    """None: the part that was read is not what was in view then."""
    decision = found.decision
    log = Log.load(lambda: _before(store.read(found.start), decision.uuid), lambda: seeded(found.state))
    items = log.view.items
    if not decision.receipt:  # written by another program
        return None if found.start else [item for item in items if _taken(item, decision)]
    try:
        told = open_receipt(read_receipt(decision.uuid, decision.receipt), [item.uuid for item in items])
    except InputError:
        if found.start:
            return None
        raise
    return [item for item in items if told[item.uuid].fate != "kept"]


def _taken(item: Item, decision: Boundary | Span | Clear) -> bool:
    match decision:
        case Boundary():
            return item.uuid not in decision.kept
        case Span():
            return item.uuid in decision.ids
        case Clear():
            results = {block.tool_use_id for block in item.blocks if isinstance(block, ToolResult)}
            return item.uuid in decision.attachments or not results.isdisjoint(decision.markers)


def _before(records: Iterable[Record], uuid: str) -> Iterator[Record]:
    return takewhile(lambda record: record.uuid != uuid, records)


def text_of(items: Iterable[Item]) -> str:
    """Return the items as one text."""
    return "\n\n".join(
        f"[{item.role}{'' if item.kind == 'said' else f', {item.kind}'} {item.uuid}]\n{_rendered(item)}" for item in items
    )


def page_of(text: str, number: int) -> ExpandedPage:
    """Return one page of a text. A page is cut anywhere: put together they are the whole."""
    pages = max(1, -(-len(text) // PAGE))
    if not 1 <= number <= pages:
        raise InputError("page", f"there are {pages} pages", "ask for one of them")
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
