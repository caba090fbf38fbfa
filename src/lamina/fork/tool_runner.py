"""Runs the calls of one answer: permissions first, then the tools; readers in parallel, agents in parallel, writers in order.

Every call gets exactly one result, in order. Denied, stopped and failed calls get a sentence the model can act on. The user is asked one
question at a time, before any call of the answer runs, so that a "no" is known to all of them. A call that is allowed without a question
depends on the state of the disk, so it is judged again after a call that may have changed that. If PreToolUse hooks are configured, they
see the state a call will find: each call is hooked and judged when its turn comes.

Before a call is judged, a hook of the user may deny it, have the user asked, allow it without a question, or change its input. The
permission rules judge the changed input, and no hook overrides a rule. Afterwards a hook may replace the output and add context for the
model. A hook that fails is reported to the user, and the call goes on.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar, assert_never
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from ..core.blocks import ToolResult, ToolUse, read_block, tool_result
from ..core.errors import InputError
from ..core.shown_results import escape_result
from ..disk.files import remove
from ..disk.session_files.spills import named_by
from ..language.text import Text
from ..prompt.reminder import later_context
from ..tools.capture import Capture
from ..tools.hooks.protocol import Event as HookEvent
from ..tools.hooks.protocol import HookOutcome
from ..tools.hooks.run import HookRunner
from ..tools.hooks.tool_responses import ToolOutcome, replaced_content, tool_response
from ..tools.permissions.decision import judge, may_read
from ..tools.permissions.readonly.run import ReadOnlyResult, run_readonly
from ..tools.permissions.request import WRITERS, Allow, AskUser, Deny, Mode, PermissionContext, UnclearCall, Verdict, read_call
from ..tools.permissions.rules import PermissionRules
from ..tools.registry import run_call
from ..tools.tool import Context, Tool, ToolOutput
from .loop import DENIED

# More parallel reads are not faster, and questions to the user are asked one by one anyway.
AT_ONCE = 8

T = TypeVar("T")

PermissionAnswer: TypeAlias = Literal["yes", "always", "no"]

NOBODY = Text("Nobody is there to allow it. {why} Continue without it, or say what you would have done.")
SAID_NO = Text("Denied by the user. {why} Do not try it again in another way; ask what to do instead.")
SAID_NO_WITH = Text("Denied. The user said: {words}")
STOPPED = "Stopped by the user before it ran."
ENDED = "Not run, because a hook ended the turn."
CHANGED = "An earlier call of the same answer changed what this one depends on. {why} Send it again to ask the user."


class DenialWithWords(msgspec.Struct, frozen=True):
    """A denial with a message for the model."""

    words: str


AskPermission: TypeAlias = Callable[[ToolUse, AskUser], PermissionAnswer | DenialWithWords]


class CompletedCall(msgspec.Struct, frozen=True):
    """A call, the decision about it, and its output."""

    call: ToolUse
    verdict: Verdict
    output: ToolOutput
    context: tuple[str, ...] = ()  # what hooks tell the model about the call
    ends: str | None = None  # why a hook ends the turn

    @property
    def result(self) -> ToolResult:
        try:
            result = tool_result(self.call.id, self.output.content, is_error=self.output.is_error)
            return result if self.output.fenced else escape_result(result)
        except InputError as error:
            return tool_result(self.call.id, f"{self.call.name} returned an invalid result ({error.problem}).", is_error=True)

    @property
    def result_with_context(self) -> ToolResult:
        """The result with the hooks' context in it, for a fork, which has no log to keep the context in."""
        result, added = self.result, [later_context("hook", words) for words in self.context]
        if not added:
            return result
        content = result.content if isinstance(result.content, list) else [{"type": "text", "text": result.content}]
        return tool_result(
            self.call.id, [*content, *({"type": "text", "text": words} for words in added)], is_error=result.is_error
        )


class _Settled(NamedTuple):
    verdict: Verdict
    real: Path | None = None  # for a call that writes: the judged file, with links resolved
    by_person: bool = False
    context: tuple[str, ...] = ()  # of the call's PreToolUse hooks
    ends: str | None = None


