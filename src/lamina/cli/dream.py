"""`lamina dream`: put memory in order now; see, watch, end and take back dreams (D5).

Without an option a dream runs here, to its end: what it says goes to standard error as it says it, what it came to goes to standard
output. Ctrl-C ends it, and memory is as it was; Ctrl-C while another process's dream is watched only ends the watching.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import click

from . import completion as offering
from .dream_status import PUT_RIGHT, details, done, minute, outcome, status_json, status_lines, status_of, taken_back, to_json
from .dream_watch import STILL_RUNS, Telling, end_of, ended, followed, running
from .safe_text import document, printable, sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.settings import Settings
    from ..layers.l6_dream.record import DreamRecord
    from ..layers.l6_dream.run import DreamOutcome
    from ..memory.memory import Memory
    from .signals import Stop

OFFLINE = "no provider is configured (ANTHROPIC_API_KEY or OPENAI_API_KEY), so memory is put in order by rules, without a model"
# What `--undo` without an id stands for.
NEWEST = "newest"


@click.command("dream")
@click.option("--status", is_flag=True, help="When the last one was, what stands in the way of the next, and what they did.")
@click.option("--watch", is_flag=True, help="Follow the one that runs until it ends.")
@click.option("--kill", is_flag=True, help="End the one that runs; memory is as it was before it.")
@click.option(
    "--undo",
    metavar="[ID]",
    is_flag=False,
    flag_value=NEWEST,
    shell_complete=offering.dreams,
    help="Take back the last one, or this one, as a whole.",
)
@click.option("--model", help="Who dreams: anthropic:MODEL, openai:MODEL, offline; else as a conversation here would have it.")
@click.option("--cwd", type=click.Path(file_okay=False, exists=True), default=".", help="Whose memory.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def command(status: bool, watch: bool, kill: bool, undo: str | None, model: str | None, cwd: str, as_json: bool) -> int:
    """Put memory in order now: merge what says the same, date what was relative, mend the index."""
    if sum((status, watch, kill, undo is not None)) > 1:
        raise click.UsageError("--status, --watch, --kill and --undo exclude each other.")
    if model is not None and (status or watch or kill or undo is not None):
        raise click.UsageError("--model is for a dream that begins now.")
    where = Path(cwd).resolve()
    if status:
        return _status(where, as_json=as_json)
    if watch:
        return _watch(where, as_json=as_json)
    if kill:
        return _kill(where, as_json=as_json)
    if undo is not None:
        return _undo(where, None if undo == NEWEST else undo, as_json=as_json)
    return _now(where, model, as_json=as_json)


def _settings(where: Path) -> tuple[Path | None, Settings]:
    from .start import Wish, home_of, settings_for

    home = home_of()
    return home, settings_for(Wish(where), home)


@contextmanager
def _opened(where: Path) -> Iterator[Memory]:
    """As it is: nothing is recovered by looking."""
    from ..memory.memory import Memory

    home, settings = _settings(where)
    with Memory.open(where, home=home, settings=settings) as memory:
        yield memory


# By hand


def _say(text: str) -> None:
    click.echo(text, err=True)


def _now(where: Path, model: str | None, *, as_json: bool) -> int:
    from ..agent.manual_dream import run_by_hand
    from .signals import Stop
    from .start import Wish, nobody_chosen, notice, provider_for

    stop, abort = Stop(), Event()
    home, settings = _settings(where)
    for finding in settings.findings:
        notice(finding.text)
    with stop.listening():
        provider = provider_for(model, settings, stop)
        if provider.name == "offline" and nobody_chosen(Wish(where, model), settings):
            notice(OFFLINE)
        with stop.turn(abort.set):
            came = run_by_hand(provider, cwd=where, home=home, settings=settings, abort=abort, heard=Telling(_say))
    for text in came.recovered:
        notice(text)
    return _came(came, stop, as_json=as_json)


def _came(came: DreamOutcome, stop: Stop, *, as_json: bool) -> int:
    from .start import notice

    record = came.record
    if record is None:
        gate, why = (came.stop.gate, came.stop.why) if came.stop is not None else ("failures", "it did not begin")
        if as_json:
            click.echo(document({"stopped": gate, "why": why}))
        notice(f"no dream: {why}")
        return 1
    if as_json:
        click.echo(document(to_json(record)))
    if record.status == "completed":
        if not as_json:
            _tell(record)
        return 0
    notice(f"the dream {outcome(record)}")
    return stop.code if stop.wished and stop.code else 1


def _tell(record: DreamRecord) -> None:
    click.echo(f"Dreamt: {printable(outcome(record))}.")
    for line in details(record):
        click.echo(f"  {sentence(line)}")
    if done(record):
        click.echo("lamina dream --undo takes it back.", err=True)


# What there is


def _status(where: Path, *, as_json: bool) -> int:
    home, settings = _settings(where)
    with _opened(where) as memory:
        found = status_of(memory, settings, cwd=where, home=home)
    if as_json:
        click.echo(document(status_json(found)))
    for line in () if as_json else status_lines(found):
        click.echo(printable(line))
    return 0


def _watch(where: Path, *, as_json: bool) -> int:
    with _opened(where) as memory:
        root = memory.store("private").store.root
        record = running(root)
        if record is None:
            return _nothing_runs(memory, as_json=as_json)
        click.echo(f"Dream {record.id} since {minute(record.started)}; Ctrl-C ends the watching, not the dream.", err=True)
        try:
            record = followed(root, record, heard=Telling(_say))
        except KeyboardInterrupt:
            click.echo("The dream goes on; lamina dream --kill ends it.", err=True)
            return 130
    if as_json:
        click.echo(document(to_json(record)))
    elif record.status == "running":
        click.echo(f"Its process {record.pid} is gone; {PUT_RIGHT}.", err=True)
    elif record.status == "completed":
        _tell(record)
    else:
        click.echo(f"The dream {printable(outcome(record))}.")
    return 0 if record.status == "completed" else 1


def _nothing_runs(memory: Memory, *, as_json: bool) -> int:
    from ..layers.l6_dream.record import read_records

    last = next(iter(read_records(memory.store("private").store.root)), None)
    if as_json:
        click.echo(document(to_json(last) if last is not None else None))
    else:
        told = f" The last one, {last.id}: {printable(outcome(last))}." if last is not None else ""
        click.echo(f"No dream runs.{told}", err=True)
    return 0


def _kill(where: Path, *, as_json: bool) -> int:
    home, settings = _settings(where)
    record, said = ended(where, home, settings)
    for text in said:
        click.echo(f"lamina: {sentence(text)}", err=True)
    if as_json:
        click.echo(document(to_json(record)))
    if record.status == "running":
        raise click.ClickException(f"{STILL_RUNS.format(id=record.id)}.")
    if not as_json:
        click.echo(printable(end_of(record)))
    return 0


def _undo(where: Path, dream: str | None, *, as_json: bool) -> int:
    from ..layers.l6_dream.undo import undo

    with _opened(where) as memory:
        undone = undo(memory.store("private"), dream, now=time.time())
    for text in undone.said:
        click.echo(f"lamina: {sentence(text)}", err=True)
    left = [{"file": one.file, "why": one.why} for one in undone.left]
    if as_json:
        click.echo(document({"id": undone.record.id, "back": list(undone.back), "left": left}))
        return 0
    if undone.said and not undone.back:
        click.echo(f"Dream {undone.record.id} {printable(outcome(undone.record))}.")
        return 0
    click.echo(taken_back(undone))
    for one in undone.left:
        click.echo(f"  {sentence(f'{one.file} {one.why}')}")
    return 0
