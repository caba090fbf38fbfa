"""The rule offered with "always": the narrowest one that allows the same call next time.

`decision` offers a rule only if it would indeed allow the call. Invariant: no suggestion allows every command, or
everything near the file system root.
"""

from __future__ import annotations

import re
from pathlib import Path

from ...core.settings.collection_kinds import LONGEST_NAME
from .patterns import quoted
from .readonly.tokenizer import CommandPart, CommandRefusal, split_command
from .rules import READERS, WRITERS
from .shell_rules import canonical

# Commands whose first words name the task; the files, filters and flags after them change from call to call.
_TASKS = {
    "npm run": 3,
    "pnpm run": 3,
    "yarn run": 3,
    "bun run": 3,
    "npm test": 2,
    "cargo": 2,
    "go": 2,
    "make": 2,
    "pytest": 1,
    "ruff": 2,
    "mypy": 1,
    "tox": 1,
    "uv run": 3,
    "docker compose": 3,
}
# These commands run any program, so the words after them are part of the task.
_RUNS_ANYTHING = frozenset({"cargo run", "go run", "go generate", "uv run"})
# A directory this close to the root contains too much: only the file is offered.
_MIN_DEPTH = 3


def for_command(command: str) -> str | None:
    parts = split_command(command)
    if not isinstance(parts, CommandRefusal) and len(parts) == 1:
        rule = _task(parts[0])
        if rule is not None:
            return rule
    exact = command.strip().replace("*", "\\*")
    return _fitting(f"Bash({exact})")


def _task(part: CommandPart) -> str | None:
    """Return `Bash(npm run test:*)` for a known task with further words."""
    words = [word.text for word in part.words]
    for task, count in _TASKS.items():
        known = task.split()
        if words[: len(known)] == known and len(words) > count and not words[count - 1].startswith("-"):
            if " ".join(words[:2]) in _RUNS_ANYTHING:
                return None
            return _fitting(f"Bash({canonical(part.words[:count]).replace('*', chr(92) + '*')}:*)")
    return None


def for_path(tool: str, path: Path, cwd: Path) -> str | None:
    """Return a rule for the file's directory below the working directory, or for the file alone if the directory is too
    broad."""
    name = "Edit" if tool in WRITERS else "Read" if tool in READERS else tool
    tree = tool in ("Grep", "Glob", "LS")
    inside = path.is_relative_to(cwd)
    base, parts = ("./", path.relative_to(cwd).parts) if inside else ("//", path.parts[1:])
    if not parts or (tree and not inside and len(parts) < _MIN_DEPTH):
        return None
    directory = parts if tree else parts[:-1]
    wide = bool(directory) if inside else len(directory) >= _MIN_DEPTH
    spelled = "/".join(quoted(part) for part in (directory if wide else parts))
    return _fitting(f"{name}({base}{spelled}/**)" if wide and not tree else f"{name}({base}{spelled})")


def for_host(host: str | None) -> str | None:
    return f"WebFetch(domain:{host})" if host is not None and re.fullmatch(r"[a-z0-9.-]+", host) else None


def for_recipient(to: str) -> str | None:
    return _fitting(f"SendMessage({to})") if ")" not in to else None


def for_tool(tool: str) -> str | None:
    return tool if re.fullmatch(r"[A-Za-z_][\w.-]*", tool) else None


def _fitting(rule: str) -> str | None:
    """Return the rule if settings accept it: not too long, no invisible characters."""
    return rule if len(rule) <= LONGEST_NAME and rule.isprintable() else None