class RunOnce(Generic[T]):
    """A function that runs at most once, on the first call. `came` gets its result or exception."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._taken = Lock()
        self.came: Future[T] = Future()

    def run(self) -> None:
        if not self._taken.acquire(blocking=False):
            return
        try:
            self.came.set_result(self._function())
        except BaseException as error:  # noqa: BLE001  # re-raised in the waiting thread
            self.came.set_exception(error)


class ToolRunner(msgspec.Struct, frozen=True, kw_only=True):
    """Everything needed to run calls, for the main conversation and, with a copy of the read state, for a fork."""

    tools: tuple[Tool, ...]
    context: Context
    permission: PermissionContext
    mode: Callable[[], Mode]
    rules: Callable[[], PermissionRules]
    ask: AskPermission | None = None
    decide_fork: Callable[[ToolUse], Allow | Deny] | None = None  # a fork's own permission function; deny rules still apply
    on_start: Callable[[ToolUse], None] | None = None
    on_end: Callable[[CompletedCall], None] | None = None
    on_output: Callable[[ToolUse, str], None] | None = None  # gets a running command's output; the tool limits it
    find_result: Callable[[str], Path] | None = None  # finds the file of a cleared result by the short name in its marker
    hooks: HookRunner | None = None  # None: calls have no hooks

    def clone(self, *, abort: Event, ask: AskPermission | None) -> ToolRunner:
        """Return a runner with the same tools, mode and rules, for a fork with its parent's task. Without `ask`, questions become denials.

        The state a fork can change is copied: which files were read, the to-dos. It cannot ask for a compaction. Its calls are not
        shown. Its abort is the one Event that ends the whole run. The user's hooks apply to its calls too."""
        context = self.context
        own = replace(context, reads=context.reads.clone(), todos=list(context.todos), abort=abort, on_output=None, compact=None)
        return replace(self, context=own, ask=ask, on_start=None, on_end=None, on_output=None)

    def restrict(
        self,
        *,
        abort: Event,
        only_edit: Path | None = None,
        memory_dir: Path | None = None,
        decide: Callable[[ToolUse], Allow | Deny] | None = None,
    ) -> ToolRunner:
        """Return a copy with the permissions of a background fork. The tools stay, since another list would change the prefix. Questions
        become denials. With `only_edit`, it may Edit that one file and nothing else. `decide` is its own
        permission function, within the deny rules. With neither, it may read inside the project, run read-only Bash, and Edit and
        Write inside `memory_dir`."""
        permission = replace(
            self.permission, fork=decide is None, only_edit=only_edit, memory_dir=memory_dir or self.permission.memory_dir
        )
        # A hook that keeps secrets from the model keeps them from background work too.
        hooks = self.hooks.for_agent(uuid4().hex[:8], "") if self.hooks is not None else None
        return replace(self.clone(abort=abort, ask=None), permission=permission, decide_fork=decide, hooks=hooks)

    def run(self, calls: Sequence[ToolUse]) -> tuple[CompletedCall, ...]:
        calls = [self._with_result_path(call) for call in calls]
        hooked = self.hooks is not None and self.hooks.configured("PreToolUse")
        verdicts = [] if hooked else [self._settle(call) for call in calls]
        readers = {tool.name for tool in self.tools if tool.read_only}
        together = {tool.name for tool in self.tools if getattr(tool, "together", False)}
        completed: list[CompletedCall] = []
        changed = False
        while (start := len(completed)) < len(calls):
            end = start + 1
            beside = readers if calls[start].name in readers else {calls[start].name} & together
            while end < len(calls) and calls[end].name in beside:
                end += 1
            batch = calls[start:end]
            if any(call.ends is not None for call in completed):
                ready = [(call, _Settled(Deny(ENDED))) for call in batch]
            elif hooked:
                ready = self._settle_hooked(batch)
            else:
                ready = [
                    (call, self._settle_again(call, settled) if changed else settled)
                    for call, settled in zip(batch, verdicts[start:end], strict=True)
                ]
            completed += self._run_at_once([partial(self._complete, call, settled) for call, settled in ready])
            changed = changed or calls[start].name not in readers
        return tuple(completed)

    def _with_result_path(self, call: ToolUse) -> ToolUse:
        """Spell out a short name before the call is judged, so that the permitted file is the one that is opened."""
        argument = {"Read": "file_path", "Grep": "path"}.get(call.name)
        path = call.input.get(argument) if argument is not None and isinstance(call.input, dict) else None
        if self.find_result is None or not isinstance(path, str) or (name := named_by(path)) is None:
            return call
        return replace(call, input={**call.input, argument: str(self.find_result(name))})

    def _run_at_once(self, calls: Sequence[Callable[[], T]]) -> list[T]:
        """Run calls in parallel. Ctrl-C reaches only this thread: it aborts the tools, and then waits for their results."""
        runs = [RunOnce(call) for call in calls]
        with ThreadPoolExecutor(max_workers=min(AT_ONCE, len(calls))) as pool:
            try:
                for run in runs:
                    pool.submit(run.run)
                wait([run.came for run in runs])
            except KeyboardInterrupt:
                self.context.abort.set()
                # Ctrl-C may have come while a thread was starting. It is unknown which calls have begun, but each runs only once.
                for run in runs:
                    pool.submit(run.run)
            return [run.came.result() for run in runs]

    def _settle_hooked(self, calls: Sequence[ToolUse]) -> list[tuple[ToolUse, _Settled]]:
        """Run the PreToolUse hooks of calls that will run in parallel, then settle each call as the hooks left it."""
        return [
            (
                hooked.call,
                self._settle(hooked.call, hooked.outcome)._replace(context=hooked.outcome.context, ends=hooked.outcome.ends),
            )
            for hooked in self._run_at_once([partial(self._hook, call) for call in calls])
        ]

    def _hook(self, call: ToolUse) -> HookedCall:
        if self.hooks is None or self.context.abort.is_set() or all(tool.name != call.name for tool in self.tools):
            return HookedCall(call)
        hooked = before_call(self.hooks, call, self.context.abort)
        return hooked._replace(call=self._with_result_path(hooked.call))

    def _settle(self, call: ToolUse, outcome: HookOutcome | None = None) -> _Settled:
        """Return the verdict, after asking if needed. The rules are read each time, so an "always" counts for the next call. `outcome` is
        that of the call's hooks."""
        judged = self._judge(call)
        verdict = judged.verdict if outcome is None else with_decision(judged.verdict, outcome)
        if not isinstance(verdict, AskUser):
            return judged._replace(verdict=verdict)
        if self.context.abort.is_set():
            return _Settled(Deny(STOPPED))
        if self.ask is None:
            return _Settled(Deny(Text(NOBODY, why=Text.whole(verdict.why))))
        consent = self.ask(call, verdict)
        if isinstance(consent, DenialWithWords):
            return _Settled(Deny(Text(SAID_NO_WITH, words=consent.words)), by_person=True)
        answer = (
            Deny(Text(SAID_NO, why=Text.whole(verdict.why))) if consent == "no" else Allow(f"Allowed by the user ({consent}).")
        )
        return _Settled(answer, judged.real, by_person=True)

    def _judge(self, call: ToolUse) -> _Settled:
        """Judge a call. Links are resolved once, here: a tool may write only to the judged file, whatever replaces it later."""
        if all(tool.name != call.name for tool in self.tools):
            return _Settled(Allow("The tool does not exist; the model gets an error."))
        try:
            request = read_call(call, self.permission)
        except UnclearCall as unclear:
            return _Settled(Deny(str(unclear)))
        real = request.paths[-1] if request.tool in WRITERS else None
        if self.decide_fork is None:
            return _Settled(judge(request, mode=self.mode(), rules=self.rules(), context=self.permission), real)
        own = self.decide_fork(call)
        if isinstance(own, Deny):
            return _Settled(own)
        verdict = judge(request, mode="all", rules=self.rules(), context=self.permission)
        return _Settled(own if isinstance(verdict, Allow) else verdict, real)

    def _settle_again(self, call: ToolUse, settled: _Settled) -> _Settled:
        """Judge an allowed call again: a file inside may now be a link to the outside, and a plan knows only the old names."""
        if settled.by_person or not isinstance(settled.verdict, Allow):
            return settled
        again = self._judge(call)
        return _Settled(Deny(CHANGED.format(why=again.verdict.why))) if isinstance(again.verdict, AskUser) else again

    def _complete(self, call: ToolUse, settled: _Settled) -> CompletedCall:
        if self.on_start is not None:
            self.on_start(call)
        began = time.monotonic()
        output = self._output(call, settled)
        hooked = HookedOutput(output)
        if self.hooks is not None and isinstance(settled.verdict, Allow) and any(tool.name == call.name for tool in self.tools):
            milliseconds = round((time.monotonic() - began) * 1_000)
            hooked = after_call(self.hooks, call, output, milliseconds, self.context.abort)
        ends = settled.ends if settled.ends is not None else hooked.ends
        completed = CompletedCall(call, settled.verdict, hooked.output, (*settled.context, *hooked.context), ends)
        if self.on_end is not None:
            self.on_end(completed)
        return completed

    def _output(self, call: ToolUse, settled: _Settled) -> ToolOutput:
        verdict, context = settled.verdict, self.context
        match verdict:
            case Deny():
                return ToolOutput(f"{DENIED}{verdict.why}", is_error=True, facts={"denied": True, "reason": verdict.why})
            case AskUser():
                raise AssertionError("a question was left open")
            case Allow(plan=None):
                # If several calls run in parallel, each prints under its own id.
                on_output = partial(self.on_output, call) if self.on_output is not None else context.on_output
                own = replace(context, on_output=on_output, call=call.id, target=settled.real)
                return _with_output_file(run_call(self.tools, call, own), context)
            case Allow(plan=plan):
                if context.abort.is_set():
                    return ToolOutput(STOPPED, is_error=True)
                assert plan is not None
                return _read_only_output(run_readonly(plan, abort=context.abort), context)
            case _:
                assert_never(verdict)


