"""The sections of the notes: fixed headings with bodies that change (N1, N2). Pure, except that the files of
`prompts/` are read once.

Reads, checks, measures and cuts notes. Invariant: notes accepted by `read_notes` have exactly the template's headings and
descriptions, in its order. `render` returns that text, and reading it again gives the same notes. Lines inside a code block are
never headings, and headings deeper than the template's belong to the body of their section.

An update sees only a part of the notes and answers with the sections that change (N1, N4). Quoting and rewriting all of them
would cost more with every update, although most of the text does not change. Sections that only grow (files, errors, learnings,
worklog) are shown by their last lines once they are long.

Invariants of such updates: lines that were not shown stay. A section over its limit is shown whole, so that it can be shortened.
A line that exists already is not added again. An answer with a heading or description that is not in the template is rejected.

The template and the prompt are either built in or the user's own (N5). `directive` asks the model for an update. Invariants: names
in double braces are filled in one pass, so text from the notes is never taken for a name. The notes are inside a fence that they
cannot close (G3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from ...conversation.compaction.user_messages import most_fitting
from ...core.fence import escape, reminder
from ...core.prompt_files import prompt_sections, prompt_text
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
    for line, below in parts:
        italic = below[0].strip() if below and is_italic(below[0].strip()) else ""
        described.append(Section(SectionHead(line, italic), body_of(below[1:] if italic else below)))
    return Template(Notes(tuple(described), preamble))


def read_notes(text: str, template: Template) -> Notes | Misfit:
    """Read a text as notes of this template, or return the first deviation from it."""
    preamble, parts = split(text, template.depth)
    sections = []
    for index, head in enumerate(template.heads):
        if index >= len(parts):
            return Misfit(f"the heading {head.line!r} is missing")
        line, below = parts[index]
        if line != head.line:
            return Misfit(f"found {line!r} where the heading {head.line!r} belongs")
        if head.description and (not below or below[0].strip() != head.description):
            return Misfit(f"the description below {head.line!r} was changed")
        sections.append(Section(head, body_of(below[1:] if head.description else below)))
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
    measured = [Long(head.name, size(body)) for head, body in notes.sections]
    whole = size(render(notes))
    long = [section_size for section_size in measured if section_size.tokens > section]
    if whole > total and not long:
        largest = sorted(measured, key=lambda section_size: -section_size.tokens)[:LARGEST]
        long = [section_size for section_size in measured if section_size in largest and section_size.tokens]
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
    count = most_fitting(len(lines), lambda n: size("\n".join([*lines[:n], note])) <= limit)
    if count:
        return "\n".join([*lines[:count], note])
    letters = most_fitting(len(lines[0]), lambda n: size(f"{lines[0][:n]}\n{note}") <= limit)
    return f"{lines[0][:letters]}\n{note}".strip()


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
    heading = _HEADING.match(line)
    return len(heading[1]) if heading else 0


def _code_after(code: str, line: str) -> str:
    """Return the fence of the code block that is open after this line."""
    mark = _CODE.fullmatch(line)
    if mark is None:
        return code
    if not code:
        # A backtick later in the line makes it inline code.
        return "" if mark[1][0] == "`" and "`" in mark[2] else mark[1]
    return "" if mark[1].startswith(code) and not mark[2].strip() else code


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
        visible = len(lines) if whole else _end(lines, size)
        if count := len(lines) - visible:
            hidden[head.line] = count
            body = "\n".join([left_out(count), *lines[count:]])
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
    for line, below in split(text, template.depth)[1]:
        if line not in heads:
            return Misfit(f"the heading {line!r} was added")
        if line in answered:
            return Misfit(f"the heading {line!r} occurs twice")
        body_read = _described(heads[line], below)
        if body_read is None:
            return Misfit(f"the description below {line!r} was changed")
        answered[line] = body_read
    if not answered:
        return Misfit("it has no heading")
    return notes._replace(
        sections=tuple(
            Section(head, _new(body, answered[head.line], hidden.get(head.line, 0)) if head.line in answered else body)
            for head, body in notes.sections
        )
    )


def _described(head: SectionHead, below: list[str]) -> str | None:
    """Return the body of a section in an answer, or None if its description was changed. Leaving the description out is fine."""
    first = next((line.strip() for line in below if line.strip()), "")
    if head.description and first == head.description:
        return body_of(below[next(index for index, line in enumerate(below) if line.strip()) + 1 :])
    if head.description and below and is_italic(below[0].strip()):
        return None
    return body_of(below)


def _new(old: str, answer: str, hidden: int) -> str:
    lines, existing = answer.split("\n"), old.split("\n") if old else []
    if lines[0].strip() in _ADDS:
        present = {line.strip() for line in existing if line.strip()}
        return body_of([*existing, *(line for line in lines[1:] if line.strip() not in present)])
    return body_of([*existing[:hidden], *(line for line in lines if not says_left_out(line))])


How: TypeAlias = Literal["edit", "sections"]  # the fork edits the file, or answers with the sections that change

OPEN, CLOSE = "<notes>", "</notes>"

_NAME = re.compile(r"\{\{(currentNotes|notesPath)\}\}")


@cache
def own_template() -> Template:
    template = read_template(prompt_text(__file__, "template"))
    assert not isinstance(template, Misfit)
    return template


class Texts(NamedTuple):
    """The template and prompt in use, either built in or the user's own."""

    template: Template
    prompt: str
    remarks: tuple[str, ...] = ()  # why one of the user's texts was not used


