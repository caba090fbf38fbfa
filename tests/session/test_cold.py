"""What leaves when the cache has expired, against a server with a prompt cache: costs, receipts, undo, resume, odd clocks."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.session.plain import Session

from lamina.conversation import revision
from lamina.conversation.cache_life import CacheLife, is_cold
from lamina.conversation.forks import ended, hand_over, side
from lamina.core.effects import drive
from lamina.core.policy import BALANCED, CLASSIC, CachePolicy, ColdPolicy, Policy
from lamina.core.records import Break
from lamina.fork.fork import run_fork
from lamina.history.explanation import explain
from lamina.providers import Capabilities
from lamina.providers.anthropic import AnthropicProvider
from lamina.session.base import conversation_of
from lamina.testing import MessagesServer
from lamina.testing.received_request import Received
from lamina.testing.script import Step, make_answer

from .clearing import LONG, READ, TODO, cleared, clearings, connected, events, fates, quiet, shown
from .compacting import SUMMARY, is_summary
from .words import Wire, answer, extends, reasons, records, refused

COLD = replace(CLASSIC, cold=ColdPolicy(clear=True, repeated=True))
AUTO = replace(COLD, cache=CachePolicy(ttl="auto"))
WRITE: Wire = {"name": "Write", "description": "Writes a file.", "input_schema": {"type": "object"}}
ABLE = Capabilities("messages", cache_marks=True, cache_ttl_1h=True, thinking=True)
TEXT = "value = 1\n" * 60
CALLS = 12
BEGAN = datetime(2026, 3, 1, 9, tzinfo=UTC)


def result(call: str) -> str:
    """A long result, and another one for each call."""
    return f"{call}\n{LONG}"


class Working:
    """A session and its server, whose clocks go together."""

    def __init__(self, server: MessagesServer, home: Path, policy: Policy = COLD, **options: Any) -> None:
        self.server, self.home, self.now = server, home, BEGAN
        server.answer_with(self.decide)
        options = {"policy": policy, "window": 200_000, "tools": [READ, WRITE, TODO], "capabilities": ABLE, **options}
        self.session = self.at_this_time(connected(server, home, **options))

    def at_this_time(self, session: Session) -> Session:
        conversation_of(session).use_clock(lambda: self.now.isoformat())
        return session

    def decide(self, received: Received) -> Step:
        done = sum(message["role"] == "assistant" for message in received.messages)
        if done % (CALLS + 1) == CALLS:
            return make_answer(text="done")
        name, given = (
            ("Write", {"file_path": f"{done}.py", "content": TEXT}) if done % 2 else ("Read", {"file_path": f"{done}.py"})
        )
        return make_answer(thinking=f"Step {done}.", tool_use=[(name, given, f"toolu_{done:04}")])

    def turn(self, words: str = "Go on.") -> Wire:
        """Run one turn of twelve calls. Return its first request."""
        self.session.add_user(words)
        before = len(self.server.requests)
        while calls := self.session.ask().tool_uses:
            for use in calls:
                self.session.add_tool_result(use.id, result(use.id))
        return self.server.requests[before].body

    def wait(self, **time: float) -> None:
        self.now += timedelta(**time)
        self.server.clock.advance(timedelta(**time).total_seconds())  # type: ignore[attr-defined]  # the server's own clock


@pytest.fixture
def work(messages_server: MessagesServer, tmp_path: Path) -> Working:
    working = Working(messages_server, tmp_path)
    working.turn()
    return working


def inputs(request: Wire) -> list[Wire]:
    blocks = (block for message in request["messages"] for block in message["content"])
    return [block["input"] for block in blocks if block["type"] == "tool_use" and block["name"] == "Write"]


def thoughts(request: Wire) -> int:
    return sum(block["type"] == "thinking" for message in request["messages"] for block in message["content"])


@pytest.mark.spec("P2", "K3", "B1")
def test_after_the_lifetime_of_the_cache_old_results_inputs_and_thinking_leave(work: Working) -> None:
    work.turn()
    before = work.server.requests[-1].body
    assert (len(inputs(before)), thoughts(before)) == (12, 24)
    work.wait(minutes=5, seconds=1)
    request = work.turn()
    session, (decision,) = work.session, clearings(work.session.path)
    assert decision.trigger == "cold"
    assert set(cleared(request)) == set(decision.markers)
    kept = [call for call, content in shown(request).items() if content == result(call)]
    # Calls 14 to 24 are of the second turn. Its last five results, and the Reads among its last ten answers, stay.
    assert kept == [f"toolu_{number:04}" for number in (16, 18, 20, 21, 22, 23, 24)]
    assert [given["content"] == TEXT for given in inputs(request)] == [False] * 4 + [True] * 8
    assert [given["file_path"] for given in inputs(request)] == [given["file_path"] for given in inputs(before)]
    assert thoughts(request) == 2, "of the last three answers, of which the last has none"
    assert refused(request) == []
    assert reasons(session.path) == ["clearing"]
    for call in decision.markers:
        assert (session.path.with_suffix("") / "tool-results" / f"{call}.txt").read_text() == result(call)  # type: ignore[union-attr]
    told = fates(session.path, decision)
    assert sum(fate.fate == "cleared" for fate in told.values()) == len(decision.markers) + len(decision.shortened)
    (event,) = events(session.path, "clearing")
    assert (event["trigger"], event["tokens_saved"]) == ("cold", decision.tokens_saved)
    use = work.server.requests[-13].use
    assert use is not None
    assert use.read == 0, "the cache was cold indeed"


@pytest.mark.spec("P2", "P3")
def test_an_answer_that_no_model_gave_keeps_no_cache_warm_and_counts_as_no_look_at_a_result(work: Working) -> None:
    work.wait(hours=3)
    work.session.add_user("Are you there?")
    work.session.after_call({**answer("m", "No response requested."), "model": "<synthetic>", "usage": None})
    conversation = conversation_of(work.session)
    assert is_cold(conversation)
    assert not conversation.log.view.items[-1].complete
    path = work.session.path
    work.session.close()
    resumed = work.at_this_time(connected(work.server, work.home, policy=COLD, window=200_000, resume=path, capabilities=ABLE))
    assert is_cold(conversation_of(resumed))
    resumed.close()


@pytest.mark.spec("P2")
def test_a_warm_cache_and_a_policy_without_it_clear_nothing(
    work: Working, make_messages_server: Callable[..., MessagesServer], tmp_path: Path
) -> None:
    work.wait(minutes=4, seconds=59)
    assert not cleared(work.turn())
    classic = Working(make_messages_server(), tmp_path / "classic", CLASSIC)
    classic.turn()
    classic.wait(hours=3)
    assert not cleared(classic.turn())


@pytest.mark.spec("P2", "B1")
def test_an_undo_after_a_cold_clearing_brings_all_back_and_nothing_of_it_leaves_again(work: Working) -> None:
    whole = [block for message in work.server.requests[-1].body["messages"] for block in message["content"]]
    work.wait(hours=1)
    work.turn()
    (decision,) = clearings(work.session.path)
    revision.undo(conversation_of(work.session), decision.uuid)
    work.session.add_user("Again.")
    request = work.session.before_call()
    again = [block for message in request["messages"] for block in message["content"]]
    assert [_plain(block) for block in again[: len(whole)]] == [_plain(block) for block in whole]
    assert reasons(work.session.path) == ["clearing", "undo"]
    work.wait(hours=1)
    later = work.session.before_call()
    assert not set(cleared(later)) & set(decision.markers)
    again_cleared = clearings(work.session.path)[-1]
    assert again_cleared is not decision
    assert not set(again_cleared.shortened) & set(decision.shortened)


def _plain(block: Wire) -> Wire:
    return {key: value for key, value in block.items() if key != "cache_control"}


@pytest.mark.spec("P2", "R4")
def test_a_resumed_session_knows_how_old_its_cache_is_and_repeats_what_it_cleared(work: Working) -> None:
    work.wait(minutes=6)
    last = work.turn()
    path = work.session.path
    work.session.close()
    for minutes, cold in ((4, False), (3, True)):
        work.wait(minutes=minutes)
        resumed = work.at_this_time(
            connected(work.server, work.home, policy=COLD, window=200_000, resume=path, capabilities=ABLE)
        )
        assert is_cold(conversation_of(resumed)) is cold
        resumed.add_user("And now?")
        request = resumed.before_call()
        assert set(cleared(request)) >= set(cleared(last))
        assert (len(clearings(resumed.path)) == 2) is cold
        resumed.close()


@pytest.mark.spec("P2")
@pytest.mark.parametrize("time", ["2026-02-01T09:00:00+00:00", "no time at all", ""])
def test_a_clock_that_went_back_or_says_nothing_is_warm(work: Working, time: str) -> None:
    work.wait(hours=2)
    conversation_of(work.session).use_clock(lambda: time)
    work.session.add_user("Go on.")
    assert not cleared(work.session.before_call())


@pytest.mark.spec("P2")
@pytest.mark.parametrize(
    ("usage", "cold"),
    [
        pytest.param({"input_tokens": 9_000, "output_tokens": 9}, False, id="no cache"),
        pytest.param({"input_tokens": 9, "cache_creation_input_tokens": 9_000, "output_tokens": 9}, True, id="five minutes"),
        pytest.param(
            {
                "input_tokens": 9,
                "cache_creation_input_tokens": 9_000,
                "cache_creation": {"ephemeral_1h_input_tokens": 9_000},
                "output_tokens": 9,
            },
            False,
            id="the client asked for an hour",
        ),
        pytest.param(None, True, id="no usage"),
    ],
)
def test_the_answer_says_how_long_its_entry_lives(tmp_path: Path, usage: Wire | None, cold: bool) -> None:
    with Session("anthropic:a-model", home=tmp_path, cwd=tmp_path, policy=COLD, settings=quiet(), tools=[READ]) as session:
        c, now = conversation_of(session), [BEGAN]
        c.use_clock(lambda: now[0].isoformat())
        session.add_user("Go.")
        session.before_call()
        is_cold(c)
        session.after_call({**answer("m1", "Done."), "usage": usage})
        now[0] += timedelta(minutes=30)
        assert is_cold(c) is cold
        now[0] += timedelta(minutes=31)
        assert is_cold(c) is (cold or (usage is not None and "cache_creation" in usage))


@pytest.mark.spec("P2")
def test_an_automatic_cache_lives_as_long_as_the_policy_says_once_it_has_shown_itself(tmp_path: Path) -> None:
    policy = replace(COLD, cache=CachePolicy(automatic_seconds=600))
    with Session("openai:gpt-5", home=tmp_path, cwd=tmp_path, policy=policy, settings=quiet()) as session:
        c, now = conversation_of(session), [BEGAN]
        c.use_clock(lambda: now[0].isoformat())
        for read, cold in ((0, False), (2_000, True)):
            session.add_user("Go.")
            session.before_call()
            details = {"cached_tokens": read}
            usage = {"prompt_tokens": 3_000, "completion_tokens": 5, "prompt_tokens_details": details}
            message = {"role": "assistant", "content": "Done."}
            session.after_call({"id": f"m{read}", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})
            now[0] += timedelta(seconds=599)
            assert not is_cold(c)
            now[0] += timedelta(seconds=1)
            assert is_cold(c) is cold


@pytest.mark.spec("P2")
def test_a_switch_of_the_model_is_announced_and_clears_nothing_by_itself(work: Working) -> None:
    other = AnthropicProvider("claude-opus-4-1", base_url=work.server.url, api_key="key", capabilities=ABLE)
    work.session.switch_model(other)
    request = work.turn()
    assert not cleared(request)
    assert reasons(work.session.path) == ["model"]
    other.close()


@pytest.mark.spec("P2")
def test_the_report_of_a_call_names_the_cold_clearing(work: Working) -> None:
    work.turn()
    work.wait(minutes=10)
    work.turn()
    found = explain(records(work.session.path), 2 * (CALLS + 1) + 1, lambda block: 1)
    (decision,) = clearings(work.session.path)
    why = [piece.why for piece in found.pieces]
    assert why.count(f"cleared (cold) by {decision.uuid[:8]}") == len(decision.markers)
    assert why.count(f"written by the model; shortened (cold) by {decision.uuid[:8]}") == 4
    assert found.breaks == ("clearing",)


@pytest.mark.spec("P5")
def test_a_file_read_again_leaves_with_the_next_compaction_and_breaks_nothing_of_its_own(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    policy = replace(COLD, compact=replace(CLASSIC.compact, tail_min=3_000, tail_max=4_000))

    def decide(received: Received) -> Step:
        if is_summary(received):
            return make_answer(text=SUMMARY)
        return make_answer(tool_use=[("Read", {"file_path": "same.py"}, f"toolu_{len(messages_server.requests):04}")])

    work = Working(messages_server, tmp_path, policy)
    messages_server.answer_with(decide)
    work.session.add_user("Read it over and over.")
    for _ in range(8):
        reply = work.session.ask()
        work.session.add_tool_result(reply.tool_uses[0].id, LONG)
    assert not clearings(work.session.path), "while the cache is warm they stay"
    assert work.session.compact().boundary
    request = work.session.before_call()
    seen = shown(request)
    assert len(seen) > 1
    assert [content == LONG for content in seen.values()] == [False] * (len(seen) - 1) + [True]
    assert [one.trigger for one in clearings(work.session.path)] == ["repeated"]
    assert [one.reason for one in records(work.session.path) if isinstance(one, Break)] == ["compaction"]


@pytest.mark.spec("P6")
def test_the_evidence_survives_a_compaction_and_a_resume(messages_server: MessagesServer, tmp_path: Path) -> None:
    work = Working(messages_server, tmp_path, AUTO)
    messages_server.answer_with(lambda received: make_answer(text=SUMMARY if is_summary(received) else "Yes. " * 500))
    for _ in range(3):
        work.session.add_user("Is it?")
        work.session.ask()
        work.wait(minutes=20)
    assert work.session.compact().boundary
    work.session.add_user("Is it now?")
    work.session.ask()
    seen = conversation_of(work.session).layer_state(CacheLife).seen
    assert (seen.answers, seen.pauses) == (4, 3)
    path = work.session.path
    work.session.close()
    resumed = work.at_this_time(connected(work.server, work.home, policy=AUTO, window=200_000, resume=path, capabilities=ABLE))
    is_cold(conversation_of(resumed))
    assert conversation_of(resumed).layer_state(CacheLife).seen == seen
    resumed.close()


@pytest.mark.spec("P6")
def test_the_lifetime_follows_the_evidence_and_each_change_is_recorded(messages_server: MessagesServer, tmp_path: Path) -> None:
    work = Working(messages_server, tmp_path, AUTO)
    messages_server.answer_with(lambda received: make_answer(text="Yes."))
    for pause in (0, 1, 1, 20, 1, 1):
        work.wait(minutes=pause)
        work.session.add_user("Is it? " * (1 if work.server.requests else 9_000))
        work.session.ask()
    used = ["1h" if marks_of(received.body) == {"1h"} else "5m" for received in work.server.requests]
    assert used == ["5m"] * 4 + ["1h"] * 2, "the request behind the pause is all new"
    changes = events(work.session.path, "cache_ttl")
    assert [one["ttl"] for one in changes] == ["5m", "1h"]
    assert (changes[1]["pauses"], changes[1]["answers"]) == (1, 4)
    assert all(refused(received.body) == [] for received in work.server.requests)
    work.wait(minutes=40)
    work.session.add_user("And now?")
    work.session.ask()
    use = work.server.requests[-1].use
    assert use is not None
    assert use.read > 10_000
    assert reasons(work.session.path) == [], "marks are not part of the prefix"


def marks_of(request: Wire) -> set[str | None]:
    return {mark.get("ttl") for mark in _marks(request)}


def _marks(request: Wire) -> list[Wire]:
    blocks = [*request["tools"], *request["system"], *(block for message in request["messages"] for block in message["content"])]
    return [block["cache_control"] for block in blocks if "cache_control" in block]


@pytest.mark.spec("P6")
@pytest.mark.parametrize("given", [{"cache_ttl": "1h"}, {"policy": replace(COLD, cache=CachePolicy(ttl="1h"))}])
def test_a_setting_or_an_argument_fixes_the_lifetime(messages_server: MessagesServer, tmp_path: Path, given: Wire) -> None:
    work = Working(messages_server, tmp_path, **{"policy": AUTO, **given})
    work.turn()
    assert {mark for received in messages_server.requests for mark in marks_of(received.body)} == {"1h"}
    work.wait(minutes=59)
    assert not cleared(work.turn())
    work.wait(minutes=61)
    assert cleared(work.turn())


@pytest.mark.spec("P6", "P2")
def test_keep_alive_requests_are_sent_at_most_as_often_as_allowed_and_renew_the_cache(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    policy = replace(COLD, cache=CachePolicy(keep_alive=2, keep_alive_seconds=0))
    work = Working(messages_server, tmp_path, policy)
    messages_server.answer_with(lambda received: make_answer(text="ok"))
    work.session.add_user("Hello. " * 2_000)
    assert not is_cold(conversation_of(work.session))
    work.session.ask()
    background = conversation_of(work.session).background
    assert background.wait("keep_alive", 60)
    main, *alive = messages_server.requests
    assert [received.headers["x-lamina-fork"].split("-")[0] for received in alive] == ["keep_alive"] * 2
    assert all(received.use is not None and received.use.read > 3_000 for received in alive)
    assert all(received.body["max_tokens"] < 10 for received in alive)
    work.wait(minutes=4)
    work.session.add_user("Still there?")
    work.session.before_call()
    assert [one["purpose"] for one in events(work.session.path, "fork")] == ["keep_alive"] * 2
    assert work.session.status.cache_breaks == 0
    work.session.close()
    assert extends(main.body, alive[-1].body)


@pytest.mark.spec("P2")
def test_a_fork_renews_the_cache_when_it_answered_and_not_when_its_result_was_taken(work: Working) -> None:
    c = conversation_of(work.session)
    assert not is_cold(c)
    handed = hand_over(c)
    work.wait(minutes=4)
    outcome = drive(run_fork(replace(handed, handed_at=work.now.isoformat()), "Say it.", purpose="notes"), side(c))
    work.wait(minutes=4)
    ended(c, "notes", outcome, 60.0)
    assert not is_cold(c), "four minutes after the fork's answer"
    assert events(work.session.path, "fork")[-1]["answered_at"] == (work.now - timedelta(minutes=3)).isoformat()
    work.wait(minutes=2)
    assert is_cold(c)
    path = work.session.path
    work.session.close()
    work.now -= timedelta(minutes=1)
    resumed = work.at_this_time(connected(work.server, work.home, policy=COLD, window=200_000, resume=path, capabilities=ABLE))
    assert not is_cold(conversation_of(resumed))
    resumed.close()


@pytest.mark.spec("P1")
def test_balanced_clears_when_cold_and_chooses_the_lifetime_itself() -> None:
    assert (BALANCED.cold.clear, BALANCED.cold.repeated, BALANCED.cache.ttl) == (True, True, "auto")
    assert (CLASSIC.cold.clear, CLASSIC.cold.repeated, CLASSIC.cache.ttl) == (False, False, "5m")
