"""`lamina doctor`: find problems with memory, instruction files, settings and sessions; `--fix` repairs what is safe to repair.

Without `--fix` it only reads. Findings do not fail the command: the exit code is 0, or 1 if something could not be checked.
"""

from __future__ import annotations

import os
import time
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..language.wording import counted
from . import options
from .console import ProgressLine, color, document, printable, sentence, terminal_width, wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..maintenance.doctor.examination import DoctorReport
    from ..maintenance.doctor.finding import Finding
    from ..maintenance.doctor.fixes import AppliedFix

HEADINGS = {
    "memory": "Memory",
    "instructions": "Instruction files",
    "settings": "Settings",
    "sessions": "Sessions",
    "machine": "This machine",
}
COLORS = {"error": "red", "warning": "yellow", "info": "cyan"}
# Findings of one kind shown on a screen; --json lists all.
MOST_SHOWN = 10


@click.command("doctor")
@click.option("--fix", is_flag=True, help="Repair what is safe to repair, and list what was done and what is left.")
@options.as_json
@options.cwd("Check the memory and settings of this directory.")
@click.pass_context
def doctor_command(ctx: click.Context, fix: bool, as_json: bool, cwd: Path) -> None:
    """Check memory, instruction files, settings and sessions for problems.

    Nothing is changed without --fix. The exit code is 0 even if problems are found, and 1 if something could not be checked.
    """
    from ..maintenance.doctor.examination import examine
    from ..maintenance.doctor.fixes import mend_all

    now = time.time()
    with ProgressLine(" …") as progress:

        def looked() -> DoctorReport:
            return examine(cwd=cwd, environ=os.environ, now=now, tell=progress.show)

        done, report = mend_all(looked, now=now) if fix else ([], looked())
    if as_json:
        click.echo(document(to_json(report, done, cwd)))
    else:
        _show(report, done, fixed=fix)
    ctx.exit(0 if report.seen_all else 1)


def to_json(report: DoctorReport, done: Sequence[AppliedFix], cwd: Path) -> dict[str, Any]:
    return {
        "cwd": str(cwd),
        "memory": list(report.memory),
        "topics": report.topics,
        "complete": report.seen_all,
        "counts": _counts(report) | {"fixable": sum(found.fix is not None for found in report.findings)},
        "findings": [_row(found) for found in report.findings],
        "fixed": [each._asdict() for each in done],
    }


def _counts(report: DoctorReport) -> dict[str, int]:
    return {name: sum(found.severity == name for found in report.findings) for name in COLORS}


def _row(found: Finding) -> dict[str, Any]:
    row = {name: getattr(found, name) for name in ("area", "kind", "severity", "file", "line", "problem", "remedy")}
    return row | {"file": found.file or None, "fixable": found.fix is not None}


def _show(report: DoctorReport, done: Sequence[AppliedFix], *, fixed: bool) -> None:
    for each in done:
        mark = click.style("fixed", fg="green") if each.ok else click.style("failed", fg="red")
        _say(f"{mark}  {sentence(each.text)}" + (f"\n        {sentence(each.undo)}" if each.undo else ""))
    if done:
        _say("")
    for area, in_area in groupby(report.findings, key=lambda found: found.area):
        _say(click.style(HEADINGS[area], bold=True))
        for kind, alike in groupby(in_area, key=lambda found: found.kind):
            _group(kind, list(alike))
        _say("")
    _say(_broken(summary(report, done, fixed=fixed)))


def _group(kind: str, alike: list[Finding]) -> None:
    from ..maintenance.doctor.finding import KINDS

    severity, title, _ = KINDS[kind]
    count = f" ({len(alike):,})" if len(alike) > 1 else ""
    _say(f"  {click.style(severity, fg=COLORS[severity])}  {title}{count}")
    for found in alike[:MOST_SHOWN]:
        _say(_broken(found.problem, "    "))
        if found.file:
            place = found.file if found.line is None else f"{found.file}:{found.line}"
            _say(click.style(f"      {printable(place)}", dim=True))
    if len(alike) > MOST_SHOWN:
        _say(f"    … and {len(alike) - MOST_SHOWN:,} more; --json lists all.")
    for remedy in dict.fromkeys(found.remedy for found in alike[:MOST_SHOWN] if found.remedy):
        _say(_broken(f"→ {remedy}", "    ", "      "))


def summary(report: DoctorReport, done: Sequence[AppliedFix], *, fixed: bool) -> str:
    """Return the last line: the totals and the next step."""
    wrong = [found for found in report.findings if found.severity != "info"]
    fixable = sum(found.fix is not None for found in report.findings)
    if not wrong and not fixable:
        return f"No problems found ({counted(report.topics, 'memory')}, instruction files, settings and sessions checked)."
    words = {"error": "error", "warning": "warning", "info": "note"}
    totals = ", ".join(counted(count, words[name]) for name, count in _counts(report).items() if count)
    if fixed:
        return f"Remaining: {totals}. " + (f"{fixable:,} could not be fixed now." if fixable else "The rest needs your decision.")
    return f"{totals}. " + (
        f"Run `lamina doctor --fix` to fix {fixable:,} of them." if fixable else "None of them can be fixed automatically."
    )


def _broken(text: str, indent: str = "", rest: str | None = None) -> str:
    return wrapped(text, indent, rest, width=terminal_width())


def _say(text: str) -> None:
    click.echo(text, color=color())
