"""Codex's memory directory, `~/.codex/memories`.

An import reads the handbook `MEMORY.md` (one memory per `# Task Group:`), the profile and tips in `memory_summary.md`, and the
notes under `extensions/ad_hoc/notes/`. It skips and reports `raw_memories.md`, `rollout_summaries/` and `skills/`, which
contain records of single sessions and procedures (S8).

An export writes only notes, one per memory: Codex rewrites its other files itself and picks up the notes then, so an export never
changes its data. A note has the form of `write_section` and loses nothing. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from ...language.wording import counted
from ...memory.store.topic import file_name
from .agents_md import read_sections, write_section
from .portable_topic import Imported, PortableTopic, format_date, free_file, kind_of, make_description, parse_date, parts

HANDBOOK = "MEMORY.md"
SUMMARY = "memory_summary.md"
NOTES = "extensions/ad_hoc/notes/"
# Codex names notes by time; one without a date sorts first.
NO_DATE = "1970-01-01T00-00-00"

_GROUP = re.compile(r"^# Task Group:[ \t]*(?P<name>[^\n]*)$", re.MULTILINE)
_HEAD_LINE = re.compile(r"(?P<key>scope|applies_to):[ \t]*(?P<value>[^\n]*)")
_SECTION = re.compile(r"^## (?P<name>[^\n]*)$", re.MULTILINE)
# A section that only points to other files.
_ROUTES = "what's in memory"
_NOTE_NAME = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)[T-]?(\d\d)-?(\d\d)-?(\d\d)?Z?-(?P<slug>.+)")
_LEFT_OUT = {
    "raw_memories.md": "raw notes of single sessions",
    "rollout_summaries": "accounts of single sessions",
    "skills": "procedures",
}


def is_codex(files: Mapping[str, str]) -> bool:
    marks = (SUMMARY, "raw_memories.md", "rollout_summaries/", "extensions/ad_hoc/")
    return any(file.startswith(marks) for file in files) or _GROUP.search(files.get(HANDBOOK, "")) is not None


def read_codex(files: Mapping[str, str], *, times: Mapping[str, float] | None = None) -> Imported:
    """Read the memories. `files` maps relative paths to texts; `times` has file times, for undated memories."""
    changed = times or {}
    named = sorted(file for file in files if file.startswith(NOTES) and file.endswith(".md"))
    notes = [_note(file, files[file], changed.get(file)) for file in named]
    topics = (
        *_groups(files.get(HANDBOOK, ""), changed.get(HANDBOOK)),
        *_summary(files.get(SUMMARY, ""), changed.get(SUMMARY)),
        *(topic for found in notes for topic in found.topics),
    )
    return Imported(topics, (*(problem for found in notes for problem in found.problems), *_left_out(files)))


def _groups(text: str, changed: float | None) -> Iterator[PortableTopic]:
    """Yield the groups of the handbook. `scope:` becomes the description; `applies_to:` stays in the body, since it limits it."""
    for head, part in parts(_GROUP, text):
        body = part.strip()
        scope = next((line["value"].strip() for line in _HEAD_LINE.finditer(body) if line["key"] == "scope"), "")
        kept = re.sub(r"\Ascope:[^\n]*\n*", "", body)
        yield PortableTopic(head["name"].strip() or "Task group", scope or make_description(kept), "project", kept, changed)


def _summary(text: str, changed: float | None) -> Iterator[PortableTopic]:
    for head, part in parts(_SECTION, text):
        name, body = head["name"].strip(), part.strip()
        if body and name and name.casefold().replace("’", "'") != _ROUTES:
            yield PortableTopic(f"Codex: {name}", make_description(body), kind_of(name), body, changed)


def _note(file: str, text: str, changed: float | None) -> Imported:
    ours = read_sections(text.removesuffix("\n"), 1)
    if ours.topics:
        return ours
    stem = PurePosixPath(file).stem
    named = _NOTE_NAME.fullmatch(stem)
    body = text.strip()
    if not body:
        return Imported((), (f"{file} is empty",))
    date = parse_date("{}-{}-{}T{}:{}:{}".format(*(part or "00" for part in named.groups()[:6]))) if named else None
    name = (named["slug"] if named else stem).replace("_", " ").replace("-", " ").strip()
    return Imported((PortableTopic(name or stem, make_description(body), None, body, changed if date is None else date),), ())


def _left_out(files: Mapping[str, str]) -> Iterator[str]:
    for place, what in _LEFT_OUT.items():
        count = sum(file == place or file.startswith(f"{place}/") for file in files)
        if count:
            yield f"{place} ({counted(count, 'file')}) contains {what} and was skipped"


def write_codex(topics: Sequence[PortableTopic]) -> dict[str, str]:
    """Return the files as relative path → text; the same memories always give the same files."""
    files: dict[str, str] = {}
    for topic in topics:
        date = format_date(topic.modified)
        time = date[:19].replace(":", "-") if date else NO_DATE
        file = free_file(f"{NOTES}{time}-{file_name(topic.name).removesuffix('.md')}", files.__contains__)
        files[file] = write_section(topic, 1) + "\n"
    return files
