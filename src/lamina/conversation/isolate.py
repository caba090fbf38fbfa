"""Isolates failures: if a layer, a host function or a job's result fails, record the failure and continue."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..core.errors import Aborted, LaminaError
from .state import Conversation

T = TypeVar("T")


class Isolation:
    """The context manager behind `isolate`: a class, because every model call enters several and a generator is far slower."""

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
    """Record a layer's failure and continue; the next layer takes over."""
    return Isolation(c, layer)


def run_behind_turn(c: Conversation, layer: str, step: Callable[[], None]) -> None:
    """Run a step after a finished turn. Any exception is recorded, because the turn must not be lost."""
    with isolate(c, layer):
        try:
            step()
        except (LaminaError, OSError):
            raise
        except Exception as error:  # noqa: BLE001
            c.record_event("layer_failed", {"layer": layer, "why": f"{type(error).__name__}: {error}"})


def call_host(c: Conversation, what: str, call: Callable[[], T], instead: T) -> T:
    """Call a function of the host. If it fails, notify the user and return `instead`."""
    try:
        return call()
    except Aborted:
        raise
    except Exception as error:  # noqa: BLE001  # no failure of the host's code may cost the conversation
        c.notify_once(f"The host's {what} failed and was skipped: {type(error).__name__}: {error}")
        return instead


def take_job_results(c: Conversation) -> None:
    """Pass each finished job's result to the function given when it was started. Failures there are recorded."""
    for result in c.background.drain():
        with isolate(c, result.name):
            if result.take is not None:
                result.take(result)
