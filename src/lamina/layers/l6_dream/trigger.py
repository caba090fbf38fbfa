"""The cheap check before layer 6 is loaded: most turns end long before the next dream is due, and one stat tells so."""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from ...conversation.isolate import isolate
from ...conversation.state import Conversation
from ...disk.files import DREAM_LOCK

if TYPE_CHECKING:
    from ...fork.host import MemoryAccess
    from .gates import DreamStop

DREAM: Literal["dream"] = "dream"  # the background job, the purpose of its calls, and its event
LAYER = "l6_dream"
# A dream that is told to stop only restores its lock and record: a few small writes.
ENDING_SECONDS = 5.0


class DreamState:
    """A session's own record of its checks and its dreams."""

    def __init__(self) -> None:
        self.registered = False
        self.looked_at = ""  # when sessions were last counted
        self.failures = 0  # in a row
        self.told = ""  # the last gate that was recorded


def begin_dream(c: Conversation) -> None:
    """Start a dream if one is due, at the end of a main agent's turn. The layer is loaded only if it may be."""
    lent = c.host.memory
    if lent is None or not c.settings.dream:
        return
    state = c.layer_state(DreamState)
    if not state.registered and c.store.path is not None:
        from .gates import register_place

        state.registered = register_place(lent.place.path, c.store.path.parent)
    if not lent.interactive or c.background.running(DREAM) is not None:
        return
    if (stop := find_time_stop(c, lent)) is not None:
        tell_once(c, stop)
        return
    from .step import after_turn

    after_turn(c, lent)


def find_time_stop(c: Conversation, lent: MemoryAccess) -> DreamStop | None:
    """Check the time gate, by the time of the lock file."""
    from .gates import check_time

    lock, now_ns = stat_lock(lent), int(datetime.fromisoformat(c.clock()).timestamp() * 1e9)
    last_ns = lock.st_mtime_ns if lock is not None else None
    return check_time(last_ns, now_ns, hours=c.settings.dream_hours, daily=c.settings.assistant)


def stat_lock(lent: MemoryAccess) -> os.stat_result | None:
    """The single stat: the mtime is the time of the last dream, and a size above zero means the lock is held. The lock itself handles
    unusual files when a dream begins."""
    try:
        return os.stat(lent.place.path / DREAM_LOCK, follow_symlinks=False)
    except OSError:
        return None


def tell_once(c: Conversation, stop: DreamStop) -> None:
    """Record the gate that stopped a dream, unless it is the same as before."""
    state = c.layer_state(DreamState)
    if state.told != stop.gate:
        state.told = stop.gate
        c.record_event(DREAM, {"stopped": stop.gate, "why": stop.why})


def recover_dreams(c: Conversation) -> None:
    """Recover from a crashed dream at the start of a session, and notify the user. Costs one stat if there is nothing to do."""
    isolate(c, LAYER, _recover)


def _recover(c: Conversation) -> None:
    lock = stat_lock(c.host.memory) if c.host.memory is not None else None
    if lock is not None and lock.st_size > 0:
        from .undo import recover_memory

        c.notify(*recover_memory(c.cwd, c.home, c.settings))
