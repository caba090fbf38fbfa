"""A session as its views need it: the window over time, the texts of its turns, its records. It follows the file as that changes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

from starlette.requests import Request
from starlette.responses import Response

from ..core.blocks import Block, Text, Thinking, ToolResult, ToolUse
from ..core.errors import DiskError, LaminaError
from ..core.records import Message, Record
from ..core.settings import Billing, Settings
from ..disk.regular_file import stamp_of
from ..disk.transcripts.jsonl import Health, decode_object, raw_lines
from ..history.followed_session import FollowedSession
from ..history.request_blocks import SessionRequests
from ..history.sessions import SourceSession, read
from ..history.window_series import KINDS, RequestPoint, Series, TurnRow
from ..providers.amounts import unit_parts
from .numbers import moment
from .site import Site
from .views_made import Stopped, Work
from .words import Words

T = TypeVar("T")

# Microdollars: whole numbers are shorter than decimals in JSON. Units are large enough.
MICRO = 1_000_000
# Bytes of a file whose reading would keep a click waiting: about a fifth of a second of work.
SLOW_BYTES = 3 << 20
# How often a view is made of a file that changes while it is read.
TRIES = 3
# Sessions whose windows are held: those that are open in tabs.
MOST_OPEN = 4


class OpenSession:
    """A session that is shown. Its window and its turns follow the file; its records are read when a view needs all of them."""

    def __init__(self, site: Site, session: SourceSession, settings: Settings) -> None:
        self.session = session
        self.settings = settings
        self._site = site
        self._lock = threading.Lock()
        self._reader: threading.Thread | None = None
        self._beginning = threading.Lock()
        self._made: dict[tuple[str, str, str], tuple[Series, Any]] = {}
        self._followed = FollowedSession(session.path, settings, origin=session.origin, kept=site.windows.load(session.path))
        self.series = self._followed.series()
        self.known = bool(self.series.requests)  # read, now or by an earlier run

    def update(self, pause: Callable[[], None] = lambda: None) -> None:
        """Read what was appended. Raises OSError or DiskError if the file is gone."""
        with self._lock:
            if self._followed.update(pause):
                self.series = self._followed.series()
                if not self.known:
                    self._site.windows.keep(self._followed, self.series)
            self.known = True

    def begin(self) -> threading.Thread | None:
        """Begin to read a large file that is not known yet, in a thread that lets views pass; None if its views can be made at once."""
        if self.known or self.session.size < SLOW_BYTES:
            return None
        with self._beginning:
            if self._reader is None or not self._reader.is_alive():
                self._reader = threading.Thread(target=self._read, name="lamina-session", daemon=True)
                self._reader.start()
            return self._reader

    def _read(self) -> None:
        with suppress(OSError, DiskError, Stopped):  # gone: the view that waits says so
            self.update(self._site.views.wait)

    def is_current(self) -> bool:
        """Whether the file is still the one that was read last."""
        with self._lock:
            return self._followed.is_current()

    def turn(self, number: int) -> list[Record]:
        """Return the records of a turn, in the order of the file."""
        with self._lock:
            return self._followed.turn(number)

    def find(self, record: str) -> tuple[int, Record] | None:
        """Return the turn of a record, and the record, by its id."""
        with self._lock:
            return self._followed.find(record)

    def others(self, number: int) -> list[Any]:
        """Return the records of a turn that are of unknown kinds, as they are in the file."""
        with self._lock:
            return list(self._followed.others(number))

    def missing_in(self, number: int, words: set[str]) -> set[str]:
        """Return the words that no message, call or result of a turn contains. Reads no further than the last of them."""
        with self._lock:
            for record in self._followed.each(number) if words else ():
                if isinstance(record, Message):
                    words = words - {word for block in record.blocks for word in words if word in text_of(block)}
                if not words:
                    break
        return words

    def turns_with(self, words: Sequence[bytes]) -> set[int]:
        """Return the numbers of the turns that may contain all these words."""
        with self._lock:
            return set(self._followed.turns_with(words))

    @property
    def records(self) -> list[Record]:
        path = self.session.path
        return self._site.kept("records", path, lambda: list(self._site.views.after(read(path))))

    @property
    def requests(self) -> SessionRequests:
        series = self.series
        # The file may have grown since the series was made, so its stamp does not tell which series was used.
        name = f"requests:{len(series.requests)}"
        return self._site.kept(name, self.session.path, lambda: SessionRequests(self.records, series, self._site.views.wait))

    def once(self, name: str, words: Words, make: Callable[[Series], T]) -> T:
        """Return what `make` makes of the series in a language: made again when the series has changed."""
        series, key = self.series, (name, words.language, words.billing)
        held = self._made.get(key)
        if held is None or held[0] is not series:
            held = self._made[key] = (series, make(series))
        return cast(T, held[1])


class Gone(Exception):
    """The session's file is no longer on disk."""


