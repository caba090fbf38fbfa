"""Move the memory and sessions of a moved project to its new directory (B12).

Finds candidates: a stored project matches if its path no longer exists and it has the same root commit, or is the same
directory under another name. The working tree alone is never trusted: the old path must be gone, and the user must confirm. The
move takes the memory, each session and the sessions of subdirectories. The project's identity file comes last, so that running
the command again finds and finishes an interrupted move.

A crash at any point leaves each session and the memory complete, in the old or the new place.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ...core.errors import DiskError, InputError
from ...disk.files import read, remove
from ...disk.git import git_program, run_git
from ...disk.paths.project import slug
from ...disk.regular_file import subdirectories
from ...disk.trees.rewrite import move, remove_empty, remove_tree
from ...disk.trees.rootdir import RootDir
from ...memory.store.contract import ChangeReason
from ...memory.store.daily_logs import MOST_BYTES, append_bullets, log_day
from ...memory.store.directory import DirectoryStore
from ...memory.store.draft import Draft, second_file
from ...memory.store.history import hold_guard
from ...memory.store.index import INDEX
from ...memory.store.journal import JournalLine
from ...memory.store.project_identity import (
    FILE_NAME,
    MOST_ROOTS,
    KnownProject,
    ProjectIdentity,
    directory_id,
    list_known_projects,
    read_identity,
    write_identity,
)
from ...memory.store.scopes import TEAM
from ...memory.store.topic import Topic, name_key, write_topic
from ...prompt.git_status import EMPTY_REPOSITORY, find_repository, head_of
from ..kept_files import MEMORY, SessionFiles, irregular_files, regular_files, session_files

# A million commits take a few seconds.
GIT_SECONDS = 5.0
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# Entries of a project's directory that do not keep it alive after a move.
_OWN = frozenset({FILE_NAME, MEMORY})
# Called before each memory with the number done and the number of all.
Tell: TypeAlias = Callable[[int, int], None]


class MovedProject(NamedTuple):
    known: KnownProject
    because: Literal["the same root commit", "the same directory under another name"]


def topics_in(directory: Path) -> int:
    """Count the memories in a project's directory."""
    inner = directory / MEMORY
    named = [path for path in regular_files(inner) if path.suffix == ".md" and path.name != INDEX]
    return sum(not any(part.startswith(".") for part in path.relative_to(inner).parts) for path in named)


def candidates(home: Path, project: Path, roots: tuple[str, ...]) -> list[MovedProject]:
    """Return the stored projects that may be this one before it moved; `roots` are its root commits."""
    here = directory_id(project)
    found = []
    for known in gone(home, project):
        assert known.identity is not None
        theirs = known.identity.roots or ()
        if set(roots) & set(theirs):
            found.append(MovedProject(known, "the same root commit"))
        elif here is not None and here == known.identity.place and not (roots and theirs):
            found.append(MovedProject(known, "the same directory under another name"))
    tops = {one.known.path for one in found}
    directories = {one.known.directory for one in found if tops.isdisjoint(one.known.path.parents)}
    kept = {path for path in directories if topics_in(path) or any(one.transcript.is_file() for one in session_files(path))}
    return [one for one in found if one.known.directory in kept]


def gone(home: Path, project: Path) -> list[KnownProject]:
    """Return the stored projects whose path no longer exists."""
    identities = ((directory, read_identity(directory)) for directory in subdirectories(home / "projects"))
    found = [KnownProject(directory, Path(one.path), one) for directory, one in identities if one is not None]
    return [one for one in found if one.path != project and not os.path.lexists(one.path)]


def moved_from(home: Path, old: str) -> KnownProject:
    """Find a stored project by its old path or its directory's name."""
    wanted = os.path.abspath(os.path.expanduser(old))
    for known in list_known_projects(home):
        if str(known.path) == wanted or known.directory.name == old:
            return known
    directory = home / "projects" / slug(wanted)
    if directory.is_dir():
        return KnownProject(directory, Path(wanted), None)
    raise InputError("--from", f"project {old!r} not found", "run `lamina migrate --list` to see the known projects")


def refuse(home: Path, old: KnownProject, project: Path, *, merge: bool) -> None:
    """Raise InputError if the move is not allowed."""
    if os.path.lexists(old.path):
        raise InputError(str(old.path), "still exists, so its memory is in use", "move or remove the project first")
    target = home / "projects" / slug(project)
    if target == old.directory:
        raise InputError(str(project), "already uses this memory", "nothing needs to be moved")
    if topics_in(old.directory) and _remembers(target) and not merge:
        raise InputError(str(project), "already has memories", "use --merge to combine them")
    for directory in (target, *(part for part, _ in _pairs(home, old, old.path))):
        for one in session_files(directory):
            if one.holder() is not None:
                raise InputError(str(one.transcript), "is open", "close the session first")


