"""Compaction by price: a long session is compacted long before its window is full, a short one is not."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.session.hosts import lend

from lamina.conversation import price, revision
from lamina.core.policy import BALANCED, CLASSIC, LEAN
from lamina.core.records import Boundary, Checkpoint
from lamina.history.explanation import explain
from lamina.providers.anthropic import AnthropicProvider
from lamina.session.base import working
from lamina.testing import MessagesServer
from lamina.testing.script import Status

from .compacting import LONG, WINDOW, boundaries, opened, quiet, records, rounds, summaries, summarising, told
from .noting import Seen, settle
from .plain import Session
from .words import answer, reasons, refused, unmarked

# A fortieth of the real factor: what takes a hundred calls of a real session takes three here. Nothing is made ahead.
SOON = replace(BALANCED, price=replace(BALANCED.price, factor=0.05, ahead_calls=0))
NEVER = replace(BALANCED, price=replace(BALANCED.price, factor=100.0))


def balance(session: Session) -> price.Balance:
    with working(session) as c:
        return price.balance(c)


def until_due(session: Session, server: MessagesServer, *, most: int = 12) -> None:
    """Fill half of the window, then talk in small steps until a compaction is entered."""
    rounds(session, server, 1, content=LONG * 4)
    for number in range(1, most):
        if boundaries(session):
            return
        session.add_user(f"Small question {number}")
        session.ask()
    raise AssertionError(f"no compaction: {balance(session)}")


@pytest.mark.spec("P4", "B1", "K3")
def test_a_compaction_by_price_says_why_and_an_undo_takes_it_back_byte_for_byte(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, policy=SOON) as session:
        until_due(session, messages_server)
        after_it = unmarked(session.messages)
        [boundary] = boundaries(session)
        assert isinstance(boundary, Boundary)
        assert boundary.tokens_before < 0.8 * session._c.limits.autocompact
        assert boundary.receipt["because"].startswith("by price: reading the older messages again cost ")
        assert told(session, "compaction")[-1]["because"] == boundary.receipt["because"]
        shown = explain(records(session), len(messages_server.requests) - 1, lambda block: 1)
        assert any(boundary.receipt["because"] in piece.why for piece in shown.pieces)
        assert reasons(session.path).count("compaction") == 1
        after = balance(session)
        assert after.debt <= after.coming < 0.01 * after.price
        asked = summaries(messages_server)[0].body["messages"]
        with working(session) as c:
            revision.undo(c, boundary.uuid)
        assert unmarked(session.messages) != after_it
        assert unmarked(session.messages)[: len(asked) - 1] == unmarked(asked)[:-1]
        assert balance(session).debt == balance(session).coming > 0
        for number in range(6):
            session.add_user(f"After the undo {number}")
            session.ask()
        assert len(boundaries(session)) == 1
        assert refused({"messages": session.messages}) == []


@pytest.mark.spec("P4")
def test_a_resumed_session_has_the_same_account(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, policy=NEVER) as session:
        rounds(session, messages_server, 6)
        first = balance(session)
        assert first.debt > 4 * first.coming > 0
    with opened(messages_server, tmp_path, policy=NEVER, resume=session.id) as again:
        assert balance(again) == first
        assert again.compact().done
        rounds(again, messages_server, 6, start=6)
        second = balance(again)
        assert 0 < second.debt < 3 * first.debt
        [state] = [record.state for record in records(again) if isinstance(record, Checkpoint)]
        assert state["price"]["debt"] == 0
        assert state["price"]["base"] > 0
        assert 0 < state["price"]["summary"] < 1_000
    with opened(messages_server, tmp_path, policy=NEVER, resume=session.id) as last:
        assert balance(last) == second


@pytest.mark.spec("P4", "C1")
def test_a_summary_made_ahead_gives_a_compaction_that_nobody_waits_for(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    policy = replace(SOON, price=replace(SOON.price, ahead_calls=2))
    # Notes are on, but they do not pay for a model that costs money.
    with opened(messages_server, tmp_path, policy=policy, settings=quiet(session_notes=True)) as session:
        seen = Seen()
        lend(session, observer=seen)
        rounds(session, messages_server, 1, content=LONG * 4)
        for number in range(12):
            settle(session)
            session.add_user(f"Small question {number}")
            session.ask()
        assert seen.named("compaction")[0]["by"] == "ahead"
        assert seen.named("notes") == []
        assert len(summaries(messages_server)) == len(boundaries(session))


@pytest.mark.spec("P4", "C8")
def test_a_failed_summary_costs_no_detail_and_is_not_asked_for_again_at_once(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    messages_server.answer_with(summarising(Status(status=400)))
    with opened(messages_server, tmp_path, policy=SOON) as session:
        rounds(session, messages_server, 1, content=LONG * 4)
        for number in range(3):
            session.add_user(f"Small question {number}")
            session.ask()
        assert boundaries(session) == []
        asked = len(summaries(messages_server))
        assert asked == 1
        assert "f0.py" in str(session.messages)
        assert told(session, "autocompact") == []
        first = balance(session)
    with opened(messages_server, tmp_path, policy=SOON, resume=session.id) as again:
        assert balance(again) == first


@pytest.mark.spec("P4", "T3")
def test_without_reported_usage_the_estimate_counts(tmp_path: Path) -> None:
    with Session(
        "anthropic:claude-sonnet-4-5", home=tmp_path, cwd=tmp_path, policy=NEVER, window=WINDOW, settings=quiet()
    ) as session:
        for number in range(3):
            session.add_user(LONG * 2)
            session.before_call()
            silent: dict[str, Any] = {**answer(f"m{number}", "Yes."), "usage": None}
            session.after_call(silent)
        first = balance(session)
        assert first.debt > first.coming > 0
    with Session(
        "offline", home=tmp_path, cwd=tmp_path, policy=NEVER, window=WINDOW, settings=quiet(), resume=session.id
    ) as again:
        assert balance(again).gain == first.gain


@pytest.mark.spec("P4")
def test_a_first_message_that_fills_most_of_the_window_is_no_part_of_the_base(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, policy=NEVER) as session:
        session.add_user(LONG * 8)
        session.ask()
        assert balance(session).gain > 5_000
    with opened(messages_server, tmp_path, policy=SOON, resume=session.id) as again:
        again.add_user("And now?")
        again.ask()
        assert boundaries(again)
        assert all(received.status == 200 for received in messages_server.requests)


@pytest.mark.spec("P4")
def test_another_model_brings_its_own_prices_to_the_whole_account(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, policy=NEVER) as session:
        rounds(session, messages_server, 4)
        cheap = balance(session)
        with closing(AnthropicProvider("claude-sonnet-4-5", api_key="any", base_url=messages_server.url)) as other:
            session.switch_model(other)
            assert balance(session).debt > 1.8 * cheap.debt


@pytest.mark.spec("B3")
def test_the_earlier_threshold_of_a_policy_never_stops_compaction(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    early = replace(LEAN, window=replace(LEAN.window, autocompact_at=6_000), compact=replace(LEAN.compact, thrash_turns=6))
    with opened(messages_server, tmp_path, policy=early) as session:
        rounds(session, messages_server, 30, content=LONG * 2)
        assert len(boundaries(session)) > 5
        assert not session.notices
        assert told(session, "autocompact")[-1]["stopped"] == ""


@pytest.mark.spec("P4")
@pytest.mark.parametrize(("limit", "least", "most"), [(0, 3_000, 9_000), (2_000, 500, 2_500)])
def test_restored_context_stays_within_the_limit_of_the_policy(
    messages_server: MessagesServer, tmp_path: Path, limit: int, least: int, most: int
) -> None:
    messages_server.answer_with(summarising())
    policy = replace(CLASSIC, compact=replace(CLASSIC.compact, restored_tokens=limit))
    with opened(messages_server, tmp_path, policy=policy, window=100_000) as session:
        rounds(session, messages_server, 3)
        for number in range(6):
            session.restore_after_compaction("skill", f"s{number}", f"Skill {number}. {LONG[:2_000]}")
        assert least < session.compact().tokens_after < most
