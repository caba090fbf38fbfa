"""Clearing in the provider's cache (M4): the messages stay as they are, and the request asks for results to be deleted.

Theory. A deletion lives in the cache entry it was made in. A request that reads that entry need not name it again, one that finds
the cache cold must, and nobody knows beforehand which it will be: so every request names all of them, and naming one twice is
the same as naming it once. A mark is *open* until a response lists it as deleted. A call that fails changes nothing.

Only the conversation's own thread changes this state; a fork reads the same cache entries and never touches it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .registry import Clearable, Registry


class Confirmed(NamedTuple):
    ids: tuple[str, ...]  # deleted for the first time
    ignored: bool  # the provider has no idea of what it was asked


class Edits:
    """Which results are marked, and which of them a response has confirmed."""

    def __init__(self, marked: Sequence[str] = (), *, confirmed: bool = False) -> None:
        self.marked: dict[str, bool] = dict.fromkeys(marked, confirmed)  # tool_use id → confirmed
        self.sent: tuple[str, ...] = ()  # named in the request under way
        self.off = False  # this provider does not do it

    @property
    def open(self) -> bool:
        return not all(self.marked.get(call, True) for call in self.sent)

    def mark(self, rows: Sequence[Clearable]) -> None:
        self.marked |= dict.fromkeys((row.block.tool_use_id for row in rows), False)

    def reset(self) -> None:
        """After a clearing of another kind, or at a provider that cannot do it."""
        self.marked, self.sent = {}, ()

    def prune(self, registry: Registry) -> None:
        """Drop marks whose results have left the view, or were cleared there."""
        self.marked = {call: done for call, done in self.marked.items() if call in registry}

    def ride(self) -> tuple[str, ...]:
        """What the next request names."""
        self.sent = () if self.off else tuple(self.marked)
        return self.sent

    def confirm(self, note: Any) -> Confirmed:
        """What the response says of the edits its request carried; `note` is its own key, None where it has none."""
        sent, self.sent = self.sent, ()
        if not sent:
            return Confirmed((), False)
        listed = note.get("deleted") if isinstance(note, Mapping) else None
        deleted = {str(call) for call in listed} if isinstance(listed, list | tuple) else set()
        if deleted.isdisjoint(sent):
            self.off = True
            self.reset()
            return Confirmed((), True)
        new = tuple(call for call in sent if call in deleted and not self.marked.get(call, True))
        self.marked |= dict.fromkeys(new, True)
        return Confirmed(new, False)


def plan_edits(registry: Registry, edits: Edits, *, over: int, keep: int) -> list[Clearable]:
    """The results to mark now: with more than `over` that are not marked yet, the oldest beyond the last `keep`. What is marked
    is in the registry (`Edits.prune`), so that counting is a subtraction."""
    if len(registry) - len(edits.marked) <= over:
        return []
    return [row for row in registry.rows[: max(0, len(registry) - keep)] if row.block.tool_use_id not in edits.marked]
