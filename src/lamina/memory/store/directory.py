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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple, Self

import msgspec

from ...core.errors import DiskError, InputError
from ...core.front_matter import read_front_matter
from ...core.settings import Scope
from ...disk.paths.memory_paths import check_child
from ...disk.temp_files import Durability
from ...disk.trees.rootdir import RootDir
from .contract import MOST_READ, ChangeReason, MemoryVersion, Saved
from .draft import CleanDraft, Draft, apply_draft, clean_draft, read_draft
from .history import MemoryHistory, hold_guard
from .index import IndexFile, RewrittenIndex, add_entries, rewrite_index
from .journal import MemoryChange, digest_of
from .recovery import needs_repair, repair
from .secrets import redact
from .topic import Topic, date_topic, fold_name, one_line, read_topic, says_the_same, stamp_topic, without_stamp, write_topic
from .topic_files import TopicFiles, changed_meanwhile, decode_text, is_topic

_REASON_CHARS = 500


class PlannedSave(NamedTuple):
    """What a save would do: the file, its bytes before (None: it is new) and after."""

    wish: CleanDraft
    topic: Topic
    before: bytes | None
    after: bytes


class RawTopic(NamedTuple):
    file: str
    data: bytes


class DirectoryStore:
    """Not for two threads at once; any number of processes may each have their own."""

    __slots__ = ("clock", "durability", "history", "index_file", "notices", "root", "scope", "topic_files")

    def __init__(
        self, root: RootDir, *, scope: Scope = "private", clock: Callable[[], float] = time.time, durability: Durability = "full"
    ) -> None:
        self.root = root
        self.scope: Scope = scope
        self.clock = clock
        self.durability: Durability = durability
        self.history = MemoryHistory(root, durability=durability)
        self.notices: tuple[str, ...] = ()
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
        """Makes the directory if it is missing and mends what a crash left. What cannot be mended is a notice, not an error. `below`:
        as in `RootDir.open`."""
        root = RootDir.open(path, shared=scope == "team", below=below)
        store = cls(root, scope=scope, clock=clock, durability=durability)
        try:
            if swept := root.sweep():
                store.notices += (
                    f"{root.path} held {swept} unfinished files of writes that were interrupted; they were removed.",
                )
            if needs_repair(store.topic_files, store.index_file, store.history):
                with hold_guard(root):
                    store.repair()
        except DiskError as error:
            store.notices += (f"{error} Memory is read and not written until then.",)
        return store

    def close(self) -> None:
        self.root.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def repair(self) -> None:
        """Finish what a writer that was stopped left undone. The guard is held."""
        self.notices += repair(self.topic_files, self.index_file, self.history, now=self.clock())

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with hold_guard(self.root):
            self.repair()
            yield

    # Reading

    def topics(self) -> list[Topic]:
        """All memories with their bodies, in the order of their files. What cannot be read is left out."""
        found = (self.topic_files.topic(found.file) for found in sorted(self.topic_files.files()))
        return [topic for topic in found if topic is not None]

    def get(self, name: str) -> Topic | None:
        """By name, whatever its case and Unicode form, or by file."""
        # As a search asks for what it found: read once, and no scan.
        if name.endswith(".md") and is_topic(name) and (topic := self.topic_files.topic(name)) is not None:
            return topic
        file = self.topic_files.find(name)
        return self.topic_files.topic(file) if file is not None else None

    def named(self, name: str) -> Topic | None:
        """By name only: what a save of this name would change, if the name is none of a file."""
        file = self.topic_files.named(name)
        return self.topic_files.topic(file) if file is not None else None

    def raw(self, name: str) -> RawTopic | None:
        """The file of a memory and its bytes; None when there is no such memory."""
        file = self.topic_files.find(name)
        data = self.topic_files.whole(file) if file is not None else None
        return None if file is None or data is None else RawTopic(file, data)

    def index(self) -> str:
        return self.index_file.text()

    def log(self, name: str | None = None) -> list[MemoryVersion]:
        """The changes, newest first; `name` may be a file too."""
        return self.history.log(name)

    def content(self, version_id: str) -> str | None:
        return self.history.content(version_id)

    # Writing

    def plan(self, draft: Draft) -> PlannedSave:
        """What `save` would write, from what stands there now. Nothing is changed."""
        wish = clean_draft(draft, team=self.scope == "team")
        file = self.topic_files.meant(wish.draft.name)
        if file is None:
            file = self.topic_files.free(wish.draft.name)
            topic, before = apply_draft(wish.draft, None, file), None
        else:
            before = self.topic_files.there(file)
            topic = stamp_topic(
                apply_draft(wish.draft, read_topic(file, decode_text(before), self.clock()), file), now=self.clock()
            )
        return _planned(wish, topic if draft.modified is None else date_topic(topic, modified=draft.modified), before)

    def plan_text(self, file: str, text: str) -> PlannedSave:
        """What `put` would write; InputError for a text that is no memory, or has the name of another one."""
        before = self.topic_files.whole(file)
        old = None if before is None else read_topic(file, decode_text(before), self.clock())
        wish, topic = read_draft(file, text, old, team=self.scope == "team")
        owner = self.topic_files.named(wish.draft.name)
        if owner is not None and fold_name(owner) != fold_name(file):
            raise InputError(wish.draft.name, f"is the name of the memory in {owner} already", "change that file instead")
        return _planned(wish, stamp_topic(topic, now=self.clock()), before)

    def save(self, draft: Draft, *, why: ChangeReason, base: str | None = None) -> Saved:
        """The file, then its index line. A memory of that name is updated; with `base` only one that still has that digest."""
        with self._changing():
            planned = self.plan(draft)
            if base is not None and digest_of(planned.before) != base:
                raise changed_meanwhile(planned.topic.file)
            return self._carry_out(planned, why)

    def put(self, file: str, text: str, *, expected: bytes | None, why: ChangeReason) -> Saved:
        """As `save`, from the whole text of a topic file. `expected` is the file as the writer knows it: another one wins."""
        check_child(self.root.path, file)
        with self._changing():
            planned = self.plan_text(file, text)
            if planned.before != expected:
                raise changed_meanwhile(file)
            return self._carry_out(planned, why)

    def _carry_out(self, planned: PlannedSave, why: ChangeReason) -> Saved:
        topic = planned.topic
        old = None if planned.before is None else read_topic(topic.file, decode_text(planned.before), 0)
        # A stamp alone is no change.
        if old is None or not says_the_same(without_stamp(old), without_stamp(topic)):
            self._write(MemoryChange(topic.file, topic.name, "save", planned.before, planned.after, why))
        unfinished = self._listed(topic)
        return Saved(self.topic_files.topic(topic.file) or topic, planned.before is None, planned.wish.redacted, unfinished)

    def _listed(self, topic: Topic) -> str:
        """Adds the line of a memory that is saved; why that is not done, where it is not: the memory is there all the same."""
        try:
            self.index_file.add(topic)
        except DiskError as error:
            return f"{error} The memory is saved; its line there may be missing or old until the next save here."
        return ""

    def put_index(self, text: str, *, expected: bytes | None) -> RewrittenIndex:
        """The index as somebody wants it, within its rules. Who does not know it as it is (`expected`) only adds to it."""
        with self._changing():
            there = self.index_file.data()
            files = [found.file for found in self.topic_files.files()]
            done = rewrite_index(text, decode_text(there), files, known=there == expected, team=self.scope == "team")
            # Read under the guard; only a person's editor can come between, and its version is merged with ours.
            self.index_file.edit(lambda now: done.text if now == decode_text(there) else add_entries(now, done.text))
            return done

    def remove(self, name: str, *, why: ChangeReason, expected: bytes | None = None) -> bool:
        """To the trash: the index line goes, then the file; the journal keeps its content. False when there is no such memory.

        With `expected` only a file that still holds that is removed.
        """
        with self._changing():
            file = self.topic_files.find(name)
            if file is None:
                return False
            old = self.topic_files.there(file)
            if expected is not None and old != expected:
                raise changed_meanwhile(file)
            topic = read_topic(file, decode_text(old), 0)
            self.history.record(MemoryChange(file, topic.name, "remove", old, None, _clean(why)), now=self.clock())
            self.index_file.drop(file)
            if self.root.read_bytes(file, MOST_READ) != old:
                self.index_file.add(read_topic(file, decode_text(self.topic_files.there(file)), 0))
                raise changed_meanwhile(file)
            try:
                return self.root.unlink(file)
            except DiskError:
                # What stays keeps its line; it may be gone, and only not confirmed by the disk.
                if self.root.stat(file) is not None:
                    self.index_file.add(topic)
                raise

    def restore(self, name: str, version_id: str | None = None, *, why: ChangeReason) -> Topic:
        """Puts a version back, byte for byte; without an id the last content that differs from what stands there now."""
        with self._changing():
            versions = self.history.log(name)
            file = self._place_of(name, versions)
            if file is None:
                raise InputError(name, "nothing is known of such a memory", "`lamina memory log` lists what there was")
            check_child(self.root.path, file)
            old = self.topic_files.whole(file)
            text = self._version(versions, version_id, digest_of(old))
            if text is None:
                wrong = "has no other version to go back to" if version_id is None else f"has no version {version_id!r}"
                raise InputError(name, wrong, f"`lamina memory log {name}` lists those there are")
            data = text.encode("utf-8", "replace")
            topic = read_topic(file, text, self.clock())
            if data != old:
                self._write(MemoryChange(file, topic.name, "restore", old, data, why))
            if unfinished := self._listed(topic):
                raise DiskError(file, "is as it was then, but its line in the index may be missing", unfinished.removesuffix("."))
            return self.topic_files.topic(file) or topic

    def _place_of(self, name: str, versions: list[MemoryVersion]) -> str | None:
        """Where a memory goes back to: its file, the one it had, or a new one where another memory has that now."""
        if (file := self.topic_files.meant(name)) is not None or not versions:
            return file
        file = versions[0].file
        return file if self.topic_files.topic(file) is None else self.topic_files.free(versions[0].name)

    def _version(self, versions: list[MemoryVersion], version_id: str | None, now: str) -> str | None:
        if version_id is not None:
            return self.history.content(version_id) if any(version.id == version_id for version in versions) else None
        digests = dict.fromkeys(digest for version in versions for digest in (version.digest, version.before))
        texts = (self.history.content_of(digest) for digest in digests if digest and digest != now)
        return next((text for text in texts if text is not None), None)

    def _write(self, change: MemoryChange) -> None:
        assert change.new is not None
        try:
            self.history.record(change._replace(why=change.why and _clean(change.why)), now=self.clock())
            done = self.root.replace_if(change.file, change.new, expected=change.old, durability=self.durability)
        except DiskError:
            # The journal tells of a change that did not happen. Where there is no room to say so, the next write does.
            with suppress(DiskError):
                self.history.catch_up()
                self.history.settle(self.root.read_bytes(change.file, MOST_READ), now=self.clock())
            raise
        if not done:
            raise changed_meanwhile(change.file)


def _planned(wish: CleanDraft, topic: Topic, before: bytes | None) -> PlannedSave:
    text = write_topic(topic, before=None if before is None else decode_text(before))
    if read_front_matter(text).head is None:
        raise InputError(topic.file, "its front matter would be too long to be read", "shorten the keys that were added by hand")
    return PlannedSave(wish, topic, before, text.encode("utf-8", "replace"))


def _clean(why: ChangeReason) -> ChangeReason:
    return msgspec.structs.replace(why, why=one_line(redact(why.why).text, _REASON_CHARS))
