"""Permission rules: `Tool` or `Tool(specifier)` as written in settings, parsed into values, matched against calls, and suggested.

Parsing never raises; an invalid rule becomes a finding. An invalid `allow` rule is ignored. An invalid `ask` rule asks for every call of
its tool. An invalid `deny` rule denies every call of its tool, or of all tools if not even the tool can be parsed. A mistake must never
grant access.

A restricting rule (`deny`, `ask`) matches if either the spelled or the resolved path matches, ignoring case. An allowing rule must match
both, letter by letter. `Read` rules cover every tool that reads files and commands that name one; `Edit` rules cover every tool that
changes files.

The rule offered with "always" is the narrowest one that allows the same call next time; `decision` offers it only if it would indeed allow
the call. No suggestion allows every command, or everything near the file system root.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Literal, TypeAlias, assert_never

import msgspec

from ...core.globs import compile_name
from ...core.settings import Finding, Permissions
from ...core.settings.collection_kinds import LONGEST_NAME
from ...core.settings.kinds import printable
from .patterns import Bases, PathPattern, could_cover_below, covers, quoted, read_pattern
from .readonly.plan import ReadOnlyPlan
from .readonly.tokenizer import CommandRefusal, split_command
from .request import READERS, WRITERS, CallRequest
from .shell_rules import MAX_LOOKED_AT, Match, ShellPattern, canonical, holds_back, read_shell, words_of

ListName: TypeAlias = Literal["allow", "ask", "deny"]

# Tools that take a name as specifier, and the argument it is compared with.
_NAMED = {"Agent": "subagent_type", "Task": "subagent_type", "Skill": "skill", "SendMessage": "to"}
_RULE = re.compile(r"(?P<tool>[A-Za-z_*][\w*.:@/-]*)(?:\((?P<specifier>.*)\))?", re.DOTALL)
_TOOL = re.compile(r"[A-Za-z_][\w.-]*")
_DOMAIN = re.compile(r"domain:(?P<domain>(?:\*\.)?[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?)")
_ANY = "*"


class DomainPattern(msgspec.Struct, frozen=True):
    name: str
    below: bool  # *.example.com


class NamedArgument(msgspec.Struct, frozen=True):
    argument: str
    name: str


Specifier: TypeAlias = ShellPattern | PathPattern | DomainPattern | NamedArgument | None


class PermissionRule(msgspec.Struct, frozen=True):
    text: str
    tool: str  # a name; also a pattern in a restricting rule
    specifier: Specifier = None  # None matches every call
    problem: str = ""  # the syntax error, if any; the rule then restricts every call of its tool


class PermissionRules(msgspec.Struct, frozen=True):
    allow: tuple[PermissionRule, ...] = ()
    ask: tuple[PermissionRule, ...] = ()
    deny: tuple[PermissionRule, ...] = ()
    findings: tuple[Finding, ...] = ()


def read_rules(permissions: Permissions) -> PermissionRules:
    findings = list[Finding]()
    lists: dict[str, tuple[PermissionRule, ...]] = {}
    for name in ("allow", "ask", "deny"):
        rules = [_read(text, name) for text in getattr(permissions, name)]
        for rule in rules:
            if rule.problem:
                what = "every call" if rule.tool == _ANY else f"every call of {rule.tool}"
                effects = {"allow": "it is ignored", "ask": f"until it is fixed, {what} needs confirmation"}
                effect = effects.get(name, f"until it is fixed, {what} is denied")
                text = f'Rule "{printable(rule.text)}" in {name} {rule.problem}; {effect}.'
                findings.append(Finding(f"permissions.{name}", "settings", text))
        lists[name] = tuple(rule for rule in rules if not rule.problem or name != "allow")
    return PermissionRules(**lists, findings=tuple(findings))


def _read(text: str, name: str) -> PermissionRule:
    match = _RULE.fullmatch(text.strip())
    if match is None:
        named = _TOOL.match(text.strip())
        return PermissionRule(text, named[0] if named else _ANY, problem="is not in the form Tool or Tool(specifier)")
    tool, argument = match["tool"], match["specifier"]
    if name == "allow" and "*" in tool and not re.fullmatch(r"mcp__[^*]+__[^_*][^*]*\*|mcp__[^*]+__\*", tool):
        return PermissionRule(text, tool, problem="has a wildcard in the tool's name")
    if argument is None or (argument.strip() == "*" and not _takes_path(tool)):
        return PermissionRule(text, tool)
    specifier = _read_specifier(tool, argument.strip())
    if isinstance(specifier, str):
        return PermissionRule(text, tool, problem=specifier)
    return PermissionRule(text, tool, specifier)


def _read_specifier(tool: str, text: str) -> Specifier | str:
    """Return the specifier, or the problem with it."""
    if not text:
        return "has empty brackets"
    if tool.casefold() == "bash":
        return read_shell(text)
    if _takes_path(tool):
        return read_pattern(text)
    if tool.casefold() == "webfetch":
        if (domain := _DOMAIN.fullmatch(text)) is None:
            return "must name a domain, as in WebFetch(domain:example.com)"
        return DomainPattern(domain["domain"].removeprefix("*.").casefold(), text.startswith("domain:*."))
    if tool in _NAMED:
        return NamedArgument(_NAMED[tool], text)
    return f"has brackets, but {printable(tool)} accepts no specifier"


def _takes_path(tool: str) -> bool:
    return tool.casefold() in (name.casefold() for name in (*READERS, *WRITERS))


_FAMILIES = {"read": READERS, "edit": WRITERS}


def allowing(rules: Sequence[PermissionRule], request: CallRequest, bases: Bases) -> PermissionRule | None:
    """Return the first rule that allows the call. Rules for parts of a Bash command are compared elsewhere."""
    return next((rule for rule in rules if _is_for(rule.tool, request.tool) and _allows(rule, request, bases)), None)


def _allows(rule: PermissionRule, request: CallRequest, bases: Bases) -> bool:
    match rule.specifier:
        case None:
            return True
        case PathPattern() as pattern:
            return bool(request.paths) and all(covers(pattern, path, bases) for path in request.paths)
        case DomainPattern(name, below):
            return request.host is not None and (request.host.endswith(f".{name}") if below else request.host == name)
        case NamedArgument(argument, name):
            return request.arguments.get(argument) == name
        case ShellPattern():
            return False
        case other:
            assert_never(other)


def holding(rules: Sequence[PermissionRule], request: CallRequest, bases: Bases) -> tuple[Match, PermissionRule | None]:
    """Return the rule that restricts the call, and how certain the match is. A certain match wins over a possible one."""
    possible: PermissionRule | None = None
    named = _named_paths(request, bases) if any(isinstance(rule.specifier, PathPattern) for rule in rules) else []
    for rule in rules:
        certainty = _in_command(rule, request, named, bases)
        if certainty == "no" and _is_for(rule.tool, request.tool, loosely=True):
            certainty = _holds(rule, request, bases)
        if certainty == "yes":
            return "yes", rule
        if certainty == "maybe":
            possible = possible or rule
    return ("maybe", possible) if possible else ("no", None)


def _holds(rule: PermissionRule, request: CallRequest, bases: Bases) -> Match:
    match rule.specifier:
        case None:
            return "yes"
        case ShellPattern() as pattern:
            return holds_back(pattern, request.command or "")
        case PathPattern() as pattern:
            return "yes" if any(covers(pattern, path, bases, loosely=True) for path in request.paths) else "no"
        case DomainPattern(name, _):
            return "yes" if request.host is None or request.host == name or request.host.endswith(f".{name}") else "no"
        case NamedArgument("to", _) if str(request.arguments.get("to", "")).strip() == "*":
            return "maybe"  # a message to everyone also reaches this recipient
        case NamedArgument("to", name) if "@" in name or "@" in str(request.arguments.get("to", "")):
            return _names_member(name.casefold(), str(request.arguments.get("to", "")).strip().casefold())
        case NamedArgument(argument, name):
            return "yes" if str(request.arguments.get(argument, "")).casefold() == name.casefold() else "no"
        case other:
            assert_never(other)


def _names_member(rule: str, to: str) -> Match:
    """Compare recipients of which one has a team. A rule without a team is for that name in every team; a name without a team may be
    in the rule's."""
    (name, _, team), (recipient, _, own_team) = rule.partition("@"), to.partition("@")
    return "no" if name != recipient else "yes" if not team or team == own_team else "no" if own_team else "maybe"


