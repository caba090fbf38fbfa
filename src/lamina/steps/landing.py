"""What background work brought, entered by the conversation's own thread: each result goes to the step that started the work."""

from __future__ import annotations

from importlib import import_module

from ..conversation import Conversation
from .aside import stepping_aside

# The name of a job, and the step whose `landed` takes what it brings; loaded when it is first needed.
STEPS = {"notes": ".notes", "summary": ".ahead", "select": ".selecting", "extraction": ".extract", "dream": ".dream"}


def land(c: Conversation) -> None:
    """Jobs of the host's own are the host's to take; what nobody knows is dropped."""
    for one in c.background.drain():
        with stepping_aside(c, one.name):
            if c.host.landed is not None and c.host.landed(one):
                continue
            if one.name in STEPS:
                import_module(STEPS[one.name], __package__).landed(c, one)
