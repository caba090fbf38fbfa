"""Git mirror of a memory's journal: one commit for each change, with author, reason and source, in a separate repository.

It owns `.history/git`, a bare repository on the branch `memory`; a repository that the user keeps in the memory directory is
never touched. Invariants: the journal is authoritative, and git can always be rebuilt from it. Commits are made when the
memory is closed, never during a save. A missing git, a timeout or an error changes nothing, and the next close tries again.
Team directories are shared and usually under version control already, so they get no mirror.

A crash at any line leaves commits missing, which the next close adds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping

from ...core.errors import DiskError
from ...disk.git import git_program, run_git
from ...disk.trees.rootdir import RootDir
from .contract import ChangeReason
from .history import HISTORY_DIRECTORY, MemoryHistory
from .journal import JournalLine

BRANCH = "refs/heads/memory"
GUARD = ".git-follows.lock"
# Closing a memory must not wait forever for a slow disk; a hundred changes take about twenty milliseconds.
SECONDS = 5.0
# Each close leaves one pack, so that opening a memory never walks through hundreds of directories of loose objects. Beyond this
# number they are joined.
MOST_PACKS = 50
_VERSION = re.compile(rb"^Version: ([0-9a-f]+)$", re.MULTILINE)
_SAFE = re.compile(r"(?!\.)(?!.*(?:^|/)\.)[^\0]+")


def sync_git(root: RootDir, history: MemoryHistory, *, environ: Mapping[str, str], seconds: float = SECONDS) -> int:
    """Commit the journal lines that git lacks, and return their number; 0 also if git cannot be used."""
    program = git_program(environ)
    if program is None or root.shared:
        return 0
    try:
        with root.guard(GUARD, timeout=0.0):
            return _follow(program, root, history, environ, seconds)
    except (DiskError, OSError):
        return 0


def _follow(program: str, root: RootDir, history: MemoryHistory, environ: Mapping[str, str], seconds: float) -> int:
    git_dir = root.path / HISTORY_DIRECTORY / "git"

    def git(*arguments: str, stdin: bytes = b"") -> bytes | None:
        return run_git(program, arguments, git_dir=git_dir, environ=environ, seconds=seconds, stdin=stdin)

    root.mkdir(f"{HISTORY_DIRECTORY}/git")
    if not (git_dir / "HEAD").exists() and git("init", "-q", "--bare", "--template=", "--initial-branch=memory") is None:
        return 0
    newest = git("log", "-1", "--format=%ct%n%B", BRANCH) or b""
    found = _VERSION.search(newest)
    since = float(newest.split(b"\n")[0] or 0) if found else 0.0
    lines = history.lines_after(found[1].decode() if found else "", since=since)
    if not lines:
        return 0
    command = ("-c", "fastimport.unpackLimit=1", "fast-import", "--quiet", "--date-format=raw")
    if git(*command, stdin=b"".join(fast_import_stream(lines, goes_on=found is not None))) is None:
        return 0
    if sum(name.endswith(".pack") for name in os.listdir(git_dir / "objects" / "pack")) > MOST_PACKS:
        git("repack", "-a", "-d", "-q")
    return len(lines)


def fast_import_stream(lines: Iterable[JournalLine], *, goes_on: bool) -> Iterator[bytes]:
    """Yield the input of `git fast-import` for lines with their contents. Pure."""
    for number, line in enumerate(lines):
        when = f"{max(0, int(line.time))} +0000"
        who = line.why.who if line.why is not None else "outside"
        yield f"commit {BRANCH}\nauthor {who} <{who}@lamina.invalid> {when}\n".encode()
        yield f"committer Lamina <memory@lamina.invalid> {when}\n".encode()
        yield _data(_message(line).encode("utf-8", "replace"))
        if goes_on and number == 0:
            yield f"from {BRANCH}^0\n".encode()
        if line.action == "rename" and _SAFE.fullmatch(line.was):
            yield f"D {_quoted(line.was)}\n".encode("utf-8", "replace")
        if _SAFE.fullmatch(line.file):
            if not line.digest:
                yield f"D {_quoted(line.file)}\n".encode("utf-8", "replace")
            elif line.content is not None:
                yield f"M 100644 inline {_quoted(line.file)}\n".encode("utf-8", "replace")
                yield _data(line.content.encode("utf-8", "replace"))
        yield b"\n"


def _message(line: JournalLine) -> str:
    why = line.why or ChangeReason("user")
    subject = f"{line.action} {line.name}" + (f": {why.why}" if why.why else "")
    trailers = (("Version", line.id), ("Session", why.session), ("Message", why.message))
    return f"{subject}\n\n" + "".join(f"{key}: {value}\n" for key, value in trailers if value)


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
