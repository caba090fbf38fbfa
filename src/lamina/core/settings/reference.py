"""The reference of all settings as markdown, made from the table, so that docs/settings.md can be checked against it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .numbers import ROWS, policy_defaults
from .row import Means, Setting
from .switches import Switches
from .table import DEFAULT_POLICY, SETTINGS

_MEANS: dict[Means, str] = {"value": "", "not": " (true: off, false: on)", "off": " (true: off)", "bash": " (Bash, lowers)"}
_HEAD = "| key | accepts | default | variables | flag | working tree | what | spec |\n|---|---|---|---|---|---|---|---|"


def reference() -> str:
    switches = [row for row in SETTINGS if row.name in vars(Switches)]
    numbers = list(ROWS.values())
    others = [row for row in SETTINGS if row not in switches and row not in numbers]
    parts = (("Switches", switches), ("Values", others), ("Numbers of the policy", numbers))
    return "\n".join(f"### {title}\n\n{_table(rows)}\n" for title, rows in parts)


def _table(rows: Iterable[Setting[Any]]) -> str:
    return "\n".join([_HEAD, *(_line(row) for row in rows)])


def _line(row: Setting[Any]) -> str:
    variables = ", ".join(f"`{variable.name}`{_MEANS[variable.means]}" for variable in row.variables)
    cells = (f"`{row.key}`", row.kind.says(), _default(row), variables, "yes" if row.remote else "", row.tree, row.help, row.spec)
    return "| " + " | ".join(cell or "–" for cell in cells) + " |"


def _default(row: Setting[Any]) -> str:
    value = row.default if row.default is not None else _policy_value(row)
    shown = row.shown(value)
    match shown:
        case None:
            return ""
        case bool():
            return "on" if shown else "off"
        case int() | float():
            return f"{shown:,}"
        case list():
            return ", ".join(str(item) for item in shown)
        case dict():
            return ", ".join(f"{name}: {item:,}" if isinstance(item, int) else f"{name}: {item}" for name, item in shown.items())
        case _:
            return str(shown)


def _policy_value(row: Setting[Any]) -> object:
    found = policy_defaults(DEFAULT_POLICY).get(row.key)
    return None if found is None else found.value
