"""A session's context window over time: one point a request, one row a turn, and the decisions that changed the window.

One pass over the records, for sessions of all agents. A request is counted at the first record of its answer, so requests are numbered
as `lamina context --turn` numbers them. Subagents have their own windows: their requests in the same file are only counted. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import takewhile

import msgspec

from ..conversation.window.count import count_log
from ..conversation.window.model_window import window_of
from ..conversation.window.thresholds import thresholds
from ..core.blocks import Block, Text, Thinking, ToolResult, ToolUse
from ..core.log import Log
from ..core.policy import CLASSIC
from ..core.records import Boundary, Event, Message, Record, Revoke
from ..core.settings import Settings
from ..core.usage import Usage
from ..disk.transcripts.jsonl import Health
from ..providers.models import CostParts, cost_parts, known
from .content_kinds import input_chars
from .places import NAMES, Origin
from .scan import is_short_output, one_line, price_of, split_cost
from .session_stats import SideCost
from .turns import is_users
from .window_decisions import Balance as Balance
from .window_decisions import Decision as Decision
from .window_decisions import Mark, is_mark, list_decisions
from .window_decisions import RequestPoint as RequestPoint
from .window_kinds import AT, KindSums, Split
from .window_kinds import KINDS as KINDS


class TurnRow(msgspec.Struct, frozen=True):
    """A message of the user and everything up to the next one. Requests before the first message belong to the first turn."""

    number: int
    time: str
    words: str  # the beginning of the message; empty if the session has no message of the user
    tools: dict[str, int]  # calls by tool
    first_request: int  # 0 if no request followed
    last_request: int
    usd: float | None  # None: a price is unknown
    record: str
    errors: int  # results that report an error


class Series(msgspec.Struct, frozen=True):
    requests: tuple[RequestPoint, ...]
    decisions: tuple[Decision, ...]
    turns: tuple[TurnRow, ...]
    model: str
    window: int
    threshold: int | None  # where automatic compaction starts; None if that is unknown
    threshold_owner: str
    window_source: str  # as in `lamina context`, or "requests" if a request was larger than that
    skipped_lines: int
    estimated: bool  # no request has a reported count
    beside: int = 0  # requests of subagents in the same file, which are not among `requests`
    beside_usd: float | None = 0.0  # None: a price is unknown
    beside_usage: Usage = Usage()
    side: SideCost = SideCost()  # calls without a message in the conversation, such as those that write summaries
    short_outputs: int = 0  # answers whose reported output is far less than their text: the agent noted only its beginning
    damaged: tuple[int, ...] = ()  # the numbers of the first lines that could not be read
    lines: int = 0  # in the file, if some could not be read
    recorded_window: int = 0  # as the session's file states it; 0 if it does not
    missing_base: str = ""  # the session that this one continues, if its file is missing


def window_series(
    records: Iterable[Record], settings: Settings, *, origin: Origin = "lamina", health: Health | None = None
) -> Series:
    """Return the window over time. `health` is that of the reader of `records`."""
    fold = WindowFold()
    for record in records:
        fold.add(record)
    return fold.series(settings, origin=origin, health=health)


class _Request(msgspec.Struct):
    """A request whose answer may go on."""

    key: str
    turn: int
    time: str
    model: str
    sums: list[int]
    added: int
    compacted: bool
    went_back: bool
    usage: Usage | None = None
    usd: float | None = None  # as recorded
    chars: int = 0  # of the answer

    @property
    def short_output(self) -> bool:
        return is_short_output(self.usage, self.chars)


class _SeriesTurn(msgspec.Struct):
    number: int
    time: str
    words: str
    record: str
    tools: dict[str, int]
    first: int = 0
    last: int = 0
    errors: int = 0

    def row(self, points: tuple[RequestPoint, ...]) -> TurnRow:
        made = points[self.first - 1 : self.last] if self.first else ()
        usd = _sum_costs(point.usd for point in made)
        return TurnRow(self.number, self.time, self.words, dict(self.tools), self.first, self.last, usd, self.record, self.errors)


class WindowFold:
    """The window over time of a session that may go on: records are added as they come, and `series` can be asked for at any time."""

    def __init__(self, read: Callable[[], Iterable[Record]] | None = None) -> None:
        """`read` returns all records added so far, for another branch or an undo; without it they are held in memory."""
        self.turns: list[_SeriesTurn] = []
        self.marks: list[Mark] = []
        self._log = Log()
        self._sums = KindSums()
        self._read = read
        self._records: list[Record] = []
        self._stale = False
        self._requests: list[_Request] = []
        self._by_key: dict[str, _Request] = {}
        self._beside: dict[str, tuple[str, Usage]] = {}  # answers to subagents
        self._compacted = False
        self._switched = False
        self._recorded_window = 0
        self._side = SideCost()

    def add(self, record: Record) -> None:
        if self._read is None:
            self._records.append(record)
        answer = record if isinstance(record, Message) and record.from_model else None
        key = answer.message_id or answer.uuid if answer is not None else ""
        if answer is not None and key not in self._by_key and self._log.tree.belongs(answer):
            self._answer(answer, key)
        else:
            self._stale = not self._log.add(record) or self._stale
        if answer is not None and key in self._by_key:
            request = self._by_key[key]
            # The last record of an answer has its complete usage.
            request.usage, request.usd = answer.usage or request.usage, answer.usd
            if request is self._requests[-1]:  # later records of the answer are copies
                request.chars += sum(map(_chars, answer.blocks))
        elif answer is not None and answer.usage is not None:
            self._beside[key] = (answer.model or "", answer.usage)
        if isinstance(record, Message) and not record.silent and self._log.tree.belongs(record):
            self._note_turn(record)
        elif is_mark(record) and (not isinstance(record, Boundary) or self._log.tree.belongs(record)):
            self.marks.append(Mark(len(self._requests) + 1, record))
            self._compacted = self._compacted or isinstance(record, Boundary)
        if isinstance(record, Event):
            self._recorded_window = record.window or self._recorded_window
            if record.name == "fork" and (side := SideCost.of_event(record.data)).usage.total:
                self._side += side

    def _answer(self, record: Message, key: str) -> None:
        """Note the request of a new answer: the window as it was before the answer came."""
        self._refold()
        self._sums.follow(self._log.view)
        sums, added = self._sums.taken()
        if not self._log.add(record):
            # The answer starts another branch, whose request did not have what it leaves behind.
            self._stale = True
            self._refold()
            self._sums.follow(self._log.view)
            self._sums.taken()
            sums = self._sums.without(key)
        if not self.turns:
            self.turns.append(_SeriesTurn(1, record.time, "", record.uuid, {}))
        turn = self.turns[-1]
        went_back = self._switched and bool(self._requests) and sum(sums) < sum(self._requests[-1].sums)
        request = _Request(key, turn.number, record.time, record.model or "", sums, added, self._compacted, went_back)
        self._compacted = self._switched = False
        self._by_key[key] = request
        self._requests.append(request)
        turn.first, turn.last = turn.first or len(self._requests), len(self._requests)

    def _refold(self) -> None:
        if self._stale:
            self._log.refold(self._read or (lambda: self._records))
            self._stale, self._switched = False, True

    def _note_turn(self, record: Message) -> None:
        if is_users(record) and not record.summary:
            words = one_line(" ".join(block.text for block in record.blocks if isinstance(block, Text)))
            if self.turns and not self.turns[-1].words:
                self.turns[-1].words, self.turns[-1].record = words, record.uuid
            else:
                self.turns.append(_SeriesTurn(len(self.turns) + 1, record.time, words, record.uuid, {}))
        if not self.turns:
            return
        turn = self.turns[-1]
        for block in record.blocks:
            if isinstance(block, ToolUse):
                turn.tools[block.name] = turn.tools.get(block.name, 0) + 1
            elif isinstance(block, ToolResult):
                turn.errors += block.is_error

    def series(self, settings: Settings, *, origin: Origin = "lamina", health: Health | None = None) -> Series:
        health = health or Health()
        points, surprises = self._points()
        made = Series(
            requests=points,
            decisions=list_decisions(points, self.marks, surprises, origin, self._coming()),
            turns=tuple(turn.row(points) for turn in self.turns),
            model=points[-1].model if points else "",
            window=0,
            threshold=None,
            threshold_owner=NAMES[origin],
            window_source="",
            skipped_lines=health.skipped,
            damaged=tuple(health.lost),
            lines=health.lines if health.lost else 0,
            missing_base=health.missing,
            estimated=not any(point.reported for point in points),
            beside=len(self._beside),
            beside_usd=_sum_costs(price_of(model, usage) for model, usage in self._beside.values()),
            beside_usage=sum((usage for _, usage in self._beside.values()), Usage()),
            side=self._side,
            short_outputs=sum(request.short_output for request in self._requests),
            recorded_window=self._recorded_window,
        )
        return in_force(made, settings, origin)

    def _coming(self) -> int:
        """Return the tokens of the next request, if an undo since the last one changed it, else 0. Counting takes a while."""
        waiting = takewhile(lambda mark: mark.request > len(self._requests), reversed(self.marks))
        if not any(isinstance(mark.record, Revoke) for mark in waiting):
            return 0
        self._refold()
        return count_log(self._log).tokens

    def _points(self) -> tuple[tuple[RequestPoint, ...], list[int]]:
        split, found, surprises = Split(), list[RequestPoint](), list[int]()
        for number, request in enumerate(self._requests, 1):
            usage = request.usage
            parts = split.parts(request.sums, usage.prompt if usage is not None else None, compacted=request.compacted)
            surprises.append(split.surprise)
            found.append(_point(number, request, parts, found[-1] if found else None))
        return tuple(found), surprises


def in_force(series: Series, settings: Settings, origin: Origin) -> Series:
    """Return a series with the window and the threshold that follow from the settings."""
    points, model = series.requests, series.model
    most = max((point.tokens for point in points), default=0)
    head = points[-1].kinds[AT["system"]] + points[-1].kinds[AT["tools"]] if points else 0
    window = window_of(model, settings, most, series.recorded_window)
    threshold = _threshold(model, window.tokens, settings, origin, head)
    return msgspec.structs.replace(series, window=window.tokens, threshold=threshold, window_source=window.source)


def _point(number: int, request: _Request, parts: list[int], before: RequestPoint | None) -> RequestPoint:
    usage = request.usage or Usage()
    usd: CostParts | None = CostParts(0.0, 0.0, 0.0)
    if usage.total:
        usd = cost_parts(request.model, usage) if request.usd is None else split_cost(request.model, usage, request.usd)
    return RequestPoint(
        number=number,
        turn=request.turn,
        time=request.time,
        model=request.model,
        tokens=sum(parts),
        reported=request.usage is not None,
        kinds=tuple(parts),
        read=usage.cache_read,
        written=usage.cache_write,
        fresh=usage.input_tokens,
        output=usage.output_tokens,
        usd_read=usd.read if usd is not None else None,
        usd_written=usd.written if usd is not None else None,
        usd_output=usd.output if usd is not None else None,
        seconds_since_previous=_seconds(before.time, request.time) if before is not None else None,
        added=request.added,
        written_1h=usage.cache_write_1h,
        went_back=request.went_back,
    )


def _sum_costs(costs: Iterable[float | None]) -> float | None:
    found = list(costs)
    return None if None in found else sum(cost or 0.0 for cost in found)


def _chars(block: Block) -> int:
    match block:
        case Text(text=text) | Thinking(thinking=text):
            return len(text)
        case ToolUse(input=given):
            return input_chars(given)
        case _:
            return 0


def _seconds(before: str, after: str) -> float | None:
    try:
        return max(0.0, (datetime.fromisoformat(after) - datetime.fromisoformat(before)).total_seconds())
    except (ValueError, TypeError):  # no time, or only one of them has a time zone
        return None


# Codex compacts at this share of the window, and pi when less than this many tokens are free.
CODEX_SHARE = 0.9
PI_RESERVE = 16_384


def _threshold(model: str, window: int, settings: Settings, origin: Origin, head: int) -> int | None:
    info = known(model)
    output = info.max_output if info is not None else None
    match origin:
        case "lamina":
            policy, percent = settings.policy.window, settings.autocompact_percent
            limits = thresholds(window, output, policy, percent, compact_in=settings.auto_compact_window)
            return limits.starts_at(head) if settings.auto_compact else None
        case "claude-code":
            return thresholds(window, output, CLASSIC.window).autocompact
        case "codex":
            return round(window * CODEX_SHARE)
        case "pi":
            return max(0, window - PI_RESERVE)
