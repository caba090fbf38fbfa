"""The services that the loop on top of a session provides to the layers. All are optional; another loop provides none.

It is one frozen value, handed over once, when the session or the loop on top of it is opened. The layers read it when they need it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from ..core.blocks import Wire

if TYPE_CHECKING:  # a session that provides nothing does not load these
    from pathlib import Path

    from ..memory.store.contract import ChangeReason
    from ..memory.store.scopes import MemoryLocation
    from ..memory.tool_writes import WriteOutcome
    from ..tools.hooks.protocol import HookOutcome
    from ..tools.read_state import ReadState
    from ..tools.tool import FileChange
    from .tool_runner import ToolRunner


class Restorable(NamedTuple):
    """A text that the host wants back in view after a compaction."""

    kind: str
    key: str
    text: str


class MemoryAccess(msgspec.Struct, frozen=True):
    """Access to memory for background work. Only a main agent has it, since its parent judges what a subagent learned."""

    place: MemoryLocation
    project: Path
    session: str
    write: Callable[[FileChange, ChangeReason], WriteOutcome | None]  # None: not a memory file
    interactive: bool  # a user is present


# A text that a host restores, or a function that is called at each compaction and may return None.
Source: TypeAlias = "str | Callable[[], str | None]"
# Sends a message to `bridge:ID` (id, text, summary). Returns None, or why it failed.
Bridge: TypeAlias = Callable[[str, str, str], "str | None"]


class Host(msgspec.Struct, frozen=True, kw_only=True):
    """Functions and values of your loop for the layers. Pass it as `host` when you open a session. All fields are optional.

    `observer` is called with each event of a layer: its name, such as `"compaction"`, and its data, a dict. It runs in the thread that uses
    the session; an exception becomes a notice. `tool_runner` runs the tools of forks. `file_tools` names your tools that can open a local
    file. `reads`, `todos` and `restorable` provide what a compaction restores. `pre_compact`, `post_compact` and `session_start` are hooks
    around a compaction. `bridge` delivers messages to another system.
    """

    subagent: bool = False  # a subagent's conversation: no recall and no extraction
    tool_runner: ToolRunner | None = None  # runs a fork's tools; None: forks call none
    reads: ReadState | None = None  # which files were read
    read_tool: str = ""  # name of the host's own tool that reads files, besides Read
    file_tools: tuple[str, ...] = ()  # names of the host's other tools that read or search local files, such as a shell
    todos: Callable[[], str | None] | None = None
    restorable: Callable[[], Sequence[Restorable]] | None = None  # for texts that change; fixed ones are registered
    pre_compact: Callable[[str, str], HookOutcome] | None = None  # trigger, instructions
    post_compact: Callable[[str, str], HookOutcome] | None = None  # trigger, summary
    session_start: Callable[[str], HookOutcome] | None = None  # source
    reminder: Callable[[], str | None] | None = None  # rebuilds the first reminder from the current files
    memory: MemoryAccess | None = None  # None: no memories are written in the background
    observer: Callable[[str, Wire], None] | None = None  # gets the name and the data of each event of a layer
    bridge: Bridge | None = None
