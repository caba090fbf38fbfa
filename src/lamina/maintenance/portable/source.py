"""Reading a source: one file or a directory of text files, bounded, through no link inside it.

Owns what of a foreign place is opened. Invariants: a source of any size costs bounded memory; only regular files are read, and nothing
blocks; a file that is too large or no text is named and skipped in a directory, and is an error where it is the source itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ...core.errors import DiskError, InputError
from ...disk.faults import reporting
from ...disk.files import read_head
from ...disk.trees.rootdir import RootDir
from ...disk.user_files import open_regular
from .formats import Source

# Ten thousand memories of ordinary length are a tenth of it.
MOST_BYTES = 64 << 20
# A memory file beyond this is none: the store's own limit is a quarter of it.
MOST_FILE_BYTES = 1 << 20
MOST_FILES = 20_000
# Codex keeps its notes three deep.
DEEPEST = 5
SUFFIXES = (".md",)


def read_source(path: Path) -> tuple[Source, list[str]]:
    """The source, and a sentence for each file in it that was skipped. InputError or DiskError when there is nothing to read."""
    name = os.fspath(path)
    if "\0" in name:
        raise InputError(ascii(name), "is no path")
    real = Path(os.path.realpath(path))
    if real.is_dir():
        return _directory(real, name)
    fd = open_regular(real)
    if fd is None:
        raise InputError(name, "is not there", "name a file or a directory to import")
    try:
        with reporting(name):
            size, changed = os.fstat(fd).st_size, os.fstat(fd).st_mtime
            data = read_head(fd, MOST_BYTES + 1) if size <= MOST_BYTES else b""
    finally:
        os.close(fd)
    if size > MOST_BYTES or len(data) > MOST_BYTES:
        raise InputError(name, f"is larger than {MOST_BYTES >> 20} MB", "import it in parts")
    text = _text(data)
    if text is None:
        raise InputError(name, "is no text in UTF-8", "name the file that holds the memories")
    return Source(name, {real.name: text}, {real.name: changed}, False), []


def _text(data: bytes) -> str | None:
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _directory(real: Path, name: str) -> tuple[Source, list[str]]:
    files, times, problems, total = dict[str, str](), dict[str, float](), list[str](), 0
    with RootDir.open(real, create=False, shared=True) as root:
        for file, size, changed in _walk(root, "", DEEPEST):
            total += min(size, MOST_FILE_BYTES)
            if len(files) >= MOST_FILES or total > MOST_BYTES:
                limit = f"{MOST_FILES:,} files or {MOST_BYTES >> 20} MB"
                raise InputError(name, f"holds more than {limit} of text", "name the memory directory itself")
            found = _file(root, file, size)
            if isinstance(found, str):
                files[file], times[file] = found, changed
            else:
                problems.append(f"{file!a}: {found[0]}")
    return Source(name, files, times, True), problems


def _walk(root: RootDir, rel: str, depth: int) -> Iterator[tuple[str, int, float]]:
    for entry in root.listdir(rel):
        below = f"{rel}/{entry.name}" if rel else entry.name
        if entry.name.startswith("."):
            continue
        if entry.is_dir and depth > 1:
            yield from _walk(root, below, depth - 1)
        elif not entry.is_dir and entry.name.endswith(SUFFIXES):
            yield below, entry.size, entry.mtime_ns / 1e9


def _file(root: RootDir, file: str, size: int) -> str | tuple[str]:
    """The text, or what is wrong with it."""
    if size > MOST_FILE_BYTES:
        return (f"is larger than {MOST_FILE_BYTES >> 20} MB and is left out",)
    try:
        data = root.read_bytes(file, MOST_FILE_BYTES)
    except DiskError as error:
        return (f"{error.problem} and is left out",)
    text = None if data is None else _text(data)
    return ("is no text in UTF-8 and is left out",) if text is None else text
