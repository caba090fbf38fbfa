"""`lamina forget`: remove a subject from everything Lamina stores."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..language.text import Text, joined
from ..language.wording import counted
from . import options
from .console import capped, print_result, printable, waiting

if TYPE_CHECKING:
    from ..maintenance.forget.forget import ForgetReport, ForgottenFile

# Number of files listed before the confirmation.
SHOWN = 40


@click.command("forget")
@options.words("subject", required=False)
@click.option("--all-projects", "everywhere", is_flag=True, help="Search every project, not only this one.")
@click.option("--anywhere", is_flag=True, help="Also match inside longer words.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--resume", is_flag=True, help="Finish every forget that was interrupted or could not finish.")
@options.yes
@options.cwd("Search the project of this directory.")
@options.as_json
@options.only_for_user
def forget_command(
    subject: str | None, everywhere: bool, anywhere: bool, dry_run: bool, resume: bool, yes: bool, cwd: Path, as_json: bool
) -> int:
    """Permanently remove a subject from memories, history, transcripts and all other stored files."""
    from ..maintenance.forget.forget import as_json as told
    from ..maintenance.forget.job import ForgetJob, find_left, job_path, plan_job, run_job

    if resume == (subject is not None):
        raise click.UsageError("Name a subject, or use --resume alone to finish interrupted forgets.")
    home = options.need_home()
    if subject is None:
        return _resume(home, as_json=as_json)
    job = ForgetJob(subject, str(cwd), everywhere, anywhere)
    path = job_path(home, job)
    with waiting("Searching the stored files"):
        job, planned = plan_job(home, path, job, os.environ)
        if dry_run or not yes:
            find_left(home, job, planned, os.environ)
    if dry_run:
        print_result(told(planned) | {"dry_run": True}, _report(planned, done=False), as_json=as_json)
        return 0
    if planned.done and not yes:
        click.echo(_report(planned, done=False), err=True)
        options.confirm("Remove it permanently?")
    with waiting("Removing it and checking that nothing is left"):
        done = run_job(home, path, job, planned, os.environ)
    print_result(told(done) | {"dry_run": False}, _report(done, done=True), as_json=as_json)
    return 0 if done.is_complete() else 1


def _resume(home: Path, *, as_json: bool) -> int:
    """Run every unfinished job again. The user confirmed it when it began."""
    from ..maintenance.forget.forget import as_json as told
    from ..maintenance.forget.job import resume_jobs

    with waiting("Removing what is left and checking again"):
        done = resume_jobs(home, os.environ)
    rows = [f"Forget {job.subject!r}:\n{_report(report, done=True)}" for job, report in done] or ["No forget is unfinished."]
    print_result([{"subject": job.subject} | told(report) for job, report in done], printable("\n".join(rows)), as_json=as_json)
    return 0 if all(report.is_complete() for _, report in done) else 1


def _report(report: ForgetReport, *, done: bool) -> str:
    return printable("\n".join(describe_report(report, done=done)))


def describe_report(report: ForgetReport, *, done: bool) -> list[str]:
    """Return what a forget did, or without `done` would do."""

    def extent(item: ForgottenFile) -> Text:
        return Text("whole file") if item.action == "removed" else counted(item.places, "place")

    files = [
        Text("{kind}: {path} ({extent})", kind=Text.whole(item.kind), path=item.path, extent=extent(item)) for item in report.done
    ]
    rows = capped(files, SHOWN)
    counts = [Text("{count} in {kind}", count=count, kind=Text.whole(kind)) for kind, count in sorted(report.counts().items())]
    if counts:
        rows.append(Text("Removed: {counts}." if done else "Would be removed: {counts}.", counts=joined(counts)))
    elif report.skipped or report.left:
        rows.append(Text("Nothing was removed." if done else "Nothing would be removed."))
    else:
        rows.append(Text("No matches found."))
    rows += [Text("Not done: {path}: {why}", path=one.path, why=Text.whole(one.why)) for one in report.skipped]
    # A skipped session stands for its other files too.
    named = {part for one in report.skipped for part in (Path(one.path), Path(one.path).with_suffix(""))}
    left = [
        Text("Left: {path}: {why}", path=one.path, why=Text.whole(one.why))
        for one in report.left
        if named.isdisjoint({Path(one.path), *Path(one.path).parents})
    ]
    rows += capped(left, SHOWN, Text("Left: {count:,} more; --json lists them."))
    if report.scope:
        rows.append(Text("Searched: {scope}.", scope=report.scope))
    if report.outside:
        nouns = {"sessions": "session", "memories": "memory"}
        held = joined(counted(count, nouns[kind]) for kind, count in report.outside.items())
        rows.append(Text("Other projects hold it too: {held}. Use --all-projects to include them.", held=held))
    if report.unfinished:
        rows.append(Text("Unfinished. Run `lamina forget --resume` to finish it."))
    return rows
