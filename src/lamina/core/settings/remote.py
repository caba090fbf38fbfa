"""Remote flags as a level: every setting that may be set remotely is asked for; a wrong type is ignored and said (F1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..flags import Flags, Mistyped, ask
from .kinds import printable
from .levels import OURS, Given, Level, finding
from .numbers import policy_defaults
from .row import Finding, Setting
from .table import BY_KEY, DEFAULT_POLICY, SETTINGS

REMOTE: tuple[Setting[Any], ...] = tuple(row for row in SETTINGS if row.remote)


def read_flags(flags: Flags | None) -> Level:
    if flags is None:
        return Level("remote flag", {})
    values: dict[str, Given] = {}
    findings: list[Finding] = []
    for row in REMOTE:
        said = ask(flags, row.key, _sample(row))
        if said is None:
            continue
        problems = [f"must be {row.kind.says()}, {said.problem}"] if isinstance(said, Mistyped) else []
        if not problems:
            read = row.kind.read(said)
            problems = list(read.problems)
            if read.value is not None:
                values[row.key] = Given(read.value)
        findings += [finding(row.key, "remote flag", "", problem) for problem in problems]
    if isinstance(flags, Mapping):
        findings += _others(flags)
    return Level("remote flag", values, tuple(findings))


def _sample(row: Setting[Any]) -> object:
    """A value of the flag's type. For a switch it is true, so that a false that comes back was said by somebody."""
    if row.kills:
        return True
    return row.default if row.default is not None else policy_defaults(DEFAULT_POLICY)[row.key].value


def _others(flags: Mapping[str, object]) -> list[Finding]:
    names = [str(key) for key in flags if key not in BY_KEY and str(key).startswith(OURS + ".")]
    refused = [key for key in flags if key in BY_KEY and not BY_KEY[key].remote]
    return [finding(printable(name), "remote flag", "", "there is no such setting") for name in names] + [
        finding(key, "remote flag", "", "may not be set by a remote flag") for key in refused
    ]
