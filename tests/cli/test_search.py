"""`lamina search`: memories and sessions of all agents in one ranked list."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest
from rich.cells import cell_len
from tests.history.agents import CLAUDE, CODEX, claude_home, codex_home, codex_rows, pi_home, write

import lamina
from lamina.cli.search import SHOWN_CHARS, body, excerpt

from .running import LAMINA, here, misused


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place, person = tmp_path / "project", Path(os.environ["HOME"])
    place.mkdir()
    claude_home(person / ".claude", place)
    codex_home(person / ".codex", place)
    pi_home(person / ".pi" / "agent", place)
    monkeypatch.chdir(place)
    return place


def found(*arguments: str) -> Any:
    done = here("search", *arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.spec("S10", "U3")
def test_three_agents_answer_in_one_list_and_each_link_opens(project: Path) -> None:
    rows = found("redis queue, grammar table and accent colour", "-k", "20")
    assert {row["origin"] for row in rows} == {"claude-code", "codex", "pi"}
    assert {row["kind"] for row in rows} == {"memory", "turn"}
    assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)
    for row in (row for row in rows if row["kind"] == "turn"):
        done = here(*row["link"].split()[1:])
        assert done.returncode == 0
        assert row["text"] in done.stdout


def test_people_see_who_said_it_when_and_how_to_open_it() -> None:
    shown = here("search", "lost messages on restart", "-k", "1", "--context").stdout.splitlines()
    assert shown == [
        "1.  claude-code  assistant  2026-03-02 10:00  “Queue without redis”",
        "   before: I will look.",
        "   It lost messages on restart, so the queue uses Postgres now.",
        "   after: Rename the queue module.",
        f"   lamina sessions show {CLAUDE} --turn 1",
    ]


def test_results_stand_in_columns_with_local_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        shown = here("search", "lost queue parser redis accent table", "-k", "20").stdout.splitlines()
        listed = here("sessions", "search", "lost messages").stdout
        opened = here("sessions", "show", CLAUDE, "--turn", "1").stdout
    finally:
        monkeypatch.undo()
        time.tzset()
    heads = [line for line in shown if not line.startswith(" ")]
    assert len({line.index("“") for line in heads}) == 1
    assert {line.split("  ")[1].strip() for line in heads} == {"claude-code", "codex", "pi"}
    assert "2026-03-02 05:00" in "\n".join(heads)
    assert "2026-03-02 05:00" in listed
    assert "2026-03-02 05:00" in opened


def test_a_memory_is_shown_without_repetitions() -> None:
    assert (
        here("search", "postgres queue", "-k", "1").stdout.splitlines()[1] == "   The queue runs on Postgres – No redis anywhere."
    )
    [row] = found("tablegen after a change", "-k", "1")
    assert row["text"] == "Task Group: parser\nscope: The parser is driven by a table\nRun tablegen after a change."


def test_matching_words_are_bold_on_a_terminal_and_lines_are_wrapped(project: Path) -> None:
    [result] = lamina.search("losing messages", project, 1)
    *shown, link = body(result, "losing messages", 40, exact=False, context=True)
    assert any("\x1b[1mmessages\x1b[0m" in line for line in shown)
    assert all(line.startswith("   ") and len(line.replace("\x1b[1m", "").replace("\x1b[0m", "")) < 40 for line in shown)
    assert result.link in link


# The command or file that opens a result stays whole, so that it can be copied.
LINKS = ("   lamina sessions show ", "   /")


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_every_line_but_the_link_fits_a_narrow_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("search", "sessions"):
        monkeypatch.setattr(f"lamina.cli.{module}.terminal_width", lambda: columns)
    for command in (["search", "lost queue parser redis", "-k", "20"], ["sessions", "search", "e"]):
        lines = here(*command).stdout.splitlines()
        assert [line for line in lines if len(line) >= columns and not line.startswith(LINKS)] == []
    assert any(line.startswith("   “Queue") for line in here("search", "lost messages").stdout.splitlines()) == (columns < 80)


def test_chinese_text_is_wrapped_by_its_width(project: Path) -> None:
    [result] = lamina.search("losing messages", project, 1)
    chinese = msgspec.structs.replace(result, text="重启时会丢失消息，所以队列改用数据库。" * 4)
    *shown, _ = body(chinese, "消息", 40, exact=False, context=False)
    assert len(shown) > 3
    assert all(line.startswith("   ") and cell_len(click.unstyle(line)) < 40 for line in shown)


def test_literal_text_is_found_in_tool_output() -> None:
    assert "--exact" in here("search", "E474").stderr
    [row] = found("error E474", "--exact")
    opened = here(*row["link"].split()[1:])
    assert "toolu_1.txt" in opened.stdout
    for text in ("being continued", "Summary so far", "accent was changed"):
        [summary] = found(text, "--exact")
        assert summary["speaker"] == "summary"
        assert summary["text"] in here(*summary["link"].split()[1:]).stdout
    assert (row["session_id"], row["speaker"]) == (CLAUDE, "stored result toolu_1.txt")
    assert {row["session_id"] for row in found("GRAMMAR.TBL", "--exact")} == {CODEX}


def test_nothing_found_is_said_and_is_no_failure(tmp_path: Path) -> None:
    done = here("search", "unheard of")
    assert (done.returncode, done.stdout) == (0, "")
    assert "Nothing found. Use --all" in done.stderr
    assert misused(here("search", "  "))
    done = here("search", "🦓")
    assert (done.returncode, done.stdout) == (0, "")
    assert "no words to rank by" in done.stderr
    (tmp_path / "elsewhere").mkdir()
    assert [row["origin"] for row in found("redis tablegen", "--cwd", str(tmp_path / "elsewhere"))] == [
        "codex"
    ]  # its common memory
    assert len(found("redis", "--cwd", str(tmp_path / "elsewhere"), "--all")) > 1


def test_the_ids_of_a_list_open_also_if_sessions_began_in_the_same_minute(project: Path) -> None:
    twin = CODEX.replace("aaaa", "aaab")
    write(
        Path(os.environ["HOME"]) / ".codex/sessions/2026/04/01" / f"rollout-2026-04-01T08-00-40-{twin}.jsonl",
        codex_rows(project, twin),
    )
    for command in ("sessions", "list"), ("stats",):
        ids = [line.split()[0] for line in here(*command).stdout.split("\n\n")[0].splitlines()[1:]]
        assert len(ids) == 4
        for name in ids:
            assert here("sessions", "show", name).returncode == 0, name
    # Of two files with the same id, the one with the newest message is shown.
    later = json.loads(json.dumps(codex_rows(project, twin)[:-2]).replace("2026-04-01T", "2026-04-02T"))
    write(Path(os.environ["HOME"]) / ".codex/sessions/2026/04/02" / f"rollout-2026-04-02T08-00-40-{twin}.jsonl", later)
    assert "2026-04-02T08" in here("sessions", "show", twin).stdout


def test_an_excerpt_shows_the_words_that_matched() -> None:
    text = "start " + "filler " * 200 + "the redis queue lost messages " + "filler " * 200
    shown = excerpt(text, "redis queues start")
    assert "redis queue lost" in shown
    assert len(shown) <= SHOWN_CHARS + 2
    assert excerpt("short", "redis") == "short"


@pytest.mark.exhaustive
def test_an_index_removed_while_processes_work_loses_nothing() -> None:
    """Four processes search while the index disappears again and again."""
    index = Path(os.environ["LAMINA_HOME"]) / "cache" / "sessions.sqlite"
    expected = [row["text"] for row in found("redis queue postgres")]
    for _ in range(5):
        command = [*LAMINA, "search", "redis queue postgres", "--json"]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
        while any(process.poll() is None for process in running):
            index.unlink(missing_ok=True)
        for process in running:
            out, err = process.communicate()
            assert (process.returncode, err) == (0, b"")
            assert [row["text"] for row in json.loads(out)] == expected
