"""A file that is written under a temporary name, by its path."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lamina.disk.dirfd import open_parent
from lamina.disk.temp_files import Temp, staged_at


@contextmanager
def staged(path: Path, data: bytes, *, mtime_ns: int | None = None) -> Iterator[Temp]:
    with (
        open_parent(path, create=True) as (where, name),
        staged_at(where, name, data, durability="full", mtime_ns=mtime_ns) as temp,
    ):
        yield temp
