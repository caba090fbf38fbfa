"""`lamina forget`: remove a subject from everything Lamina stores."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..core.wording import counted
from . import options
from .console import capped, print_result, printable, waiting

if TYPE_CHECKING:
    from ..maintenance.forget.forget import ForgetReport, ForgottenFile

# Files listed before the confirmation; nobody reads more.
SHOWN = 40


@click.command("forget")
@click.argument("subject")
@click.option("--all-projects", "everywhere", is_flag=True, help="Search every project, not only this one.")
@click.option("--anywhere", is_flag=True, help="Also match inside longer words.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@options.yes
@options.cwd("Search the project of this directory.")
@options.as_json
@options.only_for_user
def forget_command(subject: str, everywhere: bool, anywhere: bool, dry_run: bool, yes: bool, cwd: Path, as_json: bool) -> int:
    """Permanently remove a subject from memories, history, transcripts and all other stored files."""
    from .. import sources
    from ..disk.home.loading import settings_in_force
    from ..disk.settings_files import user_home
    from ..maintenance.forget.forget import as_json as told
    from ..maintenance.forget.forget import forget, held_by_others, remains
    from ..maintenance.forget.subject import Subject
    from ..maintenance.kept_files import kept_files

    home, wanted = options.need_home(), Subject(subject, anywhere=anywhere)
    settings = settings_in_force(cwd, home=home)
    kept = kept_files(home, cwd, settings, person=user_home(os.environ), everywhere=everywhere)
    if dry_run or not yes:
        with waiting("Searching the stored files"):
            planned = forget(kept, wanted, do=False)
        if dry_run:
            print_result(told(planned) | {"dry_run": True}, _shown(planned, "would be removed"), as_json=as_json)
            return 0
        if planned.done:
            click.echo(_shown(planned, "would be removed"), err=True)
            options.confirm("Remove it permanently?")
    mine = {root.path for root in kept.roots} | {part for one in kept.sessions for part in (one.transcript, one.directory)}
    others = set(kept.others)
    with waiting("Removing it and checking that nothing is left"):
        # Looked for first: the index of sessions is removed with the rest.
        theirs = held_by_others(sources.sessions(settings, None if everywhere else cwd), home, wanted)
        done = forget(kept, wanted, do=True)
        done.left = remains(
            [home, *(root.path for root in kept.roots)],
            wanted,
            inside=lambda path: path in others or path in mine or not mine.isdisjoint(path.parents) or path.parent == home,
        )
        done.left += theirs
    print_result(told(done) | {"dry_run": False}, _shown(done, "removed"), as_json=as_json)
    return 1 if done.skipped else 0


def _shown(report: ForgetReport, verb: str) -> str:
    def extent(item: ForgottenFile) -> str:
        return "whole file" if item.action == "removed" else counted(item.places, "place")

    rows = capped([f"{item.kind}: {item.path} ({extent(item)})" for item in report.done], SHOWN, "… and {:,} more")
    counts = ", ".join(f"{count} in {kind}" for kind, count in sorted(report.counts().items()))
    none = "Nothing was removed." if report.skipped or report.left else "No matches found."
    rows.append(f"{verb.capitalize()}: {counts}." if counts else none)
    rows += [f"Not done: {one.path}: {one.why}" for one in report.skipped]
    left = [f"Left: {one.path}: {one.why}" for one in report.left]
    rows += capped(left, SHOWN, "Left: {:,} more; --json lists them.")
    return printable("\n".join(rows))
