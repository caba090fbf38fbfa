"""The topic files of a memory directory: found by name, read, and their heads scanned.

It decides what counts as a topic file and which file a name means, and caches parsed heads. Invariants: MEMORY.md, `logs/`,
hidden names, links and unreadable files are left out. A head is at most 30 lines and 4 kB of its file, whatever the file
contains. A cache entry is valid for exactly the file (time, size, inode) it was read from, and a broken cache counts as
empty. Two names are one memory only if `name_key` gives the same key, whatever their files are called. A file that cannot be
journaled (too large, or not plain text) is read but never changed. Only the cache is written here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar
from zlib import crc32

import msgspec

from ...core.claude_home import new_memory_file
from ...core.decoding import UNDECODABLE
from ...core.errors import DiskError
from ...core.front_matter import MOST_BYTES, simple_fields
from ...disk.trees.rootdir import RootDir
from ...disk.trees.scan import ScannedFile, TreeComparison, compare_tree, read_heads
from ...language.text import Text
from .contract import MOST_READ, READ_IN_PART
from .topic import (
    DESCRIPTION_CHARS,
    INDEX,
    KINDS,
    Kind,
    Topic,
    clean_name,
    file_name,
    fold_name,
    name_key,
    one_line,
    read_topic,
    without_bookkeeping,
)

if TYPE_CHECKING:  # loaded only for a large directory
    from .search_index import SearchIndex

T = TypeVar("T")

HEAD_LINES = 30
HEAD_BYTES = MOST_BYTES + 16
# The part that a search looks at: a good memory has stated its subject by then.
BODY_BYTES = 16 << 10
# The number of heads in a recall prompt: of more memories, the newest 50 and the ranker's best 150.
MOST_IN_MANIFEST = 200
NEWEST_IN_MANIFEST = 50
# A file may change twice within one tick of the file system's clock, so a younger file is read again next time.
RACY_NS = 20_000_000
CACHE = ".history/heads.msgpack"
INDEX_FILE = ".history/search.sqlite"
# A directory gets an index at this size. Below it, a search reads all texts in less time than a database takes to open.
LARGE = 1_000
# Version 2 stores the newest first; version 3 begins with a checksum.
_CACHE_VERSION = 4
_CHECK_BYTES = 4
CACHE_BYTES = 64 << 20
# Writing the cache costs as much as reading this many heads.
_WORTH_WRITING = 10
_SKIPPED = frozenset({"logs", "team"})
_INDEX = INDEX.lower()


class TopicHeader(msgspec.Struct, frozen=True, array_like=True, gc=False):
    file: str
    name: str
    description: str
    type: Kind | None
    modified: float
    mtime_ns: int
    size: int
    inode: int


_FILE, _MTIME = attrgetter("file"), attrgetter("mtime_ns")


class TopicFiles:
    """The topics of one directory; a second scan reads only what changed."""

    __slots__ = ("_index", "_is_held", "_known", "_loaded", "_texts", "_unchanged", "clock_ns", "read_only", "root")

    def __init__(
        self,
        root: RootDir,
        *,
        clock_ns: Callable[[], int] = time.time_ns,
        after: TopicFiles | None = None,
        read_only: bool = False,
        unchanged: bool = False,
    ) -> None:
        """Use `root`. `after` is an earlier instance for the same directory, whose root may be closed. `read_only` writes no
        cache. `unchanged` takes the heads that `after` found, without a look at the files."""
        self.root = root
        self._unchanged = unchanged and after is not None and after._loaded
        self.read_only = read_only
        self._known: dict[str, TopicHeader] = after._known if after is not None else {}  # newest first
        self._loaded: bool = after is not None and after._loaded
        self._texts: dict[str, tuple[TopicHeader, str]] = after._texts if after is not None else {}
        self._index: SearchIndex | None = None
        self._is_held = False  # whether the index was found current under the guard, which is still held
        self.clock_ns = clock_ns

    def close(self) -> None:
        self._close_index()
        self.root.close()

    # The index of a large directory

    def index(self, *, create: bool = False, for_names: bool = False) -> SearchIndex | None:
        """Return the search index, up to date; None for a small directory, or if the index cannot be used. `for_names` accepts
        one that may miss what another program changed in place in the last minutes."""
        if self._is_held:
            return self._index
        if self._has_index(create=create):
            from ...disk.database import DAMAGE

            try:
                assert self._index is not None
                if not self._index.is_current(self._now(), for_names=for_names):
                    self._index.compare(self.headers, self.read_bodies, self._now())
            except DAMAGE:
                self.drop_index()
        return self._index

    def read_index(self, read: Callable[[SearchIndex], T], *, create: bool = False, for_names: bool = False) -> T | None:
        """Return what `read` finds in the search index; None without a usable one."""
        if (index := self.index(create=create, for_names=for_names)) is None:
            return None
        from ...disk.database import DAMAGE

        try:
            return read(index)
        except DAMAGE:
            self.drop_index()
            return None

    def hold_index(self) -> bool:
        """Bring the index up to date for a change under the guard, and return whether there is one. Until `release_index`, no
        look at the directory is needed: no other process of ours changes it."""
        self._is_held = self.index(for_names=True) is not None
        return self._is_held

    def release_index(self, changed: Collection[str]) -> None:
        """Enter the files that the change under the guard touched."""
        was_held, self._is_held = self._is_held, False
        if not was_held or not changed:
            return
        from ...disk.database import DAMAGE

        try:
            if self._index is not None:
                entries = self._scanned(changed)
                data = read_heads(self.root, [entry.file for entry in entries], BODY_BYTES)
                headers = [read_header(entry, data[entry.file][:HEAD_BYTES]) for entry in entries if entry.file in data]
                self._index.update(changed, headers, {file: read_body(text) for file, text in data.items()})
        except DAMAGE:
            self.drop_index()

    def is_listed(self, file: str) -> bool:
        """Tell whether a file of this name, in any spelling, is in a large directory. True if that is unknown."""
        return self._lists(file) is not False

    def _lists(self, file: str) -> bool | None:
        """Tell whether the index has a file of this name, in any spelling; None without an index."""
        return self.read_index(lambda index: index.has_file(file), for_names=True)

    def drop_index(self) -> None:
        """Remove a damaged index; the next search makes it anew."""
        if self._index is not None:
            self._index.remove()
            self._index = None

    def _has_index(self, *, create: bool = False) -> bool:
        if self.read_only:
            return False
        try:
            inode = os.stat(os.path.join(self.root.path, INDEX_FILE)).st_ino
        except OSError:
            inode = 0
        if self._index is not None and self._index.inode != inode:  # removed or made anew by another process
            self._close_index()
        if self._index is None and (create or inode):
            from .search_index import SearchIndex

            self._index = SearchIndex.open(self.root)
        return self._index is not None

    def _close_index(self) -> None:
        if self._index is not None:
            self._index.close()
            self._index = None

    def _now(self) -> float:
        return self.clock_ns() / 1e9

    # Heads

    def read_headers(self, files: Iterable[str]) -> list[TopicHeader]:
        """Return the heads of these files, without those that do not exist."""
        return self._read_heads(self._scanned(files))

    def _read_heads(self, entries: Sequence[ScannedFile]) -> list[TopicHeader]:
        heads = read_heads(self.root, [entry.file for entry in entries], HEAD_BYTES)
        return [read_header(entry, heads[entry.file]) for entry in entries if entry.file in heads]

    def _scanned(self, files: Iterable[str]) -> list[ScannedFile]:
        entries = list[ScannedFile]()
        for file in files:
            with suppress(DiskError):
                if (status := self.root.stat(file)) is not None:
                    entries.append(ScannedFile(file, status.st_mtime_ns, status.st_size, status.st_ino))
        return entries

    def files(self) -> list[ScannedFile]:
        return self._compared({}).other

    def headers(self) -> list[TopicHeader]:
        """Return all topics, newest first."""
        if self._unchanged:
            return list(self._known.values())
        if not self._loaded:
            self._known = self._from_disk()
            self._loaded = True
        began = self.clock_ns()
        same, wanted = self._compared(self._known)
        if not wanted and len(same) == len(self._known):
            return list(self._known.values())
        fresh = self._read_heads(wanted)
        headers = self._with(sort_newest_first(fresh), same)
        young = {header.file for header in fresh if began - header.mtime_ns <= RACY_NS}
        self._known = {header.file: header for header in headers if header.file not in young}
        if len(fresh) >= _WORTH_WRITING and not self.read_only:
            data = msgspec.msgpack.encode((_CACHE_VERSION, list(self._known.values())))
            with suppress(DiskError):  # a read-only directory can still be read
                self.root.replace(CACHE, _checksum(data) + data, durability="process")
        return headers

    def _with(self, fresh: list[TopicHeader], same: list[TopicHeader]) -> list[TopicHeader]:
        """Merge both lists, newest first. The known ones are already in that order, and new ones are usually newer."""
        if len(same) == len(self._known) and fresh and same:
            newest = next(iter(self._known.values()))
            if fresh[-1].mtime_ns > newest.mtime_ns:
                return [*fresh, *self._known.values()]
        return sort_newest_first([*same, *fresh])

    def _compared(self, cached: dict[str, TopicHeader]) -> TreeComparison[TopicHeader]:
        """Return the heads that are still valid, and the files to read."""
        tree = compare_tree(self.root, cached, suffix=".md", skip=_SKIPPED.__contains__)
        return TreeComparison(tree.same, [other for other in tree.other if other.file.lower() != _INDEX])

    def bodies(self, headers: Iterable[TopicHeader]) -> dict[str, str]:
        """Return the text after the front matter by file, up to the search limit. A second call reads only what changed."""
        texts, wanted = dict[str, str](), list[TopicHeader]()
        for header in headers:
            cached = self._texts.get(header.file)
            if cached is not None and cached[0] == header:
                texts[header.file] = cached[1]
            else:
                wanted.append(header)
        texts |= self.read_bodies(wanted)
        # As with heads, a file that is too young may change unnoticed.
        settled = (header for header in wanted if header.file in texts and self._known.get(header.file) == header)
        self._texts |= {header.file: (header, texts[header.file]) for header in settled}
        return texts

    def read_bodies(self, headers: Sequence[TopicHeader]) -> dict[str, str]:
        """Return the texts as `bodies` does, without keeping them."""
        heads = read_heads(self.root, [header.file for header in headers], BODY_BYTES)
        return {file: read_body(data) for file, data in heads.items()}

    def _from_disk(self) -> dict[str, TopicHeader]:
        try:
            data = self.root.read_bytes(CACHE, CACHE_BYTES) or b""
            if not is_whole_cache(data):
                return {}
            version, headers = msgspec.msgpack.decode(data[_CHECK_BYTES:], type=tuple[int, list[TopicHeader]])
        except (DiskError, *UNDECODABLE):
            return {}
        return {header.file: header for header in headers} if version == _CACHE_VERSION else {}

    # Files

    def topic(self, file: str) -> Topic | None:
        """Read a topic; None if it does not exist or cannot be read."""
        try:
            data = self.root.read_bytes(file, MOST_READ)
            status = self.root.stat(file)
        except (DiskError, UnicodeEncodeError):
            return None  # a name that is not valid text belongs to no file
        if data is None or status is None:
            return None
        topic = read_topic(file, decode_text(data), status.st_mtime)
        if len(data) < MOST_READ:
            return topic
        return msgspec.structs.replace(topic, problems=(*topic.problems, READ_IN_PART))

    def find(self, name: str) -> str | None:
        """Return the file of the memory with this name, or the file with that name."""
        if name.endswith(".md"):
            return self._with_file(name) or self.named(name)
        return self.named(name) or self._with_file(f"{name}.md")

    def meant(self, name: str) -> str | None:
        """Return the file that a save of this name changes. Only a name spelled as a file may mean a file."""
        return self.find(name) if name.endswith(".md") else self.named(name)

    def named(self, name: str) -> str | None:
        """Find the file of a name. The file it would get is checked first, so most saves need no scan."""
        key, direct = name_key(name), file_name(name)
        if (topic := self.topic(direct)) is not None and name_key(topic.name) == key:
            return direct
        row = self.read_index(lambda index: (index.file_named(key),), for_names=True)
        if row is None and len(headers := self.headers()) >= LARGE:
            row = self.read_index(lambda index: (index.file_named(key),), create=True)
        if row is None:
            return min((header.file for header in headers if name_key(header.name) == key), default=None)
        return row[0]

    def _with_file(self, file: str) -> str | None:
        """Find a file as spelled, which needs no scan, or else in any case."""
        if is_topic(file) and self.topic(file) is not None:
            return file
        key = fold_name(file)
        return min((entry.file for entry in self.files() if fold_name(entry.file) == key), default=None)

    def whole(self, file: str) -> bytes | None:
        """Return the bytes of a file that may be changed; None if it does not exist."""
        data = self.root.read_bytes(file, MOST_READ)
        if data is not None and len(data) >= MOST_READ:
            raise DiskError(
                file, Text("is larger than {limit} KiB", limit=MOST_READ >> 10), "move it away; it is too large for a memory"
            )
        # The journal holds texts, so a file that it could not restore byte for byte is not touched.
        if data is not None and decode_text(data).encode() != data:
            raise DiskError(file, "is not UTF-8 text", "convert it, or remove it by hand")
        return data

    def existing(self, file: str) -> bytes:
        """Return the bytes as `whole` does, for a file that existed a moment ago."""
        data = self.whole(file)
        if data is None:
            raise changed_meanwhile(file)
        return data

    def free(self, name: str, kind: Kind | None = None) -> str:
        """Return a file name that no other memory has, in any spelling."""
        from .draft import second_file  # reading memories must not load code that only writers need

        first, key = new_memory_file(self.root.path, file_name(name), kind), name_key(name)
        for file in (first, second_file(first, key), second_file(first, name)):
            # A link or a device there is refused before anything is written; a directory of that name counts as taken.
            listed = self._lists(file)
            has_twin = self.root.twin(file) is not None if listed is None else listed
            if self.root.stat(file) is None and not has_twin:
                return file
        raise DiskError(first, "is taken by another memory", "choose another name")


def is_whole_cache(data: bytes) -> bool:
    """Tell whether a cache of heads matches its checksum."""
    return data[:_CHECK_BYTES] == _checksum(data[_CHECK_BYTES:])


def _checksum(data: bytes) -> bytes:
    return crc32(data).to_bytes(_CHECK_BYTES, "big")


def decode_text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace")


def changed_meanwhile(file: str) -> DiskError:
    return DiskError(file, "was changed by someone else in the meantime", "read it again and save what still applies")


def sort_newest_first(headers: list[TopicHeader]) -> list[TopicHeader]:
    # Two stable sorts by one attribute each are faster than one by a pair.
    headers.sort(key=_FILE)
    headers.sort(key=_MTIME, reverse=True)
    return headers


def is_topic(file: str) -> bool:
    """Tell whether a scan would find a file of this name."""
    parts = file.split("/")
    hidden = any(part.startswith(".") for part in parts)
    return file.endswith(".md") and not hidden and file.lower() != _INDEX and _SKIPPED.isdisjoint(parts[:-1][:1])


def read_body(data: bytes) -> str:
    """Return the text after the front matter."""
    text = without_bookkeeping(decode_text(data))
    end = text.find("\n---", 3) if text.startswith("---") else -1
    return text[end + 4 :] if end >= 0 else text


def read_header(entry: ScannedFile, data: bytes) -> TopicHeader:
    text, mtime = decode_text(data), entry.mtime_ns / 1e9
    # Most heads are plain, and a scan reads ten thousand of them.
    end = text.find("\n---", 3) + 1
    plain = text.startswith("---\n") and text[end + 3 : end + 4] in ("", "\n")
    if plain and (fields := simple_fields(text[4:end])) is not None and fields.keys() <= {"name", "description", "type"}:
        name = clean_name(fields.get("name", "")) or read_topic(entry.file, "", 0).name
        kind: Kind | None = next((kind for kind in KINDS if kind == fields.get("type")), None)
        return TopicHeader(entry.file, name, one_line(fields.get("description", ""), DESCRIPTION_CHARS), kind, mtime, *entry[1:])
    topic = read_topic(entry.file, "".join(text.splitlines(keepends=True)[:HEAD_LINES]), mtime)
    return TopicHeader(entry.file, topic.name, topic.description, topic.type, topic.modified, *entry[1:])


def choose_manifest(
    headers: Iterable[TopicHeader], best: Callable[[list[TopicHeader], int], Iterable[TopicHeader]] | None = None
) -> list[TopicHeader]:
    """Choose the heads for a recall prompt. If there are too many, `best` picks the ranker's choice; without it the newest
    count."""
    newest = sorted(headers, key=lambda header: (-header.mtime_ns, header.file))
    if len(newest) <= MOST_IN_MANIFEST or best is None:
        return newest[:MOST_IN_MANIFEST]
    room = MOST_IN_MANIFEST - NEWEST_IN_MANIFEST
    return [*newest[:NEWEST_IN_MANIFEST], *islice(best(newest[NEWEST_IN_MANIFEST:], room), room)]
