"""The cheap look before layer 6 is loaded: most turns end long before the next dream is due, and pay one stat for knowing it (D1)."""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from ...conversation.isolate import stepping_aside
from ...conversation.state import Conversation
from ...core.errors import LaminaError

if TYPE_CHECKING:
    from ...fork.host import MemoryAccess
    from .gates import Stop

DREAM: Literal["dream"] = "dream"  # the background job, the purpose of its calls, and its event
LAYER = "l6_dream"
LOCK = ".consolidate-lock"  # its mtime is the time of the last dream, its size tells whether somebody holds it (D2)
# A dream that was told to end puts back what it holds: a few small writes.
ENDING_SECONDS = 5.0


class State:
    """What a session remembers of its looks and its dreams."""

    def __init__(self) -> None:
        self.registered = False
        self.looked_at = ""  # when sessions were last counted
        self.failures = 0  # in a row
        self.told = ""  # the gate that was told last


def begin_dream(c: Conversation) -> None:
    """At the end of a turn of a main agent with memory; what it takes is loaded where a dream may be due."""
    lent = c.host.memory
    if lent is None or c.host.desk is None or not c.settings.dream:
        return
    with stepping_aside(c, LAYER):
        try:
            _look(c, lent)
        except (LaminaError, OSError):
            raise
        except Exception as error:  # noqa: BLE001  # the turn is done: nothing behind it may take it away
            c.record_event("layer_failed", {"layer": LAYER, "why": f"{type(error).__name__}: {error}"})


def _look(c: Conversation, lent: MemoryAccess) -> None:
    state = c.layer_state(State)
    if not state.registered and c.store.path is not None:
        from .sessions import register

        state.registered = register(lent.place.path, c.store.path.parent)
    if not lent.interactive or c.background.running(DREAM) is not None:
        return
    if (stop := too_soon(c, _last(lent))) is not None:
        tell_once(c, stop)
        return
    from .step import after_turn

    after_turn(c, lent)


def _last(lent: MemoryAccess) -> int | None:
    """The one stat. What the lock makes of an odd file is asked when a dream begins."""
    try:
        return os.stat(lent.place.path / LOCK, follow_symlinks=False).st_mtime_ns
    except OSError:
        return None


def too_soon(c: Conversation, last_ns: int | None) -> Stop | None:
    from . import gates

    now_ns = int(datetime.fromisoformat(c.clock()).timestamp() * 1e9)
    return gates.last_dream(last_ns, now_ns, hours=c.settings.dream_hours, daily=c.settings.assistant)


def tell_once(c: Conversation, stop: Stop) -> None:
    """K5: the gate that stopped a dream, where it is another one than before."""
    state = c.layer_state(State)
    if state.told != stop.gate:
        state.told = stop.gate
        c.record_event(DREAM, {"stopped": stop.gate, "why": stop.why})


def recover_dreams(c: Conversation) -> None:
    """At the beginning of a session: what a dream left whose process died is put right, and said (Z12). One stat where there is
    nothing to do."""
    lent = c.host.memory
    if lent is None:
        return
    try:
        held = os.stat(lent.place.path / LOCK, follow_symlinks=False).st_size > 0
    except OSError:
        return
    if held:
        with stepping_aside(c, LAYER):
            from .step import recovered

            c.notify(*recovered(c, lent))
