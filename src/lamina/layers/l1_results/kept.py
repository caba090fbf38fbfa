"""Spilled results again: their whole, their receipt, and the block that stands for them in the log."""

from __future__ import annotations

import os
from collections.abc import Mapping
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
    if session is not None and not os.path.exists(record.path):
        moved = session / DIRECTORY / os.path.basename(record.path)
        if moved.exists():
            return str(moved)
    return record.path


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


def as_kept(block: ToolResult, tool: str, frozen: Mapping[str, str], spills: Mapping[str, Spill]) -> ToolResult:
    """The block that the log holds for a result as its caller has it. Whoever follows a caller's own list compares with this one
    too. `frozen` is the view's, `spills` are those in memory by tool_use id: of older ones only the preview is known."""
    preview = frozen.get(block.tool_use_id)
    if not block.is_error and block.content in ("", []):
        return tool_result(block.tool_use_id, empty_marker(tool))
    if preview is None or not preview.startswith("<persisted-output>"):
        return block
    data = encoded(block.text)
    spill = spills.get(block.tool_use_id)
    if spill is not None:
        same = sha256(data).hexdigest() == spill.sha256
    else:
        beginning = preview.partition("\nIt begins:\n")[2].removesuffix("\n</persisted-output>")
        same = f" {len(data):,} bytes" in preview and escape(block.text[: len(beginning)]).startswith(beginning)
    return tool_result(block.tool_use_id, preview, is_error=block.is_error) if same else block