def _with_output_file(output: ToolOutput, context: Context) -> ToolOutput:
    """Tell the model where output too large to show is kept, or delete the file if such files are not kept."""
    path = output.facts.get("output_file")
    if not isinstance(path, str):
        return output
    if context.scratch is None:
        remove(path, durability="process")
        return replace(output, facts={key: value for key, value in output.facts.items() if key != "output_file"})
    return replace(output, content=f"{output.content}\n[The whole output is in {path}; Read shows it page by page.]")


def _read_only_output(result: ReadOnlyResult, context: Context) -> ToolOutput:
    """Return the output of a read-only command, with the wording and limits of the Bash tool."""
    capture = Capture(context.scratch or Path(tempfile.gettempdir()))
    try:
        capture.take(result.stdout + result.stderr)
        captured = capture.close()
    finally:
        capture.drop()
    notes = [] if result.ended == "by itself" else [f"[{result.ended}]"]
    if result.exit_code:
        notes.append(f"[exit code {result.exit_code}]")
    text = "\n".join(part for part in (captured.text.rstrip("\n"), *notes) if part) or "(no output)"
    file_facts = {"output_file": str(captured.file)} if captured.file is not None else {}
    facts = {"exit_code": result.exit_code, "bytes": captured.size, **file_facts}
    return _with_output_file(ToolOutput(text, is_error=result.ended != "by itself", facts=facts), context)


