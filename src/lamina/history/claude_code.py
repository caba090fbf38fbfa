"""Reads sessions in the format that Claude Code and Lamina share, for lists and searches.

Only the fields that these need are decoded, so a line with a large tool result costs little. A line of another shape is counted
as skipped. `disk/transcripts` reads the same files as records.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ..core.blocks import Block, ToolResult, scrub
from ..core.decoding import UNDECODABLE
from ..core.records import Message, Record, Spill, is_placeholder
from ..core.usage import read_usage
from ..disk.transcripts.jsonl import objects_in
from .content_kinds import input_chars, kind_of_attachment
from .scan import IMAGE_CHARS, Scan, ScannedTurn, is_injected, one_line
from .session_stats import DECIDED, SideCost

# The texts before and after the path of a stored result.
_STORED = "<persisted-output>\nOutput too large ("
_SAVED_TO = "Full output saved to: "
_HEAD = 8 << 10
# Decisions that only Lamina records: what a list calls them.
DECISIONS = {"span": "collapse", "revoke": "undo", "rewind": "undo"}
# In a result with an image.
_IMAGE = b'"base64"'


class _Block(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    input: Any = None
    content: msgspec.Raw = msgspec.Raw()
    id: str | None = None
    name: str | None = None
    tool_use_id: str | None = None

    @property
    def chars(self) -> int:
        """The characters that the model wrote."""
        return len(self.text or self.thinking or "") + (input_chars(self.input) if self.type == "tool_use" else 0)

    @property
    def size(self) -> int:
        """The characters of a result, or those that an image counts for."""
        content = bytes(self.content)
        return IMAGE_CHARS if self.type == "image" or _IMAGE in content[:_HEAD] else len(content)


class _Message(msgspec.Struct, gc=False):
    id: str | None = None
    model: str | None = None
    usage: dict[str, Any] | None = None
    content: str | list[_Block] | None = None


class _Memory(msgspec.Struct, gc=False):
    path: str = ""


class _Attachment(msgspec.Struct, gc=False):
    type: str = ""
    memories: list[_Memory] | None = None
    rendered: msgspec.Raw = msgspec.Raw()
    content: msgspec.Raw = msgspec.Raw()


class _Line(msgspec.Struct, rename="camel", gc=False):
    type: str = ""
    subtype: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    uuid: str | None = None
    session_id: str | None = None
    request_id: str | None = None
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    message: _Message | None = None
    attachment: _Attachment | None = None
    rendered: msgspec.Raw = msgspec.Raw()
    lamina: dict[str, Any] | None = None
    custom_title: str | None = None
    ai_title: str | None = None
    summary: str | None = None


class _Ours(msgspec.Struct, gc=False):
    kind: str = ""
    repeated: bool = False
    silent: bool = False
    synthetic: bool = False
    data: dict[str, Any] = {}


_LINES = msgspec.json.Decoder(_Line)


def scan_line(scan: Scan, turns: list[ScannedTurn], raw: bytes) -> None:
    try:
        _scan(scan, turns, _LINES.decode(raw))
    except UNDECODABLE:
        # A damaged line may still hold whole records.
        found = objects_in(raw)
        scan.skipped += not found
        for value in found:
            try:
                _scan(scan, turns, _LINES.decode(msgspec.json.encode(scrub(value))))
            except UNDECODABLE:
                scan.skipped += 1


def _scan(scan: Scan, turns: list[ScannedTurn], line: _Line) -> None:
    ours = msgspec.convert(line.lamina, _Ours) if isinstance(line.lamina, dict) else _Ours()
    scan.ours = scan.ours or line.lamina is not None
    if ours.repeated or ours.silent or line.is_api_error_message:
        return
    scan.noted(time=line.timestamp or "", cwd=line.cwd or "")
    if line.is_sidechain and not scan.messages and not scan.open:
        scan.parent = scan.parent or line.session_id or ""  # a subagent's file names the session that started it
    title = line.custom_title or line.ai_title or (line.summary if line.type == "summary" else None)
    if title:
        scan.title = one_line(title)
    if line.type == "assistant" and line.message is not None:
        message = line.message
        beside = bool(line.is_sidechain and not scan.parent)
        sized = [(block, block.chars) for block in _blocks(line)]
        chars = sum(size for _, size in sized)
        own, usage, model = f"{line.request_id} {line.timestamp}", read_usage(message.usage), message.model or ""
        if not is_placeholder(model):
            scan.answered(message.id or line.uuid or "", model, usage, beside=beside, chars=chars, own=own)
        if not beside:
            _hold_answer(scan, sized)
        _say(scan, turns, line, "subagent" if beside else "assistant")
        return
    if not (line.is_sidechain and not scan.parent):
        _hold(scan, line, ours)
    if line.type == "user" and not (line.is_meta or line.is_compact_summary or ours.synthetic):
        _say(scan, turns, line, "subagent" if line.is_sidechain and not scan.parent else "user")
    elif line.subtype == "compact_boundary":
        if not (line.is_sidechain and not scan.parent):
            scan.compacted()
    elif line.subtype == "microcompact_boundary":
        scan.due.add("clear")
    elif ours.kind in DECISIONS:
        scan.due.add(DECISIONS[ours.kind])
    elif ours.kind == "break":
        if ours.data.get("reason") not in DECIDED:
            scan.due.add("break")
    elif line.attachment is not None and line.attachment.type == "relevant_memories":
        for memory in line.attachment.memories or ():
            scan.recalled(memory.path, line.timestamp or "")
    elif ours.kind == "event" and ours.data.get("name") == "fork":
        data = ours.data.get("data")
        side = SideCost.of_event(data if isinstance(data, dict) else {})
        scan.paid_aside(side.usage, side.usd if side.usage.total else 0.0)


def _blocks(line: _Line) -> list[_Block]:
    content = line.message.content if line.message is not None else None
    return [_Block("text", content)] if isinstance(content, str) else content or []


def _hold_answer(scan: Scan, sized: list[tuple[_Block, int]]) -> None:
    for block, chars in sized:
        if block.type == "tool_use":
            scan.called(block.id or "", block.name or "")
            scan.holds("call", chars)
        elif block.thinking is None:
            scan.holds("assistant" if block.text else "web", chars or block.size)
        elif block.signature:  # other thinking is never sent
            scan.holds("thinking", chars + len(block.signature))


def _hold(scan: Scan, line: _Line, ours: _Ours) -> None:
    """Count what came into the window beside the answers."""
    for block in _blocks(line):
        if block.type == "tool_result":
            scan.returned(block.tool_use_id or "", block.size)
        elif line.is_compact_summary:
            scan.holds("summary", block.chars)
        else:
            aside = line.is_meta or ours.synthetic or is_injected(block.text or "")
            scan.holds("other" if aside else "user", block.chars or block.size)
    if line.attachment is not None:
        kind, sent = kind_of_attachment(line.attachment.type), line.rendered or line.attachment.rendered
        # Older versions record only the file itself. Others record facts that are not sent.
        scan.holds(kind, len(bytes(sent or (line.attachment.content if kind != "other" else b""))))
    if ours.kind == "snapshot":
        for kind in ("system", "tools"):
            scan.held[kind] = len(msgspec.json.encode(ours.data.get(kind)))


def _say(scan: Scan, turns: list[ScannedTurn], line: _Line, speaker: Any) -> None:
    content = line.message.content if line.message is not None else None
    parts = [content] if isinstance(content, str) else [block.text for block in content or () if block.type == "text"]
    words = [part for part in parts if part and not (speaker != "assistant" and is_injected(part))]
    if words:
        scan.said(turns, speaker, "\n\n".join(words), line.timestamp or "")


def with_spills(records: Iterator[Record], directory: Path) -> Iterator[Record]:
    """Yield the records, and a spill for each result that Claude Code stored in a file, so that it can be found and expanded.

    Only files in the session's own `directory` count, whatever path a transcript names.
    """
    for record in records:
        yield record
        if not isinstance(record, Message) or record.role != "user":
            continue
        for at, block in enumerate(record.blocks):
            stored = _stored(block, directory)
            if stored is not None and isinstance(block, ToolResult):
                path, size = stored
                yield Spill(f"{record.uuid}-{at}", record.uuid, record.time, block.tool_use_id, block.text, path, size)


def _stored(block: Block, directory: Path) -> tuple[str, int] | None:
    """Return the file that holds the whole of a result, and its size."""
    if not isinstance(block, ToolResult) or not isinstance(block.content, str) or not block.content.startswith(_STORED):
        return None
    named = block.content[:_HEAD].partition(_SAVED_TO)[2].partition("\n")[0].strip()
    path = directory / "tool-results" / Path(named).name
    try:
        return str(path), path.stat().st_size
    except OSError:
        return None
