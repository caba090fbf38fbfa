"""Copies in a directory that nobody else uses yet: thousands of new files at the price of their bytes.

Owns no files for longer than its caller. Invariants: a file is made anew or not at all, mode 0600, through the directory's descriptor
and following no link; nothing that stands there is changed.

A crash at any line leaves some of the copies, the last one perhaps in part: who makes copies removes the whole directory when it finds
one that it did not finish.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from . import crash_points as crash
from .dirfd import CREATE_NEW, Dir, open_plain
from .faults import reporting
from .rootdir import RootDir


def write_new(root: RootDir, contents: Mapping[str, bytes]) -> None:
    """Makes a file for each path. DiskError for one that is there already."""
    with root._directory("") as top:
        for file, data in contents.items():
            if "/" not in file:
                _write(top, file, data)
                continue
            with root._parent(file, create=True) as (where, name):
                _write(where, name, data)


def _write(where: Dir, name: str, data: bytes) -> None:
    with reporting(where.full(name)):
        fd = open_plain(where, name, CREATE_NEW)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[crash.write("copy.write", fd, rest) :]
        finally:
            os.close(fd)
