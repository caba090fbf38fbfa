"""`lamina forget`: one subject out of everything that is kept."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .progress import waiting
from .safe_text import document, printable

if TYPE_CHECKING:
    from ..maintenance.forget.forget import ForgetReport, ForgottenFile

# More lines than a person reads before they answer.
SHOWN = 40


@click.command("forget")
@click.argument("subject")
@click.option("--all-projects", "everywhere", is_flag=True, help="In every project, not only in this one.")
@click.option("--anywhere", is_flag=True, help="Also inside longer words.")
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--cwd", type=click.Path(file_okay=False, exists=True), default=".", help="Which project.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def command(subject: str, everywhere: bool, anywhere: bool, dry_run: bool, yes: bool, cwd: str, as_json: bool) -> int:
    """Remove a subject from memories, history, transcripts and all else that is kept; nothing brings it back."""
    from ..disk.settings_files import lamina_home, load_settings, user_home
    from ..maintenance.forget.forget import as_json as told
    from ..maintenance.forget.forget import forget, remains
    from ..maintenance.forget.subject import Subject
    from ..maintenance.kept_files import kept_files

    home, here = lamina_home(os.environ), Path(cwd).resolve()
    if home is None:
        raise click.UsageError("no home directory is known: set LAMINA_HOME.")
    wanted = Subject(subject, anywhere=anywhere)
    settings = load_settings(cwd=here, home=home, environ=os.environ)
    kept = kept_files(home, here, settings, person=user_home(os.environ), everywhere=everywhere)
    if dry_run or not yes:
        with waiting("Looking through all that is kept"):
            planned = forget(kept, wanted, do=False)
        if dry_run:
            click.echo(document(told(planned) | {"dry_run": True}) if as_json else _shown(planned, "would go"))
            return 0
        if planned.done:
            click.echo(_shown(planned, "would go"), err=True)
            ask("Remove it for good?")
    mine = {root.path for root in kept.roots} | {part for one in kept.sessions for part in (one.transcript, one.directory)}
    others = set(kept.others)
    with waiting("Removing it, then looking whether any of it is left"):
        done = forget(kept, wanted, do=True)
        done.left = remains(
            [home, *(root.path for root in kept.roots)],
            wanted,
            inside=lambda path: path in others or path in mine or not mine.isdisjoint(path.parents) or path.parent == home,
        )
    click.echo(document(told(done) | {"dry_run": False}) if as_json else _shown(done, "went"))
    return 1 if done.skipped else 0


def ask(question: str) -> None:
    """A yes of the person at the terminal; without one there nothing is removed."""
    if not sys.stdin.isatty():
        raise click.UsageError("nobody is there to be asked: --yes does it without a question.")
    if not click.confirm(question, default=False, err=True):
        raise click.Abort


def _extent(item: ForgottenFile) -> str:
    if item.action == "removed":
        return "as a whole"
    return "1 place" if item.places == 1 else f"{item.places} places"


def _shown(report: ForgetReport, verb: str) -> str:
    rows = [f"{item.kind}: {item.path} ({_extent(item)})" for item in report.done]
    if len(rows) > SHOWN:
        rows[SHOWN:] = [f"… and {len(rows) - SHOWN} more files"]
    counts = ", ".join(f"{count} in {kind}" for kind, count in sorted(report.counts().items()))
    none = "Nothing was removed." if report.skipped or report.left else "Nothing of it was found."
    rows.append(f"{verb.capitalize()}: {counts}." if counts else none)
    rows += [f"Not done: {one.path}: {one.why}" for one in report.skipped]
    rows += [f"Left: {one.path}: {one.why}" for one in report.left[:SHOWN]]
    if len(report.left) > SHOWN:
        rows.append(f"Left: {len(report.left) - SHOWN} more files; --json lists them.")
    return printable("\n".join(rows))