def _remembers(directory: Path) -> bool:
    return bool(topics_in(directory)) or any((directory / MEMORY / ".history").glob("journal-*.jsonl"))


def _pairs(home: Path, old: KnownProject, project: Path) -> list[tuple[Path, Path]]:
    """Return each old directory with its new project path: subdirectories first, the project itself last."""
    below = [
        (known.directory, project / known.path.relative_to(old.path))
        for known in list_known_projects(home)
        if old.path in known.path.parents and known.directory != old.directory
    ]
    return [*below, (old.directory, project)]


def migrate(
    home: Path,
    old: KnownProject,
    project: Path,
    roots: tuple[str, ...] | None,
    *,
    merge: bool = False,
    tell: Tell = lambda done, of: None,
) -> MoveReport:
    """Move everything, and report what could not be moved. Call `refuse` first. `tell` gets the number of merged memories."""
    done = MoveReport(str(old.path), str(project))
    for directory, path in _pairs(home, old, project):
        target = home / "projects" / slug(path)
        _move_memory(directory, target, done, merge=merge, tell=tell)
        for one in session_files(directory):
            _move_session(one, target, done)
        _rename(directory, target, path, roots if path == project else None)
        _tidy(directory)
    return done


def _move_session(one: SessionFiles, target: Path, done: MoveReport) -> None:
    try:
        # Move the other files first: without them the transcript could not show spilled results.
        if one.directory.is_dir():
            move(one.directory, target / one.directory.name)
        if one.transcript.is_file():
            move(one.transcript, target / one.transcript.name)
            done.sessions += 1
    except DiskError as error:
        done.left.append(str(error))


def _rename(directory: Path, target: Path, path: Path, roots: tuple[str, ...] | None) -> None:
    """Write the identity of the new directory, keeping the old project's id."""
    old, there = read_identity(directory), read_identity(target)
    named = old or there or ProjectIdentity(1, os.urandom(16).hex(), str(path))
    was = tuple(dict.fromkeys((*named.was, *((old.path,) if old is not None else ()))))
    write_identity(
        target, msgspec.structs.replace(named, path=str(path), roots=roots or named.roots, place=directory_id(path), was=was)
    )


def _move_memory(directory: Path, target: Path, done: MoveReport, *, merge: bool, tell: Tell) -> None:
    source, there = directory / MEMORY, target / MEMORY
    if not source.is_dir():
        return
    count = topics_in(directory)
    try:
        if _remembers(target):
            if merge:
                merge_memories(source, there, done, tell)
            elif count:
                done.left.append(f"{there} already has memories. Use --merge to combine them.")
            return
        if there.is_dir():
            remove_tree(there)
        move(source, there)
        done.memories += count
    except DiskError as error:
        done.left.append(str(error))


def _tidy(directory: Path) -> None:
    """Remove the old directory if only its identity file and empty directories are left."""
    if (directory / MEMORY).is_dir() and not any(regular_files(directory / MEMORY)):
        remove_tree(directory / MEMORY)
    if not any(path.name not in _OWN for path in directory.iterdir()) and not (directory / MEMORY).exists():
        remove(directory / FILE_NAME)
        remove_empty(directory)


def root_commits(project: Path, *, environ: Mapping[str, str], seconds: float = GIT_SECONDS) -> tuple[str, ...] | None:
    """Return the root commits of a repository. Git runs without its configuration and with a time limit.

    Empty outside a repository or without a commit; None if they cannot be determined: no git, a timeout or a shallow clone.
    """
    repository = find_repository(project)
    head = head_of(repository) if repository is not None else None
    if repository is None or head is None or head.commit is None:
        return ()
    program = git_program(environ, outside=repository.top)
    # The first commit of a shallow clone is not a root commit.
    if program is None or (repository.common / "shallow").exists():
        return None
    printed = run_git(
        program,
        ("rev-list", "--max-parents=0", head.commit),
        git_dir=EMPTY_REPOSITORY,
        environ=environ,
        seconds=seconds,
        more={"GIT_OBJECT_DIRECTORY": str(repository.common / "objects"), "GIT_OPTIONAL_LOCKS": "0"},
    )
    if printed is None:
        return None
    return tuple(sorted(_COMMIT.findall(printed.decode("ascii", "replace")))[:MOST_ROOTS])


class MoveReport(msgspec.Struct):
    source: str
    target: str
    memories: int = 0
    merged: list[str] = []  # new names of memories whose name was taken
    sessions: int = 0
    left: list[str] = []


