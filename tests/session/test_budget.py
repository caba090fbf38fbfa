"""The budget of background work: over it such work rests, that is said once, and the conversation goes on."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.session.hosts import lend
from tests.session.plain import Session

from lamina.core.budget import LedgerLine
from lamina.core.policy import CLASSIC
from lamina.core.settings import Settings
from lamina.disk.home.ledger import UsageLedger, day_of, ledger_file, read_ledger_day
from lamina.disk.transcripts.store import read_transcript
from lamina.history.session_stats import session_stats
from lamina.memory.memory import Memory
from lamina.providers.anthropic import AnthropicProvider
from lamina.session.base import working
from lamina.testing import MessagesServer

from . import compacting, noting, recalling
from .noting import LONG, answering, asked_for_notes, connected, fill, talk, told

AHEAD = replace(CLASSIC, compact=replace(CLASSIC.compact, ahead_tokens=60_000))
PATIENCE = 120.0


def spend(home: Path, calls: int) -> None:
    """What other sessions of the day have used."""
    ledger = UsageLedger(home)
    for _ in range(calls):
        ledger.add(LedgerLine(time.time(), "notes", "/elsewhere", usd=0.0))
    assert ledger.problem is None


def used(home: Path) -> list[LedgerLine]:
    return read_ledger_day(home, day_of(time.time()))


@pytest.mark.spec("B9")
def test_every_call_of_background_work_is_a_line_and_the_conversations_own_are_not(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path) as session:
        fill(session, 5_000)
        lines = used(tmp_path)
        assert len(lines) == len(asked_for_notes(messages_server)) > 0
        assert {(line.purpose, line.project, line.session) for line in lines} == {("notes", str(tmp_path), session.id)}
        told_of = told(session).named("fork")
        assert sum(line.cache_read for line in lines) == sum(data["cache_read"] for data in told_of)
        assert sum(line.usd or 0 for line in lines) == pytest.approx(sum(data["usd"] for data in told_of))
        assert all(line.usd for line in lines)


@pytest.mark.spec("B9", "K5")
@pytest.mark.parametrize(
    ("limit", "what"),
    [({"budget_calls": 2}, "calls"), ({"budget_tokens": 500}, "tokens"), ({"budget_dollars": 0.001}, "dollars")],
)
def test_over_the_budget_notes_rest_and_it_is_said_once(
    messages_server: MessagesServer, tmp_path: Path, limit: dict[str, float], what: str
) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path, settings=Settings(**limit)) as session:
        fill(session, 5_000)
        before = len(asked_for_notes(messages_server))
        fill(session, 12_000)
        if what == "calls":
            assert len(asked_for_notes(messages_server)) == 2
        [event] = told(session).named("budget")
        assert (event["ran_out"], event["job"], event["day"]) == (what, "notes", day_of(time.time()))
        assert event["used"] >= event["limit"]
        [sentence] = [notice for notice in session.notices if "is paused until tomorrow" in notice]
        assert what.capitalize() in sentence
        assert session.status.budget_exhausted == what
        asked = len(asked_for_notes(messages_server))
        assert 0 < before <= asked
        fill(session, session.window_state.tokens + 3_000)
        assert len(asked_for_notes(messages_server)) == asked
        path = session.path
    assert path is not None
    assert session_stats(read_transcript(path)).budget_stops == {what: 1}


@pytest.mark.spec("B9")
def test_what_other_sessions_used_counts_and_nobody_else_is_told(messages_server: MessagesServer, tmp_path: Path) -> None:
    answering(messages_server)
    spend(tmp_path, 199)
    with connected(messages_server, tmp_path) as session:
        fill(session, 2_600)
        assert len(asked_for_notes(messages_server)) == 1, "one call is left"
        fill(session, 9_000)
        assert len(asked_for_notes(messages_server)) == 1
        assert session.status.budget_exhausted == "calls"
    with connected(messages_server, tmp_path / "other home") as session:
        fill(session, 5_000, f"Elsewhere. {LONG}")
        assert session.status.budget_exhausted is None
        assert len(asked_for_notes(messages_server)) > 1


@pytest.mark.spec("B9")
def test_sessions_at_once_exceed_it_by_what_is_under_way_only(messages_server: MessagesServer, tmp_path: Path) -> None:
    go = threading.Event()
    messages_server.reply(text="nothing of use", fork="notes", delay=go, times=2)
    answering(messages_server)
    spend(tmp_path, 199)
    with connected(messages_server, tmp_path) as one, connected(messages_server, tmp_path) as other:
        for session in (one, other):
            for number in range(4):
                session.add_user(f"Step {number} of {session.id}. {LONG}")
                session.ask()
        go.set()
        for session in (one, other):
            noting.settle(session)
            fill(session, 8_000)
        assert len(used(tmp_path)) <= 201
        assert one.status.budget_exhausted == other.status.budget_exhausted == "calls"


@pytest.mark.spec("B9", "C1")
def test_no_summary_is_made_ahead_and_the_one_that_is_needed_still_comes(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(compacting.summarising())
    with compacting.opened(messages_server, tmp_path, policy=AHEAD, settings=compacting.quiet(budget_calls=0)) as session:
        compacting.until_compacted(session, messages_server)
        [boundary] = compacting.boundaries(session)
        assert boundary.receipt["by"] == "summary"
        assert len(compacting.summaries(messages_server)) == 1
        assert used(tmp_path) == [], "the conversation waits for that one: it is no background work"
        assert len(compacting.told(session, "budget")) == 1


@pytest.mark.spec("B9", "Q4")
def test_the_local_ranker_chooses_where_a_model_may_not(messages_server: MessagesServer, tmp_path: Path) -> None:
    with Memory.open(tmp_path, home=tmp_path) as memory:
        memory.save("testing-db", type="feedback", description="Integration tests run against a real database", body="No mocks.")
    with recalling.at(messages_server, tmp_path, settings=recalling.choosing(budget_dollars=0.0)) as session:
        session.add_user("What do our integration tests run against?")
        session.ask()
        assert "No mocks." in str(session.messages)
    assert recalling.selections(messages_server) == []


@pytest.mark.spec("B9")
def test_no_call_of_the_conversation_looks_at_the_ledger(messages_server: MessagesServer, tmp_path: Path) -> None:
    """One that cannot be read is noticed by who reads it."""
    answering(messages_server)
    path = ledger_file(tmp_path, day_of(time.time()))
    path.mkdir(parents=True)
    (path / "x").write_text("")
    with connected(messages_server, tmp_path) as session:
        talk(session, "one", "two", "three")
        assert session.notices == []
        fill(session, 6_000)
        [notice] = session.notices
        assert str(path) in notice
        assert "counts its background work on its own" in notice
        assert asked_for_notes(messages_server), "and background work goes on"


def test_a_call_that_fails_is_a_call(messages_server: MessagesServer, tmp_path: Path) -> None:
    answering(messages_server)
    messages_server.fail(500, fork="notes", times=2)
    with connected(messages_server, tmp_path, settings=Settings(budget_calls=2)) as session:
        fill(session, 12_000)
        assert [(line.failed, line.usd) for line in used(tmp_path)][:1] == [(True, None)]
        assert len(used(tmp_path)) == 2


def test_a_model_without_a_price_counts_in_tokens(messages_server: MessagesServer, tmp_path: Path) -> None:
    answering(messages_server)
    provider = AnthropicProvider("a-model-nobody-knows", base_url=messages_server.url, api_key="any", max_retries=0)
    with Session(
        provider, window=noting.WINDOW, cwd=tmp_path, home=tmp_path, settings=Settings(budget_dollars=0.0001)
    ) as session:
        lend(session, observer=noting.Seen())
        fill(session, 5_000)
        assert session.status.budget_exhausted is None
        assert {line.usd for line in used(tmp_path)} == {None}
        assert sum(line.input + line.cache_write for line in used(tmp_path)) > 0
    provider.close()


def test_what_local_functions_answer_is_neither_counted_nor_kept_waiting(tmp_path: Path) -> None:
    with Session("offline", window=noting.WINDOW, cwd=tmp_path, home=tmp_path, settings=Settings(budget_calls=0)) as session:
        lend(session, observer=noting.Seen())
        fill(session, 5_000)
        assert told(session).named("notes")
        assert session.status.budget_exhausted is None
    assert used(tmp_path) == []


def test_a_session_in_memory_has_a_budget_of_its_own(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(compacting.summarising())
    settings = compacting.quiet(budget_calls=1)
    with compacting.opened(messages_server, tmp_path, policy=AHEAD, settings=settings, in_memory=True) as session:
        compacting.until_compacted(session, messages_server)
        with working(session) as c:
            assert c.background.wait("summary", PATIENCE)
        compacting.until_compacted(session, messages_server, start=100)
        assert session.status.budget_exhausted == "calls"
        assert not (tmp_path / "ledger").exists()
