"""`lamina dream`: put memory in order now; see, watch, end and take back dreams (D5).

Without an option a dream runs here, to its end: what it says goes to standard error as it says it, what it came to goes to standard
output. Ctrl-C ends it, and memory is as it was; Ctrl-C while another process's dream is watched only ends the watching.
"""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import click

from . import completion, options
from .console import notice, print_result
from .dream_status import (
    PUT_RIGHT,
    DreamPlace,
    details,
    done,
    outcome,
    status_json,
    status_lines,
    status_of,
    taken_back,
    to_json,
    undo_dream,
)
from .dream_watch import STILL_RUNS, Telling, end_of, ended, followed, running
from .safe_text import document, minute, printable, sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..disk.paths import RootDir
    from ..layers.l6_dream.record import Record
    from ..layers.l6_dream.run import DreamOutcome
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
    shell_complete=completion.dreams,
    help="Take back the last one, or this one, as a whole.",
)
@click.option("--model", help="Who dreams: anthropic:MODEL, openai:MODEL, offline; else as a conversation here would have it.")
@options.cwd()
@options.as_json
def dream_command(status: bool, watch: bool, kill: bool, undo: str | None, model: str | None, cwd: Path, as_json: bool) -> int:
    """Put memory in order now: merge what says the same, date what was relative, mend the index."""
    if sum((status, watch, kill, undo is not None)) > 1:
        raise click.UsageError("--status, --watch, --kill and --undo exclude each other.")
    if model is not None and (status or watch or kill or undo is not None):
        raise click.UsageError("--model is for a dream that begins now.")
    from .start import Wish, home_of, settings_for

    home = home_of()
    place = DreamPlace(cwd, home, settings_for(Wish(cwd), home))
    if status:
        found = status_of(place)
        print_result(status_json(found), status_lines(found), as_json=as_json)
        return 0
    if watch:
        return _watch(place, as_json=as_json)
    if kill:
        return _kill(place, as_json=as_json)
    if undo is not None:
        return _undo(place, None if undo == NEWEST else undo, as_json=as_json)
    return _now(place, model, as_json=as_json)


def _say(text: str) -> None:
    click.echo(text, err=True)


def _now(place: DreamPlace, model: str | None, *, as_json: bool) -> int:
    from ..agent.manual_dream import run_by_hand
    from .signals import Stop
    from .start import Wish, nobody_chosen, provider_for

    stop, abort = Stop(), Event()
    for finding in place.settings.findings:
        notice(finding.text)
    with stop.listening():
        provider = provider_for(model, place.settings, stop)
        if provider.name == "offline" and nobody_chosen(Wish(place.cwd, model), place.settings):
            notice(OFFLINE)
        with stop.turn(abort.set):
            came = run_by_hand(provider, **place._asdict(), abort=abort, heard=Telling(_say))
    for text in came.recovered:
        notice(text)
    return _came(came, stop, as_json=as_json)


def _came(came: DreamOutcome, stop: Stop, *, as_json: bool) -> int:
    record = came.record
    if record is None:
        gate, why = (came.stop.gate, came.stop.why) if came.stop is not None else ("failures", "it did not begin")
        print_result({"stopped": gate, "why": why}, (), as_json=as_json)
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


def _tell(record: Record) -> None:
    click.echo(f"Dreamt: {printable(outcome(record))}.")
    for line in details(record):
        click.echo(f"  {sentence(line)}")
    if done(record):
        _say("lamina dream --undo takes it back.")


def _watch(place: DreamPlace, *, as_json: bool) -> int:
    with place.open() as memory:
        root = memory.store("private").store.root
        record = running(root)
        if record is None:
            return _nothing_runs(root, as_json=as_json)
        _say(f"Dream {record.id} since {minute(record.started)}; Ctrl-C ends the watching, not the dream.")
        try:
            record = followed(root, record, heard=Telling(_say))
        except KeyboardInterrupt:
            _say("The dream goes on; lamina dream --kill ends it.")
            return 130
    if as_json:
        click.echo(document(to_json(record)))
    elif record.status == "running":
        _say(f"Its process {record.pid} is gone; {PUT_RIGHT}.")
    elif record.status == "completed":
        _tell(record)
    else:
        click.echo(f"The dream {printable(outcome(record))}.")
    return 0 if record.status == "completed" else 1


def _nothing_runs(root: RootDir, *, as_json: bool) -> int:
    from ..layers.l6_dream.record import records

    last = next(iter(records(root)), None)
    told = f" The last one, {last.id}: {printable(outcome(last))}." if last is not None else ""
    print_result(to_json(last) if last is not None else None, (), as_json=as_json, none=f"No dream runs.{told}")
    return 0


def _kill(place: DreamPlace, *, as_json: bool) -> int:
    record, said = ended(place)
    for text in said:
        notice(text)
    if as_json:
        click.echo(document(to_json(record)))
    if record.status == "running":
        raise click.ClickException(f"{STILL_RUNS.format(id=record.id)}.")
    if not as_json:
        click.echo(printable(end_of(record)))
    return 0


def _undo(place: DreamPlace, dream: str | None, *, as_json: bool) -> int:
    undone = undo_dream(place, dream)
    for text in undone.said:
        notice(text)

    def lines() -> Iterator[str]:
        if undone.said and not undone.back:
            yield f"Dream {undone.record.id} {outcome(undone.record)}."
            return
        yield taken_back(undone)
        for one in undone.left:
            yield f"  {sentence(f'{one.file} {one.why}')}"

    left = [{"file": one.file, "why": one.why} for one in undone.left]
    print_result({"id": undone.record.id, "back": list(undone.back), "left": left}, lines(), as_json=as_json)
    return 0