class OpenSessions:
    """The sessions shown last. Each is read once; later looks cost what was appended."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._lock = threading.Lock()
        self._held: OrderedDict[str, OpenSession] = OrderedDict()

    def find(self, request: Request) -> OpenSession:
        """Return the session of an address. Raises Gone."""
        opened = self._open(self._session(request))
        if (reader := opened.begin()) is not None:
            with self._site.views.waiting(Work.DATA):
                reader.join()
        try:
            opened.update()
        except (OSError, DiskError):
            raise Gone from None
        return opened

    def answer(self, request: Request, view: Callable[[OpenSession], Response]) -> Response:
        """Return a view of the session of an address, made again if the file changed while it was read. Raises Gone."""
        for left in reversed(range(TRIES)):
            opened = self.find(request)
            try:
                return view(opened)
            except (OSError, LaminaError, LookupError):
                if not left or opened.is_current():
                    raise
        raise AssertionError("the last try returns or raises")

    def begin(self, request: Request) -> SourceSession | None:
        """Begin to read a large session that is not known yet, and return it; None if its views can be made at once."""
        opened = self._open(self._session(request))
        return opened.session if opened.begin() is not None else None

    def _session(self, request: Request) -> SourceSession:
        session = self._site.session(request.path_params["source"], request.path_params["id"])
        if session is None:
            raise Gone
        return session

    def _open(self, session: SourceSession) -> OpenSession:
        settings = self._site.settings
        with self._lock:
            held = self._held.get(session.path)
            if held is None or held.settings is not settings:
                held = self._held[session.path] = OpenSession(self._site, session, settings)
            held.session = session
            self._held.move_to_end(session.path)
            while len(self._held) > MOST_OPEN:
                self._held.popitem(last=False)
            return held


def watch(site: Site, key: str) -> Any:
    """Return the state of a session's file for the event stream; None once it is gone."""
    origin, _, id = key.partition("/")
    session = site.session(origin, id)
    if session is None:
        return None
    stamp = stamp_of(session.path)
    if stamp is None:
        site.index.current(wait=0)  # another file may have taken the address, such as one that was moved
    return stamp


def columns(series: Series, billing: Billing = "list") -> dict[str, Any]:
    """Return the requests as columns, which are short in JSON. Kinds that never occur are left out."""
    cost = _units if billing == "subscription" else _microdollars
    points = series.requests
    start = _since(points[0].time, 0) if points else 0
    used = [at for at in range(len(KINDS)) if any(point.kinds[at] for point in points)]
    return {
        "threshold": series.threshold,
        "turn": [point.turn for point in points],
        "start": start,
        "time": [_since(point.time, start) for point in points],
        "tokens": [point.tokens for point in points],
        "kinds": {KINDS[at]: [point.kinds[at] for point in points] for at in used},
        "cost": [cost(point) for point in points],
        "units": billing == "subscription",
        "pause": [round((point.seconds_since_previous or 0) / 60) for point in points],
    }


def _microdollars(point: RequestPoint) -> list[int | None]:
    parts = (point.usd_read, point.usd_written, point.usd_output)
    return [None if value is None else round(value * MICRO) for value in parts]


def _units(point: RequestPoint) -> list[int | None]:
    return [round(part) for part in unit_parts(point.usage)]


def _since(time: str, start: int) -> int:
    """Return the seconds since a start, 0 for a time that cannot be read."""
    at = moment(time)
    return round(at.timestamp()) - start if at is not None else 0


def matching_turns(opened: OpenSession, wanted: str, *, errors: bool) -> list[TurnRow]:
    """Return the turns that contain all words of a filter in a message, a tool call or a result."""
    terms = wanted.casefold().split()
    rows = [turn for turn in opened.series.turns if turn.errors or not errors]
    if not terms:
        return rows
    found, plain = [], [term.encode() for term in terms if term.isascii() and term.isalnum()]
    likely = opened.turns_with(plain)
    for row in rows:
        if row.number not in likely:
            continue
        said = row.words.casefold()
        if not opened.missing_in(row.number, {term for term in terms if term not in said}):
            found.append(row)
    return found


def text_of(block: Block) -> str:
    """Return the text of a block as a filter compares it."""
    match block:
        case Text(text=text) | Thinking(thinking=text):
            return text.casefold()
        case ToolUse(name=name, input=given):
            return f"{name} {given}".casefold()
        case ToolResult():
            return block.text.casefold()
        case _:
            return ""


def raw_record(path: str, uuid: str) -> dict[str, Any] | None:
    """Return a record as it is in the file."""
    needle = f'"{uuid}"'.encode()
    for _, line in raw_lines(Path(path), 0, Health()):
        if needle in line and (row := decode_object(line)) is not None and uuid in (row.get("uuid"), row.get("id")):
            return row
    return None
