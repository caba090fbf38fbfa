"""Breaks of the prefix that are announced beside the wire: by the test itself, or read from the program under test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from .received_request import Announced


class Announcements:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[tuple[str | None, Announced]] = []
        self._sources: list[tuple[Callable[[], Iterable[Any]], str | None]] = []
        self._seen: list[int] = []  # of each source, how many of its records
        self._decisions: list[Callable[[], int]] = []

    def add(self, record: Announced, session: str | None) -> None:
        with self._lock:
            self._open.append((session, record))

    def follow(self, records: Callable[[], Iterable[Any]], session: str | None) -> None:
        with self._lock:
            self._sources.append((records, session))
            self._seen.append(0)

    def follow_decisions(self, count: Callable[[], int]) -> None:
        self._decisions.append(count)

    def decisions(self) -> int | None:
        """How many decisions the layers made; None where nobody counts them."""
        return sum(count() for count in self._decisions) if self._decisions else None

    def take(self, session: str, fork: str) -> tuple[Announced, ...]:
        """What a request may use up. It is the main thread's: a fork announces in its own header."""
        with self._lock:
            for at, (source, owner) in enumerate(self._sources):
                records = list(source())
                self._open.extend((owner, _announced(record)) for record in records[self._seen[at] :])
                self._seen[at] = len(records)
            if fork:
                return ()
            taken = tuple(record for owner, record in self._open if owner in (None, session))
            self._open = [(owner, record) for owner, record in self._open if owner not in (None, session)]
            return taken


def _announced(record: Any) -> Announced:
    """A break record of the program under test, whatever it looks like."""
    return Announced(str(_part(record, "reason") or record), str(_part(record, "decision") or ""))


def _part(record: Any, name: str) -> Any:
    return record.get(name) if isinstance(record, dict) else getattr(record, name, None)
