"""Find repeated reads in a recording, and those caused by a policy. Pure.

A read is repeated if the same file or search was read before and the conversation has not changed it since. It is a regret if
none of the earlier results was in view any more: cleared, spilled to a preview, or replaced by a summary. Command output does
not count as a read, because commands are run again when the world has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..core.blocks import Block, ToolResult, ToolUse, canonical
from .figures import ReplayFigures

# Names of these tools in common agents.
READERS = frozenset({"Read", "NotebookRead", "View", "read_file", "view"})
SEARCHERS = frozenset({"Grep", "Glob", "LS", "WebFetch", "WebSearch", "grep", "glob", "ls", "search"})
WRITERS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit", "write_file", "edit_file", "str_replace"})
PATHS = ("file_path", "path", "notebook_path")
# The end of a whole-file read.
END = 1 << 40


class ReadRange(NamedTuple):
    call: str  # tool_use id
    first: int
    end: int


class ReadTracker:
    """Follows the calls of one session."""

    def __init__(self) -> None:
        self._read: dict[bytes, list[ReadRange]] = {}
        self._asked: dict[str, tuple[bytes, ReadRange]] = {}  # calls without a result yet

    def again(self, calls: Iterable[ToolUse]) -> bool:
        """Return whether one of these calls repeats an earlier read, without recording them."""
        keys = ((_key(call), _range(call)) for call in calls if call.name not in WRITERS)
        return any(any(self._earlier(key, now)) for key, now in keys if key is not None)

    def _earlier(self, key: bytes, now: ReadRange) -> Iterator[ReadRange]:
        """Yield the earlier reads of the same, the newest first: it is the most likely one to be in view."""
        return (one for one in reversed(self._read.get(key, ())) if one.first < now.end and now.first < one.end)

    def called(self, calls: Iterable[ToolUse], in_view: Callable[[str], bool]) -> ReplayFigures:
        """Record calls and count repeated reads. `in_view` tells whether the result of a call is in view."""
        rereads = regrets = 0
        for call in calls:
            key = _key(call)
            if key is None:
                continue
            if call.name in WRITERS:
                self._read.pop(key, None)
                continue
            now = _range(call)
            if any(self._earlier(key, now)):
                rereads += 1
                regrets += not any(in_view(one.call) for one in self._earlier(key, now))
            self._asked[call.id] = key, now
        return ReplayFigures(repeated_reads=rereads, regrets=regrets)

    def came(self, results: Iterable[Block]) -> None:
        """Record tool results; a failed call read nothing."""
        for block in results:
            if isinstance(block, ToolResult) and (asked := self._asked.pop(block.tool_use_id, None)) and not block.is_error:
                self._read.setdefault(asked[0], []).append(asked[1])


def path_of(call: ToolUse) -> str | None:
    given = call.input if isinstance(call.input, Mapping) else {}
    return next((path for name in PATHS if isinstance(path := given.get(name), str) and path), None)


def _key(call: ToolUse) -> bytes | None:
    if call.name in READERS or call.name in WRITERS:
        path = path_of(call)
        return path.encode("utf-8", "replace") if path is not None else None
    return canonical([call.name, call.input]) if call.name in SEARCHERS else None


def _range(call: ToolUse) -> ReadRange:
    given: Mapping[str, Any] = call.input if call.name in READERS and isinstance(call.input, Mapping) else {}
    first, limit = given.get("offset"), given.get("limit")
    start = first if isinstance(first, int) else 0
    return ReadRange(call.id, start, start + limit if isinstance(limit, int) else END)
