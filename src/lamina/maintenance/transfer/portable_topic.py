"""A memory on its way from one program to another, and what every format needs to make one.

Owns the value between reader and writer, and how foreign JSON is read. Invariant: whatever a source holds, a reader returns values and
sentences; the only error it raises is InputError, for a source that is not in its format at all. Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from ...core.errors import InputError
from ...memory.store.topic import KINDS, Kind, one_line

# A line of the index: what a description made from a body may take of it.
DESCRIPTION_CHARS = 150

# What other programs call the same things (S7). A word that is not here has no type.
_WORDS: dict[Kind, tuple[str, ...]] = {
    "user": ("preference", "preferences", "user_preference", "user_preferences", "profile", "user_profile", "user profile"),
    "feedback": ("correction", "guideline", "rule", "user preferences"),
    "project": ("decision", "deadline", "milestone"),
    "reference": ("link", "links", "resource", "resources", "references", "url"),
}
_BYTE = re.compile(r"\(byte (\d+)\)")
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
    return next((kind for kind, words in _WORDS.items() if plain in (kind, *words)), None)


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


# JSON from outside: one document, or a document a line; depth and size do not matter


class JsonRow(NamedTuple):
    line: int
    value: Any


def document(text: str, where: str, *, strict: bool = True) -> Any:
    """The one document a text holds; InputError with the line otherwise, or None when not `strict`."""
    data = text.encode("utf-8", "replace")
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        problem = "is nested too deeply"
    except msgspec.DecodeError as error:
        # msgspec counts bytes; without a number the text ended too early.
        place = _BYTE.search(str(error))
        line = data.count(b"\n", 0, int(place[1]) if place else len(data)) + 1
        problem = f"is no JSON at line {line}"
    if not strict:
        return None
    raise InputError(where, problem, "mend it there or export it again")


def rows(text: str) -> tuple[list[JsonRow], list[str]]:
    """The documents of a text that has one on each line; blank lines count, and hold none."""
    found, problems = list[JsonRow](), list[str]()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            found.append(JsonRow(number, msgspec.json.decode(line.encode("utf-8", "replace"))))
        except (msgspec.DecodeError, RecursionError):
            problems.append(f"line {number}: is no JSON and is left out")
    return found, problems
