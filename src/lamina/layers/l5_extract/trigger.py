"""The cheap look before layer 5 is loaded: most conversations have no memory lent to them, or nobody is there."""

from __future__ import annotations

from typing import Literal

from ...conversation.isolate import isolate
from ...conversation.state import Conversation
from ...core.errors import LaminaError

EXTRACTION: Literal["extraction"] = "extraction"  # the background job, the purpose of its calls, and its event


def begin_extraction(c: Conversation) -> None:
    """At the end of a turn; what it takes is loaded where a review may be made."""
    lent = c.host.memory
    if lent is None or c.host.desk is None or not c.settings.extraction:
        return
    if lent.interactive or c.settings.extraction_non_interactive:
        with isolate(c, "l5_extract"):
            from .step import after_turn

            try:
                after_turn(c)
            except (LaminaError, OSError):
                raise
            except Exception as error:  # noqa: BLE001  # the turn is done: nothing behind it may take it away
                c.record_event("layer_failed", {"layer": "l5_extract", "why": f"{type(error).__name__}: {error}"})
