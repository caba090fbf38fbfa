"""Two memory directories become one (B12): every memory of both, and the history of both.

Invariants: a memory is written, with the lines the old journal has of it, before the old file goes; two memories of one name
whose texts differ both stay, the old one with where it comes from in its name; what is neither memory, index nor journal is
moved as it is, or left and reported where such a file is there already.

A crash at any line leaves memories here, or here and there; the same command goes on, and what is here already is not doubled.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from ..core.errors import DiskError
from ..disk.files import remove
from ..disk.guarded import guarded
from ..disk.rewrite import move, remove_tree
from ..memory.directory import GUARD, PATIENCE, DirectoryStore
from ..memory.history import Line
from ..memory.index import INDEX
from ..memory.place import TEAM
from ..memory.store import Why, other_file
from ..memory.topic import Topic, same_name
from .places import files


class Moved(msgspec.Struct):
    source: str
    target: str
    memories: int = 0
    merged: list[str] = []  # names that two memories had
    sessions: int = 0
    left: list[str] = []


def merged(source: Path, there: Path, done: Moved) -> None:
    inner = source / TEAM
    if inner.is_dir():
        if (there / TEAM).is_dir():
            merged(inner, there / TEAM, done)
        else:
            move(inner, there / TEAM)
    with DirectoryStore.open(source) as old, DirectoryStore.open(there) as new:
        lines = old.history.filled()
        topics = old.topics()
        for topic in topics:
            _take(topic, [line for line in lines if line.file == topic.file], old, new, done)
        current = {topic.file for topic in topics}
        with guarded(new.root, GUARD, timeout=PATIENCE):
            new.history.catch_up()
            new.history.adopt(_apart(line, new, source.parent.name) for line in lines if line.file not in current)
    _rest(source, there, done)


def _take(topic: Topic, lines: list[Line], old: DirectoryStore, new: DirectoryStore, done: Moved) -> None:
    twin = new.get(topic.name)
    if twin is not None and twin.body == topic.body:
        return
    name = topic.name if twin is None else f"{topic.name} (from {Path(done.source).name})"
    planned = new.plan(name, type=topic.type, description=topic.description, body=topic.body)
    file = planned.topic.file
    with guarded(new.root, GUARD, timeout=PATIENCE):
        new.history.adopt(msgspec.structs.replace(line, file=file, name=name) for line in lines)
        raw = old.raw(topic.file)
        # The very bytes, so that the journal's last line fits and the keys a person added stay.
        if twin is None and raw is not None and new.root.stat(file) is None:
            new.root.replace(file, raw.data)
    new.save(name, type=topic.type, description=topic.description, body=topic.body, why=Why("user", f"merged from {done.source}"))
    done.memories += 1
    if twin is not None and same_name(name) != same_name(topic.name):
        done.merged.append(name)


def _apart(line: Line, new: DirectoryStore, origin: str) -> Line:
    """What was removed there does not stand in for a file of the same name here."""
    return line if new.history.last(line.file) is None else msgspec.structs.replace(line, file=other_file(line.file, origin))


def _rest(source: Path, there: Path, done: Moved) -> None:
    for path in files(source, skip={source / ".history", source / TEAM}):
        relative = path.relative_to(source)
        is_memory = path.suffix == ".md" and not {"logs", ".inbox"} & set(relative.parts)
        if is_memory:
            remove(path)
            continue
        try:
            move(path, there / relative)
        except DiskError as error:
            done.left.append(str(error))
    if not any(path.name != INDEX for path in files(source, skip={source / ".history"})):
        remove_tree(source)
