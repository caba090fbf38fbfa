"""Sessions are kept forever by default, and never removed silently."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.disk.crash.harness import Kill, Say, every
from tests.disk.processes import needs_fork

from lamina.core.budget import LedgerLine
from lamina.core.errors import InputError
from lamina.core.settings import Settings
from lamina.disk.home.ledger import UsageLedger, day_of
from lamina.disk.home.ledger import list_ledger_days as ledger_days
from lamina.maintenance import retention
from lamina.maintenance.kept_files import SessionFiles
from lamina.maintenance.retention import (
    DAY,
    JOURNAL,
    LEDGER_DAYS,
    OldSession,
    clear_ledgers,
    finish_removals,
    parse_age,
    plan_removal,
    read_journal,
    remove_sessions,
)
from lamina.maintenance.start_checks import run_start_checks
from lamina.memory.memory import Memory
from lamina.memory.store.contract import ChangeReason
from lamina.session.session import Session

from .made import answered, project

NOW = 2_000_000_000.0
KEEP = Settings(retention_days=30)


def talk(home: Path, cwd: Path, days: float) -> str:
    """A session that was last written so many days before NOW, with a spilled result."""
    with Session("offline", home=home, cwd=cwd) as session:
        session.add_user("hello")
        session.before_call()
        session.after_call(answered("yes"))
        path = session.path
    assert path is not None
    (path.with_suffix("") / "tool-results").mkdir(parents=True, exist_ok=True)
    (path.with_suffix("") / "tool-results" / "x.txt").write_text("spilled")
    os.utime(path, (NOW - days * DAY, NOW - days * DAY))
    return path.stem


def ids(home: Path, cwd: Path) -> set[str]:
    return {path.stem for path in project(home, cwd).glob("*.jsonl")}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


def start(home: Path, cwd: Path, settings: Settings, *, days: float = 0) -> list[str]:
    return run_start_checks(cwd, home, settings, environ={}, now=NOW + days * DAY)


@pytest.mark.spec("B11")
def test_without_the_setting_nothing_ever_goes(home: Path, cwd: Path) -> None:
    old = talk(home, cwd, 5_000)
    assert start(home, cwd, Settings()) == []
    assert ids(home, cwd) == {old}


@pytest.mark.spec("B11")
def test_with_the_setting_old_sessions_go_with_their_spills_and_it_is_said_once(home: Path, cwd: Path) -> None:
    old, young = talk(home, cwd, 31), talk(home, cwd, 29)
    [said] = start(home, cwd, KEEP)
    assert "Removed 1 session older than 30 days" in said
    assert ids(home, cwd) == {young}
    assert not (project(home, cwd) / old).exists()
    assert (project(home, cwd) / young / "tool-results" / "x.txt").exists()
    [line] = read_journal(home)
    assert (line.session, line.days) == (old, 30)
    assert "hello" not in (home / JOURNAL).read_text(), "what was said is not in it"
    assert start(home, cwd, KEEP) == []


def test_the_ages_are_looked_at_once_a_day(home: Path, cwd: Path) -> None:
    talk(home, cwd, 29.9)
    assert start(home, cwd, KEEP) == []
    assert start(home, cwd, KEEP, days=0.5) == []
    assert len(ids(home, cwd)) == 1
    assert len(start(home, cwd, KEEP, days=1.1)) == 1
    assert ids(home, cwd) == set()


def test_an_open_session_and_one_a_memory_refers_to_stay(home: Path, cwd: Path) -> None:
    referred = talk(home, cwd, 100)
    with Memory.open(cwd, home=home, settings=KEEP) as memory:
        memory.save("rule", body="x", why=ChangeReason("extraction", session=referred))
    with Session("offline", home=home, cwd=cwd) as session:
        session.add_user("x")
        session.before_call()
        assert session.path is not None
        os.utime(session.path, (1, 1))
        planned = plan_removal([project(home, cwd)], home, now=NOW, older_than=DAY)
        assert planned.remove == ()
        assert {kept.files.id: kept.why for kept in planned.keep} == {
            referred: "a memory refers to it",
            session.id: "it is open",
        }
        opened = OldSession(SessionFiles(session.path, session.path.with_suffix("")), 0, 0)
        remove_sessions(planned._replace(remove=(opened,)), home, now=NOW, days=1)
        assert session.path.exists(), "one that was opened after it was decided stays"


@pytest.mark.parametrize(("text", "days"), [("30d", 30), ("2w", 14), ("6m", 180), ("1y", 365), ("7", 7), ("1Y", 365)])
def test_an_age_is_read(text: str, days: int) -> None:
    assert parse_age(text) == days * DAY


@pytest.mark.parametrize("text", ["", "d", "0d", "-3d", "x", "3 d", "1.5d", "²d"])
def test_what_is_no_age_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_age(text)


@needs_fork
@pytest.mark.spec("Z1")
@pytest.mark.usefixtures("crash_points")
def test_stopped_anywhere_a_session_is_whole_or_gone_and_what_went_is_listed(tmp_path: Path) -> None:
    cwd, made = tmp_path / "project", tmp_path / "made"
    cwd.mkdir()
    old = talk(made, cwd, 100)

    def prepare(directory: Path) -> None:
        shutil.copytree(made, directory / "home")

    def act(directory: Path, say: Say) -> None:
        home = directory / "home"
        remove_sessions(plan_removal([project(home, cwd)], home, now=NOW, older_than=DAY), home, now=NOW, days=1)
        say("done")

    for stopped in every(tmp_path, prepare, act, Kill()):
        home = stopped.directory / "home"
        there = old in ids(home, cwd)
        assert there or [line.session for line in read_journal(home)] == [old], stopped
        assert not there or (project(home, cwd) / old / "tool-results" / "x.txt").exists(), stopped
        assert there or "done" not in stopped.said or not (project(home, cwd) / old).exists(), stopped
        finish_removals(home)
        assert there == (project(home, cwd) / old).exists(), stopped


# Ledgers of background work


def ledgers(home: Path, *ago: float) -> None:
    for days in ago:
        UsageLedger(home).add(LedgerLine(NOW - days * DAY, "notes", "/w"))


@pytest.mark.parametrize(("keep", "gone"), [(None, 2), (1_000, 2), (30, 4)])
def test_old_ledgers_go_by_their_day(home: Path, keep: float | None, gone: int) -> None:
    ago = (200, 91, 90, 31, 30, 1, 0)
    ledgers(home, *ago)
    clear_ledgers(home, now=NOW, keep=keep)
    assert ledger_days(home) == [day_of(NOW - days * DAY) for days in ago[gone:]]


@pytest.mark.spec("B9", "Z7")
def test_old_ledgers_are_removed_when_a_session_starts_and_that_is_said(home: Path, cwd: Path) -> None:
    talk(home, cwd, 1)
    ledgers(home, 0, 1, LEDGER_DAYS - 1, LEDGER_DAYS + 2, LEDGER_DAYS + 3)
    (home / "ledger" / "notes of mine.txt").write_text("mine")
    [said] = start(home, cwd, Settings())
    assert said.startswith("Removed background-work ledgers of 2 days up to ")
    assert len(ledger_days(home)) == 3
    assert (home / "ledger" / "notes of mine.txt").exists()
    assert start(home, cwd, Settings()) == []
    assert len(start(home, cwd, KEEP)) == 1
    assert len(ledger_days(home)) == 2


@needs_fork
@pytest.mark.usefixtures("crash_points")
def test_killed_while_ledgers_go_the_rest_goes_next_time(tmp_path: Path) -> None:
    def act(directory: Path, say: Say) -> None:
        assert clear_ledgers(directory, now=NOW, keep=None)

    for killed in every(tmp_path, lambda directory: ledgers(directory, 0, 100, 101), act, Kill()):
        clear_ledgers(killed.directory, now=NOW, keep=None)
        assert ledger_days(killed.directory) == [day_of(NOW)]


@pytest.mark.spec("Z7")
def test_a_full_journal_loses_its_older_half_and_what_was_told_stays_told(
    home: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "MOST_JOURNAL", 1_500)
    said = []
    for number in range(20):
        talk(home, cwd, 31 - number)
        said += start(home, cwd, KEEP, days=number)
    assert len(said) == 20
    assert all(sentence.startswith("Removed 1 session ") for sentence in said), "no removal is told twice"
    assert (home / JOURNAL).stat().st_size < 2_000
    assert 0 < len(read_journal(home)) < 20


def test_an_id_that_a_part_of_a_file_cuts_in_two_is_found(home: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "PART", 50)
    old = talk(home, cwd, 31)
    memory = project(home, cwd) / "memory"
    memory.mkdir(parents=True, exist_ok=True)
    for number in range(30, 60):
        (memory / "note.md").write_text("x" * number + old + "y" * 100)
        [kept] = plan_removal([project(home, cwd)], home, now=NOW, older_than=30 * DAY).keep
        assert kept.why == "a memory refers to it"
