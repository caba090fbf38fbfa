"""A memory on its way from one program to another, and what every format needs to make one.

Owns the value between reader and writer. Invariant: whatever a source holds, a reader returns values and sentences; the only error
it raises is InputError, for a source that is not in its format at all. Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from ...memory.store.topic import KINDS, Kind, one_line

# A line of the index: what a description made from a body may take of it.
DESCRIPTION_CHARS = 150

# What other programs call the same things (S7). A word that is not here has no type.
_WORDS: dict[str, Kind] = {
    "preference": "user",
    "preferences": "user",
    "user_preference": "user",
    "user_preferences": "user",
    "user preferences": "feedback",
    "profile": "user",
    "user_profile": "user",
    "user profile": "user",
    "correction": "feedback",
    "guideline": "feedback",
    "rule": "feedback",
    "decision": "project",
    "deadline": "project",
    "milestone": "project",
    "link": "reference",
    "links": "reference",
    "resource": "reference",
    "resources": "reference",
    "references": "reference",
    "url": "reference",
}
_MARKS = re.compile(r"^(?:[#>*+-]+[ \t]+)+")


class PortableTopic(msgspec.Struct, frozen=True):
    """`modified` is None where the source has no date; `fields` is what the source says beyond the rest, in JSON values."""

    name: str
    description: str = ""
    type: Kind | None = None
    body: str = ""
    modified: float | None = None
    fields: dict[str, Any] = {}


class Imported(NamedTuple):
    topics: tuple[PortableTopic, ...] = ()
    problems: tuple[str, ...] = ()


def kind_of(word: object) -> Kind | None:
    """The type another program's word stands for; None for one we don't know."""
    plain = word.strip().casefold() if isinstance(word, str) else ""
    return next((kind for kind in KINDS if kind == plain), None) or _WORDS.get(plain)


def make_description(body: str) -> str:
    """A description for a memory that came without one: its first line that says something."""
    lines = (one_line(_MARKS.sub("", line.strip()), DESCRIPTION_CHARS) for line in body[:10_000].split("\n"))
    return next((line for line in lines if any(map(str.isalnum, line))), "")


def make_name(text: str, longest: int = 60) -> str:
    """A name for a memory that came without one: the beginning of what it says, cut at a word."""
    line = make_description(text)
    if len(line) <= longest:
        return line.rstrip(".。…")
    cut = line[:longest].rsplit(" ", 1)[0]
    return cut.rstrip(" ,;:.。") or line[:longest]


def parse_date(text: object) -> float | None:
    """Seconds since the epoch; None for what is no date. Without a zone it is taken as UTC."""
    if not isinstance(text, str) or len(text) > 40:
        return None
    try:
        found = datetime.fromisoformat(text.strip())
        seconds = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return seconds if seconds >= 0 else None


def format_date(seconds: float | None) -> str | None:
    """The date in ISO form, to the microsecond where it has any; None for none and outside of the calendar."""
    if seconds is None or not math.isfinite(seconds) or seconds < 0:
        return None
    try:
        found = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return found.isoformat(timespec="microseconds" if found.microsecond % 1_000 else "milliseconds").replace("+00:00", "Z")


# What a format has no place for


def extras_beyond(topic: PortableTopic, carried: PortableTopic) -> dict[str, Any]:
    """What of `topic` is not in `carried`, what the bare format brings back: it goes into a field of ours. The body is not compared."""
    extras: dict[str, Any] = {}
    for key in ("name", "description", "type"):
        if getattr(topic, key) != getattr(carried, key):
            extras[key] = getattr(topic, key)
    if topic.modified != carried.modified:
        extras["modified"] = format_date(topic.modified)
    if topic.fields != carried.fields:
        extras["fields"] = topic.fields
    return extras


def with_extras(carried: PortableTopic, extras: object) -> PortableTopic:
    """The memory with what our field says; anything of the wrong shape in it counts as not there."""
    if not isinstance(extras, Mapping):
        return carried
    changes: dict[str, Any] = {key: extras[key] for key in ("name", "description") if isinstance(extras.get(key), str)}
    if "type" in extras and (extras["type"] is None or extras["type"] in KINDS):
        changes["type"] = extras["type"]
    if "modified" in extras:
        changes["modified"] = parse_date(extras["modified"])
    if isinstance(extras.get("fields"), dict):
        changes["fields"] = extras["fields"]
    return msgspec.structs.replace(carried, **changes)


def without_field(topic: PortableTopic, key: str) -> PortableTopic:
    return msgspec.structs.replace(topic, fields={name: value for name, value in topic.fields.items() if name != key})


def without_date(fields: dict[str, Any]) -> dict[str, Any]:
    """Front matter without `metadata.modified`, and without `metadata` where nothing else is in it."""
    metadata = fields.get("metadata")
    if not isinstance(metadata, dict) or "modified" not in metadata:
        return fields
    rest = {key: value for key, value in metadata.items() if key != "modified"}
    others = {key: value for key, value in fields.items() if key != "metadata"}
    return {**fields, "metadata": rest} if rest else others


def in_comment(data: dict[str, Any]) -> str:
    """JSON that can stand in an HTML comment: `-->` would end it, and some readers end it at `--`."""
    return msgspec.json.encode(data).decode().replace("<", "\\u003c").replace(">", "\\u003e").replace("--", "-\\u002d")


def parts(pattern: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Each match with what stands behind it, up to the next one."""
    found = list(pattern.finditer(text))
    ends = [*(head.start() for head in found[1:]), len(text)]
    return ((head, text[head.end() : end]) for head, end in zip(found, ends, strict=False))


def free_file(stem: str, is_taken: Callable[[str], bool]) -> str:
    """The name of a markdown file that is not taken: the stem, or with a number behind it."""
    file, number = f"{stem}.md", 2
    while is_taken(file):
        file, number = f"{stem}-{number}.md", number + 1
    return file
