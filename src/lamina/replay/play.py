"""One script played into one `lamina.Session`: what its layers decide is what they would have decided then.

The session lives in a home that is thrown away, by the clock of the recording. Background work (notes, summaries made ahead) is waited for
behind every step, so that the same script gives the same figures; in life it may land a call later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from .. import turn
from ..conversation.state import Conversation
from ..core.blocks import Block, Text, Thinking, ToolResult, ToolUse, Wire, text
from ..core.cache import BREAK_HEADER
from ..core.errors import NothingToSend, WindowFull
from ..core.records import Clear, Spill
from ..core.reply import Reply
from ..core.settings import Settings
from ..core.usage import Usage
from ..core.view import Item
from ..fork.host import Host
from ..prompt.break_causes import SHARE, TOKENS, readable_after
from ..session.provider import limits_for
from ..session.session import Session
from .figures import Figures, billed
from .model_answers import Asking
from .probes import Probe, looked_for
from .recorded_provider import Tape
from .repeated_reads import Reads
from .script import Answer, Said, Script
from .token_scale import Counting, Learnt

# No request ever fills it: for the row in which nothing is taken out.
ENDLESS = 100_000_000
# For background work, which is a function of this process: one that takes longer is stuck.
PATIENCE = 120.0
# Where a recording has no times at all; how long ago it was is asked by nothing.
SOME_TIME = "2020-01-01T00:00:00.000Z"
INSTRUCTIONS = "instructions"


class Stage(NamedTuple):
    """What all policies of one session share."""

    script: Script
    learnt: Learnt
    count: Counting
    probes: Mapping[int, Probe]
    home: Path
    window: int | None
    on_call: Callable[[], None]
    asking: Asking | None = None
    points: frozenset[int] = frozenset()  # steps at which a provider is asked


class Played(NamedTuple):
    figures: Figures
    sizes: tuple[int, ...]  # tokens of each request


def play(stage: Stage, settings: Settings, *, index: str | None = None, endless: bool = False) -> Played:
    """`index`: the first reminder with the memory index; None without memory. `endless`: the window never fills."""
    tape = Tape(stage.script.model, stage.count)
    window = limits_for(tape, settings.policy, settings, window=stage.window, options={}, notices=[]).window
    session = Session(
        tape,
        system=_system(stage),
        tools=stage.script.tools,
        home=stage.home,
        cwd=stage.home,
        settings=settings,
        window=ENDLESS if endless else stage.window,
        session_id="replay",
        cache_ttl=stage.script.ttl,
    )
    try:
        with session._working() as conversation:
            played = _Player(stage, session, tape, conversation, window).run(index)
        session.close()
    except BaseException:  # Ctrl-C too: nothing goes on behind it
        session.abort()
        raise
    return played


def _system(stage: Stage) -> list[Wire]:
    """What is not recorded is as long as the first request says it was; what that found in the cache is a block of its own."""
    if stage.script.system is not None:
        return stage.script.system
    learnt, tools = stage.learnt, sum(stage.count(tool) for tool in stage.script.tools)
    sizes = (learnt.warm - tools, learnt.overhead - max(learnt.warm, tools))
    return [text(words).wire for size in sizes if (words := stage.count.filler(size))]


def _warm(stage: Stage, tape: Tape) -> None:
    """Other sessions had left the first part of the prompt in the provider's cache."""
    known = _system(stage)[: None if stage.script.system is not None else 1]
    if stage.learnt.warm and known:
        mark = {"type": "ephemeral", "ttl": stage.script.ttl}
        marked = [*known[:-1], {**known[-1], "cache_control": mark}]
        tape.bill({"model": tape.model, "tools": stage.script.tools, "system": marked, "messages": []}, 0)


