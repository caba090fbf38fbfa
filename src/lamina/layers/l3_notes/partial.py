"""A part of the notes is enough: what of them an update is shown, and what becomes of an answer that names a few sections (N1, N4).

Notes that are quoted whole and written out whole cost more with every update, and most of them does not change. Sections that collect
(files, errors, learnings, the log of the work) are shown by their end once they are long, and an answer holds what changes.
Pure. Invariants: what was not shown stays, unless a section is over its limit: then it is shown whole, to be shortened; a line that
stands there already is not added again; an answer with a heading or a description that is not the template's is none.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from .sections import Head, Misfit, Notes, Section, Size, Template, body_of, is_italic, split

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
