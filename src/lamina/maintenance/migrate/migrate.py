"""A project that moved keeps its memory and its sessions (B12).

Decides who may be whose: a directory of the home is a candidate for a project if the path it was made for is gone and it has
the same root commit, or is the very directory under another name. What a working tree says is never enough: the old path must
be gone, and a person says yes. Then moves: the memory, each session, each subdirectory's sessions, and last the file that says
which project it is, so that a move that was interrupted is found and finished by the same command.

A crash at any line leaves each session and the memory here or there, whole.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from ...core.errors import DiskError, InputError
from ...disk.files import read, remove
from ...disk.git import git_program, run_git
from ...disk.paths.project import slug
from ...disk.transcripts.search import project_directories
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

# A million commits take some seconds; who waits for it is told, or does not wait.
GIT_SECONDS = 5.0
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
# Of a directory of the home that is about to move: what lies there besides is bookkeeping.
_OWN = frozenset({FILE_NAME, MEMORY})


class Candidate(NamedTuple):
    known: KnownProject
    because: Literal["the same root commit", "the same directory under another name"]


def topics_in(directory: Path) -> int:
    """How many memories a project's directory holds."""
    inner = directory / MEMORY
    named = [path for path in regular_files(inner) if path.suffix == ".md" and path.name != INDEX]
    return sum(not any(part.startswith(".") for part in path.relative_to(inner).parts) for path in named)


def candidates(home: Path, project: Path, roots: tuple[str, ...]) -> list[Candidate]:
    """Who this project may have been. `roots`: its root commits."""
    here = directory_id(project)
    found = []
    for known in gone(home, project):
        assert known.identity is not None
        theirs = known.identity.roots or ()
        if set(roots) & set(theirs):
            found.append(Candidate(known, "the same root commit"))
        elif here is not None and here == known.identity.place and not (roots and theirs):
            found.append(Candidate(known, "the same directory under another name"))
    tops = {one.known.path for one in found}
    directories = {one.known.directory for one in found if tops.isdisjoint(one.known.path.parents)}
    kept = {path for path in directories if topics_in(path) or any(one.transcript.is_file() for one in session_files(path))}
    return [one for one in found if one.known.directory in kept]


def gone(home: Path, project: Path) -> list[KnownProject]:
    """Projects whose path is no longer there, as their files say."""
    identities = ((directory, read_identity(directory)) for directory in project_directories(home / "projects"))
    found = [KnownProject(directory, Path(one.path), one) for directory, one in identities if one is not None]
    return [one for one in found if one.path != project and not os.path.lexists(one.path)]


def moved_from(home: Path, old: str) -> KnownProject:
    """The project that a person names by its old path or its directory's name."""
    wanted = os.path.abspath(os.path.expanduser(old))
    for known in list_known_projects(home):
        if str(known.path) == wanted or known.directory.name == old:
            return known
    directory = home / "projects" / slug(wanted)
    if directory.is_dir():
        return KnownProject(directory, Path(wanted), None)
    raise InputError("--from", f"nothing is kept of {old!r}", "lamina migrate --list shows what there is")


def refuse(home: Path, old: KnownProject, project: Path, *, merge: bool) -> None:
    """InputError where the move must not be made."""
    if os.path.lexists(old.path):
        raise InputError(str(old.path), "is still there, so its memory is in use", "move or remove the project first")
    target = home / "projects" / slug(project)
    if target == old.directory:
        raise InputError(str(project), "has this memory already", "nothing needs to be moved")
    if topics_in(old.directory) and _remembers(target) and not merge:
        raise InputError(str(project), "has memories of its own", "--merge puts both together")
    for directory in (target, *(part for part, _ in _pairs(home, old, old.path))):
        for one in session_files(directory):
            if one.holder() is not None:
                raise InputError(str(one.transcript), "is open", "close the session first")


def _remembers(directory: Path) -> bool:
    return bool(topics_in(directory)) or any((directory / MEMORY / ".history").glob("journal-*.jsonl"))


def _pairs(home: Path, old: KnownProject, project: Path) -> list[tuple[Path, Path]]:
    """Old directory of the home → the path it will stand for: subdirectories first, the project itself last."""
    below = [
        (known.directory, project / known.path.relative_to(old.path))
        for known in list_known_projects(home)
        if old.path in known.path.parents and known.directory != old.directory
    ]
    return [*below, (old.directory, project)]


def migrate(home: Path, old: KnownProject, project: Path, roots: tuple[str, ...] | None, *, merge: bool = False) -> MoveReport:
    """Moves everything; what could not be moved is named in the report. `refuse` was asked before."""
    done = MoveReport(str(old.path), str(project))
    for directory, path in _pairs(home, old, project):
        target = home / "projects" / slug(path)
        _move_memory(directory, target, done, merge=merge)
        for one in session_files(directory):
            _move_session(one, target, done)
        _rename(directory, target, path, roots if path == project else None)
        _tidy(directory)
    return done


