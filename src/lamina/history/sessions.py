"""Sessions of Lamina, Claude Code, Codex and pi in one list, and each of them as Lamina's records.

Read-only. Invariants: a session names the agent that wrote it; with sources off, only Lamina's home is looked at. A file that is
damaged, vanishes or cannot be read costs itself and a sentence, never the others.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from heapq import nlargest
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from ..core.errors import DiskError
from ..core.records import Record
from ..core.settings import Settings
from ..core.usage import Usage
from ..disk.paths.project import slug
from ..disk.regular_file import open_regular, read_start, stamp_of
from ..disk.settings_files import lamina_home, user_home
from ..disk.transcripts.jsonl import Health, decode_object, raw_lines
from ..disk.transcripts.store import read_origin, read_transcript
from ..language.text import message
from ..memory.store.project_identity import read_identity
from ..memory.store.scopes import locate_memory, project_root
from .catalogue import Catalogue, IndexedFile, Tell, scan_any, with_catalogue
from .claude_code import with_spills
from .codex import CodexReader
from .copies import older_files
from .memories import SourceMemory, read_memories
from .pi import PiReader
from .places import Origin, SourceFile, agent_homes, markdown_files, memory_files, note_unread, session_files
from .rollout_lines import BEGINNING, rollout_lines
from .scan import Costs, Scan, SessionFigures

# A file tells its format in its first lines.
HEAD_BYTES = 64 << 10
HEAD_LINES = 50
# Memory files larger than this are read in part.
MOST_MEMORY = 1 << 20
# Files between two pauses: a few milliseconds of work.
PAUSE_FILES = 200


class SourceSession(msgspec.Struct, frozen=True):
    """A session as a list shows it. `parent` is the session that started this one as a subagent."""

    origin: Origin
    id: str
    path: str
    project: str
    title: str
    started: str
    modified: float
    messages: int
    cost_usd: float | None
    tokens: int
    usage: Usage = Usage()
    size: int = 0
    parent: str = ""
    compactions: int = 0
    skipped: int = 0
    fullest: int = 0  # tokens of the fullest request
    ended: str = ""  # the time of the newest line; a copied file has another time of its own
    newest: tuple[int, str] = (0, "")  # tokens of the last request, and its model
    short_outputs: int = 0  # answers that report far too little output: the session cost more than `cost_usd`
    first: str = ""  # digest of the first answer
    window: int = 0  # tokens that fit into the window, if the session's file states it
    clearings: int = 0
    breaks: int = 0  # cache breaks that no other decision explains
    full: dict[str, int] = {}  # characters in the fullest request by kind
    head: int = 0  # tokens of the first request that no record explains
    subagents: tuple[SourceSession, ...] = ()  # set by fold_subagents

    @property
    def known_cost(self) -> float | None:
        """The cost in dollars; None if a price is unknown or the transcript has no token counts."""
        return self.cost_usd if self.usage.total or self.cost_usd else None

    @property
    def last_active(self) -> float:
        """When the newest line was written. A file that was copied is newer than that."""
        try:
            at = datetime.fromisoformat(self.ended)
            return min(self.modified, (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())
        except (ValueError, OverflowError):
            return self.modified


def homes_of(settings: Settings, environ: Mapping[str, str]) -> dict[Origin, Path]:
    """Return the directories to look at: those of all agents, or Lamina's alone if sources are off."""
    homes = agent_homes(environ)
    return homes if settings.sources else {origin: path for origin, path in homes.items() if origin == "lamina"}


def sessions(
    settings: Settings,
    cwd: str | os.PathLike[str] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    unread: list[str] | None = None,
    tell: Tell = lambda done, of: None,
) -> list[SourceSession]:
    """Return the sessions of the project of `cwd`, or of all, newest first. Directories that cannot be read go to `unread`."""
    variables = os.environ if environ is None else environ
    trouble = [] if unread is None else unread

    def listed(catalogue: Catalogue) -> list[SourceSession]:
        return [session_of(row) for row in follow_sessions(catalogue, settings, variables, trouble, tell)]

    found = [session for session in with_catalogue(lamina_home(variables), listed) if session.messages or session.tokens]
    if cwd is not None:
        inside = project_filter(cwd, variables)
        found = [session for session in found if inside(session)]
    return sorted(found, key=lambda session: (-session.last_active, session.path))


def follow_sessions(
    catalogue: Catalogue,
    settings: Settings,
    environ: Mapping[str, str],
    unread: list[str],
    tell: Tell = lambda done, of: None,
) -> list[IndexedFile]:
    return catalogue.follow("session", session_files(homes_of(settings, environ), unread), tell, unread)


_FIGURES = msgspec.json.Decoder(SessionFigures)


def session_of(row: IndexedFile) -> SourceSession:
    return read_session(row)[0]


