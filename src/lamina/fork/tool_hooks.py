"""The user's hooks around a single tool call: what they make of the call before it is judged, and of its output.

Before: a hook may deny the call, have the user asked, allow it without a question, or change its input. The changed input is what the
permission rules judge, and no hook overrides a rule. After: a hook may replace the output and add context for the model. A hook that
fails is reported to the user, and the call goes on.
"""

from __future__ import annotations

from threading import Event
from typing import Any, NamedTuple

from msgspec.structs import replace

from ..core.blocks import ToolUse, read_block
from ..disk.files import remove
from ..tools.hooks.protocol import Event as HookEvent
from ..tools.hooks.protocol import HookOutcome
from ..tools.hooks.run import HookRunner
from ..tools.hooks.tool_responses import ToolOutcome, replaced_content, tool_response
from ..tools.permissions.request import Allow, AskUser, Deny, Verdict
from ..tools.tool import ToolOutput

BLOCKED = "A PreToolUse hook blocked this call: {why}"
ASKS = "A PreToolUse hook asks about this call"
SENTENCE_ENDS = (".", "!", "?", "。", "！", "？")
ALLOWED = "A PreToolUse hook allows it."
AFTERWARDS = "A {event} hook about {tool}: {why}"


class HookedCall(NamedTuple):
    """A call after its PreToolUse hooks."""

    call: ToolUse  # with the changed input
    said: HookOutcome = HookOutcome()


class HookedOutput(NamedTuple):
    output: ToolOutput
    context: tuple[str, ...] = ()  # for the model
    ends: str | None = None  # the reason to end the turn


def before_call(hooks: HookRunner, call: ToolUse, abort: Event) -> HookedCall:
    said = _run(hooks, "PreToolUse", call, {}, abort)
    if said.input is None:
        return HookedCall(call, said)
    changed = read_block({**call.wire, "input": said.input}, where="updatedInput")
    assert isinstance(changed, ToolUse)
    return HookedCall(changed, said)


def with_decision(verdict: Verdict, said: HookOutcome) -> Verdict:
    """Return the verdict with the hooks' decision. Rules, and questions that no rule answers, override an `allow`."""
    match said.decision, verdict:
        case _, Deny():
            return verdict
        case "deny", _:
            return Deny(BLOCKED.format(why=said.why or "it gave no reason."))
        case "ask", _:
            asks = f"{ASKS}: {said.why}" if said.why else ASKS
            asks += "" if asks.endswith(SENTENCE_ENDS) else "."
            return AskUser(asks if isinstance(verdict, Allow) else f"{asks} {verdict.why}", firm=True)
        case "allow", AskUser(firm=False):
            return Allow(ALLOWED)
        case _:
            return verdict


def after_call(hooks: HookRunner, call: ToolUse, output: ToolOutput, milliseconds: int, abort: Event) -> HookedOutput:
    """Run the hooks of a call that has run: PostToolUse, or PostToolUseFailure for an error."""
    event: HookEvent = "PostToolUseFailure" if output.is_error else "PostToolUse"
    if not hooks.configured(event):
        return HookedOutput(output)
    done = ToolOutcome(call.name, call.input, output.content, output.facts, milliseconds)
    told: dict[str, Any] = {"duration_ms": milliseconds}
    if output.is_error:
        text = output.content if isinstance(output.content, str) else str(output.content)
        told |= {"error": text, "is_interrupt": abort.is_set()}
    else:
        told |= {"tool_response": tool_response(done)}
    said = _run(hooks, event, call, told, abort)
    blocked = [AFTERWARDS.format(event=event, tool=call.name, why=said.block)] if said.block is not None else []
    return HookedOutput(_replaced(hooks, call, output, said), (*said.context, *blocked), said.ends)


def _run(hooks: HookRunner, event: HookEvent, call: ToolUse, more: dict[str, Any], abort: Event) -> HookOutcome:
    given = {"tool_name": call.name, "tool_input": call.input, "tool_use_id": call.id, **more}
    said = hooks.run(event, given, matching=call.name, abort=abort)
    hooks.notify(said)
    return said


def _replaced(hooks: HookRunner, call: ToolUse, output: ToolOutput, said: HookOutcome) -> ToolOutput:
    if said.output is None:
        return output
    try:
        content = replaced_content(call.name, said.output)
    except ValueError as error:
        hooks.notify(HookOutcome(faults=(f"hooks.PostToolUse: {error}, so the output was not replaced.",)))
        return output
    if content is None:
        return output
    facts = {**output.facts, "replaced": True}
    # The whole output is not kept if a hook replaced it, unless the replacement still names its file.
    kept = said.output.get("persistedOutputPath") if isinstance(said.output, dict) else None
    if isinstance(file := output.facts.get("output_file"), str) and kept != file:
        remove(file, durability="process")
        del facts["output_file"]
    return replace(output, content=content, facts=facts, fenced=False)
