"""A memory on its way from one program to another, and what every format needs to make one.

Owns the value between reader and writer. Invariant: whatever a source holds, a reader returns values and sentences; the only error
it raises is InputError, for a source that is not in its format at all. Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from ...memory.store.topic import KINDS, Kind, one_line

# A line of the index: what a description made from a body may take of it.
DESCRIPTION_CHARS = 150
# A report that a person reads; the number of the rest is said.
MOST_PROBLEMS = 50

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


class Portable(msgspec.Struct, frozen=True):
    """`modified` is None where the source has no date; `fields` is what the source says beyond the rest, in JSON values."""

    name: str
    description: str = ""
    type: Kind | None = None
    body: str = ""
    modified: float | None = None
    fields: dict[str, Any] = {}


class Imported(msgspec.Struct, frozen=True):
    topics: tuple[Portable, ...] = ()
    problems: tuple[str, ...] = ()


def imported(topics: Iterable[Portable], problems: Iterable[str]) -> Imported:
    said = list(dict.fromkeys(problems))
    rest = len(said) - MOST_PROBLEMS
    return Imported(tuple(topics), (*said[:MOST_PROBLEMS], *([f"and {rest:,} more of the kind"] if rest > 0 else [])))


def kind_of(word: object) -> Kind | None:
    """The type another program's word stands for; None for one we don't know."""
    plain = word.strip().casefold() if isinstance(word, str) else ""
    return next((kind for kind in KINDS if kind == plain), None) or _WORDS.get(plain)


def described(body: str) -> str:
    """A description for a memory that came without one: its first line that says something."""
    lines = (one_line(_MARKS.sub("", line.strip()), DESCRIPTION_CHARS) for line in body[:10_000].split("\n"))
    return next((line for line in lines if any(map(str.isalnum, line))), "")


def moment(text: object) -> float | None:
    """Seconds since the epoch; None for what is no date. Without a zone it is taken as UTC."""
    if not isinstance(text, str) or len(text) > 40:
        return None
    try:
        found = datetime.fromisoformat(text.strip())
        seconds = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return seconds if seconds >= 0 else None


def stamp(seconds: float) -> str | None:
    """The date in ISO form, to the microsecond where it has any; None outside of the calendar."""
    if not math.isfinite(seconds) or seconds < 0:
        return None
    try:
        found = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return found.isoformat(timespec="microseconds" if found.microsecond % 1_000 else "milliseconds").replace("+00:00", "Z")


# What a format has no place for


def apart(topic: Portable, carried: Portable) -> dict[str, Any]:
    """What of `topic` is not in `carried`, what the bare format brings back: it goes into a field of ours. The body is not compared."""
    extras: dict[str, Any] = {}
    for key in ("name", "description", "type"):
        if getattr(topic, key) != getattr(carried, key):
            extras[key] = getattr(topic, key)
    if topic.modified != carried.modified:
        extras["modified"] = None if topic.modified is None else stamp(topic.modified)
    if topic.fields != carried.fields:
        extras["fields"] = topic.fields
    return extras


def joined(carried: Portable, extras: object) -> Portable:
    """The memory with what our field says; anything of the wrong shape in it counts as not there."""
    if not isinstance(extras, Mapping):
        return carried
    changes: dict[str, Any] = {key: extras[key] for key in ("name", "description") if isinstance(extras.get(key), str)}
    if "type" in extras and (extras["type"] is None or extras["type"] in KINDS):
        changes["type"] = extras["type"]
    if "modified" in extras:
        changes["modified"] = moment(extras["modified"])
    if isinstance(extras.get("fields"), dict):
        changes["fields"] = extras["fields"]
    return msgspec.structs.replace(carried, **changes)


def titled(text: str, longest: int = 60) -> str:
    """A name for a memory that came without one: the beginning of what it says, cut at a word."""
    line = described(text)
    if len(line) <= longest:
        return line.rstrip(".。…")
    cut = line[:longest].rsplit(" ", 1)[0]
    return cut.rstrip(" ,;:.。") or line[:longest]
