"""What background work brought, entered by the conversation's own thread: each result goes to the step that started the work."""

from __future__ import annotations

from importlib import import_module

from .isolate import stepping_aside
from .state import Conversation

# The name of a job, and the step whose `landed` takes what it brings; loaded when it is first needed.
STEPS = {
    "notes": "lamina.layers.l3_notes.background",
    "summary": "lamina.layers.l4_compact.prefetch",
    "select": "lamina.layers.recall.model_selector",
    "extraction": "lamina.layers.l5_extract.step",
    "dream": "lamina.layers.l6_dream.step",
}


def land(c: Conversation) -> None:
    """Jobs of the host's own are the host's to take; what nobody knows is dropped."""
    for one in c.background.drain():
        with stepping_aside(c, one.name):
            if c.host.landed is not None and c.host.landed(one):
                continue
            if one.name in STEPS:
                import_module(STEPS[one.name]).landed(c, one)
