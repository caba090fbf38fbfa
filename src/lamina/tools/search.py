"""The files below a directory, and the search in them without ripgrep: a plain loop that prints the same lines.

The loop runs in a separate process, because a pattern like `(a+)+$` can keep `re` busy for years, and only a process can be stopped
then. This module uses the standard library only, so that the process starts about as fast as an interpreter.

An output line is `path NUL number : text`, with `-` instead of the colon for a line of context, or `path NUL count` if lines
are only counted. Exit codes: 0 for matches, 1 for none, 2 for an invalid pattern, with a sentence on standard error.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Container, Iterator
from contextlib import suppress
from itertools import accumulate, islice
from typing import NamedTuple

from ..core.globs import compile_name, compile_path, expand_braces, match_path, split_path
from ..disk.regular_file import open_regular

# Rarely wanted, and often larger than everything else together.
SKIPPED = (".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__")
# All entries of a directory are in memory at once, to be sorted.
_MOST_ENTRIES = 200_000
# A file is in memory as a whole. Of a larger one, which is no source file, the beginning is searched.
MOST_BYTES = 32 << 20
_PAGES = 1 << 14
# Longer lines are cut before they leave the process; the caller shows even less of them.
MAX_LINE = 4_096
# A pattern that matches a single line also matches in a text of many lines, so one search can rule out a whole file. The
# exceptions are anchors to the text's ends, look-around, and possessive or atomic groups and repetitions.
_LINE_BOUND = re.compile(r"\\[AZ]|\(\?[^:P]|[+*?}]\+")


class SearchSpec(NamedTuple):
    """A search request; the field names are those of the JSON request."""

    root: str
    name: str = ""  # one file in the root; empty for all files below it
    pattern: str = ""
    mode: str = "files_with_matches"  # or count, content
    ignore_case: bool = False
    multiline: bool = False
    before: int = 0
    after: int = 0
    globs: tuple[str, ...] = ()
    names: tuple[str, ...] = ()  # globs for file names, from a file type


def walk(root: str, skipped: Container[str] = SKIPPED) -> Iterator[os.DirEntry[str] | None]:
    """Yield everything below a directory but directories, sorted by path, and None for each directory, so that the caller can check the
    clock. Links are never followed, so the walk stays below its root and ends."""
    stack: list[str | os.DirEntry[str]] = [root]
    while stack:
        place = stack.pop()
        if isinstance(place, os.DirEntry):
            if not place.is_dir(follow_symlinks=False):
                yield place
                continue
            if place.name in skipped:
                continue
        yield None
        with suppress(OSError), os.scandir(place) as listing:
            entries = sorted(islice(listing, _MOST_ENTRIES), key=lambda entry: entry.name, reverse=True)
            stack += entries


def search(spec: SearchSpec, write: Callable[[bytes], object]) -> bool:
    """Write the lines of all files that match, and return whether there are any. Raises re.error for an invalid pattern."""
    flags = (re.IGNORECASE if spec.ignore_case else 0) | re.MULTILINE | (re.DOTALL if spec.multiline else 0)
    pattern, line_bound, any_matches = re.compile(spec.pattern, flags), _LINE_BOUND.search(spec.pattern), False
    for path in [spec.name] if spec.name else _wanted_files(spec):
        text = _read_text(os.path.join(spec.root, path))
        if not text or not (line_bound or pattern.search(text)):
            continue
        lines = text.removesuffix("\n").split("\n")
        if spec.multiline:
            ends = list(accumulate(len(line) + 1 for line in lines))
            spans = [match.span() for match in pattern.finditer(text.removesuffix("\n"))]
            count = len(spans)
            matching = {
                number
                for start, end in spans
                for number in range(bisect_right(ends, start), bisect_right(ends, max(start, end - 1)) + 1)
            }
        else:
            matching = {number for number, line in enumerate(lines) if pattern.search(line)}
            count = len(matching)
        any_matches = any_matches or count > 0
        if spec.mode != "content":
            if count:
                write(os.fsencode(path) + b"\0%d\n" % count)
            continue
        around = (range(max(0, number - spec.before), min(len(lines), number + spec.after + 1)) for number in matching)
        for number in sorted({number for numbers in around for number in numbers}):
            row = f"\0{number + 1}{':' if number in matching else '-'}{lines[number][:MAX_LINE]}\n"
            write(os.fsencode(path) + row.encode("utf-8", "replace"))
    return any_matches


def _wanted_files(spec: SearchSpec) -> Iterator[str]:
    """Yield the relative paths of the files to search. As in ripgrep, the last glob that matches decides; `!` in front excludes."""
    globs = list[tuple[bool, tuple[re.Pattern[str] | None, ...]]]()
    for glob in [alternative for text in spec.globs for alternative in expand_braces(text)]:
        parts = split_path(glob.removeprefix("!"))
        # A glob without a slash is for names at any depth.
        anywhere = ("**",) if len(parts) == 1 and not glob.startswith(("/", "!/")) else ()
        # An excluded directory is excluded with everything in it.
        below = ("**",) if glob.startswith("!") else ()
        globs.append((not glob.startswith("!"), tuple(compile_path((*anywhere, *parts, *below)))))
    types = [compile_name(name) for name in spec.names]
    only_some, start = any(include for include, _ in globs), len(os.path.join(spec.root, ""))
    for entry in walk(spec.root):
        if entry is None or not entry.is_file(follow_symlinks=False):
            continue
        path = entry.path[start:].split(os.sep)
        verdict = next((include for include, glob in reversed(globs) if match_path(glob, path)), not only_some)
        if verdict and (not types or any(name.match(entry.name) for name in types)):
            yield "/".join(path)


def _read_text(path: str) -> str:
    """Return a file as text with plain line ends; nothing if it is unreadable or contains a NUL byte, so is no text."""
    try:
        with open_regular(path) as file:
            # No more memory than the file needs, and a few pages for a file of the kernel, which has no size.
            data = file.read(min(MOST_BYTES, os.fstat(file.fileno()).st_size + _PAGES))
    except OSError:
        return ""
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if b"\0" in data and not wide:
        return ""
    return data.decode("utf-16" if wide else "utf-8-sig", "replace").replace("\r\n", "\n").removesuffix("\r")


def main() -> None:
    """Run `python -c … PACKAGE REQUEST`. The request is a JSON object with the fields of SearchSpec."""
    try:
        matches = search(SearchSpec(**json.loads(sys.argv[2])), sys.stdout.buffer.write)
    except (re.error, RecursionError, OverflowError) as error:
        print(f"regex parse error: {error}", file=sys.stderr)
        sys.exit(2)
    sys.stdout.buffer.flush()
    sys.exit(0 if matches else 1)
