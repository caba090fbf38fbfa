"""Choose the lifetime of a request's cache marks, and tell from a response which lifetime was written (P6). Pure.

Five minutes are used until the session has had a pause of 5 to 60 minutes. From then on an hour is used where it pays. Such an entry
costs more to write, but only what is new in a request is written. Without it, the next such pause makes the cache cold:

    chance of such a pause × loss with a cold cache × context  >  (write for an hour − write) × new tokens

The chance is that of the session so far: its pauses of this length over its calls. So an hour is chosen where little is new in a large
context. A pause after which an entry written for an hour was gone counts against it twice: such a session goes back to five minutes.
"""

from __future__ import annotations

import msgspec

from ..core.usage import Usage
from ..providers.models import UNITS_WRITE, UNITS_WRITE_1H
from .break_causes import TTL_SECONDS

SHORT, LONG = "5m", "1h"
# What a cold cache costs, in prices of an input token for each token of the context. All of it is written again instead of read,
# which would be 1.15; but about half of it is cleared then, and the calls that follow read less.
COLD_LOSS = 0.3


class PauseEvidence(msgspec.Struct, frozen=True):
    """The pauses of a session so far."""

    answers: int = 0
    pauses: int = 0  # of 5 to 60 minutes
    lost: int = 0  # those after which an entry written for an hour was gone


def is_long_pause(seconds: float) -> bool:
    """Return whether an entry for an hour outlives the pause and one for five minutes does not."""
    return TTL_SECONDS[SHORT] <= seconds < TTL_SECONDS[LONG]


def choose_ttl(seen: PauseEvidence, *, context: int, new: int) -> str:
    """Return the lifetime for a request of `context` tokens, of which `new` must be written."""
    chance = (seen.pauses - 2 * seen.lost) / max(1, seen.answers)
    return LONG if chance * COLD_LOSS * context > (UNITS_WRITE_1H - UNITS_WRITE) * new else SHORT


def written_ttl(usage: Usage | None, sent: str) -> str:
    """Return the lifetime that a request's entries were written with. The client may have sent another one than `sent`."""
    if usage is None or not usage.cache_write:
        return sent
    return LONG if usage.cache_write_1h else SHORT
