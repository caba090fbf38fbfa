"""Explains the exact request of a model call, block by block: its kind, why it is there, its size, and whether it was cached.

The request is rebuilt from the records before the answer, so the explanation shows exactly what was sent. Sizes are estimates, scaled
to add up to the reported usage. Content that another agent sent without recording it is a separate piece. Providers read a prefix from the
cache, so the reported number of tokens tells which blocks were read. If that number matches everything the previous call sent, the
result is exact. Otherwise it is as precise as the sizes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from ..core.blocks import DIGEST_BYTES, Block, ToolResult, ToolUse, Wire, canonical, read_block
from ..core.copies import copy_with_containers
from ..core.errors import InputError
from ..core.log import Log
from ..core.records import Attachment, Boundary, Break, Clear, Event, Message, Record, Span, Spill
from ..core.usage import Usage
from ..core.view import Item
from ..language.text import Text
from ..language.wording import counted

Cached: TypeAlias = Literal["read", "partly", "new", "unknown"]
Size: TypeAlias = Callable[[Block], int]

MEMORY = "memory"  # the kind of a recalled memory
UNRECORDED = "not recorded"  # the kind of content that was sent but is in no record
HEAD_PATH, HEAD_WHY = "(before the messages)", "system prompt and tools; the transcript does not hold them"
REST_PATH, REST_WHY = "(somewhere)", "context that the agent inserted; no record holds it"
# Providers may count a few tokens of framing on either side of a mark.
NEAR = 100


class _Block(Protocol):
    @property
    def record(self) -> str | None: ...
    @property
    def digest(self) -> Hashable: ...


B = TypeVar("B", bound=_Block)


class Unrecorded(NamedTuple):
    """The tokens of a request that are in no record."""

    head: int = 0  # the system prompt and the tools
    rest: int = 0


NOTHING = Unrecorded()


class Piece(msgspec.Struct, frozen=True):
    """One block of a request."""

    path: str  # tools[0], system[1], messages[4].content[2]
    kind: str  # tool, system, memory, message, answer, thinking, call, result, attachment:X, summary, not recorded, …
    why: str
    tokens: int
    cached: Cached
    record: str | None  # the record it comes from
    digest: bytes
    words: str  # the beginning of its text
    tool: str = ""  # the tool of a call or a result

    @property
    def label(self) -> str:
        return f"{self.kind} of {self.tool}" if self.tool else self.kind


class Explained(msgspec.Struct, frozen=True):
    turn: int
    model: str
    request: Wire
    pieces: tuple[Piece, ...]
    usage: Usage | None
    breaks: tuple[str, ...]  # cache breaks announced since the previous call


class Changed(msgspec.Struct, frozen=True):
    """The difference between two requests."""

    common: int  # number of blocks that are in both
    removed: tuple[Piece, ...]
    added: tuple[Piece, ...]


def explain(records: Iterable[Record], number: int, size: Size, unrecorded: Unrecorded = NOTHING) -> Explained:
    """Explain the request of the N-th answer, counted from 1. Answers of subagents do not count."""
    for found in explain_each(records, {number: unrecorded}, size):
        return found
    raise AssertionError("explain_each raises an error for a missing request")


def explain_each(records: Iterable[Record], wanted: Mapping[int, Unrecorded], size: Size) -> Iterator[Explained]:
    """Explain several requests in one pass, in ascending order. `wanted` maps their numbers to the tokens without a record."""
    return _explained(_Fold(), records, wanted, size, lambda fold: None)


def _explained(
    fold: _Fold, records: Iterable[Record], wanted: Mapping[int, Unrecorded], size: Size, passed: Callable[[_Fold], None]
) -> Iterator[Explained]:
    """Explain requests from a fold on. `passed` is called before each answer."""
    for record in records:
        if fold.starts_answer(record):
            passed(fold)
            if (number := len(fold.answers) + 1) in wanted:
                assert isinstance(record, Message)
                yield fold.explained(record, number, size, wanted[number])
                if number == max(wanted):
                    return
        fold.add(record)
    made = counted(len(fold.answers), "answer")
    raise InputError(f"call {max(wanted)}", f"does not exist (the session has {made})", "choose an earlier call")


class Explainer:
    """Explains requests of one session again and again. It keeps the state before every `step`-th request, so that the first request costs
    the records before it and later ones cost those since the nearest state."""

    def __init__(self, records: Sequence[Record], *, step: int, pause: Callable[[], None] = lambda: None) -> None:
        """`pause` is called before each answer: a caller with other work to do may wait there."""
        self._records, self._step, self._pause = records, step, pause
        self._kept: dict[int, _Fold] = {}  # number of answers → the state after them

    def explain_each(self, wanted: Mapping[int, Unrecorded], size: Size) -> Iterator[Explained]:
        """Explain several requests, in ascending order. `wanted` maps their numbers to the tokens without a record."""
        fold = _Fold()
        for number in sorted(wanted):
            near = max((count for count in [*self._kept] if count < number), default=0)
            if near > len(fold.answers):
                fold = self._kept[near].copy()
            yield from _explained(fold, self._records[fold.count :], {number: wanted[number]}, size, self._keep)

    def _keep(self, fold: _Fold) -> None:
        self._pause()
        count = len(fold.answers)
        if count and count % self._step == 0 and count not in self._kept:
            self._kept[count] = fold.copy()


class _Fold:
    """The records up to a request."""

    def __init__(self) -> None:
        self.answers: set[str] = set()
        self._log = Log()
        self._records: list[Record] = []
        self._stale = False
        self._breaks: list[str] = []
        self._last: Usage | None = None
        self._main: bool | None = None  # the first message tells whether this is a subagent's own transcript

    @property
    def count(self) -> int:
        return len(self._records)

    def copy(self) -> _Fold:
        made = copy_with_containers(self)
        made._log = self._log.copy()
        return made

    def starts_answer(self, record: Record) -> bool:
        if isinstance(record, Message | Attachment) and self._main is None:
            self._main = record.sidechain
        own = isinstance(record, Message) and record.from_model and record.sidechain == self._main
        return own and _answer_key(record) not in self.answers

    def add(self, record: Record) -> None:
        if self.starts_answer(record):
            self._breaks.clear()
            self.answers.add(_answer_key(record))
        if isinstance(record, Break):
            self._breaks.append(record.reason)
        elif isinstance(record, Message) and record.usage is not None and not record.silent and record.sidechain == self._main:
            self._last = record.usage
        self._records.append(record)
        self._stale = not self._log.add(record) or self._stale

    def explained(self, answer: Message, number: int, size: Size, unrecorded: Unrecorded) -> Explained:
        log = self._log_before(answer)
        snapshot = log.view.snapshot
        head = {} if snapshot is None else {"system": snapshot.system, "tools": snapshot.tools}
        options = {} if snapshot is None else snapshot.options
        request: Wire = {"model": answer.model, **head, "messages": log.view.messages(), **options}
        pieces = _pieces(request, log, size, _recalled(self._records))
        readable = _readable(self._last, log.view.once) if self._last is not None and not self._breaks else None
        fixed = sum(1 for piece in pieces if not piece.path.startswith("messages"))
        border = fixed + log.view.flat.links_before_last_answer()
        weighed = _weighed(pieces, answer.usage, readable, border, unrecorded)
        return Explained(number, answer.model or "", request, weighed, answer.usage, tuple(self._breaks))

    def _log_before(self, answer: Message) -> Log:
        """Return the log of the request. An answer that starts another branch did not see what it leaves behind."""
        if self._stale:
            self._log.refold(lambda: self._records)
            self._stale = False
        tree = self._log.tree
        if tree.leaf is None or tree.resolve(answer.parent) == tree.leaf:
            return self._log
        log = Log.load(lambda: (*self._records, answer))
        log.view.drop((answer.uuid,))
        return log


def _answer_key(record: Record) -> str:
    return record.message_id or record.uuid if isinstance(record, Message) else ""


def difference(old: Explained, new: Explained) -> Changed:
    """Return what changed between two requests. Blocks are matched by record and content, whatever their position."""
    added = unmatched(new.pieces, old.pieces)
    return Changed(len(new.pieces) - len(added), unmatched(old.pieces, new.pieces), added)


def unmatched(blocks: Iterable[B], others: Iterable[B]) -> tuple[B, ...]:
    """Return the blocks that are not among the others."""
    left = Counter((block.record, block.digest) for block in others)
    found = []
    for block in blocks:
        left[block.record, block.digest] -= 1
        if left[block.record, block.digest] < 0:
            found.append(block)
    return tuple(found)


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
                    Text("{file}, recalled ({reason})", file=file, reason=reason)
                    for file, reason in zip(files, why, strict=False)
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
            tool = block.name if isinstance(block, ToolUse) else ""
            if isinstance(block, ToolResult):
                tool = calls.get(block.tool_use_id, "a tool")
            told = dict(zip(map(id, item.blocks), recalled.get(item.uuid, ()), strict=False)) if item is not None else {}
            why = told.get(id(block)) or _why(item, block, decided, log)
            path = f"messages[{index}].content[{at}]"
            record = item.uuid if item is not None else None
            piece = _piece(path, _kind(item, block), why, size(block), record, (message["role"], wire), _words(wire))
            found.append(msgspec.structs.replace(piece, tool=tool))
    return found


def _piece(path: str, kind: str, why: str, tokens: int, record: str | None, content: tuple[str, Wire], words: str) -> Piece:
    begin = " ".join(words[:400].split())
    digest = blake2b(canonical([*content]), digest_size=DIGEST_BYTES).digest()
    return Piece(path, kind, why, tokens, "unknown", record, digest, begin)


def _decided(log: Log) -> dict[str, Spill | Clear]:
    """Return the decision that replaced each result; the latest one counts."""
    found: dict[str, Spill | Clear] = {}
    for decision in log.decisions.values():
        if isinstance(decision, Spill):
            found[decision.tool_use_id] = decision
        elif isinstance(decision, Clear):
            found |= dict.fromkeys(decision.markers, decision)
    return found


def _kind(item: Item | None, block: Block) -> str:
    name = str(block.wire.get("type"))
    if isinstance(block, ToolUse | ToolResult):
        return "call" if isinstance(block, ToolUse) else "result"
    if item is None:
        return "inserted"
    if item.kind != "said":
        return MEMORY if item.kind == "attachment:relevant_memories" else item.kind
    plain = "answer" if item.role == "assistant" else "message"
    return plain if name == "text" else name


def _why(item: Item | None, block: Block, decided: dict[str, Spill | Clear], log: Log) -> str:
    if item is None:
        return "inserted so that the API accepts the conversation"
    if isinstance(block, ToolResult):
        return _why_result(item, block, decided)
    if item.kind == "summary":
        boundary = next((one for one in reversed(log.decisions.values()) if isinstance(one, Boundary)), None)
        id = boundary.uuid[:8] if boundary is not None else ""
        if boundary is not None and (because := boundary.receipt.get("because")):
            form = Text("replaces the messages removed by compaction {id} ({because})")
            return Text(form, id=id, because=Text.whole(str(because)))
        return Text("replaces the messages removed by compaction {id}", id=id)
    if item.kind in ("snip", "collapse", "partial"):
        span = log.decisions.get(item.uuid)
        return (
            Text("replaces {n} record|replaces {n} records", n=len(span.ids))
            if isinstance(span, Span)
            else "replaces a range of messages"
        )
    if item.kind.startswith("attachment:"):
        return Text("context added to the conversation ({kind})", kind=item.kind.removeprefix("attachment:"))
    if item.kind == "meta":
        return "inserted by a program"
    if item.role == "user":
        return "written by the user"
    cut = next((one for one in log.decisions.values() if isinstance(one, Clear) and item.uuid in one.shortened), None)
    if cut is None:
        return "written by the model"
    return Text("written by the model; shortened ({trigger}) by {uuid}", trigger=Text.whole(cut.trigger), uuid=cut.uuid[:8])


def _why_result(item: Item, block: ToolResult, decided: dict[str, Spill | Clear]) -> str:
    match decided.get(block.tool_use_id):
        case Spill(once=True) as spill:
            path = spill.path or "its file"
            if block.content != spill.preview:
                return Text("shown whole once; later requests show a preview, and the full text is in {path}", path=path)
            return Text("preview of a result that was shown once; the full text is in {path}", path=path)
        case Spill() as spill:
            return Text("preview of a large result; the full text is in {path}", path=spill.path or "its file")
        case Clear() as clear:
            return Text("cleared ({trigger}) by {uuid}", trigger=Text.whole(clear.trigger), uuid=clear.uuid[:8])
        case _:
            return "placeholder for a missing result" if item.synthetic else "result of a call in the view"


def _words(wire: Wire) -> str:
    content: Any = wire.get("text") or wire.get("thinking") or wire.get("input") or wire.get("content") or ""
    if isinstance(content, list):
        content = " ".join(str(part.get("text") or f"[{part.get('type')}]") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else canonical(content).decode("utf-8", "replace")


def _weighed(
    pieces: list[Piece], usage: Usage | None, readable: int | None, border: int, unrecorded: Unrecorded
) -> tuple[Piece, ...]:
    """Scale the sizes to the reported usage, and mark the blocks that were read from the cache.

    The previous call sent `readable` tokens, which are the first `border` blocks.
    """
    total = sum(piece.tokens for piece in pieces)
    if usage is None:
        return tuple(pieces)
    head, rest = min(unrecorded.head, usage.prompt), min(unrecorded.rest, max(0, usage.prompt - unrecorded.head))
    if not total:
        rest = usage.prompt - head
    shared = usage.prompt - head - rest
    exact = readable is not None and abs(usage.cache_read - readable) <= NEAR
    found = [_unrecorded(HEAD_PATH, HEAD_WHY, head, "read" if head <= usage.cache_read else "partly")] if head else []
    seen = 0
    for at, piece in enumerate(pieces):
        # Rounding the running sum instead of each size makes the sizes add up exactly.
        start, seen = seen * shared // total, seen + piece.tokens
        end = seen * shared // total
        cached: Cached = "read" if head + end <= usage.cache_read else "partly" if head + start < usage.cache_read else "new"
        if exact:
            cached = "read" if at < border else "new"
        found.append(msgspec.structs.replace(piece, tokens=end - start, cached=cached))
    return (*found, *([_unrecorded(REST_PATH, REST_WHY, rest, "unknown")] if rest else ()))


def _unrecorded(path: str, why: str, tokens: int, cached: Cached) -> Piece:
    return Piece(path, UNRECORDED, why, tokens, cached, None, path.encode(), "")
