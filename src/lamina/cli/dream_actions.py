"""The actions of `lamina dream`: run a dream to its end, show its status, follow, stop and undo dreams.

Other processes know a running dream only by its record and the owner of the lock. Following it changes nothing. Stopping it
leaves a request that the dream itself carries out, so that it restores what it holds. Only a dream whose process has died is
recovered from here, just as the start of a session would do it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from threading import Event
from time import monotonic, sleep

import click

from ..core.errors import DiskError
from ..disk.locks.dream_lock import DreamLock
from ..disk.trees.rootdir import RootDir
from ..language.text import Text, Words
from ..language.wording import counted
from ..layers.l6_dream.record import DreamRecord, read_record, read_records, request_kill
from ..layers.l6_dream.run import DreamOutcome
from ..layers.l6_dream.undo import recover_memory
from ..session.provider import open_chosen_provider
from .console import document, folded, minute, notice, print_result, printable, sentence, terminal_width, waiting, wrapped
from .dream_status import (
    PUT_RIGHT,
    describe_outcome,
    describe_undo,
    find_running,
    list_changes,
    list_remarks,
    read_status,
    status_json,
    status_lines,
    to_json,
    undo_dream,
)
from .signals import StoppableProvider, StopRequest
from .start import ChatOptions, MemorySource, is_model_unset

OFFLINE = "No provider is configured, so rules tidy up memory. Set ANTHROPIC_API_KEY or OPENAI_API_KEY to use a model."
# Polling interval for a running dream: short enough to show each answer as it arrives, and a poll reads one small file.
LOOK_SECONDS = 0.2
# A dream checks for a stop request twice a second, then abandons the current call and restores what it holds.
ENDING_SECONDS = 30.0
NONE_RUNS = "no dream is running"
STILL_RUNS = Text("Dream {id} was asked to stop but is still running. Run `lamina dream --watch` to follow it.")
ENGLISH = Words()


def _say(text: str) -> None:
    click.echo(text, err=True)


def show_status(source: MemorySource, *, as_json: bool) -> int:
    found = read_status(source)
    print_result(status_json(found), folded(status_lines(found)), as_json=as_json)
    return 0


def run_now(source: MemorySource, model: str | None, *, as_json: bool) -> int:
    from ..agent.manual_dream import run_by_hand

    stop, abort = StopRequest(), Event()
    with stop.listening():
        provider = StoppableProvider(open_chosen_provider(model, source.settings), stop)
        if provider.name == "offline" and is_model_unset(ChatOptions(source.cwd, model), source.settings):
            notice(OFFLINE)
        with closing(provider), stop.turn(abort.set), waiting("Tidying up memory") as progress:
            came = run_by_hand(provider, **source._asdict(), abort=abort, heard=DreamNarrator(progress.say))
    notice(*came.recovered, *came.notices)
    return _came(came, stop, as_json=as_json)


def _came(came: DreamOutcome, stop: StopRequest, *, as_json: bool) -> int:
    record = came.record
    if record is None:
        gate, why = (came.stop.gate, came.stop.why) if came.stop is not None else ("failures", "it did not start")
        print_result({"stopped": gate, "why": why}, (), as_json=as_json)
        notice(Text("No dream was started: {why}.", why=why))
        return 1
    if as_json:
        click.echo(document(to_json(record)))
    if record.status == "completed":
        if not as_json:
            _tell(record)
        return 0
    notice(f"The dream {describe_outcome(record)}")
    return stop.code if stop.requested and stop.code else 1


def _tell(record: DreamRecord) -> None:
    click.echo(wrapped(Text("Dream completed: {outcome}.", outcome=describe_outcome(record)), width=terminal_width()))
    for line in list_remarks(record):
        click.echo(f"  {sentence(line)}")
    if list_changes(record):
        _say("Run `lamina dream --undo` to revert it.")


def watch(source: MemorySource, *, as_json: bool) -> int:
    with source.open() as memory:
        root = memory.store("private").store.root
        record = find_running_dream(root)
        if record is None:
            return _nothing_runs(root, as_json=as_json)
        _say(f"Watching dream {record.id}, started {minute(record.started)}. Ctrl-C stops watching, not the dream.")
        try:
            record = follow_dream(root, record, heard=DreamNarrator(_say))
        except KeyboardInterrupt:
            _say("The dream keeps running. Run `lamina dream --kill` to stop it.")
            return 130
    if as_json:
        click.echo(document(to_json(record)))
    elif record.status == "running":
        _say(f"Its process {record.pid} has died; {PUT_RIGHT}.")
    elif record.status == "completed":
        _tell(record)
    else:
        click.echo(Text("The dream {outcome}.", outcome=printable(describe_outcome(record))))
    return 0 if record.status == "completed" else 1


def _nothing_runs(root: RootDir, *, as_json: bool) -> int:
    last = next(iter(read_records(root)), None)
    told = f" Last dream, {last.id}: {printable(describe_outcome(last))}." if last is not None else ""
    print_result(to_json(last) if last is not None else None, (), as_json=as_json, none=f"No dream is running.{told}")
    return 0


def kill(source: MemorySource, *, as_json: bool) -> int:
    record, recovered = end_dream(source)
    notice(*recovered)
    if as_json:
        click.echo(document(to_json(record)))
    if record.status == "running":
        raise click.ClickException(still_runs(record))
    if not as_json:
        click.echo(printable(describe_end(record)))
    return 0


def undo(source: MemorySource, dream: str | None, *, again: bool = False, as_json: bool) -> int:
    """Undo a dream, or apply it again."""
    undone = undo_dream(source, dream, again=again)
    notice(*undone.said)

    def lines() -> Iterator[str]:
        if undone.said and not undone.back:
            yield f"Dream {undone.record.id} {describe_outcome(undone.record)}."
            return
        yield describe_undo(undone, again=again)
        for one in undone.left:
            yield f"  {sentence(f'{one.file} {one.why}')}"

    left = [{"file": one.file, "why": one.why} for one in undone.left]
    print_result({"id": undone.record.id, "back": list(undone.back), "left": left}, lines(), as_json=as_json)
    return 0


class DreamNarrator:
    """Prints each answer of a dream once, as it arrives."""

    def __init__(self, say: Callable[[str], None], words: Words = ENGLISH) -> None:
        """What Lamina itself wrote is said in the language of `words`."""
        self._say = say
        self._words = words
        self._said = 0
        self._phase = "starting"

    def __call__(self, record: DreamRecord) -> None:
        for number, turn in enumerate(record.turns[self._said :], self._said + 1):
            calls = f" ({self._words(counted(turn.calls, 'call'))})" if turn.calls else ""
            self._say(f"{number:>3}  {self._words(sentence(turn.text)) or '…'}{calls}")
        self._said = max(self._said, len(record.turns))
        if record.phase != self._phase and record.status == "running":
            self._phase = record.phase
            self._say(f"     {self._words(record.phase)}")


def find_running_dream(root: RootDir) -> DreamRecord | None:
    return find_running(tuple(read_records(root)), DreamLock(root).holder())


def follow_dream(
    root: RootDir, record: DreamRecord, *, heard: Callable[[DreamRecord], None], seconds: float | None = None
) -> DreamRecord:
    """Wait until the dream ends, its process dies or `seconds` have passed, and return its record."""
    began = monotonic()
    while True:
        # Read the lock before the record: its owner writes the record before releasing the lock.
        holder = DreamLock(root).holder()
        record = read_record(root, record.id) or record
        heard(record)
        gone = holder is None or not holder.alive
        if record.status != "running" or gone or (seconds is not None and monotonic() - began > seconds):
            return record
        sleep(LOOK_SECONDS)


def end_dream(source: MemorySource, *, seconds: float = ENDING_SECONDS) -> tuple[DreamRecord, list[str]]:
    """Stop the running dream and return its record and messages about what was recovered; DiskError if no dream is running.

    A record whose status is still "running" belongs to a dream that did not react in time.
    """
    with source.open() as memory:
        root = memory.store("private").store.root
        record = find_running_dream(root)
        if record is None:
            raise DiskError(str(memory.path), NONE_RUNS, "run `lamina dream --status` to see earlier ones")
        if request_kill(root, record.id):
            record = follow_dream(root, record, heard=lambda _: None, seconds=seconds)
        if record.status != "running":
            return record, []
    recovered = recover_memory(*source)  # leaves a dream alone whose process is alive
    with source.open() as memory:
        return read_record(memory.store("private").store.root, record.id) or record, recovered


def still_runs(record: DreamRecord) -> Text:
    return Text(STILL_RUNS, id=record.id)


def describe_end(record: DreamRecord) -> str:
    if record.status == "completed":
        return Text("The dream completed before it could be stopped: {outcome}.", outcome=describe_outcome(record))
    return Text("Stopped dream {id}. Memory is as it was before.", id=record.id)
