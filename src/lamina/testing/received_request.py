"""What the server keeps of every request: enough to ask afterwards what was sent, what it cost and what was answered."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from ..core.blocks import Wire as Json
from ..core.cache import BREAK_HEADER, SESSION_HEADER, CacheUse, Prompt

Wire: TypeAlias = Literal["messages", "chat", "count"]

_SESSION_IN_USER_ID = re.compile(r"_session_([0-9A-Za-z-]+)$")


class Announced(msgspec.Struct, frozen=True):
    """A break that was announced before the request that makes it."""

    reason: str
    decision: str = ""  # the layer decision that caused it, where it is named


class Received(msgspec.Struct, frozen=True, kw_only=True):
    index: int
    at: float
    wire: Wire
    headers: dict[str, str]  # names in lower case
    body: Json
    session: str
    fork: str = ""
    breaks: tuple[Announced, ...] = ()
    prompt: Prompt | None = None  # as sent; None where the request was too malformed to read
    use: CacheUse | None = None
    status: int = 0
    error: str = ""  # what was wrong with the request
    answer: Json | None = None  # the whole answer as JSON, also where it was streamed

    @property
    def betas(self) -> tuple[str, ...]:
        return tuple(sorted(name.strip() for name in self.headers.get("anthropic-beta", "").split(",") if name.strip()))

    @property
    def messages(self) -> list[Json]:
        found: list[Json] = self.body.get("messages") or []
        return found

    @property
    def refused(self) -> bool:
        """The API did not take the request, so that it may be sent again in another form."""
        return 400 <= self.status < 500 and self.status != 429


def session_of(headers: Mapping[str, str], body: Mapping[str, Any], prompt: Prompt | None) -> str:
    """Which conversation a request belongs to: as it says itself, else the one that began with the same words."""
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
    """Clients that pack several ids into one name the session in it; the rest is the same for all of them."""
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
    """`x-lamina-break: reason;decision=ID`, several joined by commas."""
    found = []
    for part in headers.get(BREAK_HEADER, "").split(","):
        reason, _, rest = part.strip().partition(";")
        if reason:
            found.append(Announced(reason.strip(), rest.strip().removeprefix("decision=")))
    return tuple(found)
