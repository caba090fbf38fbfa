"""`lamina replay`: replay recorded sessions under other policies and with layers turned off (B14)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..core.errors import InputError, NoSuchSession
from ..core.policy import POLICIES
from ..language.text import Text
from ..replay.variants import ALL, LAYERS, TTLS
from . import options
from .console import ProgressLine, capped, color, folded, notice, print_result, print_table, sentence, terminal_width
from .signals import StopRequest

if TYPE_CHECKING:
    from ..core.settings import Billing
    from ..disk.regular_file import FileStamp
    from ..replay.comparison import ComparisonModel
    from ..replay.report import ReplayReport

# Notices printed; --json has all.
MOST_SENTENCES = 10
# Interval of progress lines without a terminal, long enough not to fill a log file.
LINE_SECONDS = 15.0
# An existing report is read before it is replaced.
MOST_BYTES = 64 << 20
# A narrower terminal has no room for all columns.
NARROW = 170
# At this width even fewer fit beside row names such as `balanced without compaction`.
NARROWER = 96


@click.command("replay")
@click.argument("recordings", metavar="FILE|DIR|SESSION...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--policy",
    "policies",
    metavar="NAME[,NAME]",
    multiple=True,
    callback=lambda _, option, given: _policies(option, given),
    help=f"Also replay with these policies: {', '.join(POLICIES)}, or all. Repeatable.",
)
@click.option(
    "--ttl", "ttls", multiple=True, type=click.Choice(TTLS), help="Also replay with this lifetime of the cache. Repeatable."
)
@click.option(
    "--without",
    multiple=True,
    type=click.Choice((*LAYERS, ALL)),
    help="Also replay with this layer off, or with each in turn. Repeatable.",
)
@click.option(
    "--memory",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    help="Memory directory to use. Default: this project's.",
)
@click.option(
    "--ask",
    metavar="N",
    type=click.IntRange(min=1),
    help="Ask the configured provider at N calls of each session. This costs money.",
)
@click.option("--window", type=click.IntRange(min=1_000), help="Context window in tokens for all sessions.")
@click.option(
    "--html", "page", metavar="REPORT", type=click.Path(dir_okay=False, path_type=Path), help="Write the report as an HTML page."
)
@click.option("--requests", is_flag=True, help="Also show each session request by request, the recording beside each policy.")
@options.cwd("Use the settings of this directory.")
@options.as_json
def replay_command(
    recordings: Sequence[Path],
    policies: Sequence[str],
    ttls: Sequence[str],
    without: Sequence[str],
    memory: Path | None,
    window: int | None,
    ask: int | None,
    page: Path | None,
    requests: bool,
    cwd: Path,
    as_json: bool,
) -> None:
    """Replay recorded sessions to compare tokens, cache hits and cost under different policies.

    Sessions are transcripts of Lamina, Claude Code, Codex or pi, given by file, directory or id. They are not changed, and without
    --ask no model is called.
    """
    from ..replay.options import options_in
    from ..replay.request_table import requests_json
    from ..replay.run import replay, transcripts
    from ..replay.variants import ALWAYS, name_in_force, variants

    recordings = [path if path.exists() else _by_id(path, cwd) for path in recordings]
    _page_before(page)
    files = transcripts(recordings)
    # A signal ends the program with an exception, so the temporary home is removed.
    with StopRequest().listening(), ProgressLine(line_seconds=LINE_SECONDS) as progress:
        here = ""

        def on_session(at: int, path: Path) -> None:
            nonlocal here
            here = f"session {at + 1:,} of {len(files):,}: {sentence(path.name)}"
            progress.show(here)

        def on_call(policy: str, call: int, calls: int) -> None:
            progress.show(f"{here}, {policy}, call {call:,} of {calls:,}")

        found = options_in(cwd, options.find_home(), memory=memory, window=window)
        rows = variants(policies, without, ttls, in_force=name_in_force(found.settings(ALWAYS)))
        wanted = found._replace(variants=rows, comparison_model=_asking(cwd, ask), on_call=on_call)
        report = replay(files, wanted, on_session=on_session)
    if not report.sessions:
        if len(report.skipped) > 1:
            notice(*capped(report.skipped, MOST_SENTENCES, Text("and {count} more")))
        raise InputError("replay", _why_none(recordings, files, report), "pass transcripts of Lamina, Claude Code, Codex or pi")
    if wanted.comparison_model is not None and wanted.comparison_model.trouble is not None:
        notice(wanted.comparison_model.trouble)
    listed = {"requests": requests_json(report)} if requests else {}
    billing = options.load_settings(cwd).billing
    if not as_json:
        if requests:
            _print_requests(report, billing)
        _print_figures(report, billing)
    print_result(report.to_json() | listed | {"billing": billing}, (), as_json=as_json)
    if page is not None:  # last, so that the figures are printed even if the page cannot be written
        _write(page, report, requests=requests, billing=billing)
        if not as_json:
            click.echo(f"Wrote the report to {sentence(str(page))}.")


def _policies(option: click.Parameter, given: Sequence[str]) -> list[str]:
    """Return the named policies; names may be separated by commas."""
    names = [name.strip() for one in given for name in one.split(",")]
    if ALL in names:
        return list(POLICIES)
    for name in names:
        if name not in POLICIES:
            raise click.BadParameter(f"{name!r} is not one of {', '.join(POLICIES)}, {ALL}.", param=option)
    return names


def _by_id(path: Path, cwd: Path) -> Path:
    """Return the transcript of a session given by its id."""
    from .transcripts import locate

    try:
        return locate(str(path), cwd)
    except (InputError, NoSuchSession):
        problem = f"file or directory {path} not found"
        raise InputError("replay", problem, "pass transcript files, a directory of transcripts or a session id") from None


def _asking(cwd: Path, times: int | None) -> ComparisonModel | None:
    if times is None:
        return None
    from ..disk.settings_files import settings_in_force
    from ..replay.comparison import ComparisonModel
    from ..session.provider import open_chosen_provider

    provider = open_chosen_provider(None, settings_in_force(cwd))
    if provider.name == "offline":
        raise InputError("--ask", "no provider is configured", "set ANTHROPIC_API_KEY or OPENAI_API_KEY")
    return ComparisonModel(provider, times)


def _why_none(named: Sequence[Path], files: Sequence[Path], report: ReplayReport) -> str:
    if not files:
        return f"no transcripts found in {', '.join(map(str, named))}"
    if len(report.skipped) == 1:
        return report.skipped[0].partition("; ")[0].removesuffix(".")  # the caller adds its own remedy
    return f"none of the {len(files):,} files is a recorded session"


def _print_figures(report: ReplayReport, billing: Billing) -> None:
    from ..language.wording import counted
    from ..replay.table import cells, columns, headlines, remarks

    for line in headlines(report, billing):
        click.secho(line, bold=True, color=color())
    click.echo()
    heads, left_out = columns(billing), _left_out(billing)
    shown = [at for at, name in enumerate(heads) if name not in left_out]
    rows = [cells(report, name, billing) for name in report.figures]
    print_table([heads[at] for at in shown], [[row[at] for at in shown] for row in rows], right=heads[1:])
    click.echo(f"\n{counted(report.sessions, 'session')}, {counted(report.calls, 'call')}.")
    click.echo(f"Written by: {', '.join(f'{origin} ({count:,})' for origin, count in sorted(report.origins.items()))}.")
    for remark in folded(remarks(report, billing)):
        click.echo(remark)
    told = [*report.skipped, *report.damaged]
    notice(*capped(told, MOST_SENTENCES, Text("and {count} more; --json lists them all.")))


def _print_requests(report: ReplayReport, billing: Billing) -> None:
    from ..replay.request_table import request_tables

    tables = request_tables(report, billing)
    shown = len({table.session.name for table in tables})
    if shown < report.sessions:
        click.echo(f"Requests of the {shown:,} dearest of {report.sessions:,} sessions.\n")
    for table in tables:
        click.secho(f"{sentence(table.session.name)}, {table.row}", bold=True, color=color())
        print_table(table.columns, list(table.cells()), right=(table.columns[0], *table.columns[2:-1]))
        click.echo(f"{table.total()}\n")


def _left_out(billing: Billing) -> tuple[str, ...]:
    """Return the columns to leave out on a narrow terminal; cost and fidelity always stay."""
    room = terminal_width() or NARROW
    tokens = ("written",) if billing == "list" else ("read", "written", "uncached", "output")
    less = (*tokens, "side calls", "clearings", "breaks", "peak", "files kept", "regrets") if room < NARROW else ()
    return (*less, "cached", "input units", "compactions") if room < NARROWER else less


def _write(path: Path, report: ReplayReport, *, requests: bool, billing: Billing) -> None:
    from ..disk.user_files import replace
    from ..replay.html import page

    # File names need not be valid UTF-8.
    made = page(report, "Replay", requests=requests, billing=billing).encode("utf-8", "replace")
    replace(path, made, expect=_page_before(path), roots=(path.parent,))


def _page_before(path: Path | None) -> FileStamp | None:
    """Return the stamp of the existing report to replace. Refuse any other file: `--html *.jsonl` may name a transcript."""
    from ..disk.user_files import read_whole
    from ..replay.html import BEGINNING

    before = read_whole(path, MOST_BYTES) if path is not None else None
    if before is None:
        return None
    if before.data and not before.data.startswith(BEGINNING.encode()):
        raise InputError("--html", f"{path} exists and is not a replay report", "choose another file")
    return before.stamp
