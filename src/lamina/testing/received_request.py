"""The server's record of each request: what was sent, what it cost, and the answer."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias
from urllib.parse import unquote

import msgspec

from ..core.blocks import Wire as Json
from ..core.cache import BREAK_HEADER, ONCE_HEADER, SESSION_HEADER, CacheUse, Prompt

Wire: TypeAlias = Literal["messages", "chat", "count"]

_SESSION_IN_USER_ID = re.compile(r"_session_([0-9A-Za-z-]+)$")


class Announced(msgspec.Struct, frozen=True):
    """A cache break that was announced before its request."""

    reason: str
    decision: str = ""  # the layer decision that caused it, if named


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """One request that the server received, with its answer."""

    index: int
    at: float
    wire: Wire
    headers: dict[str, str]  # names in lower case
    body: Json
    session: str
    fork: str = ""
    breaks: tuple[Announced, ...] = ()
    once: str = ""  # the first result that is shown once; the next request repeats everything before it
    prompt: Prompt | None = None  # as sent; None if the request was malformed
    use: CacheUse | None = None
    status: int = 0
    error: str = ""  # what was wrong with the request
    answer: Json | None = None  # the whole answer as JSON, even if it was streamed

    @property
    def betas(self) -> tuple[str, ...]:
        return tuple(sorted(name.strip() for name in self.headers.get("anthropic-beta", "").split(",") if name.strip()))

    @property
    def messages(self) -> list[Json]:
        found: list[Json] = self.body.get("messages") or []
        return found

    @property
    def refused(self) -> bool:
        """Whether the API rejected the request, so that it may be sent again in another form."""
        return 400 <= self.status < 500 and self.status != 429


def once_in(headers: Mapping[str, str]) -> str:
    return unquote(headers.get(ONCE_HEADER, ""))


def session_of(headers: Mapping[str, str], body: Mapping[str, Any], prompt: Prompt | None) -> str:
    """Return the conversation of a request: the one it names, else one derived from its first user message."""
    if named := headers.get(SESSION_HEADER):
        return named
    metadata = body.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, Mapping) else None
    for given in (user, body.get("prompt_cache_key"), body.get("user")):
        if isinstance(given, str) and given:
            return _session_in(given)
    if prompt is not None and len(prompt.pieces) > prompt.messages_at:
        first = next((piece for piece in prompt.pieces[prompt.messages_at :] if piece.role == "user"), None)
        if first is not None:
            return f"begins-{first.digest[:4].hex()}"
    return "unnamed"


def _session_in(user_id: str) -> str:
    """Return the session in a user id. Some clients pack several ids into one, of which only the session differs."""
    if found := _SESSION_IN_USER_ID.search(user_id):
        return found[1]
    if user_id.startswith("{"):
        try:
            packed = json.loads(user_id)
        except ValueError:
            return user_id
        if isinstance(packed, dict) and isinstance(packed.get("session_id"), str):
            return str(packed["session_id"])
    return user_id


def breaks_in(headers: Mapping[str, str]) -> tuple[Announced, ...]:
    """Parse `x-lamina-break: reason;decision=ID`; several breaks are separated by commas."""
    found = []
    for part in headers.get(BREAK_HEADER, "").split(","):
        reason, _, rest = part.strip().partition(";")
        if reason:
            found.append(Announced(reason.strip(), rest.strip().removeprefix("decision=")))
    return tuple(found)


# Returns the break records so far, or their number.
Breaks: TypeAlias = Callable[[], Iterable[Any] | int]
# The reason of a break that was counted, not named.
UNNAMED = "counted"


class Announcements:
    """Breaks that are announced outside of request headers: by the test, or by records of the program under test."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[tuple[str | None, Announced]] = []
        self._sources: list[tuple[Breaks, str | None]] = []
        self._seen: list[int] = []  # number of records read so far, for each source
        self._decisions: list[Callable[[], int]] = []

    def add(self, record: Announced, session: str | None) -> None:
        with self._lock:
            self._open.append((session, record))

    def follow(self, records: Breaks, session: str | None) -> None:
        with self._lock:
            self._sources.append((records, session))
            self._seen.append(0)

    def follow_decisions(self, count: Callable[[], int]) -> None:
        self._decisions.append(count)

    def decisions(self) -> int | None:
        """Return the number of decisions that the layers made, or None if they are not counted."""
        return sum(count() for count in self._decisions) if self._decisions else None

    def take(self, session: str, fork: str) -> tuple[Announced, ...]:
        """Return and remove the announcements for a request of the main conversation. Forks announce breaks in their header."""
        with self._lock:
            for at, (source, owner) in enumerate(self._sources):
                found = source()
                records = [UNNAMED] * found if isinstance(found, int) else list(found)
                self._open.extend((owner, _announced(record)) for record in records[self._seen[at] :])
                self._seen[at] = len(records)
            if fork:
                return ()
            taken = tuple(record for owner, record in self._open if owner in (None, session))
            self._open = [(owner, record) for owner, record in self._open if owner not in (None, session)]
            return taken


def _announced(record: Any) -> Announced:
    """Convert a break record of the program under test: a dict, or any object with a `reason`."""
    return Announced(str(_part(record, "reason") or record), str(_part(record, "decision") or ""))


def _part(record: Any, name: str) -> Any:
    return record.get(name) if isinstance(record, dict) else getattr(record, name, None)
