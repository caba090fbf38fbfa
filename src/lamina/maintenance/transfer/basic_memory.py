"""basic-memory's notes: a directory of Markdown files for each project, with observations and relations as list items.

    ---
    title: Coffee
    type: note
    permalink: main/notes/coffee
    ---
    - [method] Pour over gives more clarity #brewing
    - requires [[Grinder]]

A note becomes a memory with the same text, so observations, relations and links stay as they are. The files are the data; basic-memory's
database only indexes them. Its own directory, `~/.basic-memory`, names the projects and where their notes are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from ...core.errors import InputError
from ...core.front_matter import read_front_matter
from ...disk.user_files import read_whole
from .portable_topic import Imported, PortableTopic, document, kind_of, make_description, parse_date
from .project_choice import ProjectChoice

CONFIG, DATABASE = "config.json", "memory.db"
# The configuration is a page of settings.
MOST_CONFIG = 1 << 20
_CATEGORY = re.compile(r"^\[[^\]\n]{1,40}\][ \t]*")
_HEADING = re.compile(r"^[ \t]*#")


def notes_at(real: Path, choice: ProjectChoice) -> Path | None:
    """Return the notes of a project if the path is basic-memory's own directory or a file of it; None for any other path."""
    top = real.parent if real.name in (CONFIG, DATABASE) else real
    read = read_whole(top / CONFIG, MOST_CONFIG) if (top / CONFIG).is_file() else None
    config = document(read.data.decode("utf-8", "replace"), "", strict=False) if read is not None else None
    projects = config.get("projects") if isinstance(config, dict) and "default_project" in config else None
    if not isinstance(projects, dict):
        return None
    places = {name: place for name, entry in projects.items() if (place := _place(entry)) is not None}
    name = choice.among(places, str(real))
    if not places[name].is_dir():
        raise InputError(str(places[name]), "the notes of this project do not exist", "pass the directory that contains them")
    return Path(places[name])


def _place(entry: object) -> Path | None:
    """Return the directory of a project. Earlier versions wrote the path alone."""
    path = entry.get("path") if isinstance(entry, dict) else entry
    return Path(path).expanduser() if isinstance(path, str) and path else None


def is_note(text: str) -> bool:
    return {"title", "permalink"} <= read_front_matter(text).fields.keys()


def read_basic_memory(files: Mapping[str, str], *, times: Mapping[str, float] | None = None) -> Imported:
    """Read the notes. `files` maps relative paths to texts; `times` has file times, for undated notes."""
    topics, problems = list[PortableTopic](), list[str]()
    for file, text in sorted(files.items()):
        found = read_front_matter(text)
        body = found.body.strip()
        if not body:
            problems.append(f"{file!a} is empty and was skipped")
            continue
        topics.append(_topic(PurePosixPath(file).stem, found.fields, body, (times or {}).get(file)))
    return Imported(tuple(topics), tuple(problems))


def _topic(stem: str, fields: Mapping[str, Any], body: str, changed: float | None) -> PortableTopic:
    title, kind = fields.get("title"), kind_of(fields.get("type"))
    name = title.strip() if isinstance(title, str) and title.strip() else stem
    dates = [date for key in ("modified", "updated", "created") if (date := parse_date(fields.get(key))) is not None]
    own = {key: value for key, value in fields.items() if key != "title" and not (key == "type" and kind is not None)}
    lines = [line for line in body.split("\n") if not _HEADING.match(line)]
    about = _CATEGORY.sub("", make_description("\n".join(lines))) or name
    modified = dates[0] if dates else changed
    return PortableTopic(name, about, kind, body, modified, {"basic-memory": own} if own else {})
