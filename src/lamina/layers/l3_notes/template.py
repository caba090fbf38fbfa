"""The texts of this room: the template of the notes, the prompt of an update, and the user's own in their place (N1, N5).

Owns what the model reads when it is asked for an update. Pure but for reading the files of `prompts/` once. Invariants: names in
double braces are filled in one pass, so nothing that comes from the notes is ever taken for a name; the notes stand in a fence they
cannot close (G3).
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, NamedTuple, TypeAlias

from ...core.fence import escape, reminder
from ...core.prompt_files import prompt_sections, prompt_text
from .sections import Misfit, Notes, Shown, Size, Sizes, Template, read_template, render, sizes
from .sections import shown as shown_part

How: TypeAlias = Literal["edit", "sections"]  # the fork edits the file, or answers with what changes

OPEN, CLOSE = "<notes>", "</notes>"

_NAME = re.compile(r"\{\{(currentNotes|notesPath)\}\}")


@cache
def own_template() -> Template:
    read = read_template(prompt_text(__file__, "template"))
    assert not isinstance(read, Misfit)
    return read


class Texts(NamedTuple):
    """What is in force: ours, or the user's."""

    template: Template
    prompt: str
    remarks: tuple[str, ...] = ()  # why a text of the user's was not taken


def texts_in_force(template: str | None, prompt: str | None) -> Texts:
    """The user's texts where they gave any that can be used."""
    read = read_template(template) if template is not None else own_template()
    remarks: tuple[str, ...] = ()
    if isinstance(read, Misfit):
        remarks = (f"The template of the session notes was not used, because {read.why}; ours is used instead.",)
        read = own_template()
    return Texts(read, (prompt or "").strip() or prompt_text(__file__, "update"), remarks)


class Limits(NamedTuple):
    """N2, scaled to the window (T9)."""

    section: int
    total: int


def directive(
    texts: Texts, notes: Notes, path: str, how: How, *, size: Size, limits: Limits, failures: tuple[str, ...] = ()
) -> str:
    """What the fork is asked: the prompt in force, then what holds whoever wrote the prompt, then what an answer before this one got
    wrong."""
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
    """What an update is shown of the notes: all of them where the prompt is the user's own."""
    if texts.prompt != prompt_text(__file__, "update"):
        return Shown(notes, {})
    return shown_part(notes, size, to_shorten=[one.name for one in found.long])


def fill(prompt: str, notes: str, path: str) -> str:
    """N5: one pass, literally; names that are not ours stay."""
    values = {"currentNotes": notes, "notesPath": path}
    return _NAME.sub(lambda found: values[found[1]], prompt)


def _sizes(found: Sizes, limits: Limits) -> str:
    answers = prompt_sections(__file__, "answers")
    said = answers["size"].format(total=f"{limits.total:,}", section=f"{limits.section:,}", now=f"{found.total:,}")
    if not found.long:
        return said
    rows = [f"- {one.name}: about {one.tokens:,} tokens" for one in found.long]
    return "\n".join([said, answers["long"], *rows])


def between_tags(said: str) -> str | None:
    """The notes in an answer: what stands between the first opening tag and the last closing one; None where one of them lacks."""
    start, end = said.find(OPEN), said.rfind(CLOSE)
    if start < 0 or end < start:
        return None
    return _unwrapped(said[start + len(OPEN) : end].strip())


def _unwrapped(text: str) -> str:
    """Models like to put a document into a code block."""
    lines = text.split("\n")
    if len(lines) > 2 and lines[0].startswith("```") and lines[-1].strip() == "```":
        return "\n".join(lines[1:-1])
    return text
