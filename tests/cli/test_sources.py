"""The commands show sessions of other agents next to Lamina's own, marked by origin, and never change them."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from tests.history.agents import (
    CLAUDE,
    CODEX,
    CODEX_WINDOW,
    PI,
    claude_answer,
    claude_home,
    claude_user,
    codex_home,
    pi_home,
    said,
    write,
)
from tests.session.play import turns

import lamina
from lamina.cli.stats import figures_of
from lamina.core.usage import Usage, read_usage
from lamina.disk.paths.project import slug
from lamina.history import sessions as sources
from lamina.history.money import money_by_day
from lamina.session.session import Session

from .running import here, misused, one_line


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place, person = tmp_path / "project", Path(os.environ["HOME"])
    place.mkdir()
    claude_home(person / ".claude", place)
    codex_home(person / ".codex", place)
    pi_home(person / ".pi" / "agent", place)
    monkeypatch.chdir(place)
    return place


def document(*arguments: str) -> Any:
    done = here(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.spec("U3")
def test_every_command_reads_every_agents_sessions(project: Path) -> None:
    before = {path: path.read_bytes() for path in project.parent.rglob("*") if path.is_file()}
    listed = document("sessions", "list")
    assert {row["session_id"]: row["source"] for row in listed} == {CLAUDE: "claude-code", CODEX: "codex", PI: "pi"}
    assert {row["session_id"] for row in document("sessions", "list", "--source", "codex")} == {CODEX}
    stats = document("stats")
    assert sorted(row["source"] for row in stats["sessions"]) == ["claude-code", "codex", "pi"]
    assert stats["total"]["calls"] == 3 + 3 + 4
    assert stats["total"]["agents"]["calls"] == 2  # one of Claude Code's, one of Codex's
    assert stats["total"]["compactions"] == {"the agent": 3}
    costs = {row["source"]: row["total_cost_usd"] for row in stats["sessions"]}
    for row in listed:
        assert costs[row["source"]] == pytest.approx(row["cost_usd"])  # pi records what an unknown model cost
    assert f"total cost: ${sum(costs.values()):.4f}\n" in here("stats").stdout
    for session, words, calls in ((CLAUDE, "Renamed it", 3), (CODEX[:13], "tablegen", 3), (PI[:8], "teal again", 4)):
        assert words in json.dumps(document("sessions", "show", session)["messages"])
        assert document("stats", session)["calls"] == calls
        assert document("context", session)["tokens"] > 0
        assert document("replay", session)["sessions"] == 1
    window = document("context", CODEX)["window"]
    assert (window["size"], window["source"]) == (CODEX_WINDOW, "record")
    assert "Context window: 272,000 tokens (stated in the session's file)." in " ".join(here("context", CODEX).stdout.split())
    found = {found["kind"]: found for found in document("doctor")["findings"]}
    assert found["source"]["severity"] == "info"
    assert {path: path.read_bytes() for path in before} == before


def test_a_session_that_is_not_found_says_where_it_was_searched(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hint = "Run `lamina sessions list --all` to see the ids.\n"
    for command in (("context",), ("sessions", "show"), ("stats",)):
        told = here(*command, "nowhere").stderr
        assert told.endswith(f"Session 'nowhere' not found in the sessions of Lamina, Claude Code, Codex, pi. {hint}")
    monkeypatch.setenv("LAMINA_SOURCES", "0")
    assert here("context", "nowhere").stderr.endswith(f"Session 'nowhere' not found in the sessions of Lamina. {hint}")


@pytest.mark.spec("U3", "S10")
def test_a_literal_search_finds_tool_output_and_opens_the_turn(project: Path) -> None:
    [hit] = document("sessions", "search", "E474")
    assert (hit["session_id"], hit["role"]) == (CLAUDE, "stored result toolu_1.txt")
    [hit] = document("sessions", "search", "GRAMMAR.tbl", "-n", "1")
    assert (hit["source"], hit["turn"], hit["role"]) == ("codex", 1, "assistant")
    assert len(document("sessions", "search", "grammar.tbl")) == 2  # once in the tool's output, once in the answer
    [hit] = document("sessions", "search", "there are 12 tests")
    assert (hit["session_id"], hit["turn"]) == ("agent-c0", 1)  # a subagent's
    assert "Count the tests." in here("sessions", "show", "agent-c0", "--turn", "1").stdout
    shown = document("sessions", "show", CODEX, "--turn", "1")
    assert (shown["turn"], shown["turns"]) == (1, 2)
    assert [message["role"] for message in shown["messages"]] == ["user", "assistant", "user", "assistant", "summary"]
    assert "Which table drives the parser?" in here("sessions", "show", CODEX, "--turn", "1").stdout
    done = here("sessions", "show", CODEX, "--turn", "3")
    assert misused(done)
    assert "turn 3 does not exist (the session has 2 turns)" in done.stderr


@pytest.mark.parametrize("command", [("undo",), ("pin", "text"), ("snip", "1")])
@pytest.mark.parametrize("session", [CODEX, PI])
def test_sessions_in_another_format_are_read_only(session: str, command: tuple[str, ...]) -> None:
    done = here("sessions", command[0], session, *command[1:])
    assert misused(done)
    assert "Lamina only reads it" in done.stderr


def test_one_variable_turns_the_sources_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_SOURCES", "0")
    assert document("sessions", "list", "--all") == []
    done = here("sessions", "show", CODEX)
    assert done.returncode == 2
    assert one_line(done.stderr)
    assert not [found for found in document("doctor")["findings"] if found["kind"].startswith("source")]


@pytest.mark.spec("B11")
def test_forgetting_removes_the_index_and_names_what_other_agents_keep(project: Path) -> None:
    document("sessions", "list")
    index = Path(os.environ["LAMINA_HOME"]) / "cache" / "sessions.sqlite"
    assert index.exists()
    told = json.loads(here("forget", "tablegen", "--yes", "--json").stdout)
    assert not index.exists()
    left = {Path(row["path"]).name: row["why"] for row in told["left"]}
    assert left.keys() == {f"rollout-2026-04-01T08-00-00-{CODEX}.jsonl", "MEMORY.md"}
    assert all("was written by Codex, and Lamina does not change it" in why for why in left.values())


@pytest.mark.spec("B11")
def test_a_trial_of_forgetting_names_what_other_agents_keep_and_their_stored_results(project: Path) -> None:
    told = document("forget", "E474", "--dry-run")
    assert (told["removed"], [Path(row["path"]).name for row in told["left"]]) == ([], ["toolu_1.txt"])
    done = here("forget", "E474", "--dry-run")
    assert done.stdout.startswith("Nothing would be removed.\nLeft: ")


@pytest.mark.spec("U3")
@pytest.mark.parametrize(("session", "origin"), [(CLAUDE, "claude-code"), (CODEX, "codex"), (PI, "pi")])
def test_every_report_on_a_session_has_its_id_and_the_agent_that_wrote_it(session: str, origin: str) -> None:
    assert document("replay", session)["origins"] == {origin: 1}
    commands = [("sessions", "show"), ("sessions", "show", "--turn", "1"), ("context",), ("stats",)]
    for command in commands:
        told = document(*command, session)
        assert (told["session_id"], told["source"]) == (session, origin), command
    assert here("sessions", "show", session).stdout.startswith(f"{session}  {origin}  ")
    assert here("sessions", "show", session, "--turn", "1").stdout.startswith(f"{session}  {origin}  turn 1 of ")


def test_the_limits_of_another_agent_are_not_lamina_s() -> None:
    window = document("context", CODEX)["window"]
    assert (window["size"], window["effective"]) == (CODEX_WINDOW, CODEX_WINDOW)
    assert {window[name] for name in ("warning", "autocompact", "blocking", "auto_compact")} == {None}
    said = " ".join(here("context", CODEX).stdout.split())
    assert "Codex decides when to compact. The last automatic compaction was at 1,230 tokens." in said
    assert window["last_compacted_at"] == 1_230
    assert "Warning at" not in said


def test_costs_that_pi_recorded_are_part_of_the_total() -> None:
    told = document("stats")
    costs = [row["total_cost_usd"] for row in told["sessions"]]
    assert told["total"]["total_cost_usd"] == pytest.approx(sum(costs))
    assert document("stats", PI)["total_cost_usd"] == 1.0
    assert "cost unknown" not in here("stats").stdout


READING = [
    ("memory", "list"),
    ("memory", "search", "redis queue"),
    ("memory", "show", "queue"),
    ("memory", "log"),
    ("memory", "path"),
    ("memory", "daily"),
    ("inbox",),
]


@pytest.mark.parametrize("home", [".claude", ".lamina"])
def test_commands_that_only_read_memory_write_nothing(home: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = Path(os.environ["HOME"]) / home
    monkeypatch.setenv("LAMINA_HOME", str(where))
    before = sorted(where.rglob("*"))
    for command in READING:
        assert here(*command).returncode == (command[-1] == "queue" and home == ".lamina") * 2, command
    assert sorted(where.rglob("*")) == before
    with lamina.Memory.open(project, read_only=True) as memory, pytest.raises(lamina.LaminaError, match="read-only"):
        memory.save("new", type="project", description="x", body="y")
    assert sorted(where.rglob("*")) == before


def test_an_id_that_fits_sessions_of_two_homes_is_not_guessed(project: Path) -> None:
    ours = Path(os.environ["LAMINA_HOME"]) / "projects" / slug(project)
    twin = write(ours / f"{CLAUDE}.jsonl", [claude_user(1, "Ours.", project)])
    done = here("sessions", "show", CLAUDE)
    assert "Ours." in done.stdout
    assert one_line(done.stderr)
    assert f"Another file has the same id: {Path(os.environ['HOME'])}" in done.stderr
    twin.rename(twin.with_name(CLAUDE.replace("0001", "0009") + ".jsonl"))
    assert misused(done := here("sessions", "show", CLAUDE[:8]))
    assert "matches 2 sessions" in done.stderr


def test_rows_with_the_same_id_are_numbered_and_each_opens_by_its_file(project: Path) -> None:
    ours = Path(os.environ["LAMINA_HOME"]) / "projects" / slug(project)
    twin = write(ours / f"{CLAUDE}.jsonl", [claude_user(1, "Ours, with redis.", project)])
    (original,) = Path(os.environ["HOME"]).glob(f".claude/projects/*/{CLAUDE}.jsonl")
    for command in (("sessions", "list"), ("stats",), ("sessions", "search", "redis")):
        done = here(*command)
        numbers = {f"({number})": path for number in (1, 2) for path in (twin, original) if f"({number}) {path}" in done.stderr}
        assert sorted(numbers) == ["(1)", "(2)"], done.stderr
        assert f"2 files have the id {CLAUDE[:8]}: (1) " in done.stderr
        assert all(f"{CLAUDE[:8]} {number} " in done.stdout for number in numbers)
    assert "Ours." not in here("sessions", "show", str(original)).stdout
    assert "Ours, with redis." in here("sessions", "show", str(twin)).stdout
    assert "files have the id" not in here("sessions", "list", "--source", "codex").stderr


@pytest.mark.parametrize("command", [("undo", "nothing"), ("snip", "77"), ("snip",), ("pin",)])
def test_a_session_of_claude_code_continues_nowhere_if_nothing_changes(command: tuple[str, ...], project: Path) -> None:
    name, *rest = command
    done = here("sessions", name, CLAUDE, *rest, "--json")
    assert "continues as" not in done.stderr
    assert done.returncode == (2 if rest else 0)
    if not rest:
        assert json.loads(done.stdout)["session_id"] == CLAUDE
    assert [row["session_id"] for row in document("sessions", "list", "--source", "lamina")] == []
    assert "continues as" in here("sessions", "pin", CLAUDE, "Keep it.").stderr


def test_a_session_that_vanishes_costs_only_its_own_figures(project: Path) -> None:
    [info] = [one for one in sources.sessions(lamina.Settings(), project) if one.id == CODEX]
    Path(info.path).unlink()
    unread: list[str] = []
    assert figures_of(info, unread) is None
    assert unread == [f"{info.path}: no such file or directory."]


@pytest.mark.spec("U3", "R2")
def test_a_stored_result_of_claude_code_is_counted_and_opened(project: Path) -> None:
    [stored] = document("context", CLAUDE)["spilled"]
    assert stored["bytes"] > 45_000
    shown = document("sessions", "expand", CLAUDE, "toolu_1")
    assert shown["pages"] > 1
    assert (
        "error E474 in the spilled part"
        in document("sessions", "expand", CLAUDE, "toolu_1", "--page", str(shown["pages"]))["text"]
    )


def test_a_session_that_is_cleaned_up_leaves_the_index(project: Path) -> None:
    with Session("offline", cwd=project, session_id="old") as session:
        turns(session, "The platypus decides.")
        path = session.path
    assert path is not None
    subagent = path.with_suffix("") / "subagents" / "agent-1.jsonl"
    subagent.parent.mkdir(parents=True, exist_ok=True)
    subagent.write_bytes(path.read_bytes())
    assert "old" in {row["session_id"] for row in document("search", "platypus")}
    os.utime(path, (1_000_000_000, 1_000_000_000))
    assert here("sessions", "clean", "--older-than", "30d", "--yes").returncode == 0
    index = sqlite3.connect(Path(os.environ["LAMINA_HOME"]) / "cache" / "sessions.sqlite")
    assert index.execute("SELECT count(*) FROM words WHERE words MATCH 'platypus'").fetchone() == (0,)
    assert index.execute("SELECT count(*) FROM texts WHERE text LIKE '%platypus%'").fetchone() == (0,)
    index.close()


def test_the_total_counts_each_answer_once_as_the_page_does(project: Path) -> None:
    """A resumed session may begin as a copy of its first part, and a directory may be copied with its subagents."""
    before, listed = document("stats")["total"], document("sessions", "list")
    (original,) = Path(os.environ["HOME"]).glob(f".claude/projects/*/{CLAUDE}.jsonl")
    rows = [json.loads(line) for line in original.read_text("utf-8").splitlines()]
    more = [claude_user(8, "And the docs?", project), *claude_answer(8, said("Renamed there too."), cwd=project)]
    copy = [{**row, "sessionId": "other", "uuid": f"n{at}"} for at, row in enumerate([*rows, *more])]
    os.utime(write(original.with_name("resumed.jsonl"), copy), (2e9, 2e9))
    told = document("stats")
    assert [row["calls"] for row in told["sessions"] if row["source"] == "claude-code"] == [4, 3]
    assert (told["total"]["calls"], told["total"]["turns"]) == (before["calls"] + 1, before["turns"] + 1)
    assert told["total"]["compactions"] == before["compactions"]
    page = money_by_day(lamina.Settings())
    used = [read_usage(told["total"][name]) or Usage() for name in ("usage", "side_usage")]
    assert sum(one.total for one in used) == sum(row.usage.total for row in page)
    assert "\nTotal of 4 sessions, each answer counted once:\n" in here("stats").stdout
    backup = original.parent.with_name(f"{original.parent.name}-backup")
    shutil.copytree(original.parent, backup)
    assert document("stats")["total"] == told["total"]
    assert {row["session_id"]: row["tokens"] for row in listed}[CLAUDE] in [row["tokens"] for row in document("sessions", "list")]


def test_a_replay_of_files_that_are_no_sessions_says_why_of_each(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / "notes").mkdir(exist_ok=True)
        (tmp_path / "notes" / f"{name}.jsonl").write_text("{}\n")
    told = here("replay", str(tmp_path / "notes")).stderr
    assert "none of the 2 files is a recorded session" in told
    assert "one.jsonl skipped: " in told
    assert "two.jsonl skipped: " in told
