"""Reading the heads of all topics (S11): what a list, a search and a recall prompt need, without their bodies.

Owns what counts as a topic file and the cache of parsed heads. Invariants: MEMORY.md, `logs/`, hidden names, links and what cannot
be read are left out; a head is at most 30 lines and 4 kB of its file, whatever the file holds; the cache is only a cache: an entry
counts for exactly the file (time, size, inode) it was read from, and a broken cache is an empty one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from operator import attrgetter

import msgspec

from ...core.errors import DiskError
from ...core.front_matter import MOST_BYTES
from ...disk.trees.rootdir import RootDir
from ...disk.trees.scan import ScannedFile, TreeComparison, compare_tree, read_heads
from .topic import DESCRIPTION_CHARS, INDEX, KINDS, Kind, one_line, one_name, read_topic

HEAD_LINES = 30
HEAD_BYTES = MOST_BYTES + 16
# What a search looks at: a memory that has not said by then what it is about is no good memory.
BODY_BYTES = 16 << 10
# What a recall prompt shows; past it the ranker's best 150 and the newest 50 (S11).
MOST_IN_MANIFEST = 200
NEWEST_IN_MANIFEST = 50
# A file may change twice within one tick of the file system's clock, so one that is younger than this is read again next time.
RACY_NS = 20_000_000
CACHE = ".history/heads.msgpack"
# 2: the newest first.
_CACHE_VERSION = 2
_CACHE_BYTES = 64 << 20
# Writing the cache costs as much as reading so many heads: not for a handful.
_WORTH_WRITING = 10
_SKIPPED = frozenset({"logs", "team"})
_INDEX = INDEX.lower()
# `key: value` lines that mean the same to every reader; anything else goes through the YAML reader.
_SIMPLE = re.compile(r"---\n((?:[A-Za-z_]+: [^\W\d_][\w ,;()/+=.'’—–，。、；：（）！？「」《》-]*\n)+)---(?:\n|\Z)")


class Header(msgspec.Struct, frozen=True, array_like=True, gc=False):
    file: str
    name: str
    description: str
    type: Kind | None
    modified: float
    mtime_ns: int
    size: int
    inode: int


_FILE, _MTIME = attrgetter("file"), attrgetter("mtime_ns")


class _Cache(msgspec.Struct, array_like=True):
    version: int
    headers: list[Header]


class Scanner:
    """The heads of one directory; a second look reads only what changed."""

    __slots__ = ("_known", "_loaded", "_root", "_texts", "clock_ns")

    def __init__(self, root: RootDir, *, clock_ns: Callable[[], int] = time.time_ns, after: Scanner | None = None) -> None:
        """`after` looked at the same directory before, through a root that may be closed."""
        self._root = root
        self._known: dict[str, Header] = after._known if after is not None else {}  # the newest first
        self._loaded: bool = after is not None and after._loaded
        self._texts: dict[str, tuple[Header, str]] = after._texts if after is not None else {}
        self.clock_ns = clock_ns

    def files(self) -> list[ScannedFile]:
        return self._compared({}).other

    def headers(self) -> list[Header]:
        """All topics, the newest first."""
        if not self._loaded:
            self._known = self._from_disk()
            self._loaded = True
        began = self.clock_ns()
        kept, wanted = self._compared(self._known)
        if not wanted and len(kept) == len(self._known):
            return list(self._known.values())
        fresh = self._read(wanted)
        found = self._with(newest_first(fresh), kept)
        young = {header.file for header in fresh if began - header.mtime_ns <= RACY_NS}
        self._known = {header.file: header for header in found if header.file not in young}
        if len(fresh) >= _WORTH_WRITING:
            self._to_disk()
        return found

    def _with(self, fresh: list[Header], kept: list[Header]) -> list[Header]:
        """All of them, the newest first. What was known is in that order already, and what is new is mostly newer."""
        if len(kept) == len(self._known) and fresh and kept:
            newest = next(iter(self._known.values()))
            if fresh[-1].mtime_ns > newest.mtime_ns:
                return [*fresh, *self._known.values()]
        return newest_first([*kept, *fresh])

    def _compared(self, known: dict[str, Header]) -> TreeComparison[Header]:
        """Which heads still hold, and which files are to be read."""
        found = compare_tree(self._root, known, suffix=".md", skip=_SKIPPED.__contains__)
        return TreeComparison(found.same, [other for other in found.other if other.file.lower() != _INDEX])

    def bodies(self, headers: Iterable[Header]) -> dict[str, str]:
        """File → the text behind the front matter, cut where a search stops to look; a second look reads only what changed."""
        texts, wanted = dict[str, str](), list[Header]()
        for header in headers:
            known = self._texts.get(header.file)
            if known is not None and known[0] == header:
                texts[header.file] = known[1]
            else:
                wanted.append(header)
        for file, data in read_heads(self._root, [header.file for header in wanted], BODY_BYTES).items():
            texts[file] = _behind_matter(data.decode("utf-8", "replace"))
        # As with heads: what is too young may change unseen.
        settled = (header for header in wanted if header.file in texts and self._known.get(header.file) == header)
        self._texts |= {header.file: (header, texts[header.file]) for header in settled}
        return texts

    def _read(self, wanted: list[ScannedFile]) -> list[Header]:
        heads = read_heads(self._root, [found.file for found in wanted], HEAD_BYTES)
        return [header_of(found, heads[found.file]) for found in wanted if found.file in heads]

    def _from_disk(self) -> dict[str, Header]:
        try:
            data = self._root.read_bytes(CACHE, _CACHE_BYTES)
            cache = msgspec.msgpack.decode(data or b"", type=_Cache)
        except (DiskError, msgspec.DecodeError):
            return {}
        return {header.file: header for header in cache.headers} if cache.version == _CACHE_VERSION else {}

    def _to_disk(self) -> None:
        data = msgspec.msgpack.encode(_Cache(_CACHE_VERSION, list(self._known.values())))
        try:
            self._root.replace(CACHE, data, durability="process")
        except DiskError:
            # A directory that cannot be written is still read.
            return


def newest_first(headers: list[Header]) -> list[Header]:
    # Two stable sorts by one attribute each are faster than one by a pair.
    headers.sort(key=_FILE)
    headers.sort(key=_MTIME, reverse=True)
    return headers


def is_topic(file: str) -> bool:
    """Whether a file of this name would be found by a scan."""
    parts = file.split("/")
    hidden = any(part.startswith(".") for part in parts)
    return file.endswith(".md") and not hidden and file.lower() != _INDEX and _SKIPPED.isdisjoint(parts[:-1][:1])


def _behind_matter(text: str) -> str:
    end = text.find("\n---", 3) if text.startswith("---") else -1
    return text[end + 4 :] if end >= 0 else text


def header_of(found: ScannedFile, data: bytes) -> Header:
    text = data.decode("utf-8", "replace")
    mtime = found.mtime_ns / 1e9
    if (simple := _SIMPLE.match(text)) is not None and simple[1].count("\n") <= HEAD_LINES - 2:
        fields = dict(line.split(": ", 1) for line in simple[1].splitlines())
        if fields.keys() <= {"name", "description", "type"} and len(fields) == simple[1].count("\n"):
            return _simple(found, fields, mtime)
    head = "".join(text.splitlines(keepends=True)[:HEAD_LINES])
    topic = read_topic(found.file, head, mtime)
    return Header(found.file, topic.name, topic.description, topic.type, topic.modified, *found[1:])


def _simple(found: ScannedFile, fields: dict[str, str], mtime: float) -> Header:
    name = one_name(fields.get("name", "")) or read_topic(found.file, "", 0).name
    kind: Kind | None = next((kind for kind in KINDS if kind == fields.get("type", "").strip()), None)
    description = one_line(fields.get("description", ""), DESCRIPTION_CHARS)
    return Header(found.file, name, description, kind, mtime, *found[1:])


def manifest(headers: Iterable[Header], best: Callable[[list[Header], int], Iterable[Header]] | None = None) -> list[Header]:
    """The heads a recall prompt shows. `best` picks the ranker's choice where there are more than fit; without it the newest count."""
    newest = sorted(headers, key=lambda header: (-header.mtime_ns, header.file))
    if len(newest) <= MOST_IN_MANIFEST or best is None:
        return newest[:MOST_IN_MANIFEST]
    chosen = newest[:NEWEST_IN_MANIFEST]
    rest = newest[NEWEST_IN_MANIFEST:]
    room = MOST_IN_MANIFEST - NEWEST_IN_MANIFEST
    return [*chosen, *list(best(rest, room))[:room]]
