"""Git follows the journal of a memory (B4): one commit for each change, with who, why and from where, in a repository of its
own.

Owns `.history/git`, a bare repository on the branch `memory`; a repository that a person keeps in the memory directory is never
touched. Invariants: the journal is what counts, git is made from it and can be made again; nothing is committed in a save, only
after the last one, when the memory is closed; no git, no time or an error changes nothing and is tried again next time. A
team's directory is shared, and usually under version control already: there it is left out.

A crash at any line leaves commits missing, which the next time adds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping

from ...core.errors import DiskError
from ...disk.git import git_program, run_git
from ...disk.trees.rootdir import RootDir
from .history import DIRECTORY, History
from .journal import Line

BRANCH = "refs/heads/memory"
GUARD = ".git-follows.lock"
# Closing a memory must not wait for a slow disk for ever; a hundred changes take some twenty milliseconds.
SECONDS = 5.0
# Each time leaves one pack, so that opening a memory never walks through hundreds of directories of loose objects. This many are joined.
MOST_PACKS = 50
_VERSION = re.compile(rb"^Version: ([0-9a-f]+)$", re.MULTILINE)
_SAFE = re.compile(r"(?!\.)(?!.*(?:^|/)\.)[^\0]+")


def follow(root: RootDir, history: History, *, environ: Mapping[str, str], seconds: float = SECONDS) -> int:
    """Commits what the journal has and git has not; how many changes there were. 0 also where git cannot be used."""
    program = git_program(environ)
    if program is None or root.shared:
        return 0
    try:
        with root.guard(GUARD, timeout=0.0):
            return _follow(program, root, history, environ, seconds)
    except (DiskError, OSError):
        return 0


def _follow(program: str, root: RootDir, history: History, environ: Mapping[str, str], seconds: float) -> int:
    git_dir = root.path / DIRECTORY / "git"

    def git(*arguments: str, stdin: bytes = b"") -> bytes | None:
        return run_git(program, arguments, git_dir=git_dir, environ=environ, seconds=seconds, stdin=stdin)

    root.mkdir(f"{DIRECTORY}/git")
    if not (git_dir / "HEAD").exists() and git("init", "-q", "--bare", "--template=", "--initial-branch=memory") is None:
        return 0
    said = git("log", "-1", "--format=%ct%n%B", BRANCH) or b""
    found = _VERSION.search(said)
    lines = list(
        history.lines_after(found[1].decode() if found else "", since=float(said.split(b"\n")[0] or 0) if found else 0.0)
    )
    if not lines:
        return 0
    command = ("-c", "fastimport.unpackLimit=1", "fast-import", "--quiet", "--date-format=raw")
    if git(*command, stdin=b"".join(stream(lines, goes_on=found is not None))) is None:
        return 0
    if sum(name.endswith(".pack") for name in os.listdir(git_dir / "objects" / "pack")) > MOST_PACKS:
        git("repack", "-a", "-d", "-q")
    return len(lines)


def stream(lines: Iterable[Line], *, goes_on: bool) -> Iterator[bytes]:
    """What `git fast-import` reads. Pure."""
    contents: dict[str, str] = {}
    for number, line in enumerate(lines):
        if line.content is not None:
            contents[line.digest] = line.content
        when = f"{max(0, int(line.time))} +0000"
        who = line.why.who if line.why is not None else "outside"
        yield f"commit {BRANCH}\nauthor {who} <{who}@lamina.invalid> {when}\n".encode()
        yield f"committer Lamina <memory@lamina.invalid> {when}\n".encode()
        yield _data(_message(line).encode("utf-8", "replace"))
        if goes_on and number == 0:
            yield f"from {BRANCH}^0\n".encode()
        if _SAFE.fullmatch(line.file):
            if not line.digest:
                yield f"D {_quoted(line.file)}\n".encode("utf-8", "replace")
            elif line.digest in contents:
                yield f"M 100644 inline {_quoted(line.file)}\n".encode("utf-8", "replace")
                yield _data(contents[line.digest].encode("utf-8", "replace"))
        yield b"\n"


def _message(line: Line) -> str:
    why = line.why
    said = f"{line.action} {line.name}" + (f": {why.why}" if why is not None and why.why else "")
    trailers = [f"Version: {line.id}"]
    if why is not None:
        trailers += [f"{key}: {value}" for key, value in (("Session", why.session), ("Message", why.message)) if value]
    return f"{said}\n\n" + "\n".join(trailers) + "\n"


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
