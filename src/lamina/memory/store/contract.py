"""The memory store protocol and its values.

`DirectoryStore` keeps memories in files, `InMemoryStore` in a dict; `lamina.testing.memory_conformance` checks both. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from .topic import Topic

if TYPE_CHECKING:  # readers need none of the code for writing
    from .draft import Draft

ChangeAuthor: TypeAlias = Literal["user", "agent", "extraction", "dream"]
# "outside": a change not made through us. "keep": content that the journal no longer had. "undone": the previous change did not
# happen because its writer died, or was reverted outside. "rename": the file got another name, and its content stayed.
# "begin", "index" and "end" are about the index: as a change set found it, before it is rewritten, and as the set left it.
ChangeAction: TypeAlias = Literal["save", "remove", "restore", "outside", "keep", "undone", "rename", "begin", "index", "end"]

# A file created by hand may be longer. Beyond this size it does not count as a memory: only its beginning is read, and it is
# never changed.
MOST_READ = 1 << 20
# The problem reported for such a file.
READ_IN_PART = f"larger than {MOST_READ >> 10} KiB, read in part"


class ChangeReason(msgspec.Struct, frozen=True, omit_defaults=True):
    """The author of a change, the reason, and the session and message it came from.

    `dream` is the id of the dream that made the change. Changes with the same `act` are one change set, and are undone
    together; `undoes` is the act that an undo is about. `origin` names where the content comes from if it does not come
    from the user: such a change waits for approval. `client` names the MCP client that made it. `approved`: the user accepted it in the
    inbox.
    """

    who: ChangeAuthor
    why: str = ""
    session: str | None = None
    message: str | None = None
    dream: str | None = None
    origin: str = ""
    act: str = ""
    client: str = ""
    approved: bool = False
    undoes: str = ""


class WriteRules(NamedTuple):
    """The rules for all writers but the user: whether every change of an MCP client waits, whether what describes the code is kept, and the
    project's instruction files."""

    clients_wait: bool = False
    keep_architecture: bool = False
    instructions: Callable[[], Sequence[str]] = lambda: ()


DEFAULT_RULES = WriteRules()


class Saved(NamedTuple):
    """The result of a save. `redacted` lists the kinds of removed secrets; `unfinished` is why the index may lack the new
    line."""

    topic: Topic
    created: bool
    redacted: tuple[str, ...] = ()
    unfinished: str = ""


class Proposed(NamedTuple):
    """The change was not written: it waits in the inbox for approval."""

    id: str


class MemoryVersion(msgspec.Struct, frozen=True):
    """One change. `digest` is of the file afterwards, empty if it was removed; `before` is of the file before.

    `memory` identifies the memory, whatever its name and file; `was` is the former file of a renamed one.
    """

    id: str
    time: float
    name: str
    action: ChangeAction
    why: ChangeReason | None  # None for a change that was detected, not made by us
    digest: str
    file: str = ""
    before: str = ""
    memory: str = ""
    was: str = ""


class MemoryStore(Protocol):
    def topics(self) -> list[Topic]: ...
    def get(self, name: str) -> Topic | None: ...
    def save(self, draft: Draft, *, why: ChangeReason) -> Saved | Proposed: ...
    def remove(self, name: str, *, why: ChangeReason) -> bool: ...
    def index(self) -> str: ...
    def log(self, name: str | None = None) -> list[MemoryVersion]: ...
    def content(self, version_id: str) -> str | None: ...
    def restore(self, name: str, version_id: str | None = None, *, why: ChangeReason) -> Topic: ...
