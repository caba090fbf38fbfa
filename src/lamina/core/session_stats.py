"""Figures of a session (K4): what it read, wrote and spent, and what each layer did and saved. A pure fold over its records.

Usage is counted once per answer; the records of one answer repeat it. Calls beside the conversation are counted apart: they are no
part of its window. What was later undone still happened, and counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from .records import Break, Clear, Event, Message, Record, Revoke, Spill
from .usage import Usage

# Four bytes a token is the usual rule of thumb; it only says how much a spill kept out.
BYTES_PER_TOKEN = 4

# What becomes of a probe fact at a compaction.
FATES = ("in_context", "one_call", "lost")

# SessionStats that are counts by a name.
NAMED = ("side_calls", "compactions", "clearings", "saved", "breaks", "failures", "fidelity", "budget_stops")


class SessionStats(msgspec.Struct, frozen=True):
    calls: int = 0
    turns: int = 0
    usage: dict[str, Usage] = {}  # by model
    side_calls: dict[str, int] = {}  # by purpose
    side_usage: Usage = Usage()
    side_usd: float | None = 0.0  # None once a model without known prices answered
    compactions: dict[str, int] = {}  # by what: notes, summary, ahead, rules
    compaction_failures: int = 0
    compactions_refused: int = 0  # by a hook
    fidelity: dict[str, int] = {}  # probe facts of what left the view: in_context, one_call, lost
    breaker_trips: int = 0
    clearings: dict[str, int] = {}  # by trigger
    spills: int = 0
    collapses: int = 0
    undos: int = 0
    saved: dict[str, int] = {}  # tokens, by layer
    breaks: dict[str, int] = {}  # announced, by reason
    missed: int = 0  # times the cache was missed without a decision of ours
    failures: dict[str, int] = {}  # layers that stepped aside
    budget_stops: dict[str, int] = {}  # times background work had used up its day, by what ran out

    @property
    def total(self) -> Usage:
        return sum(self.usage.values(), Usage())

    @property
    def hit_ratio(self) -> float:
        """Of all tokens sent, those read from the cache."""
        total = self.total
        return total.cache_read / total.prompt if total.prompt else 0.0

    @property
    def summaries_per_100_turns(self) -> float:
        return 100 * self.side_calls.get("summary", 0) / self.turns if self.turns else 0.0

    @property
    def facts(self) -> int:
        return sum(self.fidelity.values())

    @property
    def answerable(self) -> float | None:
        """Of the probe facts, those in context or one call away; None where nothing was asked."""
        return 1 - self.fidelity.get("lost", 0) / self.facts if self.facts else None

    def __add__(self, other: SessionStats) -> SessionStats:
        return SessionStats(**{name: _sum(getattr(self, name), getattr(other, name)) for name in self.__struct_fields__})


def session_stats(records: Iterable[Record]) -> SessionStats:
    fold = _Fold()
    for record in records:
        fold.add(record)
    return fold.done()


class _Fold:
    def __init__(self) -> None:
        self.answers: dict[str, tuple[str, Usage]] = {}
        self.counts: Counter[str] = Counter()
        self.named: dict[str, Counter[str]] = {name: Counter() for name in NAMED}
        self.side = Usage()
        self.usd: float | None = 0.0
        self.stopped = False

    def add(self, record: Record) -> None:
        match record:
            case Message(sidechain=True) | Message(silent=True):
                pass
            case Message(role="assistant"):
                # The last record of an answer has its whole usage.
                self.answers[record.message_id or record.uuid] = (record.model or "", record.usage or Usage())
            case Message():
                said = any(block.wire["type"] != "tool_result" for block in record.blocks)
                self.counts["turns"] += said and not (record.meta or record.summary or record.synthetic)
            case Spill():
                self.counts["spills"] += 1
                self.named["saved"]["results"] += max(0, record.size - len(record.preview)) // BYTES_PER_TOKEN
            case Clear():
                self.named["clearings"][record.trigger] += 1
                self.named["saved"]["clearing"] += record.tokens_saved
            case Break():
                self.named["breaks"][record.reason] += 1
            case Revoke():
                self.counts["undos"] += 1
            case Event():
                self._event(record.name, record.data)
            case _:
                pass

    def _event(self, name: str, data: dict[str, Any]) -> None:
        match name:
            case "fork":
                self._fork(data)
            case "compaction":
                self.named["compactions"][str(data.get("by") or "summary")] += 1
                self.named["saved"]["compaction"] += max(0, _int(data, "tokens_before") - _int(data, "tokens_after"))
                found = data.get("fidelity")
                if isinstance(found, dict):
                    self.named["fidelity"].update({fate: _int(found, fate) for fate in FATES})
            case "collapse":
                self.counts["collapses"] += 1
                self.named["saved"]["collapse"] += max(0, _int(data, "tokens_before") - _int(data, "tokens_after"))
            case "clearing" if data.get("trigger") in ("cache_edits", "provider"):
                # These leave no decision in the log: the messages stay as they are.
                self.named["clearings"][str(data["trigger"])] += 1
                self.named["saved"]["clearing"] += _int(data, "tokens_saved")
            case "compaction_failed":
                self.counts["compaction_failures"] += 1
            case "compaction_refused":
                self.counts["compactions_refused"] += 1
            case "autocompact":
                stopped = bool(data.get("stopped"))
                self.counts["breaker_trips"] += stopped and not self.stopped
                self.stopped = stopped
            case "cache_break":
                self.counts["missed"] += 1
            case "budget":
                self.named["budget_stops"][str(data.get("ran_out"))] += 1
            case "layer_failed":
                self.named["failures"][str(data.get("layer"))] += 1
            case _:
                pass

    def _fork(self, data: dict[str, Any]) -> None:
        self.named["side_calls"][str(data.get("purpose"))] += 1
        self.side += Usage(_int(data, "input"), _int(data, "cache_read"), _int(data, "cache_write"), 0, _int(data, "output"))
        usd = data.get("usd")
        self.usd = self.usd + usd if isinstance(usd, int | float) and self.usd is not None else None

    def done(self) -> SessionStats:
        usage: dict[str, Usage] = {}
        for model, used in self.answers.values():
            usage[model] = usage.get(model, Usage()) + used
        counts: Any = {name: int(count) for name, count in self.counts.items()}
        named: Any = {name: dict(found) for name, found in self.named.items()}
        return SessionStats(calls=len(self.answers), usage=usage, side_usage=self.side, side_usd=self.usd, **counts, **named)


def _int(data: dict[str, Any], name: str) -> int:
    value = data.get(name)
    return int(value) if isinstance(value, int | float) else 0


def _sum(one: Any, other: Any) -> Any:
    if isinstance(one, dict):
        return {key: one.get(key, type(value)()) + other.get(key, type(value)()) for key, value in {**one, **other}.items()}
    return None if one is None or other is None else one + other
