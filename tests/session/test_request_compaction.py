"""A compaction that the model asks for: off unless the host offers it, run between two calls, announced, and bounded."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.session.plain import Session

import lamina
from lamina.core.records import Boundary
from lamina.core.settings import Settings
from lamina.testing import MessagesServer
from lamina.tools.hooks.protocol import HookOutcome

from .compacting import boundaries, opened, quiet, rounds, summaries, summarising, told
from .hosts import lend
from .words import COMPACT, READ, reasons, refused


def ask_for_it(session: Session, server: MessagesServer, instructions: str = "") -> str:
    """The model calls the tool; what it is told."""
    number = len(server.requests)
    server.reply(text="That part is done.", tool_use=[("Compact", {"instructions": instructions}, f"compact{number}")])
    session.add_user(f"Now the next part, {number}.")
    [call] = session.ask().tool_uses
    result = session.answer_tool(call)
    assert result is not None
    return result.text


@pytest.mark.spec("P7")
def test_a_compaction_that_the_model_asks_for_runs_before_the_next_call(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, tools=[READ, COMPACT]) as session:
        rounds(session, messages_server, 6)
        assert "will be compacted" in ask_for_it(session, messages_server, "Keep the port numbers.")
        assert boundaries(session) == [], "not while the tool runs"
        session.ask()
        [boundary] = boundaries(session)
        assert isinstance(boundary, Boundary)
        assert boundary.trigger == "auto"
        [asked] = summaries(messages_server)
        assert "Keep the port numbers." in str(asked.body["messages"][-1])
        last = messages_server.requests[-1].body
        assert refused(last) == []
        assert "Compact" in str([block for block in last["messages"][-2]["content"] if block["type"] == "tool_use"])
        assert reasons(session.path) == ["compaction"]
        assert [one["instructions"] for one in told(session, "compaction_requested")] == ["Keep the port numbers."]
        assert [one for one in session.notices if one.startswith("The model asked for a compaction: ")]


@pytest.mark.spec("P7", "U2")
def test_the_setting_offers_the_tool_among_the_sessions_own(tmp_path: Path) -> None:
    for on in (True, False):
        with lamina.Session("offline", home=tmp_path, offer_tools=True, settings=Settings(compact_tool=on)) as session:
            session.add_user("hello")
            names = [tool["name"] for tool in session.before_call()["tools"]]
            assert ("Compact" in names) is on


@pytest.mark.spec("P7", "B3")
def test_a_model_that_keeps_asking_is_turned_down_without_a_call(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, tools=[READ, COMPACT]) as session:
        assert ask_for_it(session, messages_server).startswith("Not needed: ")
        session.ask()
        rounds(session, messages_server, 6)
        for _ in range(5):
            ask_for_it(session, messages_server)
            session.ask()
        assert len(boundaries(session)) == len(summaries(messages_server)) == 1


@pytest.mark.spec("P7")
def test_a_hook_can_veto_it_and_the_user_learns_why(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, tools=[READ, COMPACT]) as session:
        lend(session, pre_compact=lambda trigger, instructions: HookOutcome(block="not today"))
        rounds(session, messages_server, 6)
        ask_for_it(session, messages_server)
        assert session.ask().text == "Done."
        assert boundaries(session) == []
        assert any("not today" in notice for notice in session.notices)


@pytest.mark.spec("P7")
def test_a_summary_that_fails_leaves_the_conversation_as_it_is(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising("I would rather not."))
    with opened(messages_server, tmp_path, tools=[READ, COMPACT]) as session:
        rounds(session, messages_server, 6)
        before = session.messages
        ask_for_it(session, messages_server)
        assert session.ask().text == "Done."
        assert session.messages[: len(before)] == before
        assert boundaries(session) == [], "with room left, nobody is helped by a summary without a model"
        assert any("asked for a compaction" in notice and "no <summary>" in notice for notice in session.notices)


def test_where_compaction_is_off_the_model_is_told_so(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    settings = quiet(compaction=False)
    with opened(messages_server, tmp_path, tools=[READ, COMPACT], settings=settings) as session:
        rounds(session, messages_server, 6)
        assert "turned off" in ask_for_it(session, messages_server)
        session.ask()
        assert boundaries(session) == []
