"""The window of a recorded session: as its file states it, from the settings, the model table, or a request that was larger. Pure."""

from __future__ import annotations

import msgspec

from ...core.settings import Settings
from ...providers.models import known
from .thresholds import LONG_WINDOW, MIN_WINDOW, ModelFacts, Window, window_for


def window_of(model: str, settings: Settings, most: int = 0, recorded: int = 0) -> Window:
    """Return the window and its source. `most` is the size of the fullest request, `recorded` what the session's file states."""
    info = known(model)
    facts = {model: ModelFacts(info.window, info.max_output, info.needs_header_for_1m)} if info is not None else {}
    window = window_for(model, setting=settings.context_window, known=facts, default=settings.policy.window.default_window)
    if recorded >= MIN_WINDOW:
        window = msgspec.structs.replace(window, tokens=recorded, source="record")
    if most > window.tokens:
        return msgspec.structs.replace(window, tokens=max(LONG_WINDOW, most), source="requests")
    return window
