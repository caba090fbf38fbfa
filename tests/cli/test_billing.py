"""`lamina.billing`: under a subscription no command prints dollars."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from tests.web.made_home import WINDOW_SESSION, make_home

from lamina.core.budget import LedgerLine
from lamina.disk.home.ledger import UsageLedger

from .at_terminal import Terminal
from .running import here

COMMANDS = {
    "all": ("stats", "--all"),
    "one": ("stats", WINDOW_SESSION, "--cwd", "{work}"),
    "ledger": ("stats", "--ledger"),
    "listed": ("sessions", "list", "--all"),
    "context": ("context", WINDOW_SESSION, "--cwd", "{work}"),
    "replay": ("replay", "{file}", "--policy", "lean", "--requests", "--html", "report.html"),
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with sessions of Claude Code, one with clearings and a compaction, and with background calls."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / ".lamina"))
    monkeypatch.setattr("lamina.cli.console.QUIET_SECONDS", 3_600.0)
    make_home(tmp_path, others=1)
    (tmp_path / "work" / "shop-api").mkdir(parents=True)
    for usd in (0.25, 2.0):
        UsageLedger(tmp_path / ".lamina").add(LedgerLine(time.time(), "notes", "/w", "s", "m", 900, 40_000, 3_000, 700, usd))
    return tmp_path


def run(home: Path, name: str) -> str:
    file = next(home.rglob(f"{WINDOW_SESSION}.jsonl"))
    done = here(*(one.format(work=home / "work" / "shop-api", file=file) for one in COMMANDS[name]))
    assert done.returncode == 0, done.stderr
    report = home / "report.html"
    return done.stdout + done.stderr + (report.read_text("utf-8") if report.exists() else "")


@pytest.mark.spec("K4")
@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_prints_dollars_under_a_subscription(home: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name != "context":
        assert "$" in run(home, name), "at list price"
    monkeypatch.setenv("LAMINA_BILLING", "subscription")
    assert "$" not in run(home, name)


def test_tokens_stand_apart_and_units_add_up(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_BILLING", "subscription")
    found = json.loads(here("stats", "--all", "--json").stdout)
    assert found["billing"] == "subscription"
    assert found["total"]["cost_usd"] > 0, "programs keep the dollars"
    usage = next(one for one in found["sessions"] if one["session_id"] == WINDOW_SESSION)["usage"]
    read, written, fresh, output = (
        usage[name] for name in ("cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens", "output_tokens")
    )
    shown = run(home, "one")
    assert (
        f"{read:,} tokens read from the cache, {written:,} tokens written, {fresh:,} tokens uncached, {output:,} tokens" in shown
    )
    units = round(0.1 * read + 1.25 * written + fresh + 5 * output)
    for name in ("all", "listed"):
        assert f" {units:,} " in run(home, name)
    ledger = run(home, "ledger")
    assert "2 of 200 calls, 17,200 of 2,000,000 tokens, 112% of the limit of its cost (lamina.budgetDollars)." in ledger
    assert "today's budget is used up (the limit of its cost)" in ledger


@pytest.mark.exhaustive
def test_a_replay_compares_all_units_and_its_requests_add_up_to_its_rows(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_BILLING", "subscription")
    shown = run(home, "replay")
    found = json.loads(here("replay", str(next(home.rglob(f"{WINDOW_SESSION}.jsonl"))), "--json").stdout)
    assert found["billing"] == "subscription"
    recorded, ours = found["policies"]["recorded"], found["policies"]["lamina"]
    units = [_units(row) for row in (ours, recorded)]
    less = f"{abs(1 - units[0] / units[1]):.0%} {'less' if units[0] <= units[1] else 'more'}"
    assert f"Lamina with balanced would have used {less}: {units[0]:,.0f} units instead of {units[1]:,.0f} " in shown
    assert round(1 - units[0] / units[1], 3) == pytest.approx(ours["saved_percent"] / 100, abs=0.001), (
        "as dollars say for one model"
    )
    assert f"in all {units[1] / 1e6:.2f}M. balanced: " in shown
    assert "A unit is one uncached input token" in shown


def _units(row: dict[str, float]) -> float:
    five_minutes = row["written_tokens"] - row["written_1h_tokens"]
    sent = row["input_tokens"] + 0.1 * row["cached_tokens"] + 1.25 * five_minutes + 2 * row["written_1h_tokens"]
    return sent + 5 * row["output_tokens"]


def test_it_is_set_like_every_setting_and_a_wrong_value_is_told_and_ignored(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / ".lamina" / "settings.json").write_text('{"lamina": {"billing": "subscription"}}', "utf-8")
    told = here("config", "lamina.billing").stdout
    assert "lamina.billing: subscription" in told
    assert "one of list, subscription" in told
    assert "$" not in run(home, "listed")
    monkeypatch.setenv("LAMINA_BILLING", "list")
    assert "$" in run(home, "listed")
    monkeypatch.setenv("LAMINA_BILLING", "free")
    wrong = here("config")
    assert 'must be one of list, subscription, not "free"; it is ignored.' in wrong.stdout + wrong.stderr


def test_the_chat_counts_tokens_in_its_status_line_and_its_costs(tmp_path: Path) -> None:
    with Terminal(cwd=tmp_path, LAMINA_BILLING="subscription") as chat:
        first = chat.prompt()
        assert "0 read, 0 written, 0 output" in first
        chat.say("hello")
        chat.prompt()
        chat.say("/cost")
        shown = chat.prompt()
        assert "tokens output" in shown
        assert "$" not in first + shown
        chat.press("\x04")
        assert chat.wait() == 0
