"""Running the calls of one answer: permission first, then the tools, readers at once, agents at once, and writers in order.

Every call gets exactly one result, in the order of the calls: refused, stopped and failed ones too, each with a sentence the model can
act on. A person is asked one question at a time, before anything of the answer runs, so that a "no" is known to all of it. What is
allowed without a question rests on what lies on the disk: behind a call that may have changed that, it is judged again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar, assert_never

import msgspec
from msgspec.structs import replace

from ..core.blocks import ToolResult, ToolUse, tool_result
from ..core.errors import InputError
from ..disk.files import remove
from ..permissions.decision import judge, may_read
from ..permissions.readonly.run import ReadOnlyResult, run_readonly
from ..permissions.request import Allow, AskUser, Deny, Mode, PermissionContext, UnclearCall, Verdict, read_call
from ..permissions.rules import WRITERS, PermissionRules
from ..tools.capture import Capture
from ..tools.registry import run_call
from ..tools.tool import Context, Tool, ToolOutput
from .loop import DENIED

# More files than this are not read faster at once; more questions than a person answers are asked one by one anyway.
AT_ONCE = 8

T = TypeVar("T")

PermissionAnswer: TypeAlias = Literal["yes", "always", "no"]

NOBODY = "Nobody is there to allow it. {why} Go on without it, or say what you would have done."
SAID_NO = "The person said no. {why} Do not try it again in another way; ask what to do instead."
SAID_NO_WITH = "The person said no, and: {words}"
STOPPED = "Stopped by the person before it ran."
CHANGED = "An earlier call of the same answer changed what this one rests on. {why} Send it again to have it asked about."


class DenialWithWords(msgspec.Struct, frozen=True):
    """A no with words for the model."""

    words: str


AskPermission: TypeAlias = Callable[[ToolUse, AskUser], PermissionAnswer | DenialWithWords]


class CompletedCall(msgspec.Struct, frozen=True):
    """One call, what was decided about it, and what came of it."""

    call: ToolUse
    verdict: Verdict
    output: ToolOutput

    @property
    def result(self) -> ToolResult:
        try:
            return tool_result(self.call.id, self.output.content, is_error=self.output.is_error)
        except InputError as error:
            return tool_result(self.call.id, f"{self.call.name} returned what can't be sent ({error.problem}).", is_error=True)


class _Settled(NamedTuple):
    verdict: Verdict
    real: Path | None = None  # of a call that writes: the file that was judged, without links
    by_person: bool = False


class RunOnce(Generic[T]):
    """A function that runs when it is first asked to, and never again; `came` gets what it returns or raises."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._taken = Lock()
        self.came: Future[T] = Future()

    def run(self) -> None:
        if not self._taken.acquire(blocking=False):
            return
        try:
            self.came.set_result(self._function())
        except BaseException as error:  # noqa: BLE001  # it is raised again in the thread that waits
            self.came.set_exception(error)


