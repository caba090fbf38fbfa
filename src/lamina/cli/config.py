"""`lamina config`: list the settings you changed, or with --all every one, with value and origin, then what was ignored.

Read-only. API keys, passwords and the values of environment variables are never printed, in text or JSON. Findings do not fail
the command: the exit code is 0, or 2 for an unknown setting.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
import msgspec

from ..core.settings import SETTINGS, Finding, Resolved, Setting, Settings, find
from ..core.settings.kinds import SWITCH, printable
from ..core.settings.table import BASH_LENGTH, NUMBERS, Means, defaults
from ..disk.settings_files import load_settings, settings_paths
from ..language.wording import counted, shorten
from . import completion
from .console import LEAST, color, fit, folded, notice, terminal_width, wrapped
from .options import did_you_mean

# Longer values are shortened in the list; `lamina config KEY` and --json show them in full.
LONGEST_IN_LIST = 48
LONGEST = 100_000
_MEANS: dict[Means, str] = {"value": "", "not": " (true: off, false: on)", "off": " (true: off)"}
_HEAD = "| key | accepts | default | variables | flag | working tree | what | spec |\n|---|---|---|---|---|---|---|---|"
TITLES = ("Switches", "Values", "Numbers of the policy")


@click.command("config")
@click.argument("key", required=False, shell_complete=completion.settings)
@click.option("--all", "everything", is_flag=True, help="List every setting, also those with their default value.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--cwd", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Show the settings of this directory.")
@click.option("--trusted", is_flag=True, help="Show the settings that would apply if you trusted this directory.")
@click.option("--reference", "as_reference", is_flag=True, help="Print the settings reference as Markdown.")
def config_command(key: str | None, everything: bool, as_json: bool, cwd: Path | None, trusted: bool, as_reference: bool) -> None:
    """Show the settings that differ from their defaults, or one setting, and where the values come from.

    --json always lists all of them.
    """
    if as_reference:
        click.echo(reference(), nl=False)
        return
    row = find(key) if key is not None else None
    if key is not None and row is None:
        hint = did_you_mean(key, (each.key for each in SETTINGS), "Run `lamina config --all` to list them.")
        raise click.UsageError(f"Unknown setting {printable(key)!r}. {hint}")
    where = _directory(cwd)
    settings = load_settings(cwd=where, environ=os.environ, trusted=trusted)
    if as_json:
        click.echo(_document(settings, row, where))
    elif row is not None:
        click.echo(_one(row, settings.resolved(row.key)))
    else:
        _print_groups(settings, everything=everything)
    if not as_json:
        for found in _findings(settings, row):
            notice(printable(found.text, LONGEST))


def _directory(cwd: Path | None) -> Path:
    """Return the directory to look at, even if the working directory was deleted: then only its files are missing."""
    if cwd is not None:
        return cwd.absolute()
    try:
        return Path.cwd()
    except OSError:
        return Path(os.environ.get("PWD", os.sep))


def _findings(settings: Settings, row: Setting[Any] | None) -> list[Finding]:
    """Return the findings about one setting, about permission rules, and about whole files, which may contain the setting."""
    from ..tools.permissions.rules import read_rules

    about = [found for found in settings.findings if row is None or found.key in (row.key, found.source, "LAMINA_HOME")]
    rules = read_rules(settings.permissions).findings if row is None or row.key == "permissions" else ()
    return [*about, *rules]


def _document(settings: Settings, row: Setting[Any] | None, cwd: Path) -> str:
    import json

    paths = settings_paths(cwd=cwd, environ=os.environ)
    document = {
        "cwd": str(cwd),
        "files": {name: None if path is None else str(path) for name, path in msgspec.structs.asdict(paths).items()},
        "settings": [
            {"key": each.key, "value": each.shown(found.value), "source": found.source, "detail": found.detail}
            for each, found in settings
            if row is None or each is row
        ],
        "findings": [{"key": found.key, "source": found.source, "text": found.text} for found in _findings(settings, row)],
    }
    return json.dumps(document)


def _text(row: Setting[Any], value: object) -> str:
    import json

    shown = row.shown(value)
    return printable(
        "-" if shown is None else shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False), LONGEST
    )


def _from(found: Resolved) -> str:
    return f"{found.source} ({printable(found.detail, LONGEST)})" if found.detail else found.source


def _one(row: Setting[Any], found: Resolved) -> str:
    lines = {
        row.key: _text(row, found.value),
        "from": _from(found),
        "what": row.help,
        "accepts": row.kind.says,
        "variables": ", ".join(row.variables) or "-",
    }
    return "\n".join(folded(f"{name}: {text}" for name, text in lines.items()))


def _print_groups(settings: Settings, *, everything: bool) -> None:
    """Print one line per setting under the heading of its kind; on a terminal, a longer line is cut."""
    from rich.cells import cell_len

    rows = [(row, found) for row, found in settings if everything or found.source != "default"]
    values = {row.key: shorten(_text(row, found.value), LONGEST_IN_LIST) for row, found in rows}
    width, columns = max(map(len, values), default=0), terminal_width()
    room = max(map(cell_len, values.values()), default=0)
    if columns is not None:
        room = min(room, max(LEAST, columns - width - len("    ") - len("  default")))
    for title in TITLES:
        group = [(row, found) for row, found in rows if title_of(row) == title]
        if group:
            click.echo(click.style(f"{title}:", bold=True), color=color())
        for row, found in group:
            text = fit(values[row.key], room)
            line = f"  {row.key:<{width}}  {text}{' ' * (room - cell_len(text))}  {_from(found)}"
            line = line if columns is None else fit(line, columns)
            click.echo(click.style(line, dim=True) if found.source == "default" else line, color=color())
    left = sum(1 for _ in settings) - len(rows)
    if left:
        what = "Not listed" if rows else "No setting is changed"
        text = f"{what}: {counted(left, 'setting')} at the default value. Run `lamina config --all` to list them."
        click.echo(wrapped(text, width=columns))


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
