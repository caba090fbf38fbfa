"""A compaction in the middle of a turn keeps the tool results that the model has not seen yet, with their calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.session.plain import Session

from lamina.core.errors import PromptTooLong
from lamina.layers.l4_compact.plan import Pivot
from lamina.testing import MessagesServer

from .compacting import kinds, opened, quiet, rounds, summaries, summarising
from .words import Wire, refused

UNSEEN = "The secret port is 48151.\n" * 40


def call_tool(session: Session, server: MessagesServer, result: str = UNSEEN) -> None:
    """Leave the session with a tool result that no request has contained."""
    server.reply(text="I look once more.", tool_use=[("Read", {"file_path": "/w/unseen.py"}, "unseen")])
    session.add_user("Which port is it?")
    session.ask()
    session.add_tool_result("unseen", result)


def blocks(request: Wire, kind: str) -> list[Wire]:
    return [
        block
        for message in request["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == kind
    ]


def shown(request: Wire) -> str:
    [use], [result] = blocks(request, "tool_use"), blocks(request, "tool_result")
    assert (use["id"], result["tool_use_id"]) == ("unseen", "unseen")
    content = result["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@pytest.mark.spec("C4", "B1")
@pytest.mark.parametrize("by", ["hand", "instructions", "pivot"])
def test_a_manual_compaction_keeps_the_result_that_nobody_has_seen(
    messages_server: MessagesServer, tmp_path: Path, by: str
) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        rounds(session, messages_server, 4)
        call_tool(session, messages_server)
        first = session.turns[0].first
        done = session.compact("Be brief." if by == "instructions" else "", pivot=Pivot("from", first) if by == "pivot" else None)
        assert done.done
        assert kinds(session)[-2:] == ["said", "said"]
        session.ask()
        request = messages_server.requests[-1].body
        assert refused(request) == []
        assert shown(request) == UNSEEN


@pytest.mark.spec("C1", "C4")
def test_an_automatic_compaction_keeps_the_result_that_filled_the_window(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        number = 0
        while session.window_state.tokens < 12_000:
            rounds(session, messages_server, 1, start=number)
            number += 1
        assert not summaries(messages_server)
        call_tool(session, messages_server, UNSEEN * 8)
        session.ask()
        assert len(summaries(messages_server)) == 1
        request = messages_server.requests[-1].body
        assert refused(request) == []
        assert shown(request) == UNSEEN * 8


@pytest.mark.spec("C7")
@pytest.mark.parametrize("sentence", ["prompt is too long: 22000 tokens > 20000 maximum", "prompt is too long"])
def test_a_request_that_was_too_long_is_sent_again_with_the_unseen_result(
    messages_server: MessagesServer, tmp_path: Path, sentence: str
) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        rounds(session, messages_server, 6)
        call_tool(session, messages_server)
        messages_server.fail(400, message=sentence)
        session.ask()
        request = messages_server.requests[-1].body
        assert len(summaries(messages_server)) == 1
        assert shown(request) == UNSEEN


@pytest.mark.spec("C7")
def test_a_round_that_alone_is_too_long_for_the_server_is_summarised(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, window=200_000) as session:
        rounds(session, messages_server, 2)
        call_tool(session, messages_server, UNSEEN * 60)
        messages_server.fail(400, message="prompt is too long: 22000 tokens > 16000 maximum")
        session.ask()
        assert blocks(messages_server.requests[-1].body, "tool_result") == []


def test_a_server_that_never_accepts_it_raises_its_error(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, settings=quiet()) as session:
        rounds(session, messages_server, 6)
        call_tool(session, messages_server)
        messages_server.fail(400, message="prompt is too long", times=9)
        with pytest.raises(PromptTooLong):
            session.ask()
        assert "48151" in str(session.messages)
