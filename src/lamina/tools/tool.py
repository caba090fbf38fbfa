"""The tool protocol: a name, a schema, a description, and a function from arguments to a ToolOutput.

This module defines the values that tools and their callers share. Invariant: `run` returns for every input. Bad arguments, a
missing file and a failing command become outputs with `is_error` and one clear sentence. Each tool bounds the size of its
outputs.

Arguments are checked against the part of JSON Schema that our schemas use: object with properties and required; string (minLength,
maxLength, enum), integer and number (minimum, maximum), boolean, array (items, maxItems). Anything else in a schema is our own mistake
and raises. Models send numbers and booleans as strings, lists as JSON text, null for "not given", and arguments of other programs' tools:
all of these are accepted. Missing values, other wrong types (a number where text is expected may have lost digits) and values out of range
are refused with one sentence that names the field.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from threading import Event
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from ..core.blocks import Wire, scrub
from ..core.decoding import UNDECODABLE
from ..core.errors import DiskError, ProtectedFile
from .read_state import ReadRange, ReadState, digest

# The limit for results that stay in the conversation, in characters: every tool keeps to it except Read, which has its own
# pages.
MAX_RESULT = 50_000
STOPPED = "The call was stopped before it finished."

Status = Literal["pending", "in_progress", "completed"]


class ToolOutput(msgspec.Struct, frozen=True):
    content: str | list[Wire]  # what the model reads
    is_error: bool = False
    facts: Wire = {}  # for people and layers; see each tool
    fenced: bool = False  # a text of Lamina's own, with fences around the data in it; every other text is escaped


class FileChange(NamedTuple):
    """A file as a call would leave it. `before` is its current content, None for a new file. `unread` is why it may not be
    replaced without being read, None if it may."""

    path: Path
    data: bytes
    before: bytes | None
    unread: str | None = None


class KeeperVerdict(msgspec.Struct, frozen=True):
    """The outcome of a change that a keeper took over. `data` is the file's new content; None if it was not written or was
    removed."""

    said: str
    data: bytes | None = None
    is_error: bool = False
    # Another file that changed along: path, old content, new content. If the model knew the old content, it counts as read.
    beside: tuple[Path, bytes, bytes] | None = None
    facts: Wire = {}  # of the tool's output


class Todo(msgspec.Struct, frozen=True):
    content: str
    status: Status = "pending"


class ExpandedPage(NamedTuple):
    """One page of the original text behind an id."""

    text: str
    number: int  # from 1
    pages: int


# Takes a node and a page and returns one page; page None returns the whole text, for a search.
ExpandNode: TypeAlias = Callable[[str, int | None], ExpandedPage]
# Takes a query, the number of results, whether it is literal, and whether to stop; returns the text for the model.
SearchPast: TypeAlias = Callable[[str, int, bool, Callable[[], bool]], str]


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a tool may touch. There is one per conversation; a fork's is made with `reads.clone()`."""

    cwd: Path
    memory_dir: Path | None = None  # exists only after the first memory; until then a search in it finds nothing
    roots: tuple[Path, ...] = ()  # a symbolic link to a file is written through only if it leads into one of these
    target: Path | None = None  # the resolved path this call may write to; None if it was not judged
    reads: ReadState = msgspec.field(default_factory=ReadState)
    abort: Event = msgspec.field(default_factory=Event)
    environ: Mapping[str, str] = {}
    todos: list[Todo] = msgspec.field(default_factory=list)
    on_output: Callable[[str], None] | None = None  # receives Bash output as it is printed; bounded
    scratch: Path | None = None  # directory for Bash output too large to show; None for the system's temporary directory
    may_read: Callable[[Path], bool] | None = None  # whether a search may show this file's content; None for every file
    # Writes files that tools must not write themselves, such as memories; returns None for every other file.
    keeper: Callable[[FileChange], KeeperVerdict | None] | None = None
    expand: ExpandNode | None = None  # reads what was removed from the conversation, page by page
    compact: Callable[[str], str] | None = None  # asks for a compaction before the next call; returns what to tell the model
    past: SearchPast | None = None  # searches earlier conversations
    hand_over: frozenset[str] = frozenset()  # secret variables that commands may see anyway
    call: str = ""  # the id of the call this context is for


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
    """A built-in tool: arguments are checked against the schema before `act` sees them."""

    name: str
    description: str
    schema: Wire
    read_only: bool
    act: Callable[[Wire, Context], ToolOutput]
    together: bool = False  # whether adjacent calls may run in parallel although they may change something

    def run(self, arguments: Wire, context: Context) -> ToolOutput:
        try:
            values, note = check_arguments(self.schema, arguments)
            if context.abort.is_set():
                return failure(STOPPED)
            output = self.act(values, context)
            if not note:
                return output
            content = output.content
            if isinstance(content, str):
                return msgspec.structs.replace(output, content=f"{content}\n{note}" if content else note)
            return msgspec.structs.replace(output, content=[*content, {"type": "text", "text": note}])
        except InvalidArguments as error:
            return failure(f"{self.name}: {error}")
        except DiskError as error:
            failed = isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, FileNotFoundError)
            # A model could change them by itself; an error of the disk addresses users.
            advice = " Ask the user before changing them." if isinstance(error, ProtectedFile) else ""
            return failure(f"{error}{advice}", path=error.path, **({"disk_error": True} if failed else {}))


