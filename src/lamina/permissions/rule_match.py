"""Which rule a call meets.

Owns the comparison of a call with rules. Invariants: where a rule holds back (`deny`, `ask`) it is enough that the spelled or the
real path matches, in either case; where it allows, both must, letter by letter. `Read` rules hold for every tool that reads
files and for commands that name one; `Edit` rules for every tool that changes files.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import assert_never

from ..core.globs import compile_name
from .patterns import Bases, PathPattern, could_cover_below, covers
from .readonly.plan import ReadOnlyPlan
from .request import CallRequest
from .rules import READERS, WRITERS, DomainPattern, NamedArgument, PermissionRule
from .shell_rules import MAX_LOOKED_AT, Match, ShellPattern, holds_back, words_of

_FAMILIES = {"read": READERS, "edit": WRITERS}


def allowing(rules: Sequence[PermissionRule], asked: CallRequest, bases: Bases) -> PermissionRule | None:
    """The first rule that allows the call. Of rules for Bash only one for all of it counts: parts are compared elsewhere."""
    return next((rule for rule in rules if _is_for(rule.tool, asked.tool) and _allows(rule, asked, bases)), None)


def _allows(rule: PermissionRule, asked: CallRequest, bases: Bases) -> bool:
    match rule.specifier:
        case None:
            return True
        case PathPattern() as pattern:
            return bool(asked.paths) and all(covers(pattern, path, bases) for path in asked.paths)
        case DomainPattern(name, below):
            return asked.host is not None and (asked.host.endswith(f".{name}") if below else asked.host == name)
        case NamedArgument(argument, name):
            return asked.arguments.get(argument) == name
        case ShellPattern():
            return False
        case other:
            assert_never(other)


def holding(rules: Sequence[PermissionRule], asked: CallRequest, bases: Bases) -> tuple[Match, PermissionRule | None]:
    """The rule that holds the call back, and how surely; a sure one counts before a possible one."""
    possible: PermissionRule | None = None
    named = _named_paths(asked, bases) if any(isinstance(rule.specifier, PathPattern) for rule in rules) else []
    for rule in rules:
        found = _in_command(rule, asked, named, bases)
        if found == "no" and _is_for(rule.tool, asked.tool, loosely=True):
            found = _holds(rule, asked, bases)
        if found == "yes":
            return "yes", rule
        if found == "maybe":
            possible = possible or rule
    return ("maybe", possible) if possible else ("no", None)


def _holds(rule: PermissionRule, asked: CallRequest, bases: Bases) -> Match:
    match rule.specifier:
        case None:
            return "yes"
        case ShellPattern() as pattern:
            return holds_back(pattern, asked.command or "")
        case PathPattern() as pattern:
            return "yes" if any(covers(pattern, path, bases, loosely=True) for path in asked.paths) else "no"
        case DomainPattern(name, _):
            return "yes" if asked.host is None or asked.host == name or asked.host.endswith(f".{name}") else "no"
        case NamedArgument("to", _) if str(asked.arguments.get("to", "")).strip() == "*":
            return "maybe"  # everybody is that one too
        case NamedArgument(argument, name):
            return "yes" if str(asked.arguments.get(argument, "")).casefold() == name.casefold() else "no"
        case other:
            assert_never(other)


def _in_command(rule: PermissionRule, asked: CallRequest, named: Sequence[Path], bases: Bases) -> Match:
    """A path rule against a command line: one for reading forbids to name the file, one for changing makes the line doubtful."""
    if asked.command is None or not isinstance(rule.specifier, PathPattern):
        return "no"
    reads = rule.tool.casefold() == "read"
    if not reads and isinstance(asked.plan, ReadOnlyPlan):
        return "no"
    if len(asked.command) > MAX_LOOKED_AT:
        return "maybe"
    found = any(covers(rule.specifier, path, bases, loosely=True) for path in named)
    return "no" if not found else "yes" if reads else "maybe"


def _named_paths(asked: CallRequest, bases: Bases) -> list[Path]:
    """What a command looks at by its plan, and every word of it as a path, with and without links."""
    if asked.command is None or len(asked.command) > MAX_LOOKED_AT:
        return []
    cwd, home = bases["cwd"][0], bases.get("home", (None,))[0]
    words = words_of(asked.command)
    whole = (f"{home}{word[1:]}" if home is not None and word.startswith("~/") else word for word in words)
    spelled = [Path(os.path.abspath(os.path.join(cwd, word))) for word in whole]
    return [*asked.paths, *spelled, *(Path(os.path.realpath(path)) for path in spelled)]


def unreadable_below(rules: Sequence[PermissionRule], directory: PurePath, bases: Bases) -> PermissionRule | None:
    """A rule that may hold back a file somewhere below the directory: a search through the whole tree would read it."""
    for rule in rules:
        if rule.tool.casefold() == "read" and (
            rule.specifier is None
            or (isinstance(rule.specifier, PathPattern) and could_cover_below(rule.specifier, directory, bases))
        ):
            return rule
    return None


def _is_for(rule: str, tool: str, *, loosely: bool = False) -> bool:
    """Whether a rule for one tool speaks of another: `Edit` of Write, `mcp__server` of the server's tools."""
    if rule == tool or (rule in ("Read", "Edit") and tool in _FAMILIES[rule.lower()]):
        return True
    if rule.startswith("mcp__") and (_is_server(rule, tool) or compile_name(rule).match(tool)):
        return True
    if not loosely:
        return False
    family = _FAMILIES.get(rule.casefold(), ())
    return rule.casefold() == tool.casefold() or tool in family or compile_name(rule).match(tool) is not None


def _is_server(rule: str, tool: str) -> bool:
    """`mcp__github` and `mcp__github__*` are all tools of that server; with a third name a rule speaks of one tool."""
    server = rule.removesuffix("__*")
    return (server != rule or server.count("__") == 1) and tool.startswith(f"{server}__")
