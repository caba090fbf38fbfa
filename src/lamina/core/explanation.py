"""Explains the exact request of a model call, block by block: its kind, why it is there, its size, and whether it was cached.

The request is rebuilt from the records before the answer, so the explanation shows exactly what was sent. Sizes are estimates, scaled
to add up to the reported usage. Providers read a prefix from the cache, so the reported number of tokens tells which blocks were
read. If that number matches everything the previous call sent, the result is exact. Otherwise it is as precise as the sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from .blocks import Block, ToolResult, ToolUse, Wire, canonical, read_block
from .errors import InputError
from .log import Log
from .records import Boundary, Break, Clear, Event, Message, Record, Span, Spill
from .usage import Usage
from .view import Item
from .wording import counted

Cached: TypeAlias = Literal["read", "partly", "new", "unknown"]
Size: TypeAlias = Callable[[Block], int]

MEMORY = "memory"  # the kind of a recalled memory
# Providers may count a few tokens of framing on either side of a mark.
NEAR = 100


class Piece(msgspec.Struct, frozen=True):
    """One block of a request."""

    path: str  # tools[0], system[1], messages[4].content[2]
    kind: str  # tool, system, memory, said, answer, thinking, call of X, result of X, attachment:X, summary, …
    why: str
    tokens: int
    cached: Cached
    record: str | None  # the record it comes from
    digest: bytes
    words: str  # the beginning of its text


class Explained(msgspec.Struct, frozen=True):
    turn: int
    model: str
    request: Wire
    pieces: tuple[Piece, ...]
    usage: Usage | None
    breaks: tuple[str, ...]  # cache breaks announced since the previous call


class Changed(msgspec.Struct, frozen=True):
    """The difference between two requests."""

    common: int  # number of blocks that both start with
    removed: tuple[Piece, ...]
    added: tuple[Piece, ...]


def explain(records: Iterable[Record], number: int, size: Size) -> Explained:
    """Explain the request of the N-th answer, counted from 1."""
    before: list[Record] = []
    answers: set[str] = set()
    breaks: list[str] = []
    for record in records:
        if isinstance(record, Message) and record.role == "assistant" and not record.silent:
            key = record.message_id or record.uuid
            if key not in answers and len(answers) + 1 == number:
                return _explained(before, record, number, tuple(breaks), size)
            if key not in answers:
                breaks.clear()
            answers.add(key)
        elif isinstance(record, Break):
            breaks.append(record.reason)
        before.append(record)
    raise InputError("--turn", f"call {number} does not exist (the session has {counted(len(answers), 'answer')})")


def difference(old: Explained, new: Explained) -> Changed:
    common = 0
    for one, other in zip(old.pieces, new.pieces, strict=False):
        if one.digest != other.digest:
            break
        common += 1
    return Changed(common, old.pieces[common:], new.pieces[common:])


def _explained(before: Sequence[Record], answer: Message, number: int, breaks: tuple[str, ...], size: Size) -> Explained:
    log = Log.load(lambda: before)
    snapshot = log.view.snapshot
    head = {} if snapshot is None else {"system": snapshot.system, "tools": snapshot.tools}
    options = {} if snapshot is None else snapshot.options
    request: Wire = {"model": answer.model, **head, "messages": log.view.messages(), **options}
    pieces = _pieces(request, log, size, _recalled(before))
    last = next((one for one in reversed(before) if isinstance(one, Message) and one.usage is not None and not one.silent), None)
    readable = _readable(last.usage, log.view.once) if last is not None and last.usage is not None and not breaks else None
    fixed = sum(1 for piece in pieces if not piece.path.startswith("messages"))
    weighed = _weighed(pieces, answer.usage, readable, fixed + log.view.flat.links_before_last_answer())
    return Explained(number, answer.model or "", request, weighed, answer.usage, breaks)


def _readable(usage: Usage, once: Mapping[str, str]) -> int:
    """Return the tokens that a call left in the cache: all it sent, unless results that it showed once were not cached."""
    return usage.cache_read + usage.cache_write if once and usage.cache_write else usage.prompt


def _recalled(records: Iterable[Record]) -> dict[str, list[str]]:
    """Return, for each attachment of recalled memories, the recorded reason of each of its blocks."""
    found: dict[str, list[str]] = {}
    for record in records:
        if isinstance(record, Event) and record.name == "recall" and isinstance(record.data.get("attachment"), str):
            files, why = record.data.get("files"), record.data.get("why")
            if isinstance(files, list) and isinstance(why, list):
                found[record.data["attachment"]] = [
                    f"{file}, recalled ({reason})" for file, reason in zip(files, why, strict=False)
                ]
    return found


def _pieces(request: Wire, log: Log, size: Size, recalled: dict[str, list[str]]) -> list[Piece]:
    found: list[Piece] = []
    for name, why in (("tools", "a tool the model may call"), ("system", "the system prompt")):
        for at, wire in enumerate(request.get(name) or ()):
            text = canonical(wire).decode("utf-8", "replace")
            block = read_block({"type": "text", "text": text or " "})
            words = str(wire.get("name") or wire.get("text") or text)
            found.append(_piece(f"{name}[{at}]", name.rstrip("s"), why, size(block), None, (name, wire), words))
    shown = {id(block.wire): (item, block) for item, block in log.view.blocks()}
    decided = _decided(log)
    calls = {block.id: block.name for _, block in log.view.blocks() if isinstance(block, ToolUse)}
    for index, message in enumerate(request["messages"]):
        for at, wire in enumerate(message["content"]):
            known = shown.get(id(wire))
            item, block = known if known is not None else (None, read_block(wire))
            kind = _kind(item, block, calls)
            told = dict(zip(map(id, item.blocks), recalled.get(item.uuid, ()), strict=False)) if item is not None else {}
            why = told.get(id(block)) or _why(item, block, decided, log)
            path = f"messages[{index}].content[{at}]"
            record = item.uuid if item is not None else None
            found.append(_piece(path, kind, why, size(block), record, (message["role"], wire), _words(wire)))
    return found


def _piece(path: str, kind: str, why: str, tokens: int, record: str | None, content: tuple[str, Wire], words: str) -> Piece:
    begin = " ".join(words[:400].split())
    return Piece(path, kind, why, tokens, "unknown", record, canonical([*content]), begin)


def _decided(log: Log) -> dict[str, Spill | Clear]:
    """Return the decision that replaced each result; the latest one counts."""
    found: dict[str, Spill | Clear] = {}
    for decision in log.decisions.values():
        if isinstance(decision, Spill):
            found[decision.tool_use_id] = decision
        elif isinstance(decision, Clear):
            found |= dict.fromkeys(decision.markers, decision)
    return found


def _kind(item: Item | None, block: Block, calls: dict[str, str]) -> str:
    name = str(block.wire.get("type"))
    if isinstance(block, ToolUse):
        return f"call of {block.name}"
    if isinstance(block, ToolResult):
        return f"result of {calls.get(block.tool_use_id, 'a tool')}"
    if item is None:
        return "put in"
    if item.kind != "said":
        return MEMORY if item.kind == "attachment:relevant_memories" else item.kind
    plain = "answer" if item.role == "assistant" else "said"
    return plain if name == "text" else name


def _why(item: Item | None, block: Block, decided: dict[str, Spill | Clear], log: Log) -> str:
    if item is None:
        return "inserted so that the API accepts the conversation"
    if isinstance(block, ToolResult):
        return _why_result(item, block, decided)
    if item.kind == "summary":
        boundary = next((one for one in reversed(log.decisions.values()) if isinstance(one, Boundary)), None)
        because = f" ({boundary.receipt['because']})" if boundary is not None and boundary.receipt.get("because") else ""
        return f"replaces the messages removed by compaction {boundary.uuid[:8] if boundary is not None else ''}{because}"
    if item.kind in ("snip", "collapse", "partial"):
        span = log.decisions.get(item.uuid)
        return f"replaces {counted(len(span.ids), 'record')}" if isinstance(span, Span) else "replaces a range of messages"
    if item.kind.startswith("attachment:"):
        return f"context added to the conversation ({item.kind.removeprefix('attachment:')})"
    if item.kind == "meta":
        return "inserted by a program"
    if item.role == "user":
        return "written by the user"
    cut = next((one for one in log.decisions.values() if isinstance(one, Clear) and item.uuid in one.shortened), None)
    return "written by the model" + (f"; shortened ({cut.trigger}) by {cut.uuid[:8]}" if cut is not None else "")


def _why_result(item: Item, block: ToolResult, decided: dict[str, Spill | Clear]) -> str:
    match decided.get(block.tool_use_id):
        case Spill(once=True) as spill:
            where = f"the full text is in {spill.path or 'its file'}"
            if block.content != spill.preview:
                return f"shown whole once; later requests show a preview, and {where}"
            return f"preview of a result that was shown once; {where}"
        case Spill() as spill:
            return f"preview of a large result; the full text is in {spill.path or 'its file'}"
        case Clear() as clear:
            return f"cleared ({clear.trigger}) by {clear.uuid[:8]}"
        case _:
            return "placeholder for a missing result" if item.synthetic else "result of a call in the view"


def _words(wire: Wire) -> str:
    content: Any = wire.get("text") or wire.get("thinking") or wire.get("input") or wire.get("content") or ""
    if isinstance(content, list):
        content = " ".join(str(part.get("text") or f"[{part.get('type')}]") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else canonical(content).decode("utf-8", "replace")


def _weighed(pieces: list[Piece], usage: Usage | None, readable: int | None, border: int) -> tuple[Piece, ...]:
    """Scale the sizes to the reported usage, and mark the blocks that were read from the cache.

    The previous call sent `readable` tokens, which are the first `border` blocks.
    """
    total = sum(piece.tokens for piece in pieces)
    if usage is None or not total:
        return tuple(pieces)
    factor = usage.prompt / total
    exact = readable is not None and abs(usage.cache_read - readable) <= NEAR
    found: list[Piece] = []
    upto = 0.0
    for at, piece in enumerate(pieces):
        start, upto = upto, upto + piece.tokens * factor
        cached: Cached = "read" if upto <= usage.cache_read else "partly" if start < usage.cache_read else "new"
        if exact:
            cached = "read" if at < border else "new"
        found.append(msgspec.structs.replace(piece, tokens=round(piece.tokens * factor), cached=cached))
    return tuple(found)