def _move_session(one: SessionFiles, target: Path, done: MoveReport) -> None:
    try:
        # The files beside it first: a transcript without them could not show what was spilled.
        if one.directory.is_dir():
            move(one.directory, target / one.directory.name)
        if one.transcript.is_file():
            move(one.transcript, target / one.transcript.name)
            done.sessions += 1
    except DiskError as error:
        done.left.append(str(error))


def _rename(directory: Path, target: Path, path: Path, roots: tuple[str, ...] | None) -> None:
    """The new directory says who it is: the old one's id goes on."""
    old, there = read_identity(directory), read_identity(target)
    named = old or there or ProjectIdentity(1, os.urandom(16).hex(), str(path))
    was = tuple(dict.fromkeys((*named.was, *((old.path,) if old is not None else ()))))
    write_identity(
        target, msgspec.structs.replace(named, path=str(path), roots=roots or named.roots, place=directory_id(path), was=was)
    )


def _move_memory(directory: Path, target: Path, done: MoveReport, *, merge: bool) -> None:
    source, there = directory / MEMORY, target / MEMORY
    if not source.is_dir():
        return
    count = topics_in(directory)
    try:
        if _remembers(target):
            if merge:
                merge_memories(source, there, done)
            elif count:
                done.left.append(f"{there} has memories of its own; --merge puts both together.")
            return
        if there.is_dir():
            remove_tree(there)
        move(source, there)
        done.memories += count
    except DiskError as error:
        done.left.append(str(error))


def _tidy(directory: Path) -> None:
    """The old directory goes when nothing is left in it but its own file and empty directories."""
    if (directory / MEMORY).is_dir() and not any(regular_files(directory / MEMORY)):
        remove_tree(directory / MEMORY)
    if not any(path.name not in _OWN for path in directory.iterdir()) and not (directory / MEMORY).exists():
        remove(directory / FILE_NAME)
        remove_empty(directory)


def root_commits(project: Path, *, environ: Mapping[str, str], seconds: float = GIT_SECONDS) -> tuple[str, ...] | None:
    """The root commits of a repository, asked of git without its configuration, within a time limit.

    Empty outside a repository and in one without a commit; None where it could not be found out: no git, no time, a shallow clone."""
    repository = find_repository(project)
    head = head_of(repository) if repository is not None else None
    if repository is None or head is None or head.commit is None:
        return ()
    program = git_program(environ, outside=repository.top)
    # The first commit of a shallow clone is not the repository's.
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
    merged: list[str] = []  # names that two memories had
    sessions: int = 0
    left: list[str] = []


def merge_memories(source: Path, there: Path, done: MoveReport) -> None:
    """Two memory directories become one: every memory of both, and the history of both.

    Invariants: a memory is written, with the lines the old journal has of it, before the old file goes; two memories of one name
    whose texts differ both stay, the old one with all its keys and where it comes from in its name; what is neither memory, index nor
    journal, or cannot be read as a memory, is moved as it is, or left and reported where such a file is there already; two daily logs of
    one day are joined; only what was taken over is removed.

    A crash at any line leaves memories here, or here and there; the same command goes on, and what is here already is not doubled.
    """
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
        with hold_guard(new.root):
            new.history.catch_up()
            new.history.adopt(_apart(line, new, source.parent.name) for line in lines if line.file not in taken)
    _rest(source, there, taken, done)


def _take(topic: Topic, lines: list[JournalLine], old: DirectoryStore, new: DirectoryStore, done: MoveReport) -> None:
    raw = old.raw(topic.file)
    if raw is None:
        raise DiskError(topic.file, "is gone", "look at the old directory")
    twin = new.named(topic.name)
    if twin is not None and twin.body == topic.body:
        return
    why = ChangeReason("user", f"merged from {done.source}")
    name = topic.name if twin is None else f"{topic.name} (from {Path(done.source).name})"
    draft = Draft(name, topic.type, topic.description, topic.body)
    file = new.plan(draft).topic.file
    with hold_guard(new.root):
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
    if twin is not None and name_key(name) != name_key(topic.name):
        done.merged.append(name)


def _apart(line: JournalLine, new: DirectoryStore, origin: str) -> JournalLine:
    """What was removed there does not stand in for a file of the same name here."""
    return line if new.history.last(line.file) is None else msgspec.structs.replace(line, file=second_file(line.file, origin))


def _log(path: Path, there: Path, file: str) -> None:
    """Two daily logs of one day: the old one's bullets come behind the new one's."""
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
    odd = [f"{path} is no file; it was left there." for path in irregular_files(source)]
    done.left += odd
    if not odd and not any(path.name != INDEX for path in regular_files(source, skip={source / ".history"})):
        remove_tree(source)
