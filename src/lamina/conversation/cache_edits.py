"""Clearing in the provider's cache (M4): the messages stay as they are, and the request asks for results to be deleted.

Theory. A deletion lives in the cache entry it was made in. A request that reads that entry need not name it again, one that finds
the cache cold must, and nobody knows beforehand which it will be: so every request names all of them, and naming one twice is
the same as naming it once. A mark is *open* until a response lists it as deleted. A call that fails changes nothing.

Only the conversation's own thread changes this state; a fork reads the same cache entries and never touches it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any, NamedTuple


class ConfirmedEdits(NamedTuple):
    ids: tuple[str, ...]  # deleted for the first time
    ignored: bool  # the provider has no idea of what it was asked


class CacheEdits:
    """Which results are marked, and which of them a response has confirmed."""

    def __init__(self) -> None:
        self.marked: dict[str, bool] = {}  # tool_use id → confirmed
        self.sent: tuple[str, ...] = ()  # named in the request under way
        self.off = False  # this provider does not do it

    @property
    def open(self) -> bool:
        return not all(self.marked.get(call, True) for call in self.sent)

    def mark(self, calls: Iterable[str]) -> None:
        self.marked |= dict.fromkeys(calls, False)

    def reset(self) -> None:
        """After a clearing of another kind, or at a provider that cannot do it."""
        self.marked, self.sent = {}, ()

    def prune(self, still: Container[str]) -> None:
        """Drop marks whose results have left the view, or were cleared there."""
        self.marked = {call: done for call, done in self.marked.items() if call in still}

    def resume(self, marked: Iterable[str], *, confirmed: bool, off: bool) -> None:
        """Take over what the log knows of the session before."""
        self.marked, self.sent, self.off = dict.fromkeys(marked, confirmed), (), off

    def send(self) -> tuple[str, ...]:
        """What the next request names."""
        self.sent = () if self.off else tuple(self.marked)
        return self.sent

    def confirm(self, note: Any) -> ConfirmedEdits:
        """What the response says of the edits its request carried; `note` is its own key, None where it has none."""
        sent, self.sent = self.sent, ()
        if not sent:
            return ConfirmedEdits((), False)
        listed = note.get("deleted") if isinstance(note, Mapping) else None
        deleted = {str(call) for call in listed} if isinstance(listed, list | tuple) else set()
        if deleted.isdisjoint(sent):
            self.off = True
            self.reset()
            return ConfirmedEdits((), True)
        new = tuple(call for call in sent if call in deleted and not self.marked.get(call, True))
        self.marked |= dict.fromkeys(new, True)
        return ConfirmedEdits(new, False)
