"""Memories in a directory: one file each, `MEMORY.md` as their index, and a journal of all changes.

A change is made under one guard for the directory: the journal line, then the file, then the index line. A removal takes the
index line first and the file last. Invariants: no line of ours points at a missing file. No process loses another one's
change. A file that someone edits in the meantime is left alone, and an index that someone edits is merged. Files are 0600,
and nothing outside the directory is touched.

A crash at any line leaves each file old or new, and at worst a file without its index line, which the next open or save
adds. With durability "full" an acknowledged change survives a power loss. Only an editor that saves in the microseconds
before our rename can lose its version; the content it replaced is in the journal.

If several users of one machine share a team directory, its file system must let them write each other's lock files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple, Self

import msgspec

from ...core.claude_home import without_type
from ...core.errors import DiskError, InputError, PathRefused
from ...core.front_matter import read_front_matter
from ...core.settings import Scope
from ...disk.paths.memory_paths import check_child
from ...disk.temp_files import Durability
from ...disk.trees.rootdir import RootDir
from ...language.text import Text
from ...language.wording import counted, plural
from .change_sets import needs_repair, new_act, repair, roll_back
from .contract import MOST_READ, ChangeReason, MemoryVersion, Saved
from .draft import CleanDraft, Draft, apply_draft, clean_draft, read_draft
from .history import MemoryHistory, hold_guard
from .index import RewrittenIndex, add_entries, rewrite_index
from .index_file import IndexFile
from .journal import MemoryChange, concerns, digest_of
from .secrets import redact
from .topic import (
    Topic,
    date_topic,
    file_name,
    fold_name,
    name_key,
    one_line,
    read_topic,
    says_the_same,
    stamp_topic,
    without_stamp,
    write_topic,
)
from .topic_files import TopicFiles, changed_meanwhile, decode_text, is_topic

_REASON_CHARS = 500


class PlannedSave(NamedTuple):
    """A planned save: the file, its bytes before (None if new) and after."""

    wish: CleanDraft
    topic: Topic
    before: bytes | None
    after: bytes

    @property
    def differs(self) -> bool:
        """Whether the memory would say something new. A new timestamp alone is not a change."""
        if self.before is None:
            return True
        old = read_topic(self.topic.file, decode_text(self.before), 0)
        return not says_the_same(without_stamp(old), without_stamp(self.topic))


class RawTopic(NamedTuple):
    file: str
    data: bytes


class DirectoryStore:
    """A store in a directory. Not thread-safe; any number of processes may each have one."""

    __slots__ = (
        "_changed",
        "_in_set",
        "_indexed",
        "after_change",
        "clock",
        "durability",
        "history",
        "index_file",
        "notices",
        "root",
        "scope",
        "topic_files",
    )

    def __init__(
        self, root: RootDir, *, scope: Scope = "private", clock: Callable[[], float] = time.time, durability: Durability = "full"
    ) -> None:
        self.root = root
        self.scope: Scope = scope
        self.clock = clock
        self.durability: Durability = durability
        self.history = MemoryHistory(root, durability=durability)
        self.notices: tuple[str, ...] = ()
        self.after_change: Callable[[frozenset[str]], None] | None = None  # gets the changed files, outside the guard
        self._in_set = False  # whether a change set is being made
        self._changed: set[str] = set()  # the files of the change under way
        self._indexed = False  # whether the search index was current before it
        self.index_file = IndexFile(root, durability=durability)
        self.topic_files = TopicFiles(root)

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
        """Open a store: create a missing directory and recover from a crash. A failed recovery is a notice, not an error.
        For `below` see `RootDir.open`."""
        root = RootDir.open(path, shared=scope == "team", below=below)
        store = cls(root, scope=scope, clock=clock, durability=durability)
        try:
            if swept := root.sweep():
                leftovers = f"{root.path} contained {counted(swept, 'unfinished file')} from interrupted writes"
                store.notices += (f"{leftovers}; {plural(swept, 'it was', 'they were')} removed.",)
            if needs_repair(store):
                with hold_guard(root):
                    store.repair()
        except DiskError as error:
            store.notices += (Text("{error} Until then memory can be read but not written.", error=error),)
        return store

    @classmethod
    def open_to_read(
        cls, path: str | os.PathLike[str], *, scope: Scope = "private", below: str | os.PathLike[str] | None = None
    ) -> Self:
        """Open a store only to read it: nothing is created, removed or repaired. A missing directory reads as an empty one."""
        if os.path.lexists(path):
            return cls(RootDir.open(path, create=False, shared=scope == "team", below=below), scope=scope)
        return cls(RootDir.empty(), scope=scope)

    def close(self) -> None:
        self.topic_files.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def repair(self) -> None:
        """Undo an interrupted change set, or complete an interrupted change. The guard is held."""
        self.history.catch_up()
        if self.history.is_open:
            self.notices += roll_back(self)
        self.notices += repair(self)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        if self._in_set:
            # The next change of the set looks for names again.
            try:
                yield
            finally:
                self.topic_files.release_index(self._changed)
                self._indexed = self.topic_files.hold_index()
            return
        with hold_guard(self.root):
            self.repair()
            self._indexed, self._changed = self.topic_files.hold_index(), set()
            try:
                yield
            finally:
                self.topic_files.release_index(self._changed)
        if self.after_change is not None and self._changed:
            self.after_change(frozenset(self._changed))

    @contextmanager
    def change_set(self, why: ChangeReason) -> Iterator[None]:
        """Make the changes of the block one set with the id `why.act`: all of them, or none after an error or a crash. The guard is
        held, so the block asks no model."""
        # A set is rolled back by its act.
        why = why if why.act else msgspec.structs.replace(why, act=new_act())
        with self._changing():
            self.history.begin(why, self.index_file.data(), now=self.clock())
            self._in_set = True
            try:
                yield
                self.history.end(self.index_file.data(), now=self.clock())
            except BaseException:
                # What fails here, the next writer does.
                with suppress(DiskError):
                    if self.history.has_begun:
                        roll_back(self)
                raise
            finally:
                self._in_set = False
                self.history.leave()

    # Reading

    def topics(self) -> list[Topic]:
        """Return all memories with their bodies, sorted by file. Unreadable files are left out."""
        topics = (self.topic_files.topic(entry.file) for entry in sorted(self.topic_files.files()))
        return [topic for topic in topics if topic is not None]

    def get(self, name: str) -> Topic | None:
        """Return a memory by name (in any case and Unicode form) or by file."""
        # A search asks for a file it has found: one read, no scan.
        if name.endswith(".md") and is_topic(name) and (topic := self.topic_files.topic(name)) is not None:
            return topic
        file = self.topic_files.find(name)
        return self.topic_files.topic(file) if file is not None else None

    def named(self, name: str) -> Topic | None:
        """Return a memory by name only: the one that a save of this name would change, if the name is not a file name."""
        file = self.topic_files.named(name)
        return self.topic_files.topic(file) if file is not None else None

    def raw(self, name: str) -> RawTopic | None:
        """Return a memory's file and its bytes; None if it does not exist."""
        file = self.topic_files.find(name)
        data = self.topic_files.whole(file) if file is not None else None
        return None if file is None or data is None else RawTopic(file, data)

    def index(self) -> str:
        return self.index_file.text()

    def log(self, name: str | None = None) -> list[MemoryVersion]:
        """Return the changes, newest first. `name` may also be a file, or a name or file that the memory had before."""
        return self.history.log(None if name is None else self.identity(name))

    def identity(self, name: str) -> str:
        """Return the identity of the memory with this name or file, or of the last one that had it; empty if none did."""
        file = self.topic_files.meant(name)
        if file is None and (memory := self.history.find(name)):
            return memory
        file = file or self.topic_files.find(name)
        if file is None:
            return ""
        self.history.catch_up()
        return self.history.identity(file, name, self.root.read_bytes(file, MOST_READ))

    def content(self, version_id: str) -> str | None:
        return self.history.content(version_id)

    # Writing

    def plan(self, draft: Draft) -> PlannedSave:
        """Plan a save from the current content. Nothing is changed."""
        wish = clean_draft(draft, team=self.scope == "team")
        file = self.topic_files.meant(wish.draft.name)
        if file is None:
            file = self.topic_files.free(wish.draft.name, wish.draft.type)
            topic, before = apply_draft(wish.draft, None, file), None
        else:
            before = self.topic_files.existing(file)
            topic = stamp_topic(
                apply_draft(wish.draft, read_topic(file, decode_text(before), self.clock()), file), now=self.clock()
            )
        return _planned(wish, topic if draft.modified is None else date_topic(topic, modified=draft.modified), before)

    def plan_text(self, file: str, text: str, *, keep: bool = True) -> PlannedSave:
        """Plan a `put`. Raises InputError for a text that is not a valid memory, or has the name of another one. With `keep`, keys that the
        text does not mention stay."""
        before = self.topic_files.whole(file)
        old = None if before is None else read_topic(file, decode_text(before), self.clock())
        wish, topic = read_draft(file, text, old, team=self.scope == "team", keep=keep)
        owner = self.topic_files.named(wish.draft.name)
        if owner is not None and fold_name(owner) != fold_name(file):
            raise InputError(
                wish.draft.name, Text("is already the name of the memory in {owner}", owner=owner), "change that file instead"
            )
        return _planned(wish, stamp_topic(topic, now=self.clock()), before)

    def save(self, draft: Draft, *, why: ChangeReason, base: str | None = None) -> Saved:
        """Write the file, then its index line. A memory with that name is updated; with `base`, only if it still has that
        digest."""
        with self._changing():
            planned = self.plan(draft)
            if base is not None and digest_of(planned.before) != base:
                raise changed_meanwhile(planned.topic.file)
            return self._carry_out(planned, why)

    def put(self, file: str, text: str, *, expected: bytes | None, why: ChangeReason) -> Saved:
        """Save the whole text of a topic file. `expected` is the file as the writer knows it; a changed file is not
        overwritten."""
        check_child(self.root.path, file)
        with self._changing():
            planned = self.plan_text(file, text, keep=why.who != "user")
            if planned.before != expected:
                raise changed_meanwhile(file)
            return self._carry_out(planned, why)

    def _carry_out(self, planned: PlannedSave, why: ChangeReason) -> Saved:
        topic = planned.topic
        old = None if planned.before is None else read_topic(topic.file, decode_text(planned.before), 0)
        if planned.differs:
            self.write(MemoryChange(topic.file, topic.name, "save", planned.before, planned.after, why))
        # A dream names the files it changed in its record.
        file = topic.file if old is None or why.who == "dream" else self._renamed(old.name, topic, planned.after, why)
        named = msgspec.structs.replace(topic, file=file)
        unfinished = self._listed(named, was=topic.file)
        return Saved(self.topic_files.topic(file) or named, planned.before is None, planned.wish.redacted, unfinished)

    def _renamed(self, old: str, topic: Topic, data: bytes, why: ChangeReason) -> str:
        """Rename the file of a memory whose name changed, if it was named after it. Return the file, renamed or not."""
        was, subject = topic.file, without_type(topic.file)
        file = f"{was.removesuffix(subject)}{file_name(topic.name)}"
        if file == was or subject != file_name(old) or self.root.stat(file) is not None or self.root.twin(file) is not None:
            return was
        self.history.catch_up()
        memory = self.history.identity(was, topic.name, data)
        with suppress(DiskError):  # the memory is saved under its old file name, which is as good
            self.move(MemoryChange(file, topic.name, "rename", None, data, why, memory, was))
        return file if self.root.stat(file) is not None else was

    def move(self, change: MemoryChange) -> None:
        """Give a memory's file another name. The guard is held."""
        with self._settled(change):
            self._changed.add(change.was)
            self.root.rename(change.was, change.file)

    @contextmanager
    def _settled(self, change: MemoryChange) -> Iterator[None]:
        """Record a change, then let the block make it. If that fails, record that it did not happen; without disk space for that, the next
        writer does."""
        self._changed.add(change.file)
        try:
            if self._in_set:
                self.history.catch_up()
            self.history.record(change._replace(why=change.why and _clean(change.why)), now=self.clock())
            yield
        except DiskError:
            with suppress(DiskError):
                self.history.catch_up()
                self.history.settle(self.root.read_bytes(change.file, MOST_READ), now=self.clock())
            raise

    def _listed(self, topic: Topic, *, was: str = "") -> str:
        """Add the index line of a saved memory. Return a sentence if that fails; the memory is saved anyway, unless it is part of a set."""
        try:
            self.index_file.add(topic, was=was)
        except DiskError as error:
            if self._in_set:
                raise
            return f"{error} The memory is saved, but its index line may be missing or outdated until the next save."
        return ""

    def put_index(self, text: str, *, expected: bytes | None) -> RewrittenIndex:
        """Write an index, made valid. A writer that does not know the current index (`expected`) can only add to it."""
        with self._changing():
            data = self.index_file.data()
            files = [entry.file for entry in self.topic_files.files()]
            index = rewrite_index(text, decode_text(data), files, known=data == expected, team=self.scope == "team")
            if self._in_set:
                self.history.rewrite_index(data, index.text.encode("utf-8", "surrogateescape"), now=self.clock())
            # The index was read under the guard. Only a user's editor can save in between, and its version is merged with ours.
            self.index_file.edit(lambda now: index.text if now == decode_text(data) else add_entries(now, index.text))
            return index

    def remove(self, name: str, *, why: ChangeReason, expected: bytes | None = None) -> bool:
        """Move a memory to the trash: first its index line, then its file; the journal keeps the content. Return False if it
        does not exist.

        With `expected`, only a file with that content is removed.
        """
        with self._changing():
            file = self.topic_files.find(name)
            if file is None:
                return False
            old = self.topic_files.existing(file)
            if expected is not None and old != expected:
                raise changed_meanwhile(file)
            return self.take_out(file, old, why)

    def take_out(self, file: str, old: bytes, why: ChangeReason) -> bool:
        """Move a file with this content to the trash. The guard is held."""
        topic = read_topic(file, decode_text(old), 0)
        if self._in_set:
            self.history.catch_up()
        self.history.record(MemoryChange(file, topic.name, "remove", old, None, _clean(why)), now=self.clock())
        self.index_file.drop(file)
        if self.root.read_bytes(file, MOST_READ) != old:
            self.index_file.add(read_topic(file, decode_text(self.topic_files.existing(file)), 0))
            raise changed_meanwhile(file)
        self._changed.add(file)
        try:
            return self.root.unlink(file)
        except DiskError:
            # A file that stays keeps its line. It may be gone, only not yet confirmed by the disk.
            if self.root.stat(file) is not None:
                self.index_file.add(topic)
            raise

    def merge(self, draft: Draft, gone: str, *, why: ChangeReason, base: tuple[str, str] | None = None) -> Saved:
        """Save a memory that takes over another one's text, and move that one to the trash, as one change set.

        With `base`, only if both files still have these digests.
        """
        with self.change_set(why):
            planned, file = self.plan(draft), self.topic_files.find(gone)
            if file is None or planned.before is None:
                missing = gone if file is None else draft.name
                raise InputError(missing, "no such memory exists", "run `lamina memory list` to see the names")
            if fold_name(file) == fold_name(planned.topic.file):
                raise InputError(gone, "cannot be merged with itself", "choose two memories")
            old = self.topic_files.existing(file)
            if base is not None and digest_of(planned.before) != base[0]:
                raise changed_meanwhile(planned.topic.file)
            if base is not None and digest_of(old) != base[1]:
                raise changed_meanwhile(file)
            saved = self._carry_out(planned, why)
            self.take_out(file, old, why)
            return saved

    def restore(self, name: str, version_id: str | None = None, *, why: ChangeReason, base: str | None = None) -> Topic:
        """Restore a version byte for byte, in place of the current one. Without an id: the last content that differs from the
        current one, or the last one with this name if the memory has another name now. With `base`, only if the file still
        has that digest."""
        with self._changing():
            memory = self.identity(name)
            versions = self.history.log(memory)
            file = self._place_of(name, versions)
            if file is None:
                raise InputError(name, "no such memory is known", "run `lamina memory log` to list all changes")
            if not is_topic(file):  # a user may name files as they like, but the journal of another program may name anything
                raise PathRefused(file, "is not the file of a memory", "restore it by hand")
            old = self.topic_files.whole(file)
            if base is not None and digest_of(old) != base:
                raise changed_meanwhile(file)
            current = None if old is None else read_topic(file, decode_text(old), 0)
            last = versions[0].name if current is None else current.name
            is_last = name_key(name) == name_key(last) or name in (file, *(version.file for version in versions[:1]))
            text = self._version(versions, version_id, digest_of(old), former="" if is_last else name)
            if text is None:
                wrong = "has no other version to restore" if version_id is None else f"has no version {version_id!r}"
                raise InputError(name, wrong, Text("run `lamina memory log {name}` to list the versions", name=name))
            data = text.encode("utf-8", "replace")
            topic = read_topic(file, text, self.clock())
            if name != file:  # a file named as such comes back, also as the copy that it was
                self._check_name(topic, current)
            if data != old:
                self.write(MemoryChange(file, topic.name, "restore", old, data, why, memory))
            now = self._renamed(last, topic, data, why)
            if unfinished := self._listed(msgspec.structs.replace(topic, file=now), was=file):
                raise DiskError(now, "is restored, but its index line may be missing", unfinished.removesuffix("."))
            return self.topic_files.topic(now) or topic

    def _check_name(self, topic: Topic, current: Topic | None) -> None:
        """Refuse a version whose name another memory has now."""
        if current is not None and name_key(current.name) == name_key(topic.name):
            return
        owner = self.topic_files.named(topic.name)
        if owner is not None and owner != topic.file:
            raise InputError(
                topic.name, Text("is the name of another memory now ({owner})", owner=owner), "remove or rename that one first"
            )

    def _place_of(self, name: str, versions: list[MemoryVersion]) -> str | None:
        """Return the file to restore to: its current one, its old one, or a new one if another memory has that now."""
        if (file := self.topic_files.meant(name)) is not None or not versions:
            return file
        file = versions[0].file
        # Unless it was removed, the memory is still there under its present name.
        return file if versions[0].digest or self.topic_files.topic(file) is None else self.topic_files.free(versions[0].name)

    def _version(self, versions: list[MemoryVersion], version_id: str | None, now: str, *, former: str) -> str | None:
        """Return the text to restore: the version with this id, or else the last one under its former name, if it is given."""
        if version_id is not None:
            return self.history.content(version_id) if any(version.id == version_id for version in versions) else None
        if former:
            versions = [version for version in versions if concerns(version, former)]
        digests = dict.fromkeys(digest for version in versions for digest in (version.digest, version.before))
        texts = (self.history.content_of(digest) for digest in digests if digest and digest != now)
        return next((text for text in texts if text is not None), None)

    def write(self, change: MemoryChange, *, mtime_ns: int = 0) -> None:
        """Write a file, if it is still as the change knows it. The guard is held."""
        assert change.new is not None
        with self._settled(change):
            # Only a new file can differ from another one in spelling alone.
            alone = self._indexed and change.old is None and not self.topic_files.is_listed(change.file)
            is_written = self.root.replace_if(
                change.file,
                change.new,
                expected=change.old,
                durability=self.durability,
                mtime_ns=mtime_ns or None,
                has_no_twin=alone,
            )
            if not is_written:
                raise changed_meanwhile(change.file)


def _planned(wish: CleanDraft, topic: Topic, before: bytes | None) -> PlannedSave:
    text = write_topic(topic, before=None if before is None else decode_text(before))
    if read_front_matter(text).head is None:
        raise InputError(topic.file, "its front matter would be too long to read", "shorten the keys that were added by hand")
    return PlannedSave(wish, topic, before, text.encode("utf-8", "replace"))


def _clean(why: ChangeReason) -> ChangeReason:
    return msgspec.structs.replace(why, why=one_line(redact(why.why).text, _REASON_CHARS))
