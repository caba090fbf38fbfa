"""The cheap look before layer 5 is loaded: most conversations have no memory lent to them, or nobody is there."""

from __future__ import annotations

from typing import Literal

from ..conversation import Conversation
from .aside import stepping_aside

EXTRACTION: Literal["extraction"] = "extraction"  # the background job, the purpose of its calls, and its event


def begin_extraction(c: Conversation) -> None:
    """At the end of a turn; what it takes is loaded where a review may be made."""
    lent = c.host.memory
    if lent is None or c.host.desk is None or not c.settings.extraction:
        return
    if lent.interactive or c.settings.extraction_non_interactive:
        with stepping_aside(c, "l5_extract"):
            from .extract import after_turn

            after_turn(c)