class _Player:
    def __init__(self, stage: Stage, session: Session, tape: Tape, c: Conversation, window: int) -> None:
        self._stage = stage
        self._session = session
        self._tape = tape
        self._c = c
        self._window = window
        self._time = SOME_TIME
        self._index = ""  # of memory, until it is said
        self._reads = Reads()
        self._readable = 0
        self._figures = Figures()
        self._sizes: list[int] = []
        c.use_clock(lambda: self._time)
        session.lend(Host(observer=self._watch))

    def run(self, index: str | None) -> Played:
        steps = self._stage.script.steps
        if index is not None:
            self._add(Figures(memory_tokens=self._stage.count.text(index)))
            self._index = index
            if not any(isinstance(step, Said) and step.context == INSTRUCTIONS for step in steps):
                self._instruct("")
        for at, step in enumerate(steps):
            self._move(step.time)
            try:
                if isinstance(step, Said):
                    self._say(step)
                else:
                    self._answer(step, at)
            except WindowFull:
                left = sum(isinstance(one, Answer) for one in steps[at:])
                self._add(Figures(stopped=1, not_played=left))
                break
            if (probe := self._stage.probes.get(at)) is not None:
                self._ask(probe)
        self._add(self._decided() + self._tape.side)
        return Played(self._figures, tuple(self._sizes))

    def _add(self, figures: Figures) -> None:
        self._figures += figures

    def _move(self, time: str) -> None:
        """The clock of the recording; it never goes back."""
        try:
            when = datetime.fromisoformat(time).astimezone(UTC)
        except (ValueError, OverflowError):  # none, or one that no calendar has
            return
        if when.timestamp() >= self._tape.now:
            self._time, self._tape.now = when.isoformat(timespec="milliseconds").replace("+00:00", "Z"), when.timestamp()

    def _say(self, step: Said) -> None:
        if step.context:
            words = "\n".join(block.text for block in step.blocks if isinstance(block, Text))
            if step.context == INSTRUCTIONS:
                self._instruct(words)
            elif words.strip():
                turn.add_context(self._c, step.context, words)
            return
        opened = self._session.open_calls
        results = [block for block in step.blocks if isinstance(block, ToolResult) and block.tool_use_id in opened]
        if results:
            self._session._add_results(results)
            self._reads.came(results)
        said = [block.wire for block in step.blocks if _is_said(block)]
        if said:
            self._session.add_user(said)

    def _instruct(self, words: str) -> None:
        """The index stands with the instructions, as in a session of ours, and comes back with them behind a summary."""
        words, self._index = "\n\n".join(part for part in (self._index, words) if part.strip()), ""
        if words:
            turn.add_context(self._c, INSTRUCTIONS, words)

    def _answer(self, step: Answer, at: int) -> None:
        try:
            request = self._session.before_call()
        except NothingToSend:  # a second answer to the same request: recorded, and no call of its own
            self._session.after_call(self._reply(step, None))
            return
        self._settle()
        repeats = self._reads.called(step.calls, lambda: _seen(self._c))
        if self._stage.asking is not None and at in self._stage.points:
            # What was read up to here, and not what this answer reads.
            self._add(Figures(asked=self._stage.asking.ask(request, self._stage.script.system, step, self._reads)))
        if not self._sizes:
            _warm(self._stage, self._tape)
        usage = self._tape.bill(request, _output(step, self._stage.count))
        lost = self._readable - usage.cache_read
        announced = BREAK_HEADER in (request.get("extra_headers") or {})
        expired = not announced and lost > TOKENS and lost > self._readable * SHARE
        self._readable = readable_after(usage)
        self._sizes.append(usage.prompt)
        self._add(billed(self._tape.model, usage, window=self._window))
        self._add(Figures(expired=expired, rereads=repeats.rereads, regrets=repeats.regrets))
        self._session.after_call(self._reply(step, usage))
        if not step.calls:
            self._session.end_turn()
        self._settle()
        self._stage.on_call()

    def _reply(self, step: Answer, usage: Usage | None) -> Reply:
        stop = "tool_use" if step.calls else "end_turn"
        return Reply(f"replayed-{len(self._sizes)}", self._tape.model, step.blocks, stop, usage)

    def _settle(self) -> None:
        for name in self._session.status.background_jobs:
            self._c.background.wait(name, PATIENCE)

    def _ask(self, probe: Probe) -> None:
        found = looked_for(probe, self._c.log.view.items)
        self._add(Figures(facts=len(probe.facts), facts_kept=found.facts, files=len(probe.files), files_kept=found.files))

    def _watch(self, name: str, data: dict[str, Any]) -> None:
        match name:
            case "compaction" | "collapse":
                self._add(Figures(compactions=1))
            case "layer_failed":
                self._add(Figures(failures=1))
            case "recall":
                self._add(Figures(memory_tokens=self._stage.count.of(_blocks(self._c.log.view.items, data.get("attachment")))))
            case _:
                pass

    def _decided(self) -> Figures:
        """From the transcript that the replay wrote: a compaction takes earlier decisions out of memory."""
        made = [type(record) for record in self._c.store.read() if isinstance(record, Clear | Spill)]
        return Figures(breaks=self._session.status.cache_breaks, clearings=made.count(Clear), spills=made.count(Spill))


def _is_said(block: Block) -> bool:
    if isinstance(block, Text):
        return bool(block.text.strip())
    return not isinstance(block, ToolResult | ToolUse | Thinking)


def _seen(c: Conversation) -> frozenset[str]:
    """Calls whose results the model is shown as they came."""
    results = (block.tool_use_id for _, block in c.log.view.blocks() if isinstance(block, ToolResult))
    return frozenset(call for call in results if call not in c.log.view.replaced)


def _blocks(items: list[Item], uuid: object) -> tuple[Block, ...]:
    return next((item.blocks for item in reversed(items) if item.uuid == uuid), ())


def _output(step: Answer, count: Counting) -> int:
    """As reported, so that every row pays the same for the same words; estimated where nothing was."""
    return step.usage.output_tokens if step.usage is not None and step.usage.output_tokens else count.of(step.blocks)
