"""Play a script into a `lamina.Session`, whose layers decide as they would have at the time.

The session lives in a temporary home and uses the recording's clock. After every step the replay waits for background work
(notes, prepared summaries), so that the same script always gives the same figures; in a live session it may finish a call
later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from .. import turn
from ..conversation.cache_life import KEEP_ALIVE
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
from ..prompt.break_causes import TTL_SECONDS, readable_after
from ..session.base import working
from ..session.provider import limits_for
from ..session.session import Session
from .comparison import ComparisonModel
from .figures import ReplayFigures, bill_call, has_missed
from .recorded_provider import RecordedProvider
from .repeated_reads import ReadTracker
from .script import Probe, RecordedAnswer, RecordedInput, ReplayScript, look_for
from .token_scale import TokenCounter, TokenScale

# A window that no request fills, for the row in which nothing is removed.
ENDLESS = 100_000_000
# Seconds to wait for background work, which runs in this process; anything slower is stuck.
PATIENCE = 120.0
# Start time for recordings without times; nothing depends on its value.
SOME_TIME = "2020-01-01T00:00:00.000Z"
INSTRUCTIONS = "instructions"


class ReplayStage(NamedTuple):
    """State shared by the replays of one session under different policies."""

    script: ReplayScript
    learnt: TokenScale
    count: TokenCounter
    probes: Mapping[int, Probe]
    home: Path
    window: int | None
    on_call: Callable[[], None]
    comparison_model: ComparisonModel | None = None
    points: frozenset[int] = frozenset()  # steps at which a provider is asked


class Played(NamedTuple):
    figures: ReplayFigures
    sizes: tuple[int, ...]  # tokens of each request


def play(stage: ReplayStage, settings: Settings, *, index: str | None = None, endless: bool = False) -> Played:
    """Play the script. `index` is the first reminder with the memory index, or None; with `endless` the window never fills."""
    provider = RecordedProvider(stage.script.model, stage.count)
    window = limits_for(provider, settings.policy, settings, window=stage.window, options={}, notices=[]).window
    session = Session(
        provider,
        system=_system(stage),
        tools=stage.script.tools,
        home=stage.home,
        cwd=stage.home,
        settings=settings,
        window=ENDLESS if endless else stage.window,
        session_id="replay",
        cache_ttl=stage.script.ttl,
    )
    session._begin_bare()
    try:
        with working(session) as conversation:
            played = _Player(stage, session, provider, conversation, window).run(index)
        session.close()
    except BaseException:  # also on Ctrl-C: no background work may continue
        session.abort()
        raise
    return played


def _system(stage: ReplayStage) -> list[Wire]:
    """Return the recorded system prompt, or else filler of the implied length, with the cached part as a separate block."""
    if stage.script.system is not None:
        return stage.script.system
    learnt, tools = stage.learnt, sum(stage.count(tool) for tool in stage.script.tools)
    sizes = (learnt.warm - tools, learnt.overhead - max(learnt.warm, tools))
    return [text(words).wire for size in sizes if (words := stage.count.filler(size))]


def _warm(stage: ReplayStage, provider: RecordedProvider) -> None:
    """Put the start of the prompt into the cache, if the recording found it there from earlier sessions."""
    known = _system(stage)[: None if stage.script.system is not None else 1]
    if stage.learnt.warm and known:
        mark = {"type": "ephemeral", "ttl": stage.script.ttl}
        marked = [*known[:-1], {**known[-1], "cache_control": mark}]
        provider.bill({"model": provider.model, "tools": stage.script.tools, "system": marked, "messages": []}, 0)


class _Player:
    def __init__(self, stage: ReplayStage, session: Session, provider: RecordedProvider, c: Conversation, window: int) -> None:
        self._stage = stage
        self._session = session
        self._provider = provider
        self._c = c
        self._window = window
        self._time = SOME_TIME
        self._index = ""  # the memory index, until it is sent
        self._reads = ReadTracker()
        self._readable = 0
        self._figures = ReplayFigures()
        self._sizes: list[int] = []
        c.use_clock(lambda: self._time)
        session.lend(Host(observer=self._watch))

    def run(self, index: str | None) -> Played:
        steps = self._stage.script.steps
        if index is not None:
            self._add(ReplayFigures(memory_tokens=self._stage.count.text(index)))
            self._index = index
            if not any(isinstance(step, RecordedInput) and step.context == INSTRUCTIONS for step in steps):
                self._instruct("")
        for at, step in enumerate(steps):
            self._move(step.time)
            try:
                if isinstance(step, RecordedInput):
                    self._say(step)
                else:
                    self._answer(step, at)
            except WindowFull:
                left = sum(number >= at for number in self._stage.script.answers)
                self._add(ReplayFigures(stopped_sessions=1, calls_not_played=left))
                break
            if (probe := self._stage.probes.get(at)) is not None:
                self._add(look_for(probe, self._c.log.view.items))
        self._add(self._decided() + self._provider.side)
        return Played(self._figures, tuple(self._sizes))

    def _add(self, figures: ReplayFigures) -> None:
        self._figures += figures

    def _move(self, time: str) -> None:
        """Advance the clock to the recorded time; it never goes back."""
        try:
            when = datetime.fromisoformat(time).astimezone(UTC)
        except (ValueError, OverflowError):  # missing or out of range
            return
        if when.timestamp() >= self._provider.now:
            self._time, self._provider.now = when.isoformat(timespec="milliseconds").replace("+00:00", "Z"), when.timestamp()

    def _say(self, step: RecordedInput) -> None:
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
        message = [block.wire for block in step.blocks if _is_said(block)]
        if message:
            self._session.add_user(message)

    def _instruct(self, words: str) -> None:
        """Add instructions together with the memory index, as a session does, so that both return after a summary."""
        words, self._index = "\n\n".join(part for part in (self._index, words) if part.strip()), ""
        if words:
            turn.add_context(self._c, INSTRUCTIONS, words)

    def _answer(self, step: RecordedAnswer, at: int) -> None:
        try:
            request = self._session.before_call()
        except NothingToSend:  # a second answer to the same request is recorded but is not a call
            self._session.after_call(self._reply(step, None))
            return
        self._settle()
        repeats = self._reads.called(step.calls, lambda: _seen(self._c))
        if self._stage.comparison_model is not None and at in self._stage.points:
            # Compare with the reads before this answer only.
            compared = self._stage.comparison_model.ask(request, self._stage.script.system, step, self._reads)
            self._add(ReplayFigures(comparison=compared))
        if not self._sizes:
            _warm(self._stage, self._provider)
        usage = self._provider.bill(request, _output(step, self._stage.count))
        announced = BREAK_HEADER in (request.get("extra_headers") or {})
        expired = not announced and has_missed(usage, self._readable)
        self._readable = readable_after(usage)
        self._sizes.append(usage.prompt)
        self._add(bill_call(self._provider.model, usage, window=self._window) + repeats + ReplayFigures(expired=expired))
        self._session.after_call(self._reply(step, usage))
        if not step.calls:
            self._session.end_turn()
        self._settle()
        self._stage.on_call()

    def _reply(self, step: RecordedAnswer, usage: Usage | None) -> Reply:
        stop = "tool_use" if step.calls else "end_turn"
        return Reply(f"replayed-{len(self._sizes)}", self._provider.model, step.blocks, stop, usage)

    def _settle(self) -> None:
        for name in self._session.status.background_jobs:
            if name != KEEP_ALIVE:  # it waits for a pause that a replay does not have
                self._c.background.wait(name, PATIENCE)

    def _watch(self, name: str, data: dict[str, Any]) -> None:
        match name:
            case "compaction" | "collapse":
                self._add(ReplayFigures(compactions=1))
            case "layer_failed":
                self._add(ReplayFigures(layer_failures=1))
            case "recall":
                brought = (item.blocks for item in reversed(self._c.log.view.items) if item.uuid == data.get("attachment"))
                self._add(ReplayFigures(memory_tokens=self._stage.count.of(next(brought, ()))))
            case _:
                pass

    def _decided(self) -> ReplayFigures:
        """Count the decisions in the replay's own transcript, since a compaction drops earlier ones from memory."""
        made = [type(record) for record in self._c.store.read() if isinstance(record, Clear | Spill)]
        return ReplayFigures(breaks=self._session.status.cache_breaks, clearings=made.count(Clear), spills=made.count(Spill))


