"""Decide what a compaction keeps and what it summarises (C4, C6, B1, B2). Pure: items and sizes in, a frozen value out.

The view is cut into three parts: `before`, the summarised part, and `after`. The first and the last are kept; `before` is empty
unless the user asks to summarise *from* a message on. Four rules decide where `after` begins:

- user messages that no answer has seen yet stay, unless they alone would fill the window;
- tool results that no answer has seen yet stay with their calls, under the same condition;
- an answer with open calls stays, since their results are still to come;
- the policy's tail stays, unless nothing would be left to summarise: the newest tokens, between its two limits, from the beginning of a
  turn if possible.

A cut never separates a call from its result. Items that replace other records (a summary, a snip) are never kept, since the
replaced records could not be found again.

The circuit breakers decide when automatic compaction stops (C8, B3) and when it pauses. Their state is one small value, logged as
an event after every attempt, so that a resumed session knows it. After three compactions in a row that the model could not do, it
is no longer asked, and rules make every summary. After three failures in a row of the rules too, automatic compaction stops for the
session, except in a full window, where the rules are tried before every call. It also stops if the window is full again within a
few turns several times in a row. A manual compaction is always tried, and its success resets the state. After an undo automatic
compaction pauses, because the user wanted the messages back. After a veto by a hook it waits for the next user message, or until
the window is full; a veto is not a failure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import msgspec

from ...conversation.compaction.cuts import FOLDED, Size, cut_before, is_said, legal_cuts
from ...core.blocks import ToolResult, ToolUse
from ...core.policy import CompactPolicy
from ...core.view import Item
from ...language.text import Text
from ...language.wording import counted


class Pivot(msgspec.Struct, frozen=True):
    """The message chosen by the user: summarise `from` it on, or `up_to` it (everything before it)."""

    side: Literal["from", "up_to"]
    uuid: str


class SummaryPlan(msgspec.Struct, frozen=True):
    """items[start:end] are summarised, the rest stays."""

    start: int
    end: int
    count: int  # number of all items

    @property
    def empty(self) -> bool:
        return self.start >= self.end


def plan(
    items: Sequence[Item],
    *,
    size: Size,
    tail_min: int = 0,
    tail_max: int = 0,
    most_kept: int = 0,
    most_round: int = 0,
    open_calls: Collection[str] = (),
    pivot: Pivot | None = None,
) -> SummaryPlan:
    """Decide which part to summarise.

    Unanswered messages of more than `most_kept` tokens, and an unanswered round of more than `most_round`, are summarised instead
    of kept. 0 means no limit."""
    legal = legal_cuts(items)
    stays = _open_from(items, legal, open_calls)
    if stays == len(items):
        stays = _unseen_round_from(items, legal, most_round, size)
    stays = min(stays, _unanswered_from(items, legal, stays, most_kept, size))
    start, end = 0, stays
    if pivot is not None:
        cut = cut_before(legal, next((index for index, item in enumerate(items) if item.uuid == pivot.uuid), len(items)))
        start, end = (cut, stays) if pivot.side == "from" else (0, min(cut, stays))
        if pivot.side == "up_to" and end < (floor := _folded_end(items)):
            end = next(index for index in range(floor, len(legal)) if legal[index])
    elif tail_max > 0:
        shorter = _tail_from(items, legal, stays, tail_min, tail_max, size)
        # A tail that holds the whole conversation would leave nothing to summarise, and a full window full.
        end = shorter if _is_worth_it(items[:shorter]) else stays
    return SummaryPlan(start, end, len(items)) if _is_worth_it(items[start:end]) else SummaryPlan(0, 0, len(items))


def _is_worth_it(items: Sequence[Item]) -> bool:
    """Return whether there is something to summarise. Only a summary, or restored context, would lose detail and gain nothing."""
    return any(item.role == "assistant" or is_said(item) for item in items)


def _open_from(items: Sequence[Item], legal: Sequence[bool], open_calls: Collection[str]) -> int:
    for index, item in enumerate(items if open_calls else ()):
        if any(isinstance(block, ToolUse) and block.id in open_calls for block in item.blocks):
            return cut_before(legal, index)
    return len(items)


def _unseen_round_from(items: Sequence[Item], legal: Sequence[bool], most: int, size: Size) -> int:
    """Return where the last answer begins if its tool results are still unanswered, so that the model sees them."""
    start = len(items)
    for index in range(len(items) - 1, -1, -1):
        if items[index].role == "assistant" or items[index].kind in FOLDED:
            break
        if any(isinstance(block, ToolResult) for block in items[index].blocks):
            start = index
    start = cut_before(legal, start)
    tokens = size(block for item in items[start:] for block in item.blocks)
    return start if tokens <= most or not most else len(items)


def _unanswered_from(items: Sequence[Item], legal: Sequence[bool], end: int, most: int, size: Size) -> int:
    """Return where the unanswered user messages begin, if only injected context follows them."""
    start = end
    for index in range(end - 1, -1, -1):
        item = items[index]
        if item.role == "assistant" or item.kind in FOLDED or any(isinstance(block, ToolResult) for block in item.blocks):
            break
        if is_said(item):
            start = index
    tokens = size(block for item in items[start:end] for block in item.blocks)
    return start if legal[start] and (tokens <= most or not most) else end


def _tail_from(items: Sequence[Item], legal: Sequence[bool], stays: int, least: int, most: int, size: Size) -> int:
    """Return where the tail begins.

    It is the shortest tail of at least `least` tokens that begins with a turn, else with any round, else the longest that
    fits."""
    floor = _folded_end(items)
    tokens = longest = size(block for item in items[stays:] for block in item.blocks)
    best = stays
    for index in range(stays - 1, floor - 1, -1):
        tokens += size(items[index].blocks)
        if tokens > most:
            break
        if not legal[index]:
            continue
        if longest < least:
            best, longest = index, tokens
        if tokens >= least and is_said(items[index]):
            return index
    return best


def _folded_end(items: Sequence[Item]) -> int:
    """Return the index after the last item that replaces others."""
    return next((index + 1 for index in range(len(items) - 1, -1, -1) if items[index].kind in FOLDED), 0)


# The name of the event that stores the state.
EVENT = "autocompact"
# Number of answers without a user message that count as one turn. A model that reads the same large file again and again fills
# the window every few answers and is stopped; one that works for a hundred answers between two compactions is not. The number is
# for a full-sized window. In a small one, which fills up sooner whatever happens in it, each answer counts.
ANSWERS_A_TURN = 5

Stopped = Literal["", "failing", "thrashing"]


class BreakerLedger(msgspec.Struct, frozen=True):
    failures: int = 0  # consecutive failed compactions
    refills: int = 0  # how many times in a row the window was soon full again
    stopped: Stopped = ""
    boundary: str = ""  # the last compaction
    refused: str = ""  # the last user message at the time of a hook's veto
    by_rules: int = 0  # consecutive compactions that the model could not do

    def to_json(self) -> dict[str, Any]:
        built: dict[str, Any] = msgspec.to_builtins(self)
        return built


def read_ledger(data: Mapping[str, Any] | None) -> BreakerLedger:
    """Read the state. Invalid data counts as no state, which at worst allows one more attempt."""
    try:
        return msgspec.convert(data or {}, BreakerLedger)
    except msgspec.ValidationError:
        return BreakerLedger()


def filled(ledger: BreakerLedger, turns: int | None, policy: CompactPolicy) -> BreakerLedger:
    """Record that the window is full, `turns` turns after the last compaction (None if there was none).

    A window that is still full because the last attempt failed or was vetoed does not count as full again."""
    if ledger.failures or ledger.refused:
        return ledger
    if turns is None or turns > policy.thrash_turns:
        return msgspec.structs.replace(ledger, refills=0)
    refills = ledger.refills + 1
    stopped: Stopped = "thrashing" if refills >= policy.thrash_times else ledger.stopped
    return msgspec.structs.replace(ledger, refills=refills, stopped=stopped)


def failed(ledger: BreakerLedger, policy: CompactPolicy) -> BreakerLedger:
    failures = ledger.failures + 1
    stopped: Stopped = "failing" if failures >= policy.breaker else ledger.stopped
    return msgspec.structs.replace(ledger, failures=failures, stopped=stopped)


def worked(ledger: BreakerLedger, boundary: str, *, by_hand: bool, by_rules: bool = False) -> BreakerLedger:
    """Record a compaction. `by_rules` means that the model could not write the summary."""
    return BreakerLedger(
        refills=0 if by_hand else ledger.refills, boundary=boundary, by_rules=ledger.by_rules + 1 if by_rules else 0
    )


def gave_up_on_model(ledger: BreakerLedger, policy: CompactPolicy) -> bool:
    """Return whether automatic compaction no longer asks the model."""
    return ledger.by_rules >= policy.breaker or ledger.stopped == "failing"


def turns_since(items: Sequence[Item], kept: Sequence[str], *, answers_a_turn: int = ANSWERS_A_TURN) -> int:
    """Count the answered turns in view since the last compaction, which kept the records `kept`.

    A turn lasts from one user message to the next. A long turn counts once for every `answers_a_turn` answers."""
    old = set(kept)
    turns: list[set[str]] = [set()]
    for item in items:
        if item.uuid in old:
            continue
        if is_said(item):
            turns.append(set())
        elif item.role == "assistant":
            turns[-1].add(item.key or item.uuid)
    return sum(-(-len(answers) // answers_a_turn) for answers in turns)


def explanation(ledger: BreakerLedger, policy: CompactPolicy, *, base: int = 0) -> str:
    """Return the notice for the user if automatic compaction or the model's part in it has just stopped, else an empty string.

    `base` is the size of the first request, if that alone leaves compaction no room."""
    match ledger.stopped:
        case "" if ledger.by_rules == policy.breaker:
            form = Text(
                "The model could not write the summary in {compactions} in a row, so rules make all summaries of this session from "
                "now on. Use /compact to ask the model again."
            )
            return Text(form, compactions=counted(ledger.by_rules, "compaction"))
        case "failing" if ledger.failures == policy.breaker:
            form = Text(
                "Compaction failed {times} in a row, so automatic compaction is off for this session. Use /compact to try again, or "
                "/clear to start a new session."
            )
            return Text(form, times=counted(ledger.failures, "time"))
        case "thrashing":
            advice = Text(
                "Something that is read repeatedly is too large for the window. "
                "Read smaller parts and then use /compact, or start a new session with /clear."
            )
            if base:
                form = Text("The first request alone has {base:,} tokens. Shorten the instructions or the list of tools.")
                advice = Text(form, base=base)
            form = Text(
                "The window was full again within {turns} after {compactions} in a row, so automatic compaction is off for this "
                "session. {advice}"
            )
            turns, compactions = counted(policy.thrash_turns, "turn"), counted(ledger.refills, "compaction")
            return Text(form, turns=turns, compactions=compactions, advice=advice)
        case _:
            return ""
