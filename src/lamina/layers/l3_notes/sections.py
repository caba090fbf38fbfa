"""Sections: the notes as headings that never change and bodies that do (N1, N2).

Owns how notes are read, checked, measured and cut. Pure. Invariant: what `read_notes` accepts has exactly the headings and
descriptions of the template, in its order; `render` gives that text back, and reading it again gives the same notes.

A heading inside a code block is none, and headings deeper than the template's own belong to the body they stand in.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

Size: TypeAlias = Callable[[str], int]  # tokens of a text

_HEADING = re.compile(r"(#{1,6})[ \t]+\S")
_CODE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_ITALIC = re.compile(r"_[^_\s].*_|\*[^*\s].*\*")

# Of sections that are each within their limit while the whole is not, this many are named: the largest give the most back.
LARGEST = 3


class Head(NamedTuple):
    """What is fixed of a section."""

    line: str
    description: str = ""  # the italic line below it; empty where the template has none

    @property
    def name(self) -> str:
        return self.line.lstrip("#").strip()


class Section(NamedTuple):
    head: Head
    body: str


class Notes(NamedTuple):
    sections: tuple[Section, ...]
    preamble: str = ""  # what stands above the first heading

    @property
    def bodies(self) -> tuple[str, ...]:
        return tuple(section.body for section in self.sections)


class Misfit(NamedTuple):
    """Why a text is not the notes of this template."""

    why: str


class Long(NamedTuple):
    name: str
    tokens: int


class Sizes(NamedTuple):
    total: int
    long: tuple[Long, ...]  # the sections to shorten, in their order


class Template(NamedTuple):
    notes: Notes  # with the bodies a fresh file begins with, mostly none

    @property
    def heads(self) -> tuple[Head, ...]:
        return tuple(section.head for section in self.notes.sections)

    @property
    def depth(self) -> int:
        return max(_level(head.line) for head in self.heads)


def read_template(text: str) -> Template | Misfit:
    """Every heading of a template is fixed, whatever its level."""
    preamble, parts = split(text, 6)
    if not parts:
        return Misfit("it has no heading")
    described = []
    for line, rest in parts:
        italic = rest[0].strip() if rest and is_italic(rest[0].strip()) else ""
        described.append(Section(Head(line, italic), body_of(rest[1:] if italic else rest)))
    return Template(Notes(tuple(described), preamble))


def read_notes(text: str, template: Template) -> Notes | Misfit:
    """The text as notes of this template, or what was altered."""
    preamble, parts = split(text, template.depth)
    sections = []
    for index, head in enumerate(template.heads):
        if index >= len(parts):
            return Misfit(f"the heading {head.line!r} is missing")
        line, rest = parts[index]
        if line != head.line:
            return Misfit(f"{line!r} stands where the heading {head.line!r} belongs")
        if head.description and (not rest or rest[0].strip() != head.description):
            return Misfit(f"the description below {head.line!r} was altered")
        sections.append(Section(head, body_of(rest[1:] if head.description else rest)))
    if len(parts) > len(sections):
        return Misfit(f"the heading {parts[len(sections)][0]!r} was added")
    return Notes(tuple(sections), preamble)


def render(notes: Notes) -> str:
    parts = [notes.preamble] if notes.preamble else []
    for head, body in notes.sections:
        parts.append("\n".join(line for line in (head.line, head.description, body) if line))
    return "\n\n".join(parts) + "\n"


def is_fresh(notes: Notes, template: Template) -> bool:
    """Nothing was noted yet."""
    return notes.bodies == template.notes.bodies


def sizes(notes: Notes, size: Size, *, section: int, total: int) -> Sizes:
    """N2: how large the notes are and which sections are to be shortened."""
    each = [Long(head.name, size(body)) for head, body in notes.sections]
    whole = size(render(notes))
    long = [one for one in each if one.tokens > section]
    if whole > total and not long:
        largest = sorted(each, key=lambda one: -one.tokens)[:LARGEST]
        long = [one for one in each if one in largest and one.tokens]
    return Sizes(whole, tuple(long))


def cut(notes: Notes, size: Size, limit: int, note: str) -> Notes:
    """Each section within its limit, cut at a line's end where it has one; `note` says so."""
    return notes._replace(
        sections=tuple(section._replace(body=_cut(section.body, size, limit, note)) for section in notes.sections)
    )


def _cut(body: str, size: Size, limit: int, note: str) -> str:
    if size(body) <= limit:
        return body
    lines = body.split("\n")
    count = _most(len(lines), lambda n: size("\n".join([*lines[:n], note])) <= limit)
    if count:
        return "\n".join([*lines[:count], note])
    letters = _most(len(lines[0]), lambda n: size(f"{lines[0][:n]}\n{note}") <= limit)
    return f"{lines[0][:letters]}\n{note}".strip()


def _most(count: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `count` that fits; what fits, fits when it is smaller too."""
    low, high = 0, count
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def split(text: str, depth: int) -> tuple[str, list[tuple[str, list[str]]]]:
    """What stands above the first heading, then each heading with the lines below it."""
    parts: list[tuple[str, list[str]]] = []
    above: list[str] = []
    code = ""
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if not code and 0 < _level(line) <= depth:
            parts.append((line.rstrip(), []))
            continue
        code = _code_after(code, line)
        (parts[-1][1] if parts else above).append(line)
    return body_of(above), parts


def is_italic(line: str) -> bool:
    return _ITALIC.fullmatch(line) is not None


def _level(line: str) -> int:
    found = _HEADING.match(line)
    return len(found[1]) if found else 0


def _code_after(code: str, line: str) -> str:
    """The fence of the code block that is open behind this line."""
    found = _CODE.fullmatch(line)
    if found is None:
        return code
    if not code:
        # A backtick in the words behind it makes it inline code.
        return "" if found[1][0] == "`" and "`" in found[2] else found[1]
    return "" if found[1].startswith(code) and not found[2].strip() else code


def body_of(lines: list[str]) -> str:
    return "\n".join(lines).strip("\n").rstrip()
