"""The kinds of content in a context window, and their sizes as the view changes.

`KindSums` follows a view: after each change it pays for the items that changed, so that a session costs its length and not its square.
`Split` divides what the provider reported among the kinds. The recorded kinds share what their own estimates explain. The rest was sent
but is in no record: the system prompt and the tools of another agent, and context that it inserted. Invariant: the parts add up to
the reported total. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..conversation.window.estimate import estimate
from ..conversation.window.features import measure, measure_all
from ..core.blocks import Block, RedactedThinking, Text, Thinking, ToolResult, ToolUse, Unknown, canonical, text
from ..core.message_list import SERVER_CALL, SERVER_RESULT
from ..core.records import Snapshot
from ..core.view import Item, View
from .content_kinds import KINDS as KINDS
from .content_kinds import group_of as group_of
from .content_kinds import kind_of_attachment as kind_of_attachment
from .scan import CHARS_PER_TOKEN, is_injected
from .window_report import SUMMARY_KINDS as SUMMARY_KINDS

AT = {name: at for at, name in enumerate(KINDS)}

# A request that differs from the estimate by less than either is an error of the estimate, not content without a record.
STEP_TOKENS = 1_500
STEP_SHARE = 0.2
# The recorded content explains at most this share above its estimate.
MOST_RATIO = 1.25


def kind_of(item: Item, block: Block, tools: dict[str, str]) -> str:
    """Return the kind of a block; `tools` maps the ids of calls to the names of their tools."""
    if isinstance(block, ToolUse):
        return "call"
    if isinstance(block, ToolResult):
        return group_of(tools.get(block.tool_use_id, ""))
    if item.kind in SUMMARY_KINDS:
        return "summary"
    if item.kind.startswith("attachment:"):
        return kind_of_attachment(item.kind.removeprefix("attachment:"))
    match block:
        case Thinking() | RedactedThinking():
            return "thinking"
        case Unknown(kind=kind) if kind.endswith(SERVER_CALL):
            return "call"
        case Unknown(kind=kind):
            return "web" if kind.endswith(SERVER_RESULT) else "other"
        case _ if item.role == "assistant":
            return "assistant"
        case Text(text=words) if item.kind == "meta" or is_injected(words):
            return "other"
        case _:
            return "user"


class KindSums:
    """The estimated tokens of a view by kind. `added` counts new content since `taken` was last called."""

    def __init__(self) -> None:
        self.tools: dict[str, str] = {}  # tool_use id → name, also of calls that left the view
        self._sums = [0] * len(KINDS)
        self._added = 0
        self._items: list[Item] = []
        self._parts: list[list[tuple[int, int]]] = []  # of each item: the kind's position and the tokens of each block
        self._memo: dict[bytes, int] = {}
        self._view: View | None = None
        self._generation = -1
        self._snapshot: Snapshot | None = None

    def follow(self, view: View) -> None:
        """Bring the sums up to date with the view."""
        if view.snapshot is not self._snapshot:
            self._snapshot = view.snapshot
            self._sums[AT["system"]], self._sums[AT["tools"]] = _head(view.snapshot)
        start, gone = len(self._items), set[str]()
        if view is not self._view or view.generation != self._generation:
            start = self._unchanged(view.items)
            gone = {item.uuid for item in self._items[start:]}
            for parts in self._parts[start:]:
                self._count(parts, -1)
            del self._items[start:], self._parts[start:]
            self._view, self._generation = view, view.generation
        for item in view.items[start:]:
            parts = self._parts_of(item)
            total = self._count(parts, 1)
            # What a decision puts in the place of messages is not new content, and neither is what stays.
            self._added += 0 if item.uuid in gone or item.kind in SUMMARY_KINDS else total
            self._items.append(item)
            self._parts.append(parts)

    def taken(self) -> tuple[list[int], int]:
        """Return the sums, and the tokens of new content since the last time."""
        added, self._added = self._added, 0
        return self._sums.copy(), added

    def without(self, key: str) -> list[int]:
        """Return the sums without the records of one answer."""
        sums = self._sums.copy()
        for item, parts in zip(reversed(self._items), reversed(self._parts), strict=True):
            if (item.key or item.uuid) != key:
                break
            for at, tokens in parts:
                sums[at] -= tokens
        return sums

    def _unchanged(self, items: list[Item]) -> int:
        start = 0
        for held, item in zip(self._items, items, strict=False):
            if held is not item:
                break
            start += 1
        return start

    def _count(self, parts: list[tuple[int, int]], sign: int) -> int:
        total = 0
        for at, tokens in parts:
            self._sums[at] += sign * tokens
            total += tokens
        return total

    def _parts_of(self, item: Item) -> list[tuple[int, int]]:
        parts = []
        for block in item.blocks:
            if isinstance(block, ToolUse):
                self.tools[block.id] = block.name
            elif isinstance(block, Thinking) and not block.signature:
                continue  # never sent
            tokens = self._memo.get(block.digest)
            if tokens is None:
                tokens = self._memo[block.digest] = estimate(measure(block))
            parts.append((AT[kind_of(item, block, self.tools)], tokens))
        return parts


def _head(snapshot: Snapshot | None) -> tuple[int, int]:
    if snapshot is None:
        return 0, 0
    system, tools = (
        estimate(measure_all([text(canonical(part).decode("utf-8", "replace"))])) if part else 0
        for part in (snapshot.system, snapshot.tools)
    )
    return system, tools


class Split:
    """Divides the tokens of each request among the kinds, in the order of the requests."""

    def __init__(self) -> None:
        self._head = 0
        self._unrecorded = 0
        self._ratio = 1.0  # reported over estimated tokens of the recorded kinds
        self._last: tuple[int, int] | None = None  # tokens and estimate of the last request that was reported
        self.surprise = 0  # tokens by which the last request was larger than its records explain, or smaller

    def parts(self, sums: Sequence[int], tokens: int | None, *, compacted: bool) -> list[int]:
        """Return the tokens of each kind. `tokens` is what the provider reported; `compacted` if a summary replaced messages."""
        estimated, recorded_head = sum(sums), bool(sums[AT["system"]] or sums[AT["tools"]])
        self.surprise = 0
        if tokens is None:
            return self._fill(sums, self._head + self._unrecorded + round(estimated * self._ratio))
        if recorded_head:
            # Lamina records whole requests, so the difference is an error of the estimate.
            self._head = self._unrecorded = 0
        elif self._last is None:
            self._head = max(0, tokens - estimated)
        elif compacted:
            rest = tokens - self._head - estimated
            self._unrecorded = rest if rest > _tolerance(estimated) else 0
        else:
            self._step(tokens, estimated)
        self._last = tokens, estimated
        if not recorded_head:
            limit = tokens - self._head - round(MOST_RATIO * estimated) - STEP_TOKENS
            self._unrecorded = max(0, min(max(self._unrecorded, limit), tokens - self._head))
        return self._fill(sums, tokens)

    def _step(self, tokens: int, estimated: int) -> None:
        assert self._last is not None
        grown, expected = tokens - self._last[0], estimated - self._last[1]
        surprise = grown - round(expected * min(1.0, self._ratio) if expected < 0 else expected)
        if abs(surprise) > _tolerance(abs(expected)):
            self.surprise = surprise
            self._unrecorded = max(0, self._unrecorded + surprise)

    def _fill(self, sums: Sequence[int], tokens: int) -> list[int]:
        head = min(self._head, tokens)
        rest = min(self._unrecorded, tokens - head)
        shared, estimated = tokens - head - rest, sum(sums)
        if not estimated:
            rest, shared = rest + shared, 0
        else:
            self._ratio = shared / estimated
        parts, seen = [], 0
        for one in sums:
            # Rounding the running sum instead of each part makes the parts add up exactly.
            before, seen = seen, seen + one
            parts.append(seen * shared // estimated - before * shared // estimated if estimated else 0)
        parts[AT["unrecorded_head"]] += head
        parts[AT["unrecorded"]] += rest
        return parts


def parts_of_fullest(full: Mapping[str, int], head: int, tokens: int) -> list[int]:
    """Return the tokens of each kind in a session's fullest request, from the characters and the head that the index holds."""
    split = Split()
    split.parts([0] * len(KINDS), head, compacted=False)
    return split.parts([full.get(kind, 0) // CHARS_PER_TOKEN for kind in KINDS], tokens, compacted=True)


def _tolerance(estimated: int) -> int:
    return max(STEP_TOKENS, round(STEP_SHARE * estimated))
