"""When compaction by itself stops (C8, B3) and when it pauses. Pure.

The state is one small value, written as an event behind every attempt, so a resumed session knows it. Three failed compactions in a
row, or a window that is full again within a few rounds several times in a row, stop it for the session; a compaction by hand is
always tried, and its success starts afresh. After an undo it pauses: the person wanted the messages back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from ...core.policy import CompactPolicy
from ...core.view import Item

# The event that carries the state.
EVENT = "autocompact"
# "Near" the blocking limit, in tokens for a full-sized window: a pause after an undo ends here, one round before it would block.
NEAR = 3_000

Stopped = Literal["", "failing", "thrashing"]


class Ledger(msgspec.Struct, frozen=True):
    failures: int = 0  # compactions in a row that did not work
    refills: int = 0  # times in a row the window was full again at once
    stopped: Stopped = ""
    boundary: str = ""  # the last compaction

    def to_json(self) -> dict[str, Any]:
        built: dict[str, Any] = msgspec.to_builtins(self)
        return built


def read_ledger(data: Mapping[str, Any] | None) -> Ledger:
    """What cannot be read counts as nothing: the worst that follows is one more attempt."""
    try:
        return msgspec.convert(data or {}, Ledger)
    except msgspec.ValidationError:
        return Ledger()


def filled(ledger: Ledger, rounds: int | None, policy: CompactPolicy) -> Ledger:
    """The window is full; `rounds` answers came since the last compaction (None: there was none). One that is full still, because the
    last attempt failed, has not filled up again."""
    if ledger.failures:
        return ledger
    if rounds is None or rounds > policy.thrash_turns:
        return msgspec.structs.replace(ledger, refills=0)
    refills = ledger.refills + 1
    stopped: Stopped = "thrashing" if refills >= policy.thrash_times else ledger.stopped
    return msgspec.structs.replace(ledger, refills=refills, stopped=stopped)


def failed(ledger: Ledger, policy: CompactPolicy) -> Ledger:
    failures = ledger.failures + 1
    stopped: Stopped = "failing" if failures >= policy.breaker else ledger.stopped
    return msgspec.structs.replace(ledger, failures=failures, stopped=stopped)


def worked(ledger: Ledger, boundary: str, *, by_hand: bool) -> Ledger:
    return Ledger(boundary=boundary) if by_hand else Ledger(refills=ledger.refills, boundary=boundary)


def rounds_since(items: Sequence[Item], kept: Sequence[str]) -> int:
    """Answers in view that were not there when the last compaction kept `kept`."""
    old = set(kept)
    return len({item.key or item.uuid for item in items if item.role == "assistant" and item.uuid not in old})


def explanation(ledger: Ledger, policy: CompactPolicy) -> str:
    """For the person; empty where nothing is stopped."""
    match ledger.stopped:
        case "failing":
            return (
                f"Compaction failed {ledger.failures} times in a row and is not tried again by itself in this session; "
                "/compact tries once more, /clear starts anew."
            )
        case "thrashing":
            return (
                f"The window was full again within {policy.thrash_turns} rounds after {ledger.refills} compactions in a row, so "
                "compaction by itself stops: something that is read again and again is too large for it. Read smaller parts, use "
                "/compact once that is settled, or start anew with /clear."
            )
        case _:
            return ""
