"""Why no dream would start by itself now: the gates of a session, asked without a conversation. Reads only."""

from __future__ import annotations

import time
from pathlib import Path

from ..core.budget import limits_of, ran_out
from ..core.settings import Settings
from ..disk.home.ledger import UsageLedger
from ..disk.paths.project import slug
from ..disk.trees.rootdir import RootDir
from ..layers.l6_dream.gates import DreamStop, check_empty, check_new, check_time, find_off, find_stop


def find_switch(settings: Settings) -> DreamStop | None:
    """Return the setting that keeps dreams from starting, if any does."""
    mode = settings.memory_mode["private"]
    return find_off(settings) or find_stop(on=settings.dream, remote=settings.remote, lent=True, mode=mode)


def find_gate(root: RootDir, *, cwd: Path, home: Path | None, settings: Settings, last_ns: int | None) -> DreamStop | None:
    """Return why an interactive session would not start a dream at the end of its next turn. `last_ns` is when the last one ran."""
    if (stop := find_switch(settings)) is not None:
        return stop
    now_ns = time.time_ns()
    if (stop := check_time(last_ns, now_ns, hours=settings.dream_hours, daily=settings.assistant)) is not None:
        return stop
    own = home / "projects" / slug(cwd) if home is not None else None
    stop = check_empty(root.path) or check_new(root, settings, last_ns=last_ns, now=now_ns / 1e9, transcripts=own, own=None)
    if stop is not None or home is None:
        return stop
    out = ran_out(UsageLedger(home).today(), limits_of(settings))
    return DreamStop("budget", out.sentence(settings.billing)) if out is not None else None
