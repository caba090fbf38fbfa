"""Reminders: context for the model outside the conversation, rendered once and then re-sent unchanged.

Pure. Text from elsewhere is fenced or escaped, so a file can neither end the reminder nor imitate another part of it. Equal
arguments give equal bytes; the caller keeps the result for the rest of the session.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from ..core.fence import Fenced, escape, fence, reminder
from ..core.prompt_files import prompt_sections
from .instruction_files import InstructionFile, Instructions, InView, digest, shown
from .rules import InstructionKind

# The kinds of context appended later, with their headings.
LaterKind: TypeAlias = Literal["date", "recall", "mail", "to-dos", "hook", "skills", "agents", "shell", "note"]
_LATER: dict[LaterKind, str] = {
    "date": "# Date",
    "recall": "# From memory",
    "mail": "# Messages",
    "to-dos": "# To-do list",
    "hook": "# From a hook",
    "skills": "# Skills",
    "agents": "# Agents",
    "shell": "# Command that the user ran",
    "note": "# Note",
}

_LABELS: dict[InstructionKind, str] = {
    "managed": "set for this machine by its administrator",
    "user": "the user's own, for all projects",
    "project": "the project's, shared with everyone who works on it",
    "local": "the user's own, for this project only",
}
_INCLUDED = ", included by a file above"
# Sessions written before the labels said "user" hold the older words.
_OLDER_LABELS = ("the person's own, for all projects", "the person's own, for this project only")
_LABEL = "|".join(re.escape(label) for label in (*_LABELS.values(), *_OLDER_LABELS))
# A file's text cannot contain the opening tag, so a heading in front of the tag is ours.
_SENT = (
    rf"(?ms)^Contents of (?P<path>[^\n]+) \((?:{_LABEL})(?:{_INCLUDED})?\):\n"
    r"<instruction-file>\n(?P<text>.*?)\n</instruction-file>$"
)
# Matches the date as this module and the `date change` text write it.
_TODAY = r"(?m)^(?:Today is|The date has changed .{0,80}, today is) (\d{4}-\d\d-\d\d)\."


class IndexText(msgspec.Struct, frozen=True):
    """A memory index ready to be sent: cut to its limits, with includes not followed."""

    path: str
    text: str


def first_reminder(
    *,
    instructions: Instructions | None = None,
    memory_index: Sequence[IndexText] = (),
    git_status: str | None = None,
    date: str | None = None,
    editor_selection: str | None = None,
) -> str | None:
    """Render the reminder that precedes the first user message, or None without any content."""
    texts = prompt_sections(__file__, "reminders")
    files = instructions.files if instructions is not None else ()
    indexes = [index for index in memory_index if index.text.strip()]
    parts: list[Fenced] = []
    if files:
        parts += [_heading("Instructions", texts["instructions"]), *map(_file, files)]
    if indexes:
        parts.append(_heading("Memory index", texts["memory index"]))
        parts += [Fenced(f"Contents of {shown(Path(index.path))}:\n{fence('memory-index', index.text)}") for index in indexes]
    if git_status:
        parts.append(_heading("Git status", texts["git status"], fence("git-status", git_status)))
    if date:
        parts.append(_heading("Date", escape(f"Today is {date}.")))
    if editor_selection:
        parts.append(_heading("Editor selection", texts["editor selection"], fence("editor-selection", editor_selection)))
    return reminder([Fenced(texts["opening"]), *parts, Fenced(texts["closing"])]) if parts else None


def nested_context(instructions: Instructions) -> str | None:
    """Render the instructions that a file read brought in, to go behind the tool results; None if nothing is new."""
    if not instructions.files:
        return None
    return reminder([Fenced(prompt_sections(__file__, "reminders")["nested"]), *map(_file, instructions.files)])


def later_context(kind: LaterKind, text: str) -> str:
    """Render context that is appended mid-session. `text` is data and cannot end the reminder. To keep several sources
    apart, fence each one with `core.fence` and join them with its `reminder`."""
    return reminder([Fenced(_LATER[kind]), escape(text)])


def date_change(old: str, new: str) -> str:
    return later_context("date", prompt_sections(__file__, "reminders")["date change"].format(old=old, new=new))


def date_said(text: str) -> str | None:
    """Return the date in a first reminder or a date change, or None. The text after the date is always ours, so the last
    match counts, whatever a file above it contains."""
    dates = re.findall(_TODAY, text)
    return dates[-1] if dates else None


def in_view(texts: Iterable[str]) -> InView:
    """Return the instruction files in view, read from the texts of reminders. Message texts don't count, since anyone can
    imitate a reminder there. The sent text is the only record, so resume, undo and compaction need no other."""
    files = [file for text in texts if "<instruction-file>" in text for file in re.finditer(_SENT, text)]
    return InView(frozenset(file["path"] for file in files), frozenset(digest(file["text"]) for file in files))


def _heading(name: str, *below: str) -> Fenced:
    return Fenced("\n".join([f"# {name}", *below]))


def label(file: InstructionFile) -> str:
    """Describe whose file it is, in the words the model gets."""
    return _LABELS[file.kind] + (_INCLUDED if file.included_from is not None else "")


def _file(file: InstructionFile) -> Fenced:
    return Fenced(f"Contents of {shown(file.path)} ({label(file)}):\n{fence('instruction-file', file.text)}")
