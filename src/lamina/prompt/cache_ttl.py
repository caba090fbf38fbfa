"""Choose the lifetime of a request's cache marks, and tell from a response which lifetime was written (P6). Pure.

An entry for an hour costs more to write than one for five minutes, but only what is new in a request is written. It pays if a pause
of 5 to 60 minutes follows: without it the whole context would be written again. The rule compares the two:

    chance of such a pause × (write − read) × context  >  (write for an hour − write) × new tokens

The chance is that of the session so far: its pauses of this length over its calls. One pause in `pause_calls` calls is added to both,
so that a young session has a chance too. An hour is therefore chosen where little is new in a large context, more often in a session
with such pauses, and never for a first request. A pause after which an entry written for an hour was gone counts against it: such a
session goes back to five minutes.
"""

from __future__ import annotations

import msgspec

from ..core.usage import Usage
from ..providers.models import UNITS_READ, UNITS_WRITE, UNITS_WRITE_1H
from .break_causes import TTL_SECONDS

SHORT, LONG = "5m", "1h"
AUTO = "auto"


class PauseEvidence(msgspec.Struct, frozen=True):
    """The pauses of a session so far."""

    answers: int = 0
    pauses: int = 0  # of 5 to 60 minutes
    lost: int = 0  # those after which an entry written for an hour was gone


def is_long_pause(seconds: float) -> bool:
    """Return whether an entry for an hour outlives the pause and one for five minutes does not."""
    return TTL_SECONDS[SHORT] <= seconds < TTL_SECONDS[LONG]


def choose_ttl(seen: PauseEvidence, *, context: int, new: int, pause_calls: int) -> str:
    """Return the lifetime for a request of `context` tokens, of which `new` must be written."""
    chance = (seen.pauses + 1 - 2 * seen.lost) / (seen.answers + pause_calls)
    gain = chance * (UNITS_WRITE - UNITS_READ) * context
    return LONG if gain > (UNITS_WRITE_1H - UNITS_WRITE) * new else SHORT


def written_ttl(usage: Usage | None, sent: str) -> str:
    """Return the lifetime that a request's entries were written with. The client may have sent another one than `sent`."""
    if usage is None or not usage.cache_write:
        return sent
    return LONG if usage.cache_write_1h else SHORT
