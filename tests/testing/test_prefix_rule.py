"""The prefix rule: which conversations keep their prefix, which do not, and the messages about it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lamina.core.cache import BREAK_HEADER, FORK_HEADER, SESSION_HEADER
from lamina.testing import Announced, Status, Violation, check_prefixes
from lamina.testing.request_handler import respond
from lamina.testing.server_state import ServerState
from lamina.testing.transport import Incoming


class Wire:
    """Requests without a socket."""

    def __init__(self) -> None:
        self.state = ServerState()

    def send(
        self,
        *texts: str,
        session: str = "s",
        fork: str = "",
        announced: str = "",
        path: str = "/v1/messages",
        betas: str = "",
        marked: bool = True,
        **more: Any,
    ) -> None:
        content: list[dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
        if marked and texts:
            content[-1] = {**content[-1], "cache_control": {"type": "ephemeral"}}
        messages = (
            [{"role": "user", "content": content}] if path == "/v1/messages" else [{"role": "user", "content": t} for t in texts]
        )
        body = {"model": "claude-sonnet-5", "max_tokens": 10, "messages": messages, **more}
        headers = {
            "x-api-key": "any",
            SESSION_HEADER: session,
            FORK_HEADER: fork,
            BREAK_HEADER: announced,
            "anthropic-beta": betas,
        }
        headers = {name: value for name, value in headers.items() if value}
        respond(self.state, Incoming("POST", path, headers, json.dumps(body).encode()))

    def violations(self) -> list[Violation]:
        return check_prefixes(self.state.requests, decisions=self.state.announcements.decisions())


@pytest.fixture
def wire() -> Wire:
    return Wire()


def test_a_conversation_that_only_grows_keeps_the_rule_wherever_its_marks_stand(wire: Wire) -> None:
    wire.send("a")
    wire.send("a", "b")
    wire.send("a", "b", marked=False)
    wire.send("a", "b", "c")
    assert wire.violations() == []


def test_the_first_changed_block_is_named_with_what_it_was_and_is(wire: Wire) -> None:
    wire.send("a", "the quick brown fox " * 10 + "jumps", "c")
    wire.send("a", "the quick brown fox " * 10 + "sleeps", "c", "d")
    (violation,) = wire.violations()
    assert violation.request == 1
    assert "does not start with request 0: messages.0.content.1 was text …" in violation.sentence
    assert "jumps" in violation.sentence
    assert "sleeps" in violation.sentence
    assert FORK_HEADER in violation.sentence


def test_a_block_that_is_gone_is_named(wire: Wire) -> None:
    wire.send("a", "b")
    wire.send("a")
    assert "messages.0.content.1 is missing, it was text" in wire.violations()[0].sentence


def test_a_changed_tool_or_system_prompt_is_named(wire: Wire) -> None:
    wire.send("a", system="be kind")
    wire.send("a", "b", system="be quick")
    wire.send("a", "b", system="be quick", tools=[{"name": "Read", "input_schema": {"type": "object"}}])
    first, second = wire.violations()
    assert "system.0 was" in first.sentence
    assert "system.0 was text" in second.sentence
    assert "of tools" in second.sentence


@pytest.mark.parametrize(
    "change",
    [
        {"thinking": {"type": "adaptive"}},
        {"tool_choice": {"type": "none"}, "tools": []},
        {"output_config": {"effort": "low"}},
        {"model": "claude-opus-5"},
    ],
)
def test_a_changed_setting_breaks_the_prefix_as_a_block_would(change: dict[str, Any], wire: Wire) -> None:
    tools = [{"name": "Read", "input_schema": {"type": "object"}}]
    wire.send("a", tools=tools)
    wire.send("a", "b", **{"tools": tools, **{key: value for key, value in change.items() if key != "tools"}})
    (violation,) = wire.violations()
    assert next(iter(change)).removeprefix("output_config") in violation.sentence


@pytest.mark.spec("K3")
def test_an_announced_break_is_allowed_once(wire: Wire) -> None:
    wire.send("a", "b")
    wire.send("summary", announced="compaction;decision=d1")
    wire.send("summary", "c")
    assert wire.violations() == []
    assert wire.state.requests[1].breaks == (Announced("compaction", "d1"),)
    wire.send("other")
    assert len(wire.violations()) == 1


def test_a_break_announced_beside_the_wire_is_for_the_next_request_of_its_session(wire: Wire) -> None:
    for session in ("s", "t"):
        wire.send("a", session=session)
    wire.state.announcements.add(Announced("undo"), "t")
    wire.send("b", session="s")
    wire.send("b", session="t")
    assert [violation.session for violation in wire.violations()] == ["s"]


def test_break_records_of_the_program_are_followed(wire: Wire) -> None:
    records: list[Any] = [{"reason": "old"}]
    wire.state.announcements.follow(lambda: records, None)
    wire.send("a")
    records.append(Announced("clearing"))
    wire.send("b")
    wire.send("b", "c")
    assert wire.violations() == []
    assert [[record.reason for record in received.breaks] for received in wire.state.requests] == [["old"], ["clearing"], []]


def test_more_breaks_than_decisions_is_a_violation(wire: Wire) -> None:
    made = 1
    wire.state.announcements.follow_decisions(lambda: made)
    wire.send("a")
    wire.send("b", announced="clearing")
    assert wire.violations() == []
    wire.send("c", announced="clearing")
    assert "2 announced breaks, but the layers made only 1 decision" in wire.violations()[0].sentence


def test_the_fork_of_a_decision_may_announce_its_break_too(wire: Wire) -> None:
    wire.state.announcements.follow_decisions(lambda: 1)
    wire.send("a", "b")
    wire.send("a without images", fork="summary-1", announced="compaction")
    wire.send("the summary", announced="compaction")
    assert wire.violations() == []


def test_two_breaks_for_one_decision_is_a_violation(wire: Wire) -> None:
    wire.send("a")
    wire.send("b", announced="clearing;decision=d1")
    wire.send("c", announced="clearing;decision=d1")
    assert "but request 1 already did" in wire.violations()[0].sentence


@pytest.mark.spec("A1")
def test_a_fork_shares_its_parent_s_prefix_and_leaves_the_parent_alone(wire: Wire) -> None:
    wire.send("a", "b")
    wire.send("a", "b", "directive", fork="f")
    wire.send("a", "b", "directive", "result", fork="f")
    wire.send("a", "b", "c")
    wire.send("a", "b", "late directive", fork="g")
    assert wire.violations() == []


@pytest.mark.spec("A1")
@pytest.mark.parametrize("betas", ["", "other-beta"])
def test_a_fork_with_another_prefix_or_other_settings_is_a_violation(betas: str, wire: Wire) -> None:
    wire.send("a", "b", betas="one-beta")
    if betas:
        wire.send("a", "b", "directive", fork="f", betas=betas)
        assert "is a fork of request 0, but betas was ('one-beta',)" in wire.violations()[0].sentence
    else:
        wire.send("a", "B", "directive", fork="f", betas="one-beta")
        assert (
            "is a fork that extends no request: compared with request 0, messages.0.content.1 was"
            in wire.violations()[0].sentence
        )


def test_a_fork_that_says_it_breaks_is_let_go(wire: Wire) -> None:
    wire.send("a", "b")
    wire.send("x", fork="f", announced="options")
    wire.send("x", "y", fork="f")
    assert wire.violations() == []


def test_a_refused_request_is_no_predecessor_and_its_announcement_is_kept(wire: Wire) -> None:
    wire.send("a", "b")
    wire.send("a", "b", "", announced="repair")
    assert wire.state.requests[-1].refused
    wire.send("repaired")
    assert wire.violations() == []


def test_a_request_that_met_an_overloaded_server_is_one(wire: Wire) -> None:
    wire.send("a")
    wire.state.script.add(Status(status=529))
    wire.send("a", "b")
    wire.send("a", "c")
    assert [violation.request for violation in wire.violations()] == [2]


def test_counting_is_no_request_of_the_conversation(wire: Wire) -> None:
    wire.send("a", "b")
    wire.send("x", path="/v1/messages/count_tokens")
    wire.send("a", "b", "c")
    assert wire.violations() == []


def test_chat_requests_keep_the_rule_too(wire: Wire) -> None:
    wire.send("a", path="/v1/chat/completions")
    wire.send("a", "b", path="/v1/chat/completions")
    wire.send("A", "b", "c", path="/v1/chat/completions")
    (violation,) = wire.violations()
    assert "messages.0 was user" in violation.sentence


def test_conversations_without_a_name_are_told_apart_by_their_first_words(wire: Wire) -> None:
    wire.send("a", session="")
    wire.send("other", session="")
    wire.send("a", "b", session="")
    assert wire.violations() == []
    wire.send("a", "B", "c", session="")
    assert len(wire.violations()) == 1
