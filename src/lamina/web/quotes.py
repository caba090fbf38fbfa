"""The message that a change of memory came from: its words and a link to it."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ..core.decoding import UNDECODABLE
from ..core.records import Message
from ..sources.places import NAMES
from ..sources.sessions import SourceSession
from .conversation import turn_address
from .html import Html, bdi, cut, tag
from .page import problem
from .session_data import Gone, OpenSessions
from .session_list import address
from .site import Site
from .words import Words, words_for

QUOTE_CHARS = 160
# A longer line is not a message that a user typed.
_LINE_BYTES = 1 << 20


def routes(site: Site) -> list[Route]:
    sessions = OpenSessions(site)

    def message(request: Request) -> Response:
        return _to_turn(site, sessions, request)

    return [Route("/sessions/{source}/{id}/messages/{message}", message)]


def _to_turn(site: Site, sessions: OpenSessions, request: Request) -> Response:
    """Lead to the turn of a message. A message that is not found leads to the session."""
    try:
        opened = sessions.find(request)
    except Gone:
        words = words_for(request)
        return problem(site, request, words("memories.session_gone_title"), words("memories.session_gone"), status=404)
    order = {record.uuid: at for at, record in enumerate(opened.records) if isinstance(record, Message)}
    at = order.get(request.path_params["message"], -1)
    turn = max((row.number for row in opened.series.turns if order.get(row.record, len(order) + at + 1) <= at), default=0)
    base = address(opened.session)
    return RedirectResponse(turn_address(base, turn, show=request.path_params["message"]) if turn else base, 303)


def find_session(site: Site, id: str | None) -> SourceSession | None:
    """Return the session of any agent with this id."""
    return next((one for origin in NAMES if (one := site.session(origin, id)) is not None), None) if id else None


def message_link(site: Site, words: Words, session: str | None, message: str | None) -> Html | None:
    """Return a link to the message that a change came from, in its words; None if the change names no session."""
    if not session:
        return None
    known = find_session(site, session)
    if known is None:
        return tag("span", None, words("memories.session_gone"))
    said = quote_message(known.path, message) if message else ""
    anchor = f"/messages/{quote(message, safe='')}" if message else ""
    label = f"“{said}”" if said else cut(known.title, 60) or words("memories.the_message")
    return tag("a", {"href": f"{address(known)}{anchor}"}, bdi(label))


def quote_message(path: str, message: str) -> str:
    """Return the words of a message, looked up by its id in the session's file; empty if they are not found."""
    with (
        suppress(OSError, ValueError),
        open(path, "rb") as opened,
        mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data,
    ):
        at = data.find(f'"uuid":"{message}"'.encode())
        at = at if at >= 0 else data.find(f'"uuid": "{message}"'.encode())
        if at < 0:
            return ""
        start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
        end = end if end >= 0 else os.fstat(opened.fileno()).st_size
        if end - start <= _LINE_BYTES:
            return cut(_words_of(data[start:end]), QUOTE_CHARS)
    return ""


def _words_of(row: bytes) -> str:
    try:
        record: Any = msgspec.json.decode(row)
        content = record["message"]["content"]
    except (*UNDECODABLE, KeyError, TypeError):
        return ""
    if isinstance(content, str):
        return content
    texts = [block.get("text", "") for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return " ".join(text for text in texts if isinstance(text, str))
