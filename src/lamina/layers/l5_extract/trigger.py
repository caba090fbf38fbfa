"""The cheap check before layer 5 is loaded: most conversations have no memory attached or run without a user."""

from __future__ import annotations

from typing import Literal

from ...conversation.isolate import run_behind_turn
from ...conversation.state import Conversation

EXTRACTION: Literal["extraction"] = "extraction"  # the background job, the purpose of its calls, and its event


def begin_extraction(c: Conversation) -> None:
    """Start a review at the end of a turn. The layer is loaded only if one may be made."""
    lent = c.host.memory
    if lent is None or not c.settings.extraction:
        return
    if lent.interactive or c.settings.extraction_non_interactive:
        from .step import after_turn

        run_behind_turn(c, "l5_extract", lambda: after_turn(c))
