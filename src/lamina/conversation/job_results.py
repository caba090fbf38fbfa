"""What background jobs returned, taken in by the conversation's own thread: whoever started a job takes its result."""

from __future__ import annotations

from .isolate import stepping_aside
from .state import Conversation


def take_job_results(c: Conversation) -> None:
    """Hand every result to the function its job was started with; a failure there is recorded and passed over."""
    for result in c.background.drain():
        with stepping_aside(c, result.name):
            if result.take is not None:
                result.take(result)
