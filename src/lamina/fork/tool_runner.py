"""Running the calls of one answer: permission first, then the tools, readers at once, agents at once, and writers in order.

Every call gets exactly one result, in the order of the calls: refused, stopped and failed ones too, each with a sentence the model can
act on. A person is asked one question at a time, before anything of the answer runs, so that a "no" is known to all of it. What is
allowed without a question rests on what lies on the disk: behind a call that may have changed that, it is judged again.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar, assert_never

import msgspec

from ..core.blocks import ToolResult, ToolUse, tool_result
from ..core.errors import InputError
from ..disk.files import remove
from ..permissions.decision import Allow, Ask, Deny, Mode, PermissionContext, Verdict, judge
from ..permissions.readonly.run import Result, run_readonly
from ..permissions.request import Unclear, read_call
from ..permissions.rules import WRITERS, Rules
from ..tools.capture import Capture
from ..tools.registry import run_call
from ..tools.tool import Context, Output, Tool
from .loop import DENIED

# More files than this are not read faster at once; more questions than a person answers are asked one by one anyway.
AT_ONCE = 8

T = TypeVar("T")

Consent: TypeAlias = Literal["yes", "always", "no"]

NOBODY = "Nobody is there to allow it. {why} Go on without it, or say what you would have done."
SAID_NO = "The person said no. {why} Do not try it again in another way; ask what to do instead."
SAID_NO_WITH = "The person said no, and: {words}"
STOPPED = "Stopped by the person before it ran."
CHANGED = "An earlier call of the same answer changed what this one rests on. {why} Send it again to have it asked about."


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
        try:
            return tool_result(self.call.id, self.output.content, is_error=self.output.is_error)
        except InputError as error:
            return tool_result(self.call.id, f"{self.call.name} returned what can't be sent ({error.problem}).", is_error=True)


class Desk(msgspec.Struct, frozen=True, kw_only=True):
    """What calls are run with: the same for the main conversation and, with a clone of the read state, for a fork."""

    tools: tuple[Tool, ...]
    context: Context
    permission: PermissionContext
    mode: Callable[[], Mode]
    rules: Callable[[], Rules]
    ask: AskPerson | None = None
    decide_fork: Callable[[ToolUse], Allow | Deny] | None = None  # a fork's own permission function (X6); deny rules still count
    on_start: Callable[[ToolUse], None] | None = None
    on_end: Callable[[Ran], None] | None = None
    on_output: Callable[[ToolUse, str], None] | None = None  # what a running command prints, as it prints it; bounded by the tool


class _Settled(NamedTuple):
    verdict: Verdict
    real: Path | None = None  # of a call that writes: the file that was judged, without links
    by_person: bool = False


def run_calls(calls: Sequence[ToolUse], desk: Desk) -> tuple[Ran, ...]:
    settled = [_settled(call, desk) for call in calls]
    readers = {tool.name for tool in desk.tools if tool.read_only}
    together = {tool.name for tool in desk.tools if getattr(tool, "together", False)}
    done: list[Ran] = []
    changed = False
    while (at := len(done)) < len(calls):
        end = at + 1
        beside = readers if calls[at].name in readers else {calls[at].name} & together
        while end < len(calls) and calls[end].name in beside:
            end += 1
        now = [_still(calls[index], settled[index], desk) if changed else settled[index] for index in range(at, end)]
        done += _at_once(calls[at:end], now, desk)
        changed = changed or calls[at].name not in readers
    return tuple(done)


def _at_once(calls: Sequence[ToolUse], settled: Sequence[_Settled], desk: Desk) -> list[Ran]:
    """Ctrl-C reaches only this thread, wherever it is: the tools are told, and what they still have to say is waited for."""
    begun = [RunOnce(partial(_run, call, one, desk)) for call, one in zip(calls, settled, strict=True)]
    with ThreadPoolExecutor(max_workers=min(AT_ONCE, len(calls))) as pool:
        try:
            for one in begun:
                pool.submit(one.run)
            wait([one.came for one in begun])
        except KeyboardInterrupt:
            desk.context.abort.set()
            # It may have come while a thread was starting: nobody knows which calls have begun, but each runs only once.
            for one in begun:
                pool.submit(one.run)
        return [one.came.result() for one in begun]


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


def _settled(call: ToolUse, desk: Desk) -> _Settled:
    """The verdict once a question has been answered. The rules are read anew each time: an "always" counts for the next call."""
    judged = _judged(call, desk)
    verdict = judged.verdict
    if not isinstance(verdict, Ask):
        return judged
    if desk.context.abort.is_set():
        return _Settled(Deny(STOPPED))
    if desk.ask is None:
        return _Settled(Deny(NOBODY.format(why=verdict.why)))
    consent = desk.ask(call, verdict)
    if isinstance(consent, No):
        return _Settled(Deny(SAID_NO_WITH.format(words=consent.words)), by_person=True)
    answer = Deny(SAID_NO.format(why=verdict.why)) if consent == "no" else Allow(f"The person said {consent}.")
    return _Settled(answer, judged.real, by_person=True)


def _judged(call: ToolUse, desk: Desk) -> _Settled:
    """Links are looked up once, here: what is judged is what a tool may then write, whatever takes its place meanwhile (Z8)."""
    if all(tool.name != call.name for tool in desk.tools):
        return _Settled(Allow("There is no such tool; the model is told so."))
    try:
        asked = read_call(call, desk.permission)
    except Unclear as unclear:
        return _Settled(Deny(str(unclear)))
    real = asked.paths[-1] if asked.tool in WRITERS else None
    if desk.decide_fork is None:
        return _Settled(judge(asked, mode=desk.mode(), rules=desk.rules(), context=desk.permission), real)
    own = desk.decide_fork(call)
    if isinstance(own, Deny):
        return _Settled(own)
    verdict = judge(asked, mode="all", rules=desk.rules(), context=desk.permission)
    return _Settled(own if isinstance(verdict, Allow) else verdict, real)


def _still(call: ToolUse, settled: _Settled, desk: Desk) -> _Settled:
    """A file that was inside may now be a link that leads outside, and a plan knows only the names there were."""
    if settled.by_person or not isinstance(settled.verdict, Allow):
        return settled
    again = _judged(call, desk)
    return _Settled(Deny(CHANGED.format(why=again.verdict.why))) if isinstance(again.verdict, Ask) else again


def _run(call: ToolUse, settled: _Settled, desk: Desk) -> Ran:
    if desk.on_start is not None:
        desk.on_start(call)
    ran = Ran(call, settled.verdict, _output(call, settled, desk))
    if desk.on_end is not None:
        desk.on_end(ran)
    return ran


def _with_whole(output: Output, context: Context) -> Output:
    """Output that was too large to show lies in a file: the model is told where, or the file goes where nobody keeps such files."""
    path = output.facts.get("output_file")
    if not isinstance(path, str):
        return output
    if context.scratch is None:
        remove(path, durability="process")
        return msgspec.structs.replace(output, facts={key: value for key, value in output.facts.items() if key != "output_file"})
    return msgspec.structs.replace(
        output, content=f"{output.content}\n[The whole output is in {path}; Read shows it page by page.]"
    )


def _read(done: Result, context: Context) -> Output:
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
    return _with_whole(Output(said, is_error=done.ended != "by itself", facts=facts), context)


def _heard(call: ToolUse, desk: Desk, real: Path | None) -> Context:
    """The context of one call: of several at once, each is known by what it prints."""
    heard = partial(desk.on_output, call) if desk.on_output is not None else desk.context.on_output
    return msgspec.structs.replace(desk.context, on_output=heard, call=call.id, target=real)


def _output(call: ToolUse, settled: _Settled, desk: Desk) -> Output:
    verdict = settled.verdict
    match verdict:
        case Deny():
            return Output(f"{DENIED}{verdict.why}", is_error=True, facts={"denied": True})
        case Ask():
            raise AssertionError("a question was left open")
        case Allow(plan=None):
            return _with_whole(run_call(desk.tools, call, _heard(call, desk, settled.real)), desk.context)
        case Allow():
            if desk.context.abort.is_set():
                return Output(STOPPED, is_error=True)
            assert verdict.plan is not None
            return _read(run_readonly(verdict.plan, abort=desk.context.abort), desk.context)
        case _:
            assert_never(verdict)
