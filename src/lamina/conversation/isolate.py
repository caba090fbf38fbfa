"""Failures stay where they happen: a layer, a host's function or the result of a job that fails is recorded and passed over."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..core.errors import Aborted, LaminaError
from .state import Conversation

T = TypeVar("T")


class Isolation:
    """Written out, because every call to a model passes through several: entering and leaving a generator costs far more."""

    __slots__ = ("_c", "_layer")

    def __init__(self, c: Conversation, layer: str) -> None:
        self._c = c
        self._layer = layer

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        if error is None or isinstance(error, Aborted) or not isinstance(error, LaminaError | OSError):
            return False
        self._c.record_event("layer_failed", {"layer": self._layer, "why": str(error)})
        return True


def isolate(c: Conversation, layer: str) -> Isolation:
    """A layer that fails loses nothing and stops nobody: it is told, and the next one catches."""
    return Isolation(c, layer)


def run_behind_turn(c: Conversation, layer: str, step: Callable[[], None]) -> None:
    """For a step behind a turn that is done: whatever fails there is recorded, since nothing may take the turn away."""
    with isolate(c, layer):
        try:
            step()
        except (LaminaError, OSError):
            raise
        except Exception as error:  # noqa: BLE001
            c.record_event("layer_failed", {"layer": layer, "why": f"{type(error).__name__}: {error}"})


def call_host(c: Conversation, what: str, call: Callable[[], T], instead: T) -> T:
    """What a host lends is code of its own: where that fails the person is told, and the layer goes on without it."""
    try:
        return call()
    except Aborted:
        raise
    except Exception as error:  # noqa: BLE001  # whatever it is, it is no reason to lose the conversation
        c.notify_once(f"The host's {what} failed and was passed over: {type(error).__name__}: {error}")
        return instead


def take_job_results(c: Conversation) -> None:
    """Hand every result to the function its job was started with; a failure there is recorded and passed over."""
    for result in c.background.drain():
        with isolate(c, result.name):
            if result.take is not None:
                result.take(result)