def tool_runner_for(
    tools: Sequence[Tool],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    home: Path | None,
    memory_dir: Path | None,
    mode: Callable[[], Mode],
    rules: Callable[[], PermissionRules],
    roots: Sequence[Path] = (),
    readable: Sequence[Path] = (),
    scratch: Path | None = None,
) -> ToolRunner:
    """Return the tool runner for a directory. `roots` are further directories that tools work in, `readable` are read-only. `scratch`
    keeps output too large to show."""
    names = {tool.name for tool in tools if tool.read_only}
    permission = PermissionContext(
        cwd=cwd,
        roots=(*roots, *((scratch,) if scratch is not None else ()), *readable),
        memory_dir=memory_dir,
        tool_is_read_only=lambda name: name in names,
        lamina_home=home,
        home=Path(environ["HOME"]) if environ.get("HOME") else None,
    )
    context = Context(
        cwd=cwd,
        memory_dir=memory_dir,
        roots=(cwd, *roots),
        environ=environ,
        scratch=scratch,
        # A search shows nothing that a Read of the file would not show.
        may_read=lambda path: may_read(path, rules=rules(), context=permission),
    )
    return ToolRunner(tools=tuple(tools), context=context, permission=permission, mode=mode, rules=rules)


BLOCKED = "A PreToolUse hook blocked this call: {why}"
ASKS = "A PreToolUse hook asks about this call"
SENTENCE_ENDS = (".", "!", "?", "。", "！", "？")
ALLOWED = "A PreToolUse hook allows it."
AFTERWARDS = "A {event} hook about {tool}: {why}"