def texts_in_force(template_text: str | None, prompt: str | None) -> Texts:
    """Return the user's texts if they are usable, else the built-in ones."""
    template = read_template(template_text) if template_text is not None else own_template()
    remarks: tuple[str, ...] = ()
    if isinstance(template, Misfit):
        remarks = (f"Your session notes template is not used: {template.why}. The built-in template is used instead.",)
        template = own_template()
    return Texts(template, (prompt or "").strip() or prompt_text(__file__, "update"), remarks)


class NotesLimits(NamedTuple):
    """The maximum size of the notes in tokens, scaled to the window."""

    section: int
    total: int


def directive(
    texts: Texts, notes: Notes, path: str, how: How, *, size: Size, limits: NotesLimits, failures: tuple[str, ...] = ()
) -> str:
    """Return the directive for the fork: the prompt, then the rules that apply to any prompt, then the failures of the last
    answer."""
    measured = sizes(notes, size, section=limits.section, total=limits.total)
    quoted = str(escape(render(seen(texts, notes, size, measured).notes).rstrip("\n")))
    parts = [fill(texts.prompt, quoted, path)]
    answers = prompt_sections(__file__, "answers")
    if "{{currentNotes}}" not in texts.prompt:
        parts.append(answers["notes"] + "\n\n" + reminder([escape(quoted)]))
    parts += [_sizes(measured, limits), answers[how].format(path=path)]
    if failures:
        parts.append("\n".join([answers["failures"], *(f"- {failure}" for failure in failures)]))
    return "\n\n".join(parts)


def seen(texts: Texts, notes: Notes, size: Size, measured: Sizes) -> Shown:
    """Return the part of the notes shown to an update. A prompt written by the user gets all of them."""
    if texts.prompt != prompt_text(__file__, "update"):
        return Shown(notes, {})
    return shown(notes, size, to_shorten=[section.name for section in measured.long])


def fill(prompt: str, notes: str, path: str) -> str:
    """Fill in the names in double braces, in one pass. Unknown names stay as they are."""
    values = {"currentNotes": notes, "notesPath": path}
    return _NAME.sub(lambda found: values[found[1]], prompt)


def _sizes(measured: Sizes, limits: NotesLimits) -> str:
    answers = prompt_sections(__file__, "answers")
    size = answers["size"].format(total=f"{limits.total:,}", section=f"{limits.section:,}", now=f"{measured.total:,}")
    if not measured.long:
        return size
    rows = [f"- {section.name}: about {section.tokens:,} tokens" for section in measured.long]
    return "\n".join([size, answers["long"], *rows])


def between_tags(answer: str) -> str | None:
    """Return the text between the first opening and the last closing tag of an answer, or None if a tag is missing."""
    start, end = answer.find(OPEN), answer.rfind(CLOSE)
    if start < 0 or end < start:
        return None
    return _unwrapped(answer[start + len(OPEN) : end].strip())


def _unwrapped(text: str) -> str:
    """Remove a code block around the whole text: models like to wrap documents in one."""
    lines = text.split("\n")
    if len(lines) > 2 and lines[0].startswith("```") and lines[-1].strip() == "```":
        return "\n".join(lines[1:-1])
    return text
