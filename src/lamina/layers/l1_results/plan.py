"""What becomes of each result: pure, from its size, its tool and the budget.

A result is judged once, alone when it arrives (its tool's threshold) and once more together with the others of its message before
that message first leaves (R1, R3). Sizes are characters of text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias, assert_never

from ...core.policy import ResultPolicy

# What a window can hold is counted in UTF-8 bytes at two a token: that is dense for words, right for JSON (T2), and on the safe side
# for Chinese, Japanese and Korean, where a character is three bytes and about a token.
#
# One result may take 5/12 of the effective window, which is 5/6 of it in bytes. On a full window that is 150,000 bytes, so that the
# thresholds of R1 stand there for text of any script; smaller windows cap them.
_SINGLE_TOP, _SINGLE_BOTTOM = 5, 6
# All results of one message may take three quarters of it: the question and what was said before need the rest, and what makes room
# (clearing, compaction) works only below the blocking limit.
_WHOLE_TOP, _WHOLE_BOTTOM = 3, 2
# The words around a preview, with a path of ordinary length.
FRAME = 400
# A tool's name is the model's own word; of a strange one the beginning tells enough.
_LONGEST_TOOL = 64

# What a result is. text: only text; fixed: an error, or text with images and the like (R6); page: a Read of a spilled file (R5);
# empty: nothing at all.
Kind: TypeAlias = Literal["text", "fixed", "page", "empty"]
# keep: as it is; spill: to a file; page: cut to a page with advice on how to go on; mark: a marker in place of nothing.
ResultFate: TypeAlias = Literal["keep", "spill", "page", "mark"]


class ArrivedResult(NamedTuple):
    tool: str
    size: int  # characters of its text
    weight: int  # bytes of its text
    kind: Kind = "text"


class ResultBudget(NamedTuple):
    per_tool: Mapping[str, int]
    default: int
    per_message: int
    preview: int
    single: int  # bytes that one result may take of this window
    whole: int  # bytes that all results of a message may take, and more than any one could ever be sent with

    def threshold(self, tool: str) -> int:
        return min(self.per_tool.get(tool, self.default), self.single)

    def preview_of(self, tool: str) -> int:
        """Characters of the preview: well below the threshold, or nothing would be saved."""
        return max(1, min(self.preview, self.threshold(tool) // 2))

    @property
    def preview_weight(self) -> int:
        """Bytes of the preview."""
        return max(1, self.single // 2)

    def page_of(self, one: ArrivedResult) -> int:
        """Characters of a page of this text."""
        return max(1, min(self.threshold(one.tool), self.single * one.size // max(1, one.weight)))

    def exceeds(self, one: ArrivedResult) -> bool:
        return one.size > self.threshold(one.tool) or one.weight > self.single


class _Load(NamedTuple):
    size: int
    weight: int


def budget_for(policy: ResultPolicy, effective: int) -> ResultBudget:
    """The thresholds are characters and do not shrink with the window (T9 names tokens). They are capped by it: a window of a few
    thousand tokens is not to be filled by one result."""
    single = max(1, effective * _SINGLE_TOP // _SINGLE_BOTTOM)
    whole = max(1, effective * _WHOLE_TOP // _WHOLE_BOTTOM)
    return ResultBudget(policy.per_tool, policy.default, policy.per_message, policy.preview, single, whole)


def weigh(text: str, most: int) -> int:
    """Bytes of a text; of one with more than `most` characters no more is needed than that it has them."""
    return len(text) if text.isascii() or len(text) > most else len(text.encode("utf-8", "surrogatepass"))


def plan(arrived: Sequence[ArrivedResult], budget: ResultBudget) -> list[ResultFate]:
    """Results that arrive together, with none before them in their message."""
    return together(arrived, [alone(one, budget) for one in arrived], budget)


def alone(one: ArrivedResult, budget: ResultBudget) -> ResultFate:
    match one.kind:
        case "empty":
            return "mark"
        case "page":
            return "page" if budget.exceeds(one) else "keep"
        case "fixed":
            return "spill" if one.weight > budget.whole else "keep"
        case "text":
            return "spill" if budget.exceeds(one) else "keep"
        case _:
            assert_never(one.kind)


def together(arrived: Sequence[ArrivedResult], fates: Sequence[ResultFate], budget: ResultBudget) -> list[ResultFate]:
    """The largest go first until the rest fits. What saves nothing stays: a preview has a size of its own."""
    decided = list(fates)
    loads = [_shown(one, fate, budget) for one, fate in zip(arrived, fates, strict=True)]
    size, weight = sum(load.size for load in loads), sum(load.weight for load in loads)
    for index in sorted(range(len(arrived)), key=lambda at: (-arrived[at].size, at)):
        if size <= budget.per_message and weight <= budget.whole:
            break
        one = arrived[index]
        shown = _shown(one, "spill", budget)
        if one.kind == "text" and decided[index] == "keep" and shown.size < one.size:
            decided[index] = "spill"
            size -= one.size - shown.size
            weight -= one.weight - shown.weight
    return decided


def _shown(one: ArrivedResult, fate: ResultFate, budget: ResultBudget) -> _Load:
    """What stays of it in the conversation."""
    match fate:
        case "keep" | "mark":
            return _Load(one.size, one.weight)
        case "page":
            page = budget.page_of(one)
            return _Load(page, page * one.weight // max(1, one.size))
        case "spill":
            size = budget.preview_of(one.tool)
            return _Load(size + FRAME, min(budget.preview_weight, size * one.weight // max(1, one.size)) + FRAME)
        case _:
            assert_never(fate)


def empty_marker(tool: str) -> str:
    """R6: what stands for nothing, so that the model does not take it for a result that was lost."""
    return f"({tool[:_LONGEST_TOOL] or 'The call'} completed with no output)"