class ToolRunner(msgspec.Struct, frozen=True, kw_only=True):
    """What calls are run with: the same for the main conversation and, with a clone of the read state, for a fork."""

    tools: tuple[Tool, ...]
    context: Context
    permission: PermissionContext
    mode: Callable[[], Mode]
    rules: Callable[[], PermissionRules]
    ask: AskPermission | None = None
    decide_fork: Callable[[ToolUse], Allow | Deny] | None = None  # a fork's own permission function (X6); deny rules still count
    on_start: Callable[[ToolUse], None] | None = None
    on_end: Callable[[CompletedCall], None] | None = None
    on_output: Callable[[ToolUse, str], None] | None = None  # what a running command prints, as it prints it; bounded by the tool

    def clone(self, *, abort: Event, ask: AskPermission | None) -> ToolRunner:
        """The same tools, mode and rules for a fork that does its parent's work (A4); `ask` None: nobody can be asked.

        What a fork can change is a copy: which files were read, the to-dos. Its calls are shown to nobody. Its abort is the one Event
        that ends the whole run."""
        context = self.context
        own = replace(context, reads=context.reads.clone(), todos=list(context.todos), abort=abort, on_output=None)
        return replace(self, context=own, ask=ask, on_start=None, on_end=None, on_output=None)

    def restrict(
        self,
        *,
        abort: Event,
        only_edit: Path | None = None,
        memory_dir: Path | None = None,
        decide: Callable[[ToolUse], Allow | Deny] | None = None,
    ) -> ToolRunner:
        """A copy with the permissions of a background fork. The tools stay, since another list would be another prefix; nobody is
        asked, so what would be a question is a denial. `only_edit`: the one file it may Edit, and nothing else (N4). `decide`: a
        permission function of its own, within the deny rules. Neither: X6, what reads inside the project, read-only Bash, and Edit
        and Write inside `memory_dir`."""
        permission = replace(
            self.permission, fork=decide is None, only_edit=only_edit, memory_dir=memory_dir or self.permission.memory_dir
        )
        return replace(self.clone(abort=abort, ask=None), permission=permission, decide_fork=decide)

    def run(self, calls: Sequence[ToolUse]) -> tuple[CompletedCall, ...]:
        settled = [self._settle(call) for call in calls]
        readers = {tool.name for tool in self.tools if tool.read_only}
        together = {tool.name for tool in self.tools if getattr(tool, "together", False)}
        done: list[CompletedCall] = []
        changed = False
        while (at := len(done)) < len(calls):
            end = at + 1
            beside = readers if calls[at].name in readers else {calls[at].name} & together
            while end < len(calls) and calls[end].name in beside:
                end += 1
            done += self._run_at_once(
                [
                    partial(self._run_one, call, self._settle_again(call, one) if changed else one)
                    for call, one in zip(calls[at:end], settled[at:end], strict=True)
                ]
            )
            changed = changed or calls[at].name not in readers
        return tuple(done)

    def _run_at_once(self, calls: Sequence[Callable[[], CompletedCall]]) -> list[CompletedCall]:
        """Ctrl-C reaches only this thread, wherever it is: the tools are told, and what they still have to say is waited for."""
        begun = [RunOnce(call) for call in calls]
        with ThreadPoolExecutor(max_workers=min(AT_ONCE, len(calls))) as pool:
            try:
                for one in begun:
                    pool.submit(one.run)
                wait([one.came for one in begun])
            except KeyboardInterrupt:
                self.context.abort.set()
                # It may have come while a thread was starting: nobody knows which calls have begun, but each runs only once.
                for one in begun:
                    pool.submit(one.run)
            return [one.came.result() for one in begun]

    def _settle(self, call: ToolUse) -> _Settled:
        """The verdict once a question has been answered. The rules are read anew each time: an "always" counts for the next call."""
        judged = self._judge(call)
        verdict = judged.verdict
        if not isinstance(verdict, AskUser):
            return judged
        if self.context.abort.is_set():
            return _Settled(Deny(STOPPED))
        if self.ask is None:
            return _Settled(Deny(NOBODY.format(why=verdict.why)))
        consent = self.ask(call, verdict)
        if isinstance(consent, DenialWithWords):
            return _Settled(Deny(SAID_NO_WITH.format(words=consent.words)), by_person=True)
        answer = Deny(SAID_NO.format(why=verdict.why)) if consent == "no" else Allow(f"The person said {consent}.")
        return _Settled(answer, judged.real, by_person=True)

    def _judge(self, call: ToolUse) -> _Settled:
        """Links are looked up once, here: what is judged is what a tool may then write, whatever takes its place meanwhile (Z8)."""
        if all(tool.name != call.name for tool in self.tools):
            return _Settled(Allow("There is no such tool; the model is told so."))
        try:
            asked = read_call(call, self.permission)
        except UnclearCall as unclear:
            return _Settled(Deny(str(unclear)))
        real = asked.paths[-1] if asked.tool in WRITERS else None
        if self.decide_fork is None:
            return _Settled(judge(asked, mode=self.mode(), rules=self.rules(), context=self.permission), real)
        own = self.decide_fork(call)
        if isinstance(own, Deny):
            return _Settled(own)
        verdict = judge(asked, mode="all", rules=self.rules(), context=self.permission)
        return _Settled(own if isinstance(verdict, Allow) else verdict, real)

    def _settle_again(self, call: ToolUse, settled: _Settled) -> _Settled:
        """A file that was inside may now be a link that leads outside, and a plan knows only the names there were."""
        if settled.by_person or not isinstance(settled.verdict, Allow):
            return settled
        again = self._judge(call)
        return _Settled(Deny(CHANGED.format(why=again.verdict.why))) if isinstance(again.verdict, AskUser) else again

    def _run_one(self, call: ToolUse, settled: _Settled) -> CompletedCall:
        if self.on_start is not None:
            self.on_start(call)
        ran = CompletedCall(call, settled.verdict, self._output(call, settled))
        if self.on_end is not None:
            self.on_end(ran)
        return ran

    def _output(self, call: ToolUse, settled: _Settled) -> ToolOutput:
        verdict, context = settled.verdict, self.context
        match verdict:
            case Deny():
                return ToolOutput(f"{DENIED}{verdict.why}", is_error=True, facts={"denied": True})
            case AskUser():
                raise AssertionError("a question was left open")
            case Allow(plan=None):
                # Of several calls at once, each is known by what it prints.
                heard = partial(self.on_output, call) if self.on_output is not None else context.on_output
                own = replace(context, on_output=heard, call=call.id, target=settled.real)
                return _with_whole(run_call(self.tools, call, own), context)
            case Allow(plan=plan):
                if context.abort.is_set():
                    return ToolOutput(STOPPED, is_error=True)
                assert plan is not None
                return _read(run_readonly(plan, abort=context.abort), context)
            case _:
                assert_never(verdict)


