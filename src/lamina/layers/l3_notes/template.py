"""The notes template and the update prompt, either built in or the user's own (N1, N5).

Composes the directive that asks the model for an update. Pure, except that the files of `prompts/` are read once. Invariants:
names in double braces are filled in one pass, so text from the notes is never taken for a name. The notes are inside a fence that
they cannot close (G3).
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from ...core.fence import escape, reminder
from ...core.prompt_files import prompt_sections, prompt_text
from .sections import Misfit, Notes, Shown, Size, Sizes, Template, read_template, render, sizes
from .sections import shown as shown_part

How: TypeAlias = Literal["edit", "sections"]  # the fork edits the file, or answers with the sections that change

OPEN, CLOSE = "<notes>", "</notes>"

_NAME = re.compile(r"\{\{(currentNotes|notesPath)\}\}")


@cache
def own_template() -> Template:
    read = read_template(prompt_text(__file__, "template"))
    assert not isinstance(read, Misfit)
    return read


class Texts(NamedTuple):
    """The template and prompt in use, either built in or the user's own."""

    template: Template
    prompt: str
    remarks: tuple[str, ...] = ()  # why one of the user's texts was not used


def texts_in_force(template: str | None, prompt: str | None) -> Texts:
    """Return the user's texts if they are usable, else the built-in ones."""
    read = read_template(template) if template is not None else own_template()
    remarks: tuple[str, ...] = ()
    if isinstance(read, Misfit):
        remarks = (f"Your session notes template is not used: {read.why}. The built-in template is used instead.",)
        read = own_template()
    return Texts(read, (prompt or "").strip() or prompt_text(__file__, "update"), remarks)


class NotesLimits(NamedTuple):
    """The maximum size of the notes in tokens, scaled to the window."""

    section: int
    total: int


def directive(
    texts: Texts, notes: Notes, path: str, how: How, *, size: Size, limits: NotesLimits, failures: tuple[str, ...] = ()
) -> str:
    """Return the directive for the fork: the prompt, then the rules that apply to any prompt, then the failures of the last
    answer."""
    found = sizes(notes, size, section=limits.section, total=limits.total)
    shown = str(escape(render(seen(texts, notes, size, found).notes).rstrip("\n")))
    asked = [fill(texts.prompt, shown, path)]
    answers = prompt_sections(__file__, "answers")
    if "{{currentNotes}}" not in texts.prompt:
        asked.append(answers["notes"] + "\n\n" + reminder([escape(shown)]))
    asked.append(_sizes(found, limits))
    asked.append(answers[how].format(path=path))
    if failures:
        asked.append("\n".join([answers["failures"], *(f"- {one}" for one in failures)]))
    return "\n\n".join(asked)


def seen(texts: Texts, notes: Notes, size: Size, found: Sizes) -> Shown:
    """Return the part of the notes shown to an update. A prompt written by the user gets all of them."""
    if texts.prompt != prompt_text(__file__, "update"):
        return Shown(notes, {})
    return shown_part(notes, size, to_shorten=[one.name for one in found.long])


def fill(prompt: str, notes: str, path: str) -> str:
    """Fill in the names in double braces, in one pass. Unknown names stay as they are."""
    values = {"currentNotes": notes, "notesPath": path}
    return _NAME.sub(lambda found: values[found[1]], prompt)


def _sizes(found: Sizes, limits: NotesLimits) -> str:
    answers = prompt_sections(__file__, "answers")
    size = answers["size"].format(total=f"{limits.total:,}", section=f"{limits.section:,}", now=f"{found.total:,}")
    if not found.long:
        return size
    rows = [f"- {one.name}: about {one.tokens:,} tokens" for one in found.long]
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
