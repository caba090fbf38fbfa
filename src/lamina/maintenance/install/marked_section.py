"""A section of Lamina's in a text file of the user's, between two marks. Pure.

Taking the section out gives back the text as it was before, byte for byte: the first mark also tells whether the text ended without a line
end, or whether there was no file.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ...core.errors import InputError


class MarkStyle(NamedTuple):
    """How a comment begins and ends in the file's language."""

    opening: str
    closing: str = ""


TOML, MARKDOWN = MarkStyle("# "), MarkStyle("<!-- ", " -->")
_NEW, _JOINED = "; this file is Lamina's", "; the text before it has no line end"


def with_section(old: str | None, body: str, style: MarkStyle, path: str) -> str:
    """Return the text with the section at its end, or in place of the one that is there."""
    found = _find(old or "", style, path)
    if old is not None and found is not None:
        return old[: found.start("body")] + _lines(f"{body}\n", old) + old[found.end("body") :]
    how = _NEW if old is None else _JOINED if old and not old.endswith("\n") else ""
    gap = "" if not old else "\n\n" if how == _JOINED else "\n"
    first = f"{style.opening}lamina: begin (`lamina uninstall` removes this part{how}){style.closing}"
    return (old or "") + _lines(f"{gap}{first}\n{body}\n{style.opening}lamina: end{style.closing}\n", old or "")


def without_section(text: str, style: MarkStyle, path: str) -> str | None:
    """Return the text without the section, or None if the file held nothing else."""
    found = _find(text, style, path)
    if found is None:
        return text
    left = text[: found.start()] + text[found.end() :]
    if found["how"] == _NEW and not left.strip():
        return None
    return left


def holds_section(text: str, style: MarkStyle) -> bool:
    return f"{style.opening}lamina: begin" in text


def _find(text: str, style: MarkStyle, path: str) -> re.Match[str] | None:
    opening, closing = re.escape(style.opening), re.escape(style.closing)
    pattern = (
        rf"(?P<gap>(?:\r?\n)?)^{opening}lamina: begin \(`lamina uninstall` removes this part(?P<how>[^)\n]*)\){closing}\r?\n"
        rf"(?P<body>.*?)^{opening}lamina: end{closing}(?:\r?\n|\Z)"
    )
    found = [*re.finditer(pattern, text, re.MULTILINE | re.DOTALL)]
    if len(found) > 1 or (not found and holds_section(text, style)):
        raise InputError(path, "the marks around Lamina's part are damaged, so nothing was changed", "remove that part by hand")
    if not found:
        return None
    if found[0]["how"] == _JOINED:
        # The line end before the gap was added with the section.
        wider = re.compile(rf"\r?\n{pattern}", re.MULTILINE | re.DOTALL).search(text)
        return wider or found[0]
    return found[0]


def _lines(text: str, like: str) -> str:
    """Return the text with the line ends that the file has."""
    return text.replace("\n", "\r\n") if "\r\n" in like else text
