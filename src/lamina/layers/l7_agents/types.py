"""Agent types: markdown files whose front matter names the agent and whose text is its system prompt.

    ---
    name: reviewer
    description: Reads a change and says what is wrong with it.
    tools: Read, Grep, Glob
    model: haiku
    memory: project
    ---
    You review changes. …

They lie in `.claude/agents` of the working directory and of those above it up to the top of its working tree, and in `agents` of the
user's own home, each with its folders. Of two types with one name the nearest to the working directory is taken, then the user's, as
Claude Code does, and a file's before ours.

A file may set which tools a subagent is offered, which model answers and what it is told. One of the user's own, or of a working tree
they trust, may also turn on a memory. Nothing else in it has an effect: permissions, hooks, paths and servers are the user's, and every
call of a subagent is judged as its parent's are (F2). Invariants: whatever lies there, a session starts, and an unusable file is one
sentence; in a project no link is followed, and reads are bounded in number and size.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args

import msgspec

from ...core.fence import escape
from ...core.front_matter import Value, read_front_matter
from ...core.prompt_files import prompt_text
from ...disk.home.agent_files import list_agent_files, list_agent_places
from ...prompt.safe_read import UnusableFile, read_text
from ...tools.tool import Tool

Source: TypeAlias = Literal["built-in", "user", "project"]
MemoryScope: TypeAlias = Literal["user", "project", "local"]

AGENT = "Agent"
SEND = "SendMessage"
FORK = "fork"
MAIN = "main"  # the conversation that started an agent
GENERAL = "general-purpose"
READER = "Read"
WRITERS = ("Write", "Edit")

# It stands in the tool's description, which every request carries.
MAX_DESCRIPTION = 600
MOST_TOOLS = 100
# What Claude Code called the tool before.
_FORMER = {"Task": AGENT}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}")
_TOOL = re.compile(r"[A-Za-z_][\w.-]{0,127}")
# Keys with which a file would have a say in what is the person's to decide.
_POWERS = ("permissions", "permissionMode", "hooks", "mcpServers", "env")
_SAME_MODEL = ("inherit", "")


class AgentType(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    description: str
    prompt: str
    tools: tuple[str, ...] | None = None  # None: all its parent has but Agent
    model: str | None = None  # None: its parent's
    memory: MemoryScope | None = None  # the scope of its own memory (A5)
    source: Source = "built-in"
    path: str = ""


class ReadAgentType(NamedTuple):
    """A file as a type, or why it is none; `ignored` is what of it counts for nothing. Both end a sentence that names the file."""

    kind: AgentType | None
    problem: str = ""
    ignored: str = ""


@cache
def general_type() -> AgentType:
    return AgentType(
        name=GENERAL,
        description="Searches, reads and carries out tasks of several steps; for whatever no other type is made for.",
        prompt=prompt_text(__file__, "general"),
    )


def read_agent_type(text: str, *, source: Source, path: str, trusted: bool = True) -> ReadAgentType:
    front = read_front_matter(text)
    if front.problem is not None:
        return ReadAgentType(None, f"its front matter {front.problem}")
    if front.head is None:
        return ReadAgentType(None, "it has no front matter; put name and description between two lines ---")
    fields = front.fields
    name, description = _words(fields.get("name")), _words(fields.get("description"))
    if not _NAME.fullmatch(name) or name == FORK:
        return ReadAgentType(None, f"it must have a name of letters, digits, '-' and '_' other than {FORK}")
    if not description:
        return ReadAgentType(None, "it must have a description that says what the agent is for")
    if not front.body.strip():
        return ReadAgentType(None, "it has no text below its front matter, which is what the agent is told")
    tools, ignored = _tools(fields.get("tools"))
    memory, untrusted = _memory(fields.get("memory"), trusted=trusted)
    model = _words(fields.get("model"))
    kind = AgentType(
        name=name,
        description=str(escape(description[:MAX_DESCRIPTION])),
        prompt=front.body.strip(),
        tools=tools,
        model=None if model.casefold() in _SAME_MODEL else model,
        memory=memory,
        source=source,
        path=path,
    )
    ignored += [key for key in _POWERS if key in fields]
    said = [f"an agent's file can't set {', '.join(ignored)}, so that counts for nothing"] if ignored else []
    return ReadAgentType(kind, "", "; ".join([*said, *untrusted]))


def _words(value: Value | None) -> str:
    """A text in one line; anything else says nothing."""
    return " ".join("".join(char if char.isprintable() else " " for char in value).split()) if isinstance(value, str) else ""


def _memory(value: Value | None, *, trusted: bool) -> tuple[MemoryScope | None, list[str]]:
    if value is None:
        return None, []
    scope = next((each for each in get_args(MemoryScope) if each == value), None)
    if scope is None:
        return None, [f"memory is one of {', '.join(get_args(MemoryScope))}, so what stands there counts for nothing"]
    return (scope, []) if trusted else (None, ["its memory waits until you trust this directory"])


def _tools(value: Value | None) -> tuple[tuple[str, ...] | None, list[str]]:
    """The names, and what is no name: a part of a tool, `Bash(git:*)`, would be all of it if its name were taken."""
    if value is None or value == "*":
        return None, []
    listed = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    names = [each.strip() for each in listed[:MOST_TOOLS] if isinstance(each, str) and each.strip()]
    fit = [_FORMER.get(name, name) for name in names if _TOOL.fullmatch(name)]
    return tuple(dict.fromkeys(fit)), [f"the tool {name[:80]!r}" for name in names if not _TOOL.fullmatch(name)]


def pick_tools(kind: AgentType, tools: Sequence[Tool], *, remembers: bool = False) -> tuple[Tool, ...]:
    """Of its parent's tools those it is offered, in the parent's order; what it names and nobody has is not there. An agent that
    `remembers` has what it takes to (A5): Read, and, where it may write nothing, Write and Edit for its memory alone. SendMessage comes
    with Agent."""
    if kind.tools is None:
        return tuple(tool for tool in tools if tool.name != AGENT)
    needed = ((SEND,) if AGENT in kind.tools else ()) + ((READER, *(() if can_write(kind) else WRITERS)) if remembers else ())
    return tuple(tool for tool in tools if tool.name in (*kind.tools, *needed))


def can_write(kind: AgentType) -> bool:
    """Whether it is offered tools that write files, wherever it may."""
    return kind.tools is None or any(name in kind.tools for name in WRITERS)


# Each stands in a description that every request carries.
MOST_KINDS = 50
# A system prompt of 16,000 tokens.
MOST_BYTES = 64 << 10


class Catalog(msgspec.Struct, frozen=True):
    kinds: tuple[AgentType, ...]  # ours first, then by name
    notices: tuple[str, ...] = ()

    def find(self, name: str) -> AgentType | None:
        return next((kind for kind in self.kinds if kind.name == name), None)

    @property
    def own(self) -> tuple[AgentType, ...]:
        """Those somebody wrote."""
        return tuple(kind for kind in self.kinds if kind.source != "built-in")


def load_agent_types(cwd: Path, home: Path | None, *, trusted: bool = False) -> Catalog:
    """`trusted`: the person trusts the working tree, so its files may turn on an agent's memory too (F2)."""
    found = {general_type().name: general_type()}
    notices: list[str] = []
    places: list[tuple[Source, Path]] = [("user", home / "agents")] if home is not None else []
    places += [("project", place) for place in reversed(list_agent_places(cwd))]  # the nearest last, so that it holds
    for source, directory in places:
        here: dict[str, AgentType] = {}
        for kind in _kinds_in(directory, source, notices, trusted=trusted or source == "user"):
            if kind.name in here:
                notices.append(f"{kind.path}: another file beside it is called {kind.name} too; this one is not used.")
            else:
                here[kind.name] = kind
        found |= here
    ours, rest = found.pop(general_type().name), sorted(found.values(), key=lambda kind: kind.name)
    if len(rest) > MOST_KINDS:
        notices.append(f"There are {len(rest)} agent types; the first {MOST_KINDS} by name are used.")
    return Catalog((ours, *rest[:MOST_KINDS]), tuple(notices))


def _kinds_in(directory: Path, source: Source, notices: list[str], *, trusted: bool) -> Iterator[AgentType]:
    files = list_agent_files(directory)
    if files and source == "project" and not _stays(directory):
        notices.append(f"{directory} leads out of the project, so no agent type is taken from there.")
        return
    for path in files:
        text = read_text(path if source == "project" else Path(os.path.realpath(path)), most=MOST_BYTES)
        if text is None:
            continue
        if isinstance(text, UnusableFile):
            notices.append(f"{path} is no agent type: it {text.problem}.")
            continue
        read = read_agent_type(text.text, source=source, path=str(path), trusted=trusted)
        if read.ignored:
            notices.append(f"{path}: {read.ignored}.")
        if read.kind is None:
            notices.append(f"{path} is no agent type: {read.problem}.")
        else:
            yield read.kind


def _stays(directory: Path) -> bool:
    """Whether it lies where it says: two levels below a directory of the working tree, and no link on the way leads elsewhere."""
    tree = directory.parents[1]
    return Path(os.path.realpath(directory)) == Path(os.path.realpath(tree)) / directory.relative_to(tree)
