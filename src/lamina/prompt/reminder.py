"""Reminders: what is said to the model beside the conversation, rendered once and then sent as it is (I4, G3).

Pure. Every text that is not ours is fenced or escaped, so a file can neither end the reminder nor pose as another part of it. Equal
arguments give equal bytes; who calls keeps what it got for the rest of the session.
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

# What is appended later, and how it is announced.
LaterKind: TypeAlias = Literal["date", "recall", "mail", "to-dos", "hook", "skills", "agents", "note"]
_LATER: dict[LaterKind, str] = {
    "date": "# Date",
    "recall": "# From memory",
    "mail": "# Messages",
    "to-dos": "# To-do list",
    "hook": "# From a hook",
    "skills": "# Skills",
    "agents": "# Agents",
    "note": "# Note",
}

_LABELS: dict[InstructionKind, str] = {
    "managed": "set for this machine by its administrator",
    "user": "the person's own, for all projects",
    "project": "the project's, shared with everyone who works on it",
    "local": "the person's own, for this project only",
}
_INCLUDED = ", included by a file above"
_LABEL = "|".join(re.escape(label) for label in _LABELS.values())
# No file's text can hold the opening tag, so a heading before it is ours.
_SENT = re.compile(
    rf"^Contents of (?P<path>[^\n]+) \((?:{_LABEL})(?:{_INCLUDED})?\):\n<instruction-file>\n(?P<text>.*?)\n</instruction-file>$",
    re.MULTILINE | re.DOTALL,
)
# As the texts of this file and of `date change` say it.
_TODAY = re.compile(r"^(?:Today is|The date has changed .{0,80}, today is) (\d{4}-\d\d-\d\d)\.", re.MULTILINE)


class IndexText(msgspec.Struct, frozen=True):
    """A memory index as it is to be sent: cut to its limits, includes not followed."""

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
    """The one message before the first user message; None where there is nothing to say."""
    texts = prompt_sections(__file__, "reminders")
    files = instructions.files if instructions is not None else ()
    indexes = [index for index in memory_index if index.text.strip()]
    parts: list[Fenced] = []
    if files:
        parts += [_heading("Instructions", texts["instructions"]), *map(_file, files)]
    if indexes:
        parts += [_heading("Memory index", texts["memory index"]), *map(_index, indexes)]
    if git_status:
        parts.append(_heading("Git status", texts["git status"], fence("git-status", git_status)))
    if date:
        parts.append(_heading("Date", escape(f"Today is {date}.")))
    if editor_selection:
        parts.append(_heading("Editor selection", texts["editor selection"], fence("editor-selection", editor_selection)))
    return reminder([Fenced(texts["opening"]), *parts, Fenced(texts["closing"])]) if parts else None


def nested_context(instructions: Instructions) -> str | None:
    """What the reading of files has brought in, to stand behind their results; None where that is nothing new."""
    if not instructions.files:
        return None
    return reminder([Fenced(prompt_sections(__file__, "reminders")["nested"]), *map(_file, instructions.files)])


def later_context(kind: LaterKind, text: str) -> str:
    """Context that is appended in mid-session. `text` is data: none of it can end the reminder. Who has several sources to tell
    apart fences each with `core.fence` and joins them with its `reminder`."""
    return reminder([Fenced(_LATER[kind]), escape(text)])


def date_change(old: str, new: str) -> str:
    return later_context("date", prompt_sections(__file__, "reminders")["date change"].format(old=old, new=new))


def date_said(text: str) -> str | None:
    """The date that a first reminder or a change of date gives; None where it gives none. What stands behind it is ours alone, so
    the last one counts, whatever a file above it says."""
    found = _TODAY.findall(text)
    return found[-1] if found else None


def in_view(texts: Iterable[str]) -> InView:
    """Which instruction files a view holds, from the texts of its reminders (not of messages, where anyone may write what looks
    like one). What was sent says it, so resume, undo and compaction need no other book."""
    sent = [found for text in texts if "<instruction-file>" in text for found in _SENT.finditer(text)]
    return InView(frozenset(found["path"] for found in sent), frozenset(digest(found["text"]) for found in sent))


def _heading(name: str, *below: str) -> Fenced:
    return Fenced("\n".join([f"# {name}", *below]))


def label(file: InstructionFile) -> str:
    """Whose file it is, in the words the model gets."""
    return _LABELS[file.kind] + (_INCLUDED if file.included_from is not None else "")


def _file(file: InstructionFile) -> Fenced:
    return Fenced(f"Contents of {shown(file.path)} ({label(file)}):\n{fence('instruction-file', file.text)}")


def _index(index: IndexText) -> Fenced:
    return Fenced(f"Contents of {shown(Path(index.path))}:\n{fence('memory-index', index.text)}")
