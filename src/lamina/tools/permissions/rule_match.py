"""Matching of calls against rules.

Invariants: a restricting rule (`deny`, `ask`) matches if either the spelled or the resolved path matches, ignoring case. An
allowing rule must match both, letter by letter. `Read` rules cover every tool that reads files and commands that name one;
`Edit` rules cover every tool that changes files.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import assert_never

from ...core.globs import compile_name
from .patterns import Bases, PathPattern, could_cover_below, covers
from .readonly.plan import ReadOnlyPlan
from .request import CallRequest
from .rules import READERS, WRITERS, DomainPattern, NamedArgument, PermissionRule
from .shell_rules import MAX_LOOKED_AT, Match, ShellPattern, holds_back, words_of

_FAMILIES = {"read": READERS, "edit": WRITERS}


def allowing(rules: Sequence[PermissionRule], asked: CallRequest, bases: Bases) -> PermissionRule | None:
    """Return the first rule that allows the call. Rules for parts of a Bash command are compared elsewhere."""
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
    """Return the rule that restricts the call, and how certain the match is. A certain match wins over a possible one."""
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
            return "maybe"  # a message to everyone also reaches this recipient
        case NamedArgument("to", name) if "@" in name or "@" in str(asked.arguments.get("to", "")):
            return _names_member(name.casefold(), str(asked.arguments.get("to", "")).strip().casefold())
        case NamedArgument(argument, name):
            return "yes" if str(asked.arguments.get(argument, "")).casefold() == name.casefold() else "no"
        case other:
            assert_never(other)


def _names_member(rule: str, to: str) -> Match:
    """Compare recipients of which one has a team. A rule without a team is for that name in every team; a name without a team may be
    in the rule's."""
    (name, _, team), (own, _, asked) = rule.partition("@"), to.partition("@")
    return "no" if name != own else "yes" if not team or team == asked else "no" if asked else "maybe"


def _in_command(rule: PermissionRule, asked: CallRequest, named: Sequence[Path], bases: Bases) -> Match:
    """Match a path rule against a command line: a Read rule forbids naming the file, an Edit rule makes the line doubtful."""
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
    """Return the paths a command reads by its plan, and every word of it as a path, with and without links resolved."""
    if asked.command is None or len(asked.command) > MAX_LOOKED_AT:
        return []
    cwd, home = bases["cwd"][0], bases.get("home", (None,))[0]
    words = words_of(asked.command)
    whole = (f"{home}{word[1:]}" if home is not None and word.startswith("~/") else word for word in words)
    spelled = [Path(os.path.abspath(os.path.join(cwd, word))) for word in whole]
    return [*asked.paths, *spelled, *(Path(os.path.realpath(path)) for path in spelled)]


def unreadable_below(rules: Sequence[PermissionRule], directory: PurePath, bases: Bases) -> PermissionRule | None:
    """Return a rule that may restrict a file below the directory: a search through the whole tree would read it."""
    for rule in rules:
        if rule.tool.casefold() == "read" and (
            rule.specifier is None
            or (isinstance(rule.specifier, PathPattern) and could_cover_below(rule.specifier, directory, bases))
        ):
            return rule
    return None


def _is_for(rule: str, tool: str, *, loosely: bool = False) -> bool:
    """Tell whether a rule for one tool covers another: `Edit` covers Write, `mcp__server` covers the server's tools."""
    if rule == tool or (rule in ("Read", "Edit") and tool in _FAMILIES[rule.lower()]):
        return True
    if rule.startswith("mcp__") and (_is_server(rule, tool) or compile_name(rule).match(tool)):
        return True
    if not loosely:
        return False
    family = _FAMILIES.get(rule.casefold(), ())
    return rule.casefold() == tool.casefold() or tool in family or compile_name(rule).match(tool) is not None


def _is_server(rule: str, tool: str) -> bool:
    """Tell whether the rule covers all tools of a server, as `mcp__github` and `mcp__github__*` do. A third name means one
    tool."""
    server = rule.removesuffix("__*")
    return (server != rule or server.count("__") == 1) and tool.startswith(f"{server}__")