class HookedCall(NamedTuple):
    """A call after its PreToolUse hooks."""

    call: ToolUse  # with the changed input
    outcome: HookOutcome = HookOutcome()


class HookedOutput(NamedTuple):
    output: ToolOutput
    context: tuple[str, ...] = ()  # for the model
    ends: str | None = None  # the reason to end the turn


def before_call(hooks: HookRunner, call: ToolUse, abort: Event) -> HookedCall:
    outcome = _run_hooks(hooks, "PreToolUse", call, {}, abort)
    if outcome.input is None:
        return HookedCall(call, outcome)
    changed = read_block({**call.wire, "input": outcome.input}, where="updatedInput")
    assert isinstance(changed, ToolUse)
    return HookedCall(changed, outcome)


def with_decision(verdict: Verdict, outcome: HookOutcome) -> Verdict:
    """Return the verdict with the hooks' decision. Rules, and questions that no rule answers, override an `allow`."""
    match outcome.decision, verdict:
        case _, Deny():
            return verdict
        case "deny", _:
            return Deny(BLOCKED.format(why=outcome.why or "it gave no reason."))
        case "ask", _:
            question = f"{ASKS}: {outcome.why}" if outcome.why else ASKS
            question += "" if question.endswith(SENTENCE_ENDS) else "."
            return AskUser(question if isinstance(verdict, Allow) else f"{question} {verdict.why}", firm=True)
        case "allow", AskUser(firm=False):
            return Allow(ALLOWED)
        case _:
            return verdict


def after_call(hooks: HookRunner, call: ToolUse, output: ToolOutput, milliseconds: int, abort: Event) -> HookedOutput:
    """Run the hooks of a call that has run: PostToolUse, or PostToolUseFailure for an error."""
    event: HookEvent = "PostToolUseFailure" if output.is_error else "PostToolUse"
    if not hooks.configured(event):
        return HookedOutput(output)
    tool_outcome = ToolOutcome(call.name, call.input, output.content, output.facts, milliseconds)
    details: dict[str, Any] = {"duration_ms": milliseconds}
    if output.is_error:
        text = output.content if isinstance(output.content, str) else str(output.content)
        details |= {"error": text, "is_interrupt": abort.is_set()}
    else:
        details |= {"tool_response": tool_response(tool_outcome)}
    outcome = _run_hooks(hooks, event, call, details, abort)
    blocked = [AFTERWARDS.format(event=event, tool=call.name, why=outcome.block)] if outcome.block is not None else []
    return HookedOutput(_replaced(hooks, call, output, outcome), (*outcome.context, *blocked), outcome.ends)


def _run_hooks(hooks: HookRunner, event: HookEvent, call: ToolUse, details: dict[str, Any], abort: Event) -> HookOutcome:
    payload = {"tool_name": call.name, "tool_input": call.input, "tool_use_id": call.id, **details}
    outcome = hooks.run(event, payload, matching=call.name, abort=abort)
    hooks.notify(outcome)
    return outcome


def _replaced(hooks: HookRunner, call: ToolUse, output: ToolOutput, outcome: HookOutcome) -> ToolOutput:
    if outcome.output is None:
        return output
    try:
        content = replaced_content(call.name, outcome.output)
    except ValueError as error:
        hooks.notify(HookOutcome(faults=(f"hooks.PostToolUse: {error}, so the output was not replaced.",)))
        return output
    if content is None:
        return output
    facts = {**output.facts, "replaced": True}
    # The whole output is not kept if a hook replaced it, unless the replacement still names its file.
    named_file = outcome.output.get("persistedOutputPath") if isinstance(outcome.output, dict) else None
    if isinstance(file := output.facts.get("output_file"), str) and named_file != file:
        remove(file, durability="process")
        del facts["output_file"]
    return replace(output, content=content, facts=facts, fenced=False)
