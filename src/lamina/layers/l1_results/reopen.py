"""Spilled results again: their whole, their receipt, and the block that stands for them in the log."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from lamina.core.blocks import ToolResult, tool_result
from lamina.core.errors import DiskError
from lamina.core.fence import escape
from lamina.core.receipts import Receipt, Told, write_receipt
from lamina.core.records import Spill
from lamina.disk.faults import reporting
from lamina.disk.spills import DIRECTORY, open_result

from .plan import empty_marker
from .source import CHUNK, encoded


def open_spill(record: Spill, session: Path | None = None) -> str | bytes:
    """The whole result: text, or bytes where it is no UTF-8. It is checked against the record's hash.

    `session` is the directory the session has now: a home that was moved took its files along.
    """
    path = _where(record, session)
    data = _read(path)
    if record.sha256 and sha256(data).hexdigest() != record.sha256:
        raise DiskError(path, "is not what was spilled there: its hash is another", "do not rely on it; the preview still holds")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _where(record: Spill, session: Path | None) -> str:
    if os.path.lexists(record.path):
        return record.path
    if session is not None and (moved := session / DIRECTORY / os.path.basename(record.path)).exists():
        return str(moved)
    raise DiskError(record.path, "the whole result lay here and is gone", "the preview in the conversation is what is left of it")


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
    """B1: what became of the message that holds the result."""
    return write_receipt(record.uuid, [message], {message: Told("spilled", record.path)})


def as_kept(block: ToolResult, tool: str, preview: str | None, spill: Spill | None) -> ToolResult:
    """The block that the log holds for a result as its caller has it. Whoever follows a caller's own list compares with this one
    too. `preview` is what the view shows of it, `spill` the decision about it, where either is known."""
    if is_nothing(block):
        return tool_result(block.tool_use_id, empty_marker(tool))
    if spill is not None:
        same, preview = sha256(encoded(block.text)).hexdigest() == spill.sha256, spill.preview
    elif preview is not None and preview.startswith("<persisted-output>"):
        beginning = preview.partition("\nIt begins:\n")[2].removesuffix("\n</persisted-output>")
        size = f" {len(encoded(block.text)):,} bytes"
        same = size in preview and escape(block.text[: len(beginning)]).startswith(beginning)
    else:
        return block
    return tool_result(block.tool_use_id, preview, is_error=block.is_error) if same else block


def is_nothing(block: ToolResult) -> bool:
    """R6: a result that says nothing."""
    other = isinstance(block.content, list) and any(part.get("type") != "text" for part in block.content)
    return not block.is_error and not other and not block.text.strip()
