"""The files of Unix sockets: `<home>/sockets/<name>.sock`, each made by the session that listens there and removed by it.

Owns that directory. Invariants: it is ours and 0700, so nobody else reaches a socket in it, whatever their modes; a socket is 0600; none
takes the place of anything that stands there. A crash leaves a file behind that nobody listens at; `sweep` removes those that are
older than a day. Windows has no such sockets here.
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
# What the kernel takes, with the zero at the end: 108 bytes on Linux, 104 elsewhere.
LONGEST = 103
# Between binding and listening a socket answers nobody; no session needs a day for that.
STALE_AFTER = 86_400.0
MOST_SWEPT = 200
# At a time, of those who wait to be let in.
BACKLOG = 8


def supported() -> bool:
    return hasattr(socket, "AF_UNIX")


def bind(home: Path, name: str) -> tuple[socket.socket, Path]:
    """Return a socket that listens, and its path. The caller closes it and calls `remove`."""
    path = home / DIRECTORY / f"{name}{SUFFIX}"
    if len(os.fsencode(path)) > LONGEST:
        raise DiskError(
            str(path), f"is longer than the {LONGEST} bytes a socket's path may have", "set LAMINA_HOME to a shorter one"
        )
    with Dir.open(home / DIRECTORY, create=True) as where:
        _refuse_open(where)
        there = where.stat(path.name)
        if there is not None and stat.S_ISSOCK(there.st_mode) and not _answers(path):
            remove(path)  # the same session, before it crashed: nobody else has its name
        elif there is not None:
            raise PathRefused(str(path), "exists already", "remove what stands there")
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


def _refuse_open(where: Dir) -> None:
    found = os.stat(where.path if where.fd is None else where.fd)
    if stat.S_IMODE(found.st_mode) & 0o077 or found.st_uid != os.geteuid():
        raise PathRefused(where.path, "can be entered by others", "change its mode to 0700")


def remove(path: Path) -> None:
    with suppress(OSError):
        point("socket.unlink")
        os.unlink(path)


def sweep(home: Path, *, now: float) -> int:
    """Removes sockets of sessions that crashed: old, and nobody answers."""
    gone = 0
    with AbsentIsFine(), Dir.open(home / DIRECTORY) as where:
        for name in [entry.name for entry in where.entries()][:MOST_SWEPT]:
            path, found = Path(where.full(name)), where.stat(name)
            if found is None or not stat.S_ISSOCK(found.st_mode) or now - found.st_mtime <= STALE_AFTER:
                continue
            with suppress(OSError):  # one that can't be asked is left
                if not _answers(path):
                    remove(path)
                    gone += 1
    return gone


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.settimeout(1.0)
        try:
            asking.connect(str(path))
        except ConnectionRefusedError:
            return False
    return True
