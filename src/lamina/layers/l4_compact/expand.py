"""What a summary stands for, opened again (B1): the records a compaction took out of view, in order, as text in bounded pages.

Nothing is kept for this: the log is read from its top up to the decision, and the receipt says which records it was about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from ...core.blocks import Block, Document, Image, RedactedThinking, Text, Thinking, ToolResult, ToolUse, Unknown, canonical
from ...core.errors import InputError
from ...core.log import Log
from ...core.receipts import open_receipt, read_receipt
from ...core.records import Boundary, Clear, Message, Record, Span
from ...core.view import Item

# A page of about 10,000 tokens: what a model can read at once without filling a window with it.
PAGE = 40_000

Read = Callable[[], Iterable[Record]]


class Page(NamedTuple):
    text: str
    number: int  # from 1
    pages: int


def decision_of(read: Read, node: str) -> Boundary | Span | Clear | None:
    """The compaction, fold or clearing with this id, or the compaction whose summary has it; the beginning of an id will do."""
    found: Boundary | Span | None = None
    for record in read():
        if isinstance(record, Boundary | Span | Clear) and record.uuid.startswith(node):
            return record
        if isinstance(record, Boundary | Span):
            found = record
        elif isinstance(record, Message) and record.summary and record.uuid.startswith(node):
            return found
    return None


def stands_for(read: Read, node: str) -> list[Item]:
    """The items that the decision `node` took out of view, as they stood in it."""
    decision = decision_of(read, node) if node else None
    if decision is None:
        raise InputError(node or "expand", "there is no compaction with this id in the transcript", "see its summary for the id")
    log = Log.load(lambda: _before(read, decision.uuid))
    items = log.view.items
    if not decision.receipt:  # written by another program
        return [item for item in items if _taken(item, decision)]
    told = open_receipt(read_receipt(decision.uuid, decision.receipt), [item.uuid for item in items])
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


def _before(read: Read, uuid: str) -> Iterator[Record]:
    for record in read():
        if record.uuid == uuid:
            return
        yield record


def page(items: Iterable[Item], number: int = 1, *, size: int = PAGE) -> Page:
    """The items as text, one page of it. A page is cut anywhere: put together they are the whole."""
    text = "\n\n".join(
        f"[{item.role}{'' if item.kind == 'said' else f', {item.kind}'} {item.uuid}]\n{_rendered(item)}" for item in items
    )
    pages = max(1, -(-len(text) // size))
    if not 1 <= number <= pages:
        raise InputError("page", f"there are {pages} pages", "ask for one of them")
    return Page(text[(number - 1) * size : number * size], number, pages)


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
