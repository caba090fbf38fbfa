"""Decide what happens to each tool result. Pure: the inputs are its size, its tool and the budget.

A result is checked against its tool's threshold when it arrives. It is checked again, together with the other results of its
message, before that message is first sent (R1, R3). Sizes are in characters, weights in bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, assert_never

import msgspec

from ...core.policy import OncePolicy, ResultPolicy

# The capacity of a window is estimated at two UTF-8 bytes per token. That is pessimistic for prose, right for JSON (T2), and safe
# for Chinese, Japanese and Korean, where a character is three bytes and about one token.
#
# One result may take 5/12 of the effective window, which is 5/6 of its token count in bytes. On a full window that is 150,000
# bytes, so the thresholds of R1 hold there for text in any script. Smaller windows cap them.
_SINGLE_TOP, _SINGLE_BOTTOM = 5, 6
# All results of one message may take three quarters of the window. The user's message and the history need the rest, and clearing
# and compaction only work below the blocking limit.
_WHOLE_TOP, _WHOLE_BOTTOM = 3, 2
# No limit shrinks below this many characters: a preview with the text around it would be as long.
SHORTEST_LIMIT = 1_000
# Characters of the text around a preview, with a path of ordinary length.
FRAME = 400
# The model chooses the tool name, so an unknown name can be arbitrarily long; its beginning is enough.
_LONGEST_TOOL = 64

# The kind of a result. text: only text; fixed: an error, or text mixed with images (R6); page: a Read of a spilled file (R5);
# empty: no output.
Kind: TypeAlias = Literal["text", "fixed", "page", "empty"]
# keep: unchanged; spill: moved to a file; page: cut to one page that names the next offset; mark: replaced by the empty marker.
ResultFate: TypeAlias = Literal["keep", "spill", "page", "mark"]


class ArrivedResult(msgspec.Struct, frozen=True):
    tool: str
    size: int  # characters of its text
    weight: int  # bytes of its text
    kind: Kind = "text"


class ResultBudget(msgspec.Struct, frozen=True):
    per_tool: Mapping[str, int]
    default: int
    per_message: int
    preview: int
    end_percent: int
    single: int  # maximum bytes of one result in this window
    whole: int  # maximum bytes of all results of a message; a single result above it can never be sent

    def threshold(self, tool: str) -> int:
        return min(self.per_tool.get(tool, self.default), self.single)

    def preview_of(self, tool: str) -> int:
        """Return the preview's size in characters: well below the threshold, or spilling would save nothing."""
        return max(1, min(self.preview, self.threshold(tool) // 2))

    @property
    def preview_weight(self) -> int:
        """Maximum bytes of a preview."""
        return max(1, self.single // 2)

    def page_of(self, result: ArrivedResult) -> int:
        """Return the size in characters of one page of this text."""
        return max(1, min(self.threshold(result.tool), self.single * result.size // max(1, result.weight)))

    def exceeds(self, result: ArrivedResult) -> bool:
        return result.size > self.threshold(result.tool) or result.weight > self.single


class _Load(msgspec.Struct, frozen=True):
    size: int
    weight: int


def shrunk(characters: int, scale: float) -> int:
    """Return a limit in characters for a small window, whose token budgets shrink by `scale`. Short results always stay."""
    return min(characters, max(SHORTEST_LIMIT, int(characters * scale)))


def budget_for(policy: ResultPolicy, effective: int, *, scale: float = 1.0) -> ResultBudget:
    """Return the budget for a window of `effective` tokens, whose token budgets shrink by `scale`.

    The window caps the thresholds, too: in bytes, which count for scripts with long encodings."""
    per_tool, default, per_message = policy.per_tool, policy.default, policy.per_message
    if scale < 1:
        per_tool = {tool: shrunk(characters, scale) for tool, characters in per_tool.items()}
        default, per_message = shrunk(default, scale), shrunk(per_message, scale)
    single = max(1, effective * _SINGLE_TOP // _SINGLE_BOTTOM)
    whole = max(1, effective * _WHOLE_TOP // _WHOLE_BOTTOM)
    return ResultBudget(per_tool, default, per_message, policy.preview, policy.end_percent, single, whole)


def weigh(text: str, most: int) -> int:
    """Return the size of a text in bytes. Beyond `most` characters the length alone decides, so encoding is skipped."""
    return len(text) if text.isascii() or len(text) > most else len(text.encode("utf-8", "surrogatepass"))


def plan(arrived: Sequence[ArrivedResult], budget: ResultBudget) -> list[ResultFate]:
    """Decide for results that arrive together as the first of their message."""
    return together(arrived, [alone(result, budget) for result in arrived], budget)


def alone(result: ArrivedResult, budget: ResultBudget) -> ResultFate:
    match result.kind:
        case "empty":
            return "mark"
        case "page":
            return "page" if budget.exceeds(result) else "keep"
        case "fixed":
            return "spill" if result.weight > budget.whole else "keep"
        case "text":
            return "spill" if budget.exceeds(result) else "keep"
        case _:
            assert_never(result.kind)


def together(arrived: Sequence[ArrivedResult], fates: Sequence[ResultFate], budget: ResultBudget) -> list[ResultFate]:
    """Spill the largest results first until the rest fits. A result that its preview would not shrink stays."""
    decided = list(fates)
    loads = [_shown(result, fate, budget) for result, fate in zip(arrived, fates, strict=True)]
    size, weight = sum(load.size for load in loads), sum(load.weight for load in loads)
    for index in sorted(range(len(arrived)), key=lambda position: (-arrived[position].size, position)):
        if size <= budget.per_message and weight <= budget.whole:
            break
        result = arrived[index]
        preview = _shown(result, "spill", budget)
        if result.kind == "text" and decided[index] == "keep" and preview.size < result.size:
            decided[index] = "spill"
            size -= result.size - preview.size
            weight -= result.weight - preview.weight
    return decided


def shown_once(result: ArrivedResult, fate: ResultFate, policy: OncePolicy) -> bool:
    """Return whether a result that is kept leaves the context after the next answer. Its preview must be shorter than itself."""
    long = result.size >= policy.from_chars > 0 and result.size > policy.preview + FRAME
    return long and fate == "keep" and result.kind == "text" and result.tool not in policy.kept_tools


def _shown(result: ArrivedResult, fate: ResultFate, budget: ResultBudget) -> _Load:
    """Return the size that a result with this fate has in the conversation."""
    match fate:
        case "keep" | "mark":
            return _Load(result.size, result.weight)
        case "page":
            page = budget.page_of(result)
            return _Load(page, page * result.weight // max(1, result.size))
        case "spill":
            size = budget.preview_of(result.tool)
            return _Load(size + FRAME, min(budget.preview_weight, size * result.weight // max(1, result.size)) + FRAME)
        case _:
            assert_never(fate)


def empty_marker(tool: str) -> str:
    """Return the text shown for an empty result, so that the model does not take the result for lost."""
    return f"({tool[:_LONGEST_TOOL] or 'The call'} completed with no output)"
