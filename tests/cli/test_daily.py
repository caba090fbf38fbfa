"""`lamina memory daily`: the logs of assistant mode, listed and shown."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import click
import pytest

from lamina.cli import completion
from lamina.cli.memory import daily_command
from lamina.memory.memory import Memory

from .running import here, misused


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "home"))
    with Memory.open(".") as memory:
        logs = memory.path / "logs"
    (logs / "2026" / "03").mkdir(parents=True)
    for day, text in (("30", "- 09:00 one\n- 10:00 two\n"), ("31", "- 09:00 \x1b[31mred\n")):
        (logs / "2026" / "03" / f"2026-03-{day}.md").write_text(text)
    return logs


@pytest.mark.spec("W2")
def test_the_days_are_listed_newest_first_and_one_is_shown(logs: Path) -> None:
    assert here("memory", "daily").stdout == "2026-03-31     1 entry\n2026-03-30     2 entries\n"
    assert here("memory", "daily", "2026-03-30").stdout == "- 09:00 one\n- 10:00 two\n"
    assert "\x1b" not in here("memory", "daily", "2026-03-31").stdout
    newest, oldest = json.loads(here("memory", "daily", "--json").stdout)
    assert (newest["date"], oldest["bullets"]) == ("2026-03-31", 2)
    assert oldest["path"] == str(logs / "2026/03/2026-03-30.md")
    assert json.loads(here("memory", "daily", "2026-03-30", "--json").stdout)["text"].count("\n") == 2


def test_a_date_that_is_none_or_has_no_log_is_one_line(logs: Path) -> None:
    for given in ("soon", "2026-02-30", "1999-01-01", "today"):
        assert misused(here("memory", "daily", given)), given
    today = date.today()
    path = logs / f"{today:%Y/%m}" / f"{today}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("- 09:00 now\n")
    assert here("memory", "daily", "today").stdout == "- 09:00 now\n"


def test_a_shell_offers_the_days(logs: Path) -> None:
    context, argument = click.Context(daily_command), daily_command.params[0]
    assert [item.value for item in completion.days(context, argument, "20")] == ["2026-03-31", "2026-03-30"]
    assert [item.value for item in completion.days(context, argument, "y")] == ["yesterday"]
