"""Checkpoints: what a resume must know of the records it does not read.

After a compaction only the kept messages and what follows are read again. Decisions made before that still hold for what is kept:
pins, frozen replacements of results, and the prompt as it was sent. They are carried in the checkpoint's `state`; a log loaded
from the checkpoint's offset with this state has the same view as one loaded from the top.
"""

from __future__ import annotations

from typing import Any

import msgspec

from .blocks import ToolResult, ToolUse, Wire
from .log import Log
from .records import Pin, Snapshot
from .view import View


def checkpoint_state(log: Log, **more: Any) -> Wire:
    """The state at this moment; `more` is what the rooms above want to find again (the estimator, cursors)."""
    view = log.view
    # A call in view may still get its result; what was decided about that holds then too.
    calls = {block.id for _, block in view.blocks() if isinstance(block, ToolUse)}
    shown = calls | {block.tool_use_id for _, block in view.blocks() if isinstance(block, ToolResult)}
    return {
        "pins": [msgspec.to_builtins(pin) for pin in view.pins.values()],
        "replaced": {call: content for call, content in view.replaced.items() if call in shown},
        "snapshot": msgspec.to_builtins(view.snapshot) if view.snapshot is not None else None,
        **more,
    }


def seeded(state: Wire) -> View:
    """An empty view that knows what the checkpoint knew. What cannot be read is left out: the records that follow still count."""
    view = View()
    try:
        view.pins = {pin.uuid: pin for pin in msgspec.convert(state.get("pins") or [], list[Pin])}
        view.replaced = msgspec.convert(state.get("replaced") or {}, dict[str, str])
        view.snapshot = msgspec.convert(state.get("snapshot"), Snapshot | None)
    except msgspec.ValidationError:
        return View()
    return view
