"""`lamina replay`: recorded sessions through the layers again, against other policies and with layers off (B14)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import InputError
from ..core.policy import POLICIES
from ..replay.variants import ALL, LAYERS
from . import options
from .console import ProgressLine, capped, notice, print_result, print_table, sentence, terminal_width

if TYPE_CHECKING:
    from ..core.settings import Settings
    from ..disk.user_files import FileVersion
    from ..replay.comparison import ComparisonModel
    from ..replay.run import ReplayOptions, ReplayReport

# A person reads so many sentences; --json has all.
MOST_SENTENCES = 10
# Between two words on how far it is: in a file they add up.
LINE_SECONDS = 15.0
# A report that is there already is read before it is replaced.
MOST_BYTES = 64 << 20
# Below this not all columns fit.
NARROW = 140
# Nor these, beside rows such as `lamina without compaction`.
NARROWER = 96


@click.command("replay")
@click.argument("recordings", metavar="FILE|DIR...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--policy", "policies", multiple=True, type=click.Choice(tuple(POLICIES)), help="A further row; may be repeated.")
@click.option(
    "--without",
    multiple=True,
    type=click.Choice((*LAYERS, ALL)),
    help="Rows with this layer off, or each in turn; may be repeated.",
)
@click.option(
    "--memory", type=click.Path(file_okay=False, exists=True, path_type=Path), help="Memory to replay with; else this project's."
)
@click.option(
    "--ask",
    metavar="N",
    type=click.IntRange(min=1),
    help="Ask the configured provider at N calls of each session; this costs money.",
)
@click.option("--window", type=click.IntRange(min=1_000), help="The model's window in tokens, for all of them.")
@click.option(
    "--html", "page", metavar="REPORT", type=click.Path(dir_okay=False, path_type=Path), help="Write the report as a page."
)
@options.cwd("Whose settings.")
@options.as_json
def replay_command(
    recordings: Sequence[Path],
    policies: Sequence[str],
    without: Sequence[str],
    memory: Path | None,
    window: int | None,
    ask: int | None,
    page: Path | None,
    cwd: Path,
    as_json: bool,
) -> None:
    """Run recorded sessions through the layers again: tokens, cache and money, against other policies and with layers off.

    Sessions are transcripts of Lamina or Claude Code. Nothing of them is changed, and without --ask nothing is asked of a model.
    """
    from ..replay.run import replay, transcripts
    from ..replay.variants import variants

    for path in recordings:
        if not path.exists():
            problem = f"there is no file or directory {path}"
            raise InputError("replay", problem, "name transcripts, or a directory that holds some")
    _page_before(page)
    files = transcripts(recordings)
    with ProgressLine(line_seconds=LINE_SECONDS) as progress:
        here = ""

        def on_session(at: int, path: Path) -> None:
            nonlocal here
            here = f"session {at + 1:,} of {len(files):,}: {sentence(path.name)}"
            progress.show(here)

        def on_call(policy: str, call: int, calls: int) -> None:
            progress.show(f"{here}, {policy}, call {call:,} of {calls:,}")

        wanted = _wanted(cwd, memory, window)._replace(
            variants=variants(policies, without), comparison_model=_asking(cwd, ask), on_call=on_call
        )
        report = replay(files, wanted, on_session=on_session)
    if not report.sessions:
        raise InputError("replay", _why_none(recordings, files, report), "name transcripts of Lamina or Claude Code")
    if wanted.comparison_model is not None and wanted.comparison_model.trouble is not None:
        notice(wanted.comparison_model.trouble)
    if not as_json:
        _print_figures(report)
    print_result(report.to_json(), (), as_json=as_json)
    if page is not None:  # last: a page that cannot be written does not cost the figures
        _write(page, report)
        if not as_json:
            click.echo(f"The report is in {sentence(str(page))}.")


def _wanted(cwd: Path, memory: Path | None, window: int | None) -> ReplayOptions:
    from ..disk.home.loading import settings_in_force
    from ..replay.run import ReplayOptions, index_reminder, memory_directory

    in_force = settings_in_force(cwd)
    place = memory.resolve() if memory is not None else memory_directory(in_force, cwd=cwd, home=options.find_home())
    given = {"memory_directory": str(place)} if place is not None else {}

    def settings(arguments: Mapping[str, Any]) -> Settings:
        return settings_in_force(cwd, arguments={**given, **arguments})

    def index(held: Settings) -> str | None:
        return index_reminder(place, held) if place is not None else None

    return ReplayOptions((), settings, window, index)


def _asking(cwd: Path, times: int | None) -> ComparisonModel | None:
    if times is None:
        return None
    from ..disk.home.loading import settings_in_force
    from ..replay.comparison import ComparisonModel
    from .start import open_chosen_provider

    provider = open_chosen_provider(None, settings_in_force(cwd))
    if provider.name == "offline":
        raise InputError("--ask", "no provider is configured", "set ANTHROPIC_API_KEY or OPENAI_API_KEY")
    return ComparisonModel(provider, times)


def _why_none(named: Sequence[Path], files: Sequence[Path], report: ReplayReport) -> str:
    if not files:
        return f"there are no transcripts in {', '.join(map(str, named))}"
    if len(report.skipped) == 1:
        return report.skipped[0].partition("; ")[0].removesuffix(".")  # what to do instead is said once
    return f"none of {len(files):,} files is a recorded session"


def _print_figures(report: ReplayReport) -> None:
    from ..core.wording import counted
    from ..replay.table import COLUMNS, cells, remarks

    shown = [at for at, name in enumerate(COLUMNS) if name not in _left_out()]
    rows = [cells(name, figures) for name, figures in report.figures.items()]
    print_table([COLUMNS[at] for at in shown], [[row[at] for at in shown] for row in rows], right=COLUMNS[1:])
    click.echo(f"\n{counted(report.sessions, 'session')}, {counted(report.calls, 'call')}.")
    for remark in remarks(report):
        click.echo(remark)
    told = [*report.skipped, *report.damaged]
    notice(*capped(told, MOST_SENTENCES, "and {} more; --json lists them all."))


def _left_out() -> tuple[str, ...]:
    """A narrow terminal has room for what a policy costs and what it forgets; --json has all."""
    room = terminal_width() or NARROW
    less = ("written", "side calls", "breaks", "peak", "files kept") if room < NARROW else ()
    return (*less, "cached") if room < NARROWER else less


def _write(path: Path, report: ReplayReport) -> None:
    from ..disk.user_files import replace
    from ..replay.html import page

    # A file's name need not be text.
    made = page(report, "Replay").encode("utf-8", "replace")
    replace(path, made, expect=_page_before(path), roots=(path.parent,))


def _page_before(path: Path | None) -> FileVersion | None:
    """The page that is there and will be replaced. Nothing else is: `--html *.jsonl` names a transcript."""
    from ..disk.user_files import read_whole
    from ..replay.html import BEGINNING

    before = read_whole(path, MOST_BYTES) if path is not None else None
    if before is None:
        return None
    if before.data and not before.data.startswith(BEGINNING.encode()):
        raise InputError("--html", f"{path} is there already and is no page of a report", "name another file")
    return before.version
