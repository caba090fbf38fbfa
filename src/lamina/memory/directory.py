"""Memories in a directory: one file each, `MEMORY.md` as their index, and a journal of all changes (S3, S5, S6, B4).

Owns the order of the steps. A change is made under one guard for the directory: the journal line, then the file, then the index
line; a removal takes the index line first and the file last. Invariants: no line of ours points at a file that is not there; of any
number of processes none loses another's change; a file that somebody edits meanwhile is left to them, and an index that somebody
edits meanwhile is merged; files are 0600, nothing outside the directory is touched.

A crash at any line leaves each file old or new, and at worst a file whose index line is missing: the next open or save adds it. With
durability "full" an acknowledged change survives a power loss. An editor that saves in the very microseconds before our rename is the
one writer that can lose; what it replaced is in the journal.

Several users of one machine who share a team directory need a file system where they may write each other's lock files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

import msgspec

from ..core.errors import DiskError, InputError
from ..core.front_matter import read_front_matter
from ..core.settings import Scope
from ..disk.files import Durability
from ..disk.guarded import guarded, replace_if
from ..disk.paths import RootDir, check_child
from .history import Change, History, digest_of, is_of
from .index import INDEX, Entry, Rewritten, added, entries, line_of, rewritten, with_entry, without_entry
from .scan import Header, Scanner, is_topic
from .secrets import redact
from .store import MOST_READ, READ_IN_PART, Draft, Saved, Version, Why, applied, drafted, other_file, spelled
from .topic import Kind, Topic, dated, file_name, folded, one_line, read_topic, same_name, stamped, write_topic

GUARD = ".memory.lock"
# A save holds the guard for a few milliseconds; dozens of processes that save at once still get their turn within this.
PATIENCE = 60.0
# An index is sent up to 25,000 bytes; one a hundred times as long is no index.
MOST_INDEX = 4 << 20
# Each lost round means that somebody saved the index in that very moment.
_ROUNDS = 10
_REASON_CHARS = 500


class Planned(NamedTuple):
    """What a save would do: the file, its bytes before (None: it is new) and after."""

    draft: Draft
    topic: Topic
    before: bytes | None
    after: bytes


class Raw(NamedTuple):
    file: str
    data: bytes


class DirectoryStore:
    """Not for two threads at once; any number of processes may each have their own."""

    __slots__ = ("_durability", "clock", "history", "notices", "root", "scanner", "scope")

    def __init__(
        self, root: RootDir, *, scope: Scope = "private", clock: Callable[[], float] = time.time, durability: Durability = "full"
    ) -> None:
        self.root = root
        self.scope: Scope = scope
        self.clock = clock
        self.history = History(root, durability=durability)
        self.scanner = Scanner(root)
        self.notices: tuple[str, ...] = ()
        self._durability: Durability = durability

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        scope: Scope = "private",
        clock: Callable[[], float] = time.time,
        durability: Durability = "full",
    ) -> Self:
        """Makes the directory if it is missing and mends what a crash left. What cannot be mended is a notice, not an error."""
        root = RootDir.open(path, shared=scope == "team")
        store = cls(root, scope=scope, clock=clock, durability=durability)
        try:
            if swept := root.sweep():
                store.notices += (
                    f"{root.path} held {swept} unfinished files of writes that were interrupted; they were removed.",
                )
            if store._needs_mending():
                with guarded(root, GUARD, timeout=PATIENCE):
                    store._mend()
        except DiskError as error:
            store.notices += (f"{error} Memory is read and not written until then.",)
        return store

    def close(self) -> None:
        self.root.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Reading

    def topics(self) -> list[Topic]:
        """All memories with their bodies, in the order of their files. What cannot be read is left out."""
        found = (self._topic(found.file) for found in sorted(self.scanner.files()))
        return [topic for topic in found if topic is not None]

    def headers(self) -> list[Header]:
        """All memories without their bodies, the newest first (S11)."""
        return self.scanner.headers()

    def get(self, name: str) -> Topic | None:
        """By name, whatever its case and Unicode form, or by file."""
        # As a search asks for what it found: read once, and no scan.
        if name.endswith(".md") and is_topic(name) and (topic := self._topic(name)) is not None:
            return topic
        file = self._find(name)
        return self._topic(file) if file is not None else None

    def raw(self, name: str) -> Raw | None:
        """The file of a memory and its bytes; None when there is no such memory."""
        file = self._find(name)
        data = self._whole(file, missing_is_fine=True) if file is not None else None
        return None if file is None or data is None else Raw(file, data)

    def index(self) -> str:
        return _text(self._index_bytes())

    def log(self, name: str | None = None) -> list[Version]:
        """The changes, newest first; `name` may be a file too."""
        return self.history.log(name)

    def content(self, version_id: str) -> str | None:
        return self.history.content(version_id)

    def _index_bytes(self) -> bytes | None:
        return self.root.read_bytes(INDEX, MOST_INDEX)

    def _topic(self, file: str) -> Topic | None:
        try:
            data = self.root.read_bytes(file, MOST_READ)
            found = self.root.stat(file)
        except DiskError:
            return None
        if data is None or found is None:
            return None
        topic = read_topic(file, _text(data), found.st_mtime)
        if len(data) < MOST_READ:
            return topic
        return msgspec.structs.replace(topic, problems=(*topic.problems, READ_IN_PART))

    def _find(self, name: str) -> str | None:
        """The file of the memory of this name, or the file of that name."""
        if name.endswith(".md"):
            return self._with_file(name) or self._named(name)
        return self._named(name) or self._with_file(f"{name}.md")

    def _named(self, name: str) -> str | None:
        """The file its name would have is looked at first: most saves need no scan."""
        key, direct = same_name(name), file_name(name)
        if (topic := self._topic(direct)) is not None and same_name(topic.name) == key:
            return direct
        return min((header.file for header in self.scanner.headers() if same_name(header.name) == key), default=None)

    def _with_file(self, file: str) -> str | None:
        """As it is spelled, which needs no scan; else in whatever case it has."""
        if is_topic(file) and self._topic(file) is not None:
            return file
        key = folded(file)
        return min((found.file for found in self.scanner.files() if folded(found.file) == key), default=None)

    # Writing

    def plan(
        self,
        name: str,
        *,
        type: Kind | None,
        description: str,
        body: str,
        evidence: Sequence[str] = (),
        modified: float | None = None,
    ) -> Planned:
        """What `save` would write, from what stands there now. Nothing is changed."""
        draft = drafted(name, type=type, description=description, body=body, evidence=evidence, team=self.scope == "team")
        # A name is a name; only what is spelled as a file may mean one.
        file = self._find(draft.name) if name.endswith(".md") else self._named(draft.name)
        if file is None:
            file = self._free(draft.name)
            topic, before = applied(draft, None, file), None
        else:
            before = self._whole(file)
            topic = stamped(applied(draft, read_topic(file, _text(before), self.clock()), file), now=self.clock())
        return _planned(draft, topic if modified is None else dated(topic, modified=modified), before)

    def plan_text(self, file: str, text: str) -> Planned:
        """What `put` would write; InputError for a text that is no memory, or has the name of another one."""
        before = self._whole(file, missing_is_fine=True)
        old = None if before is None else read_topic(file, _text(before), self.clock())
        draft, topic = spelled(file, text, old, team=self.scope == "team")
        owner = self._named(draft.name)
        if owner is not None and folded(owner) != folded(file):
            raise InputError(draft.name, f"is the name of the memory in {owner} already", "change that file instead")
        return _planned(draft, stamped(topic, now=self.clock()), before)

    def save(
        self,
        name: str,
        *,
        type: Kind | None,
        description: str,
        body: str,
        why: Why,
        evidence: Sequence[str] = (),
        modified: float | None = None,
    ) -> Saved:
        """The file, then its index line. A memory of that name is updated; `type=None` keeps its type.

        `modified` dates it: for a memory that was made elsewhere, and earlier.
        """
        with guarded(self.root, GUARD, timeout=PATIENCE):
            self._mend()
            planned = self.plan(name, type=type, description=description, body=body, evidence=evidence, modified=modified)
            return self._carry_out(planned, why)

    def put(self, file: str, text: str, *, expected: bytes | None, why: Why) -> Saved:
        """As `save`, from the whole text of a topic file. `expected` is the file as the writer knows it: another one wins."""
        check_child(self.root.path, file)
        with guarded(self.root, GUARD, timeout=PATIENCE):
            self._mend()
            planned = self.plan_text(file, text)
            if planned.before != expected:
                raise _changed(file)
            return self._carry_out(planned, why)

    def _carry_out(self, planned: Planned, why: Why) -> Saved:
        topic = planned.topic
        if not self._says_nothing_new(planned):
            self._write(Change(topic.file, topic.name, "save", planned.before, planned.after, why))
        self._list(topic)
        return Saved(self._topic(topic.file) or topic, planned.before is None, planned.draft.redacted)

    def put_index(self, text: str, *, expected: bytes | None) -> Rewritten:
        """The index as somebody wants it, within its rules. Who does not know it as it is (`expected`) only adds to it."""
        with guarded(self.root, GUARD, timeout=PATIENCE):
            self._mend()
            there = self._index_bytes()
            files = [found.file for found in self.scanner.files()]
            done = rewritten(text, _text(there), files, known=there == expected, team=self.scope == "team")
            # Read under the guard; only a person's editor can come between, and its version is merged with ours.
            self._edit_index(lambda now: done.text if now == _text(there) else added(now, done.text))
            return done

    def remove(self, name: str, *, why: Why, expected: bytes | None = None) -> bool:
        """To the trash: the index line goes, then the file; the journal keeps its content. False when there is no such memory.

        With `expected` only a file that still holds that is removed.
        """
        with guarded(self.root, GUARD, timeout=PATIENCE):
            self._mend()
            file = self._find(name)
            if file is None:
                return False
            old = self._whole(file)
            if expected is not None and old != expected:
                raise _changed(file)
            known = read_topic(file, _text(old), 0).name
            self.history.record(Change(file, known, "remove", old, None, _clean(why)), now=self.clock())
            self._edit_index(lambda text: without_entry(text, file))
            if self.root.read_bytes(file, MOST_READ) != old:
                self._list(read_topic(file, _text(self._whole(file)), 0))
                raise _changed(file)
            return self.root.unlink(file)

    def restore(self, name: str, version_id: str | None = None, *, why: Why) -> Topic:
        """Puts a version back, byte for byte; without an id the last content that differs from what stands there now."""
        with guarded(self.root, GUARD, timeout=PATIENCE):
            self._mend()
            versions = [version for version in self.history.log() if is_of(version, name)]
            file = self._find(name) or next((version.file for version in versions), None)
            if file is None:
                raise InputError(name, "nothing is known of such a memory", "`lamina memory log` lists what there was")
            check_child(self.root.path, file)
            old = self._whole(file, missing_is_fine=True)
            text = self._version(versions, version_id, digest_of(old))
            if text is None:
                wrong = "has no other version to go back to" if version_id is None else f"has no version {version_id!r}"
                raise InputError(name, wrong, f"`lamina memory log {name}` lists those there are")
            data = text.encode("utf-8", "replace")
            topic = read_topic(file, text, self.clock())
            if data != old:
                self._write(Change(file, topic.name, "restore", old, data, why))
            self._list(topic)
            return self._topic(file) or topic

    def _version(self, versions: list[Version], version_id: str | None, now: str) -> str | None:
        if version_id is not None:
            return self.history.content(version_id) if any(version.id == version_id for version in versions) else None
        digests = dict.fromkeys(digest for version in versions for digest in (version.digest, version.before))
        texts = (self.history.content_of(digest) for digest in digests if digest and digest != now)
        return next((text for text in texts if text is not None), None)

    def _says_nothing_new(self, planned: Planned) -> bool:
        """A stamp alone is no change."""
        if planned.before is None:
            return False
        old = read_topic(planned.topic.file, _text(planned.before), 0)
        new = planned.topic
        return (old.name, old.description, old.type, old.body, _unstamped(old)) == (
            new.name,
            new.description,
            new.type,
            new.body,
            _unstamped(new),
        )

    def _write(self, change: Change) -> None:
        assert change.new is not None
        self.history.record(change._replace(why=change.why and _clean(change.why)), now=self.clock())
        if not replace_if(self.root, change.file, change.new, expected=change.old, durability=self._durability):
            raise _changed(change.file)

    def _whole(self, file: str, *, missing_is_fine: bool = False) -> bytes | None:
        data = self.root.read_bytes(file, MOST_READ)
        if data is None and not missing_is_fine:
            raise _changed(file)
        if data is not None and len(data) >= MOST_READ:
            raise DiskError(file, f"is larger than {MOST_READ >> 10} KiB", "move it away, it is no memory")
        # The journal holds texts: what it could not give back byte for byte is not touched.
        if data is not None and _text(data).encode() != data:
            raise DiskError(file, "is no UTF-8 text", "convert it, or remove it by hand")
        return data

    def _free(self, name: str) -> str:
        """A file name that no other memory has, in any spelling."""
        taken = {folded(file) for file in self.scanner.known()}
        first = file_name(name)
        for file in (first, other_file(first, same_name(name)), other_file(first, name)):
            # A link or a device there is refused before anything is written; a directory of that name is as good as taken.
            if folded(file) not in taken and self.root.stat(file) is None:
                return file
        raise DiskError(first, "is taken by another memory", "give this one another name")

    # The index

    def _list(self, topic: Topic) -> None:
        self._edit_index(lambda text: with_entry(text, Entry(topic.name, topic.file, topic.description)))

    def _edit_index(self, edit: Callable[[str], str]) -> None:
        for _ in range(_ROUNDS):
            old = self._index_bytes()
            if old is not None and len(old) >= MOST_INDEX:
                raise DiskError(INDEX, f"is larger than {MOST_INDEX >> 20} MiB", "move it away, it is rebuilt from the memories")
            new = _edited(old, edit)
            if new == old or replace_if(self.root, INDEX, new, expected=old, durability=self._durability):
                return
        raise DiskError(INDEX, "is changed again and again by another program", "close it there and try again")

    def _needs_mending(self) -> bool:
        return self._unlisted() is not None or (self._index_bytes() is None and bool(self.scanner.files()))

    def _mend(self) -> None:
        """A change that did not happen is noted; a missing index is made from the memories; a line that a crash left out is added."""
        if (newest := self.history.newest()) is not None and self._plain(newest.file):
            self.history.settle(self.root.read_bytes(newest.file, MOST_READ), now=self.clock())
        if self._index_bytes() is None and (headers := self.scanner.headers()):
            self._edit_index(lambda _: _rebuilt(headers))
            self.notices += (f"{self.root.path / INDEX} was missing and was made again from {len(headers)} memories.",)
        elif (topic := self._unlisted()) is not None:
            self._list(topic)
            self.notices += (
                f"{self.root.path / INDEX} lacked the line of {topic.file}, whose save was interrupted; it was added.",
            )

    def _plain(self, file: str) -> bool:
        """Whether it is missing or can be read. One file that somebody made a link of keeps no other memory from being saved."""
        try:
            self.root.read_bytes(file, 1)
        except DiskError:
            return False
        return True

    def _unlisted(self) -> Topic | None:
        """The memory whose save ended between its file and its index line: only the newest change can be one.

        A line that a person took out later stays out: then the index is newer than the file.
        """
        newest = self.history.newest()
        if newest is None or newest.action not in ("save", "restore") or not self._plain(newest.file):
            return None
        file, index = self.root.stat(newest.file), self.root.stat(INDEX)
        if file is None or index is None or index.st_mtime_ns > file.st_mtime_ns:
            return None
        listed = {folded(entry.file) for entry in entries(self.index())}
        data = self.root.read_bytes(newest.file, MOST_READ)
        if folded(newest.file) in listed or data is None or digest_of(data) != newest.digest:
            return None
        return read_topic(newest.file, _text(data), file.st_mtime)


def _planned(draft: Draft, topic: Topic, before: bytes | None) -> Planned:
    text = write_topic(topic, before=None if before is None else _text(before))
    if read_front_matter(text).head is None:
        raise InputError(topic.file, "its front matter would be too long to be read", "shorten the keys that were added by hand")
    return Planned(draft, topic, before, text.encode("utf-8", "replace"))


def _rebuilt(headers: list[Header]) -> str:
    """Ordered by file, which is by topic: where `with_entry` would put them one by one."""
    ordered = sorted(headers, key=lambda header: folded(header.file))
    return "".join(f"{line_of(Entry(header.name, header.file, header.description))}\n" for header in ordered)


def _edited(old: bytes | None, edit: Callable[[str], str]) -> bytes:
    """Bytes that are no UTF-8 pass through unchanged."""
    text = (old or b"").decode("utf-8", "surrogateescape")
    return edit(text).encode("utf-8", "surrogateescape")


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace")


def _unstamped(topic: Topic) -> dict[str, object]:
    metadata = topic.fields.get("metadata")
    if not isinstance(metadata, dict):
        return topic.fields
    return topic.fields | {"metadata": {key: value for key, value in metadata.items() if key != "modified"}}


def _clean(why: Why) -> Why:
    return msgspec.structs.replace(why, why=one_line(redact(why.why).text, _REASON_CHARS))


def _changed(file: str) -> DiskError:
    return DiskError(file, "was changed by somebody else at this moment", "read it again and save what still holds")
