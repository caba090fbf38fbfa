"""`lamina stats --ledger`: today by purpose and project, and what is left."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from lamina.core.budget import LedgerLine
from lamina.disk.home.ledger import UsageLedger

from .running import here

DAY = 86_400.0


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def add(home: Path, purpose: str, project: str, *, days_ago: float = 0, **given: object) -> None:
    UsageLedger(home).add(LedgerLine(time.time() - days_ago * DAY, purpose, project, "s", "m", **given))  # type: ignore[arg-type]  # any field


@pytest.mark.spec("B9", "K4")
def test_today_by_purpose_and_project_and_what_is_left(home: Path) -> None:
    for _ in range(3):
        add(home, "notes", "/w/one", input=1_000, cache_read=50_000, output=200, usd=0.02)
    add(home, "recall", "/w/two", input=400, usd=None)
    add(home, "notes", "/w/two", usd=None, failed=True)
    add(home, "notes", "/w/one", days_ago=3, usd=1.5, input=9)
    shown = here("stats", "--ledger").stdout
    assert "Background work today: 5 of 200 calls, 19,000 of 2,000,000 tokens, $0.0600 of $2.00." in shown
    assert "150,000 tokens read from the cache; each counts as a tenth." in shown
    assert "1 call to models with unknown prices" in shown
    assert [line.split() for line in shown.splitlines()[1:4]] == [
        ["notes", "m", "3", "18,600", "$0.0600", "/w/one"],
        ["recall", "m", "1", "400", "?", "/w/two"],
        ["notes", "m", "1", "0", "$0.0000", "/w/two"],
    ]
    found = json.loads(here("stats", "--ledger", "--json").stdout)
    assert found["used"]["calls"] == 5
    assert found["left"] == {"calls": 195, "tokens": 1_981_000, "dollars": pytest.approx(1.94)}
    assert found["limits"] == {"calls": 200, "tokens": 2_000_000, "dollars": 2.0}
    assert found["ran_out"] is None
    assert {(row["purpose"], row["project"]) for row in found["rows"]} == {
        ("notes", "/w/one"),
        ("recall", "/w/two"),
        ("notes", "/w/two"),
    }


def test_stats_name_the_model_and_the_price_of_todays_background_calls(home: Path, tmp_path: Path) -> None:
    assert here("-p", "Hello there").returncode == 0
    assert "background calls today" not in here("stats").stdout
    for project in ("/w/one", "/w/two"):
        line = LedgerLine(time.time(), "extraction", project, "s", "claude-haiku-5-5", input=1_700, output=80, usd=0.00021)
        UsageLedger(home).add(line)
    add(home, "extraction", "/w/one", days_ago=3, usd=1.5)
    assert "  background calls today, all projects: 2 extraction by claude-haiku-5-5 $0.0004\n" in here("stats").stdout
    assert "claude-haiku-5-5" in here("stats", "--ledger").stdout
    [row, _] = json.loads(here("stats", "--ledger", "--json").stdout)["rows"]
    assert row["model"] == "claude-haiku-5-5"


def test_earlier_days_are_shown_when_asked_for_and_leave_today_alone(home: Path) -> None:
    add(home, "notes", "/w", days_ago=3, usd=1.5, input=9)
    assert "notes" not in here("stats", "--ledger").stdout
    shown = here("stats", "--ledger", "--days", "5").stdout
    assert "$1.5000" in shown
    assert "0 of 200 calls" in shown


@pytest.mark.spec("B9")
def test_what_ran_out_is_said_with_the_limit_in_force(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_BUDGET_CALLS", "2")
    for _ in range(2):
        add(home, "notes", "/w", usd=0.0)
    shown = here("stats", "--ledger").stdout
    assert "Background work is paused until tomorrow: today's budget is used up (2 of 2 calls)" in shown
    assert "lamina.budgetCalls" in shown
    assert json.loads(here("stats", "--ledger", "--json").stdout)["ran_out"] == "calls"


def test_without_a_ledger_there_is_a_sentence_and_with_a_session_an_error() -> None:
    assert here("stats", "--ledger").stdout.startswith("Background work today: 0 of 200 calls")
    refused = here("stats", "abc", "--ledger")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "leave out SESSION" in refused.stderr
