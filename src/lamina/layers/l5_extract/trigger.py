"""The cheap check before layer 5 is loaded: most conversations have no memory attached or run without a user."""

from __future__ import annotations

from typing import Literal

from ...conversation.state import Conversation
from ...core.settings import Settings

EXTRACTION: Literal["extraction"] = "extraction"  # the background job, the purpose of its calls, and its event


def may_extract(settings: Settings, *, interactive: bool) -> bool:
    """Whether turns are reviewed at all. Without a user they are only if the settings say so."""
    return settings.extraction and (interactive or settings.extraction_non_interactive)


def begin_extraction(c: Conversation) -> None:
    """Start a review at the end of a turn. The layer is loaded only if one may be made."""
    lent = c.host.memory
    if lent is not None and may_extract(c.settings, interactive=lent.interactive):
        from .step import after_turn

        after_turn(c)
