"""Unix sockets: `<home>/sockets/<name>.sock`, each created and removed by the session that listens on it.

Owns that directory. Invariants: the directory is ours and has mode 0700, so no other user can reach a socket in it; a socket has
mode 0600 and never replaces an existing file. A crash leaves a socket file without a listener; `sweep` removes those older than a
day. Not supported on Windows.
"""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from pathlib import Path

from ...core.errors import DiskError, PathRefused
from ..crash_points import point
from ..dirfd import PRIVATE_FILE, Dir
from ..faults import AbsentIsFine, reporting

DIRECTORY = "sockets"
SUFFIX = ".sock"
# The kernel's limit, including the final NUL, is 108 bytes on Linux and 104 elsewhere.
LONGEST = 103
# A socket does not answer between bind and listen, but that never takes a day.
STALE_AFTER = 86_400.0
MOST_SWEPT = 200
# Number of open sockets named to a model that asked for an unknown recipient.
MOST_LISTED = 10
# Maximum number of connections waiting to be accepted.
BACKLOG = 8


def supported() -> bool:
    return hasattr(socket, "AF_UNIX")


def bind(home: Path, name: str) -> tuple[socket.socket, Path]:
    """Return a listening socket and its path. The caller closes the socket and calls `remove`."""
    path = home / DIRECTORY / f"{name}{SUFFIX}"
    if len(os.fsencode(path)) > LONGEST:
        raise DiskError(
            str(path), f"is longer than the {LONGEST} bytes allowed for a socket path", "set LAMINA_HOME to a shorter path"
        )
    with Dir.open(home / DIRECTORY, create=True) as where:
        directory = os.stat(where.path if where.fd is None else where.fd)
        if stat.S_IMODE(directory.st_mode) & 0o077 or directory.st_uid != os.geteuid():
            raise PathRefused(where.path, "is accessible to other users", "change its mode to 0700")
        info = where.stat(path.name)
        if info is not None and stat.S_ISSOCK(info.st_mode) and not _answers(path):
            remove(path)  # left by this session before a crash: names are unique to a session
        elif info is not None:
            raise PathRefused(str(path), "already exists", "remove it")
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with reporting(path):
                point("socket.bind")
                listening.bind(str(path))
                point("socket.chmod")
                os.chmod(path, PRIVATE_FILE)
                listening.listen(BACKLOG)
        except BaseException:
            listening.close()
            raise
    return listening, path


def remove(path: Path) -> None:
    with suppress(OSError):
        point("socket.unlink")
        os.unlink(path)


def list_sockets(home: Path) -> list[Path]:
    """Return the sockets that answer, at most MOST_LISTED, sorted."""
    sockets: list[Path] = []
    with AbsentIsFine(), suppress(OSError, DiskError), Dir.open(home / DIRECTORY) as where:
        for entry in where.entries():
            path, info = Path(where.full(entry.name)), where.stat(entry.name)
            if len(sockets) < MOST_LISTED and info is not None and stat.S_ISSOCK(info.st_mode):
                with suppress(OSError):
                    sockets += [path] if _answers(path) else []
    return sorted(sockets)


def sweep(home: Path, *, now: float) -> int:
    """Remove the sockets of crashed sessions: those that are old and do not answer. Returns their number."""
    removed = 0
    with AbsentIsFine(), Dir.open(home / DIRECTORY) as where:
        for name in [entry.name for entry in where.entries()][:MOST_SWEPT]:
            path, info = Path(where.full(name)), where.stat(name)
            if info is None or not stat.S_ISSOCK(info.st_mode) or now - info.st_mtime <= STALE_AFTER:
                continue
            with suppress(OSError):  # leave a socket that cannot be checked
                if not _answers(path):
                    remove(path)
                    removed += 1
    return removed


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(1.0)
        try:
            asking.connect(str(path))
        except ConnectionRefusedError:
            return False
    return True
