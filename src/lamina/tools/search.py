"""Search without ripgrep: a worker process that prints the same lines as ripgrep.

It is a process because a pattern like `(a+)+$` can keep `re` busy for years, and only a process can be stopped then. It uses
the standard library only, so that it starts about as fast as an interpreter.

An output line is `path NUL number : text`, with `-` instead of the colon for a line of context, or `path NUL count` if lines
are only counted. Exit codes: 0 for matches, 1 for none, 2 for an invalid pattern, with a sentence on standard error. Memory
is bounded: files are read in blocks of whole lines. For matches that may span lines a file is read whole, up to a size
limit.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from ..core.globs import compile_name
from ..disk.regular_file import open_regular
from .walk import walk

_BLOCK = 4 << 20
# Matches that span lines need the whole file in memory; a larger file is not a source file.
MAX_MULTILINE = 16 << 20
# Longer lines are cut before they leave the worker; the caller shows even less of them.
MAX_LINE = 4_096
# A pattern that matches a single line also matches in a text of many lines, so one search can rule out a whole block. The
# exceptions are anchors to the text's ends, look-around, and possessive or atomic groups and repetitions.
_LINE_BOUND = re.compile(r"\\[AZ]|\(\?[^:P]|[+*?}]\+")


class SearchSpec(NamedTuple):
    """A search request; the field names are those of the JSON request."""

    root: str
    name: str = ""  # one file in the root; empty for all files below it
    pattern: str = ""
    mode: str = "files"  # files | count | content
    ignore_case: bool = False
    multiline: bool = False
    before: int = 0
    after: int = 0
    globs: tuple[str, ...] = ()
    names: tuple[str, ...] = ()  # globs for file names, from a file type


class FileSearch:
    def __init__(self, spec: SearchSpec, write: Callable[[bytes], object]) -> None:
        flags = (re.IGNORECASE if spec.ignore_case else 0) | re.MULTILINE | (re.DOTALL if spec.multiline else 0)
        self.spec = spec
        self.found = False
        self._pattern = re.compile(spec.pattern, flags)
        self._line_bound = _LINE_BOUND.search(spec.pattern) is not None
        self._write = write

    def run(self) -> None:
        for path in self._paths():
            self._file(path)

    def _paths(self) -> Iterator[str]:
        if self.spec.name:
            yield self.spec.name
            return
        types = [compile_name(glob) for glob in self.spec.names]
        for found in walk(self.spec.root, globs=self.spec.globs):
            if found is not None and (not types or any(glob.match(found.entry.name) for glob in types)):
                yield "/".join(found.parts)

    def _file(self, path: str) -> None:
        try:
            with open_regular(os.path.join(self.spec.root, path)) as file:
                count = self._whole(file.fileno(), path) if self.spec.multiline else self._lines(file.fileno(), path)
        except OSError:
            # The file is gone or not readable: skip it, as ripgrep does.
            return
        self.found = self.found or count > 0
        if count and self.spec.mode != "content":
            self._write(os.fsencode(path) + b"\0%d\n" % count)

    def _lines(self, fd: int, path: str) -> int:
        """Search line by line and return the number of matching lines."""
        spec, search = self.spec, self._pattern.search
        before = deque[tuple[int, str]](maxlen=spec.before)
        number = count = after = 0
        for text in _blocks(fd):
            if not after and not self._line_bound and not search(text):
                lines = text.split("\n") if spec.before else ()
                if lines:
                    first = number + max(0, len(lines) - spec.before)
                    before.extend(enumerate(lines[-spec.before :], first + 1))
                number += len(lines) or text.count("\n") + 1
                continue
            for line in text.split("\n"):
                number += 1
                if search(line):
                    count += 1
                    if spec.mode == "files":
                        return count
                    after = spec.after
                    self._emit(path, [*((*earlier, "-") for earlier in before), (number, line, ":")])
                    before.clear()
                elif after:
                    after -= 1
                    self._emit(path, [(number, line, "-")])
                else:
                    before.append((number, line))
        return count

    def _whole(self, fd: int, path: str) -> int:
        """Search for matches that may span lines and return their number."""
        text = "\n".join(_blocks(fd, most=MAX_MULTILINE))
        lines, hits, count, start_of = text.split("\n"), set[int](), 0, 0
        number = 0
        for found in self._pattern.finditer(text):
            count += 1
            if self.spec.mode == "files":
                break
            number += text.count("\n", start_of, found.start())
            start_of = found.start()
            spanned = text.count("\n", found.start(), max(found.start(), found.end() - 1))
            hits.update(range(number, number + spanned + 1))
        if self.spec.mode == "content":
            self._emit(path, _around(lines, hits, self.spec.before, self.spec.after))
        return count

    def _emit(self, path: str, lines: list[tuple[int, str, str]]) -> None:
        if self.spec.mode != "content":
            return
        name = os.fsencode(path)
        for number, line, sign in lines:
            self._write(name + f"\0{number}{sign}{line[:MAX_LINE]}\n".encode("utf-8", "replace"))


def _around(lines: list[str], hits: set[int], before: int, after: int) -> list[tuple[int, str, str]]:
    shown = sorted({index for hit in hits for index in range(max(0, hit - before), min(len(lines), hit + after + 1))})
    return [(index + 1, lines[index], ":" if index in hits else "-") for index in shown]


def _blocks(fd: int, *, most: int | None = None) -> Iterator[str]:
    """Yield the file as blocks of whole lines, without the last line end. A NUL byte ends it, because the file is not text."""
    parts = _parts(fd)
    first = next(parts, b"")
    codec = "utf-16-le" if first.startswith(b"\xff\xfe") else "utf-16-be" if first.startswith(b"\xfe\xff") else "utf-8"
    first = first.removeprefix(codecs.BOM_UTF8) if codec == "utf-8" else first[2:]
    decoder = codecs.getincrementaldecoder(codec)("replace")
    carry, size = "", 0
    for part in chain((first,), parts):
        size += len(part)
        if (codec == "utf-8" and b"\0" in part) or (most is not None and size > most):
            return
        text = decoder.decode(part)
        if len(carry) >= _BLOCK:
            # Only the beginning of a line longer than a block is searched.
            text = text[end:] if (end := text.find("\n")) >= 0 else ""
        text = carry + text
        end = text.rfind("\n")
        if end >= 0:
            yield _unix(text[:end])
        carry = text[end + 1 :]
    carry += decoder.decode(b"", final=True)
    if carry:
        yield _unix(carry)


def _parts(fd: int) -> Iterator[bytes]:
    """Yield the file's bytes. A short read is the end of a file, so most files take a single call."""
    while part := os.read(fd, _BLOCK):
        yield part
        if len(part) < _BLOCK:
            return


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").removesuffix("\r") if "\r" in text else text


def main() -> None:
    """Run `python -c … PACKAGE REQUEST`. The request is a JSON object with the fields of SearchSpec."""
    request: dict[str, Any] = json.loads(sys.argv[2])
    out = sys.stdout.buffer
    try:
        search = FileSearch(SearchSpec(**request), out.write)
    except (re.error, RecursionError, OverflowError) as error:
        print(f"regex parse error: {error}", file=sys.stderr)
        sys.exit(2)
    search.run()
    out.flush()
    sys.exit(0 if search.found else 1)
