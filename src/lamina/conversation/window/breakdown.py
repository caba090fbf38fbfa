"""Breaks the window's content down by kind, for display to the user.

A pure fold over the view's blocks. The tokens are estimates for the messages; the system prompt and the tools take the difference
to the total count (`Count.fixed`). If the estimates add up to more than that count, `fitted` lowers them in proportion.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, assert_never

import msgspec

from ...core.blocks import Block, Document, Image, RedactedThinking, Role, Text, Thinking, ToolResult, ToolUse, Unknown
from .estimate import START, Calibration, estimate
from .features import Memo, measure_all

Kind: TypeAlias = Literal["attachment", "memory", "summary"]
LabelledBlock: TypeAlias = tuple[Role, Block, Kind | None]

READ_TOOL = "Read"
# Argument names under which a Read call may give its file.
PATH_KEYS = ("file_path", "path")
# The tool name for a result whose call is not in view, because it was summarised.
NO_CALL = "(unknown)"


class Repeat(msgspec.Struct, frozen=True):
    """A file read more than once; `tokens` is the cost of the reads after the first."""

    path: str
    reads: int
    tokens: int


class Breakdown(msgspec.Struct, frozen=True):
    human: int = 0
    assistant: int = 0
    thinking: int = 0
    requests: dict[str, int] = {}  # by tool
    results: dict[str, int] = {}  # by tool
    attachments: int = 0
    memory: int = 0
    summary: int = 0
    other: int = 0
    repeats: tuple[Repeat, ...] = ()  # most expensive first; already included in `results`

    @property
    def total(self) -> int:
        kinds: int = sum(getattr(self, name) for name in KINDS)
        return kinds + sum(self.requests.values()) + sum(self.results.values())

    def fitted(self, most: int) -> Breakdown:
        """Return the same parts, lowered in proportion so that they add up to `most`, if they are more."""
        whole = self.total
        if whole <= most:
            return self
        sum_so_far = 0

        def part(tokens: int) -> int:
            # Rounding the running sum instead of each part makes the parts add up exactly.
            nonlocal sum_so_far
            sum_before, sum_so_far = sum_so_far, sum_so_far + tokens
            return sum_so_far * most // whole - sum_before * most // whole

        kinds = {name: part(getattr(self, name)) for name in KINDS}
        requests, results = ({tool: part(tokens) for tool, tokens in by.items()} for by in (self.requests, self.results))
        repeats = tuple(msgspec.structs.replace(repeat, tokens=repeat.tokens * most // whole) for repeat in self.repeats)
        return Breakdown(**kinds, requests=requests, results=results, repeats=repeats)

    def to_json(self) -> dict[str, Any]:
        built: dict[str, Any] = msgspec.to_builtins(self)
        return built | {"total": self.total}


# The fields that hold one number of tokens each.
KINDS = ("human", "assistant", "thinking", "attachments", "memory", "summary", "other")


def break_down(items: Iterable[LabelledBlock], calibration: Calibration = START, memo: Memo | None = None) -> Breakdown:
    kinds: dict[str, int] = {}
    requests: dict[str, int] = {}
    results: dict[str, int] = {}
    calls: dict[str, ToolUse] = {}
    reads: dict[str, list[int]] = {}
    for role, block, kind in items:
        tokens = estimate(measure_all((block,), memo), calibration)
        if isinstance(block, ToolUse):
            calls[block.id] = block
            _add(requests, block.name, tokens)
        elif isinstance(block, ToolResult):
            call = calls.get(block.tool_use_id)
            _add(results, call.name if call else NO_CALL, tokens)
            if call and (path := _read_path(call)):
                reads.setdefault(path, []).append(tokens)
        else:
            _add(kinds, _kind_of(role, block, kind), tokens)
    repeats = [Repeat(path, len(costs), sum(costs[1:])) for path, costs in reads.items() if len(costs) > 1]
    repeats.sort(key=lambda repeat: (-repeat.tokens, repeat.path))
    empty = Breakdown(requests=_largest_first(requests), results=_largest_first(results), repeats=tuple(repeats))
    return msgspec.structs.replace(empty, **kinds)


def _kind_of(role: Role, block: Text | Thinking | RedactedThinking | Image | Document | Unknown, kind: Kind | None) -> str:
    """Return the name of the field that counts the block's tokens."""
    if kind is not None:
        return {"attachment": "attachments", "memory": "memory", "summary": "summary"}[kind]
    match block:
        case Thinking() | RedactedThinking():
            return "thinking"
        case Text() | Image() | Document():
            return "human" if role == "user" else "assistant"
        case Unknown():
            return "other"
        case _:
            assert_never(block)


def _read_path(call: ToolUse) -> str | None:
    if call.name != READ_TOOL:
        return None
    return next((call.input[key] for key in PATH_KEYS if isinstance(call.input.get(key), str)), None)


def _add(sums: dict[str, int], key: str, tokens: int) -> None:
    sums[key] = sums.get(key, 0) + tokens


def _largest_first(sums: dict[str, int]) -> dict[str, int]:
    return dict(sorted(sums.items(), key=lambda item: (-item[1], item[0])))
