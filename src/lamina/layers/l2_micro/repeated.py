"""Find results that a later one makes worthless: the file was read again or rewritten, or the same text came again (P5). Pure.

An edit does not count as a rewrite: the rest of the file that was read is still right. A later read counts only if it shows all
lines of the earlier one. A failed call changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ...core.blocks import ToolResult, ToolUse, canonical

READ, WRITE = "Read", "Write"
PATHS = ("file_path", "path", "notebook_path")
# Lines that a Read without a limit shows, in our own tool and in other agents.
PAGE_LINES = 2_000
# Claude Code answers a repeated Read with this instead of the text, so the earlier result is the only copy.
UNCHANGED = "File unchanged since last read"


class ToolCall(msgspec.Struct, frozen=True):
    """A call of a clearable tool. `answer` is the number of the answer that made it, `first` and `end` are the lines it reads."""

    tool: str
    answer: int
    path: str = ""
    first: int = 0
    end: int = 0

    def shows(self, other: ToolCall) -> bool:
        """Return whether this Read shows all lines of the other one."""
        return self.first <= other.first and other.end <= self.end


def read_call(call: ToolUse, answer: int) -> ToolCall:
    given: Mapping[str, Any] = call.input if isinstance(call.input, Mapping) else {}
    path = next((value for name in PATHS if isinstance(value := given.get(name), str)), "")
    first, lines = _whole(given.get("offset"), 1), _whole(given.get("limit"), PAGE_LINES)
    return ToolCall(call.name, answer, path, first, first + lines)


def _whole(value: object, otherwise: int) -> int:
    return max(1, value) if isinstance(value, int) else otherwise


class Repeated:
    """Follows the results of a conversation. `superseded` contains the calls whose results are worthless."""

    def __init__(self) -> None:
        self.superseded: set[str] = set()
        self._reads: dict[str, dict[str, ToolCall]] = {}  # path → the Reads of it whose results still count
        self._texts: dict[str | bytes, str] = {}  # content → the newest call with that result

    def take(self, call: ToolCall, result: ToolResult) -> None:
        """Take in a result that the view shows whole."""
        name = result.tool_use_id
        if result.is_error or result.text.startswith(UNCHANGED):
            return
        content = result.content if isinstance(result.content, str) else canonical(result.content)
        if (same := self._texts.get(content)) is not None:
            self.superseded.add(same)
        self._texts[content] = name
        if call.path and call.tool in (READ, WRITE):
            known = self._reads.get(call.path, {})
            gone = [one for one, earlier in known.items() if call.tool == WRITE or call.shows(earlier)]
            self.superseded.update(gone)
            left = {one: earlier for one, earlier in known.items() if one not in gone}
            self._reads[call.path] = left if call.tool == WRITE else {**left, name: call}
