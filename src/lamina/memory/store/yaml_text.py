"""Front matter as text: written by hand, and edited key by key so that all else keeps its bytes.

Owns how a value is spelled. Invariant: what is written reads back as the same value with `core.front_matter`; an edit that would
not is given up, and the whole block is written anew with all its keys in order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

from ...core.front_matter import DEEPEST, Value, read_front_matter

# Readers of YAML make numbers, dates, truth values and nothing of these; quotes keep them texts.
_WORDS = frozenset({"", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n"})
# Begins with a letter and holds nothing that YAML reads as structure.
_BARE = re.compile(r"[^\W\d_](?:[^:#\x00-\x1f]|:(?=\S)|(?<=\S)#)*(?<![\s:])")
_KEY = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_KEY_CHARS = 100
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def to_plain(value: Any, depth: int) -> Value:
    """Any value as texts, lists and mappings that front matter can hold at this depth; what is nested deeper becomes text."""
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
    bare = text.isprintable() and _BARE.fullmatch(text) and text.lower() not in _WORDS
    return text if bare else _quoted(text)


def _quoted(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(char) or (char if char.isprintable() else _escaped(ord(char))) for char in text) + '"'


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x1_0000 else f"\\U{code:08x}"


def edit_head(head: str, old: Mapping[str, Value], wanted: Mapping[str, Value]) -> str:
    """The block with the values of `wanted`; lines of keys that did not change stay as they are."""
    newline = "\r\n" if "\r\n" in head else "\n"
    lines = [f"{line}\n" for line in head.split("\n")[:-1]]
    text = "".join(_edit(lines, old, wanted, "", newline))
    if read_front_matter(f"---\n{text}---\n").fields == wanted:
        return text
    return emit_fields(wanted).replace("\n", newline)


def _edit(lines: list[str], old: Mapping[str, Value], wanted: Mapping[str, Value], indent: str, newline: str) -> list[str]:
    out: list[str] = []
    seen: set[str] = set()
    for key, span in _spans(lines, indent):
        if key is None or (key in wanted and wanted[key] == old.get(key)):
            out += span
        elif key in wanted:
            out += _changed(key, span, old.get(key), wanted[key], indent, newline)
        else:
            out += _comments(span)
        seen.add(key or "")
    return out + [_entry(key, wanted[key], indent).replace("\n", newline) for key in wanted if key not in seen]


def _spans(lines: list[str], indent: str) -> list[tuple[str | None, list[str]]]:
    """The lines of each key at this indent; what stands before the first key has None."""
    label = re.compile(rf"""{indent}(?:"([^"\\]*)"|'([^']*)'|([^\s#'":\[\]{{}}&*!|>%@`,-][^:#]*?))[ \t]*:(?=\s)""")
    spans: list[tuple[str | None, list[str]]] = [(None, [])]
    for line in lines:
        if found := label.match(line):
            spans.append((next(filter(None, found.groups()), ""), [line]))
        else:
            spans[-1][1].append(line)
    return spans


def _changed(key: str, span: list[str], old: Value | None, new: Value, indent: str, newline: str) -> list[str]:
    below = re.match(r"[ \t]+", span[1]) if len(span) > 1 else None
    if isinstance(old, dict) and isinstance(new, dict) and new and below and span[0].rstrip().endswith(":"):
        return [span[0], *_edit(span[1:], old, new, below[0], newline)]
    return [_entry(key, new, indent).replace("\n", newline), *_comments(span)]


def _comments(span: list[str]) -> list[str]:
    """Comments and blank lines at the end of a span: they speak of what follows."""
    count = len(list(takewhile(lambda line: not line.strip() or line.startswith("#"), reversed(span[1:]))))
    return span[len(span) - count :]
