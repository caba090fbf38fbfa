"""Forks of a real conversation against a server with a prompt cache: the requests, the cache reads and the events."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fork.test_tool_runner import Talk
from tests.session import hosts
from tests.session.plain import Session

from lamina.conversation import forks
from lamina.core.effects import drive
from lamina.core.errors import Aborted
from lamina.core.records import Clear
from lamina.fork.fork import ForkOutcome, is_fork, run_fork
from lamina.fork.handover import PLACEHOLDER, PrefixChanged
from lamina.providers.anthropic import AnthropicProvider
from lamina.session.base import working
from lamina.testing import MessagesServer, Received

from .words import GREP, READ, Wire, call, refused

MODEL = "claude-sonnet-5-5"
LONG = "The quick brown fox jumps over the lazy dog. " * 4_000
ALMOST_ALL = 0.99


@pytest.fixture
def opened(messages_server: MessagesServer) -> Iterator[Callable[..., Session]]:
    made: list[Session] = []
    provider = AnthropicProvider(MODEL, base_url=messages_server.url, api_key="any", max_retries=0)

    def make(**given: Any) -> Session:
        made.append(Session(provider, in_memory=True, system="You are careful.", tools=[READ, GREP], **given))
        messages_server.follow(breaks=lambda: made[-1].status.cache_breaks)
        return made[-1]

    yield make
    for session in made:
        session.close()
    provider.close()


def fork(session: Session, directive: str = "Say what matters.", **given: Any) -> ForkOutcome:
    with working(session) as c:
        perform = forks.side(c, tool_runner=given.pop("tool_runner", None))
        return drive(run_fork(forks.hand_over(c), directive, purpose="notes", **given), perform)


def hit_rate(received: Received) -> float:
    use = received.use
    assert use is not None
    return use.read / use.total


def plain(request: Any) -> Any:
    """Without marks."""
    if isinstance(request, dict):
        return {key: plain(value) for key, value in request.items() if key != "cache_control"}
    return [plain(value) for value in request] if isinstance(request, list) else request


def ask(session: Session, words: str) -> None:
    session.add_user(words)
    session.ask()


@pytest.mark.spec("A1", "K1")
def test_a_fork_behind_an_answer_repeats_the_conversation_and_reads_almost_all_of_it_from_the_cache(
    opened: Callable[..., Session], messages_server: MessagesServer
) -> None:
    session = opened(options={"thinking": {"type": "enabled", "budget_tokens": 2_000}, "temperature": 1})
    ask(session, LONG)
    outcome = fork(session, max_tokens=500)
    parent, forked = messages_server.requests
    for name in ("model", "system", "tools", "thinking", "temperature"):
        assert plain(parent.body[name]) == plain(forked.body[name])
    assert plain(forked.messages[: len(parent.messages)]) == plain(parent.messages)
    assert parent.betas == forked.betas
    assert forked.body["max_tokens"] == 2_500
    assert [message["role"] for message in forked.messages] == ["user", "assistant", "user"]
    assert "Say what matters." in forked.messages[-1]["content"][0]["text"]
    assert hit_rate(forked) >= ALMOST_ALL
    assert outcome.usage.cache_read / outcome.usage.prompt == hit_rate(forked)


@pytest.mark.spec("A1", "K1")
@pytest.mark.parametrize("added", [3, 40])
def test_however_many_blocks_came_since_the_last_request_its_entry_is_hit(
    opened: Callable[..., Session], messages_server: MessagesServer, added: int
) -> None:
    session = opened()
    ask(session, LONG * 3)
    messages_server.reply(*(call(f"c{number}", path=f"{number}") for number in range(added)))
    ask(session, "read them")
    for number in range(added):
        session.add_tool_result(f"c{number}", "short")
    fork(session)
    forked = messages_server.requests[-1]
    assert refused(forked.body) == []
    assert len(forked.messages[-1]["content"]) == added + 1, "the directive is one more block of the last message"
    assert hit_rate(forked) >= ALMOST_ALL


@pytest.mark.spec("A2")
def test_open_calls_get_the_same_placeholder_and_the_conversation_goes_on_with_the_real_results(
    opened: Callable[..., Session], messages_server: MessagesServer
) -> None:
    session = opened()
    ask(session, LONG)
    messages_server.reply(call("c1", path="a"), call("c2", path="b"))
    ask(session, "read them")
    fork(session, "one thing")
    fork(session, "another thing")
    session.add_tool_result("c1", "real one")
    session.add_tool_result("c2", "real two")
    session.ask()
    one, other, after = messages_server.requests[-3:]
    assert [block.get("content") for block in one.messages[-1]["content"][:2]] == [PLACEHOLDER, PLACEHOLDER]
    assert plain(one.messages[:-1]) == plain(other.messages[:-1])
    assert plain(one.messages[-1]["content"][:-1]) == plain(other.messages[-1]["content"][:-1])
    assert "another thing" in other.messages[-1]["content"][-1]["text"]
    assert hit_rate(one) >= ALMOST_ALL
    assert hit_rate(other) >= ALMOST_ALL
    assert [block["content"] for block in after.messages[-1]["content"]] == ["real one", "real two"]
    assert hit_rate(after) >= ALMOST_ALL
    assert session.status.cache_breaks == 0


@pytest.mark.spec("K1")
def test_what_a_fork_wrote_of_the_answer_is_read_by_the_next_request_of_the_conversation(
    opened: Callable[..., Session], messages_server: MessagesServer
) -> None:
    session = opened()
    messages_server.reply(text=LONG)
    ask(session, "tell me a long story")
    fork(session)
    ask(session, "and then?")
    assert hit_rate(messages_server.requests[-1]) >= ALMOST_ALL


@pytest.mark.spec("A1", "K3")
def test_after_a_clearing_a_fork_announces_the_break_and_the_one_behind_the_next_request_reads_almost_all(
    opened: Callable[..., Session], messages_server: MessagesServer
) -> None:
    session = opened()
    ask(session, LONG)
    messages_server.reply(call("c1", path="a"))
    ask(session, "read it")
    session.add_tool_result("c1", LONG)
    session.ask()
    with working(session) as c:
        uuid, parent, time = c.head()
        c.append([Clear(uuid, parent, time, {"c1": "[cleared]"})], reason="clearing")
    fork(session)
    first = messages_server.requests[-1]
    assert first.headers["x-lamina-break"] == "clearing"
    assert session.status.cache_misses == ()
    ask(session, "go on")
    fork(session)
    assert "x-lamina-break" not in messages_server.requests[-1].headers
    assert hit_rate(messages_server.requests[-1]) >= ALMOST_ALL


@pytest.mark.spec("A1", "X6", "A3")
def test_a_fork_with_tools_works_in_rounds_each_of_which_hits_the_one_before(
    opened: Callable[..., Session], messages_server: MessagesServer, tmp_path: Path
) -> None:
    project, memory = (tmp_path / "project").resolve(), (tmp_path / "memory").resolve()
    project.mkdir()
    memory.mkdir()
    (project / "a.txt").write_text("what is there\n")
    talk = Talk(project)
    session = opened()
    ask(session, LONG)
    answers: list[dict[str, Any]] = [
        {"tool_use": [("Read", {"file_path": str(project / "a.txt")}), ("Bash", {"command": "rm a.txt"})]},
        {"tool_use": ("Write", {"file_path": str(memory / "found.md"), "content": "it is there\n"})},
        {"text": "saved"},
    ]
    for answer in answers:
        messages_server.reply(**answer, fork="notes")
    tool_runner = talk.tool_runner.restrict(abort=threading.Event(), memory_dir=memory)
    outcome = fork(session, rounds=5, tool_runner=tool_runner)
    rounds = messages_server.requests[1:]
    assert (outcome.rounds, outcome.denied, outcome.texts, outcome.done) == (3, 1, ("saved",), True)
    assert (memory / "found.md").read_text() == "it is there\n"
    assert (project / "a.txt").exists()
    assert all(hit_rate(received) >= ALMOST_ALL for received in rounds)
    assert all(is_fork(received.messages) for received in rounds)
    assert talk.context.reads.get(project / "a.txt") is None, "the parent has not read it"
    assert len({received.fork for received in rounds}) == 1
    assert refused(rounds[-1].body) == []


@pytest.mark.spec("T10")
def test_what_a_fork_used_is_told_and_counted_apart(opened: Callable[..., Session], messages_server: MessagesServer) -> None:
    session = opened()
    told: list[tuple[str, Wire]] = []
    hosts.lend(session, observer=lambda name, data: told.append((name, data)))
    ask(session, LONG)
    before = (session.window_state.tokens, session.status.usage, session.status.cost)
    outcome = fork(session)
    with working(session) as c:
        forks.ended(c, "notes", outcome, 1.5)
    assert (session.window_state.tokens, session.status.usage, session.status.cost) == before
    ((name, data),) = told
    use = messages_server.requests[-1].use
    assert use is not None
    assert name == "fork"
    assert data["hit_rate"] >= ALMOST_ALL
    assert (data["purpose"], data["rounds"], data["denied"], data["seconds"]) == ("notes", 1, 0, 1.5)
    assert (data["cache_read"], data["cache_write"], data["input"]) == (use.read, use.write_5m, use.plain)
    assert data["usd"] == session.status.side_cost.usd
    assert data["usd"] > 0
    assert session.status.side_usage == outcome.usage
    assert session.status.cache_misses == ()


@pytest.mark.spec("K2")
def test_a_fork_that_misses_the_cache_is_a_finding(opened: Callable[..., Session], messages_server: MessagesServer) -> None:
    session = opened()
    ask(session, LONG)
    messages_server.cache.clear()
    outcome = fork(session)
    with working(session) as c:
        forks.ended(c, "notes", outcome, 1.0)
    (found,) = session.status.cache_misses
    assert found.cause == "provider"


@pytest.mark.spec("A1", "K2")
def test_a_fork_whose_bytes_are_not_its_parents_is_not_sent_and_is_a_finding(
    opened: Callable[..., Session], messages_server: MessagesServer
) -> None:
    session = opened()
    ask(session, "hello")
    with working(session) as c:
        handover = forks.hand_over(c)
        handover.messages[0]["content"][0]["text"] = "somebody changed a shared dict"
        with pytest.raises(PrefixChanged) as caught:
            drive(run_fork(handover, "go", purpose="notes"), forks.side(c))
        forks.failed(c, "notes", caught.value)
    assert len(messages_server.requests) == 1
    (found,) = session.status.cache_misses
    assert found.cause == "messages"


def test_a_fork_of_a_conversation_that_was_never_sent_works(
    opened: Callable[..., Session], messages_server: MessagesServer
) -> None:
    session = opened()
    session.add_user("hello")
    assert fork(session).done
    (received,) = messages_server.requests
    assert len(received.messages) == 1


def test_a_side_whose_end_is_wished_asks_nobody(opened: Callable[..., Session], messages_server: MessagesServer) -> None:
    session = opened()
    session.add_user("hello")
    abort = threading.Event()
    abort.set()
    with working(session) as c, pytest.raises(Aborted):
        drive(run_fork(forks.hand_over(c), "go", purpose="notes"), forks.side(c).until(abort))
    assert messages_server.requests == []


# The end of a session


def test_a_session_that_is_closed_waits_for_its_background_work_and_names_what_is_not_done(
    opened: Callable[..., Session],
) -> None:
    session, stuck = opened(), threading.Event()
    with working(session) as c:
        c.background.start("stuck", lambda abort: stuck.wait(120))
    session.close(timeout=0.0)
    assert any("stuck" in notice for notice in session.notices)
    stuck.set()


def test_a_session_that_is_aborted_leaves_a_call_that_waits_for_an_answer(
    opened: Callable[..., Session], messages_server: MessagesServer
) -> None:
    session, asked, release = opened(), threading.Event(), threading.Event()

    def note(_: Received) -> bool:
        asked.set()
        return True

    messages_server.reply(text="too late", fork="notes", when=note, delay=release)
    session.add_user("hello")
    with working(session) as c:
        handover, side = forks.hand_over(c), forks.side(c)
        background = c.background
    background.start("notes", lambda abort: drive(run_fork(handover, "go", purpose="notes"), side.until(abort)))
    assert asked.wait(120)
    session.abort()
    assert background.wait("notes", 120)
    assert not release.is_set()
    (one,) = background.drain()
    assert isinstance(one.error, Aborted)
    release.set()
