"""The cache breaks of a period: by cause, with the tokens that were written again, their cost and the worst one.

No index has the causes: each session with breaks is read as a whole, in a thread, once for each version of its file. Views show what
is known so far, and how many sessions are still to be read.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress

import msgspec

from ..core.errors import LaminaError
from ..history.money import local_day
from ..history.scan import half_hour
from ..history.sessions import SourceSession
from ..history.window_decisions import EXPIRED
from ..language.text import Text, pack, unpack
from . import labels
from .html import Html, bdi, tag
from .numbers import price, share, sum_known, tokens
from .period import Period
from .session_index import Listing
from .session_list import address
from .site import Site
from .views_made import Work
from .words import Words

# Increase the number when what is kept changes.
NOTE = "breaks-4"
# Seconds before the first session is read: the view that asks comes first.
PATIENCE = 1.0


class CacheBreak(msgspec.Struct, frozen=True, array_like=True):
    time: str
    kind: str
    title: Text
    tokens: int
    usd: float | None  # None: the price is unknown
    request: int


class BreakCauses:
    """The cache breaks of sessions, as far as they are known."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._lock = threading.Lock()
        self._known: dict[str, tuple[tuple[int, float], list[CacheBreak]]] = {}
        self._due: dict[str, SourceSession] = {}
        self._running = False

    def of(self, sessions: Iterable[SourceSession]) -> tuple[list[tuple[SourceSession, CacheBreak]], int]:
        """Return the breaks of these sessions that are known, and how many sessions are still to be read."""
        found, missing = list[tuple[SourceSession, CacheBreak]](), list[SourceSession]()
        for session in sessions:
            stamp, breaks = self._known.get(session.path, (None, ()))
            found += [(session, one) for one in breaks]
            if stamp != _stamp(session):
                missing.append(session)
        with self._lock:
            self._due = {session.path: session for session in missing}
            if missing and not self._running:
                self._running = True
                threading.Thread(target=self._read_due, name="lamina-breaks", daemon=True).start()
        return found, len(missing)

    @property
    def state(self) -> list[int]:
        """The state that the event stream watches."""
        return [len(self._known), len(self._due)]

    def _read_due(self) -> None:
        self._site.closing.wait(PATIENCE)
        while (session := self._next()) is not None:
            breaks: list[CacheBreak] = []
            with suppress(OSError, LaminaError, RuntimeError):  # gone, damaged, or the server stops
                breaks = self._stored(session)
            with self._lock:
                self._known[session.path] = (_stamp(session), breaks)
                self._due.pop(session.path, None)

    def _next(self) -> SourceSession | None:
        with self._lock:
            found = None if self._site.closing.is_set() else next(iter(self._due.values()), None)
            self._running = found is not None
            return found

    def _stored(self, session: SourceSession) -> list[CacheBreak]:
        """Return the breaks from the index, or from the session's records."""
        stamp = str(_stamp(session))
        held = self._site.index.use(lambda index: index.note(session.path, NOTE, stamp))
        if held is None:
            held = msgspec.json.encode(self._read(session), enc_hook=pack)
            made = held
            self._site.index.use(lambda index: index.keep_note(session.path, NOTE, stamp, made))
        return msgspec.json.decode(held, type=list[CacheBreak], dec_hook=unpack)

    def _read(self, session: SourceSession) -> list[CacheBreak]:
        from ..history.followed_session import FollowedSession

        windows = self._site.windows
        followed = FollowedSession(session.path, self._site.settings, origin=session.origin, kept=windows.load(session.path))
        read, series = followed.update(self._site.views.pause(Work.LATER)), followed.series()
        if read:
            windows.keep(followed, series)
        return [
            CacheBreak(
                one.time,
                one.kind,
                one.title,
                one.written_again,
                one.written_again_usd,
                one.request,
            )
            for one in series.decisions
            if one.written_again
        ]


def _stamp(session: SourceSession) -> tuple[int, float]:
    return session.size, session.modified


class _Cause(msgspec.Struct):
    times: int = 0
    tokens: int = 0
    usd: float | None = 0.0
    worst: int = 0
    link: str = ""


def panel(words: Words, asked: Period, listing: Listing, known: BreakCauses) -> Html:
    every = [one for top in asked.sessions(listing.top) for one in (top, *top.subagents) if one.path in listing.broken]
    found, missing = known.of(every)
    causes = _causes(words, asked, found)
    times, again = sum(one.times for one in causes.values()), sum(one.tokens for one in causes.values())
    told = (
        words(
            "The cache broke once: {tokens} tokens were written again.|The cache broke {n} times: {tokens} "
            "tokens were written again.",
            n=times,
            tokens=tokens(again),
        )
        if times
        else words("No cache breaks in this period.")
    )
    status = (
        tag(
            "p",
            {"class": "soft small", "role": "status"},
            words("Reading {n} session with cache breaks …|Reading {n} sessions with cache breaks …", n=missing),
        )
        if missing
        else None
    )
    head = tag("header", None, tag("h2", None, words("Cache breaks")))
    shown = tag("p", None, told) if times or not missing else None
    table = tag("div", {"class": "scroll"}, _table(words, causes)) if causes else None
    body = "body reading" if missing and not causes else "body"  # keeps the place of the table
    return tag("section", {"class": "panel", "id": "causes"}, head, tag("div", {"class": body}, shown, table, status))


def _causes(words: Words, asked: Period, found: Iterable[tuple[SourceSession, CacheBreak]]) -> dict[str, _Cause]:
    """Return the breaks of the period by cause, those with the most tokens first."""
    causes: dict[str, _Cause] = defaultdict(_Cause)
    seen: set[CacheBreak] = set()  # a copied transcript has the breaks of the original
    for session, one in found:
        if one in seen or local_day(half_hour(one.time)) not in asked.days:
            continue
        seen.add(one)
        cause = causes[_name(words, one)]
        cause.times, cause.tokens, cause.usd = cause.times + 1, cause.tokens + one.tokens, sum_known((cause.usd, one.usd))
        if one.tokens > cause.worst:
            cause.worst, cause.link = one.tokens, f"{address(session)}?r={one.request}"
    return dict(sorted(causes.items(), key=lambda pair: -pair[1].tokens))


def _name(words: Words, one: CacheBreak) -> str:
    """Return the cause of a break. How long the pause was that ended a cache entry makes no cause of its own."""
    if one.kind != "break":
        return words(labels.CAUSES[one.kind])
    if one.title.template == EXPIRED.template:
        return words("Cache expired in a pause")
    return words(one.title)


def _table(words: Words, causes: dict[str, _Cause]) -> Html:
    again = sum(one.tokens for one in causes.values())
    rows = [
        tag(
            "tr",
            None,
            tag("td", None, bdi(title)),
            tag("td", None, words("once|{n} times", n=one.times)),
            tag("td", None, tokens(one.tokens)),
            tag("td", None, price(words, one.usd) if words.billing == "list" else share(one.tokens, again)),
            tag("td", None, tag("a", {"href": one.link}, words("Show the worst"))),
        )
        for title, one in causes.items()
    ]
    heads = (
        Text("Cause"),
        Text("How often"),
        Text("Tokens written again"),
        Text("Cost") if words.billing == "list" else Text("Share"),
    )
    head = tag("thead", None, tag("tr", None, [tag("th", None, words(one)) for one in heads], tag("th")))
    return tag("table", {"class": "data"}, head, tag("tbody", None, rows))
