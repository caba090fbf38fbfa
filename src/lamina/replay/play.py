"""Play a script into a `lamina.Session`, whose layers decide as they would have at the time.

The session lives in a temporary home and uses the recording's clock: a request leaves when the last input before it was recorded,
and renews its cache entry when its answer was complete. After every step the replay waits for background work (notes, prepared
summaries), so that the same script always gives the same figures; in a live session it may finish a call later.

An answer that needs text which has left the context is preceded by a call that fetches the text again; it is played and paid
like any other call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from .. import turn
from ..conversation.cache_life import KEEP_ALIVE
from ..conversation.keep_alive import renew_now
from ..conversation.state import Conversation
from ..core.blocks import Block, Text, Thinking, ToolResult, ToolUse, Wire, text, tool_result, tool_use
from ..core.cache import BREAK_HEADER
from ..core.errors import NothingToSend, WindowFull
from ..core.inputs import AUTO
from ..core.reach import FILE_TOOLS
from ..core.records import Clear, Spill
from ..core.reply import Reply
from ..core.settings import Settings
from ..core.usage import Usage
from ..fork.host import Host
from ..prompt.break_causes import readable_after
from ..prompt.cache_marks import UNMARKABLE, mark
from ..session.base import add_results, context_of, working
from ..session.provider import limits_for
from ..session.session import Session
from .comparison import ComparisonModel
from .figures import EXPIRED, ReplayFigures, RequestPoint, bill_call, bill_extra, has_missed
from .hidden_text import Fetch, Hidden, RequestText, ShownText
from .recorded_provider import RecordedProvider
from .repeated_reads import ReadTracker
from .script import SYNTHETIC, Probe, RecordedAnswer, RecordedInput, ReplayScript, look_for
from .token_scale import TokenCounter, TokenScale

# A window that no request fills, for the row in which nothing is removed.
ENDLESS = 100_000_000
# Seconds to wait for background work, which runs in this process; anything slower is stuck.
PATIENCE = 120.0
# Start time for recordings without times; nothing depends on its value.
SOME_TIME = "2020-01-01T00:00:00.000Z"
INSTRUCTIONS = "instructions"
# A model that fetches something again also says why, or thinks about it.
LEAST_OUTPUT = 100


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
    points: tuple[RequestPoint, ...]


def play(
    stage: ReplayStage, settings: Settings, *, index: str | None = None, endless: bool = False, ttl: str | None = None
) -> Played:
    """Play the script. `index` is the first reminder with the memory index, or None; with `endless` the window never fills.

    `ttl` is the lifetime of cache entries; by default the policy decides, and with `endless` the recording."""
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
        cache_ttl=ttl or (stage.script.ttl if endless else AUTO),
    )
    context_of(session).begun = True  # the recording brings its own context
    try:
        with working(session) as conversation:
            played = _Player(stage, session, provider, conversation, window, endless=endless).run(index)
        session.close()
    except BaseException:  # also on Ctrl-C: no background work may continue
        session.abort()
        raise
    return played


def _system(stage: ReplayStage, upto: int | None = None) -> list[Wire]:
    """Return the recorded system prompt, or else filler of the implied length, with a block for each part that others share.

    `upto` limits it to so many of these parts."""
    if stage.script.system is not None:
        return stage.script.system
    tools = sum(stage.count(tool) for tool in stage.script.tools)
    borders = [tools, *(max(tools, level) for level in (*stage.learnt.warm, stage.learnt.overhead))]
    parts = [stage.count.filler(after - before) for before, after in pairwise(borders)]
    return [text(words).wire for words in parts[:upto] if words]


def _warm(stage: ReplayStage, provider: RecordedProvider, read: int) -> None:
    """Put the start of the prompt into the cache, without a bill: other sessions have these `read` tokens there."""
    shared = sum(level <= read for level in stage.learnt.warm)
    known = _system(stage, shared)
    if known and shared:
        marked = [*known[:-1], {**known[-1], "cache_control": mark("5m")}]
        provider.bill({"model": provider.model, "tools": stage.script.tools, "system": marked, "messages": []}, 0)


def _warm_answer(provider: RecordedProvider, request: Wire) -> None:
    """Put the request up to its last answer into the cache, without a bill.

    Some programs make requests that they do not record, for example to suggest a next prompt. The recording shows it where it
    read more from the cache than the last recorded request had left there."""
    messages = request["messages"]
    last = next((at for at in reversed(range(len(messages))) if messages[at]["role"] == "assistant"), -1)
    content = messages[last]["content"] if last >= 0 else []
    if content and content[-1]["type"] not in UNMARKABLE and "cache_control" not in content[-1]:
        last_mark = next(
            (block["cache_control"] for block in reversed(messages[-1]["content"]) if "cache_control" in block), None
        )
        marked = {**messages[last], "content": [*content[:-1], {**content[-1], "cache_control": last_mark}]}
        provider.bill({**request, "messages": [*messages[:last], marked]}, 0)


class _Player:
    def __init__(
        self,
        stage: ReplayStage,
        session: Session,
        provider: RecordedProvider,
        c: Conversation,
        window: int,
        *,
        endless: bool,
    ) -> None:
        self._stage = stage
        self._endless = endless
        self._session = session
        self._provider = provider
        self._c = c
        self._window = window
        self._time = SOME_TIME
        self._renewals = 0  # keep-alive requests that may still be sent in this pause
        self._index = ""  # the memory index, until it is sent
        self._reads = ReadTracker()
        self._shown = ShownText(stage.script.results_gone())
        self._text = RequestText()
        self._fetched = 0
        self._last: Wire | None = None  # the last request of the conversation
        self._readable = 0
        self._recorded_readable = 0  # what the last recorded request left in the cache
        self._figures = ReplayFigures()
        self._points: list[RequestPoint] = []
        self._paid = (0.0, 0.0)  # dollars and units that the points account for
        c.use_clock(lambda: self._time)
        context_of(session).lend(Host(observer=self._watch, file_tools=tuple(FILE_TOOLS)))

    def run(self, index: str | None) -> Played:
        steps = self._stage.script.steps
        if index is not None:
            self._add(ReplayFigures(memory_tokens=self._stage.count.text(index)))
            self._index = index
            if not any(isinstance(step, RecordedInput) and step.context == INSTRUCTIONS for step in steps):
                self._instruct("")
        for at, step in enumerate(steps):
            try:
                if isinstance(step, RecordedInput):
                    self._keep_alive(step.time)
                    self._move(step.time)
                    self._say(step)
                else:
                    self._answer(step, at)
            except WindowFull:
                left = sum(number >= at for number in self._stage.script.answers)
                self._add(ReplayFigures(stopped_sessions=1, calls_not_played=left))
                break
            if (probe := self._stage.probes.get(at)) is not None:
                self._add(look_for(probe, self._c.log.view.items))
        if self._points:  # the background calls after the last request
            last, (usd, units) = self._points[-1], self._unpaid()
            self._points[-1] = last._replace(extra_usd=last.extra_usd + usd, extra_units=last.extra_units + units)
        self._add(self._decided() + self._provider.side)
        return Played(self._figures, tuple(self._points))

    def _add(self, figures: ReplayFigures) -> None:
        self._figures += figures

    def _unpaid(self) -> tuple[float, float]:
        """Return the dollars and units of all calls that are in no point yet."""
        (usd, units), side = self._paid, self._provider.side
        self._paid = self._figures.usd + side.usd, self._figures.units + side.units
        return self._paid[0] - usd, self._paid[1] - units

    def _move(self, time: str) -> None:
        """Advance the clock to the recorded time; it never goes back."""
        when = _instant(time)
        if when is not None and when.timestamp() >= self._provider.now:
            self._time, self._provider.now = when.isoformat(timespec="milliseconds").replace("+00:00", "Z"), when.timestamp()

    def _keep_alive(self, time: str) -> None:
        """Send the keep-alive requests that fall into the pause before `time`, if the policy allows some."""
        until, cache = _instant(time), self._c.policy.cache
        while self._renewals and until is not None and self._provider.now + cache.keep_alive_seconds < until.timestamp():
            self._renewals -= 1
            self._move(datetime.fromtimestamp(self._provider.now + cache.keep_alive_seconds, UTC).isoformat())
            renew_now(self._c)

    def _say(self, step: RecordedInput) -> None:
        if step.context:
            words = "\n".join(block.text for block in step.blocks if isinstance(block, Text))
            if step.context == INSTRUCTIONS:
                self._instruct(words)
            elif words.strip():
                turn.add_context(self._c, step.context, words)
            return
        opened = self._session.status.open_calls
        results = [block for block in step.blocks if isinstance(block, ToolResult) and block.tool_use_id in opened]
        if results:
            add_results(self._session, results)
            self._reads.came(results)
            self._shown.came(results)
        message = [block.wire for block in step.blocks if _is_said(block)]
        if message:
            self._session.add_user(message)

    def _instruct(self, words: str) -> None:
        """Add instructions together with the memory index, as a session does, so that both return after a summary."""
        words, self._index = "\n\n".join(part for part in (self._index, words) if part.strip()), ""
        if words:
            turn.add_context(self._c, INSTRUCTIONS, words)

    def _answer(self, step: RecordedAnswer, at: int) -> None:
        self._provider.answered_by = step.model or self._provider.model
        request = self._request() if step.sent else None
        if request is None:  # a second answer to the same request, or one that no model gave
            self._move(step.time)
            if step.sent and self._last is not None:
                usage = self._provider.bill(self._last, _output(step, self._stage.count))
                self._add(bill_call(self._provider.answered_by, usage, window=self._window))
            self._session.after_call(self._reply(step, None))
            return
        hidden = self._look(step, request, at)
        if hidden.fetches:
            request = self._fetch(hidden.fetches, request) or request
        self._add(self._reads.called(step.calls, self._c.log.view.shows_result))
        if self._stage.comparison_model is not None and at in self._stage.points:
            # Compare with the reads before this answer only.
            compared = self._stage.comparison_model.ask(request, self._stage.script.system, step, self._reads)
            self._add(ReplayFigures(comparison=compared))
        self._warm(step, request)
        self._send(request, step, at, hidden)
        self._shown.answered(step.calls)
        if not step.calls:
            self._session.end_turn()
        self._settle()
        self._stage.on_call()

    def _request(self) -> Wire | None:
        try:
            request = self._session.before_call()
        except NothingToSend:
            return None
        self._settle()
        return request

    def _look(self, step: RecordedAnswer, request: Wire, at: int) -> Hidden:
        """Count what the answer quotes; nothing is hidden from it where nothing is removed."""
        said = [block for block in step.blocks if isinstance(block, Text | ToolUse)]
        found = self._shown.look(said, None if self._endless else self._text.read(request), at)
        self._add(ReplayFigures(quotes=found.quotes, quotes_hidden=found.hidden, fetched=len(found.fetches)))
        return found

    def _fetch(self, wanted: Sequence[Fetch], request: Wire) -> Wire | None:
        """Play a call that fetches these texts again, and return the next request."""
        calls = []
        for one in wanted:
            self._fetched += 1
            calls.append(tool_use(f"fetched-{self._fetched}", one.tool, one.input))
        usage = self._provider.bill(request, max(LEAST_OUTPUT, self._stage.count.of(calls)))
        self._readable = readable_after(usage)
        self._add(bill_extra(self._provider.answered_by, usage))
        self._session.after_call(Reply(f"fetched-{self._fetched}", self._provider.model, tuple(calls), "tool_use", usage))
        add_results(self._session, [tool_result(call.id, one.text) for call, one in zip(calls, wanted, strict=True)])
        return self._request()

    def _warm(self, step: RecordedAnswer, request: Wire) -> None:
        """Put into the cache what the recorded request found there and no recorded request had left."""
        usage, left = step.usage or Usage(), self._recorded_readable
        if usage.cache_read and (not left or has_missed(usage, left)):
            _warm(self._stage, self._provider, usage.cache_read)
        elif usage.cache_read > left > 0 and not _decision(request):
            _warm_answer(self._provider, request)
        self._recorded_readable = readable_after(usage)

    def _send(self, request: Wire, step: RecordedAnswer, at: int, hidden: Hidden) -> None:
        sent, decision, self._last = self._provider.now, _decision(request), request
        look = self._provider.look(request)
        self._move(step.time)
        usage = self._provider.commit(look, _output(step, self._stage.count))
        expired = not decision and has_missed(usage, self._readable)
        self._readable = readable_after(usage)
        billed, miss = bill_call(self._provider.answered_by, usage, window=self._window), EXPIRED * expired
        extra_usd, extra_units = self._unpaid()
        self._points.append(
            RequestPoint(
                sent,
                usage.prompt,
                decision,
                hidden.examples,
                at,
                usage,
                billed.usd,
                extra_usd,
                miss,
                hidden.hidden,
                len(hidden.fetches),
                extra_units,
            )
        )
        self._paid = self._paid[0] + billed.usd, self._paid[1] + billed.units
        self._add(billed + ReplayFigures(expired=expired))
        self._session.after_call(self._reply(step, usage))
        self._renewals = self._c.policy.cache.keep_alive

    def _reply(self, step: RecordedAnswer, usage: Usage | None) -> Reply:
        stop = "tool_use" if step.calls else "end_turn"
        model = self._provider.model if step.sent else SYNTHETIC
        return Reply(f"replayed-{len(self._points)}", model, step.blocks, stop, usage)

    def _settle(self) -> None:
        for name in self._session.status.background_jobs:
            if name != KEEP_ALIVE:  # it waits in real time; `_keep_alive` sends its requests instead
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


def _instant(time: str) -> datetime | None:
    """Return the recorded time, or None if it is missing or out of range."""
    try:
        return datetime.fromisoformat(time).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _is_said(block: Block) -> bool:
    if isinstance(block, Text):
        return bool(block.text.strip())
    return not isinstance(block, ToolResult | ToolUse | Thinking)


def _decision(request: Wire) -> str:
    """Return the announced reason why the request does not start with the previous one, or an empty string."""
    return str((request.get("extra_headers") or {}).get(BREAK_HEADER, "")).partition(";")[0]


def _output(step: RecordedAnswer, count: TokenCounter) -> int:
    """Return the reported output tokens, so that every row pays the same for an answer; estimated if none were reported."""
    return step.usage.output_tokens if step.usage is not None and step.usage.output_tokens else count.of(step.blocks)
