"""What the loop on top of a session lends to the layers. All of it is optional: a session under somebody else's loop lends nothing.

One frozen value, handed over with `Session.lend` when the loop starts; the layers read it when they need it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from ..core.blocks import Wire

if TYPE_CHECKING:  # a session that lends nothing pays for none of it
    from pathlib import Path

    from ..hooks.events import HookOutcome
    from ..memory.store.contract import ChangeReason
    from ..memory.store.scopes import MemoryLocation
    from ..memory.tool_writes import WriteOutcome
    from ..tools.read_state import ReadState
    from ..tools.tool import FileChange
    from .tool_runner import ToolRunner


class Restorable(NamedTuple):
    """Something the host wants back in view after a compaction (C4)."""

    kind: str
    key: str
    text: str


class MemoryAccess(NamedTuple):
    """How background work writes memories (X1): a main agent's, since what a subagent learns is its parent's to judge."""

    place: MemoryLocation
    project: Path
    session: str
    write: Callable[[FileChange, ChangeReason], WriteOutcome | None]  # None: the file is none of memory's
    interactive: bool  # a person is there


# What a host has to put back: a text, or a function that is asked at each compaction and may have nothing.
Source: TypeAlias = "str | Callable[[], str | None]"
# Takes a message to `bridge:ID` (id, text, summary) and returns None, or why it was not taken.
Bridge: TypeAlias = Callable[[str, str, str], "str | None"]


class Host(msgspec.Struct, frozen=True, kw_only=True):
    subagent: bool = False  # the conversation is a subagent's: nothing is recalled for it and nothing extracted from it (A5)
    tool_runner: ToolRunner | None = None  # how a fork runs tools; None: forks call none
    reads: ReadState | None = None  # which files were read
    todos: Callable[[], str | None] | None = None
    restorable: Callable[[], Sequence[Restorable]] | None = None  # what is many or changes; single texts are registered
    pre_compact: Callable[[str, str], HookOutcome] | None = None  # trigger, instructions
    post_compact: Callable[[str, str], HookOutcome] | None = None  # trigger, summary
    session_start: Callable[[str], HookOutcome] | None = None  # source
    reminder: Callable[[], str | None] | None = None  # the first reminder, made again from the files as they are now
    memory: MemoryAccess | None = None  # None: no memories are written beside the conversation
    observer: Callable[[str, Wire], None] | None = None  # each event of a layer (K5)
    bridge: Bridge | None = None
