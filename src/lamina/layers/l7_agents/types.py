"""Agent types: markdown files whose front matter names the agent and whose text is its system prompt.

    ---
    name: reviewer
    description: Reads a change and reports its problems.
    tools: Read, Grep, Glob
    model: haiku
    memory: project
    ---
    You review changes. …

Files are read from `.claude/agents` in the working directory and its parents up to the top of the working tree, and from `agents` in the
user's Lamina home, including subfolders. If two types have the same name, the one nearest to the working directory wins, then the
user's, as in Claude Code. A file wins over a built-in type.

A file may set the tools a subagent is offered, the model and the instructions. A user's own file, or one in a trusted working tree, may
also turn on a memory and bring hooks for this agent. Nothing else in it has an effect: permissions, paths and servers are the user's,
and every call of a subagent is judged like its parent's. Invariants: whatever the files contain, a session starts, and an invalid file
costs one sentence; in a project no link is followed, and reads are bounded in number and size.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import msgspec

from ...core.fence import escape
from ...core.front_matter import Value, read_front_matter
from ...core.prompt_files import prompt_text
from ...core.settings import Hooks
from ...core.settings.collection_kinds import HOOK_TABLE, NO_ENTRIES
from ...core.settings.kinds import printable
from ...disk.home.agent_files import list_agent_files, list_agent_places
from ...prompt.safe_read import UnusableFile, read_text
from ...tools.hooks.protocol import Event, plan_hooks
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

# The description is part of the tool's description, which every request carries.
MAX_DESCRIPTION = 600
MOST_TOOLS = 100
# The tool's former name in Claude Code.
_FORMER = {"Task": AGENT}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,63}")
_TOOL = re.compile(r"[A-Za-z_][\w.-]{0,127}")
# Keys that would let a file decide what only the user may decide.
_POWERS = ("permissions", "permissionMode", "mcpServers", "env")
# Fields, events, groups, a group, its commands, a command, its arguments.
_DEEPEST = 7
# The events of a subagent's own conversation. Stop is the stop of the agent.
_HOOK_EVENTS: dict[str, Event] = {
    "PreToolUse": "PreToolUse",
    "PostToolUse": "PostToolUse",
    "PostToolUseFailure": "PostToolUseFailure",
    "PreCompact": "PreCompact",
    "PostCompact": "PostCompact",
    "SubagentStop": "SubagentStop",
    "Stop": "SubagentStop",
}
_SAME_MODEL = ("inherit", "")


class AgentType(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    description: str
    prompt: str
    tools: tuple[str, ...] | None = None  # None: all of its parent's but Agent
    model: str | None = None  # None: its parent's
    memory: MemoryScope | None = None  # the scope of its own memory
    hooks: Hooks = NO_ENTRIES  # run for this agent, besides those of the settings
    source: Source = "built-in"
    path: str = ""


class ReadAgentType(NamedTuple):
    """A file parsed as a type, or the problem with it; `ignored` lists settings without effect. Both follow the file's name."""

    kind: AgentType | None
    problem: str = ""
    ignored: str = ""


@cache
def general_type() -> AgentType:
    return AgentType(
        name=GENERAL,
        description="Searches, reads and carries out tasks with several steps. Use it if no other type fits.",
        prompt=prompt_text(__file__, "general"),
    )


def read_agent_type(text: str, *, source: Source, path: str, trusted: bool = True) -> ReadAgentType:
    front = read_front_matter(text, deepest=_DEEPEST)
    if front.problem is not None:
        return ReadAgentType(None, f"its front matter {front.problem}")
    if front.head is None:
        return ReadAgentType(None, "it has no front matter. Put name and description between two lines of ---")
    fields = front.fields
    name, description = _one_line(fields.get("name")), _one_line(fields.get("description"))
    if not _NAME.fullmatch(name) or name == FORK:
        return ReadAgentType(None, f"its name must consist of letters, digits, '-' and '_', and must not be {FORK}")
    if not description:
        return ReadAgentType(None, "it has no description, which tells what the agent is for")
    if not front.body.strip():
        return ReadAgentType(None, "it has no text below the front matter, which becomes the agent's system prompt")
    tools, ignored = _read_tools(fields.get("tools"))
    memory, untrusted = _read_memory(fields.get("memory"), trusted=trusted)
    hooks, unused = _read_hooks(fields.get("hooks"), trusted=trusted)
    model = _one_line(fields.get("model"))
    kind = AgentType(
        name=name,
        description=str(escape(description[:MAX_DESCRIPTION])),
        prompt=front.body.strip(),
        tools=tools,
        model=None if model.casefold() in _SAME_MODEL else model,
        memory=memory,
        hooks=hooks,
        source=source,
        path=path,
    )
    ignored += [key for key in _POWERS if key in fields]
    said = [f"an agent file cannot set {', '.join(ignored)}, so that is ignored"] if ignored else []
    return ReadAgentType(kind, "", "; ".join([*said, *untrusted, *unused]))


def _one_line(value: Value | None) -> str:
    """Return a text as one line, or "" for any other value."""
    return " ".join("".join(char if char.isprintable() else " " for char in value).split()) if isinstance(value, str) else ""


def _read_memory(value: Value | None, *, trusted: bool) -> tuple[MemoryScope | None, list[str]]:
    if value is None:
        return None, []
    scope = next((each for each in get_args(MemoryScope) if each == value), None)
    if scope is None:
        return None, [f"memory must be one of {', '.join(get_args(MemoryScope))}, so it is ignored"]
    return (scope, []) if trusted else (None, ["its memory is off until you trust this directory"])


