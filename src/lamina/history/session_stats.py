"""Statistics of a session, computed from its records: tokens, costs, and what each layer did and saved.

Usage is counted once per answer, although every record of an answer repeats it. Side calls are counted separately, because they do
not use the window of the conversation. Decisions that were undone later still count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import msgspec

from ..core.records import Boundary, Break, Clear, Event, Message, Record, Revoke, Spill
from ..core.usage import Usage

# Four bytes per token is the usual rule of thumb; it is only used to estimate how much a spill saved.
BYTES_PER_TOKEN = 4

# Fewer tokens that were not read are rounding or a block border.
AGAIN_TOKENS = 2_000
AGAIN_SHARE = 0.05
# Reasons of announced cache breaks whose decision is a record of its own.
DECIDED = ("compaction", "clearing", "spill", "snip", "collapse", "undo", "branch", "model")

# The possible fates of a probe fact at a compaction.
FATES = ("in_context", "one_call", "lost")

# Fields of SessionStats that are counts by name.
NAMED = ("compactions", "clearings", "saved", "breaks", "failures", "fidelity", "budget_stops")


# The method of a compaction that another agent made.
BY_AGENT = "the agent"

# The cost of one call of a model; None if its price is unknown.
Price: TypeAlias = Callable[[str, Usage], float | None]

# The purposes of side calls that the Agent tool makes: forks and subagents.
AGENT_PURPOSES = ("agent", "subagent")


class SideCost(msgspec.Struct, frozen=True):
    """The cost of side calls with one purpose."""

    calls: int = 0  # an agent counts as one call, however many answers it gave
    usage: Usage = Usage()
    usd: float | None = 0.0  # None if any of them used a model with unknown prices

    @classmethod
    def of_event(cls, data: dict[str, Any]) -> SideCost:
        """Read the data of a `fork` event."""
        usage = Usage(_int(data, "input"), _int(data, "cache_read"), _int(data, "cache_write"), 0, _int(data, "output"))
        usd = data.get("usd")
        return cls(1, usage, float(usd) if isinstance(usd, int | float) else None)

    def __add__(self, other: SideCost) -> SideCost:
        return SideCost(self.calls + other.calls, self.usage + other.usage, _sum(self.usd, other.usd))


class SessionStats(msgspec.Struct, frozen=True):
    calls: int = 0
    turns: int = 0
    usage: dict[str, Usage] = {}  # by model
    usd: float | None = 0.0  # of these calls; None if a price is unknown
    side: dict[str, SideCost] = {}  # by purpose
    compactions: dict[str, int] = {}  # by method: notes, summary, ahead, rules, the agent
    compactions_by_price: int = 0  # of these, how many ran before the window was full because they paid
    compaction_failures: int = 0
    compactions_refused: int = 0  # by a hook
    fidelity: dict[str, int] = {}  # probe facts by their fate: in_context, one_call, lost
    breaker_trips: int = 0
    clearings: dict[str, int] = {}  # by trigger
    spills: int = 0
    shown_once: int = 0  # results shown whole to one answer
    collapses: int = 0
    undos: int = 0
    saved: dict[str, int] = {}  # tokens, by layer
    breaks: dict[str, int] = {}  # announced, by reason
    missed: int = 0  # cache misses that no decision of Lamina explains
    written_again: int = 0  # tokens that were in the cache, or replaced what was, and were not read from it
    failures: dict[str, int] = {}  # failures by layer
    budget_stops: dict[str, int] = {}  # times the daily budget of background work ran out, by limit

    @property
    def total(self) -> Usage:
        return sum(self.usage.values(), Usage())

    def side_total(self, *, agents: bool | None = None) -> SideCost:
        """Return the cost of all side calls, or with `agents` of those by the Agent tool or of the others."""
        wanted = (cost for name, cost in self.side.items() if agents is None or (name in AGENT_PURPOSES) == agents)
        return sum(wanted, SideCost())

    @property
    def hit_ratio(self) -> float:
        """Share of all sent tokens that were read from the cache."""
        total = self.total
        return total.cache_read / total.prompt if total.prompt else 0.0

    @property
    def summaries_per_100_turns(self) -> float:
        return 100 * self.side.get("summary", SideCost()).calls / self.turns if self.turns else 0.0

    @property
    def facts(self) -> int:
        return sum(self.fidelity.values())

    @property
    def answerable(self) -> float | None:
        """Share of the probe facts that are in context or one call away; None without probe facts."""
        return 1 - self.fidelity.get("lost", 0) / self.facts if self.facts else None

    def __add__(self, other: SessionStats) -> SessionStats:
        return SessionStats(**{name: _sum(getattr(self, name), getattr(other, name)) for name in self.__struct_fields__})


def session_stats(records: Iterable[Record], price: Price = lambda model, usage: None) -> SessionStats:
    """Return the statistics of a session. `price` returns the cost of one call: some models charge more for a long request."""
    fold = _Fold()
    for record in records:
        fold.add(record)
    return fold.done(price)


class _Fold:
    def __init__(self) -> None:
        self.answers: dict[str, tuple[str, Usage]] = {}
        self.counts: Counter[str] = Counter()
        self.named: dict[str, Counter[str]] = {name: Counter() for name in NAMED}
        self.side: dict[str, SideCost] = {}
        self.stopped = False

    def add(self, record: Record) -> None:
        match record:
            case Message(sidechain=True) | Message(silent=True):
                pass
            case Message(role="assistant") if not record.from_model:
                pass
            case Message(role="assistant"):
                # The last record of an answer has its complete usage.
                self.answers[record.message_id or record.uuid] = (record.model or "", record.usage or Usage())
            case Message():
                by_user = any(block.wire["type"] != "tool_result" for block in record.blocks)
                self.counts["turns"] += by_user and not (record.meta or record.summary or record.synthetic)
            case Boundary(sidechain=False) if not record.receipt:
                # Another agent's compaction: ours has a receipt, and an event that tells more.
                self.named["compactions"][BY_AGENT] += 1
            case Spill():
                self.counts["shown_once" if record.once else "spills"] += 1
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
                purpose = str(data.get("purpose"))
                self.side[purpose] = self.side.get(purpose, SideCost()) + SideCost.of_event(data)
            case "compaction":
                self.named["compactions"][str(data.get("by") or "summary")] += 1
                self.counts["compactions_by_price"] += bool(data.get("because"))
                self.named["saved"]["compaction"] += max(0, _int(data, "tokens_before") - _int(data, "tokens_after"))
                found = data.get("fidelity")
                if isinstance(found, dict):
                    self.named["fidelity"].update({fate: _int(found, fate) for fate in FATES})
            case "collapse":
                self.counts["collapses"] += 1
                self.named["saved"]["collapse"] += max(0, _int(data, "tokens_before") - _int(data, "tokens_after"))
            case "clearing" if data.get("trigger") in ("cache_edits", "provider"):
                # These write no decision to the log, because the messages do not change.
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

    def done(self, price: Price) -> SessionStats:
        usage: dict[str, Usage] = {}
        costs = [price(model, used) for model, used in self.answers.values() if used.total]
        before = Usage()
        for model, used in self.answers.values():
            usage[model] = usage.get(model, Usage()) + used
            self.counts["written_again"] += written_again(before, used)
            before = used
        counts: Any = {name: int(count) for name, count in self.counts.items()}
        named: Any = {name: dict(found) for name, found in self.named.items()}
        return SessionStats(calls=len(self.answers), usage=usage, usd=_sum_known(costs), side=self.side, **counts, **named)


def written_again(before: Usage, usage: Usage) -> int:
    """Return the tokens of a request that the one before left in the cache, or that replace those, and that were not read.

    This is the rule for all views: it follows from the reported usage alone, without an estimate of the request's new content.
    """
    held = min(before.cache_read + before.cache_write, usage.prompt)  # what is no longer sent cannot be read
    again = held - usage.cache_read
    return again if again > AGAIN_TOKENS and again > held * AGAIN_SHARE else 0


def _sum_known(costs: Iterable[float | None]) -> float | None:
    """Return the sum; None if one of them is unknown."""
    found = list(costs)
    return None if None in found else sum(usd or 0.0 for usd in found)


def _int(data: dict[str, Any], name: str) -> int:
    value = data.get(name)
    return int(value) if isinstance(value, int | float) else 0


def _sum(one: Any, other: Any) -> Any:
    if isinstance(one, dict):
        return {key: one.get(key, type(value)()) + other.get(key, type(value)()) for key, value in {**one, **other}.items()}
    return None if one is None or other is None else one + other
