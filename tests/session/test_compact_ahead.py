"""A summary made ahead of need: swapped in without a stall where what it was made from still stands, and only there."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.session.plain import Session

from lamina.conversation import revision
from lamina.core.policy import CLASSIC
from lamina.core.records import Boundary
from lamina.session.base import working
from lamina.testing import MessagesServer

from .compacting import (
    LONG,
    SUMMARY,
    boundaries,
    fates,
    ids,
    opened,
    rounds,
    summaries,
    summarising,
    told,
    until_compacted,
)
from .words import refused, said

AHEAD = replace(CLASSIC, compact=replace(CLASSIC.compact, ahead_tokens=60_000))
PATIENCE = 120.0


def until_begun(session: Session, server: MessagesServer, start: int = 0) -> int:
    """Work until a summary was begun; the next round's number."""
    for number in range(start, start + 60):
        rounds(session, server, 1, start=number)
        with working(session) as c:
            if c.background.running("summary") is not None or summaries(server):
                return number + 1
    raise AssertionError("no summary was begun")


def landed(session: Session) -> None:
    with working(session) as c:
        assert c.background.wait("summary", PATIENCE)


@pytest.mark.spec("C1")
def test_it_is_swapped_in_and_what_came_since_stays_word_for_word(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, policy=AHEAD) as session:
        number = until_begun(session, messages_server)
        landed(session)
        assert not boundaries(session)
        until_compacted(session, messages_server, start=number)
        assert len(summaries(messages_server)) == 1, "no second call"
        [boundary] = boundaries(session)
        assert isinstance(boundary, Boundary)
        assert boundary.receipt["by"] == "ahead"
        assert boundary.kept
        assert refused({"messages": session.messages}) == []
        assert LONG[:30] in str(session.messages), "what came since is there in full"
        assert "Question 0: what is in it?" in "\n".join(said(session.messages))
        assert [data["purpose"] for data in told(session, "fork")] == ["summary"]


def test_a_changed_beginning_makes_it_worthless(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, policy=AHEAD) as session:
        number = until_begun(session, messages_server)
        landed(session)
        with working(session) as c:
            target = next(item.uuid for item in c.log.view.items if item.role == "assistant" and item.key)
            revision.rewind(c, target)
        rounds(session, messages_server, 1, start=number)
        with working(session) as c:
            order = ids(session)
        done = session.compact()
        assert done.done
        assert done.how == "summary"
        assert set(fates(boundaries(session)[0], order)) == set(order)


@pytest.mark.spec("C1", "C10")
def test_an_undo_in_the_middle_of_it_drops_it_and_says_so(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    go = threading.Event()
    with opened(messages_server, tmp_path, policy=AHEAD) as session:
        rounds(session, messages_server, 2)
        hidden = session.hide_messages(session.turns[0].first, session.turns[0].last)
        stale = SUMMARY.replace("words about it", "words about a conversation that is gone")
        messages_server.reply(text=stale, fork="summary", delay=go)
        number = until_begun(session, messages_server, start=2)
        session.undo(hidden)
        assert session.notices == [
            "The summary that was being made in the background was dropped, because the undo changed the conversation."
        ]
        landed(session)
        until_compacted(session, messages_server, start=number)
        go.set()
        assert "a conversation that is gone" not in str(session.messages)
        assert "Question 0: what is in it?" in "\n".join(said(session.messages))
        assert refused({"messages": session.messages}) == []
        assert len(session.notices) == 1


def test_one_under_way_is_waited_for_and_a_bad_one_is_made_anew(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, policy=AHEAD) as session:
        go = threading.Event()
        messages_server.reply(text="no summary at all", fork="summary", delay=go)
        number = until_begun(session, messages_server)
        threading.Timer(0.2, go.set).start()
        until_compacted(session, messages_server, start=number)
        assert boundaries(session)[0].receipt["by"] in ("summary", "ahead")
        assert [data["why"] for data in told(session, "summary_rejected")] == ["it holds no <summary>"]


def test_nobody_waits_longer_than_the_policy_says(messages_server: MessagesServer, tmp_path: Path) -> None:
    hasty = replace(AHEAD, notes=replace(AHEAD.notes, wait_seconds=0.05))
    messages_server.answer_with(summarising())
    go = threading.Event()
    with opened(messages_server, tmp_path, policy=hasty) as session:
        messages_server.reply(text=SUMMARY, fork="summary", delay=go)
        number = until_begun(session, messages_server)
        until_compacted(session, messages_server, start=number)
        go.set()
        assert boundaries(session)[0].receipt["by"] == "summary"
        landed(session)
        rounds(session, messages_server, 1, start=90)
        assert len(boundaries(session)) == 1, "the late one is of no use"


def test_a_failed_one_costs_nobody_anything(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, policy=AHEAD) as session:
        messages_server.fail(400, message="no", fork="summary")
        number = until_begun(session, messages_server)
        landed(session)
        until_compacted(session, messages_server, start=number)
        assert told(session, "fork_failed")
        assert not session.notices


def test_it_is_not_begun_where_the_policy_does_not_ask_for_it(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        rounds(session, messages_server, 10)
        assert not summaries(messages_server)
        assert not summaries(messages_server)
