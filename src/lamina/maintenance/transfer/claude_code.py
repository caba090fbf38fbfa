"""Claude Code's memory directory: one file per memory, with `MEMORY.md` as the index.

Lamina uses the same layout (S3, S5), so only file names are lost. The date is under `metadata: modified:`, where Claude Code
writes it. An index with notes instead of links, as users and earlier versions write it, becomes a separate memory. Values in
front matter are strings: a number in a field comes back as a string. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from ...disk.paths.file_names import fold
from ...memory.store.index import INDEX, IndexEntry, entry_line, put_entry, read_entries
from ...memory.store.topic import Topic, file_name, read_topic, write_topic
from .portable_topic import Imported, PortableTopic, format_date, free_file, make_description, parse_date, without_date

NOTES = "Notes from MEMORY.md"


def read_claude_code(files: Mapping[str, str], *, times: Mapping[str, float] | None = None) -> Imported:
    """Read the memories. `files` maps relative paths to texts; `times` has file times, for undated memories."""
    topics, problems = list[PortableTopic](), list[str]()
    for file, text in files.items():
        if file == INDEX or file.startswith("logs/") or not file.endswith(".md"):
            continue
        topic = read_topic(file, text, -1.0)
        topics.append(_portable(topic, (times or {}).get(file)))
        problems += [f"{file}: {problem}" for problem in topic.problems if problem != "no description"]
    index = files.get(INDEX, "")
    gone = [entry.file for entry in read_entries(index) if entry.file not in files]
    problems += [f"{INDEX} refers to {file!a}, which does not exist" for file in gone]
    return Imported((*topics, *_notes(index, (times or {}).get(INDEX))), tuple(problems))


def _portable(topic: Topic, changed: float | None) -> PortableTopic:
    metadata = topic.fields.get("metadata")
    dated = isinstance(metadata, dict) and parse_date(metadata.get("modified")) is not None
    fields = without_date(topic.fields) if dated else topic.fields
    modified = topic.modified if topic.modified >= 0 else changed
    return PortableTopic(topic.name, topic.description, topic.type, topic.body, modified, fields)


def _notes(index: str, changed: float | None) -> Iterator[PortableTopic]:
    """Yield the notes in the index itself: everything except headings, blank lines and links to files."""
    lines = [line for line in index.split("\n") if not read_entries(line)]
    if any(line.strip() and not re.match(r"#|<!--|---", line.strip()) for line in lines):
        body = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
        yield PortableTopic(NOTES, make_description(body), None, body, changed)


def write_claude_code(topics: Sequence[PortableTopic]) -> dict[str, str]:
    """Return the files as relative path → text. If two names give the same file, the second gets a number."""
    files: dict[str, str] = {}
    taken = {fold(INDEX)}
    index = list[str]()
    for topic in topics:
        file = free_file(file_name(topic.name).removesuffix(".md"), lambda file: fold(file) in taken)
        taken.add(fold(file))
        files[file] = write_topic(Topic(file, topic.name, topic.description, topic.type, topic.body, _fields(topic)))
        index.append(entry_line(IndexEntry(topic.name, file, topic.description or make_description(topic.body))) + "\n")
    return {INDEX: "".join(index), **files} if files else {}


def merged_index(before: str, after: str, *, without: Collection[str] = ()) -> str:
    """Return the existing index with the lines of the new one, except those of the files in `without`."""
    for entry in read_entries(after):
        before = before if entry.file in without else put_entry(before, entry)
    return before


def _fields(topic: PortableTopic) -> dict[str, Any]:
    date = format_date(topic.modified)
    if date is None:
        return topic.fields
    metadata = topic.fields.get("metadata")
    return {**topic.fields, "metadata": {**(metadata if isinstance(metadata, dict) else {}), "modified": date}}
