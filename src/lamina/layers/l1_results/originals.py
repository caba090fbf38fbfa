"""What the whole log knows of results that a caller's own list has in another form (Session.sync).

Read from the transcript when it is first asked for, so a resumed session recognises what the one before it took in. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from ...core.blocks import ToolResult, ToolUse, Wire
from ...core.records import Event, Message, Record, Spill
from .preview import beginning_of
from .source import encoded


class Shown(NamedTuple):
    """A block of the log that stands for a result of which no decision tells."""

    block: ToolResult
    text: str  # hash of the text that lies in a file; empty where only the beginning was kept


class Known:
    """By tool_use id: the spills, the tools of the calls, and blocks that stand for others."""

    def __init__(self, at: tuple[int, int], records: Iterable[Record]) -> None:
        self.at = at  # where memory began, and the generation of the view
        self.spills: dict[str, Spill] = {}
        self.names: dict[str, str] = {}
        self.shown: dict[str, list[Shown]] = {}
        hashes: dict[str, str] = {}  # of texts whose message follows in the log
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
                if text or beginning_of(block.text) is not None:
                    self.shown.setdefault(block.tool_use_id, []).append(Shown(block, text))

    def stands_for(self, block: ToolResult) -> ToolResult:
        """The block that the log holds for this one; the same one where it is not known."""
        for shown, text in self.shown.get(block.tool_use_id, ()):
            if text:
                same = sha256(encoded(block.text)).hexdigest() == text
            else:
                beginning = beginning_of(shown.text)
                same = beginning is not None and block.text.startswith(beginning) and len(block.text) > len(beginning)
            if same and shown.is_error == block.is_error and _others(shown) == _others(block):
                return shown
        return block


def _others(block: ToolResult) -> list[Wire]:
    """What is no text, in order."""
    return [part for part in block.content if isinstance(part, dict) and part.get("type") != "text"]
