"""The window of a session's model: from the settings, the model table, or a request that was larger than both say. Pure."""

from __future__ import annotations

from ...core.settings import Settings
from ...providers.models import known
from .thresholds import LONG_WINDOW, ModelFacts, window_for


def window_of(model: str, settings: Settings, most: int) -> tuple[int, str]:
    """Return the size of the window and the source that tells it. `most` is the size of the fullest request."""
    info = known(model)
    facts = {model: ModelFacts(info.window, info.max_output, info.needs_header_for_1m)} if info is not None else {}
    found = window_for(model, setting=settings.context_window, known=facts, default=settings.policy.window.default_window)
    if most > found.tokens:
        return max(LONG_WINDOW, most), "requests"
    return found.tokens, found.source