class GuardedTool(msgspec.Struct, frozen=True):
    """A tool with a check in front. `first` sees a call's arguments and either answers the call or returns the arguments to
    run it with. Callers see the same tool."""

    name: str
    description: str
    schema: Wire
    read_only: bool
    inner: Tool
    first: Callable[[Wire], Wire | ToolOutput]

    def run(self, arguments: Wire, context: Context) -> ToolOutput:
        answer = self.first(arguments)
        return answer if isinstance(answer, ToolOutput) else self.inner.run(answer, context)


def guard(tool: Tool, first: Callable[[Wire], Wire | ToolOutput]) -> GuardedTool:
    return GuardedTool(tool.name, tool.description, tool.schema, tool.read_only, tool, first)


def offer_to_keeper(change: FileChange, context: Context) -> ToolOutput | None:
    """Return the keeper's answer and record the files it wrote as read; None if the tool itself has to write."""
    verdict = context.keeper(change) if context.keeper is not None else None
    if verdict is None:
        return None
    if verdict.data is not None:
        _note(change.path, verdict.data, context)
    if verdict.beside is not None:
        path, before, after = verdict.beside
        if context.reads.problem(path, before) is None:
            _note(path, after, context)
    facts: Wire = {"path": str(change.path), "bytes": len(verdict.data or b""), **verdict.facts}
    return ToolOutput(verdict.said, is_error=verdict.is_error, facts=facts)


def _note(path: Path, data: bytes, context: Context) -> None:
    """Record a written file as read. A file that was removed again is not recorded, so it must be read before the next
    change."""
    if path.exists():
        context.reads.note(path, ReadRange(digest(data)))


def definition(tool: Tool) -> Wire:
    """Return the tool in the API's format."""
    return {"name": tool.name, "description": tool.description, "input_schema": tool.schema}


def fit_lines(lines: Sequence[str], room: int) -> list[str]:
    """Return the first lines that together fit into `room` characters."""
    sizes = accumulate(len(line) + 1 for line in lines)
    return [line for line, size in zip(lines, sizes, strict=True) if size <= room]


def failure(sentence: str, **facts: object) -> ToolOutput:
    return ToolOutput(sentence, is_error=True, facts=facts)


# A message names a few of them; a model that sends a hundred has mixed up two tools.
_MOST_NAMED = 5
# Longer values are cut.
_SHOWN = 60


class InvalidArguments(Exception):
    """The arguments are invalid; the text is a sentence for the model."""


Schema: TypeAlias = Mapping[str, Any]


