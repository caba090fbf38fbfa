"""Running the calls of one answer: permission first, then the tools, readers at once and writers in order.

Every call gets exactly one result, in the order of the calls: refused, stopped and failed ones too, each with a sentence the model can
act on. A person is asked one question at a time, before anything of the answer runs, so that a "no" is known to all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, TypeAlias, assert_never

import msgspec

from ..core.blocks import ToolResult, ToolUse, tool_result
from ..tools import Context, Output, Tool, run_call
from ..tools.readonly import Result, run_readonly
from .permissions import Allow, Ask, Deny, Mode, PermissionContext, Verdict, decide
from .rules import Rules

# More files than this are not read faster at once; more questions than a person answers are asked one by one anyway.
AT_ONCE = 8

Consent: TypeAlias = Literal["yes", "always", "no"]

NOBODY = "Nobody is there to allow it. {why} Go on without it, or say what you would have done."
SAID_NO = "The person said no. {why} Do not try it again in another way; ask what to do instead."
SAID_NO_WITH = "The person said no, and: {words}"
STOPPED = "Stopped by the person before it ran."


class No(msgspec.Struct, frozen=True):
    """A no with words for the model."""

    words: str


AskPerson: TypeAlias = Callable[[ToolUse, Ask], Consent | No]


class Ran(msgspec.Struct, frozen=True):
    """One call, what was decided about it, and what came of it."""

    call: ToolUse
    verdict: Verdict
    output: Output

    @property
    def result(self) -> ToolResult:
        return tool_result(self.call.id, self.output.content, is_error=self.output.is_error)


class Desk(msgspec.Struct, frozen=True, kw_only=True):
    """What calls are run with: the same for the main conversation and, with a clone of the read state, for a fork."""

    tools: tuple[Tool, ...]
    context: Context
    permission: PermissionContext
    mode: Callable[[], Mode]
    rules: Callable[[], Rules]
    ask: AskPerson | None = None
    on_start: Callable[[ToolUse], None] | None = None
    on_end: Callable[[Ran], None] | None = None


def run_calls(calls: Sequence[ToolUse], desk: Desk) -> tuple[Ran, ...]:
    verdicts = [_settled(call, desk) for call in calls]
    readers = {tool.name for tool in desk.tools if tool.read_only}
    done: dict[int, Ran] = {}
    at = 0
    while at < len(calls):
        end = at + 1
        while end < len(calls) and calls[at].name in readers and calls[end].name in readers:
            end += 1
        batch = range(at, end)
        with ThreadPoolExecutor(max_workers=min(AT_ONCE, len(batch))) as pool:
            done.update(zip(batch, pool.map(lambda index: _run(calls[index], verdicts[index], desk), batch), strict=True))
        at = end
    return tuple(done[index] for index in range(len(calls)))


def _settled(call: ToolUse, desk: Desk) -> Verdict:
    """The verdict once a question has been answered. The rules are read anew each time: an "always" counts for the next call."""
    if all(tool.name != call.name for tool in desk.tools):
        return Allow("There is no such tool; the model is told so.")
    verdict = decide(call, mode=desk.mode(), rules=desk.rules(), context=desk.permission)
    if not isinstance(verdict, Ask):
        return verdict
    if desk.context.abort.is_set():
        return Deny(STOPPED)
    if desk.ask is None:
        return Deny(NOBODY.format(why=verdict.why))
    consent = desk.ask(call, verdict)
    if isinstance(consent, No):
        return Deny(SAID_NO_WITH.format(words=consent.words))
    return Deny(SAID_NO.format(why=verdict.why)) if consent == "no" else Allow(f"The person said {consent}.")


def _run(call: ToolUse, verdict: Verdict, desk: Desk) -> Ran:
    if desk.on_start is not None:
        desk.on_start(call)
    ran = Ran(call, verdict, _output(call, verdict, desk))
    if desk.on_end is not None:
        desk.on_end(ran)
    return ran


def _read(done: Result) -> Output:
    """What a read-only command printed, in the words of the Bash tool."""
    text = (done.stdout + done.stderr).decode("utf-8", "replace").rstrip("\n")
    notes = [] if done.ended == "by itself" else [f"[{done.ended}]"]
    if done.exit_code:
        notes.append(f"[exit code {done.exit_code}]")
    said = "\n".join(part for part in (text, *notes) if part) or "(no output)"
    return Output(said, is_error=done.ended != "by itself", facts={"exit_code": done.exit_code})


def _output(call: ToolUse, verdict: Verdict, desk: Desk) -> Output:
    match verdict:
        case Deny():
            return Output(f"Not allowed: {verdict.why}", is_error=True, facts={"denied": True})
        case Ask():
            raise AssertionError("a question was left open")
        case Allow(plan=None):
            return run_call(desk.tools, call, desk.context)
        case Allow():
            if desk.context.abort.is_set():
                return Output(STOPPED, is_error=True)
            assert verdict.plan is not None
            return _read(run_readonly(verdict.plan, abort=desk.context.abort))
        case _:
            assert_never(verdict)
