"""The circuit breakers of automatic compaction: when it stops (C8, B3) and when it pauses. Pure.

The state is one small value, logged as an event after every attempt, so that a resumed session knows it. After three compactions in
a row that the model could not do, it is no longer asked, and rules make every summary. After three failures in a row of the rules
too, automatic compaction stops for the session, except in a full window, where the rules are tried before every call. It also stops
if the window is full again within a few turns several times in a row. A manual compaction is always tried, and its success resets
the state. After an undo automatic compaction pauses, because the user wanted the messages back. After a veto by a hook it waits for
the next user message, or until the window is full; a veto is not a failure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from ...conversation.compaction.cuts import is_said
from ...core.policy import CompactPolicy
from ...core.view import Item
from ...language.text import Text
from ...language.wording import counted

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
            return Text(
                "The model could not write the summary in {n} compaction in a row, so rules make all summaries of "
                "this session from now on. Use /compact to ask the model again.|The model could not write the "
                "summary in {n} compactions in a row, so rules make all summaries of this session from now on. Use "
                "/compact to ask the model again.",
                n=ledger.by_rules,
            )
        case "failing" if ledger.failures == policy.breaker:
            return Text(
                "Compaction failed {n} time in a row, so automatic compaction is off for this session. Use /compact "
                "to try again, or /clear to start a new session.|Compaction failed {n} times in a row, so automatic "
                "compaction is off for this session. Use /compact to try again, or /clear to start a new session.",
                n=ledger.failures,
            )
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
