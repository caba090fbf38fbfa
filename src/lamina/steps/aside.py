"""A layer that fails steps aside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..conversation import Conversation
from ..core.errors import Aborted, LaminaError


@contextmanager
def stepping_aside(c: Conversation, layer: str) -> Iterator[None]:
    """A layer that fails loses nothing and stops nobody: it is told, and the next one catches."""
    try:
        yield
    except Aborted:
        raise
    except (LaminaError, OSError) as error:
        c.tell("layer_failed", {"layer": layer, "why": str(error)})
