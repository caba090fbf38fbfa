"""Isolates failures: if a layer, a host function or a job's result fails, record the failure and continue.

A layer steps aside whatever it raises. The event `layer_failed` holds the traceback, the user is notified once for each layer, and after
three failures the layer is off for the rest of the session. STRICT lets unexpected exceptions through, for tests.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar, overload

from ..core.effects import Flow
from ..core.errors import Aborted, LaminaError, clause
from ..fork.background import JobResult
from .state import Conversation

T = TypeVar("T")

# An environment variable that is set in tests. Errors of the disk, a server or the caller are expected, and isolated anyway.
STRICT = "LAMINA_STRICT"
MOST_FAILURES = 3
# The end of a traceback names the failing line; a deep recursion would fill the transcript.
LONGEST_TRACEBACK = 4_000
# The names of the layers in the docs.
NAMES = {
    "l1_results": "results",
    "l2_micro": "clearing",
    "l3_notes": "notes",
    "l4_compact": "compaction",
    "l5_extract": "extraction",
    "l6_dream": "dreaming",
}


@overload
def isolate(c: Conversation, layer: str, step: Callable[[Conversation], None]) -> None: ...
@overload
def isolate(c: Conversation, layer: str, step: Callable[[Conversation], T], instead: T) -> T: ...
def isolate(c: Conversation, layer: str, step: Callable[[Conversation], Any], instead: Any = None) -> Any:
    """Run a step of a layer. If it fails, or the layer is off, return `instead`; the next layer takes over."""
    if c.failures.get(layer, 0) >= MOST_FAILURES:
        return instead
    try:
        return step(c)
    except Exception as error:  # noqa: BLE001
        _record_failure(c, layer, error)
        return instead


def isolate_flow(c: Conversation, layer: str, flow: Flow[T], instead: T) -> Flow[T]:
    """Run a flow of a layer, as `isolate` runs a step."""
    if c.failures.get(layer, 0) >= MOST_FAILURES:
        flow.close()
        return instead
    try:
        return (yield from flow)
    except Exception as error:  # noqa: BLE001
        _record_failure(c, layer, error)
        return instead


def _record_failure(c: Conversation, layer: str, error: Exception) -> None:
    expected = isinstance(error, LaminaError | OSError)
    if isinstance(error, Aborted) or (not expected and os.environ.get(STRICT)):
        raise error
    from traceback import format_exception

    c.failures[layer] = count = c.failures.get(layer, 0) + 1
    kind = "" if isinstance(error, LaminaError) else f"{type(error).__name__}: "
    if count == 1:
        name = NAMES.get(layer, layer)
        c.notify(
            f"Lamina's {name} failed and was skipped: {kind}{clause(error)}. After three failures it is off for this session."
        )
    with suppress(Exception):  # what broke the layer may break this record too
        trace = "".join(format_exception(error))[-LONGEST_TRACEBACK:]
        c.record_event("layer_failed", {"layer": layer, "why": f"{kind}{error}", "traceback": trace})


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
        isolate(c, result.name, partial(_take, result))


def _take(result: JobResult, _: Conversation) -> None:
    if result.take is not None:
        result.take(result)
