"""The value passed between readers and writers of formats, and helpers that all formats need.

Also owns how foreign JSON is read. Invariant: whatever a source contains, a reader returns memories and messages; the only
error it raises is InputError, for a source that is not in its format at all. Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from ...core.decoding import UNDECODABLE
from ...core.errors import InputError
from ...memory.store.topic import KINDS, Kind, one_line

# Length limit of a description made from a body: an index line.
DESCRIPTION_CHARS = 150

# Words of other programs for our types (S7). Other words give no type.
_WORDS: dict[Kind, tuple[str, ...]] = {
    "user": ("preference", "preferences", "user_preference", "user_preferences", "profile", "user_profile", "user profile"),
    "feedback": ("correction", "guideline", "rule", "user preferences"),
    "project": ("decision", "deadline", "milestone"),
    "reference": ("link", "links", "resource", "resources", "references", "url"),
}
_BYTE = re.compile(r"\(byte (\d+)\)")
_MARKS = re.compile(r"^(?:[#>*+-]+[ \t]+)+")


class PortableTopic(msgspec.Struct, frozen=True):
    """A memory between two formats. `modified` is None if the source has no date; `fields` are its other data, as JSON values."""

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
    """Return the type for another program's word; None if it is unknown."""
    plain = word.strip().casefold() if isinstance(word, str) else ""
    return next((kind for kind, words in _WORDS.items() if plain in (kind, *words)), None)


def make_description(body: str) -> str:
    """Make a description from the first line of the body with letters or digits."""
    lines = (one_line(_MARKS.sub("", line.strip()), DESCRIPTION_CHARS) for line in body[:10_000].split("\n"))
    return next((line for line in lines if any(map(str.isalnum, line))), "")


def make_name(text: str, longest: int = 60) -> str:
    """Make a name from the beginning of the text, cut at a word."""
    line = make_description(text)
    if len(line) <= longest:
        return line.rstrip(".。…")
    cut = line[:longest].rsplit(" ", 1)[0]
    return cut.rstrip(" ,;:.。") or line[:longest]


def parse_date(text: object) -> float | None:
    """Parse a date into seconds since the epoch; None if it is invalid. Dates without a time zone are UTC."""
    if not isinstance(text, str) or len(text) > 40:
        return None
    try:
        found = datetime.fromisoformat(text.strip())
        seconds = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return seconds if seconds >= 0 else None


def format_date(seconds: float | None) -> str | None:
    """Format a date in ISO form, with microseconds only if needed; None if it is missing or out of range."""
    if seconds is None or not math.isfinite(seconds) or seconds < 0:
        return None
    try:
        found = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return found.isoformat(timespec="microseconds" if found.microsecond % 1_000 else "milliseconds").replace("+00:00", "Z")


# Data that has no place in a format


def extras_beyond(topic: PortableTopic, carried: PortableTopic) -> dict[str, Any]:
    """Return what `topic` has beyond `carried`, which is what the bare format preserves; bodies are not compared."""
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
    """Apply the extras of our field to the memory, ignoring values of the wrong type."""
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
    """Return the front matter without `metadata.modified`, and without `metadata` if that leaves it empty."""
    metadata = fields.get("metadata")
    if not isinstance(metadata, dict) or "modified" not in metadata:
        return fields
    rest = {key: value for key, value in metadata.items() if key != "modified"}
    others = {key: value for key, value in fields.items() if key != "metadata"}
    return {**fields, "metadata": rest} if rest else others


def in_comment(data: dict[str, Any]) -> str:
    """Encode JSON for an HTML comment, escaping `--` and angle brackets, which could end it."""
    return msgspec.json.encode(data).decode().replace("<", "\\u003c").replace(">", "\\u003e").replace("--", "-\\u002d")


def parts(pattern: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], str]]:
    """Return each match with the text between it and the next one."""
    found = list(pattern.finditer(text))
    ends = [*(head.start() for head in found[1:]), len(text)]
    return ((head, text[head.end() : end]) for head, end in zip(found, ends, strict=False))


def free_file(stem: str, is_taken: Callable[[str], bool]) -> str:
    """Return an unused Markdown file name: the stem, or the stem with a number."""
    file, number = f"{stem}.md", 2
    while is_taken(file):
        file, number = f"{stem}-{number}.md", number + 1
    return file


# JSON from other programs: one document, or one document per line, of any depth and size


class JsonRow(NamedTuple):
    line: int
    value: Any


def document(text: str, where: str, *, strict: bool = True) -> Any:
    """Decode a JSON document; if it is invalid, raise InputError with the line, or return None when not `strict`."""
    data = text.encode("utf-8", "replace")
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        problem = "is nested too deeply"
    except UNDECODABLE as error:
        # msgspec reports a byte offset; without one, the text ended too early.
        place = _BYTE.search(str(error))
        line = data.count(b"\n", 0, int(place[1]) if place else len(data)) + 1
        problem = f"is not valid JSON at line {line}"
    if not strict:
        return None
    raise InputError(where, problem, "correct it or export it again")


def rows(text: str) -> tuple[list[JsonRow], list[str]]:
    """Decode a text with one JSON document per line; blank lines are skipped but counted."""
    found, problems = list[JsonRow](), list[str]()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            found.append(JsonRow(number, msgspec.json.decode(line.encode("utf-8", "replace"))))
        except UNDECODABLE:
            problems.append(f"line {number} is not valid JSON and was skipped")
    return found, problems
