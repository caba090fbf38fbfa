"""`lamina stats`: one session, all of a project, and nothing at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.history.agents import CLAUDE, claude_answer, claude_user, said, write
from tests.history.copied import COPIES, FIRST

from lamina.disk.paths.project import slug
from lamina.session.session import Session

from .running import here, misused


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "home"))
    return place


def spoken(work: Path, home: Path, count: int) -> str:
    with Session("offline", home=home, cwd=work, window=12_000) as session:
        for number in range(count):
            session.add_user(f"The port of service {number} is {8000 + number}. " + "word " * 100)
            session.ask()
        if count > 10:
            assert session.compact("keep the ports").done
    return session.id


@pytest.mark.spec("K4", "P1")
def test_the_figures_of_one_session_and_of_all(work: Path, tmp_path: Path) -> None:
    long, short = spoken(work, tmp_path / "home", 30), spoken(work, tmp_path / "home", 2)
    one = json.loads(here("stats", long, "--json").stdout)
    assert (one["session_id"], one["turns"], one["calls"]) == (long, 30, 30)
    assert one["compactions"] == {"summary": 1}
    assert one["side"]["summary"]["calls"] == 1
    assert (one["side_cost_usd"], one["total_cost_usd"], one["agents"]["calls"]) == (0.0, 0.0, 0)
    assert one["tokens_saved"]["compaction"] > 0
    assert one["compactions_by_price"] == 0
    assert (one["policy"]["source"], one["policy"]["detail"]) == ("default", "")
    assert one["cost_usd"] == 0.0, "the offline stand-in costs nothing"
    facts = one["fidelity"]
    assert 0 < facts["facts"] == facts["in_context"] + facts["one_call"] + facts["lost"] <= 60
    assert facts["answerable"] == 1 - facts["lost"] / facts["facts"]
    text = here("stats", long[:8]).stdout
    assert "30 turns, 30 calls" in text
    assert f"facts in compacted text: {facts['facts']} checked, {facts['in_context']} in the context" in text
    assert "1 compaction by summary" in text
    assert f"policy in this directory: {one['policy']['name']} (default)" in text
    every = json.loads(here("stats", "--json").stdout)
    assert {row["session_id"] for row in every["sessions"]} == {long, short}
    assert every["total"]["turns"] == 32
    assert every["total"]["fidelity"] == facts
    assert [row["fidelity"] for row in every["sessions"] if row["session_id"] == short] == [None]
    assert every["memory"] == {"topics": 0, "duplicates": 0, "dead_pointers": 0, "stale": 0, "contradicted": 0}
    table = here("stats").stdout
    assert long[:8] in table
    assert "Total of 2 sessions:" in table
    assert json.loads(here("stats", "--days", "0.0001", "-n", "1", "--json").stdout)["total"]["turns"] == 2


def test_no_sessions_are_no_error_and_an_unknown_one_is() -> None:
    done = here("stats")
    assert (done.returncode, done.stdout) == (0, "")
    assert "No sessions found." in done.stderr
    assert misused(here("stats", "00000000"))


def test_a_long_session_is_priced_call_by_call(work: Path) -> None:
    """The model costs twice as much for a request of more than 200,000 tokens, not for a session of more."""
    usage = {"input_tokens": 150_000, "output_tokens": 10}
    said = {"role": "assistant", "model": "claude-sonnet-4-5", "content": [{"type": "text", "text": "Yes."}], "usage": usage}
    rows: list[dict[str, Any]] = [claude_user(1, "Go on.", work)]
    rows += [{**rows[0], "type": "assistant", "uuid": f"a{at}", "message": {**said, "id": f"m{at}"}} for at in range(3)]
    path = write(Path(os.environ["HOME"]) / ".claude" / "projects" / slug(work) / f"{CLAUDE}.jsonl", rows)
    one, [every] = json.loads(here("stats", str(path), "--json").stdout), json.loads(here("stats", "--json").stdout)["sessions"]
    assert one["cost_usd"] == every["cost_usd"] == every["total_cost_usd"] == pytest.approx(3 * (0.45 + 0.00015))


def test_a_transcript_without_token_counts_has_no_cost(work: Path) -> None:
    said = {"id": "m1", "role": "assistant", "model": "claude-sonnet-5-5", "content": [{"type": "text", "text": "Yes."}]}
    asked = claude_user(1, "Does it work?", work)
    rows = [asked, {**asked, "type": "assistant", "uuid": "a1", "message": said}]
    write(Path(os.environ["HOME"]) / ".claude" / "projects" / slug(work) / f"{CLAUDE}.jsonl", rows)
    (listed,) = json.loads(here("sessions", "list", "--json").stdout)
    every = json.loads(here("stats", "--json").stdout)
    assert listed["cost_usd"] is None
    for one in (*every["sessions"], every["total"]):
        assert (one["calls"], one["cost_usd"], one["total_cost_usd"]) == (1, None, None)
    table, shown = here("sessions", "list").stdout, here("stats").stdout
    assert "$" not in table + shown
    assert " –  claude-code" in table
    assert "1 turn, 1 call: no token counts\n" in shown


@pytest.mark.spec("U3")
@pytest.mark.parametrize("kind", COPIES)
def test_a_copied_session_of_any_agent_counts_once_in_the_total(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    origin, copy = COPIES[kind]
    beside = {"codex": tmp_path / "codex/sessions/2026/04/01", "pi": Path.home() / ".pi/agent/sessions/--p--"}[origin]
    write(beside / "rollout-2026-04-01T08-00-00-first.jsonl", FIRST[origin])
    path = write(beside / "rollout-2026-04-01T08-00-00-second.jsonl", copy)
    os.utime(path, (2e9, 2e9))
    found = json.loads(here("stats", "--all", "--json").stdout)
    assert sorted(each["calls"] for each in found["sessions"]) == [20, 21]
    assert found["total"]["calls"] == 21
    assert found["total"]["total_cost_usd"] == pytest.approx(21 * (0.25 if origin == "pi" else 1_000 * 1.25e-6 + 20 * 10e-6))
    assert "each answer counted once" in here("stats", "--all").stdout
    if origin == "codex":
        write(beside / "rollout-2026-04-01T08-00-00-cut.jsonl", FIRST[origin][:5])  # before the usage of the first answer
        assert json.loads(here("stats", "--all", "--json").stdout)["total"]["calls"] == 21


def test_a_subagent_whose_session_is_gone_counts_in_the_total(work: Path) -> None:
    rows = [claude_user(1, "Count.", work, isSidechain=True), *claude_answer(1, said("12."), cwd=work, isSidechain=True)]
    write(Path.home() / ".claude/projects" / slug(work) / CLAUDE / "subagents" / "agent-c0.jsonl", rows)
    found = json.loads(here("stats", "--json").stdout)
    [session] = found["sessions"]
    assert session["side"]["subagent"]["calls"] == 1
    assert json.loads(here("stats", "agent-c0", "--json").stdout)["total_cost_usd"] == session["total_cost_usd"]
    assert (
        found["total"]["total_cost_usd"] == session["total_cost_usd"] == pytest.approx(100 * 3e-6 + 1_000 * 0.3e-6 + 10 * 15e-6)
    )
