"""The working trees that the user trusts. Without trust, a tree's hooks and permissions have no effect.

Owns `<home>/trust.json`. Invariants: trust covers the content at the time it was given. The settings it enables are part of the
key, so changed hooks or permissions need to be approved again. All worktrees of a repository share the trust in the same content.
An unreadable file trusts nothing.

Writes go through `files.update`: a crash at any line leaves the old answers or the new ones. Trust does not cover the programs
that hooks run: a script in the repository can change without another question.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ...core.errors import DiskError
from ...core.front_matter import read_front_matter, split_front_matter
from ...core.settings import Permissions, Settings
from ...core.settings.collection_kinds import HOOK_TABLE
from ...core.settings.kinds import printable
from ..files import read, update
from ..paths.project import canonical_git_root
from ..regular_file import read_start
from ..settings_files import TRUST_NAME, load_settings

FILE_NAME = TRUST_NAME

T = TypeVar("T")
Somewhere = str | os.PathLike[str]

# Users switch between a few branches; for older content they are asked again.
MOST_ANSWERS = 20
# More projects than one user has; the oldest are dropped.
MOST_PROJECTS = 2_000
_MAX_BYTES = 4 << 20
# Front matter ends within 4 kB, but the line before it may be padded. No agent file is longer than this.
_HEAD = 64 << 10
# As deep as an agent file's hooks go.
_DEEPEST = 7
# Users do not read a question with more lines than this.
MOST_LINES = 40
# No rule is longer, so none is cut.
LONGEST_LINE = 600
# A command is shown whole or not at all: the part cut off could be the dangerous one.
LONGEST_COMMAND = 1_000
# Variables that determine which program is found, preloaded or run.
_RUNS = r"PATH|SHELL|^ENV$|_ENV$|^(LD|DYLD|GIT|NODE)_|^PYTHON|OPT(ION)?S?$|COMMAND|PAGER|EDITOR|VISUAL|STARTUP"
_WHERE = "read .claude/settings.json and .claude/settings.local.json before you approve"


def trusted(home: Somewhere, project: Somewhere) -> bool:
    """Return whether the user trusts `project` (a working directory) with its current content."""
    # The tree is read only if there is an answer to compare with: most users trust few trees.
    answers = _answers(home)
    digests = answers.get(_key(project)) if answers else None
    return digests is not None and _digest(project) in digests


def trust(home: Somewhere, project: Somewhere) -> None:
    """Record that the user trusts the project with its current content."""
    key, digest = _key(project), _digest(project)

    def added(old: bytes | None) -> bytes:
        answers = _parsed(old)
        others = [answer for answer in answers.pop(key, []) if answer != digest]
        answers[key] = [*others, digest][-MOST_ANSWERS:]
        return (json.dumps({"projects": dict(list(answers.items())[-MOST_PROJECTS:])}, indent=2) + "\n").encode()

    update(Path(home) / FILE_NAME, added)


def while_trusted(home: Somewhere, project: Somewhere, load: Callable[[bool], T]) -> T:
    """Return `load(True)` if the tree is trusted before and after loading, else `load(False)`. This defeats a swap in between."""
    if trusted(home, project):
        loaded = load(True)
        if trusted(home, project):
            return loaded
    return load(False)


def what_it_would_enable(project: Somewhere) -> tuple[str, ...]:
    """Return one line for each thing that trust would enable, to show to the user; empty if trust makes no difference.

    Commands come first, so that a long list of other things cannot push them out of sight.
    """
    settings = enabled(project)
    agents = _agents(project)
    hooks = _hook_lines(settings.pop("hooks", {}))
    for name, head in agents.items():
        # Hooks of an agent file that cannot be read are not run.
        fields = read_front_matter(f"---\n{head}---\n", deepest=_DEEPEST).fields
        hooks += _hook_lines(HOOK_TABLE.read(fields.get("hooks", {})).value or {}, f"Hook of the agent file {name}")
    lines = list(hooks)
    for key, value in settings.items():
        match key, value:
            case "permissions", Permissions():
                lines += [f"Permission to {name}: {rule}" for name in ("allow", "ask", "deny") for rule in getattr(value, name)]
            case "env", Mapping():
                lines += [f"Variable for commands: {_variable(name, text)}" for name, text in value.items()]
            case _:
                lines.append(f"Setting {key}: {_short(value)}")
    lines += [f"Agent file with its own settings: {name}" for name in agents]
    printed = [
        printable(line, LONGEST_LINE if number >= len(hooks) else len(line)) for number, line in enumerate(lines[:MOST_LINES])
    ]
    if len(lines) <= MOST_LINES:
        return tuple(printed)
    among = ", including hooks" if len(hooks) > MOST_LINES else ""
    return (*printed, f"and {len(lines) - MOST_LINES:,} more{among}: {_WHERE}")


def _variable(name: str, text: str) -> str:
    """Return the variable for display. Its value may be secret and is hidden, unless it determines which program runs."""
    return f"{name}={text}" if re.search(_RUNS, name.upper()) else name


def _hook_lines(hooks: Mapping[str, Any], kind: str = "Hook") -> list[str]:
    """Return a line for each hook, with the whole command that the user approves."""
    return [
        f"{kind} at {event}: {_command(hook)}" for event, groups in hooks.items() for group in groups for hook in group["hooks"]
    ]


def _command(hook: object) -> str:
    command = hook.get("command") if isinstance(hook, Mapping) else None
    args = hook.get("args") if isinstance(hook, Mapping) else None
    text = command if isinstance(command, str) and args is None else _short(hook)
    return text if len(text) <= LONGEST_COMMAND else f"a command of {len(text):,} characters, too long to show: {_WHERE}"


def enabled(project: Somewhere) -> dict[str, Any]:
    """Return the settings that trust would change, with their values."""
    with_trust, without = _of_tree(project, trusted=True), _of_tree(project, trusted=False)
    return {row.key: yes.value for (row, yes), (_, no) in zip(with_trust, without, strict=True) if yes.value != no.value}


def _of_tree(project: Somewhere, *, trusted: bool) -> Settings:
    """Load settings from the files in the tree alone: no home, no managed file, no variables."""
    nothing = os.path.join(os.devnull, FILE_NAME)
    return load_settings(cwd=Path(project), environ={}, managed_path=nothing, trusted=trusted)


def _key(project: Somewhere) -> str:
    return str(canonical_git_root(project) or os.path.realpath(project))


def _digest(project: Somewhere) -> str:
    content = {"settings": _plain(enabled(project)), "agents": _agents(project)}
    return blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=32).hexdigest()


def _agents(project: Somewhere) -> dict[str, str]:
    """Return the front matter of each agent file, which may contain settings, by path relative to the nearest directory."""
    from .agent_files import list_agent_files, list_agent_places  # most trees are compared with nothing

    heads: dict[str, str] = {}
    nearest, *above = list_agent_places(project)
    for path in (path for place in (nearest, *above) for path in list_agent_files(place)):
        # Split exactly as the loader does. Otherwise a BOM, other line ends or a line such as `---x` could hide settings.
        text = read_start(path, _HEAD).decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
        matter = split_front_matter(text).head
        if matter is not None:
            name = os.path.relpath(path, nearest)
            heads[name.encode("utf-8", "replace").decode()] = matter
    return heads


def _plain(value: object) -> Any:
    """Return a setting's value as JSON."""
    match value:
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | tuple() | frozenset():
            return [_plain(item) for item in value]
        case msgspec.Struct():
            return _plain(msgspec.structs.asdict(value))
        case str() | int() | float() | None:
            return value
        case _:
            return repr(value)


def _short(value: object) -> str:
    return json.dumps(_plain(value), ensure_ascii=False)


def _answers(home: Somewhere) -> dict[str, list[str]]:
    try:
        return _parsed(read(Path(home) / FILE_NAME, _MAX_BYTES))
    except DiskError:
        return {}


def _parsed(content: bytes | None) -> dict[str, list[str]]:
    """Parse the answers in the file. Damaged ones are dropped, so the user is asked again."""
    try:
        data: Any = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        return {}
    projects = data.get("projects") if isinstance(data, dict) else None
    if not isinstance(projects, dict):
        return {}
    return {
        key: [item for item in digests if isinstance(item, str)] for key, digests in projects.items() if isinstance(digests, list)
    }
