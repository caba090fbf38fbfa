"""Modes for each scope (B5): off, read-only, confirm, auto.

Owns who may write. `off`: memory is empty and takes nothing. `read-only`: it is read and takes nothing. `confirm`: what a person saves
is saved, what anybody else would change waits in the inbox. `auto`: everybody writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias, assert_never

import msgspec

from ...core.errors import InputError, SettingError
from ...core.settings import Mode
from .contract import Proposed, Saved, Version, Who, Why
from .daily_logs import append
from .directory import DirectoryStore
from .draft import Draft
from .inbox import Inbox
from .index import INDEX, Rewritten
from .scan import Header
from .topic import Topic, evidence_of

Verdict: TypeAlias = Literal["write", "propose", "refuse"]


def plan_write(mode: Mode, who: Who) -> Verdict:
    match mode:
        case "auto":
            return "write"
        case "confirm":
            return "write" if who == "user" else "propose"
        case "read-only" | "off":
            return "refuse"
        case _:
            assert_never(mode)


class GatedStore:
    """A store under its scope's mode; the same contract as the store itself."""

    __slots__ = ("inbox", "mode", "store")

    def __init__(self, store: DirectoryStore, mode: Mode) -> None:
        self.store = store
        self.mode: Mode = mode
        self.inbox = Inbox(store)

    @property
    def readable(self) -> bool:
        return self.mode != "off"

    def topics(self) -> list[Topic]:
        return self.store.topics() if self.readable else []

    def headers(self) -> list[Header]:
        return self.store.headers() if self.readable else []

    def bodies(self, headers: Sequence[Header]) -> dict[str, str]:
        return self.store.scanner.bodies(headers) if self.readable else {}

    def get(self, name: str) -> Topic | None:
        return self.store.get(name) if self.readable else None

    def index(self) -> str:
        return self.store.index() if self.readable else ""

    def log(self, name: str | None = None) -> list[Version]:
        return self.store.log(name) if self.readable else []

    def content(self, version_id: str) -> str | None:
        return self.store.content(version_id) if self.readable else None

    def save(self, draft: Draft, *, why: Why) -> Saved | Proposed:
        return self.store.save(draft, why=why) if self._may(why) else self.inbox.propose_save(draft, why=why)

    def put(self, file: str, text: str, *, expected: bytes | None, why: Why) -> Saved | Proposed:
        """A topic file as a whole. What waits for a yes keeps the name the memory has."""
        if self._may(why):
            return self.store.put(file, text, expected=expected, why=why)
        planned = self.store.plan_text(file, text)
        old = self.store.get(file)
        wish = msgspec.structs.replace(planned.wish.draft, evidence=evidence_of(planned.topic))
        return self.inbox.propose_save(wish if old is None else msgspec.structs.replace(wish, name=old.name), why=why)

    def note(self, file: str, bullets: Sequence[str], *, why: Why) -> bytes:
        """Into a daily log, in confirm mode too: nothing of it is remembered before a dream makes memories of it, and those wait."""
        self._may(why)
        return append(self.store.root, file, bullets, durability=self.store.durability)

    def put_index(self, text: str, *, expected: bytes | None, why: Why) -> Rewritten:
        if not self._may(why):
            problem = f"is written from the memories a person has accepted, since {self.store.scope} memory is in mode confirm"
            raise InputError(INDEX, problem, "nothing is left to do here")
        return self.store.put_index(text, expected=expected)

    def remove(self, name: str, *, why: Why) -> bool:
        """False when nothing was removed: there is no such memory, or the removal waits for a yes."""
        return self.drop(name, why=why) is True

    def drop(self, name: str, *, why: Why, expected: bytes | None = None) -> bool | Proposed:
        """As `remove`, and says where a removal waits for a yes."""
        if self._may(why):
            return self.store.remove(name, why=why, expected=expected)
        return self.inbox.propose_removal(name, why=why) or False

    def restore(self, name: str, version_id: str | None = None, *, why: Why) -> Topic:
        if not self._may(why):
            raise InputError(
                name, "restoring is for a person to do here", f"the mode of {self.store.scope} memory is {self.mode}"
            )
        return self.store.restore(name, version_id, why=why)

    def check(self, who: Who) -> None:
        """SettingError where nothing that this writer does would be taken, not even as a proposal."""
        self._may(Why(who))

    def accept(self, proposal_id: str) -> Saved | bool:
        """Does what was proposed: a person's own doing, where the mode lets anything be written."""
        self._may(Why("user"))
        return self.inbox.accept(proposal_id)

    def _may(self, why: Why) -> bool:
        match plan_write(self.mode, why.who):
            case "write":
                return True
            case "propose":
                return False
            case "refuse":
                problem = f"{self.store.scope} memory is {self.mode}, so nothing in it is changed"
                raise SettingError("memoryMode", self.store.scope, problem, "set it to auto or confirm")
