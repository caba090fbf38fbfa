"""The last line of an imported memory: a comment with its date and what its first home knew of it.

    <!-- lamina:import {"from":"mem0","modified":"2026-03-31T09:00:00.000Z","fields":{…}} -->

Owns this line. A store keeps a name, a type, a description and a body, and front matter keeps texts only; the comment keeps JSON as it
came, so that a memory can go back where it came from and its age stays known. Invariant: taking the line off gives what it was put on.
Pure.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ...memory.store.topic import Topic
from .formats import Format
from .portable_topic import PortableTopic, document, format_date, in_comment, parse_date, without_date, without_field

# Ids, users and dates take some hundred bytes; every recall of the memory carries them along.
MOST_BYTES = 2_000

_FOOTER = re.compile(r"\n<!-- lamina:import (?P<data>\{[^\n]*\}) -->\n?\Z")


def with_footer(topic: PortableTopic, origin: Format) -> tuple[str, str | None]:
    """The body to save, and what had to be left out of it."""
    fields, date = without_field(topic, "evidence").fields, format_date(topic.modified)
    if not fields and date is None:
        return topic.body, None
    left_out = None
    if fields and len(msgspec.json.encode(fields)) > MOST_BYTES:
        left_out = f"its fields ({', '.join(sorted(fields))[:80]}) are longer than {MOST_BYTES:,} bytes and are left out"
        fields = {}
    data: dict[str, Any] = {"from": origin} | ({"modified": date} if date else {}) | ({"fields": fields} if fields else {})
    body = topic.body
    if not body.endswith("\n"):
        data["open"] = True
        body += "\n"
    return f"{body}\n<!-- lamina:import {in_comment(data)} -->\n", left_out


def says_the_same(body: str, now: str) -> bool:
    """Whether a body that comes in says what stands there already: a line that holds no more than a date adds nothing to it."""
    found = _FOOTER.search(body)
    if body == now or found is None:
        return body == now
    data = _data(found["data"])
    return data is not None and "fields" not in data and body[: found.start()] == now


def to_portable(topic: Topic) -> PortableTopic:
    """A memory of the store as it goes out: the line taken off, what it says put back."""
    found = _FOOTER.search(topic.body)
    # A file's time is finer than any date: the date is what comes back.
    changed = parse_date(format_date(topic.modified))
    data = _data(found["data"]) if found else None
    if found is None or data is None:
        return PortableTopic(topic.name, topic.description, topic.type, topic.body.removesuffix("\n"), changed, topic.fields)
    ended = topic.body[: found.start()]
    body = ended.removesuffix("\n") if data.get("open") is True else ended
    fields = data.get("fields")
    date = parse_date(data.get("modified"))
    own = topic.fields if date is None else without_date(topic.fields)
    kept: dict[str, Any] = {**own, **fields} if isinstance(fields, dict) else own
    return PortableTopic(topic.name, topic.description, topic.type, body, changed if date is None else date, kept)


def _data(text: str) -> dict[str, Any] | None:
    found = document(text, "", strict=False)
    return found if isinstance(found, dict) else None
