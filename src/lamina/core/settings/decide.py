"""Where levels meet: one value for each setting, and the level it came from.

Low to high: default, remote flag, user, project, local, environment, command line, managed, argument. Two exceptions. A remote
`false` for a switch holds against everyone (F1), any other remote value only where nobody else spoke. And what a working tree may
only lower is held against the person's own value, so a repository can turn memory off and never on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..policy import Policy
from .levels import TREE, Level, finding
from .numbers import policy_defaults, policy_from
from .row import Finding, Resolved, Setting, Source
from .rules import BY_VARIABLE, VARIABLE_LEVELS, follow
from .table import BY_KEY, DEFAULTS, Table

RISING: tuple[Source, ...] = ("user", "project", "local", "environment", "command line", "managed", "argument")
# S2: the environment stands before managed settings; what the program itself hands over stands first all the same.
RISING_VARIABLE_FIRST: tuple[Source, ...] = ("user", "project", "local", "command line", "managed", "environment", "argument")

NOBODY: tuple[Source, ...] = ("default", "remote flag")


class Decided(NamedTuple):
    values: dict[str, Resolved]
    policy: Policy
    findings: tuple[Finding, ...]


def decide(levels: Sequence[Level], remote: Level, *, trusted: bool) -> Decided:
    """Costs time for what was set, not for what could be."""
    said = {level.source: level for level in levels}
    findings: list[Finding] = []

    def fold(row: Setting[Any], base: Resolved) -> Resolved:
        return _killed(row, _fold(row, said, remote, trusted, findings, base=base), remote)

    policy = fold(Table.policy_name, DEFAULTS[Table.policy_name.key])
    values = DEFAULTS | policy_defaults(policy.value) | {Table.policy_name.key: policy}
    for key in dict.fromkeys(key for level in (*levels, remote) for key in level.values):
        if key != Table.policy_name.key:
            values[key] = fold(BY_KEY[key], values[key])
    values.update(follow(values, said))
    return Decided(values, policy_from(policy.value, values), tuple(findings))


def _fold(
    row: Setting[Any],
    said: Mapping[Source, Level],
    remote: Level,
    trusted: bool,
    findings: list[Finding],
    *,
    base: Resolved,
) -> Resolved:
    found = base
    if (flag := remote.values.get(row.key)) is not None:
        found = _over(row, Resolved(flag.value, "remote flag"), found)
    tree: Resolved | None = None
    for source in RISING_VARIABLE_FIRST if row.variable_first else RISING:
        given = said[source].values.get(row.key) if source in said else None
        if given is not None and not (row.key in BY_VARIABLE and given.variable and source in VARIABLE_LEVELS):
            higher = Resolved(given.value, source, given.detail)
            if source in TREE and row.tree == "less":
                tree = higher if tree is None else _over(row, higher, tree)
            else:
                found = _over(row, higher, found)
        if source == "local" and tree is not None:
            found = _lowered(row, tree, found, trusted, findings)
    return found


def _over(row: Setting[Any], higher: Resolved, lower: Resolved) -> Resolved:
    return higher._replace(value=row.kind.join(higher.value, lower.value))


def _lowered(row: Setting[Any], tree: Resolved, own: Resolved, trusted: bool, findings: list[Finding]) -> Resolved:
    """What the working tree asks for, as far as it may: less than the person's own; anything where trusted and nobody spoke."""
    if trusted and own.source in NOBODY:
        return _over(row, tree, own)
    allowed = row.kind.least(tree.value, own.value)
    wanted = row.kind.join(tree.value, own.value)
    if allowed != wanted:
        limit = (
            "more than your own settings say"
            if own.source not in NOBODY
            else "more than the default before you trust this directory"
        )
        findings.append(finding(row.key, tree.source, tree.detail, f"asks for {limit}", "only what is less is taken"))
    return own if allowed == own.value else tree._replace(value=allowed)


def _killed(row: Setting[Any], found: Resolved, remote: Level) -> Resolved:
    flag = remote.values.get(row.key)
    return Resolved(False, "remote flag") if row.kills and flag is not None and flag.value is False else found