def merge_memories(source: Path, there: Path, done: MoveReport, tell: Tell = lambda done, of: None) -> None:
    """Merge two memory directories into one, with every memory and the history of both.

    Invariants: a memory is written, with its journal lines, before the old file is removed. Two memories with the same name but
    different texts are both kept; the old one keeps all its keys and gets its origin in its name. Other files, and unreadable
    memories, are moved as they are, or left and reported if such a file already exists. Two daily logs of one day are joined.
    Only what was taken over is removed.

    A crash at any point leaves a memory in the old place, or in both; running the command again continues without duplicates.
    """
    inner = source / TEAM
    if inner.is_dir():
        if (there / TEAM).is_dir():
            merge_memories(inner, there / TEAM, done, tell)
        else:
            move(inner, there / TEAM)
    with DirectoryStore.open(source) as old, DirectoryStore.open(there) as new:
        lines = old.history.filled()
        by_file: dict[str, list[JournalLine]] = {}
        for line in lines:
            by_file.setdefault(line.file, []).append(line)
        taken, topics = set[str](), old.topics()
        for at, topic in enumerate(topics):
            tell(at, len(topics))
            # A memory that is too long or not text is moved as a plain file later.
            with suppress(InputError, DiskError):
                _take(topic, by_file.get(topic.file, []), old, new, done)
                taken.add(topic.file)
        with hold_guard(new.root):
            new.history.catch_up()
            new.history.adopt(_apart(line, new, source.parent.name) for line in lines if line.file not in taken)
    _rest(source, there, taken, done)


def _take(topic: Topic, lines: list[JournalLine], old: DirectoryStore, new: DirectoryStore, done: MoveReport) -> None:
    raw = old.raw(topic.file)
    if raw is None:
        raise DiskError(topic.file, "disappeared", "check the old directory")
    twin = new.named(topic.name)
    if twin is not None and twin.body == topic.body:
        return
    why = ChangeReason("user", f"merged from {done.source}")
    name = topic.name if twin is None else f"{topic.name} (from {Path(done.source).name})"
    draft = Draft(name, topic.type, topic.description, topic.body)
    file = new.plan(draft).topic.file
    with hold_guard(new.root):
        new.history.adopt(_moved(line, file, name) for line in lines)
        # Copy the exact bytes, so that the journal's last line matches and keys the user added stay.
        if twin is None and new.root.stat(file) is None:
            new.root.replace(file, raw.data)
    if twin is None or topic.problems:
        new.save(draft, why=why)
    else:
        renamed = msgspec.structs.replace(topic, name=name)
        new.put(file, write_topic(renamed, before=raw.data.decode()), expected=None, why=why)
    done.memories += 1
    if twin is not None and name_key(name) != name_key(topic.name):
        done.merged.append(name)


def _apart(line: JournalLine, new: DirectoryStore, origin: str) -> JournalLine:
    """Rename the file in a journal line if the new directory has a history for that name."""
    file = line.file if new.history.last(line.file) is None else second_file(line.file, origin)
    return _moved(line, file, line.name)


def _moved(line: JournalLine, file: str, name: str) -> JournalLine:
    """Return the line for another directory. An identity that is a file name, as older lines have it, follows the file."""
    memory = file if line.memory == line.file else line.memory
    return msgspec.structs.replace(line, file=file, name=name, memory=memory, was="")


def _log(path: Path, there: Path, file: str) -> None:
    """Append the old daily log's entries to the new one of the same day."""
    with RootDir.open(there, create=False) as root:
        known = set((read(there / file, MOST_BYTES) or b"").decode("utf-8", "replace").splitlines())
        lines = (read(path, MOST_BYTES) or b"").decode("utf-8", "replace").splitlines()
        append_bullets(root, file, [line for line in lines if line not in known])
    remove(path)


def _rest(source: Path, there: Path, taken: set[str], done: MoveReport) -> None:
    for path in regular_files(source, skip={source / ".history", source / TEAM}):
        relative = path.relative_to(source)
        if relative.as_posix() in taken or relative.as_posix() == INDEX:
            remove(path)
            continue
        try:
            if log_day(relative.as_posix()) is not None and (there / relative).is_file():
                _log(path, there, relative.as_posix())
            else:
                move(path, there / relative)
        except DiskError as error:
            done.left.append(str(error))
    odd = [f"{path} is not a regular file and was left in place." for path in irregular_files(source)]
    done.left += odd
    if not odd and not any(path.name != INDEX for path in regular_files(source, skip={source / ".history"})):
        remove_tree(source)
