"""Reading spilled results back: the complete result, its receipt, and the block that represents it in the log."""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import msgspec

from ...core.blocks import ToolResult, ToolUse, Wire, tool_result
from ...core.errors import DiskError
from ...core.fence import escape
from ...core.receipts import Receipt, Told, write_receipt
from ...core.records import Event, Message, Record, Spill
from ...disk.faults import reporting
from ...disk.session_files.spills import DIRECTORY, open_result
from .plan import empty_marker
from .preview import beginning_in, parts_of
from .source import CHUNK, encoded


class StandIn(msgspec.Struct, frozen=True):
    """A logged block that replaced a result without a spill decision."""

    block: ToolResult
    text: str  # hash of the text saved in a file; empty if only a part was kept


class LoggedResults:
    """The spills, tool names and stand-in blocks of a log, by tool_use id."""

    def __init__(self, at: tuple[int, int], records: Iterable[Record]) -> None:
        self.at = at  # start of the log in memory, and the generation of the view
        self.spills: dict[str, Spill] = {}
        self.names: dict[str, str] = {}
        self.shown: dict[str, list[StandIn]] = {}
        hashes: dict[str, str] = {}  # hashes of texts whose message comes later in the log
        for record in records:
            if isinstance(record, Spill):
                self.spills[record.tool_use_id] = record
            elif isinstance(record, Event) and record.name == "spill" and "decision" not in record.data:
                hashes[str(record.data.get("tool_use_id"))] = str(record.data.get("sha256"))
            elif isinstance(record, Message):
                self._take(record, hashes)

    def _take(self, message: Message, hashes: dict[str, str]) -> None:
        for block in message.blocks:
            if isinstance(block, ToolUse):
                self.names[block.id] = block.name
            elif isinstance(block, ToolResult):
                text = hashes.pop(block.tool_use_id, "")
                if text or parts_of(block.text) is not None:
                    self.shown.setdefault(block.tool_use_id, []).append(StandIn(block, text))

    def stands_for(self, block: ToolResult) -> ToolResult:
        """Return the block that the log holds for this one, or the same block if there is no other."""
        for stand_in in self.shown.get(block.tool_use_id, ()):
            logged, text = stand_in.block, stand_in.text
            if text:
                same = sha256(encoded(block.text)).hexdigest() == text
            else:
                parts = parts_of(logged.text)
                same = parts is not None and parts.belong_to(block.text)
            if same and logged.is_error == block.is_error and _others(logged) == _others(block):
                return logged
        return block


def _others(block: ToolResult) -> list[Wire]:
    """Return the parts that are not text, in order."""
    return [part for part in block.content if isinstance(part, dict) and part.get("type") != "text"]


def open_spill(record: Spill, session: Path | None = None) -> str | bytes:
    """Return the complete result: text, or bytes if it is not UTF-8. The content is checked against the record's hash.

    `session` is the session's current directory, used if the file is no longer at the recorded path (a moved home directory).
    """
    path = _where(record, session)
    data = _read(path)
    if record.sha256 and sha256(data).hexdigest() != record.sha256:
        raise DiskError(
            path, "checksum mismatch: the file was changed after it was written", "rely on the preview in the conversation"
        )
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def spilled_text(record: Spill, session: Path | None = None) -> str:
    """Return the complete result as text, with invalid UTF-8 replaced."""
    content = open_spill(record, session)
    return content if isinstance(content, str) else content.decode("utf-8", "replace")


def _where(record: Spill, session: Path | None) -> str:
    if os.path.lexists(record.path):
        return record.path
    if session is not None and (moved := session / DIRECTORY / os.path.basename(record.path)).exists():
        return str(moved)
    raise DiskError(record.path, "the file with the complete result is missing", "only the preview in the conversation is left")


def _read(path: str) -> bytes:
    fd = open_result(path)
    try:
        with reporting(path):
            parts = []
            while part := os.read(fd, CHUNK):
                parts.append(part)
            return b"".join(parts)
    finally:
        os.close(fd)


def receipt_of(record: Spill, message: str) -> Receipt:
    """Return the receipt of a spill, for the message that holds the result."""
    return write_receipt(record.uuid, [message], {message: Told("spilled", record.path)})


def as_kept(block: ToolResult, tool: str, preview: str | None, spill: Spill | None) -> ToolResult:
    """Return the block that the log holds for a result in the caller's own message list.

    Syncing such a list compares with this block too. `preview` is the text the view shows for the result and `spill` the decision
    about it, if known."""
    if is_nothing(block):
        return tool_result(block.tool_use_id, empty_marker(tool))
    if spill is not None:
        same, preview = sha256(encoded(block.text)).hexdigest() == spill.sha256, spill.preview
    elif preview is not None and preview.startswith("<persisted-output>"):
        beginning = beginning_in(preview)
        size = f" {len(encoded(block.text)):,} bytes"
        same = size in preview and escape(block.text[: len(beginning)]).startswith(beginning)
    else:
        return block
    return tool_result(block.tool_use_id, preview, is_error=block.is_error) if same else block


def is_nothing(block: ToolResult) -> bool:
    """Return whether a result is empty: no error, no images, and only whitespace."""
    return not block.is_error and not is_mixed(block) and not block.text.strip()


def is_mixed(block: ToolResult) -> bool:
    return isinstance(block.content, list) and any(part.get("type") != "text" for part in block.content)
