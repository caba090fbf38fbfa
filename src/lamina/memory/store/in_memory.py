"""Memories in a dict: for tests, for runs that leave nothing behind, and for callers who store them elsewhere.

It implements `MemoryStore` without a disk; its content ends with the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from ...core.errors import InputError
from ...core.settings import Scope
from .contract import ChangeAction, ChangeReason, MemoryVersion, Saved
from .draft import Draft, apply_draft, clean_draft, second_file
from .index import drop_entry, entry_of, make_room, put_entry
from .journal import concerns, digest_of
from .topic import Topic, date_topic, file_name, name_key, read_topic, stamp_topic, write_topic


class InMemoryStore:
    __slots__ = ("_contents", "_files", "_index", "_log", "clock", "scope")

    def __init__(self, *, scope: Scope = "private", clock: Callable[[], float] = time.time) -> None:
        self.scope: Scope = scope
        self.clock = clock
        self._files: dict[str, tuple[str, float]] = {}
        self._index = ""
        self._log: list[MemoryVersion] = []
        self._contents: dict[str, str] = {}

    def topics(self) -> list[Topic]:
        return [read_topic(file, text, mtime) for file, (text, mtime) in sorted(self._files.items())]

    def get(self, name: str) -> Topic | None:
        return self._named(name) or next((topic for topic in self.topics() if topic.file in (name, f"{name}.md")), None)

    def _named(self, name: str) -> Topic | None:
        return next((topic for topic in self.topics() if name_key(topic.name) == name_key(name)), None)

    def index(self) -> str:
        return self._index

    def save(self, draft: Draft, *, why: ChangeReason) -> Saved:
        wish = clean_draft(draft, team=self.scope == "team")
        name, modified = wish.draft.name, wish.draft.modified
        old = self.get(name) if name.endswith(".md") else self._named(name)
        file = old.file if old else self._free(name)
        before = self._files[file][0] if old else None
        topic = apply_draft(wish.draft, old, file)
        if old is None or write_topic(topic, before=before) != before:
            topic = stamp_topic(topic, now=self.clock()) if modified is None else date_topic(topic, modified=modified)
            self._put(topic.name, file, write_topic(topic, before=before), "save", why)
        self._list(topic)
        return Saved(self.get(topic.name) or topic, old is None, wish.redacted)

    def remove(self, name: str, *, why: ChangeReason) -> bool:
        topic = self.get(name)
        if topic is None:
            return False
        self._index = drop_entry(self._index, topic.file)
        self._put(topic.name, topic.file, None, "remove", why)
        return True

    def log(self, name: str | None = None) -> list[MemoryVersion]:
        return [version for version in reversed(self._log) if name is None or concerns(version, name)]

    def content(self, version_id: str) -> str | None:
        return next((self._contents.get(version.digest) for version in self._log if version.id == version_id), None)

    def restore(self, name: str, version_id: str | None = None, *, why: ChangeReason) -> Topic:
        versions = self.log(name)
        current = self.get(name) if name.endswith(".md") else self._named(name)
        now = digest_of(self._files[current.file][0].encode()) if current else ""
        if version_id is None:
            version_id = next((version.id for version in versions if version.digest not in ("", now)), None)
        text = self.content(version_id) if version_id in {version.id for version in versions} and version_id else None
        if text is None:
            raise InputError(name, "has no such version", "run `lamina memory log` to list the versions")
        file = current.file if current else versions[0].file
        file = file if current or file not in self._files else self._free(versions[0].name)
        topic = read_topic(file, text, self.clock())
        self._put(topic.name, file, text, "restore", why)
        self._list(topic)
        return topic

    def _list(self, topic: Topic) -> None:
        """Add the index line. If the index is full, the lines of the oldest memories leave."""
        oldest = sorted((file for file in self._files if file != topic.file), key=lambda file: self._files[file][1])
        self._index = make_room(put_entry(self._index, entry_of(topic)), oldest, keep=topic.file)

    def _free(self, name: str) -> str:
        file = file_name(name)
        return file if file not in self._files else second_file(file, name_key(name))

    def _put(self, name: str, file: str, text: str | None, action: ChangeAction, why: ChangeReason) -> None:
        """Log a change, then make it; without a text the file is removed."""
        before = digest_of(self._files[file][0].encode()) if file in self._files else ""
        digest = digest_of(None if text is None else text.encode())
        self._log.append(MemoryVersion(str(len(self._log) + 1), self.clock(), name, action, why, digest, file, before))
        if text is None:
            del self._files[file]
        else:
            self._contents[digest] = text
            self._files[file] = (text, self.clock())
