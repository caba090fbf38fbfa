"""Topic files: one memory as text, read and written without loss.

Invariants: reading never raises and never runs anything. Writing changes only the keys whose values changed, so unknown
keys, their order, comments and the body keep their bytes. Name and description are one line each. Pure: no file, no clock.

The front matter is edited key by key, without a YAML writer, so that everything else keeps its bytes. The result must read
back as the same value with `core.front_matter`. If it does not, the edit is dropped and the whole block is written anew,
with all keys in order.
"""

from __future__ import annotations

import hashlib
import math
import re
import shlex
import unicodedata
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import takewhile
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from ...core.front_matter import DEEPEST, Value, read_front_matter
from ...disk.paths.file_names import bad_name, bad_text, fold
from ...language.invisible import JOINERS, remove_invisible, without_joiners

Kind: TypeAlias = Literal["user", "feedback", "project", "reference"]
# Types of memories about the user.
PERSONAL = frozenset({"user", "feedback"})
KINDS: tuple[Kind, ...] = get_args(Kind)

# The one file of a memory directory that is not a topic.
INDEX = "MEMORY.md"
# The key that names where a memory's content comes from, if not from the user.
ORIGIN = "origin"
# A title: a longer text is a sentence and belongs in the description.
NAME_CHARS = 120
# Two or three sentences. Together with the name it stays far below the limit of front matter, in any script.
DESCRIPTION_CHARS = 400
# A file name shares an index line of 150 characters with a title and a hook.
FILE_CHARS = 60
# Keys of a Claude Code memory under `metadata`; a file with one of them gets a timestamp when it changes.
STAMPED = frozenset({"node_type", "originSessionId", "modified"})
_BOOKKEEPING = re.compile(r"^<!-- lamina:import \{[^\n]*\} -->[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
_KNOWN = ("name", "description", "type")
_RESERVED = frozenset({"memory", "team", "logs", "readme"})


class Topic(msgspec.Struct, frozen=True):
    """A memory. `fields` holds unknown front matter and `metadata`, unchanged. `modified` is in seconds since the epoch."""

    file: str
    name: str
    description: str
    type: Kind | None
    body: str
    fields: dict[str, Any] = {}
    modified: float = 0.0
    problems: tuple[str, ...] = ()


def restore_command(topic: Topic, *, team: bool = False) -> str:
    """Return the command that brings a removed memory back. It names the memory: another one may take its file."""
    team = team or topic.file.startswith("team/")
    return f"lamina memory restore {shlex.quote(f'team/{topic.name}' if team else topic.name)}"


# The fault of a file with characters that nobody sees.
HIDDEN = "invisible characters are left out"


def read_topic(file: str, text: str, mtime: float) -> Topic:
    """Parse the text of a memory. Any text gives a readable topic; `problems` lists its faults."""
    plain = remove_invisible(text)
    matter = read_front_matter(plain)
    problems = [HIDDEN] if plain != text else []
    problems += [] if matter.head is not None else [f"the front matter {matter.problem}" if matter.problem else "no front matter"]
    fields = matter.fields
    name = clean_name(_text(fields, "name", problems)) or _stem(file)
    description = one_line(_text(fields, "description", problems), DESCRIPTION_CHARS)
    if matter.head is not None and not description:
        problems.append("no description")
    unknown: dict[str, Any] = {key: value for key, value in fields.items() if key not in _KNOWN}
    body = matter.body if matter.head is None else re.sub(r"\A\r?\n", "", matter.body)
    kind = _kind(fields, problems)
    return Topic(file, name, description, kind, body, unknown, _modified(fields, mtime), tuple(problems))


def _stem(file: str) -> str:
    return clean_name(file.rsplit("/", 1)[-1].removesuffix(".md")) or "memory"


def _text(fields: Mapping[str, Value], key: str, problems: list[str]) -> str:
    value = fields.get(key, "")
    if isinstance(value, str):
        return value
    problems.append(f"{key} is not a string")
    return ""


def _metadata(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = fields.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _kind(fields: Mapping[str, Value], problems: list[str]) -> Kind | None:
    value = fields.get("type", _metadata(fields).get("type"))
    kind = next((kind for kind in KINDS if kind == value), None)
    if kind is None and value is not None:
        problems.append(f"unknown type {one_line(str(value), 40)!r}")
    return kind


def _modified(fields: Mapping[str, Any], mtime: float) -> float:
    written = _metadata(fields).get("modified", fields.get("modified"))
    if not isinstance(written, str):
        return mtime
    try:
        moment = datetime.fromisoformat(written.strip())
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return mtime
    return seconds if math.isfinite(seconds) and seconds >= 0 else mtime


def write_topic(topic: Topic, *, before: str | None = None) -> str:
    """Return the text of the file. `before` is the text it replaces, whose unchanged parts keep their bytes."""
    if before is not None and says_the_same(topic, read_topic(topic.file, before, 0)):
        return before
    matter = read_front_matter(before or "")
    wanted = _wanted(topic, matter.fields, fresh=matter.head is None)
    if before is None or matter.head is None:
        return f"---\n{emit_fields(wanted)}---\n\n{topic.body}"
    opening = before[: before.index("\n") + 1]
    closing = before[len(opening) + len(matter.head) : len(before) - len(matter.body)]
    # A closing line at the very end of the text has no line break.
    closing = closing if closing.endswith("\n") or not topic.body else f"{closing}\n"
    return opening + edit_head(matter.head, matter.fields, wanted) + closing + _gap(matter.body, topic.body) + topic.body


def _gap(old_body: str, body: str) -> str:
    """Return the blank line in front of the body: as before, and always if the body itself begins with one."""
    if old_body.startswith("\r\n"):
        return "\r\n"
    return "\n" if old_body.startswith("\n") or body.startswith(("\n", "\r\n")) else ""


def says_the_same(topic: Topic, other: Topic) -> bool:
    """Tell whether two topics would be written alike. File, time and problems don't matter."""
    return all(getattr(topic, key) == getattr(other, key) for key in (*_KNOWN, "fields", "body"))


def _wanted(topic: Topic, old: Mapping[str, Value], *, fresh: bool) -> dict[str, Value]:
    """Return all keys for the front matter: the existing ones in their order, then ours, then new ones."""
    fields = {str(key): to_plain(value, 2) for key, value in topic.fields.items() if key not in _KNOWN}
    metadata = fields.get("metadata")
    below = "type" not in old and isinstance(metadata, dict) and "type" in metadata
    if below and topic.type is not None and isinstance(metadata, dict):
        fields["metadata"] = metadata | {"type": topic.type}
    own: dict[str, Value] = {}
    describe = partial(one_line, longest=DESCRIPTION_CHARS)
    for key, value, short in (("name", topic.name, clean_name), ("description", topic.description, describe)):
        line = short(value)
        current = old.get(key)
        same = isinstance(current, str) and short(current) == line
        if current is not None or fresh or line != (_stem(topic.file) if key == "name" else ""):
            own[key] = current if same and current is not None else line
    if topic.type is not None and not below:
        own["type"] = topic.type
    elif topic.type is None and "type" in old:
        own["type"] = old["type"]
    every = own | fields
    return {key: every[key] for key in [*(key for key in old if key in every), *every]}


def stamp_topic(topic: Topic, *, now: float) -> Topic:
    """Set a new `metadata.modified` if the file has such metadata; return any other topic unchanged."""
    return date_topic(topic, modified=now) if STAMPED.intersection(_metadata(topic.fields)) else topic


def date_topic(topic: Topic, *, modified: float) -> Topic:
    """Set `metadata.modified` whatever the file's time, for a memory that is older than its file."""
    moment = datetime.fromtimestamp(modified, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    fields = topic.fields | {"metadata": {**_metadata(topic.fields), "modified": moment}}
    return msgspec.structs.replace(topic, fields=fields, modified=modified)


def without_stamp(topic: Topic) -> Topic:
    """Remove `metadata.modified`."""
    metadata = {key: value for key, value in _metadata(topic.fields).items() if key != "modified"}
    return msgspec.structs.replace(topic, fields=topic.fields | {"metadata": metadata}) if _metadata(topic.fields) else topic


def without_bookkeeping(text: str) -> str:
    """Remove the comments in which an import keeps the original fields of a memory."""
    return _BOOKKEEPING.sub("", text) if "<!-- lamina:" in text else text


def evidence_of(topic: Topic) -> tuple[str, ...]:
    """Return the files and symbols a memory relies on."""
    items = topic.fields.get("evidence", _metadata(topic.fields).get("evidence"))
    return tuple(item for item in items if isinstance(item, str)) if isinstance(items, list) else ()


def origin_of(topic: Topic) -> str:
    """Return where the content of a memory comes from; empty if it is the user's."""
    origin = topic.fields.get(ORIGIN)
    return one_line(origin, NAME_CHARS) if isinstance(origin, str) else ""


def with_origin(file: str, text: str, origin: str) -> str:
    """Return the text of a memory with this origin in its front matter, or without one."""
    topic = read_topic(file, text, 0)
    if origin_of(topic) == origin or read_front_matter(text).head is None:
        return text
    fields = {key: value for key, value in topic.fields.items() if key != ORIGIN}
    return write_topic(msgspec.structs.replace(topic, fields=fields | {ORIGIN: origin} if origin else fields), before=text)


def one_line(text: str, longest: int) -> str:
    """Reduce the text to one line: no control or surrogate characters, single spaces, at most `longest` characters.

    Of format characters only joiners that belong to a word or an emoji are kept.
    """
    # Ten times the limit is enough to fill it whatever is dropped, and bounds the cost of a hostile text.
    line = remove_invisible(text[: longest * 10])
    if not line.isprintable():
        line = "".join(map(_shown, line))
    line = " ".join(line.split())
    return line if len(line) <= longest else f"{_cut(line, longest - 1)}…"


def _shown(char: str) -> str:
    if char.isprintable() or char in JOINERS:
        return char
    return "" if unicodedata.category(char) in _DROPPED else " "


def _cut(line: str, longest: int) -> str:
    """Return the beginning of a line, without a joiner or a space at its end."""
    return line[:longest].rstrip(" \u200c\u200d")


def clean_name(text: str) -> str:
    """Reduce a name to one line. A name that is too long ends with its digest, so that two such names stay distinct."""
    line = one_line(text, NAME_CHARS * 10)
    if len(line) <= NAME_CHARS:
        return line
    return f"{_cut(line, NAME_CHARS - 10)}… {short_digest(fold_name(without_joiners(line)))}"


# Format characters, surrogates and private ones are removed; controls and separators become a space.
_DROPPED = frozenset({"Cf", "Cs", "Co", "Cn"})


def fold_name(text: str) -> str:
    """Fold a name with `fold`, quickly for plain ASCII: an index and a scan fold every line."""
    return text.lower() if text.isascii() else fold(text)


# Every lookup needs the key of every memory's name.
@lru_cache(maxsize=16_384)
def name_key(name: str) -> str:
    """Return the key of a name. Names with the same key are one memory: case, Unicode form, spacing and joiners don't matter."""
    return fold_name(without_joiners(clean_name(name)).removesuffix(".md"))


@lru_cache(maxsize=1_024)
def file_name(name: str) -> str:
    """Return the file name for a memory: lower case, words joined by hyphens, letters of every script kept."""
    plain_name = name_key(name)
    words = "".join(char if unicodedata.category(char)[0] in "LNM" and bad_text(char) is None else "-" for char in plain_name)
    stem = re.sub("-{2,}", "-", words)[:FILE_CHARS].strip("-")
    # A combining mark in first place has no letter to combine with.
    stem = stem if stem and unicodedata.category(stem[0])[0] != "M" else ""
    if not stem or stem in _RESERVED or bad_name(f"{stem}.md") or bad_text(stem):
        return f"memory-{short_digest(name)}.md"
    return f"{stem}.md"


def short_digest(text: str) -> str:
    """Return eight hex digits: enough to distinguish the few names that would share a file."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]


# YAML readers turn these into numbers, dates, booleans or null; quotes keep them strings.
_WORDS = frozenset({"", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n"})
# Begins with a letter and contains nothing that YAML reads as structure.
_BARE = re.compile(r"[^\W\d_](?:[^:#\x00-\x1f]|:(?=\S)|(?<=\S)#)*(?<![\s:])")
_KEY = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_KEY_CHARS = 100
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def to_plain(value: Any, depth: int) -> Value:
    """Convert any value to strings, lists and mappings that front matter allows at this depth; deeper values become strings."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode() if not value.isascii() else value
        case dict() if depth <= DEEPEST:
            return {str(key)[:_KEY_CHARS]: to_plain(item, depth + 1) for key, item in value.items()}
        case list() | tuple() if depth <= DEEPEST:
            return [to_plain(item, depth + 1) for item in value]
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case _:
            return str(value).encode("utf-8", "replace").decode()


def emit_fields(fields: Mapping[str, Value], indent: str = "") -> str:
    return "".join(_entry(key, value, indent) for key, value in fields.items())


def _entry(key: str, value: Value, indent: str) -> str:
    label = key if _KEY.fullmatch(key) and key.lower() not in _WORDS else _quoted(key)
    match value:
        case dict() if value:
            return f"{indent}{label}:\n{emit_fields(value, indent + '  ')}"
        case str():
            return f"{indent}{label}: {_scalar(value)}\n"
        case _:
            return f"{indent}{label}: {_flow(value)}\n"


def _flow(value: Value) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{_quoted(key)}: {_flow(item)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(_flow, value)) + "]"
        case _:
            return _quoted(value)


def _scalar(text: str) -> str:
    bare = without_joiners(text).isprintable() and _BARE.fullmatch(text) and text.lower() not in _WORDS
    return text if bare else _quoted(text)


def _quoted(text: str) -> str:
    return (
        '"'
        + "".join(_ESCAPES.get(char) or (char if char.isprintable() or char in JOINERS else _escaped(ord(char))) for char in text)
        + '"'
    )


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x1_0000 else f"\\U{code:08x}"


def edit_head(head: str, old: Mapping[str, Value], wanted: Mapping[str, Value]) -> str:
    """Return the block with the values of `wanted`; lines of unchanged keys stay as they are."""
    newline = "\r\n" if "\r\n" in head else "\n"
    lines = [f"{line}\n" for line in head.split("\n")[:-1]]
    text = "".join(_edit(lines, old, wanted, "", newline))
    if read_front_matter(f"---\n{text}---\n").fields == wanted:
        return text
    return emit_fields(wanted).replace("\n", newline)


def _edit(lines: list[str], old: Mapping[str, Value], wanted: Mapping[str, Value], indent: str, newline: str) -> list[str]:
    out: list[str] = []
    edited: set[str] = set()
    for key, span in _spans(lines, indent):
        if key is None or (key in wanted and wanted[key] == old.get(key)):
            out += span
        elif key in wanted:
            out += _changed(key, span, old.get(key), wanted[key], indent, newline)
        else:
            out += _comments(span)
        edited.add(key or "")
    return out + [_entry(key, wanted[key], indent).replace("\n", newline) for key in wanted if key not in edited]


def _spans(lines: list[str], indent: str) -> list[tuple[str | None, list[str]]]:
    """Return the lines of each key at this indent; the lines before the first key have None."""
    label = re.compile(rf"""{indent}(?:"([^"\\]*)"|'([^']*)'|([^\s#'":\[\]{{}}&*!|>%@`,-][^:#]*?))[ \t]*:(?=\s)""")
    spans: list[tuple[str | None, list[str]]] = [(None, [])]
    for line in lines:
        if match := label.match(line):
            spans.append((next(filter(None, match.groups()), ""), [line]))
        else:
            spans[-1][1].append(line)
    return spans


def _changed(key: str, span: list[str], old: Value | None, new: Value, indent: str, newline: str) -> list[str]:
    below = re.match(r"[ \t]+", span[1]) if len(span) > 1 else None
    if isinstance(old, dict) and isinstance(new, dict) and new and below and span[0].rstrip().endswith(":"):
        return [span[0], *_edit(span[1:], old, new, below[0], newline)]
    return [_entry(key, new, indent).replace("\n", newline), *_comments(span)]


def _comments(span: list[str]) -> list[str]:
    """Return comments and blank lines at the end of a span, since they belong to the next key."""
    count = len(list(takewhile(lambda line: not line.strip() or line.startswith("#"), reversed(span[1:]))))
    return span[len(span) - count :]
