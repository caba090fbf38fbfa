"""Explain (B10): the exact request of a call, block by block: what it is, why it is there, what it weighs, whether it was cached.

Pure: records in, values out. The request is folded again from the records before the answer, so what is explained is what was sent.
Sizes are estimates, stretched so that together they are what was reported. Whether a block was read from the cache is told by what the
answer reported: a provider reads a prefix. Where that is all the call before had sent, those blocks were read, exactly; else the blocks
up to that many tokens, as far as the sizes tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from .blocks import Block, ToolResult, ToolUse, Wire, canonical, read_block
from .errors import InputError
from .log import Log
from .records import Boundary, Break, Clear, Event, Message, Record, Span, Spill
from .usage import Usage
from .view import Item

Cached: TypeAlias = Literal["read", "partly", "new", "unknown"]
Size: TypeAlias = Callable[[Block], int]

MEMORY = "memory"  # the kind of a recalled one
# Providers count a few tokens of wrapping to the one side or the other of a mark.
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
    words: str  # how it begins


class Explained(msgspec.Struct, frozen=True):
    turn: int
    model: str
    request: Wire
    pieces: tuple[Piece, ...]
    usage: Usage | None
    breaks: tuple[str, ...]  # announced since the call before


class Changed(msgspec.Struct, frozen=True):
    """What one request has that another had not."""

    common: int  # blocks both begin with
    removed: tuple[Piece, ...]
    added: tuple[Piece, ...]


def explain(records: Iterable[Record], number: int, size: Size) -> Explained:
    """The request of the N-th answer, counted from 1."""
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
    raise InputError("--turn", f"the session has {len(answers)} answers, so there is no call {number}")


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
    readable = last.usage.prompt if last is not None and last.usage is not None and not breaks else None
    fixed = sum(1 for piece in pieces if not piece.path.startswith("messages"))
    weighed = _weighed(pieces, answer.usage, readable, fixed + log.view.flat.links_before_last_answer())
    return Explained(number, answer.model or "", request, weighed, answer.usage, breaks)


def _recalled(records: Iterable[Record]) -> dict[str, list[str]]:
    """Recalled memories: for each attachment why each of its blocks is there, as it was told when they were brought."""
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
    """Which decision a result shows the trace of; the later one counts."""
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
        return "put in so that the conversation is one the API accepts"
    if isinstance(block, ToolResult):
        return _why_result(item, block, decided)
    if item.kind == "summary":
        boundary = next((uuid for uuid, one in reversed(log.decisions.items()) if isinstance(one, Boundary)), "")
        return f"stands for what compaction {boundary[:8]} took out"
    if item.kind in ("snip", "collapse", "partial"):
        span = log.decisions.get(item.uuid)
        return f"stands for {len(span.ids)} records that were folded" if isinstance(span, Span) else "stands for what was folded"
    if item.kind.startswith("attachment:"):
        return f"context put in beside the conversation ({item.kind.removeprefix('attachment:')})"
    if item.kind == "meta":
        return "put in by a program"
    return "the model said it" if item.role == "assistant" else "the person said it"


def _why_result(item: Item, block: ToolResult, decided: dict[str, Spill | Clear]) -> str:
    match decided.get(block.tool_use_id):
        case Spill() as spill:
            return f"too big to send: a preview, the whole is in {spill.path or 'its file'}"
        case Clear() as clear:
            return f"cleared ({clear.trigger}) by {clear.uuid[:8]}"
        case _:
            return "made up, since the real one was missing" if item.synthetic else "the result of a call in view"


def _words(wire: Wire) -> str:
    content: Any = wire.get("text") or wire.get("thinking") or wire.get("input") or wire.get("content") or ""
    if isinstance(content, list):
        content = " ".join(str(part.get("text") or f"[{part.get('type')}]") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else canonical(content).decode("utf-8", "replace")


def _weighed(pieces: list[Piece], usage: Usage | None, readable: int | None, border: int) -> tuple[Piece, ...]:
    """Stretched to what was reported, and marked by how far the cache reached. `readable` tokens, the first `border` blocks, were
    what the call before had sent."""
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
