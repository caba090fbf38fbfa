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
        self._sources: list[_Source] = []
        self._decisions: list[Callable[[], int]] = []

    def add(self, record: Announced, session: str | None) -> None:
        with self._lock:
            self._open.append((session, record))

    def follow(self, records: Callable[[], Iterable[Any]], session: str | None) -> None:
        with self._lock:
            self._sources.append(_Source(records, session))

    def follow_decisions(self, count: Callable[[], int]) -> None:
        self._decisions.append(count)

    def decisions(self) -> int | None:
        """How many decisions the layers made; None where nobody counts them."""
        return sum(count() for count in self._decisions) if self._decisions else None

    def take(self, session: str, fork: str) -> tuple[Announced, ...]:
        """What a request may use up. It is the main thread's: a fork announces in its own header."""
        with self._lock:
            for source in self._sources:
                self._open.extend((source.session, record) for record in source.news())
            if fork:
                return ()
            taken = tuple(record for owner, record in self._open if owner in (None, session))
            self._open = [(owner, record) for owner, record in self._open if owner not in (None, session)]
            return taken


class _Source:
    """Break records of a program under test, and how many of them were already seen."""

    def __init__(self, records: Callable[[], Iterable[Any]], session: str | None) -> None:
        self._records = records
        self._seen = 0
        self.session = session

    def news(self) -> list[Announced]:
        records = list(self._records())
        new = records[self._seen :]
        self._seen = len(records)
        return [Announced(str(_part(record, "reason") or record), str(_part(record, "decision") or "")) for record in new]


def _part(record: Any, name: str) -> Any:
    return record.get(name) if isinstance(record, dict) else getattr(record, name, None)
