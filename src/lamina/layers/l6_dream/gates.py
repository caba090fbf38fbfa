"""What must be so for a dream to begin by itself (D1, W2): the gates, the cheapest first. Pure; each that stops says its name.

The order is the order of cost: what the settings say, one stat, nothing while the last look is young, one listing of the transcripts,
the ledger, the lock. A person who starts one by hand passes the gates of time and sessions, and those about who is there.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from typing import Literal, NamedTuple, TypeAlias

Gate: TypeAlias = Literal[
    "off", "remote", "agent", "nobody", "mode", "failures", "time", "throttle", "sessions", "nothing", "budget", "lock"
]

# What fails three times in a row in one session fails for a reason that a fourth time does not mend.
MOST_FAILURES = 3
HOUR_NS = 3_600 * 1_000_000_000


class Stop(NamedTuple):
    """The gate that stopped a dream, and its reason as a sentence's end: `no dream: …`."""

    gate: Gate
    why: str


class Standing(NamedTuple):
    """What is known without looking at the disk."""

    on: bool  # the switch; rules of the settings turn it off where memory is off and in bare mode
    remote: bool
    lent: bool  # the main agent of a conversation with memory has lent its desk
    interactive: bool
    writable: bool  # the private scope takes changes, at least as proposals
    failures: int = 0  # of dreams, in a row, in this session


def stopped(standing: Standing) -> Stop | None:
    checks: tuple[tuple[bool, Gate, str], ...] = (
        (not standing.on, "off", "dreaming is off"),
        (standing.remote, "remote", "this machine is thrown away"),
        (not standing.lent, "agent", "this is no main agent with memory"),
        (not standing.interactive, "nobody", "nobody is there; `lamina dream` starts one"),
        (not standing.writable, "mode", "private memory is not written to"),
        (standing.failures >= MOST_FAILURES, "failures", f"it failed {MOST_FAILURES} times in a row"),
    )
    return next((Stop(gate, why) for stops, gate, why in checks if stops), None)


def last_dream(last_ns: int | None, now_ns: int, *, hours: float, daily: bool, zone: tzinfo | None = None) -> Stop | None:
    """The gate of time. `last_ns` None: there was none yet. `daily`: assistant mode (W2), where the first turn behind local midnight
    is the one; `zone` None: where this machine is. A time more than an hour ahead of us says nothing, one a little ahead is now."""
    if last_ns is None or last_ns - now_ns > HOUR_NS:
        return None
    if daily:
        return Stop("time", "the last one was today") if _day(last_ns, zone) >= _day(now_ns, zone) else None
    if now_ns - last_ns >= hours * HOUR_NS:
        return None
    passed = max(0, now_ns - last_ns) / HOUR_NS
    return Stop("time", f"the last one was {passed:.1f} of {hours:g} hours ago")


def _day(moment_ns: int, zone: tzinfo | None) -> str:
    return datetime.fromtimestamp(moment_ns / 1e9, UTC).astimezone(zone).date().isoformat()


def looked_lately(seconds: float | None, *, minutes: float) -> Stop | None:
    """`seconds` since sessions were last counted; None: not in this session."""
    if seconds is None or seconds >= minutes * 60:
        return None
    return Stop("throttle", f"sessions were counted {seconds / 60:.0f} of {minutes:g} minutes ago")


def too_few(found: int, *, wanted: int) -> Stop | None:
    return Stop("sessions", f"{found} of {wanted} sessions since the last one") if found < wanted else None
