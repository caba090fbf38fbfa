"""The decisions that changed a session's window, and what each of them cost and saved, for sessions of all agents.

Decisions come from records. Two kinds have none: a cache break that nothing announced, and tokens that came or went without a record.
Both follow from what the provider reported; `by` is empty then. Decisions of one kind before the same request are one decision. Pure.

A decision pays if the requests after it save more than it cost. It costs the tokens that had to be written to the cache again. Each
request up to the next decision of this sort saves reading the tokens that left. Dollars are at list price; they are None if the price
of the model is unknown.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias, TypeGuard

import msgspec

from ..core.records import Boundary, Break, Clear, Event, Record, Revoke, Rewind, Span, Spill
from ..core.usage import Usage
from ..language.text import SENTENCES, Text, joined
from ..language.wording import counted
from ..prompt.break_causes import TTL_SECONDS
from ..providers.amounts import units_of
from ..providers.models import UNITS_READ, UNITS_WRITE, UNITS_WRITE_1H, cost_parts
from .places import NAMES, Origin
from .scan import is_other_model
from .session_stats import BYTES_PER_TOKEN, DECIDED, SideCost, written_again

DecisionKind: TypeAlias = Literal["spill", "clear", "compact", "collapse", "undo", "model", "break", "unrecorded"]
Recorded: TypeAlias = Boundary | Break | Clear | Event | Revoke | Rewind | Span | Spill

# Fewer tokens without a record are context that agents insert all the time.
UNRECORDED_TOKENS = 5_000
# The decision that explains what was written again, if there are several before one request; the last two explain nothing.
ORDER: tuple[DecisionKind, ...] = ("compact", "collapse", "clear", "undo", "model", "break", "unrecorded", "spill")
# Decisions that make the window smaller and have a balance.
SHRINKING = ("compact", "collapse", "clear", "spill")
# The purpose of the calls that write summaries.
SUMMARY = "summary"
# What the triggers of clearings mean. Others are unknown.
WHY_CLEARED = {
    "auto": Text("They were cleared automatically."),
    "manual": Text("Asked for by the user."),
    "size": Text("The conversation had grown large."),
    "cold": Text("The prompt cache had expired, so everything was written again anyway."),
    "repeated": Text("Later results repeat them."),
    "idle": Text("There had been a long pause."),
}
# Who made a compaction: what its record says, and the text for it.
COMPACTED_BY = {
    "summary": Text("Lamina: summary"),
    "ahead": Text("Lamina: ahead"),
    "rules": Text("Lamina: rules"),
    "notes": Text("Lamina: notes"),
}
# The title of a break whose cache entry was too old.
EXPIRED = Text("Cache expired after {pause}")
# What a clearing without a trigger is read as. Lamina names the trigger of each.
NO_TRIGGER = "size"


class RequestPoint(msgspec.Struct, frozen=True):
    """One request. `kinds` are its tokens in the order of KINDS, and add up to `tokens`."""

    number: int
    turn: int
    time: str
    model: str
    tokens: int  # what the provider reported, else an estimate
    reported: bool
    kinds: tuple[int, ...]
    read: int  # from the cache
    written: int  # to the cache
    fresh: int  # neither
    output: int
    usd_read: float | None  # None: the price is unknown
    usd_written: float | None  # what was not read: written and fresh
    usd_output: float | None
    seconds_since_previous: float | None
    added: int = 0  # estimated tokens of the content that is new since the previous request
    written_1h: int = 0  # the part of `written` that lives an hour instead of five minutes
    went_back: bool = False  # the conversation continued from an earlier message

    @property
    def usd(self) -> float | None:
        parts = (self.usd_read, self.usd_written, self.usd_output)
        return None if None in parts else sum(part or 0.0 for part in parts)

    @property
    def usage(self) -> Usage:
        return Usage(self.fresh, self.read, self.written, self.written_1h, self.output)


class UnitBalance(msgspec.Struct, frozen=True):
    """A balance in units, whose ratios are the same for every model."""

    cost_written_again: float
    saved: float
    call: float  # 0: not recorded
    total: float  # saved minus costs
    breaks_even_after_requests: int | None


class Balance(msgspec.Struct, frozen=True):
    cost_written_again_usd: float | None
    tokens_fewer: int
    requests_until_next: int  # requests that profited, up to the next such decision or the end
    saved_usd: float | None
    total_usd: float | None  # saved minus costs
    breaks_even_after_requests: int | None  # None: never, or the price is unknown
    units: UnitBalance
    call_usd: float | None = None  # the call that wrote the summary; None: not recorded


class Decision(msgspec.Struct, frozen=True):
    request: int  # the first request it shows in; the last one if none followed
    time: str
    kind: DecisionKind
    title: Text
    detail: Text
    by: Text  # "Lamina: …", another agent, "You"; empty if no record tells
    tokens_before: int
    tokens_after: int
    written_again: int
    balance: Balance | None = None
    written_again_usd: float | None = 0.0  # more than reading these tokens would have cost; None: the price is unknown


class Mark(NamedTuple):
    """A record of a decision, and the number of the request that follows it."""

    request: int
    record: Recorded


def is_mark(record: Record) -> TypeGuard[Recorded]:
    match record:
        case Break(reason=reason):
            return reason not in DECIDED
        case Event(name=name, data=data):
            return name == "compaction" or (name == "fork" and data.get("purpose") == SUMMARY)
        case Boundary() | Clear() | Span() | Spill() | Revoke() | Rewind():
            return True
        case _:
            return False


def list_decisions(
    points: Sequence[RequestPoint], marks: Iterable[Mark], surprises: Sequence[int], origin: Origin, coming: int
) -> tuple[Decision, ...]:
    """Return all decisions in order.

    `surprises` are the tokens of each request that no record explains, and `coming` those of the request that follows the last one, if
    an undo changed it.
    """
    if not points:
        return ()
    by_request: dict[int, list[Recorded]] = {}
    for mark in marks:
        by_request.setdefault(mark.request, []).append(mark.record)
    found: list[Decision] = []
    for point in points:
        found += _decisions_at(point, points, by_request.get(point.number, []), surprises[point.number - 1], origin)
    ends = [one.request for one in found if one.kind in SHRINKING and one.kind != "spill"]
    balanced = [_with_balance(one, points, ends, by_request.get(one.request, [])) for one in found]
    last = points[-1]
    waiting = _recorded(by_request.get(last.number + 1, []), last, origin)
    tokens = {"tokens_before": last.tokens, "tokens_after": coming or last.tokens}
    return (*balanced, *(msgspec.structs.replace(made, **tokens) for made in waiting))


def _decisions_at(
    point: RequestPoint, points: Sequence[RequestPoint], records: list[Recorded], surprise: int, origin: Origin
) -> list[Decision]:
    before = points[point.number - 2] if point.number > 1 else None
    found = _recorded(records, point, origin)
    if before is None:
        return found
    if is_other_model(before.model, point.model):
        found.append(
            _make(
                point,
                "model",
                Text("Model changed to {model}", model=point.model),
                Text("Before: {model}.", model=before.model),
                "",
            )
        )
    again = written_again(before.usage, point.usage)
    if again and not ({one.kind for one in found} & set(ORDER[:6])):
        found.append(_make(point, "break", *_cause(before, point, again), ""))
    found.sort(key=lambda one: ORDER.index(one.kind))
    if again:
        usd = balance_of(point, again, 0, 0, None).cost_written_again_usd
        found[0] = msgspec.structs.replace(found[0], written_again=again, written_again_usd=usd)
    # A provider keeps the cache entries of an earlier message, so going back to it explains no cache break.
    if point.went_back and not any(one.kind == "undo" for one in found):
        found.append(_make(point, "undo", "Went back", "The conversation continued from an earlier message.", "You"))
    if abs(surprise) >= UNRECORDED_TOKENS and not ({one.kind for one in found} & {"compact", "undo"}):
        found.append(_unrecorded(point, surprise))
    found.sort(key=lambda one: ORDER.index(one.kind))
    return [msgspec.structs.replace(one, tokens_before=before.tokens) for one in found]


def _cause(before: RequestPoint, point: RequestPoint, lost: int) -> tuple[Text, Text]:
    idle, lives = point.seconds_since_previous or 0.0, TTL_SECONDS["1h" if before.written_1h else "5m"]
    missed = Text("{tokens} of the previous request were not read from the cache.", tokens=counted(lost, "token"))
    if idle >= lives:
        why = Text("The entry lives {life}, and the pause was {pause}.", life=_minutes(lives), pause=_minutes(idle))
        return Text(EXPIRED, pause=_minutes(idle)), joined((missed, why), SENTENCES)
    return Text("Cache break"), joined((missed, Text("No record says why.")), SENTENCES)


def _minutes(seconds: float) -> Text:
    return counted(round(seconds / 60), "minute") if seconds < 7_200 else counted(round(seconds / 3_600), "hour")


def _unrecorded(point: RequestPoint, surprise: int) -> Decision:
    tokens = counted(abs(surprise), "token")
    if surprise > 0:
        title = Text("{tokens} came without a record", tokens=tokens)
        detail = Text("The request has {tokens} more than its records explain.", tokens=tokens)
    else:
        title = Text("{tokens} left without a record", tokens=tokens)
        detail = Text("The request has {tokens} less than its records explain.", tokens=tokens)
    return _make(point, "unrecorded", title, joined((detail, Text("No record says why.")), SENTENCES), "")


def _make(point: RequestPoint, kind: DecisionKind, title: str, detail: str, by: str, time: str = "") -> Decision:
    texts = (Text.whole(title), Text.whole(detail), Text.whole(by))
    return Decision(point.number, time or point.time, kind, *texts, 0, point.tokens, 0)


def _recorded(records: list[Recorded], point: RequestPoint, origin: Origin) -> list[Decision]:
    """Return one decision for each kind of record."""
    spills = [one for one in records if isinstance(one, Spill)]
    clears = [one for one in records if isinstance(one, Clear)]
    spans = [one for one in records if isinstance(one, Span)]
    found: list[Decision] = []
    if boundaries := [one for one in records if isinstance(one, Boundary)]:
        told = [one for one in records if isinstance(one, Event)]
        found.append(_compaction(boundaries[-1], told, point, origin))
    if spans:
        partial, count = spans[-1].kind == "partial", sum(len(one.ids) for one in spans)
        form = Text("Summarised {n} record|Summarised {n} records" if partial else "Collapsed {n} record|Collapsed {n} records")
        title = Text(form, n=count)
        found.append(_make(point, "collapse", title, "", "Lamina: collapse", spans[-1].time))
    if clears:
        found.append(_clearing(clears, point, origin))
    for one in records:
        if isinstance(one, Revoke):
            found.append(
                _make(
                    point,
                    "undo",
                    "Undid a decision",
                    Text("Decision {target} no longer applies.", target=one.target[:8]),
                    "You",
                    one.time,
                )
            )
        elif isinstance(one, Rewind):
            found.append(
                _make(point, "undo", "Went back", "The conversation continued from an earlier message.", "You", one.time)
            )
    if breaks := [one for one in records if isinstance(one, Break)]:
        reason, time = breaks[-1].reason, breaks[-1].time
        found.append(
            _make(point, "break", Text("Cache break: {reason}", reason=reason), "Announced before the request.", "Lamina", time)
        )
    if spills:
        found.append(_spill(spills, point, origin))
    return found


def _compaction(boundary: Boundary, events: list[Event], point: RequestPoint, origin: Origin) -> Decision:
    told = next((one.data for one in reversed(events) if one.name == "compaction"), {})
    how = str(told.get("by") or SUMMARY)
    # Lamina gives each of its compactions a receipt, so one without it came with a copy.
    by = (
        COMPACTED_BY.get(how, f"Lamina: {how}")
        if boundary.receipt or told
        else NAMES["claude-code" if origin == "lamina" else origin]
    )
    manual = boundary.trigger == "manual"
    detail = Text("Asked for by the user." if manual else "Automatic.")
    if isinstance(because := told.get("because"), str):
        form = Text("Asked for by the user, {because}." if manual else "Automatic, {because}.")
        detail = Text(form, because=Text.whole(because))
    return _make(point, "compact", "Compaction", detail, by, boundary.time)


def _clearing(clears: list[Clear], point: RequestPoint, origin: Origin) -> Decision:
    results = sum(len(one.markers) for one in clears)
    others = sum(len(one.attachments) + len(one.shortened) for one in clears)
    title = (
        Text("Cleared {n} result|Cleared {n} results", n=results)
        if results or not others
        else Text("Shortened {n} message|Shortened {n} messages", n=others)
    )
    why = sorted({one.trigger for one in clears if one.trigger != NO_TRIGGER or one.receipt or origin == "lamina"})
    detail = joined((WHY_CLEARED[trigger] for trigger in why if trigger in WHY_CLEARED), SENTENCES)
    by = "Lamina: clearing" if origin == "lamina" or any(one.receipt for one in clears) else NAMES[origin]
    return _make(point, "clear", title, detail, by, clears[-1].time)


def _spill(spills: list[Spill], point: RequestPoint, origin: Origin) -> Decision:
    size = sum(one.size for one in spills)
    by = "Lamina: results" if any(one.sha256 for one in spills) or origin == "lamina" else NAMES[origin]
    title = Text("Stored {n} result in files|Stored {n} results in files", n=len(spills))
    return _make(point, "spill", title, Text("{size:,} bytes; the window shows a preview.", size=size), by, spills[-1].time)


def _with_balance(made: Decision, points: Sequence[RequestPoint], ends: list[int], records: list[Recorded]) -> Decision:
    """Add the balance of a decision that made the window smaller; `ends` are the requests with such a decision, in order."""
    if made.kind not in SHRINKING or made.request < 2:
        return made
    before, point = points[made.request - 2], points[made.request - 1]
    end = ends[at] if (at := bisect_right(ends, made.request)) < len(ends) else len(points) + 1
    if made.kind == "spill":
        spills = (one for one in records if isinstance(one, Spill))
        fewer = sum(max(0, one.size - len(one.preview)) for one in spills) // BYTES_PER_TOKEN
    else:
        fewer = max(0, before.tokens + point.added - point.tokens)
    calls = [SideCost.of_event(one.data) for one in records if isinstance(one, Event) and one.name == "fork"]
    call = sum(calls, SideCost()) if calls and made.kind == "compact" else None
    return msgspec.structs.replace(made, balance=balance_of(point, made.written_again, fewer, end - made.request, call))


def balance_of(point: RequestPoint, again: int, fewer: int, requests: int, call: SideCost | None) -> Balance:
    """Return the balance at the prices of a request. Without the decision, the tokens would have been read from the cache."""
    model, prompt, call_usd = point.model, point.tokens, call.usd if call is not None else None
    units = UnitBalance(
        *_balance(again, fewer, requests, UNITS_READ, units_of_write(point), units_of(call.usage) if call else 0.0)
    )
    read, write = token_price(model, prompt, "read"), token_price(model, prompt, "hour" if point.written_1h else "write")
    if read is None or write is None:
        return Balance(None, fewer, requests, None, None, None, units, call_usd)
    cost, saved, _, total, even = _balance(again, fewer, requests, read, write, call_usd or 0.0)
    return Balance(cost, fewer, requests, saved, total, even, units, call_usd)


def _balance(
    again: int, fewer: int, requests: int, read: float, write: float, call: float
) -> tuple[float, float, float, float, int | None]:
    """Return the cost of writing again, the saving, the call, the total, and after how many requests it pays, at these prices."""
    cost = again * max(0.0, write - read)
    saved, paid = fewer * read * requests, cost + call
    return cost, saved, call, saved - paid, math.ceil(paid / (fewer * read)) if fewer and read else None


def units_of_write(point: RequestPoint) -> float:
    """Return the units of one token that a request writes to the cache."""
    return UNITS_WRITE_1H if point.written_1h else UNITS_WRITE


def token_price(model: str, prompt: int, part: Literal["read", "write", "hour"]) -> float | None:
    """Return the dollars of one token of a request of this size, read from the cache or written to it."""
    usage = {"read": Usage(cache_read=prompt), "write": Usage(cache_write=prompt), "hour": Usage(0, 0, prompt, prompt)}[part]
    found = cost_parts(model, usage)
    return (found.read + found.written) / max(1, prompt) if found is not None else None
