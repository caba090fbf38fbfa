"""The registry of clearable results in view, oldest first, with the tokens that clearing each would save (M1, M6).

The registry takes in new messages incrementally and is rebuilt when the view changes in any other way. Invariant: at any moment
its rows equal those of a walk over the whole view. Running sums are kept with the rows, so a decision is a binary search instead
of a walk: before most calls there is nothing to clear, and finding that out must be cheap.

These results are never registered: results of tools that are not clearable, results of MCP tools (whatever the policy allows),
synthetic results of interrupted calls, results pinned by the user, results of a clearing that the user undid, and results already
cleared. Answers that could be shortened, and those with thinking or with the text of a file, are registered too (old_answers.py,
plan.py), under the same conditions; an answer that was shortened before is not shortened again.

`Repeated` finds results that a later one makes worthless: the file was read again or rewritten, or the same text came again (P5).
An edit does not count as a rewrite: the rest of the file that was read is still right. A later read counts only if it shows all
lines of the earlier one. A failed call changes nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from ...core.blocks import Block, RedactedThinking, Thinking, ToolResult, ToolUse, canonical
from ...core.reach import EXPAND, Reach
from ...core.record_lines import UNRECORDED_MARKER
from ...core.view import Item, View
from .old_answers import WRITERS, LongAnswer, is_clearable, is_long

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
    arguments: Mapping[str, Any] = call.input if isinstance(call.input, Mapping) else {}
    path = next((value for name in PATHS if isinstance(value := arguments.get(name), str)), "")
    first, lines = _whole(arguments.get("offset"), 1), _whole(arguments.get("limit"), PAGE_LINES)
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
            reads = self._reads.get(call.path, {})
            current = {} if call.tool == WRITE else {read: earlier for read, earlier in reads.items() if not call.shows(earlier)}
            self.superseded |= reads.keys() - current.keys()
            self._reads[call.path] = current if call.tool == WRITE else {**current, name: call}


def original(block: ToolResult) -> tuple[str, bytes]:
    """Return the file suffix and bytes of a result. Text is saved unchanged; a result with other parts (an image) is saved as
    JSON, so that nothing is lost."""
    parts = block.content
    if isinstance(parts, str) or all(part.get("type") == "text" for part in parts):
        return ".txt", block.text.encode()
    return ".json", canonical(parts)


_BEGINNING = "[Cleared to save room: "


def marker(call: str, path: str, reach: Reach) -> str:
    """Return the text that replaces a cleared result. It names the call or its file, so two results never share a marker."""
    if reach.files:
        return f"{_BEGINNING}the complete result is in {path} and can be read there.]"
    if reach.expand:
        return f"{_BEGINNING}{EXPAND} with node={call} shows the complete result.]"
    return f"{_BEGINNING}the result of {call} is no longer shown. Repeat the call if you need it.]"


def is_marker(words: str) -> bool:
    """Return whether a replacement text stands for a cleared result rather than for a spilled one."""
    return words.startswith(_BEGINNING) or words == UNRECORDED_MARKER


# Attachments that contain memories. They can be cleared, since a memory recalled again is surfaced again.
MEMORIES = frozenset({"attachment:relevant_memories", "attachment:nested_memory"})
NOTHING: frozenset[str] = frozenset()
# Number of answers used to measure growth: enough to even out one big file, few enough to follow a change of work.
GROWTH_ANSWERS = 20


# A call of which nothing more needs to be known.
UNREAD = ToolCall("", 0)


class Clearable(msgspec.Struct, frozen=True):
    """A result that may be cleared. `before` is the number of tokens in view before it: clearing it rewrites everything after
    it."""

    block: ToolResult
    record: str
    tokens: int
    before: int
    call: ToolCall


class OldAnswer(msgspec.Struct, frozen=True):
    """A record with thinking or the text of a file, the number of its answer, and of the user messages before it."""

    item: Item
    answer: int
    said: int


class Surfaced(msgspec.Struct, frozen=True):
    """A memory attachment, and the number of user messages before it."""

    record: str
    tokens: int
    said: int


class Rules(msgspec.Struct, frozen=True):
    """The rules that decide whether a result is registered."""

    clearable: frozenset[str]
    spared: frozenset[str] = frozenset()  # tool_use ids and answers of clearings that the user undid
    marker_tokens: int = 0  # tokens of the marker that replaces a cleared result
    cold: bool = False  # whether a cold cache or a compaction may clear: what only they need is followed too


class Registry:
    def __init__(self) -> None:
        self._view: View | None = None
        self._key: object = None
        self._marker_tokens = 0
        self._begin()

    def _begin(self) -> None:
        self.rows: list[Clearable] = []
        self.sums: list[int] = []  # tokens of the rows up to and including this one
        self.savings: list[int] = []  # tokens that clearing those rows would save
        self.newest_answers: list[int] = []  # the newest answer among the calls of the rows up to and including this one
        self.surfaced: list[Surfaced] = []
        self.long_answers: list[LongAnswer] = []
        self.thinking: list[OldAnswer] = []
        self.written: list[OldAnswer] = []
        self.answers = 0
        self.repeated = Repeated()
        self.tokens = 0  # tokens of everything in view
        self.said = 0  # number of user messages
        self._at = 0
        self._calls: dict[str, ToolCall] = {}
        self._known: set[str] = set()
        self._answer: str | None = None
        self._totals: deque[int] = deque(maxlen=GROWTH_ANSWERS + 1)

    def __contains__(self, tool_use_id: object) -> bool:
        return tool_use_id in self._known

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def total(self) -> int:
        """Total tokens of all clearable results."""
        return self.sums[-1] if self.sums else 0

    @property
    def growth(self) -> float | None:
        """The recent growth of the conversation in tokens per answer, or None if it is too young to measure."""
        if len(self._totals) < 2:
            return None
        return (self._totals[-1] - self._totals[0]) / (len(self._totals) - 1)

    def saved_by(self, count: int) -> int:
        """Return the tokens saved by clearing the oldest `count` results."""
        return self.savings[count - 1] if count > 0 else 0

    def is_worth_clearing(self, row: Clearable) -> bool:
        """Return whether a result is longer than its marker would be."""
        return row.tokens > self._marker_tokens

    def oldest(self, count: int) -> list[Clearable]:
        """Return the oldest `count` results, without those that are not longer than their marker would be."""
        marker_tokens = self._marker_tokens
        return [row for row in self.rows[:count] if row.tokens > marker_tokens]

    def old_memories(self, older_than: int) -> list[Surfaced]:
        """Return the memory attachments followed by more than `older_than` user messages."""
        return [memory for memory in self.surfaced if self.said - memory.said > older_than]

    def follow(self, view: View, rules: Rules, measure: Callable[[Block], int]) -> bool:
        """Take in new messages. Return True if the registry was rebuilt. `measure` returns the uncalibrated estimate of a
        block."""
        pinned = frozenset(pin.target for pin in view.pins.values() if pin.target is not None) if view.pins else NOTHING
        key = (view.generation, rules, pinned)
        rebuilt = view is not self._view or key != self._key
        if rebuilt:
            self._begin()
            self._view, self._key, self._marker_tokens = view, key, rules.marker_tokens
        if self._at < len(view.items):
            for item in view.items[self._at :]:
                self._take(view.as_settled(item), rules, measure, view, pinned=item.uuid in pinned)
            self._at = len(view.items)
        return rebuilt

    def _take(self, item: Item, rules: Rules, measure: Callable[[Block], int], view: View, *, pinned: bool) -> None:
        if item.role == "assistant" and (item.key is None or item.key != self._answer):
            self._answer = item.key
            self.answers += 1
            self._totals.append(self.tokens)
        start = self.tokens
        for block in item.blocks:
            tokens = measure(block)
            if isinstance(block, ToolUse):
                if is_clearable(block.name, rules.clearable):
                    self._calls[block.id] = read_call(block, self.answers) if rules.cold else UNREAD
            elif isinstance(block, ToolResult) and not item.synthetic and not pinned:
                replacement = view.replaced.get(block.tool_use_id) or view.once.get(block.tool_use_id)
                self._register(block, item.uuid, tokens, rules, replacement)
            self.tokens += tokens
        if item.role == "assistant" and not pinned and item.uuid not in rules.spared:
            if any(is_long(block, rules.clearable) for block in item.blocks):
                self.long_answers.append(LongAnswer(item, start))
            if rules.cold and item.uuid not in view.shortened:
                old = OldAnswer(item, self.answers, self.said)
                if any(isinstance(block, Thinking | RedactedThinking) for block in item.blocks):
                    self.thinking.append(old)
                if any(isinstance(block, ToolUse) and block.name in WRITERS and block.id in self._calls for block in item.blocks):
                    self.written.append(old)
        elif item.kind in MEMORIES and not pinned:
            self.surfaced.append(Surfaced(item.uuid, self.tokens - start, self.said))
        elif item.kind == "said" and item.role == "user" and any(not isinstance(block, ToolResult) for block in item.blocks):
            self.said += 1

    def _register(self, block: ToolResult, record: str, tokens: int, rules: Rules, replacement: str | None) -> None:
        call = block.tool_use_id
        if call not in self._calls or call in self._known:
            return
        if rules.cold and replacement is None:
            self.repeated.take(self._calls[call], block)
        if call in rules.spared or (replacement is not None and is_marker(replacement)):
            return
        self._known.add(call)
        self.rows.append(Clearable(block, record, tokens, self.tokens, self._calls[call]))
        self.newest_answers.append(max(self._calls[call].answer, self.newest_answers[-1] if self.newest_answers else 0))
        self.sums.append(self.total + tokens)
        self.savings.append(self.saved_by(len(self.savings)) + max(0, tokens - rules.marker_tokens))
