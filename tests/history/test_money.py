"""Costs by day and recalls by memory come from the index, whichever agent wrote the session."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina import Settings
from lamina.disk.regular_file import stamp
from lamina.history import sessions as sources
from lamina.history.catalogue import Catalogue, scan_any
from lamina.history.money import local_day, money_by_day
from lamina.history.places import SourceFile
from lamina.history.recalls import recall_counts
from lamina.history.scan import Scan, ScannedTurn

from .agents import claude_answer, claude_user, codex_row, codex_rows, codex_usage, pi_rows, said, write
from .conftest import Agents
from .copied import COPIES, FIRST, codex_answers, codex_session


def answer(number: int, day: int, read: int, written: int, model: str = "claude-opus-4-5") -> dict[str, Any]:
    (row,) = claude_answer(number, said("yes"), timestamp=f"2026-03-0{day}T10:00:00.000Z")
    usage = {"input_tokens": 0, "cache_read_input_tokens": read, "cache_creation_input_tokens": written, "output_tokens": 100}
    return {**row, "message": {**row["message"], "usage": usage, "model": model}}


@pytest.mark.spec("U3")
def test_the_costs_of_all_agents_add_up_to_those_of_their_sessions(agents: Agents) -> None:
    found = money_by_day(Settings())
    assert {row.origin for row in found} == {"claude-code", "codex", "pi"}
    assert [row.day for row in found] == sorted(row.day for row in found)
    assert {row.project for row in found} == {str(agents.project)}
    listed = sources.sessions(Settings())
    assert sum(row.usage.total for row in found) == sum(one.tokens for one in listed)
    assert sum(row.usd for row in found) == pytest.approx(sum(one.cost_usd or 0.0 for one in listed))
    assert money_by_day(Settings(), since="2026-05-01") == [row for row in found if row.origin == "pi"]


def test_each_day_has_its_models_prices_and_cache_breaks(agents: Agents) -> None:
    rows = [
        claude_user(1, "Go on."),
        answer(1, 1, 0, 50_000),
        answer(2, 1, 50_000, 1_000),
        answer(3, 2, 0, 51_500),
        answer(4, 2, 51_500, 100, "nobody-knows-1"),
    ]
    write(agents.claude, rows)
    one, two, unknown = [
        row
        for row in money_by_day(Settings())
        if row.origin == "claude-code" and row.day < "2026-03-03" and row.model != "claude-sonnet-4-5"
    ]
    assert (one.day, one.calls, one.breaks) == ("2026-03-01", 2, 0)
    assert one.usd_read == pytest.approx(50_000 * 0.5e-6)
    assert one.usd_written == pytest.approx(51_000 * 6.25e-6)
    assert one.usd_output == pytest.approx(200 * 25e-6)
    assert (two.day, two.model, two.breaks, two.written_again) == ("2026-03-02", "claude-opus-4-5", 1, 51_000)
    assert (unknown.unpriced, unknown.usd, unknown.usage.output_tokens) == (1, 0.0, 100)


def test_appended_lines_give_the_same_costs_as_a_new_index(agents: Agents) -> None:
    before = money_by_day(Settings())
    with agents.claude.open("a") as file:
        file.write("".join(json.dumps(row) + "\n" for row in (answer(8, 8, 0, 4_000), answer(9, 9, 4_000, 10))))
    after = money_by_day(Settings())
    assert len(after) == len(before) + 2
    agents.database.unlink()
    assert money_by_day(Settings()) == after


def test_a_session_that_begins_as_a_copy_of_another_costs_only_what_it_adds(agents: Agents) -> None:
    rows = [
        claude_user(1, "Go on."),
        *({**answer(number, 1, 0, 50_000), "requestId": f"req_{number}"} for number in range(1, 30)),
    ]
    write(agents.claude.with_name("first.jsonl"), rows)
    before = money_by_day(Settings())
    added = {**answer(40, 2, 50_000, 10), "requestId": "req_40"}
    copy = [{**row, "sessionId": "other", "uuid": f"n{at}"} for at, row in enumerate([*rows, added])]
    resumed = write(agents.claude.with_name("resumed.jsonl"), copy)
    os.utime(resumed, (2e9, 2e9))
    after = money_by_day(Settings())
    more = sum(row.usd for row in after) - sum(row.usd for row in before)
    assert more == pytest.approx(50_000 * 0.5e-6 + 10 * 6.25e-6 + 100 * 25e-6)
    assert sum(row.calls for row in after) == sum(row.calls for row in before) + 1
    same_ids = [{**row, "requestId": "another"} if "requestId" in row else row for row in rows]
    write(agents.claude.with_name("elsewhere.jsonl"), same_ids)
    assert sum(row.calls for row in money_by_day(Settings())) == sum(row.calls for row in after) + 29


@pytest.mark.parametrize("kind", COPIES)
def test_a_copied_session_of_any_agent_costs_only_what_it_adds(agents: Agents, kind: str) -> None:
    origin, copy = COPIES[kind]
    beside: Path = getattr(agents, origin)
    write(beside.with_name("rollout-1.jsonl"), FIRST[origin])
    before = money_by_day(Settings())
    path = write(beside.with_name("rollout-2.jsonl"), copy)
    os.utime(path, (2e9, 2e9))
    after = money_by_day(Settings())
    assert sum(row.calls for row in after) == sum(row.calls for row in before) + 1
    each = 0.25 if origin == "pi" else 1_000 * 1.25e-6 + 20 * 10e-6
    assert sum(row.usd for row in after) - sum(row.usd for row in before) == pytest.approx(each)
    write(path, copy[:-4] if origin == "codex" else copy[:-2])
    os.utime(path, (2e9, 2e9))
    assert money_by_day(Settings()) == before


def test_responses_without_an_item_of_their_own_are_counted(agents: Agents) -> None:
    before = money_by_day(Settings())
    rows = codex_session(*codex_answers(1), codex_usage(9_000, 0, 500, 2), codex_usage(9_000, 0, 500, 2), id="compacting")
    write(agents.codex.with_name("rollout-1.jsonl"), rows)
    assert sum(row.calls for row in money_by_day(Settings())) == sum(row.calls for row in before) + 3


def test_sessions_of_codex_with_the_same_words_and_other_answers_are_no_copies(agents: Agents) -> None:
    before = money_by_day(Settings())
    for number, second in enumerate((1, 30)):
        write(agents.codex.with_name(f"rollout-{number}.jsonl"), codex_session(*codex_answers(3, second), id=f"s{number}"))
    plain = [row for row in codex_answers(1) if row["payload"].get("type") != "reasoning"]
    for number, rows in enumerate((plain, [{**row, "timestamp": "2026-04-02T08:00:00.000Z"} for row in plain])):
        write(agents.codex.with_name(f"rollout-plain-{number}.jsonl"), codex_session(*rows, id=f"p{number}"))
    assert sum(row.calls for row in money_by_day(Settings())) == sum(row.calls for row in before) + 8


def test_a_copied_rollout_with_running_totals_costs_what_its_total_grew_by(agents: Agents) -> None:
    def counted(total: int, second: int) -> list[dict[str, Any]]:
        info = {"total_token_usage": {"input_tokens": total, "output_tokens": total // 10}}
        rows = [row for row in codex_answers(1, second) if row["type"] != "token_usage_record"]
        return [*rows, *(codex_row("event_msg", {"type": "token_count", "info": info}, second) for _ in range(2))]

    first = codex_session(*counted(1_000, 1), *counted(3_000, 2), id="first")
    write(agents.codex.with_name("rollout-1.jsonl"), first)
    before = money_by_day(Settings())
    path = write(agents.codex.with_name("rollout-2.jsonl"), [*first, *counted(3_500, 3)])
    os.utime(path, (2e9, 2e9))
    after = money_by_day(Settings())
    assert sum(row.usage.total for row in after) - sum(row.usage.total for row in before) == 500 + 50
    write(path, first)
    os.utime(path, (2e9, 2e9))
    assert sum(row.usage.total for row in money_by_day(Settings())) == sum(row.usage.total for row in before)


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="Windows has no time zone of one process")
def test_days_begin_at_local_midnight(agents: Agents, monkeypatch: pytest.MonkeyPatch) -> None:
    late = {**answer(1, 1, 0, 5_000), "timestamp": "2026-03-01T18:40:00.000Z"}
    early = {**answer(2, 1, 0, 5_000), "timestamp": "2026-03-01T18:20:00.000Z"}
    abroad = {**answer(3, 1, 0, 5_000), "timestamp": "2026-03-02T00:20:00+06:00"}
    write(agents.claude, [claude_user(1, "Go on."), early, late, abroad])
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    local_day.cache_clear()
    try:
        days = {row.day: row.calls for row in money_by_day(Settings()) if row.model == "claude-opus-4-5"}
    finally:
        monkeypatch.undo()
        time.tzset()
        local_day.cache_clear()
    assert days == {"2026-03-01": 2, "2026-03-02": 1}


def test_a_list_knows_the_last_request_the_last_message_and_outputs_that_were_cut_short(agents: Agents) -> None:
    told = answer(1, 1, 0, 9_000)
    told["message"] = {
        **told["message"],
        "content": [{"type": "tool_use", "id": "t", "name": "Write", "input": {"text": "x" * 4_000}}],
    }
    beside = {**answer(2, 2, 0, 70_000), "isSidechain": True}
    path = write(agents.claude.with_name("told.jsonl"), [claude_user(1, "Go on."), told, beside, answer(3, 3, 9_000, 100)])
    (found,) = [one for one in sources.sessions(Settings()) if one.path == str(path)]
    assert (found.newest, found.fullest, found.short_outputs) == ((9_100, "claude-opus-4-5"), 9_100, 1)
    assert found.last_active == datetime(2026, 3, 3, 10, tzinfo=UTC).timestamp() < found.modified
    assert found.tokens == 9_100 + 70_100 + 9_200


def test_reading_a_large_file_pauses_for_other_work(agents: Agents) -> None:
    path = write(
        agents.claude.with_name("large.jsonl"), [claude_user(1, "Go on."), *(claude_user(2, "x" * 700_000) for _ in range(5))]
    )
    found, pauses = os.stat(path), list[int]()
    catalogue = Catalogue(None)
    catalogue.pause = lambda: pauses.append(1)
    (row,) = catalogue.follow("session", [SourceFile("claude-code", str(path), stamp(found))])
    catalogue.close()
    # Before the list of files and the file, and after each of the large lines.
    assert (row.offset, len(pauses)) == (found.st_size, 7)


@given(st.integers(0, 60))
def test_a_scan_in_two_parts_gives_the_same_costs(at: int) -> None:
    many = [answer(number, 1 + number % 5, 1_000 * number, 500) for number in range(1, 40)]
    for origin, rows in (("claude-code", many), ("codex", codex_rows("/p")), ("pi", pi_rows("/p"))):
        whole, part = Scan(), Scan()
        turns = list[ScannedTurn]()
        lines = [json.dumps(row).encode() for row in rows]
        for line in lines:
            scan_any(origin, line, whole, turns)  # type: ignore[arg-type]
        for line in lines[:at]:
            scan_any(origin, line, part, turns)  # type: ignore[arg-type]
        part.money()  # asking changes nothing
        for line in lines[at:]:
            scan_any(origin, line, part, turns)  # type: ignore[arg-type]
        assert part.money() == whole.money()
        assert sum(paid.usage.total for by in whole.money().values() for paid in by.values()) == whole.usage.total


def recalled(number: int, *paths: str) -> dict[str, Any]:
    memories = [{"path": path, "content": "x"} for path in paths]
    return {
        "type": "attachment",
        "uuid": f"t{number}",
        "parentUuid": None,
        "sessionId": "s",
        "timestamp": f"2026-03-0{number}T10:00:00.000Z",
        "attachment": {"type": "relevant_memories", "memories": memories},
    }


def test_recalls_count_by_memory_over_all_sessions(agents: Agents) -> None:
    assert recall_counts(Settings()) == {}
    with agents.claude.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in (recalled(1, "/m/a.md", "/m/b.md"), recalled(3, "/m/a.md")))
    write(
        agents.claude.with_name("other.jsonl"),
        [
            claude_user(1, "Hello."),
            recalled(2, "/m/a.md"),
            {"type": "attachment", "attachment": {"type": "relevant_memories", "memories": "none"}},
        ],
    )
    found = recall_counts(Settings())
    assert found == {"/m/a.md": (3, "2026-03-03T10:00:00.000Z"), "/m/b.md": (1, "2026-03-01T10:00:00.000Z")}
    agents.claude.unlink()
    assert recall_counts(Settings()) == {"/m/a.md": (1, "2026-03-02T10:00:00.000Z")}


def test_a_home_without_sessions_costs_nothing(tmp_path: Path) -> None:
    assert money_by_day(Settings(), {"HOME": str(tmp_path)}) == []
    assert recall_counts(Settings(), {"HOME": str(tmp_path)}) == {}
