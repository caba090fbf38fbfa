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
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, Self

import msgspec

from ...core.errors import DiskError, InputError
from ...core.front_matter import read_front_matter
from ...core.settings import Scope
from ...disk.paths.memory_paths import check_child
from ...disk.temp_files import Durability
from ...disk.trees.rootdir import RootDir
from .contract import MOST_READ, Saved, Version, Why
from .draft import Cleaned, Draft, applied, cleaned, spelled
from .history import History
from .index import Rewritten, added, rewritten
from .index_file import IndexFile
from .journal import Change, digest_of, is_of
from .lookup import Shelf, changed, shown
from .recovery import mend, needs_mending
from .scan import Header, Scanner, is_topic
from .secrets import redact
from .topic import Topic, dated, folded, one_line, read_topic, stamped, write_topic

GUARD = ".memory.lock"
# A save holds the guard for a few milliseconds; dozens of processes that save at once still get their turn within this.
PATIENCE = 60.0
_REASON_CHARS = 500


class Planned(NamedTuple):
    """What a save would do: the file, its bytes before (None: it is new) and after."""

    wish: Cleaned
    topic: Topic
    before: bytes | None
    after: bytes


class Raw(NamedTuple):
    file: str
    data: bytes


class DirectoryStore:
    """Not for two threads at once; any number of processes may each have their own."""

    __slots__ = ("_durability", "_index", "_shelf", "clock", "history", "notices", "root", "scope")

    def __init__(
        self, root: RootDir, *, scope: Scope = "private", clock: Callable[[], float] = time.time, durability: Durability = "full"
    ) -> None:
        self.root = root
        self.scope: Scope = scope
        self.clock = clock
        self.history = History(root, durability=durability)
        self.notices: tuple[str, ...] = ()
        self._index = IndexFile(root, durability=durability)
        self._shelf = Shelf(root)
        self._durability: Durability = durability

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        scope: Scope = "private",
        clock: Callable[[], float] = time.time,
        durability: Durability = "full",
        below: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Makes the directory if it is missing and mends what a crash left. What cannot be mended is a notice, not an error. `below`:
        as in `RootDir.open`."""
        root = RootDir.open(path, shared=scope == "team", below=below)
        store = cls(root, scope=scope, clock=clock, durability=durability)
        try:
            if swept := root.sweep():
                store.notices += (
                    f"{root.path} held {swept} unfinished files of writes that were interrupted; they were removed.",
                )
            if needs_mending(store._shelf, store._index, store.history):
                with root.guard(GUARD, timeout=PATIENCE):
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

    def _mend(self) -> None:
        self.notices += mend(self._shelf, self._index, self.history, now=self.clock())

    @property
    def durability(self) -> Durability:
        return self._durability

    # Reading

    @property
    def shelf(self) -> Shelf:
        return self._shelf

    @property
    def scanner(self) -> Scanner:
        return self._shelf.scanner

    def topics(self) -> list[Topic]:
        """All memories with their bodies, in the order of their files. What cannot be read is left out."""
        found = (self._shelf.topic(found.file) for found in sorted(self.scanner.files()))
        return [topic for topic in found if topic is not None]

    def headers(self) -> list[Header]:
        """All memories without their bodies, the newest first (S11)."""
        return self.scanner.headers()

    def get(self, name: str) -> Topic | None:
        """By name, whatever its case and Unicode form, or by file."""
        # As a search asks for what it found: read once, and no scan.
        if name.endswith(".md") and is_topic(name) and (topic := self._shelf.topic(name)) is not None:
            return topic
        file = self._shelf.find(name)
        return self._shelf.topic(file) if file is not None else None

    def named(self, name: str) -> Topic | None:
        """By name only: what a save of this name would change, if the name is none of a file."""
        file = self._shelf.named(name)
        return self._shelf.topic(file) if file is not None else None

    def raw(self, name: str) -> Raw | None:
        """The file of a memory and its bytes; None when there is no such memory."""
        file = self._shelf.find(name)
        data = self._shelf.whole(file) if file is not None else None
        return None if file is None or data is None else Raw(file, data)

    def index(self) -> str:
        return self._index.text()

    def log(self, name: str | None = None) -> list[Version]:
        """The changes, newest first; `name` may be a file too."""
        return self.history.log(name)

    def content(self, version_id: str) -> str | None:
        return self.history.content(version_id)

    # Writing

    def plan(self, draft: Draft) -> Planned:
        """What `save` would write, from what stands there now. Nothing is changed."""
        wish = cleaned(draft, team=self.scope == "team")
        file = self._shelf.meant(wish.draft.name)
        if file is None:
            file = self._shelf.free(wish.draft.name)
            topic, before = applied(wish.draft, None, file), None
        else:
            before = self._shelf.there(file)
            topic = stamped(applied(wish.draft, read_topic(file, shown(before), self.clock()), file), now=self.clock())
        return _planned(wish, topic if draft.modified is None else dated(topic, modified=draft.modified), before)

    def plan_text(self, file: str, text: str) -> Planned:
        """What `put` would write; InputError for a text that is no memory, or has the name of another one."""
        before = self._shelf.whole(file)
        old = None if before is None else read_topic(file, shown(before), self.clock())
        wish, topic = spelled(file, text, old, team=self.scope == "team")
        owner = self._shelf.named(wish.draft.name)
        if owner is not None and folded(owner) != folded(file):
            raise InputError(wish.draft.name, f"is the name of the memory in {owner} already", "change that file instead")
        return _planned(wish, stamped(topic, now=self.clock()), before)

    def save(self, draft: Draft, *, why: Why, base: str | None = None) -> Saved:
        """The file, then its index line. A memory of that name is updated; with `base` only one that still has that digest."""
        with self.root.guard(GUARD, timeout=PATIENCE):
            self._mend()
            planned = self.plan(draft)
            if base is not None and digest_of(planned.before) != base:
                raise changed(planned.topic.file)
            return self._carry_out(planned, why)

    def put(self, file: str, text: str, *, expected: bytes | None, why: Why) -> Saved:
        """As `save`, from the whole text of a topic file. `expected` is the file as the writer knows it: another one wins."""
        check_child(self.root.path, file)
        with self.root.guard(GUARD, timeout=PATIENCE):
            self._mend()
            planned = self.plan_text(file, text)
            if planned.before != expected:
                raise changed(file)
            return self._carry_out(planned, why)

    def _carry_out(self, planned: Planned, why: Why) -> Saved:
        topic = planned.topic
        if not self._says_nothing_new(planned):
            self._write(Change(topic.file, topic.name, "save", planned.before, planned.after, why))
        unfinished = self._listed(topic)
        return Saved(self._shelf.topic(topic.file) or topic, planned.before is None, planned.wish.redacted, unfinished)

    def _listed(self, topic: Topic) -> str:
        """Adds the line of a memory that is saved; why that is not done, where it is not: the memory is there all the same."""
        try:
            self._index.add(topic)
        except DiskError as error:
            return f"{error} The memory is saved; its line there may be missing or old until the next save here."
        return ""

    def put_index(self, text: str, *, expected: bytes | None) -> Rewritten:
        """The index as somebody wants it, within its rules. Who does not know it as it is (`expected`) only adds to it."""
        with self.root.guard(GUARD, timeout=PATIENCE):
            self._mend()
            there = self._index.data()
            files = [found.file for found in self.scanner.files()]
            done = rewritten(text, shown(there), files, known=there == expected, team=self.scope == "team")
            # Read under the guard; only a person's editor can come between, and its version is merged with ours.
            self._index.edit(lambda now: done.text if now == shown(there) else added(now, done.text))
            return done

    def remove(self, name: str, *, why: Why, expected: bytes | None = None) -> bool:
        """To the trash: the index line goes, then the file; the journal keeps its content. False when there is no such memory.

        With `expected` only a file that still holds that is removed.
        """
        with self.root.guard(GUARD, timeout=PATIENCE):
            self._mend()
            file = self._shelf.find(name)
            if file is None:
                return False
            old = self._shelf.there(file)
            if expected is not None and old != expected:
                raise changed(file)
            topic = read_topic(file, shown(old), 0)
            self.history.record(Change(file, topic.name, "remove", old, None, _clean(why)), now=self.clock())
            self._index.drop(file)
            if self.root.read_bytes(file, MOST_READ) != old:
                self._index.add(read_topic(file, shown(self._shelf.there(file)), 0))
                raise changed(file)
            try:
                return self.root.unlink(file)
            except DiskError:
                # What stays keeps its line; it may be gone, and only not confirmed by the disk.
                if self.root.stat(file) is not None:
                    self._index.add(topic)
                raise

    def restore(self, name: str, version_id: str | None = None, *, why: Why) -> Topic:
        """Puts a version back, byte for byte; without an id the last content that differs from what stands there now."""
        with self.root.guard(GUARD, timeout=PATIENCE):
            self._mend()
            versions = [version for version in self.history.log() if is_of(version, name)]
            file = self._place_of(name, versions)
            if file is None:
                raise InputError(name, "nothing is known of such a memory", "`lamina memory log` lists what there was")
            check_child(self.root.path, file)
            old = self._shelf.whole(file)
            text = self._version(versions, version_id, digest_of(old))
            if text is None:
                wrong = "has no other version to go back to" if version_id is None else f"has no version {version_id!r}"
                raise InputError(name, wrong, f"`lamina memory log {name}` lists those there are")
            data = text.encode("utf-8", "replace")
            topic = read_topic(file, text, self.clock())
            if data != old:
                self._write(Change(file, topic.name, "restore", old, data, why))
            if unfinished := self._listed(topic):
                raise DiskError(file, "is as it was then, but its line in the index may be missing", unfinished.removesuffix("."))
            return self._shelf.topic(file) or topic

    def _place_of(self, name: str, versions: list[Version]) -> str | None:
        """Where a memory goes back to: its file, the one it had, or a new one where another memory has that now."""
        if (file := self._shelf.meant(name)) is not None or not versions:
            return file
        file = versions[0].file
        return file if self._shelf.topic(file) is None else self._shelf.free(versions[0].name)

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
        old = read_topic(planned.topic.file, shown(planned.before), 0)
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
        try:
            self.history.record(change._replace(why=change.why and _clean(change.why)), now=self.clock())
            done = self.root.replace_if(change.file, change.new, expected=change.old, durability=self._durability)
        except DiskError:
            # The journal tells of a change that did not happen. Where there is no room to say so, the next write does.
            with suppress(DiskError):
                self.history.catch_up()
                self.history.settle(self.root.read_bytes(change.file, MOST_READ), now=self.clock())
            raise
        if not done:
            raise changed(change.file)


def _planned(wish: Cleaned, topic: Topic, before: bytes | None) -> Planned:
    text = write_topic(topic, before=None if before is None else shown(before))
    if read_front_matter(text).head is None:
        raise InputError(topic.file, "its front matter would be too long to be read", "shorten the keys that were added by hand")
    return Planned(wish, topic, before, text.encode("utf-8", "replace"))


def _unstamped(topic: Topic) -> dict[str, object]:
    metadata = topic.fields.get("metadata")
    if not isinstance(metadata, dict):
        return topic.fields
    return topic.fields | {"metadata": {key: value for key, value in metadata.items() if key != "modified"}}


def _clean(why: Why) -> Why:
    return msgspec.structs.replace(why, why=one_line(redact(why.why).text, _REASON_CHARS))
