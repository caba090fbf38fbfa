"""The ledger of a day: many writers, one file, and no reader that reads a line twice."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lamina.core.budget import LedgerLine, Spent
from lamina.disk.home.ledger import CHUNK, UsageLedger, day_of, ledger_file, list_ledger_days, read_ledger_day

from ..crash.harness import Fail, Kill, Say, every
from ..processes import needs_fork, together

NOON = 1_800_000_000.0
DAY = 86_400.0


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


def a_call(when: float = NOON, *, tokens: int = 10, purpose: str = "notes") -> LedgerLine:
    return LedgerLine(when, purpose, "/work", "s1", "claude", input=tokens, usd=0.25)


@pytest.mark.spec("B9")
def test_two_sessions_see_what_both_have_used(tmp_path: Path) -> None:
    one, other = UsageLedger(tmp_path, now=Clock()), UsageLedger(tmp_path, now=Clock())
    assert one.today() == other.today() == Spent()
    one.add(a_call())
    other.add(a_call(tokens=5))
    one.add(a_call())
    assert one.today() == other.today()
    assert (one.today().calls, one.today().tokens, one.today().usd) == (3, 25, 0.75)
    assert stat.S_IMODE(ledger_file(tmp_path, one.day).stat().st_mode) == 0o600 or os.name == "nt"


def test_what_was_read_is_not_read_again(tmp_path: Path) -> None:
    ledger = UsageLedger(tmp_path, now=Clock())
    ledger.add(a_call())
    assert ledger.today().calls == 1
    path = ledger_file(tmp_path, ledger.day)
    with path.open("r+b") as file:
        file.write(b"x" * 20)  # whoever reads it again no longer finds a call here
    ledger.add(a_call())
    assert ledger.today().calls == 2
    assert len(read_ledger_day(tmp_path, ledger.day)) == 1


def test_one_that_was_taken_away_begins_again(tmp_path: Path) -> None:
    ledger = UsageLedger(tmp_path, now=Clock())
    ledger.add(a_call())
    ledger.add(a_call())
    assert ledger.today().calls == 2
    ledger_file(tmp_path, ledger.day).unlink()
    assert ledger.today() == Spent()
    ledger.add(a_call(tokens=1))
    assert (ledger.today().calls, ledger.today().tokens) == (1, 1)


@pytest.mark.spec("B9")
def test_a_day_has_a_file_of_its_own_and_begins_with_nothing(tmp_path: Path) -> None:
    clock = Clock()
    ledger = UsageLedger(tmp_path, now=clock)
    ledger.add(a_call(clock.now))
    clock.now += DAY
    assert ledger.today() == Spent()
    ledger.add(a_call(clock.now, tokens=3))
    assert ledger.today().tokens == 3
    assert list_ledger_days(tmp_path) == [day_of(NOON), day_of(NOON + DAY)]


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    yield monkeypatch
    monkeypatch.undo()
    time.tzset()


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="needs tzset")
def test_the_day_is_the_machines_own(zone: pytest.MonkeyPatch) -> None:
    late = 1_800_057_600.0  # 2027-01-15T23:20Z… in one zone it is still that day, in another the next one
    found = []
    for name in ("UTC+11", "UTC-11"):
        zone.setenv("TZ", name)
        time.tzset()
        found.append(day_of(late))
    assert found == sorted(set(found))
    assert len(found) == 2


@pytest.mark.parametrize(
    "damage",
    [b"", b"{", b'{"time":1', b"null", b"[]", b'{"time":"x","purpose":1}', b"\xff\xfe\x00", b"\x00" * 100, b"x" * (CHUNK + 5)],
)
def test_lines_that_are_none_are_passed_over(tmp_path: Path, damage: bytes) -> None:
    ledger = UsageLedger(tmp_path, now=Clock())
    ledger.add(a_call())
    with ledger_file(tmp_path, ledger.day).open("ab") as file:
        file.write(damage)
    assert ledger.today().calls == 1
    ledger.add(a_call())
    assert ledger.today().calls == 2
    assert UsageLedger(tmp_path, now=Clock()).today().calls == 2
    assert ledger.problem is None


def test_without_a_home_the_calls_are_counted_in_memory() -> None:
    ledger = UsageLedger(None, now=Clock())
    ledger.add(a_call())
    ledger.add(a_call(NOON - DAY))
    assert ledger.today().calls == 1


@pytest.mark.skipif(os.name == "nt", reason="needs links")
def test_a_link_in_its_place_is_refused_and_the_calls_still_count(tmp_path: Path) -> None:
    path, outside = ledger_file(tmp_path, day_of(NOON)), tmp_path / "outside.txt"
    outside.write_text("mine")
    path.parent.mkdir()
    path.symlink_to(outside)
    ledger = UsageLedger(tmp_path, now=Clock())
    ledger.add(a_call())
    assert ledger.today().calls == 1
    assert outside.read_text() == "mine"
    assert ledger.problem is not None
    assert str(path) in ledger.problem


@needs_fork
@pytest.mark.spec("B9")
def test_no_call_of_many_processes_is_lost(tmp_path: Path) -> None:
    def work(number: int) -> None:
        ledger = UsageLedger(tmp_path, now=Clock())
        for step in range(50):
            ledger.add(a_call(tokens=step, purpose=f"p{number}"))

    together(4, work)
    found = read_ledger_day(tmp_path, day_of(NOON))
    assert sorted((line.purpose, line.input) for line in found) == [(f"p{n}", s) for n in range(4) for s in range(50)]


def two(directory: Path, say: Say) -> None:
    ledger = UsageLedger(directory, now=Clock())
    for number in (1, 2):
        ledger.add(a_call(tokens=number))
        say(f"{ledger.today().calls}")


@needs_fork
@pytest.mark.spec("B9")
@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.usefixtures("crash_points")
def test_killed_anywhere_what_was_counted_stays_and_the_next_goes_on(tmp_path: Path, torn: bool) -> None:
    for run in every(tmp_path, lambda directory: None, two, Kill(torn=torn)):
        ledger = UsageLedger(run.directory, now=Clock())
        before = ledger.today().calls
        assert len(run.said) <= before <= len(run.said) + 1
        ledger.add(a_call())
        assert ledger.today().calls == before + 1


@needs_fork
@pytest.mark.usefixtures("crash_points")
def test_a_disk_that_takes_or_gives_nothing_fails_nobody_and_forgets_no_call(tmp_path: Path) -> None:
    for run in every(tmp_path, lambda directory: None, two, Fail(errno.ENOSPC, forever=True)):
        assert (run.ended, run.said) == ("finished", ("1", "2")), run
