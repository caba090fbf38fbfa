"""What a store of memories is: the values that go in and out, and the contract two implementations keep.

`DirectoryStore` keeps them in files, `InMemoryStore` in a dict; `lamina.testing.memory_conformance` checks either. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from .topic import Topic

if TYPE_CHECKING:  # who only reads needs nothing of what may be written
    from .draft import Draft

ChangeAuthor: TypeAlias = Literal["user", "agent", "extraction", "dream"]
# "outside": a change nobody made through us. "keep": content that the journal no longer had. "undone": the change before it did not
# happen, because its writer died, or was taken back outside.
ChangeAction: TypeAlias = Literal["save", "remove", "restore", "outside", "keep", "undone"]

# A file that was put there by hand may be longer; beyond this it is no memory: its beginning is read and it is never changed.
MOST_READ = 1 << 20
# What is said of such a file.
READ_IN_PART = f"larger than {MOST_READ >> 10} KiB, read in part"


class ChangeReason(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who changed a memory, why, and where it was said. `dream` is the id of the dream that changed it, or whose change is taken back."""

    who: ChangeAuthor
    why: str = ""
    session: str | None = None
    message: str | None = None
    dream: str | None = None


class Saved(NamedTuple):
    """`redacted` names the kinds of secrets that were taken out; `unfinished` is why the index may have no new line of it yet."""

    topic: Topic
    created: bool
    redacted: tuple[str, ...] = ()
    unfinished: str = ""


class Proposed(NamedTuple):
    """Nothing was written: the change waits in the inbox for a yes."""

    id: str


class MemoryVersion(msgspec.Struct, frozen=True):
    """One change. `digest` is of the file after it, empty where it is gone; `before` of the file it changed."""

    id: str
    time: float
    name: str
    action: ChangeAction
    why: ChangeReason | None  # None for what was found, not done
    digest: str
    file: str = ""
    before: str = ""


class MemoryStore(Protocol):
    def topics(self) -> list[Topic]: ...
    def get(self, name: str) -> Topic | None: ...
    def save(self, draft: Draft, *, why: ChangeReason) -> Saved | Proposed: ...
    def remove(self, name: str, *, why: ChangeReason) -> bool: ...
    def index(self) -> str: ...
    def log(self, name: str | None = None) -> list[MemoryVersion]: ...
    def content(self, version_id: str) -> str | None: ...
    def restore(self, name: str, version_id: str | None = None, *, why: ChangeReason) -> Topic: ...
