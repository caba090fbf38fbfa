"""Misbehaving models and servers: a typed error or a result the model can act on, a valid log, and a next turn that works."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lamina.agent.agent import Agent
from lamina.core.blocks import ToolResult, ToolUse
from lamina.core.errors import (
    AuthFailed,
    BadRequest,
    ConnectionLost,
    Overloaded,
    PromptTooLong,
    ProviderError,
    RateLimited,
    ServerFault,
    StreamBroken,
)
from lamina.core.records import Message
from lamina.fork.loop import NO_JSON, NOT_RUN
from lamina.testing import MessagesServer
from lamina.testing.script import make_answer

from .agent_helpers import Wire, Wiretap, accepted, answers, begin, block, call_in_pieces, end, records, results, texts

Open = Callable[..., Agent]


def answers_next(agent: Agent, server: MessagesServer) -> None:
    server.reply(text="Here I am.")
    assert agent.run("And now?").text == "Here I am."
    assert agent.session.status.open_calls == ()
    assert server.requests[-1].status == 200


def blocks(agent: Agent) -> list[Any]:
    return [block for record in records(agent) if isinstance(record, Message) for block in record.blocks]


def outcomes(agent: Agent) -> list[ToolResult]:
    return [block for block in blocks(agent) if isinstance(block, ToolResult)]


# Calls


@pytest.mark.parametrize("wire", ["messages", "chat"])
@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("Rread", {"file_path": "calc.py"}, "Did you mean Read?"),
        ("", {}, "Unknown tool ''"),
        ("Read\n\x00", {}, "Unknown tool"),
        ("Read", {}, "file_path is missing"),
        ("Read", {"file_path": ["calc.py"]}, "file_path must be a string"),
        ("Read", {"file_path": "calc.py", "limit": "many"}, "limit must be a whole number"),
        ("Read", {"file_path": "calc.py", "limit": -5}, "limit must be a whole number"),
        ("Read", {"file_path": "a\x00b"}, "NUL"),
        ("Read", {"file_path": "x" * 10_000}, "longer than"),
        ("Bash", {"command": {"run": "ls"}}, "command must be a string"),
        ("Bash", {"command": ""}, "command must not be empty"),
        ("Edit", {"file_path": "calc.py", "old_string": "a"}, "new_string is missing"),
        ("TodoWrite", {"todos": "all of them"}, "todos must be a list"),
        ("Grep", {"pattern": "("}, "regex parse error"),
        ("Glob", {"input": "**"}, "JSON object with the tool's arguments"),
    ],
)
def test_a_call_that_makes_no_sense_is_answered_with_a_sentence(
    opened: Open, messages_server: MessagesServer, wire: str, name: str, given: Wire, said: str
) -> None:
    messages_server.reply(tool_use=(name, given, "c1"))
    agent = opened(wire=wire)
    agent.run("Do it.")
    [result] = outcomes(agent)
    assert result.is_error
    assert said in result.text
    answers_next(agent, messages_server)


@pytest.mark.parametrize(
    "pieces",
    [
        ('{"command": "touch made', ""),
        ('{"command": "touch made"', "}}"),
        ("touch made",),
        ('["touch made"]',),
        ('"touch made"',),
        ('{"command": "touch made", "timeout": NaN}',),
        ("{" * 20_000,),
        ('{"command": "touch made\n"}',),
    ],
    ids=["cut", "too much", "words", "a list", "a text", "no number", "deep", "a line end in a text"],
)
def test_input_that_is_no_json_is_not_run_and_the_model_may_try_again(
    opened: Open, messages_server: MessagesServer, wiretap: Wiretap, project: Path, pieces: tuple[str, ...]
) -> None:
    wiretap.say(
        begin(), *call_in_pieces(0, "good", '{"command": "touch good"}'), *call_in_pieces(1, "bad", *pieces), *end("tool_use")
    )
    wiretap.say(begin("msg_2"), *call_in_pieces(0, "again", '{"command": "touch again"}'), *end("tool_use"))
    agent = opened(wiretap)
    agent.run("Make them.")
    _, second, third = (received for received in accepted(messages_server) if not received.fork)
    assert results(second) == {"good": f"!{NOT_RUN}", "bad": f"!{NO_JSON}"}
    assert not results(third)["again"].startswith("!")
    assert [path.name for path in project.iterdir() if path.name in ("made", "good", "again")] == ["again"]
    answers_next(agent, messages_server)


def test_empty_input_is_an_empty_object(opened: Open, messages_server: MessagesServer, wiretap: Wiretap) -> None:
    wiretap.say(begin(), *call_in_pieces(0, "c1"), *end("tool_use"))
    opened(wiretap).run("Go.")
    assert "command must be a string" in results(accepted(messages_server)[1])["c1"]


def test_the_same_id_twice_in_one_answer_is_two_calls(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    messages_server.reply(tool_use=[("Bash", {"command": f"echo {n} | tee made-{n}"}, "same") for n in range(3)])
    messages_server.reply(text="Done.")
    agent = opened()
    assert agent.run("Make three.").text == "Done."
    said = results(accepted(messages_server)[1])
    assert list(said.values()) == ["0", "1", "2"]
    assert len(said) == 3
    assert len(list(project.glob("made-*"))) == 3
    answers_next(agent, messages_server)


@pytest.mark.parametrize("wire", ["messages", "chat"])
@pytest.mark.parametrize("words", ["Again.", None])
def test_a_server_that_numbers_the_calls_of_each_answer_anew_is_understood(
    opened: Open, messages_server: MessagesServer, project: Path, wire: str, words: str | None
) -> None:
    for number in range(3):
        messages_server.reply(text=words, tool_use=("Bash", {"command": f"echo {number} >> log; cat log"}, "call_0"))
    messages_server.reply(text="Done.")
    agent = opened(wire=wire)
    answer = agent.run("Count.")
    assert (answer.text, answer.rounds) == ("Done.", 4)
    assert (project / "log").read_text() == "0\n1\n2\n"
    assert [result.text for result in outcomes(agent)] == ["0", "0\n1", "0\n1\n2"]
    shown = [words for message in accepted(messages_server)[-1].messages for words in texts(message)]
    assert [words for words in shown if words.startswith("0")] == ["0", "0\n1", "0\n1\n2"], "the model sees all three"
    answers_next(agent, messages_server)


def test_calls_without_an_id_are_run(opened: Open, messages_server: MessagesServer, wiretap: Wiretap, project: Path) -> None:
    wiretap.say(
        begin(),
        *call_in_pieces(0, "", '{"command": "echo a"}'),
        *call_in_pieces(1, "", '{"command": "echo b"}'),
        *end("tool_use"),
    )
    opened(wiretap).run("Go.")
    assert list(results(accepted(messages_server)[1]).values()) == ["a", "b"]


def test_a_hundred_calls_in_one_answer(opened: Open, messages_server: MessagesServer, project: Path) -> None:
    messages_server.reply(tool_use=[("Read", {"file_path": "calc.py", "offset": 1 + n % 2}, f"r{n}") for n in range(100)])
    messages_server.reply(text="Done.")
    agent = opened()
    assert agent.run("Read it a hundred times.").text == "Done."
    said = results(accepted(messages_server)[1])
    assert list(said) == [f"r{n}" for n in range(100)]
    assert all(words.startswith("1\t" if n % 2 == 0 else "2\t") for n, words in enumerate(said.values()))
    answers_next(agent, messages_server)


def test_a_model_that_calls_for_ever_is_stopped_by_the_rounds(opened: Open, messages_server: MessagesServer) -> None:
    messages_server.answer_with(lambda received: _glob(received.index))
    agent = opened()
    agent.rounds = 20
    answer = agent.run("Go.")
    assert (answer.ended, answer.rounds, len(messages_server.requests)) == ("rounds", 20, 20)
    messages_server.answer_with(None)
    answers_next(agent, messages_server)


def _glob(number: int) -> Any:
    return make_answer(tool_use=("Glob", {"pattern": "*"}, f"g{number}"))


# Answers


@pytest.mark.exhaustive
@pytest.mark.parametrize("wire", ["messages", "chat"])
@pytest.mark.parametrize(
    ("said", "ended"),
    [
        ({}, "answered"),
        ({"text": ""}, "answered"),
        ({"text": " \n"}, "answered"),
        ({"thinking": "I think I shall say nothing."}, "answered"),
        ({"text": "Half a sen", "stop_reason": "max_tokens"}, "cut off"),
        ({"tool_use": ("Bash", {"command": "touch made"}, "c1"), "stop_reason": "max_tokens"}, "cut off"),
        ({"text": "I'd rather not.", "stop_reason": "refusal"}, "refused"),
        ({"text": "Called, I think.", "stop_reason": "tool_use"}, "answered"),
    ],
    ids=["nothing", "no text", "blanks", "only thinking", "full", "full in a call", "refused", "no call"],
)
def test_an_answer_that_is_none_leaves_a_conversation_that_goes_on(
    opened: Open, messages_server: MessagesServer, project: Path, wire: str, said: dict[str, Any], ended: str
) -> None:
    messages_server.reply(**said)
    agent = opened(wire=wire, session_id="odd")
    assert agent.run("Go.").ended == ended
    assert not (project / "made").exists()
    agent.close()
    again = opened(wire=wire, resume="odd")
    answers_next(again, messages_server)


def test_a_full_answer_can_be_gone_on_with(opened: Open, messages_server: MessagesServer) -> None:
    messages_server.reply(text="Half a sen", stop_reason="max_tokens")
    messages_server.reply(text="tence.")
    agent = opened()
    assert agent.run("Go.").ended == "cut off"
    assert agent.go_on().text == "tence."
    accepted(messages_server)


def test_a_server_that_pauses_gets_its_answer_back_and_goes_on(opened: Open, messages_server: MessagesServer) -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    messages_server.reply(search, text="Let me search.", stop_reason="pause_turn")
    messages_server.reply(text="Found.")
    answer = opened().run("Search.")
    assert (answer.text, answer.rounds) == ("Found.", 2)
    _, second = messages_server.requests
    assert [part["type"] for part in second.messages[-1]["content"]] == ["text", "server_tool_use"]


STREAMS: dict[str, list[Wire]] = {
    "a block without its text": [begin(), *block(0, {"type": "text"}), *end("end_turn")],
    "a block without a type": [begin(), *block(0, {"text": "x"}), *end("end_turn")],
    "a piece of a block that never began": [
        begin(),
        {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "x"}},
    ],
    "an index that is none": [begin(), {"type": "content_block_start", "index": "first", "content_block": {"type": "text"}}],
    "a call without a name": [begin(), *block(0, {"type": "tool_use", "id": "c1", "input": {}}), *end("tool_use")],
    "no reason to stop": [begin(), *block(0, {"type": "text", "text": "Some words."}), {"type": "message_stop"}],
    "no end": [begin(), *block(0, {"type": "text", "text": "Some words."})],
    "a beginning and nothing else": [begin()],
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_nobody_can_read_is_a_typed_error_and_the_next_turn_works(
    opened: Open, messages_server: MessagesServer, wiretap: Wiretap, name: str
) -> None:
    agent = opened(wiretap, max_retries=0)
    wiretap.say(*STREAMS[name])
    with pytest.raises(StreamBroken):
        agent.run("Go.")
    assert all(reason is None for reason, _ in answers(agent))
    assert all(kinds for _, kinds in answers(agent)), "an answer of which nothing arrived is no record"
    answers_next(agent, messages_server)


# Servers


@pytest.mark.parametrize("wire", ["messages", "chat"])
@pytest.mark.parametrize("after", [3, 5, 8])
def test_half_a_stream_is_kept_as_half_an_answer_and_its_calls_never_run(
    opened: Open, messages_server: MessagesServer, project: Path, wire: str, after: int
) -> None:
    whole = make_answer(text="So:", tool_use=("Bash", {"command": "touch made made made"}, "b1"))
    messages_server.cut(whole, after=after)
    agent = opened(wire=wire, session_id="half")
    with pytest.raises(StreamBroken):
        agent.run("Make it.")
    assert [reason for reason, _ in answers(agent)] in ([None], [None, None])
    assert not (project / "made").exists()
    agent.close()
    again = opened(wire=wire, resume="half")
    answers_next(again, messages_server)
    assert not (project / "made").exists()
    assert "So:"[:1] in "".join(words for message in messages_server.requests[-1].messages for words in texts(message))


@pytest.mark.parametrize("wire", ["messages", "chat"])
@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_a_busy_server_is_asked_again(opened: Open, messages_server: MessagesServer, wire: str, status: int) -> None:
    messages_server.fail(status, times=3)
    messages_server.reply(text="At last.")
    agent = opened(wire=wire)
    assert agent.run("Are you there?").text == "At last."
    assert len({str(received.messages) for received in messages_server.requests}) == 1, "the same request each time"
    assert len(answers(agent)) == 1


@pytest.mark.parametrize("wire", ["messages", "chat"])
@pytest.mark.parametrize(
    ("status", "error"),
    [(429, RateLimited), (529, Overloaded), (500, ServerFault), (401, AuthFailed), (403, AuthFailed), (400, BadRequest)],
)
def test_a_server_that_stays_that_way_is_a_typed_error_and_nothing_is_lost(
    opened: Open, messages_server: MessagesServer, wire: str, status: int, error: type[ProviderError]
) -> None:
    agent = opened(wire=wire, max_retries=1)
    messages_server.reply(tool_use=("Bash", {"command": "echo kept"}, "b1"))
    messages_server.fail(status, times=2)
    with pytest.raises(error):
        agent.run("Do it.")
    messages_server.script.clear()
    messages_server.reply(text="Here I am.")
    assert agent.go_on().text == "Here I am."
    assert [result.text for result in outcomes(agent)] == ["kept"]
    answers_next(agent, messages_server)


@pytest.mark.parametrize("how", ["reset", "close"])
def test_a_connection_that_is_lost_before_a_word_is_tried_again(opened: Open, messages_server: MessagesServer, how: Any) -> None:
    messages_server.cut(after=0, how=how, times=2)
    messages_server.reply(text="Here I am.")
    agent = opened()
    assert agent.run("Hello?").text == "Here I am."
    messages_server.cut(after=0, how=how, times=20)
    with pytest.raises(ConnectionLost):
        agent.run("Hello?")
    messages_server.script.clear()
    answers_next(agent, messages_server)


@pytest.mark.parametrize("what", ["json", "sse", "utf8", "gzip"])
def test_bytes_that_are_not_what_the_headers_say_are_a_typed_error(
    opened: Open, messages_server: MessagesServer, what: Any
) -> None:
    agent = opened(max_retries=0)
    messages_server.garble(what)
    with pytest.raises(ProviderError):
        agent.run("Hello?")
    answers_next(agent, messages_server)


@pytest.mark.parametrize("wire", ["messages", "chat"])
def test_a_prompt_the_server_finds_too_long_is_a_typed_error_with_the_counts(
    opened: Open, messages_server: MessagesServer, wire: str
) -> None:
    agent = opened(wire=wire)
    messages_server.window = 1_000
    with pytest.raises(PromptTooLong) as caught:
        agent.run("Hello? " * 20)
    assert caught.value.limit == 1_000
    assert caught.value.gap is not None
    assert caught.value.gap > 0
    assert len(messages_server.requests) == 1, "the same request would be refused again"
    messages_server.window = 200_000
    messages_server.reply(text="Here I am.")
    assert agent.run("And now?").text == "Here I am."


def test_a_refused_call_of_the_model_is_not_lost_when_the_turn_fails_behind_it(
    opened: Open, messages_server: MessagesServer
) -> None:
    messages_server.reply(tool_use=("Bash", {"command": "touch made"}, "b1"))
    messages_server.fail(400)
    agent = opened(mode="ask", ask=lambda *_: "no")
    with pytest.raises(BadRequest):
        agent.run("Make it.")
    assert [(call.id, call.name) for call in blocks(agent) if isinstance(call, ToolUse)] == [("b1", "Bash")]
    assert "Denied by the user" in outcomes(agent)[0].text
