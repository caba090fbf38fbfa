"""Reads pi's sessions (`sessions/--<directory>--/<time>_<uuid>.jsonl`), for lists and as records.

Files of version 1 are a plain sequence; later ones are a tree, linked by `id` and `parentId`. Costs are recorded with each answer.
A `compaction` replaces everything before it by its summary, except what follows `firstKeptEntryId`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..core.blocks import Block, Text, Thinking, ToolUse, read_block, text
from ..core.errors import InputError
from ..core.records import Boundary, Foreign, Message, Record
from ..core.usage import Usage, count_of
from ..disk.transcripts.jsonl import Health, whole_objects
from .content_kinds import input_chars
from .scan import Scan, ScannedTurn, is_injected, one_line


def scan_row(scan: Scan, turns: list[ScannedTurn], row: Mapping[str, Any]) -> None:
    kind, time = row.get("type"), _str(row.get("timestamp"))
    scan.noted(time=time)
    match kind:
        case "session":
            scan.noted(cwd=_str(row.get("cwd")), id=_str(row.get("id")))
            scan.model = _str(row.get("modelId"))
        case "session_info":
            scan.title = one_line(_str(row.get("name"))) or scan.title
        case "compaction":
            scan.compacted()
            scan.holds("summary", len(_str(row.get("summary"))))
        case "message" if isinstance(message := row.get("message"), Mapping):
            _scan_message(scan, turns, message, time, answer_key(_str(row.get("id")), message, time))
        case "message":
            scan.skipped += 1
        case "custom_message" | "branch_summary":
            scan.holds("other", len(_str(row.get("summary")) or _words(row.get("content"))))
        case _:
            pass


def answer_key(id: str, message: Mapping[str, Any], time: str) -> str:
    """Return what tells an answer from all others, also in a branch of its session: the millisecond in which it was given, or else its
    line."""
    given = message.get("timestamp")
    return str(given) if isinstance(given, int | str) else f"{id} {time}".strip()


def _scan_message(scan: Scan, turns: list[ScannedTurn], message: Mapping[str, Any], time: str, key: str) -> None:
    words = _words(message.get("content"))
    match message.get("role"):
        case "user":
            scan.holds("other" if is_injected(words) else "user", len(words))
        case "toolResult":
            scan.returned(_str(message.get("toolCallId")), len(words))
        case "bashExecution":
            scan.holds("other", len(_str(message.get("command"))) + len(_str(message.get("output"))))
        case _:
            pass
    match message.get("role"):
        case "user" if words and not is_injected(words):
            scan.said(turns, "user", words, time)
        case "assistant":
            _scan_answer(scan, message, key)
            scan.said(turns, "assistant", words, time)
        case _:
            pass


def _scan_answer(scan: Scan, message: Mapping[str, Any], key: str) -> None:
    """Count an answer, and what it adds to the window."""
    usage, blocks, held = read_tokens(message.get("usage")), _blocks(message.get("content")), list[tuple[str, int]]()
    for block in blocks:
        match block:
            case ToolUse(input=given):
                held.append(("call", input_chars(given)))
            case Thinking(thinking=words):
                held.append(("thinking", len(words)))
            case Text(text=words):
                held.append(("assistant", len(words)))
            case _:
                pass
    if blocks or usage is not None:
        model, usd = _str(message.get("model")) or scan.model, _recorded_cost(message.get("usage"))
        key = key or f"answer {len(scan.counted) + len(scan.open)}"
        scan.answered(key, model, usage, usd=usd, chars=sum(chars for _, chars in held))
    for block in blocks:
        if isinstance(block, ToolUse):
            scan.called(block.id, block.name)
    for kind, chars in held:
        scan.holds(kind, chars)


def read_tokens(found: object) -> Usage | None:
    if not isinstance(found, Mapping):
        return None
    names = ("input", "cacheRead", "cacheWrite")
    given, read, written = (count_of(found.get(name)) for name in names)
    usage = Usage(given, read, written, 0, count_of(found.get("output")))
    return usage if usage.prompt else None


def _recorded_cost(found: object) -> float | None:
    cost = found.get("cost") if isinstance(found, Mapping) else None
    total = cost.get("total") if isinstance(cost, Mapping) else None
    return float(total) if isinstance(total, int | float) else None


class PiReader:
    """Turns the rows of a session into records, in order."""

    def __init__(self, count: int = 0, last: str | None = None) -> None:
        """Begin at the start of a file, or after `count` lines, of which `last` is the newest."""
        self._count = count
        self._leaf = last
        self._lines: list[str] = []  # the ids of all lines, and those of messages: they tell what a compaction keeps
        self._messages: dict[str, int] = {}

    def read(self, lines: Iterable[tuple[int, bytes]], health: Health) -> Iterator[Record]:
        """Read whole lines with their offsets."""
        for offset, raw in lines:
            yield from self.add_line(offset, raw, health)

    @property
    def state(self) -> tuple[int, str | None]:
        """The state from which another reader can go on. That reader does not know which messages an earlier compaction kept."""
        return self._count, self._leaf

    def add_line(self, offset: int, raw: bytes, health: Health) -> Iterator[Record]:
        for row in whole_objects(offset, raw, health):
            yield from self.add(row)

    def add(self, row: Mapping[str, Any]) -> Iterator[Record]:
        self._count += 1
        if row.get("type") == "session":
            self._lines.append("")
            return
        uuid, time = _str(row.get("id")) or f"pi-{self._count}", _str(row.get("timestamp"))
        parent = _str(row.get("parentId")) if "parentId" in row else self._leaf
        self._lines.append(uuid)
        yield from self._row(row, uuid, parent or None, time)
        self._leaf = uuid

    def finish(self) -> Iterator[Record]:
        return iter(())

    def _row(self, row: Mapping[str, Any], uuid: str, parent: str | None, time: str) -> Iterator[Record]:
        kind, message = row.get("type"), row.get("message")
        if kind == "message" and isinstance(message, Mapping) and (found := _message(message, uuid, parent, time)):
            self._messages[uuid] = len(self._lines) - 1
            yield found
        elif kind in ("custom_message", "branch_summary"):
            words = _str(row.get("summary")) or _words(row.get("content"))
            yield Message(uuid, parent, time, "user", (text(words),) if words else (), meta=True)
        elif kind == "compaction":
            first, boundary = self._first_kept(row), f"{uuid}-boundary"
            kept = [message for message, line in self._messages.items() if line >= first]
            yield Boundary(boundary, parent, time, "auto", count_of(row.get("tokensBefore")), tuple(kept))
            summary = _str(row.get("summary"))
            yield Message(uuid, boundary, time, "user", (text(summary),) if summary else (), summary=True, by=boundary)
        else:
            yield Foreign(str(kind), uuid, parent, time)

    def _first_kept(self, row: Mapping[str, Any]) -> int:
        """Return the first line that a compaction keeps. Version 1 gives its number, later ones its id."""
        named, number = _str(row.get("firstKeptEntryId")), row.get("firstKeptEntryIndex")
        if named and named in self._lines:
            return self._lines.index(named)
        return number if isinstance(number, int) and number > 0 else len(self._lines)


def _message(message: Mapping[str, Any], uuid: str, parent: str | None, time: str) -> Message | None:
    role, content = message.get("role"), message.get("content")
    match role:
        case "user":
            return Message(uuid, parent, time, "user", _blocks(content))
        case "assistant":
            model, stop = _str(message.get("model")) or None, _str(message.get("stopReason")) or None
            usage, blocks = read_tokens(message.get("usage")), _blocks(content)
            key, usd = f"pi-{answer_key(uuid.removeprefix('pi-'), message, time)}", _recorded_cost(message.get("usage"))
            empty = not blocks and usage is None
            return Message(uuid, parent, time, "assistant", blocks, key, usage, stop, model, silent=empty, usd=usd)
        case "toolResult":
            result = {"type": "tool_result", "tool_use_id": _str(message.get("toolCallId")), "content": _words(content)}
            return Message(uuid, parent, time, "user", _block({**result, "is_error": message.get("isError") is True}))
        case "bashExecution":
            shown = f"$ {_str(message.get('command'))}\n{_str(message.get('output'))}"
            return Message(uuid, parent, time, "user", (text(shown),), meta=True)
        case _:
            return None


def _blocks(content: object) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (text(content),) if content else ()
    parts = content if isinstance(content, list) else ()
    return tuple(block for part in parts if isinstance(part, Mapping) for block in _block(_wire(part)))


def _wire(part: Mapping[str, Any]) -> dict[str, Any]:
    match part.get("type"):
        case "toolCall":
            return {"type": "tool_use", "id": part.get("id"), "name": part.get("name"), "input": part.get("arguments")}
        case "thinking":
            return {"type": "thinking", "thinking": part.get("thinking"), "signature": part.get("thinkingSignature")}
        case "image":
            source = {"type": "base64", "media_type": part.get("mimeType"), "data": part.get("data")}
            return {"type": "image", "source": source}
        case _:
            return dict(part)


def _block(wire: dict[str, Any]) -> tuple[Block, ...]:
    if wire.get("type") == "text" and not wire.get("text"):
        return ()
    try:
        return (read_block(wire),)
    except InputError:
        return ()


def _words(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    texts = (part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") == "text")
    return "\n\n".join(part for part in texts if isinstance(part, str))


def _str(value: object) -> str:
    return value if isinstance(value, str) else ""
