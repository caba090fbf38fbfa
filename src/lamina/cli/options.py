"""What many commands take, and what many need before they can begin."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any, TypeAlias

import click

from .console import print_result

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]
# The value of a document, the lines for a person, and what is said where there are none.
Reported: TypeAlias = tuple[Any, str | Iterable[str]] | tuple[Any, str | Iterable[str], str]

as_json: Decorator = click.option("--json", "as_json", is_flag=True, help="One JSON document.")
yes: Decorator = click.option("--yes", is_flag=True, help="Do not ask.")


def cwd(whose: str = "Whose memory.") -> Decorator:
    """The directory a command is about, as a whole path."""
    kind = click.Path(file_okay=False, exists=True, path_type=Path, resolve_path=True)
    return click.option("--cwd", type=kind, default=".", help=whose)


def reports(run: Callable[..., Reported]) -> Callable[..., None]:
    """Adds --json, and prints what the command returns."""

    @as_json
    @wraps(run)
    def command(as_json: bool, **given: Any) -> None:
        print_result(*run(**given), as_json=as_json)

    return command


def find_home() -> Path | None:
    from ..disk.settings_files import lamina_home

    return lamina_home(os.environ)


def need_home() -> Path:
    if (home := find_home()) is None:
        raise click.UsageError("no home directory is known: set LAMINA_HOME.")
    return home


def confirm(question: str) -> None:
    """A yes of the person at the terminal; without one there nothing is removed."""
    if not sys.stdin.isatty():
        raise click.UsageError("nobody is there to be asked: --yes does it without a question.")
    if not click.confirm(question, default=False, err=True):
        raise click.Abort
