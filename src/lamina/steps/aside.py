"""A layer that fails steps aside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from ..conversation import Conversation
from ..core.errors import Aborted, LaminaError

T = TypeVar("T")


@contextmanager
def stepping_aside(c: Conversation, layer: str) -> Iterator[None]:
    """A layer that fails loses nothing and stops nobody: it is told, and the next one catches."""
    try:
        yield
    except Aborted:
        raise
    except (LaminaError, OSError) as error:
        c.tell("layer_failed", {"layer": layer, "why": str(error)})


def lent(c: Conversation, what: str, call: Callable[[], T], instead: T) -> T:
    """What a host lends is code of its own: where that fails the person is told, and the layer goes on without it."""
    try:
        return call()
    except Aborted:
        raise
    except Exception as error:  # noqa: BLE001  # whatever it is, it is no reason to lose the conversation
        sentence = f"The host's {what} failed and was passed over: {type(error).__name__}: {error}"
        if sentence not in c.notices:
            c.notices.append(sentence)
        return instead
