"""`lamina config`: every setting, its value and where it came from; what was ignored, at the end.

It reads and never writes. Keys, passwords and the values of variables are not printed, in neither form. A finding is no failure:
the exit code is 0, and 2 only for a setting that does not exist.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from ..core.settings import Finding, Resolved, Setting, Settings, find
from ..core.settings.kinds import printable
from ..core.settings.reference import reference
from ..disk.settings_files import load_settings, settings_paths
from . import completion
from .console import color, shorten

# A value longer than this is cut in the list; `lamina config KEY` and --json show all of it.
LONGEST_IN_LIST = 48
LONGEST = 100_000


@click.command("config")
@click.argument("key", required=False, shell_complete=completion.settings)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option(
    "--cwd", type=click.Path(exists=True, file_okay=False, path_type=Path), help="The directory whose settings are meant."
)
@click.option("--trusted", is_flag=True, help="Show what would hold if you trusted the files in that directory.")
@click.option("--reference", "as_reference", is_flag=True, help="Print the reference of all settings as markdown.")
def config_command(key: str | None, as_json: bool, cwd: Path | None, trusted: bool, as_reference: bool) -> None:
    """Show every setting, its value and where it came from, or one of them."""
    if as_reference:
        click.echo(reference(), nl=False)
        return
    row = find(key) if key is not None else None
    if key is not None and row is None:
        raise click.UsageError(f"there is no setting {printable(key)!r}; lamina config lists them.")
    where = _directory(cwd)
    settings = load_settings(cwd=where, environ=os.environ, trusted=trusted)
    if as_json:
        click.echo(_document(settings, row, where))
    elif row is not None:
        click.echo(_one(row, settings.resolved(row.key)))
    else:
        _print_all(settings)
    if not as_json:
        for found in _findings(settings, row):
            click.echo(f"lamina: {printable(found.text, LONGEST)}", err=True)


def _directory(cwd: Path | None) -> Path:
    """The working directory can be gone; then only its files are missing."""
    if cwd is not None:
        return cwd.absolute()
    try:
        return Path.cwd()
    except OSError:
        return Path(os.environ.get("PWD", os.sep))


def _findings(settings: Settings, row: Setting[Any] | None) -> list[Finding]:
    """Those about one setting, and those about a whole file: it may have held that setting. Rules that cannot be read too."""
    from ..permissions.rules import read_rules

    about = [found for found in settings.findings if row is None or found.key in (row.key, found.source, "LAMINA_HOME")]
    rules = read_rules(settings.permissions).findings if row is None or row.key == "permissions" else ()
    return [*about, *rules]


def _document(settings: Settings, row: Setting[Any] | None, cwd: Path) -> str:
    import json

    paths = settings_paths(cwd=cwd, environ=os.environ)
    document = {
        "cwd": str(cwd),
        "files": {name: None if path is None else str(path) for name, path in paths._asdict().items()},
        "settings": [
            {"key": each.key, "value": each.shown(found.value), "source": found.source, "detail": found.detail}
            for each, found in settings
            if row is None or each is row
        ],
        "findings": [found._asdict() for found in _findings(settings, row)],
    }
    return json.dumps(document, indent=2)


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
    return "\n".join(f"{name}: {text}" for name, text in lines.items())


def _print_all(settings: Settings) -> None:
    """Columns by hand: a list for `grep` must not depend on the width of a terminal."""
    rows = [(row.key, _text(row, found.value), _from(found), found.source == "default") for row, found in settings]
    key_width = max(len(key) for key, *_ in rows)
    for key, text, source, is_default in rows:
        line = f"{key:<{key_width}}  {shorten(text, LONGEST_IN_LIST):<{LONGEST_IN_LIST}}  {source}"
        click.echo(click.style(line, dim=True) if is_default else click.style(line, bold=True), color=color())
