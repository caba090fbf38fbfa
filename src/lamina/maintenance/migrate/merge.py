"""Two memory directories become one (B12): every memory of both, and the history of both.

Invariants: a memory is written, with the lines the old journal has of it, before the old file goes; two memories of one name
whose texts differ both stay, the old one with all its keys and where it comes from in its name; what is neither memory, index nor
journal, or cannot be read as a memory, is moved as it is, or left and reported where such a file is there already; two daily logs of
one day are joined; only what was taken over is removed.

A crash at any line leaves memories here, or here and there; the same command goes on, and what is here already is not doubled.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from ...core.errors import DiskError, InputError
from ...disk.files import read, remove
from ...disk.trees.rewrite import move, remove_tree
from ...disk.trees.rootdir import RootDir
from ...memory.store.contract import Why
from ...memory.store.daily_logs import MOST_BYTES, append, day_of
from ...memory.store.directory import GUARD, PATIENCE, DirectoryStore
from ...memory.store.draft import Draft, other_file
from ...memory.store.index import INDEX
from ...memory.store.journal import Line
from ...memory.store.scopes import TEAM
from ...memory.store.topic import Topic, same_name, write_topic
from ..kept_files import irregular_files, regular_files


class MoveReport(msgspec.Struct):
    source: str
    target: str
    memories: int = 0
    merged: list[str] = []  # names that two memories had
    sessions: int = 0
    left: list[str] = []


def merge_memories(source: Path, there: Path, done: MoveReport) -> None:
    inner = source / TEAM
    if inner.is_dir():
        if (there / TEAM).is_dir():
            merge_memories(inner, there / TEAM, done)
        else:
            move(inner, there / TEAM)
    with DirectoryStore.open(source) as old, DirectoryStore.open(there) as new:
        lines = old.history.filled()
        taken = set[str]()
        for topic in old.topics():
            # One that is too long or no text is moved as it is, later.
            with suppress(InputError, DiskError):
                _take(topic, [line for line in lines if line.file == topic.file], old, new, done)
                taken.add(topic.file)
        with new.root.guard(GUARD, timeout=PATIENCE):
            new.history.catch_up()
            new.history.adopt(_apart(line, new, source.parent.name) for line in lines if line.file not in taken)
    _rest(source, there, taken, done)


def _take(topic: Topic, lines: list[Line], old: DirectoryStore, new: DirectoryStore, done: MoveReport) -> None:
    raw = old.raw(topic.file)
    if raw is None:
        raise DiskError(topic.file, "is gone", "look at the old directory")
    twin = new.named(topic.name)
    if twin is not None and twin.body == topic.body:
        return
    why = Why("user", f"merged from {done.source}")
    name = topic.name if twin is None else f"{topic.name} (from {Path(done.source).name})"
    draft = Draft(name, topic.type, topic.description, topic.body)
    file = new.plan(draft).topic.file
    with new.root.guard(GUARD, timeout=PATIENCE):
        new.history.adopt(msgspec.structs.replace(line, file=file, name=name) for line in lines)
        # The very bytes, so that the journal's last line fits and the keys a person added stay.
        if twin is None and new.root.stat(file) is None:
            new.root.replace(file, raw.data)
    if twin is None or topic.problems:
        new.save(draft, why=why)
    else:
        renamed = msgspec.structs.replace(topic, name=name)
        new.put(file, write_topic(renamed, before=raw.data.decode()), expected=None, why=why)
    done.memories += 1
    if twin is not None and same_name(name) != same_name(topic.name):
        done.merged.append(name)


def _apart(line: Line, new: DirectoryStore, origin: str) -> Line:
    """What was removed there does not stand in for a file of the same name here."""
    return line if new.history.last(line.file) is None else msgspec.structs.replace(line, file=other_file(line.file, origin))


def _log(path: Path, there: Path, file: str) -> None:
    """Two daily logs of one day: the old one's bullets come behind the new one's."""
    with RootDir.open(there, create=False) as root:
        known = set((read(there / file, MOST_BYTES) or b"").decode("utf-8", "replace").splitlines())
        lines = (read(path, MOST_BYTES) or b"").decode("utf-8", "replace").splitlines()
        append(root, file, [line for line in lines if line not in known])
    remove(path)


def _rest(source: Path, there: Path, taken: set[str], done: MoveReport) -> None:
    for path in regular_files(source, skip={source / ".history", source / TEAM}):
        relative = path.relative_to(source)
        if relative.as_posix() in taken or relative.as_posix() == INDEX:
            remove(path)
            continue
        try:
            if day_of(relative.as_posix()) is not None and (there / relative).is_file():
                _log(path, there, relative.as_posix())
            else:
                move(path, there / relative)
        except DiskError as error:
            done.left.append(str(error))
    odd = [f"{path} is no file; it was left there." for path in irregular_files(source)]
    done.left += odd
    if not odd and not any(path.name != INDEX for path in regular_files(source, skip={source / ".history"})):
        remove_tree(source)
