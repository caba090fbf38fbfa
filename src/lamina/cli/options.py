"""What many commands take, and what many need before they can begin."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

as_json: Decorator = click.option("--json", "as_json", is_flag=True, help="One JSON document.")
yes: Decorator = click.option("--yes", is_flag=True, help="Do not ask.")


def cwd(whose: str = "Whose memory.") -> Decorator:
    """The directory a command is about, as a whole path."""
    kind = click.Path(file_okay=False, exists=True, path_type=Path, resolve_path=True)
    return click.option("--cwd", type=kind, default=".", help=whose)


def lamina_home() -> Path:
    from ..disk.settings_files import lamina_home

    home = lamina_home(os.environ)
    if home is None:
        raise click.UsageError("no home directory is known: set LAMINA_HOME.")
    return home


def confirm(question: str) -> None:
    """A yes of the person at the terminal; without one there nothing is removed."""
    import sys

    if not sys.stdin.isatty():
        raise click.UsageError("nobody is there to be asked: --yes does it without a question.")
    if not click.confirm(question, default=False, err=True):
        raise click.Abort