def read_session(row: IndexedFile) -> tuple[SourceSession, Costs]:
    """Return the session of a row, and its costs by half hour and model."""
    figures = _FIGURES.decode(row.figures)
    origin: Origin = row.origin
    if origin in ("lamina", "claude-code"):  # a home may hold sessions of both
        origin = "lamina" if figures.ours else "claude-code"
    session = SourceSession(
        origin=origin,
        id=figures.id or Path(row.path).stem,
        path=row.path,
        project=figures.cwd,
        title=figures.title,
        started=figures.started,
        modified=row.stamp.mtime_ns / 1e9,
        messages=figures.messages,
        cost_usd=figures.cost_usd,
        tokens=figures.usage.total,
        usage=figures.usage,
        size=row.stamp.size,
        parent=figures.parent,
        compactions=figures.compactions,
        skipped=figures.skipped,
        fullest=figures.fullest,
        ended=figures.ended,
        newest=figures.newest,
        short_outputs=figures.short_outputs,
        first=figures.first,
        window=figures.window,
        clearings=figures.clearings,
        breaks=figures.breaks,
        full=figures.full,
        head=figures.head,
    )
    return session, figures.costs


def earlier_paths(cwd: str | os.PathLike[str], environ: Mapping[str, str]) -> list[Path]:
    """Return where the project of `cwd` was before `lamina migrate`. A path that another project has now is left out."""
    home = lamina_home(environ)
    known = read_identity(home / "projects" / slug(project_root(cwd))) if home is not None else None
    return [Path(path) for path in known.was if not os.path.lexists(path)] if known is not None else []


def project_slugs(cwd: str | os.PathLike[str], environ: Mapping[str, str]) -> set[str]:
    """Return the names of the directories in which agents keep what belongs to the project of `cwd`."""
    return {slug(path) for path in (Path(os.path.realpath(cwd)), project_root(cwd), *earlier_paths(cwd, environ))}


def project_filter(cwd: str | os.PathLike[str], environ: Mapping[str, str]) -> Callable[[SourceSession], bool]:
    """Return a test for the sessions of the project of `cwd`: in the directory, its repository or a worktree of it, or where it was."""
    root, places, earlier = project_root(cwd), project_slugs(cwd, environ), earlier_paths(cwd, environ)
    roots: dict[str, Path] = {}

    def inside(session: SourceSession) -> bool:
        where = session.project
        if where and where not in roots:
            try:
                roots[where] = project_root(where)
            except ValueError:  # a transcript may name a path that this system cannot have, or cannot encode
                roots[where] = Path(where)
        if where and (roots[where] == root or any(roots[where].is_relative_to(path) for path in earlier)):
            return True
        # A project that was moved keeps its sessions: they lie in its directory, under the name of the old one. Two projects may
        # share a directory, since `a-b` and `a/b` have the same name there; then the recorded directory decides.
        place = _place(session) if session.origin in ("lamina", "claude-code") else ""
        return place in places and (not where or slug(where) != place)

    return inside


def _place(session: SourceSession) -> str:
    """Return the name of the project's directory that contains a transcript."""
    directory = Path(session.path).parent
    return directory.parent.parent.name if session.parent and directory.name == "subagents" else directory.name


def ways_to_open(found: Iterable[SourceSession]) -> dict[str, str]:
    """Return what `lamina sessions show` takes for each session, by its path: its id, or the path where several files have that id."""
    listed = list(found)
    counts = Counter(one.id for one in listed)
    return {one.path: one.id if counts[one.id] == 1 else one.path for one in listed}


def fold_subagents(found: list[SourceSession]) -> list[SourceSession]:
    """Return the sessions that a user started, each with its subagents and with their tokens and costs.

    Lamina's own sessions record those of their subagents themselves. A subagent whose session is gone stands for itself. A copy of a
    subagent's file is not another subagent.
    """
    children: dict[tuple[Origin, str], list[SourceSession]] = {}
    copies = older_files(session for session in found if session.parent)
    for session in found:
        if session.parent and session.path not in copies:
            children.setdefault((session.origin, session.parent), []).append(session)
    # Two files may have the same id; the subagents count once.
    folded = [_with_subagents(one, children.pop((one.origin, one.id), [])) for one in found if not one.parent]
    alone = [child for below in children.values() for child in below]
    return sorted((*folded, *alone), key=lambda session: (-session.last_active, session.path))


def _with_subagents(session: SourceSession, children: list[SourceSession]) -> SourceSession:
    paid = [session, *(children if session.origin != "lamina" else ())]
    costs = [one.cost_usd for one in paid]
    return msgspec.structs.replace(
        session,
        tokens=sum(one.tokens for one in paid),
        cost_usd=None if None in costs else sum(cost or 0.0 for cost in costs),
        usage=sum((one.usage for one in paid), Usage()),
        short_outputs=sum(one.short_outputs for one in paid),
        subagents=tuple(children),
    )


