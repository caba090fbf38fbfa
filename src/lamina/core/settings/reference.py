"""The settings reference in Markdown, generated from the table so that a test can compare docs/settings.md with it."""

from __future__ import annotations

from typing import Any

from .kinds import SWITCH
from .table import BASH_LENGTH, NUMBERS, SETTINGS, Means, Setting, defaults

_MEANS: dict[Means, str] = {"value": "", "not": " (true: off, false: on)", "off": " (true: off)"}
_HEAD = "| key | accepts | default | variables | flag | working tree | what | spec |\n|---|---|---|---|---|---|---|---|"


TITLES = ("Switches", "Values", "Numbers of the policy")


def title_of(row: Setting[Any]) -> str:
    """Return the title of the group that a setting is listed under."""
    return "Numbers of the policy" if row in NUMBERS.values() else "Switches" if row.kind is SWITCH else "Values"


def reference() -> str:
    parts: dict[str, list[str]] = {title: [] for title in TITLES}
    for row in SETTINGS:
        parts[title_of(row)].append(_line(row))
    return "\n".join("\n".join([f"### {title}\n", _HEAD, *lines, ""]) for title, lines in parts.items())


def _line(row: Setting[Any]) -> str:
    variables = ", ".join(f"`{name}`{' (Bash, lowers)' if name == BASH_LENGTH else _MEANS[row.means]}" for name in row.variables)
    flag = "yes" if row.remote else ""
    cells = (f"`{row.key}`", row.kind.says, _default(row), variables, flag, row.tree, row.help, row.spec)
    return "| " + " | ".join(cell or "–" for cell in cells) + " |"


def _default(row: Setting[Any]) -> str:
    shown = row.shown(defaults()[row.key].value)
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