def check_arguments(schema: Schema, arguments: object) -> tuple[Wire, str]:
    """Return the values, and a note for the model that names the ignored arguments."""
    if not isinstance(arguments, Mapping):
        raise InvalidArguments(f"the arguments must be a JSON object, not {_describe(arguments)}.")
    values = _object(schema, scrub(arguments), "")
    unknown = [str(name) for name in arguments if name not in schema["properties"]]
    if not unknown:
        return values, ""
    ignored = ", ".join(repr(name[:_SHOWN]) for name in unknown[:_MOST_NAMED]) + (", …" if len(unknown) > _MOST_NAMED else "")
    return values, f"[Ignored: {ignored}. This tool accepts {', '.join(schema['properties'])}.]"


def _object(schema: Schema, value: Mapping[str, Any], where: str) -> Wire:
    values: Wire = {}
    for name, inner in schema["properties"].items():
        place = f"{where}.{name}" if where else name
        if value.get(name) is not None:
            values[name] = _value(inner, value[name], place)
        elif name in schema.get("required", ()):
            raise InvalidArguments(f"{place} is missing. It must be {_wanted(inner)}.")
    return values


def _value(schema: Schema, value: Any, where: str) -> Any:
    match schema["type"]:
        case "string":
            if not isinstance(value, str) or value not in schema.get("enum", (value,)):
                raise _wrong(schema, value, where)
            if len(value) < schema.get("minLength", 0):
                raise InvalidArguments(f"{where} must not be empty.")
            if len(value) > schema.get("maxLength", math.inf):
                raise InvalidArguments(f"{where} is too long ({len(value):,} characters, at most {schema['maxLength']:,}).")
            return value
        case "integer" | "number":
            return _number(schema, value, where)
        case "boolean":
            if isinstance(value, str) and value.strip().lower() in ("true", "false"):
                return value.strip().lower() == "true"
            if not isinstance(value, bool):
                raise _wrong(schema, value, where)
            return value
        case "array":
            if isinstance(value, str):
                try:
                    value = msgspec.json.decode(value)
                except UNDECODABLE:
                    raise _wrong(schema, value, where) from None
            if not isinstance(value, list):
                raise _wrong(schema, value, where)
            if len(value) > schema.get("maxItems", math.inf):
                raise InvalidArguments(f"{where} has {len(value):,} entries; at most {schema['maxItems']:,} are accepted.")
            return [_value(schema["items"], item, f"{where}[{index}]") for index, item in enumerate(value)]
        case "object":
            if not isinstance(value, Mapping):
                raise _wrong(schema, value, where)
            return _object(schema, value, where)
        case other:
            raise ValueError(f"a schema with the type {other!r} can't be checked")


def _number(schema: Schema, value: Any, where: str) -> int | float:
    if isinstance(value, str):
        try:
            value = float(value) if not value.strip().lstrip("+-").isdecimal() else int(value)
        except ValueError:
            raise _wrong(schema, value, where) from None
    # `isfinite` cannot take a whole number of hundreds of digits.
    if isinstance(value, bool) or not isinstance(value, int | float) or (isinstance(value, float) and not math.isfinite(value)):
        raise _wrong(schema, value, where)
    number = int(value) if value == int(value) else value
    if schema["type"] == "integer" and not isinstance(number, int):
        raise _wrong(schema, value, where)
    if not schema.get("minimum", -math.inf) <= number <= schema.get("maximum", math.inf):
        raise _wrong(schema, value, where)
    return number


def _wrong(schema: Schema, value: object, where: str) -> InvalidArguments:
    return InvalidArguments(f"{where} must be {_wanted(schema)}, not {_shown(value)[:_SHOWN]}.")


def _shown(value: object) -> str:
    match value:
        case str():
            return repr(value[:_SHOWN])
        case int() | float() if not isinstance(value, bool):
            return str(value)
        case _:
            return _describe(value)


def _wanted(schema: Schema) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(schema["enum"])
    words = {"string": "a string", "boolean": "true or false", "array": "a list", "object": "an object"}
    if (kind := schema["type"]) in words:
        return words[kind]
    word = "a whole number" if kind == "integer" else "a number"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"{word} from {low:,} to {high:,}"
    return f"{word} of at least {low:,}" if low is not None else word


def _describe(value: object) -> str:
    match value:
        case None | bool():
            return msgspec.json.encode(value).decode()
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "an object"
        case _:
            return f"a {type(value).__name__}"
