"""The state of a fork that is answered without a model: its directive, what it has read and written so far, and its calls. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..core.blocks import Wire
from ..providers.offline.turn_context import Done, read_turn
from .fork import directive_in


class OfflineRun(NamedTuple):
    directive: str
    at: int  # the message with the directive; else the last one
    read: Mapping[str, Done]  # by file
    wrote: frozenset[str]


def run_so_far(request: Wire) -> OfflineRun:
    """Return how far a run has come, based on the calls after its directive."""
    messages = request["messages"]
    places = [index for index, message in enumerate(messages) if any(text.startswith("<fork ") for text in texts_of(message))]
    index = places[-1] if places else len(messages) - 1
    calls = [(str(call.given.get("file_path")), call) for call in read_turn(request, "", index).done]
    reads = {file: call for file, call in calls if call.name == "Read"}
    return OfflineRun(directive_in(request) or "", index, reads, frozenset(file for file, call in calls if call.name == "Write"))


def texts_of(message: Mapping[str, Any]) -> Iterator[str]:
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        if block.get("type") == "text":
            yield str(block["text"])


def tool_call(purpose: str, name: str, number: int, **given: str) -> Wire:
    return {"type": "tool_use", "id": f"{purpose}_{name}_{number}", "name": name, "input": given}
