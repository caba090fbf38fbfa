"""A layer that fails steps aside, whatever it raises: an event with the traceback, one notice, and off after three failures."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.session.plain import AsyncSession, Session

import lamina
from lamina.conversation.isolate import STRICT
from lamina.core.errors import InputError, WindowFull
from lamina.core.records import Event
from lamina.core.settings import Settings
from lamina.layers.l1_results import step as results
from lamina.layers.l2_micro import step as micro
from lamina.layers.l4_compact import step as compact
from lamina.layers.l5_extract import step as extract
from lamina.layers.l6_dream import trigger as dream_trigger
from lamina.layers.recall import state as recall
from lamina.prompt import instructions
from lamina.session import memory_binding, own_tools, reminders
from lamina.session.base import conversation_of

from .play import turns
from .words import READ, answer, call, said, unmarked


@pytest.fixture(autouse=True)
def steps_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in production. The suite's own switch lets unexpected exceptions through."""
    monkeypatch.delenv(STRICT)


class Fault:
    """A function that raises what no one expects, and counts its calls."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error or KeyError("nowhere")
        self.calls = 0

    def __call__(self, *_: Any, **__: Any) -> Any:
        self.calls += 1
        raise self.error


def failures(session: lamina.Session) -> list[dict[str, Any]]:
    records = conversation_of(session).store.read()
    return [record.data for record in records if isinstance(record, Event) and record.name == "layer_failed"]


@pytest.mark.spec("H10")
@pytest.mark.parametrize(
    "error", [KeyError("nowhere"), ValueError("x"), RecursionError(), OSError(5, "gone"), AssertionError(), MemoryError()]
)
def test_whatever_a_layer_raises_the_request_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    fault = Fault(error)
    monkeypatch.setattr(micro, "clear", fault)
    with Session("offline", home=tmp_path) as session:
        requests = turns(session, *"abcde")
        assert said(requests[-1]["messages"])[-1] == "e"
        assert fault.calls == 3, "the layer is off after three failures"
        assert [event["layer"] for event in failures(session)] == ["l2_micro"] * 3
        assert type(error).__name__ in failures(session)[0]["why"]
        assert "Traceback" in failures(session)[0]["traceback"]
        [notice] = [notice for notice in session.notices if "clearing" in notice]
        assert type(error).__name__ in notice
        assert "three failures" in notice


@pytest.mark.spec("H10")
@pytest.mark.parametrize(
    ("module", "name", "layer"),
    [
        (results, "settle", "l1_results"),
        (micro, "clear", "l2_micro"),
        (micro, "with_edits", "l2_micro"),
        (micro, "confirmed", "l2_micro"),
        (recall, "may_bring", "recall"),
        (recall, "leave_selection", "recall"),
    ],
)
def test_no_layer_stops_a_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, name: str, layer: str) -> None:
    import lamina.turn

    monkeypatch.setattr(module, name, Fault())
    if hasattr(lamina.turn, name):
        monkeypatch.setattr(lamina.turn, name, Fault())
    with Session("offline", home=tmp_path) as session:
        turns(session, "a", "about a")
        session.end_turn()
        assert {event["layer"] for event in failures(session)} == {layer}


@pytest.mark.spec("H10")
def test_a_result_is_kept_whole_if_its_layer_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "arriving", Fault())
    with Session("offline", home=tmp_path, tools=[READ]) as session:
        session.add_user("a")
        session.before_call()
        session.after_call(answer("m1", call("c1")))
        session.add_tool_result("c1", "the whole result")
        assert "the whole result" in str(session.before_call()["messages"][-1])


class Pipe:
    """A stream that can be read once."""

    def __init__(self, text: str) -> None:
        self._left = text.encode()

    def read(self, size: int, /) -> bytes:
        part, self._left = self._left[:size], self._left[size:]
        return part


@pytest.mark.spec("H10")
@pytest.mark.parametrize("kind", [str, str.encode, Pipe])
@pytest.mark.parametrize("name", ["_budget", "read_small", "tape_of", "is_json", "Spilling"])
def test_a_large_result_is_kept_whole_if_its_layer_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: Any
) -> None:
    text = "The first line.\n" + "a line of output\n" * 4_000 + "The last line."
    with Session("offline", home=tmp_path, tools=[READ]) as session:
        session.add_user("a")
        for number in range(5):
            session.before_call()
            session.after_call(answer(f"m{number}", call(f"c{number}")))
            with monkeypatch.context() as patched:
                patched.setattr(results, name, Fault())
                session.add_tool_result(f"c{number}", kind(text))
        shown = [block for block in session.messages[-1]["content"] if block["type"] == "tool_result"]
        assert [block["content"] for block in shown] == [text]
        assert {event["layer"] for event in failures(session)} == {"l1_results"}


def test_a_stream_that_cannot_be_read_is_still_the_callers_error(tmp_path: Path) -> None:
    class Closed:
        def read(self, size: int, /) -> bytes:
            raise ValueError("closed")

    with Session("offline", home=tmp_path, tools=[READ]) as session:
        session.add_user("a")
        session.before_call()
        session.after_call(answer("m1", call("c1")))
        with pytest.raises(InputError, match="reading its stream failed"):
            session.add_tool_result("c1", Closed())
        assert failures(session) == []


@pytest.mark.spec("H10")
def test_a_compaction_that_fails_leaves_the_window_to_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = Fault()
    monkeypatch.setattr(compact, "if_needed", fault)
    monkeypatch.setattr(compact, "will_help", fault)

    def fill(session: Session) -> None:
        for number in range(60):
            session.add_user(f"message {number} " + "word " * 400)
            session.before_call()

    with Session("offline", home=tmp_path, window=20_000) as session:
        with pytest.raises(WindowFull):
            fill(session)
        assert fault.calls <= 3
        assert session.compact().boundary, "a compaction by hand still works"
        turns(session, "Go on.")


@pytest.mark.spec("H10")
def test_an_async_session_steps_aside_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(micro, "clear", Fault())

    async def main() -> None:
        async with AsyncSession("offline", home=tmp_path) as session:
            session.add_user("a")
            assert said((await session.before_call())["messages"]) == ["a"]

    asyncio.run(main())


PARTS: dict[str, tuple[Any, str, str]] = {
    "the place of the memory": (memory_binding.MemoryBinding, "_find", "memory"),
    "the lock of dreams": (dream_trigger, "stat_lock", "l6_dream"),
    "the user's approvals": (instructions, "project_of", "instructions"),
    "the memory section": (memory_binding.MemoryBinding, "section", "memory"),
    "access to memory": (memory_binding.MemoryBinding, "access", "memory"),
    "the session's own tools": (own_tools, "own_tools", "memory"),
    "the first reminder": (reminders.Reminders, "start", "instructions"),
    "the date": (reminders.Reminders, "new_day", "instructions"),
}


@pytest.mark.spec("H10")
@pytest.mark.parametrize(("owner", "name", "layer"), PARTS.values(), ids=PARTS.keys())
def test_what_a_session_adds_by_itself_stops_no_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, layer: str
) -> None:
    monkeypatch.setattr(owner, name, Fault())
    with lamina.Session("offline", cwd=tmp_path, tools=[READ], offer_tools=True, settings=Settings()) as session:
        session.add_user("a")
        request = session.before_call()
        assert said(request["messages"])[-1] == "a"
        assert READ in unmarked(request["tools"])
        assert {event["layer"] for event in failures(session)} == {layer}


@pytest.mark.spec("H10")
def test_a_review_that_fails_is_told_once_and_off_after_three_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = Fault()
    monkeypatch.setattr(extract, "after_turn", fault)
    with lamina.Session("offline", cwd=tmp_path) as session:
        for words in "abcde":
            session.add_user(words)
            session.ask()
            session.end_turn()
        assert fault.calls == 3
        assert len([notice for notice in session.notices if "extraction" in notice]) == 1


@pytest.mark.spec("H10")
def test_a_fault_in_an_own_tool_is_an_error_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_binding.MemoryBinding, "open", Fault())
    with lamina.Session("offline", cwd=tmp_path, offer_tools=True) as session:
        session.add_user("a")
        session.before_call()
        use = {"type": "tool_use", "id": "c1", "name": "MemorySearch", "input": {"query": "x"}}
        [given] = session.after_call(answer("m1", use)).tool_uses
        assert session.answer_tool(given)
        assert session.messages[-1]["content"][0]["is_error"]


@pytest.mark.spec("H10")
def test_a_switch_for_tests_lets_unexpected_exceptions_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STRICT, "1")
    monkeypatch.setattr(micro, "clear", Fault())
    with Session("offline", home=tmp_path) as session:
        session.add_user("a")
        with pytest.raises(KeyError):
            session.before_call()
        monkeypatch.setattr(micro, "clear", Fault(OSError(5, "gone")))
        assert said(session.before_call()["messages"]) == ["a"], "a disk that fails is no fault of the code"


def test_a_transcript_that_cannot_take_the_event_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(micro, "clear", Fault())
    with Session("offline", home=tmp_path) as session:
        session.add_user("a")
        monkeypatch.setattr(conversation_of(session), "record_event", Fault())
        assert said(session.before_call()["messages"]) == ["a"]
        assert "clearing" in session.notices[-1]


def test_ctrl_c_in_a_layer_still_stops_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(micro, "clear", interrupted)
    with Session("offline", home=tmp_path) as session:
        session.add_user("a")
        with pytest.raises(KeyboardInterrupt):
            session.before_call()
        assert not failures(session)
