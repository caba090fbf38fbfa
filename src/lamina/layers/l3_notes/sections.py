"""Sections: the notes as headings that never change and bodies that do (N1, N2).

Owns how notes are read, checked, measured and cut. Pure. Invariant: what `read_notes` accepts has exactly the headings and
descriptions of the template, in its order; `render` gives that text back, and reading it again gives the same notes.

A heading inside a code block is none, and headings deeper than the template's own belong to the body they stand in.

A part of the notes is enough: what of them an update is shown, and what becomes of an answer that names a few sections (N1, N4).

Notes that are quoted whole and written out whole cost more with every update, and most of them does not change. Sections that collect
(files, errors, learnings, the log of the work) are shown by their end once they are long, and an answer holds what changes.
Pure. Invariants: what was not shown stays, unless a section is over its limit: then it is shown whole, to be shortened; a line that
stands there already is not added again; an answer with a heading or a description that is not the template's is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
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


# A section up to this is shown whole: leaving lines out would save less than the line that says so.
WHOLE_TOKENS = 160
# Of a longer one its last lines up to this: enough to see how it is written and what came last.
END_TOKENS = 60
# Sections that only grow. The others say how things stand, and are rewritten.
COLLECTING = frozenset(
    {"files and functions", "errors & corrections", "codebase and system documentation", "learnings", "worklog"}
)

LEFT_OUT = "[{count} earlier lines are not shown; they stay as they are.]"
_LEFT_OUT = re.compile(r"\[\d+ earlier lines are not shown; they stay as they are\.\]")
# The first line of an answer's section that is to be added below what stands there.
ADD = "…"
_ADDS = frozenset({ADD, "..."})


class Shown(NamedTuple):
    """The notes as an update sees them, and how many lines of which section it does not see."""

    notes: Notes
    hidden: Mapping[str, int]  # by heading


def shown(notes: Notes, size: Size, *, to_shorten: Collection[str] = ()) -> Shown:
    """Sections that are to be shortened are shown whole."""
    hidden: dict[str, int] = {}
    sections = []
    for head, body in notes.sections:
        lines = body.split("\n")
        whole = head.name in to_shorten or not _is_long(head, body, size)
        kept = len(lines) if whole else _end(lines, size)
        if left := len(lines) - kept:
            hidden[head.line] = left
            body = "\n".join([LEFT_OUT.format(count=left), *lines[left:]])
        sections.append(Section(head, body))
    return Shown(notes._replace(sections=tuple(sections)), hidden)


def says_left_out(line: str) -> bool:
    return _LEFT_OUT.fullmatch(line.strip()) is not None


def _is_long(head: Head, body: str, size: Size) -> bool:
    # A code block that is cut in two would swallow the headings behind it.
    plain = "```" not in body and "~~~" not in body
    return head.name.casefold() in COLLECTING and plain and size(body) > WHOLE_TOKENS


def _end(lines: list[str], size: Size) -> int:
    """How many of the last lines are shown; one at least."""
    count = 1
    while count < len(lines) and size("\n".join(lines[-count - 1 :])) <= END_TOKENS:
        count += 1
    return count


def merged(text: str, notes: Notes, template: Template, hidden: Mapping[str, int]) -> Notes | Misfit:
    """The notes with the sections of this answer; those it does not name stay as they are."""
    heads = {head.line: head for head in template.heads}
    said: dict[str, str] = {}
    for line, rest in split(text, template.depth)[1]:
        if line not in heads:
            return Misfit(f"the heading {line!r} was added")
        if line in said:
            return Misfit(f"the heading {line!r} stands there twice")
        given = _described(heads[line], rest)
        if given is None:
            return Misfit(f"the description below {line!r} was altered")
        said[line] = given
    if not said:
        return Misfit("it has no heading")
    return notes._replace(
        sections=tuple(
            Section(head, _new(body, said[head.line], hidden.get(head.line, 0)) if head.line in said else body)
            for head, body in notes.sections
        )
    )


def _described(head: Head, rest: list[str]) -> str | None:
    """The body; the italic line may be left out, and must be as it is where it is not."""
    first = next((line.strip() for line in rest if line.strip()), "")
    if head.description and first == head.description:
        return body_of(rest[next(at for at, line in enumerate(rest) if line.strip()) + 1 :])
    if head.description and rest and is_italic(rest[0].strip()):
        return None
    return body_of(rest)


def _new(old: str, given: str, hidden: int) -> str:
    lines, there = given.split("\n"), old.split("\n") if old else []
    if lines[0].strip() in _ADDS:
        known = {line.strip() for line in there if line.strip()}
        return body_of([*there, *(line for line in lines[1:] if line.strip() not in known)])
    return body_of([*there[:hidden], *(line for line in lines if not says_left_out(line))])
