"""The message that a change of memory came from: its words and a link to it."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import msgspec

from ..core.decoding import UNDECODABLE
from ..disk.regular_file import open_regular
from .html import Html, bdi, cut, tag
from .session_index import ANY_ORIGIN
from .session_list import address
from .site import Site
from .words import Words

QUOTE_CHARS = 160
# A longer line is not a message that a user typed.
_LINE_BYTES = 1 << 20


def message_link(site: Site, words: Words, session: str | None, message: str | None) -> Html | None:
    """Return a link to the message that a change came from, in its words; None if the change names no session.

    While the sessions are listed for the first time, the link to one that is not listed yet has no words of it.
    """
    if not session:
        return None
    known = site.index.find(ANY_ORIGIN, session, wait=0)
    if known is None and site.index.is_complete:
        return tag("span", None, words("the session is no longer on disk"))
    base = address(known) if known is not None else f"/sessions/{ANY_ORIGIN}/{quote(session, safe='')}"
    said = quote_message(known.path, message) if message and known is not None else ""
    anchor = f"/messages/{quote(message, safe='')}" if message else ""
    label = f"“{said}”" if said else cut(known.title if known is not None else "", 60) or words("the message")
    return tag("a", {"href": f"{base}{anchor}"}, bdi(label))


def quote_message(path: str, message: str) -> str:
    """Return the words of a message, looked up by its id in the session's file; empty if they are not found."""
    with (
        suppress(OSError, ValueError),
        open_regular(path) as opened,
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
