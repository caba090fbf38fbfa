"""A section of Lamina's in a text file of the user's, between two marks. Pure.

Taking the section out gives back the text as it was before, byte for byte: the first mark also tells whether the text ended without a line
end, or whether there was no file.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ...core.errors import InputError


class MarkStyle(NamedTuple):
    """The beginning and the end of a comment in the file's language."""

    opening: str
    closing: str = ""


TOML, MARKDOWN = MarkStyle("# "), MarkStyle("<!-- ", " -->")
_NEW, _JOINED = "; this file is Lamina's", "; the text before it has no line end"


class _Section(NamedTuple):
    """The positions of a section, with the line ends before it, and of its body."""

    start: int
    body: int
    body_end: int
    end: int
    how: str
    line_end: str


def with_section(old: str | None, body: str, style: MarkStyle, path: str) -> str:
    """Return the text with the section at its end, or in place of an earlier one."""
    text = old or ""
    found = _find(text, style, path)
    if found is not None:
        return text[: found.body] + f"{body}\n".replace("\n", found.line_end) + text[found.body_end :]
    how = _NEW if old is None else _JOINED if text and not text.endswith("\n") else ""
    gap = "" if not text else "\n\n" if how == _JOINED else "\n"
    section = f"{gap}{_first(style)}{how}){style.closing}\n{body}\n{_last(style)}\n"
    return text + section.replace("\n", "\r\n" if "\r\n" in text else "\n")


def without_section(text: str, style: MarkStyle, path: str) -> str | None:
    """Return the text without the section, or None if the file held nothing else."""
    found = _find(text, style, path)
    if found is None:
        return text
    left = text[: found.start] + text[found.end :]
    return None if found.how == _NEW and not left.strip() else left


def holds_section(text: str, style: MarkStyle) -> bool:
    return f"{style.opening}lamina: begin" in text


def _first(style: MarkStyle) -> str:
    return f"{style.opening}lamina: begin (`lamina uninstall` removes this part"


def _last(style: MarkStyle) -> str:
    return f"{style.opening}lamina: end{style.closing}"


def _find(text: str, style: MarkStyle, path: str) -> _Section | None:
    first = rf"^{re.escape(_first(style))}(?P<how>[^)\n]*)\){re.escape(style.closing)}(?P<end>\r?\n)"
    found = [*re.finditer(rf"{first}(?P<body>.*?)^{re.escape(_last(style))}(?:\r?\n|\Z)", text, re.MULTILINE | re.DOTALL)]
    if len(found) > 1 or (not found and holds_section(text, style)):
        raise InputError(path, "the marks around Lamina's part are damaged, so nothing was changed", "remove that part by hand")
    if not found:
        return None
    [one] = found
    start = one.start()
    # The empty line before the section, and the line end of a text that had none.
    for _ in range(2 if one["how"] == _JOINED else 1):
        start -= len(one["end"]) if text.endswith(one["end"], 0, start) else 0
    return _Section(start, one.start("body"), one.end("body"), one.end(), one["how"], one["end"])
