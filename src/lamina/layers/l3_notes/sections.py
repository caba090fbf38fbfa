"""The sections of the notes: fixed headings with bodies that change (N1, N2). Pure.

Reads, checks, measures and cuts notes. Invariant: notes accepted by `read_notes` have exactly the template's headings and
descriptions, in its order. `render` returns that text, and reading it again gives the same notes. Lines inside a code block are
never headings, and headings deeper than the template's belong to the body of their section.

An update sees only a part of the notes and answers with the sections that change (N1, N4). Quoting and rewriting all of them
would cost more with every update, although most of the text does not change. Sections that only grow (files, errors, learnings,
worklog) are shown by their last lines once they are long.

Invariants of such updates: lines that were not shown stay. A section over its limit is shown whole, so that it can be shortened.
A line that exists already is not added again. An answer with a heading or description that is not in the template is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, TypeAlias

from ...language.wording import plural

Size: TypeAlias = Callable[[str], int]  # tokens of a text

_HEADING = re.compile(r"(#{1,6})[ \t]+\S")
_CODE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_ITALIC = re.compile(r"_[^_\s].*_|\*[^*\s].*\*")

# If the total is over its limit but no section is, this many of the largest sections are to be shortened.
LARGEST = 3


class SectionHead(NamedTuple):
    """The fixed part of a section."""

    line: str
    description: str = ""  # the italic line below the heading, if the template has one

    @property
    def name(self) -> str:
        return self.line.lstrip("#").strip()


class Section(NamedTuple):
    head: SectionHead
    body: str


class Notes(NamedTuple):
    sections: tuple[Section, ...]
    preamble: str = ""  # the text above the first heading

    @property
    def bodies(self) -> tuple[str, ...]:
        return tuple(section.body for section in self.sections)


class Misfit(NamedTuple):
    """The reason why a text does not match the template."""

    why: str


class Long(NamedTuple):
    name: str
    tokens: int


class Sizes(NamedTuple):
    total: int
    long: tuple[Long, ...]  # the sections to shorten, in order


class Template(NamedTuple):
    notes: Notes  # with the bodies of a new file, usually empty

    @property
    def heads(self) -> tuple[SectionHead, ...]:
        return tuple(section.head for section in self.notes.sections)

    @property
    def depth(self) -> int:
        return max(_level(head.line) for head in self.heads)


def read_template(text: str) -> Template | Misfit:
    """Read a template. All its headings are fixed, whatever their level."""
    preamble, parts = split(text, 6)
    if not parts:
        return Misfit("it has no heading")
    described = []
    for line, rest in parts:
        italic = rest[0].strip() if rest and is_italic(rest[0].strip()) else ""
        described.append(Section(SectionHead(line, italic), body_of(rest[1:] if italic else rest)))
    return Template(Notes(tuple(described), preamble))


def read_notes(text: str, template: Template) -> Notes | Misfit:
    """Read a text as notes of this template, or return the first deviation from it."""
    preamble, parts = split(text, template.depth)
    sections = []
    for index, head in enumerate(template.heads):
        if index >= len(parts):
            return Misfit(f"the heading {head.line!r} is missing")
        line, rest = parts[index]
        if line != head.line:
            return Misfit(f"found {line!r} where the heading {head.line!r} belongs")
        if head.description and (not rest or rest[0].strip() != head.description):
            return Misfit(f"the description below {head.line!r} was changed")
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
    """Return whether nothing has been noted yet."""
    return notes.bodies == template.notes.bodies


def sizes(notes: Notes, size: Size, *, section: int, total: int) -> Sizes:
    """Return the size of the notes and the sections to shorten."""
    each = [Long(head.name, size(body)) for head, body in notes.sections]
    whole = size(render(notes))
    long = [one for one in each if one.tokens > section]
    if whole > total and not long:
        largest = sorted(each, key=lambda one: -one.tokens)[:LARGEST]
        long = [one for one in each if one in largest and one.tokens]
    return Sizes(whole, tuple(long))


def cut(notes: Notes, size: Size, limit: int, note: str) -> Notes:
    """Cut each section to its limit, at a line end if possible, and append `note` to those that were cut."""
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
    """Return the largest number up to `count` that fits. If a number fits, every smaller one must fit too."""
    low, high = 0, count
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def split(text: str, depth: int) -> tuple[str, list[tuple[str, list[str]]]]:
    """Return the text above the first heading, and each heading with the lines below it."""
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
    """Return the fence of the code block that is open after this line."""
    found = _CODE.fullmatch(line)
    if found is None:
        return code
    if not code:
        # A backtick later in the line makes it inline code.
        return "" if found[1][0] == "`" and "`" in found[2] else found[1]
    return "" if found[1].startswith(code) and not found[2].strip() else code


def body_of(lines: list[str]) -> str:
    return "\n".join(lines).strip("\n").rstrip()


# A section up to this size is shown whole: hiding lines would save less than the line that reports it.
WHOLE_TOKENS = 160
# The size of the end that is shown of a longer section: enough to see its style and its last entries.
END_TOKENS = 60
# Sections that only grow. The others describe the current state and are rewritten.
COLLECTING = frozenset(
    {"files and functions", "errors & corrections", "codebase and system documentation", "learnings", "worklog"}
)

_LEFT_OUT = re.compile(r"\[[\d,]+ earlier lines? (is|are) not shown; (it stays|they stay) as (it is|they are)\.\]")
# The first line of a section in an answer that is to be appended to the existing body.
ADD = "…"
_ADDS = frozenset({ADD, "..."})


class Shown(NamedTuple):
    """The notes as shown to an update, and the number of hidden lines of each section."""

    notes: Notes
    hidden: Mapping[str, int]  # by heading


def shown(notes: Notes, size: Size, *, to_shorten: Collection[str] = ()) -> Shown:
    """Return the part of the notes to show in an update. Sections to be shortened are shown whole."""
    hidden: dict[str, int] = {}
    sections = []
    for head, body in notes.sections:
        lines = body.split("\n")
        whole = head.name in to_shorten or not _is_long(head, body, size)
        kept = len(lines) if whole else _end(lines, size)
        if left := len(lines) - kept:
            hidden[head.line] = left
            body = "\n".join([left_out(left), *lines[left:]])
        sections.append(Section(head, body))
    return Shown(notes._replace(sections=tuple(sections)), hidden)


def left_out(count: int) -> str:
    hidden, stay = plural(count, "line is", "lines are"), plural(count, "it stays as it is", "they stay as they are")
    return f"[{count:,} earlier {hidden} not shown; {stay}.]"


def says_left_out(line: str) -> bool:
    return _LEFT_OUT.fullmatch(line.strip()) is not None


def _is_long(head: SectionHead, body: str, size: Size) -> bool:
    # Cutting a code block in two would turn the headings after it into code.
    plain = "```" not in body and "~~~" not in body
    return head.name.casefold() in COLLECTING and plain and size(body) > WHOLE_TOKENS


def _end(lines: list[str], size: Size) -> int:
    """Return the number of last lines to show, at least one."""
    count = 1
    while count < len(lines) and size("\n".join(lines[-count - 1 :])) <= END_TOKENS:
        count += 1
    return count


def merged(text: str, notes: Notes, template: Template, hidden: Mapping[str, int]) -> Notes | Misfit:
    """Return the notes with the sections of this answer put in. Sections it does not contain stay unchanged."""
    heads = {head.line: head for head in template.heads}
    answered: dict[str, str] = {}
    for line, rest in split(text, template.depth)[1]:
        if line not in heads:
            return Misfit(f"the heading {line!r} was added")
        if line in answered:
            return Misfit(f"the heading {line!r} occurs twice")
        given = _described(heads[line], rest)
        if given is None:
            return Misfit(f"the description below {line!r} was changed")
        answered[line] = given
    if not answered:
        return Misfit("it has no heading")
    return notes._replace(
        sections=tuple(
            Section(head, _new(body, answered[head.line], hidden.get(head.line, 0)) if head.line in answered else body)
            for head, body in notes.sections
        )
    )


def _described(head: SectionHead, rest: list[str]) -> str | None:
    """Return the body of a section in an answer, or None if its description was changed. Leaving the description out is fine."""
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