def _in_command(rule: PermissionRule, request: CallRequest, named: Sequence[Path], bases: Bases) -> Match:
    """Match a path rule against a command line: a Read rule forbids naming the file, an Edit rule makes the line doubtful."""
    if request.command is None or not isinstance(rule.specifier, PathPattern):
        return "no"
    reads = rule.tool.casefold() == "read"
    if not reads and isinstance(request.plan, ReadOnlyPlan):
        return "no"
    if len(request.command) > MAX_LOOKED_AT:
        return "maybe"
    if not any(covers(rule.specifier, path, bases, loosely=True) for path in named):
        return "no"
    return "yes" if reads else "maybe"


def _named_paths(request: CallRequest, bases: Bases) -> list[Path]:
    """Return the paths a command reads by its plan, and every word of it as a path, with and without links resolved."""
    if request.command is None or len(request.command) > MAX_LOOKED_AT:
        return []
    cwd, home = bases["cwd"][0], bases.get("home", (None,))[0]
    words = words_of(request.command)
    whole = (f"{home}{word[1:]}" if home is not None and word.startswith("~/") else word for word in words)
    spelled = [Path(os.path.abspath(os.path.join(cwd, word))) for word in whole]
    return [*request.paths, *spelled, *(Path(os.path.realpath(path)) for path in spelled)]


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
    if rule.startswith("mcp__"):
        # `mcp__github` and `mcp__github__*` cover all tools of a server; a third name means one tool.
        server = rule.removesuffix("__*")
        covers_server = (server != rule or server.count("__") == 1) and tool.startswith(f"{server}__")
        if covers_server or compile_name(rule).match(tool):
            return True
    if not loosely:
        return False
    family = _FAMILIES.get(rule.casefold(), ())
    return rule.casefold() == tool.casefold() or tool in family or compile_name(rule).match(tool) is not None


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


