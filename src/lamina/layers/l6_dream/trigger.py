"""The cheap look before layer 6 is loaded: most turns end long before the next dream is due, and pay one stat for knowing it (D1)."""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from ...conversation.isolate import isolate, run_behind_turn
from ...conversation.state import Conversation
from ...disk.files import DREAM_LOCK

if TYPE_CHECKING:
    from ...fork.host import MemoryAccess
    from .gates import DreamStop

DREAM: Literal["dream"] = "dream"  # the background job, the purpose of its calls, and its event
LAYER = "l6_dream"
# A dream that was told to end puts back what it holds: a few small writes.
ENDING_SECONDS = 5.0


class DreamState:
    """What a session remembers of its looks and its dreams."""

    def __init__(self) -> None:
        self.registered = False
        self.looked_at = ""  # when sessions were last counted
        self.failures = 0  # in a row
        self.told = ""  # the gate that was told last


def begin_dream(c: Conversation) -> None:
    """At the end of a turn of a main agent with memory; what it takes is loaded where a dream may be due."""
    lent = c.host.memory
    if lent is None or c.host.tool_runner is None or not c.settings.dream:
        return
    run_behind_turn(c, LAYER, lambda: _look(c, lent))


def _look(c: Conversation, lent: MemoryAccess) -> None:
    state = c.layer_state(DreamState)
    if not state.registered and c.store.path is not None:
        from .gates import register_place

        state.registered = register_place(lent.place.path, c.store.path.parent)
    if not lent.interactive or c.background.running(DREAM) is not None:
        return
    from .gates import check_time

    lock, now_ns = _lock(lent), int(datetime.fromisoformat(c.clock()).timestamp() * 1e9)
    last_ns = lock.st_mtime_ns if lock is not None else None
    stop = check_time(last_ns, now_ns, hours=c.settings.dream_hours, daily=c.settings.assistant)
    if stop is not None:
        tell_once(c, stop)
        return
    from .step import after_turn

    after_turn(c, lent)


def _lock(lent: MemoryAccess) -> os.stat_result | None:
    """The one stat: the mtime is the time of the last dream, the size tells whether somebody holds it (D2). What the lock makes of an
    odd file is asked when a dream begins."""
    try:
        return os.stat(lent.place.path / DREAM_LOCK, follow_symlinks=False)
    except OSError:
        return None


def tell_once(c: Conversation, stop: DreamStop) -> None:
    """K5: the gate that stopped a dream, where it is another one than before."""
    state = c.layer_state(DreamState)
    if state.told != stop.gate:
        state.told = stop.gate
        c.record_event(DREAM, {"stopped": stop.gate, "why": stop.why})


def recover_dreams(c: Conversation) -> None:
    """At the beginning of a session: what a dream left whose process died is put right, and said (Z12). One stat where there is
    nothing to do."""
    lock = _lock(c.host.memory) if c.host.memory is not None else None
    if lock is not None and lock.st_size > 0:
        with isolate(c, LAYER):
            from .run import recover_memory

            c.notify(*recover_memory(c.cwd, c.home, c.settings))