def _is_said(block: Block) -> bool:
    if isinstance(block, Text):
        return bool(block.text.strip())
    return not isinstance(block, ToolResult | ToolUse | Thinking)


def _seen(c: Conversation) -> frozenset[str]:
    """Return the calls whose results the model sees unchanged."""
    results = (block.tool_use_id for _, block in c.log.view.blocks() if isinstance(block, ToolResult))
    return frozenset(call for call in results if call not in c.log.view.replaced)


def _output(step: RecordedAnswer, count: TokenCounter) -> int:
    """Return the reported output tokens, so that every row pays the same for an answer; estimated if none were reported."""
    return step.usage.output_tokens if step.usage is not None and step.usage.output_tokens else count.of(step.blocks)


def replay_recorded(script: ReplayScript, probes: Mapping[int, Probe], window: int) -> Played:
    """Build the "recorded" row from the transcript's own usage and from what its program had removed from view.

    Answers without reported usage count as calls with no tokens.
    """
    total, sizes, reads = ReplayFigures(compactions=script.recorded.compactions), list[int](), ReadTracker()
    readable, last = 0, ""
    for at, step in enumerate(script.steps):
        if not isinstance(step, RecordedAnswer):
            reads.came(step.blocks)
            continue
        total += reads.called(step.calls, partial(_recorded_results, script, at))
        if step.usage is not None:
            missed = has_missed(step.usage, readable)
            expired = missed and _seconds(last, step.time) >= TTL_SECONDS[script.ttl]
            total += bill_call(step.model, step.usage, window=window) + ReplayFigures(
                expired=expired, breaks=missed and not expired
            )
            readable, last = readable_after(step.usage), step.time
            sizes.append(step.usage.prompt)
        if (probe := probes.get(at)) is not None:
            total += look_for(probe, _recorded_view(script, at))
    for usage in script.recorded.side:
        total += bill_call(script.model, usage, side=True)
    return Played(total, tuple(sizes))


def _recorded_view(script: ReplayScript, at: int) -> Iterator[Item]:
    """Yield what the recorded model saw after this step."""
    gone, cleared = script.recorded.gone, script.recorded.results_gone
    for since, item in script.recorded.summaries:
        if since <= at < gone.get(item.uuid, at + 1):
            yield item
    for step, item in script.items:
        calls = [block.tool_use_id for block in item.blocks if isinstance(block, ToolResult)]
        if step <= at < gone.get(item.uuid, at + 1) and not any(cleared.get(call, at + 1) <= at for call in calls):
            yield item


def _recorded_results(script: ReplayScript, at: int) -> frozenset[str]:
    return frozenset(
        block.tool_use_id for item in _recorded_view(script, at) for block in item.blocks if isinstance(block, ToolResult)
    )


def _seconds(before: str, now: str) -> float:
    try:
        return (datetime.fromisoformat(now) - datetime.fromisoformat(before)).total_seconds()
    except (ValueError, TypeError):
        return 0.0
