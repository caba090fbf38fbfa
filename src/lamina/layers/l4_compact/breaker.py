"""When compaction by itself stops (C8, B3) and when it pauses. Pure.

The state is one small value, written as an event behind every attempt, so a resumed session knows it. Three failed compactions in a
row, or a window that is full again within a few turns several times in a row, stop it for the session; a compaction by hand is
always tried, and its success starts afresh. After an undo it pauses: the person wanted the messages back. Where a hook of the
person's said no it waits for their next message; that is no failure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from ...conversation.compaction.cuts import is_said
from ...core.policy import CompactPolicy
from ...core.view import Item

# The event that carries the state.
EVENT = "autocompact"
# "Near" the blocking limit, in tokens for a full-sized window: a pause after an undo ends here, one round before it would block.
NEAR = 3_000
# So many answers without a word of the person's count as one turn: a model that reads the same large file again and again fills the
# window every few answers and is stopped, one that works on for a hundred answers between two compactions is not. For a full-sized
# window: a small one fills up sooner whatever is done in it, and there each answer counts.
ANSWERS_A_TURN = 5

Stopped = Literal["", "failing", "thrashing"]


class BreakerLedger(msgspec.Struct, frozen=True):
    failures: int = 0  # compactions in a row that did not work
    refills: int = 0  # times in a row the window was full again at once
    stopped: Stopped = ""
    boundary: str = ""  # the last compaction
    refused: str = ""  # the person's last message when a hook said no to one

    def to_json(self) -> dict[str, Any]:
        built: dict[str, Any] = msgspec.to_builtins(self)
        return built


def read_ledger(data: Mapping[str, Any] | None) -> BreakerLedger:
    """What cannot be read counts as nothing: the worst that follows is one more attempt."""
    try:
        return msgspec.convert(data or {}, BreakerLedger)
    except msgspec.ValidationError:
        return BreakerLedger()


def filled(ledger: BreakerLedger, turns: int | None, policy: CompactPolicy) -> BreakerLedger:
    """The window is full; `turns` came since the last compaction (None: there was none). One that is full still, because the last
    attempt failed or was refused, has not filled up again."""
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


def worked(ledger: BreakerLedger, boundary: str, *, by_hand: bool) -> BreakerLedger:
    return BreakerLedger(boundary=boundary) if by_hand else BreakerLedger(refills=ledger.refills, boundary=boundary)


def turns_since(items: Sequence[Item], kept: Sequence[str], *, answers_a_turn: int = ANSWERS_A_TURN) -> int:
    """Turns in view that were answered since the last compaction kept `kept`. A turn goes from one message of the person's to the
    next; a long one counts once for every few answers."""
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


def explanation(ledger: BreakerLedger, policy: CompactPolicy) -> str:
    """For the person; empty where nothing is stopped."""
    match ledger.stopped:
        case "failing":
            return (
                f"Compaction failed {ledger.failures} times in a row and is not tried again by itself in this session; "
                "/compact tries once more, /clear starts anew."
            )
        case "thrashing":
            return (
                f"The window was full again within {policy.thrash_turns} turns after {ledger.refills} compactions in a row, so "
                "compaction by itself stops: something that is read again and again is too large for it. Read smaller parts, use "
                "/compact once that is settled, or start anew with /clear."
            )
        case _:
            return ""
