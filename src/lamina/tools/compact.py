"""Compact: ask for a compaction. It runs before the next model call.

The tool is not among the built-in tools: a host offers it or not. It decides nothing: the conversation accepts the request or
says why not.
"""

from __future__ import annotations

from ..core.blocks import Wire
from ..core.prompt_files import prompt_text
from .tool import Builtin, Context, ToolOutput, failure

NOT_HERE = "Compaction cannot be requested here. Continue without it."

SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "instructions": {"type": "string", "maxLength": 2000, "description": "What the summary must keep, in a few sentences"},
    },
    "required": [],
}


def tool() -> Builtin:
    return Builtin(name="Compact", description=prompt_text(__file__, "compact"), schema=SCHEMA, read_only=True, act=_act)


def _act(arguments: Wire, context: Context) -> ToolOutput:
    if context.compact is None:
        return failure(NOT_HERE)
    return ToolOutput(context.compact(str(arguments.get("instructions", ""))))