def _with_whole(output: ToolOutput, context: Context) -> ToolOutput:
    """Output that was too large to show lies in a file: the model is told where, or the file goes where nobody keeps such files."""
    path = output.facts.get("output_file")
    if not isinstance(path, str):
        return output
    if context.scratch is None:
        remove(path, durability="process")
        return replace(output, facts={key: value for key, value in output.facts.items() if key != "output_file"})
    return replace(output, content=f"{output.content}\n[The whole output is in {path}; Read shows it page by page.]")


def _read(done: ReadOnlyResult, context: Context) -> ToolOutput:
    """What a read-only command printed, in the words and within the bounds of the Bash tool."""
    capture = Capture(context.scratch or Path(tempfile.gettempdir()))
    try:
        capture.take(done.stdout + done.stderr)
        captured = capture.close()
    finally:
        capture.drop()
    notes = [] if done.ended == "by itself" else [f"[{done.ended}]"]
    if done.exit_code:
        notes.append(f"[exit code {done.exit_code}]")
    said = "\n".join(part for part in (captured.text.rstrip("\n"), *notes) if part) or "(no output)"
    facts = {"exit_code": done.exit_code} | ({"output_file": str(captured.file)} if captured.file is not None else {})
    return _with_whole(ToolOutput(said, is_error=done.ended != "by itself", facts=facts), context)


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
    """What calls of tools are run with in a directory. `roots`: directories besides `cwd` that tools work in; `readable`: directories
    they may only read. `scratch`: where output too large to show is kept."""
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
        roots=(cwd, *roots),
        environ=environ,
        scratch=scratch,
        # A search shows nothing that a Read of the file would not.
        may_read=lambda path: may_read(path, rules=rules(), context=permission),
    )
    return ToolRunner(tools=tuple(tools), context=context, permission=permission, mode=mode, rules=rules)