def _read_hooks(value: Value | None, *, trusted: bool) -> tuple[Hooks, list[str]]:
    """Return the hooks we support, and a clause for each part without effect."""
    if value is None:
        return NO_ENTRIES, []
    if not trusted:
        return NO_ENTRIES, ["its hooks are off until you trust this directory"]
    read = HOOK_TABLE.read(_with_numbers(value))
    unused = [f"hooks: {problem}" for problem in read.problems]
    kept: Hooks = NO_ENTRIES
    for event, groups in (read.value or NO_ENTRIES).items():
        if (own := _HOOK_EVENTS.get(event)) is None:
            unused.append(f"hooks for {printable(event)} are not supported in an agent file")
        else:
            kept = HOOK_TABLE.join(kept, {own: groups})
            unused += [fault.removesuffix(".") for fault in plan_hooks(own, {own: groups})[1]]
    return kept, unused


def _with_numbers(value: Value) -> Any:
    """Return the value with its timeouts as numbers: front matter has texts only."""
    if isinstance(value, list):
        return [_with_numbers(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _seconds(each) if key == "timeout" else _with_numbers(each) for key, each in value.items()}


def _seconds(value: Value) -> Any:
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _read_tools(value: Value | None) -> tuple[tuple[str, ...] | None, list[str]]:
    """Return the tool names, and the invalid ones. `Bash(git:*)` is invalid, because taking its name would allow all of Bash."""
    if value is None or value == "*":
        return None, []
    listed = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    names = [each.strip() for each in listed[:MOST_TOOLS] if isinstance(each, str) and each.strip()]
    fit = [_FORMER.get(name, name) for name in names if _TOOL.fullmatch(name)]
    return tuple(dict.fromkeys(fit)), [f"the tool {name[:80]!r}" for name in names if not _TOOL.fullmatch(name)]


def pick_tools(kind: AgentType, tools: Sequence[Tool], *, remembers: bool = False) -> tuple[Tool, ...]:
    """Return the parent's tools that this type is offered, in the parent's order. Unknown names are ignored. A type that `remembers` also
    gets Read and, if it could otherwise write nothing, Write and Edit for its memory alone. SendMessage comes with Agent."""
    if kind.tools is None:
        return tuple(tool for tool in tools if tool.name != AGENT)
    needed = ((SEND,) if AGENT in kind.tools else ()) + ((READER, *(() if can_write(kind) else WRITERS)) if remembers else ())
    return tuple(tool for tool in tools if tool.name in (*kind.tools, *needed))


def can_write(kind: AgentType) -> bool:
    """Whether the type is offered tools that write files, wherever it may."""
    return kind.tools is None or any(name in kind.tools for name in WRITERS)


# Each type is listed in a description that every request carries.
MOST_KINDS = 50
# A system prompt of 16,000 tokens.
MOST_BYTES = 64 << 10


class Catalog(msgspec.Struct, frozen=True):
    kinds: tuple[AgentType, ...]  # built-in first, then by name
    notices: tuple[str, ...] = ()

    def find(self, name: str) -> AgentType | None:
        return next((kind for kind in self.kinds if kind.name == name), None)

    @property
    def own(self) -> tuple[AgentType, ...]:
        """Return the types that come from files."""
        return tuple(kind for kind in self.kinds if kind.source != "built-in")


def load_agent_types(cwd: Path, home: Path | None, *, trusted: bool = False) -> Catalog:
    """Load all agent types. `trusted`: the user trusts the working tree, so its files may also turn on an agent's memory."""
    found = {general_type().name: general_type()}
    notices: list[str] = []
    places: list[tuple[Source, Path]] = [("user", home / "agents")] if home is not None else []
    places += [("project", place) for place in reversed(list_agent_places(cwd))]  # the nearest last, so that it wins
    for source, directory in places:
        here: dict[str, AgentType] = {}
        for kind in _kinds_in(directory, source, notices, trusted=trusted or source == "user"):
            if kind.name in here:
                notices.append(f"{kind.path}: another file in this directory is also named {kind.name}, so this one is not used.")
            else:
                here[kind.name] = kind
        found |= here
    ours, rest = found.pop(general_type().name), sorted(found.values(), key=lambda kind: kind.name)
    if len(rest) > MOST_KINDS:
        notices.append(f"{len(rest)} agent types found; only the first {MOST_KINDS} by name are used.")
    return Catalog((ours, *rest[:MOST_KINDS]), tuple(notices))


def _kinds_in(directory: Path, source: Source, notices: list[str], *, trusted: bool) -> Iterator[AgentType]:
    files = list_agent_files(directory)
    if files and source == "project" and not _is_inside(directory):
        notices.append(f"{directory} leads out of the project, so its agent types are ignored.")
        return
    for path in files:
        text = read_text(path if source == "project" else Path(os.path.realpath(path)), most=MOST_BYTES)
        if text is None:
            continue
        if isinstance(text, UnusableFile):
            notices.append(f"{path} is not a valid agent type: it {text.problem}.")
            continue
        read = read_agent_type(text.text, source=source, path=str(path), trusted=trusted)
        if read.ignored:
            notices.append(f"{path}: {read.ignored}.")
        if read.kind is None:
            notices.append(f"{path} is not a valid agent type: {read.problem}.")
        else:
            yield read.kind


def _is_inside(directory: Path) -> bool:
    """Whether the directory is really inside the working tree: no link on its path leads elsewhere."""
    tree = directory.parents[1]
    return Path(os.path.realpath(directory)) == Path(os.path.realpath(tree)) / directory.relative_to(tree)
