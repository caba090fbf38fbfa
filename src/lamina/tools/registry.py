"""From a model's tool_use to its tool_result.

Owns the last line of defence. Invariant: every call gets exactly one result, whatever the model sent and whatever the tool did: an
unknown name, input that is no JSON object, and a bug in a tool are results with `is_error` that say what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache

from ..core.blocks import ToolUse
from . import bash, edit, expand, glob, grep, read, todo, write
from .tool import STOPPED, Context, Tool, ToolOutput, failure

# The key under which a provider keeps a tool's input that it could not parse.
UNPARSED = "lamina:unparsed"
# An exception can carry a whole document in its message.
_LONGEST_MESSAGE = 500


@cache
def builtin_tools() -> tuple[Tool, ...]:
    """In the order in which they stand in the prompt: another order would be another prefix."""
    return (read.tool(), write.tool(), edit.tool(), grep.tool(), glob.tool(), bash.tool(), todo.tool(), expand.tool())


def run_call(tools: Sequence[Tool], call: ToolUse, context: Context) -> ToolOutput:
    """Run one call; never raises for what the model or the tool did."""
    found = next((tool for tool in tools if tool.name == call.name), None)
    if found is None:
        return failure(_unknown(call.name, [tool.name for tool in tools]))
    if problem := _unreadable(call.input, found):
        return failure(f"{found.name}: {problem}")
    if context.abort.is_set():
        return failure(STOPPED)
    try:
        output: object = found.run(call.input, context)  # whatever its author made of the protocol
    # A call without a result can't be sent: a bug in a tool, or a program in it that wants to exit, must not end the conversation.
    except (Exception, SystemExit) as error:  # noqa: BLE001
        return failure(
            f"{found.name} failed: {type(error).__name__}: {str(error)[:_LONGEST_MESSAGE]}", error=type(error).__name__
        )
    return (
        output if isinstance(output, ToolOutput) else failure(f"{found.name} failed: it returned no Output.", error="TypeError")
    )


def _unknown(name: str, known: list[str]) -> str:
    folded = {each.casefold(): each for each in known}
    close = get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    meant = f" Did you mean {folded[close[0]]}?" if close else ""
    return f"There is no tool {name[:100]!r}.{meant} The tools are: {', '.join(known) or 'none'}."


def _unreadable(given: object, tool: Tool) -> str | None:
    """What came is no JSON object: kept under a key of its own by the provider, or under `input` where it was another value."""
    if not isinstance(given, Mapping):
        return "the input must be a JSON object: send the call again."
    if UNPARSED in given:
        return "the input was no valid JSON: send the call again with one complete JSON object."
    if set(given) == {"input"} and "input" not in tool.schema.get("properties", {}):
        return "the input must be a JSON object with the tool's arguments: send the call again."
    return None