def read(
    session: SourceSession | str | os.PathLike[str], *, health: Health | None = None, with_base: bool = True
) -> Iterator[Record]:
    """Read a session as Lamina's records. A path may be a transcript of any agent: its first lines tell which.

    A fork of Codex begins with the records of its base, or has its own lines alone.
    """
    path = Path(session.path if isinstance(session, SourceSession) else session)
    health = health or Health()
    match format_of(path):
        case "codex":
            return CodexReader().read(rollout_lines(path, BEGINNING if with_base else 0, health), health)
        case "pi":
            return PiReader().read(raw_lines(path, 0, health), health)
        case _:
            return with_spills(read_transcript(path, health=health), path.with_suffix(""))


def format_of(path: Path) -> Origin:
    """Return the agent in whose format a file is written: Codex, pi, or the one that Lamina and Claude Code share."""
    for line in read_start(path, HEAD_BYTES).split(b"\n"):
        row = decode_object(line)
        if row is not None and isinstance(row.get("payload"), dict) and isinstance(row.get("type"), str):
            return "codex"
        if row is not None and row.get("type") == "session" and "cwd" in row:
            return "pi"
        if row is not None:
            break
    return "lamina"


class SessionName(NamedTuple):
    origin: Origin
    id: str


def name_of(path: Path) -> SessionName:
    """Return the agent that wrote a file and the id of its session, as lists name them, by its first lines and its last one."""
    scan, origin = Scan(), format_of(path)
    for _, line in islice(raw_lines(path, 0, Health()), HEAD_LINES):
        scan_any(origin, line, scan, [])
    theirs = origin == "lamina" and not scan.ours and not read_origin(path).ours
    return SessionName("claude-code" if theirs else origin, scan.id or path.stem)


def memories(
    settings: Settings,
    cwd: str | os.PathLike[str] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    unread: list[str] | None = None,
) -> list[SourceMemory]:
    """Return the memories of the project of `cwd`, or of all. Codex keeps one memory for all projects, which is always in."""
    variables = os.environ if environ is None else environ
    trouble = [] if unread is None else unread
    wanted = {*project_slugs(cwd, variables), ""} if cwd is not None else None
    found: list[SourceMemory] = []
    for origin, path, place in _memory_files(settings, variables, cwd, trouble):
        if wanted is not None and place not in wanted:
            continue
        try:
            with open_regular(path, follow=False) as file:
                data, modified = file.read(MOST_MEMORY), os.fstat(file.fileno()).st_mtime
        except FileNotFoundError:
            continue
        except OSError as error:
            note_unread(trouble, path, error)
            continue
        found += read_memories(origin, path, data, modified, place)
    return found


def newest_memories(settings: Settings, count: int, *, environ: Mapping[str, str]) -> list[SourceMemory]:
    """Return the memories of the files that were changed last, newest first. Reads these files only."""
    dated: list[tuple[float, Origin, str, str]] = []
    for origin, path, place in _memory_files(settings, environ, None, []):
        with suppress(OSError):
            dated.append((os.stat(path, follow_symlinks=False).st_mtime, origin, path, place))
    found: list[SourceMemory] = []
    # A memory may name an earlier date itself, and an index file holds none: more files than memories are read.
    for modified, origin, path, place in nlargest(4 * count, dated):
        with suppress(OSError), open_regular(path, follow=False) as file:
            found += read_memories(origin, path, file.read(MOST_MEMORY), modified, place)
    return nlargest(count, found, key=lambda one: one.modified)


def follow_memories(
    catalogue: Catalogue,
    settings: Settings,
    environ: Mapping[str, str],
    cwd: str | os.PathLike[str] | None,
    unread: list[str],
) -> list[tuple[IndexedFile, str]]:
    """Bring the index up to date with all memories, and return their rows with the names of their projects' directories."""
    places: dict[str, str] = {}
    files: list[SourceFile] = []
    for at, (origin, path, place) in enumerate(_memory_files(settings, environ, cwd, unread)):
        if at % PAUSE_FILES == 0:
            catalogue.pause()
        if (stamp := stamp_of(path, follow=False)) is not None:
            places[path] = place
            files.append(SourceFile(origin, path, stamp))
    return [(row, places[row.path]) for row in catalogue.follow("memory", files, unread=unread)]


def _memory_files(
    settings: Settings, environ: Mapping[str, str], cwd: str | os.PathLike[str] | None, unread: list[str]
) -> Iterator[tuple[Origin, str, str]]:
    """Yield all memory files, and those of the project's memory directory if the settings name another one."""
    homes = homes_of(settings, environ)
    if not settings.memory or settings.memory_mode["private"] == "off":
        homes.pop("lamina", None)
    yield from memory_files(homes, unread)
    home = homes.get("lamina")
    if cwd is None or home is None:
        return
    try:
        found = locate_memory(cwd=cwd, home=home, settings=settings, user_home=user_home(environ) or home)
    except DiskError as error:
        unread.append(message(error))
        return
    for directory in (found.path, found.team):
        if directory is not None and home not in directory.parents:
            for path in markdown_files(directory, unread):
                yield "lamina", path, slug(project_root(cwd))
