"""What a tool is: a name, a schema, a description, and a function from arguments to an Output.

Owns the values that tools and their callers share. Invariant: `run` returns for every input: bad arguments, a missing file and a
failing command are Outputs with `is_error` and one clear sentence. What an Output holds is bounded by the tool that made it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import msgspec

from ..core.blocks import Wire
from ..core.errors import DiskError
from .arguments import InvalidArguments, check_arguments
from .read_state import ReadRange, ReadState, digest

if TYPE_CHECKING:
    from .expand import ExpandNode

# What R1 lets stay in the conversation as it is, in characters: no tool but Read, which pages itself, hands back more.
MAX_RESULT = 50_000
STOPPED = "The call was stopped before it was done."

Status = Literal["pending", "in_progress", "completed"]


class ToolOutput(msgspec.Struct, frozen=True):
    content: str | list[Wire]  # what the model reads
    is_error: bool = False
    facts: Wire = {}  # for people and layers; see each tool


class FileChange(NamedTuple):
    """A file as a call would leave it. `before` is what it holds, None where there is none; `unread` is why that may not be replaced
    by who has not read it, None where it may."""

    path: Path
    data: bytes
    before: bytes | None
    unread: str | None = None


class KeeperVerdict(msgspec.Struct, frozen=True):
    """What became of a change that its keeper took. `data`: what the file holds now; None where it was not written or is gone."""

    said: str
    data: bytes | None = None
    is_error: bool = False
    # Another file that changed with it: path, what it held, what it holds. Who knew it knows it still.
    beside: tuple[Path, bytes, bytes] | None = None


class Todo(msgspec.Struct, frozen=True):
    content: str
    status: Status = "pending"


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a tool may touch; one per conversation, a fork's made with `reads.clone()`."""

    cwd: Path
    roots: tuple[Path, ...] = ()  # a symbolic link to a file is written through only if it leads into one of them
    target: Path | None = None  # where this call was allowed to write, without links; None: nobody judged it
    reads: ReadState = msgspec.field(default_factory=ReadState)
    abort: Event = msgspec.field(default_factory=Event)
    environ: Mapping[str, str] = {}
    todos: list[Todo] = msgspec.field(default_factory=list)
    on_output: Callable[[str], None] | None = None  # pieces of what Bash prints, as it prints it; bounded
    scratch: Path | None = None  # where Bash keeps output too large to show; None: the system's temporary directory
    may_read: Callable[[Path], bool] | None = None  # whether a search may show what this file holds; None: every file
    # Who writes a file that is not the tools' to write, a memory's for one; it answers None for every other file.
    keeper: Callable[[FileChange], KeeperVerdict | None] | None = None
    expand: ExpandNode | None = None  # what was taken out of the conversation, page by page
    hand_over: frozenset[str] = frozenset()  # names of secret variables that commands may see all the same
    call: str = ""  # the id of the call it is made for


class Tool(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def schema(self) -> Wire: ...

    @property
    def read_only(self) -> bool: ...

    def run(self, arguments: Wire, context: Context) -> ToolOutput: ...


class Builtin(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of ours: arguments are checked against the schema before `act` sees them."""

    name: str
    description: str
    schema: Wire
    read_only: bool
    act: Callable[[Wire, Context], ToolOutput]
    together: bool = False  # calls of it that stand side by side run at once, though they may change something

    def run(self, arguments: Wire, context: Context) -> ToolOutput:
        try:
            checked = check_arguments(self.schema, arguments)
            return failure(STOPPED) if context.abort.is_set() else _with_note(self.act(checked.values, context), checked.note)
        except InvalidArguments as error:
            return failure(f"{self.name}: {error}")
        except DiskError as error:
            return failure(str(error), path=error.path)


class GuardedTool(msgspec.Struct, frozen=True):
    """The same tool to whoever sees it; `first` looks at a call's arguments and answers it, or says with which ones it is run."""

    name: str
    description: str
    schema: Wire
    read_only: bool
    inner: Tool
    first: Callable[[Wire], Wire | ToolOutput]

    def run(self, arguments: Wire, context: Context) -> ToolOutput:
        found = self.first(arguments)
        return found if isinstance(found, ToolOutput) else self.inner.run(found, context)


def guard(tool: Tool, first: Callable[[Wire], Wire | ToolOutput]) -> GuardedTool:
    return GuardedTool(tool.name, tool.description, tool.schema, tool.read_only, tool, first)


def offer_to_keeper(change: FileChange, context: Context) -> ToolOutput | None:
    """Return the keeper's answer, and note the files it wrote as read; None where the tool itself has to write."""
    done = context.keeper(change) if context.keeper is not None else None
    if done is None:
        return None
    if done.data is not None:
        _note(change.path, done.data, context)
    if done.beside is not None:
        path, before, after = done.beside
        if context.reads.problem(path, before) is None:
            _note(path, after, context)
    facts: Wire = {"path": str(change.path), "bytes": len(done.data or b""), "kept": True}
    return ToolOutput(done.said, is_error=done.is_error, facts=facts)


def _note(path: Path, data: bytes, context: Context) -> None:
    """A file that is gone again was written all the same: who wants to change it reads it first."""
    if path.exists():
        context.reads.note(path, ReadRange(digest(data)))


def definition(tool: Tool) -> Wire:
    """As the API takes it."""
    return {"name": tool.name, "description": tool.description, "input_schema": tool.schema}


def fit_lines(lines: Sequence[str], room: int) -> list[str]:
    """The first lines, as many as have so many characters together."""
    sizes = accumulate(len(line) + 1 for line in lines)
    return [line for line, size in zip(lines, sizes, strict=True) if size <= room]


def failure(sentence: str, **facts: object) -> ToolOutput:
    return ToolOutput(sentence, is_error=True, facts=facts)


def _with_note(output: ToolOutput, note: str) -> ToolOutput:
    content = output.content
    if not note:
        return output
    if isinstance(content, str):
        return msgspec.structs.replace(output, content=f"{content}\n{note}" if content else note)
    return msgspec.structs.replace(output, content=[*content, {"type": "text", "text": note}])
