"""Dispatch: from a model's tool_use to its tool_result.

Invariant: every call gets exactly one result, whatever the model sent and whatever the tool did. An unknown name, input that
is not a JSON object, and a bug in a tool become results with `is_error` that tell the model what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache

from ..core.blocks import ToolUse
from . import bash, glob, grep, read
from .conversation_tools import expand_tool, todo_tool
from .edit import edit_tool, write_tool
from .tool import STOPPED, Context, Tool, ToolOutput, failure

# The key under which a provider keeps tool input it could not parse.
UNPARSED = "lamina:unparsed"
# An exception can carry a whole document in its message.
_LONGEST_MESSAGE = 500


@cache
def builtin_tools() -> tuple[Tool, ...]:
    """Return the tools in prompt order: another order would be another prefix."""
    return (read.tool(), write_tool(), edit_tool(), grep.tool(), glob.tool(), bash.tool(), todo_tool(), expand_tool())


def run_call(tools: Sequence[Tool], call: ToolUse, context: Context) -> ToolOutput:
    """Run one call. It never raises for errors of the model or the tool."""
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None:
        return failure(_unknown(call.name, [tool.name for tool in tools]))
    if problem := _unreadable(call.input, tool):
        return failure(f"{tool.name}: {problem}")
    if context.abort.is_set():
        return failure(STOPPED)
    try:
        output: object = tool.run(call.input, context)  # a tool's author may have broken the protocol
    # A call without a result can't be sent, so a bug in a tool or an exit call must not end the conversation.
    except (Exception, SystemExit) as error:  # noqa: BLE001
        kind = type(error).__name__
        return failure(f"{tool.name} failed: {kind}: {str(error)[:_LONGEST_MESSAGE]}", error=kind)
    if isinstance(output, ToolOutput):
        return output
    return failure(f"{tool.name} failed: it did not return a ToolOutput.", error="TypeError")


def _unknown(name: str, names: list[str]) -> str:
    folded = {name.casefold(): name for name in names}
    close = get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    meant = f" Did you mean {folded[close[0]]}?" if close else ""
    return f"Unknown tool {name[:100]!r}.{meant} Available tools: {', '.join(names) or 'none'}."


def _unreadable(arguments: object, tool: Tool) -> str | None:
    """Explain why input is not a JSON object. The provider keeps invalid JSON under UNPARSED, and any other value under
    `input`."""
    if not isinstance(arguments, Mapping):
        return "the input must be a JSON object. Send the call again."
    if UNPARSED in arguments:
        return "the input was not valid JSON. Send the call again with one complete JSON object."
    if set(arguments) == {"input"} and "input" not in tool.schema.get("properties", {}):
        return "the input must be a JSON object with the tool's arguments. Send the call again."
    return None
