"""The registry: which results in view may be cleared, oldest first, and what each is worth (M1, M6).

It follows the view by what is new in it and is built again when the view changed in any other way. Invariant: its rows are those
of a walk over the whole view, at any moment. Sums are kept beside the rows, so that a decision is a binary search and not a walk:
before most calls nothing is to be done, and that answer must cost nothing.

Never registered: results of tools that are not clearable, of MCP tools whatever the policy says, results made up for calls that
were interrupted, what a person pinned, what a person took back from a clearing, and what is cleared already.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from ...core.blocks import Block, ToolResult, ToolUse, canonical
from ...core.record_lines import UNRECORDED_MARKER
from ...core.view import Item, View


def original(block: ToolResult) -> tuple[str, bytes]:
    """The suffix of its file, and its bytes: text as it is; a result that holds more than text (an image) as the JSON of its parts, so
    that nothing is lost."""
    parts = block.content
    if isinstance(parts, str) or all(part.get("type") == "text" for part in parts):
        return ".txt", block.text.encode()
    return ".json", canonical(parts)


_BEGINNING = "[Cleared to save room: "


def marker(path: str) -> str:
    """`path` is where the whole result lies; it names the call, so two results never share a marker."""
    return f"{_BEGINNING}the whole result is in {path} and can be read there.]"


def is_marker(shown: str) -> bool:
    """Whether a frozen replacement stands for a cleared result, and not for a spilled one."""
    return shown.startswith(_BEGINNING) or shown == UNRECORDED_MARKER


# A tool that an MCP server brings is named so by everybody.
MCP = "mcp__"
# Attachments that bring memories; what is recalled once more is surfaced again.
MEMORIES = frozenset({"attachment:relevant_memories", "attachment:nested_memory"})
NOTHING: frozenset[str] = frozenset()
# Answers that the growth of a conversation is judged by: enough to even out one big file, few enough to follow a change of work.
GROWTH_ANSWERS = 20


class Clearable(NamedTuple):
    """A result that may be cleared. `before` counts all tokens in view ahead of it: clearing it writes again what is behind."""

    block: ToolResult
    record: str
    tokens: int
    before: int


class Surfaced(NamedTuple):
    """A memory attachment, and how many messages the person had written when it came."""

    record: str
    tokens: int
    said: int


class Rules(NamedTuple):
    """What decides whether a result is registered at all."""

    clearable: frozenset[str]
    spared: frozenset[str] = frozenset()  # tool_use ids that a person took back
    marker_tokens: int = 0  # what is left of a cleared result


class Registry:
    def __init__(self) -> None:
        self._view: View | None = None
        self._key: object = None
        self._marker_tokens = 0
        self._begin()

    def _begin(self) -> None:
        self.rows: list[Clearable] = []
        self.sums: list[int] = []  # tokens of the rows up to and with this one
        self.savings: list[int] = []  # what clearing them would save
        self.surfaced: list[Surfaced] = []
        self.tokens = 0  # of everything in view
        self.said = 0  # messages the person wrote
        self._at = 0
        self._calls: set[str] = set()
        self._known: set[str] = set()
        self._answer: str | None = None
        self._totals: deque[int] = deque(maxlen=GROWTH_ANSWERS + 1)

    def __contains__(self, tool_use_id: object) -> bool:
        return tool_use_id in self._known

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def total(self) -> int:
        """Tokens of all clearable results together."""
        return self.sums[-1] if self.sums else 0

    @property
    def growth(self) -> float | None:
        """Tokens the conversation grows by between two answers, lately; None where it is too young to tell."""
        if len(self._totals) < 2:
            return None
        return (self._totals[-1] - self._totals[0]) / (len(self._totals) - 1)

    def saved_by(self, count: int) -> int:
        """Tokens that clearing the oldest `count` saves."""
        return self.savings[count - 1] if count > 0 else 0

    def oldest(self, count: int) -> list[Clearable]:
        """The oldest `count`, without those that are no longer than the marker that would stand for them."""
        return [row for row in self.rows[:count] if row.tokens > self._marker_tokens]

    def old_memories(self, older_than: int) -> list[Surfaced]:
        """M6: attachments that came before the last `older_than` messages of the person, and one more."""
        return [one for one in self.surfaced if self.said - one.said > older_than]

    def follow(self, view: View, rules: Rules, measure: Callable[[Block], int]) -> bool:
        """Take in what is new; True where everything was read again. `measure` gives a block's plain estimate."""
        pinned = frozenset(pin.target for pin in view.pins.values() if pin.target is not None) if view.pins else NOTHING
        key = (view.generation, rules, pinned)
        anew = view is not self._view or key != self._key
        if anew:
            self._begin()
            self._view, self._key, self._marker_tokens = view, key, rules.marker_tokens
        if self._at < len(view.items):
            for item in view.items[self._at :]:
                self._take(item, rules, measure, view.replaced, pinned=item.uuid in pinned)
            self._at = len(view.items)
        return anew

    def _take(self, item: Item, rules: Rules, measure: Callable[[Block], int], replaced: dict[str, str], *, pinned: bool) -> None:
        if item.role == "assistant" and (item.key is None or item.key != self._answer):
            self._answer = item.key
            self._totals.append(self.tokens)
        start = self.tokens
        for block in item.blocks:
            tokens = measure(block)
            if isinstance(block, ToolUse):
                if block.name in rules.clearable and not block.name.startswith(MCP):
                    self._calls.add(block.id)
            elif isinstance(block, ToolResult) and not item.synthetic and not pinned:
                self._register(block, item.uuid, tokens, rules, replaced.get(block.tool_use_id))
            self.tokens += tokens
        if item.kind in MEMORIES and not pinned:
            self.surfaced.append(Surfaced(item.uuid, self.tokens - start, self.said))
        elif item.kind == "said" and item.role == "user" and any(not isinstance(block, ToolResult) for block in item.blocks):
            self.said += 1

    def _register(self, block: ToolResult, record: str, tokens: int, rules: Rules, shown: str | None) -> None:
        call = block.tool_use_id
        if call not in self._calls or call in self._known or call in rules.spared or (shown is not None and is_marker(shown)):
            return
        self._known.add(call)
        self.rows.append(Clearable(block, record, tokens, self.tokens))
        self.sums.append(self.total + tokens)
        self.savings.append(self.saved_by(len(self.savings)) + max(0, tokens - rules.marker_tokens))