def rule_for_command(command: str) -> str | None:
    """Return `Bash(npm run test:*)` for a known task with further words, else the command alone."""
    parts = split_command(command)
    typed = parts[0].words if not isinstance(parts, CommandRefusal) and len(parts) == 1 else ()
    words, rule = [word.text for word in typed], None
    for task, count in _TASKS.items():
        start = task.split()
        if words[: len(start)] == start and len(words) > count and not words[count - 1].startswith("-"):
            if " ".join(words[:2]) not in _RUNS_ANYTHING:
                rule = _accepted(f"Bash({_without_stars(canonical(typed[:count]))}:*)")
            break
    return rule or _accepted(f"Bash({_without_stars(command.strip())})")


def _without_stars(command: str) -> str:
    return command.replace("*", "\\*")


def rule_for_path(tool: str, path: Path, cwd: Path) -> str | None:
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
    return _accepted(f"{name}({base}{spelled}/**)" if wide and not tree else f"{name}({base}{spelled})")


def rule_for_host(host: str | None) -> str | None:
    return f"WebFetch(domain:{host})" if host is not None and re.fullmatch(r"[a-z0-9.-]+", host) else None


def rule_for_recipient(to: str) -> str | None:
    return _accepted(f"SendMessage({to})") if ")" not in to else None


def rule_for_tool(tool: str) -> str | None:
    return tool if re.fullmatch(r"[A-Za-z_][\w.-]*", tool) else None


def _accepted(rule: str) -> str | None:
    """Return the rule if settings accept it: not too long, no invisible characters."""
    return rule if len(rule) <= LONGEST_NAME and rule.isprintable() else None
