"""The list of all sessions for the page: brought up to date in one thread, so that no view waits for a home that is read the first time.

Invariants: `current` answers within WAIT seconds with what is known so far; nothing runs without a request; reading files waits while a
view is made. When the page is read-only, the index lives in memory and no file is written.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from ..core.settings import Settings
from ..disk.regular_file import FileStamp
from ..history.catalogue import Catalogue, IndexedFile, with_catalogue
from ..history.money import DayMoney, PaidSession, sum_money, without_copies
from ..history.places import NAMES, SourceFile, session_files
from ..history.query import count_sessions
from ..history.scan import Costs
from ..history.sessions import SourceSession, fold_subagents, homes_of, read_session
from .views_made import ViewsMade, Work

T = TypeVar("T")
# Seconds a view waits for the first list, and for one that is brought up to date: the event stream brings what comes later.
WAIT = 0.5
WAIT_AGAIN = 0.1
# The most seconds that the view of one session waits for the first list: a link works right after a start, also with a large home.
FIND_WAIT = 10.0
# In the place of an origin in the address of a session: a change of memory knows the id alone.
ANY_ORIGIN = "any"
# Seconds a list counts as new.
FRESH = 1.0
# Seconds until the first look at a list that is still being made, and between two later ones.
FIRST_PUBLISH = 0.2
PUBLISH = 1.0
# Sessions that match a search of memories are counted up to this number: a common word is in thousands of messages.
MOST_COUNTED = 100


class Listing(NamedTuple):
    """The sessions known so far, newest first. `of` is how many files are being read, 0 when all were."""

    sessions: tuple[SourceSession, ...] = ()
    unread: tuple[str, ...] = ()
    done: int = 0
    of: int = 0
    by_address: Mapping[tuple[str, str], SourceSession] = {}
    top: tuple[SourceSession, ...] = ()  # those that a user started, each with its subagents
    money: tuple[DayMoney, ...] = ()
    broken: frozenset[str] = frozenset()  # paths of the sessions whose cache broke
    renamed: Mapping[str, str] = {}  # ids of the sessions that share the file's own one, by path


class _Known(NamedTuple):
    """A session and its costs, read from the index once for each stamp of the file."""

    stamp: tuple[str, FileStamp]
    session: SourceSession
    costs: Costs


class SessionIndex:
    def __init__(
        self,
        home: Path | None,
        settings: Callable[[], Settings],
        environ: Mapping[str, str],
        views: ViewsMade,
        *,
        in_memory: bool,
    ) -> None:
        self._home = home
        self._settings = settings
        self._environ = environ
        self._views = views
        self._in_memory = in_memory
        self._held: Catalogue | None = None
        self._lock = threading.Lock()
        # One thread: an index in memory belongs to the thread that opened it.
        self._worker = ThreadPoolExecutor(1, "lamina-index")
        self._finished = threading.Event()  # a list can be shown: the whole, or its beginning
        self._complete = threading.Event()  # all files were listed once
        self._waited = False  # a view has waited for the list that is being made, and others need not
        self._asked = 0  # other work for the thread, which may come before the list
        self._finished_at = float("-inf")
        self._running = False
        self._followed: tuple[list[SourceFile], list[str]] = ([], [])  # as of the last list
        self._known: dict[int, _Known] = {}
        self._copies: dict[object, Costs] = {}
        self.listing = Listing()

    def current(self, wait: float | None = None) -> Listing:
        """Return the sessions, after at most `wait` seconds."""
        with self._lock:
            if not self._running and time.monotonic() - self._finished_at > FRESH:
                self._running, self._waited = True, False
                self._finished.clear()
                self._worker.submit(self._refresh)
        if wait is None:
            wait = 0 if self._waited or self._asked else WAIT_AGAIN if self.listing.sessions else WAIT
        with self._views.waiting(Work.INDEX):
            self._waited |= not self._finished.wait(wait)
        return self.listing

    @property
    def is_complete(self) -> bool:
        """Whether all files were listed once."""
        return self._complete.is_set()

    def find(self, origin: str, id: str, wait: float = FIND_WAIT) -> SourceSession | None:
        """Return a session by its address. Until all files were listed once, one that is not listed yet is waited for.

        The origin ANY_ORIGIN finds the session of any agent with this id.
        """
        until, listing = time.monotonic() + wait, self.listing
        while (found := _find(listing, origin, id)) is None:
            complete = self.is_complete
            listing = self.current(wait if wait < WAIT else None)
            if complete or (left := until - time.monotonic()) <= 0:
                return _find(listing, origin, id)
            with self._views.waiting(Work.INDEX):
                self._complete.wait(min(left, FIRST_PUBLISH))
        return found

    def by_number(self) -> dict[int, SourceSession]:
        """Return all sessions by their number in the index."""
        return {number: known.session for number, known in self._known.items()}

    def use(self, work: Callable[[Catalogue], T]) -> T:
        """Return what `work` makes of the index, in the thread that owns it. Raises RuntimeError when the server stops.

        It comes after what that thread is doing. From then on it is done as work of the view that asked.
        """
        begun, context = threading.Event(), copy_context()

        def run(catalogue: Catalogue) -> T:
            begun.set()
            return context.run(work, catalogue)

        try:
            with self._busy():
                asked = self._worker.submit(self._with, run)
                asked.add_done_callback(lambda _: begun.set())
                with self._views.waiting(Work.INDEX):
                    begun.wait()
                return asked.result()
        except CancelledError:
            raise RuntimeError("the index is closed") from None

    @contextmanager
    def _busy(self) -> Iterator[None]:
        with self._lock:
            self._asked += 1
        try:
            yield
        finally:
            with self._lock:
                self._asked -= 1

    def peek(self, work: Callable[[Catalogue], T]) -> T | None:
        """Return what `work` reads in the index, in this thread; None while files are being indexed, and for an index in memory."""
        if self._in_memory or self._running:
            return None
        return with_catalogue(self._home, lambda catalogue: self._paused(catalogue, work))

    def count_matching(self, query: str) -> int | None:
        """Return how many sessions have a word of the query, at most MOST_COUNTED; None while that is not known at once."""
        if not self.is_complete:
            self.current(wait=0)
            return None
        return self.peek(lambda catalogue: count_sessions(catalogue, query, MOST_COUNTED))

    def later(self, work: Callable[[Catalogue], None]) -> None:
        """Let `work` write to the index when its thread has time. An index in memory is not worth it."""
        if not self._in_memory:
            with suppress(RuntimeError):  # the server stops
                self._worker.submit(self._with, work)

    def close(self) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)

    def _refresh(self) -> None:
        try:
            unread: list[str] = []
            files = [*session_files(homes_of(self._settings(), self._environ), unread)]
            if (files, unread) != self._followed:
                self._with(lambda catalogue: self._follow(catalogue, files, unread))
                self._followed = (files, unread)
        finally:
            with self._lock:
                self._running = False
                self._finished_at = time.monotonic()
                self._finished.set()
                self._complete.set()

    def _with(self, work: Callable[[Catalogue], T]) -> T:
        if not self._in_memory:
            return with_catalogue(self._home, lambda catalogue: self._paused(catalogue, work))
        self._held = self._held or Catalogue(None)
        return self._paused(self._held, work)

    def _paused(self, catalogue: Catalogue, work: Callable[[Catalogue], T]) -> T:
        """Return what `work` makes of an index that lets views pass."""
        catalogue.pause = self._views.pause(Work.INDEX)
        return work(catalogue)

    def _follow(self, catalogue: Catalogue, files: list[SourceFile], unread: list[str]) -> None:
        due = time.monotonic() + FIRST_PUBLISH

        def tell(done: int, of: int) -> None:
            nonlocal due
            if not done:
                self._publish(
                    catalogue.rows("session"), unread, done, of
                )  # a view that cannot wait longer says how many are read
            elif time.monotonic() > due:
                self._publish(catalogue.rows("session"), unread, done, of)
                due = time.monotonic() + PUBLISH
                self._finished.set()

        trouble = [*unread]
        self._publish(catalogue.follow("session", files, tell, trouble), trouble, 0, 0)

    def _publish(self, rows: list[IndexedFile], unread: list[str], done: int, of: int) -> None:
        known = {row.id: self._known_of(row) for row in rows}
        if known == self._known and (tuple(unread), done, of) == self.listing[1:4]:
            return
        self._known = known
        paid = [PaidSession(row, known[row.id].session, known[row.id].costs) for row in rows]
        found = [session for _, session, _ in known.values() if session.messages or session.tokens]
        found.sort(key=lambda session: (-session.last_active, session.path))
        renamed = _new_ids(found)
        found = [msgspec.structs.replace(one, id=renamed[one.path]) if one.path in renamed else one for one in found]
        by_address: dict[tuple[str, str], SourceSession] = {(session.origin, session.id): session for session in found}
        money = sum_money(paid, without_copies(paid, self._copies))
        broken = frozenset(
            one.session.path for one in paid if any(paid.breaks for by in one.costs.values() for paid in by.values())
        )
        top = sorted(fold_subagents(found), key=lambda session: (-session.last_active, session.path))
        self.listing = Listing(tuple(found), tuple(unread), done, of, by_address, tuple(top), tuple(money), broken, renamed)

    def _known_of(self, row: IndexedFile) -> _Known:
        stamp, before = (row.path, row.stamp), self._known.get(row.id)
        if before is not None and before.stamp == stamp:
            return before
        return _Known(stamp, *read_session(row))


def _find(listing: Listing, origin: str, id: str) -> SourceSession | None:
    origins = NAMES if origin == ANY_ORIGIN else (origin,)
    return next((one for name in origins if (one := listing.by_address.get((name, id))) is not None), None)


def _new_ids(found: list[SourceSession]) -> dict[str, str]:
    """Return ids for the sessions whose own id another file has too, such as copies of a project. The first path keeps it."""
    first = dict[tuple[str, str], str]()
    for one in sorted(found, key=lambda one: one.path):
        first.setdefault((one.origin, one.id), one.path)
    shared = (one for one in found if first[one.origin, one.id] != one.path)
    return {one.path: f"{one.id}~{blake2b(one.path.encode('utf-8', 'replace'), digest_size=4).hexdigest()}" for one in shared}
