"""Permission rules as written in settings, `Tool` or `Tool(specifier)`, parsed into values.

Invariants: no text makes the parser raise; an invalid rule becomes a finding. An invalid `allow` rule is ignored. An invalid
`ask` rule asks for every call of its tool. An invalid `deny` rule denies every call of its tool, or of all tools if not even
the tool can be parsed. A mistake must never grant access.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

import msgspec

from ...core.settings import Finding, Permissions
from ...core.settings.kinds import printable
from .patterns import PathPattern, read_pattern
from .shell_rules import ShellPattern, read_shell

ListName: TypeAlias = Literal["allow", "ask", "deny"]

READERS = ("Read", "Grep", "Glob", "LS", "NotebookRead")
WRITERS = ("Edit", "Write", "MultiEdit", "NotebookEdit")
# Tools that take a name as specifier, and the argument it is compared with.
_NAMED = {"Agent": "subagent_type", "Task": "subagent_type", "Skill": "skill", "SendMessage": "to"}
_RULE = re.compile(r"(?P<tool>[A-Za-z_*][\w*.:@/-]*)(?:\((?P<specifier>.*)\))?", re.DOTALL)
_TOOL = re.compile(r"[A-Za-z_][\w.-]*")
_DOMAIN = re.compile(r"domain:(?P<domain>(?:\*\.)?[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?)")
_BAD_DOMAIN = "must name a domain, as in WebFetch(domain:example.com)"
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
        findings += [_finding(rule, name) for rule in rules if rule.problem]
        lists[name] = tuple(rule for rule in rules if not rule.problem or name != "allow")
    return PermissionRules(**lists, findings=tuple(findings))


def _finding(rule: PermissionRule, name: str) -> Finding:
    what = "every call" if rule.tool == _ANY else f"every call of {rule.tool}"
    effect = {"allow": "it is ignored", "ask": f"until it is fixed, {what} needs confirmation"}
    result = effect.get(name, f"until it is fixed, {what} is denied")
    return Finding(f"permissions.{name}", "settings", f'Rule "{printable(rule.text)}" in {name} {rule.problem}; {result}.')


def _read(text: str, name: str) -> PermissionRule:
    found = _RULE.fullmatch(text.strip())
    if found is None:
        named = _TOOL.match(text.strip())
        return PermissionRule(text, named[0] if named else _ANY, problem="is not in the form Tool or Tool(specifier)")
    tool, specifier = found["tool"], found["specifier"]
    if name == "allow" and "*" in tool and not re.fullmatch(r"mcp__[^*]+__[^_*][^*]*\*|mcp__[^*]+__\*", tool):
        return PermissionRule(text, tool, problem="has a wildcard in the tool's name")
    if specifier is None or (specifier.strip() == "*" and not _takes_path(tool)):
        return PermissionRule(text, tool)
    read = _specifier(tool, specifier.strip())
    return PermissionRule(text, tool, problem=read) if isinstance(read, str) else PermissionRule(text, tool, read)


def _specifier(tool: str, text: str) -> Specifier | str:
    if not text:
        return "has empty brackets"
    if tool.casefold() == "bash":
        return read_shell(text)
    if _takes_path(tool):
        return read_pattern(text)
    if tool.casefold() == "webfetch":
        domain = _DOMAIN.fullmatch(text)
        return (
            DomainPattern(domain["domain"].removeprefix("*.").casefold(), text.startswith("domain:*.")) if domain else _BAD_DOMAIN
        )
    if tool in _NAMED:
        return NamedArgument(_NAMED[tool], text)
    return f"has brackets, but {printable(tool)} accepts no specifier"


def _takes_path(tool: str) -> bool:
    return tool.casefold() in (name.casefold() for name in (*READERS, *WRITERS))
