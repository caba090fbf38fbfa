"""Old answers are shortened where clearing results is not enough: the inputs of calls, and long texts of the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.session.plain import Session

from lamina.core.records import Clear
from lamina.layers.l4_compact.plan import Pivot
from lamina.session.base import working

from .clearing import WINDOW, opened, quiet
from .words import EXPAND, Wire, answer, extends, reasons, refused

WRITE: Wire = {"name": "Write", "description": "Writes a file.", "input_schema": {"type": "object"}}
# About 45 KB at a full window; everything shrinks to a quarter here.
BODY = "a line of a new file, with nothing special in it\n" * 300


def write(session: Session, number: int, *, tool: str = "Write", failed: bool = False) -> Wire:
    """The model writes a file, and the request after that."""
    given = {"file_path": f"/w/src/f{number}.py", "content": f"number {number}\n{BODY}"}
    use = {"type": "tool_use", "id": f"w{number}", "name": tool, "input": given}
    session.after_call(
        answer(f"m{number}", use, usage={"input_tokens": max(1, session.window_state.tokens), "output_tokens": 3_700})
    )
    session.add_tool_result(f"w{number}", "Disk full." if failed else "Written.", is_error=failed)
    return session.before_call()


def begun(home: Path, **options: Any) -> Session:
    session = opened(home, tools=[WRITE, EXPAND], **options)
    session.add_user("Write all the files.")
    session.before_call()
    return session


def inputs(request: Wire) -> dict[str, Wire]:
    return {
        block["id"]: block["input"]
        for message in request["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_use"
    }


def clears(session: Session) -> list[Clear]:
    with working(session) as c:
        return [record for record in c.store.read() if isinstance(record, Clear)]


@pytest.mark.spec("M2", "B1")
@pytest.mark.parametrize("in_memory", [False, True])
def test_many_writes_do_not_fill_the_window(tmp_path: Path, in_memory: bool) -> None:
    with begun(tmp_path, in_memory=in_memory) as session:
        requests = [write(session, number) for number in range(14)]
        assert session.window_state.tokens < WINDOW * 3 // 4, "14 files of 15 KB, in a window of 60,000 tokens"
        last = inputs(requests[-1])
        assert [given["file_path"] for given in last.values()] == [f"/w/src/f{number}.py" for number in range(14)]
        assert last["w0"]["content"].startswith("number 0\na line")
        assert "characters were cleared from this input" in last["w0"]["content"]
        assert "The file has them" in last["w0"]["content"]
        assert all(BODY in last[f"w{number}"]["content"] for number in (11, 12, 13)), "the last three stay"
        assert refused(requests[-1]) == []


@pytest.mark.spec("K3", "M2")
def test_the_break_is_announced_and_the_prefix_is_stable_again(tmp_path: Path) -> None:
    with begun(tmp_path) as session:
        requests = [write(session, number) for number in range(12)]
        broken = [at for at in range(1, 12) if not extends(requests[at - 1], requests[at])]
        assert len(broken) == len(clears(session)) >= 1
        assert set(reasons(session.path)) == {"clearing"}
        assert len(reasons(session.path)) == len(broken)


@pytest.mark.spec("B1")
def test_the_receipt_names_every_record_and_expand_shows_the_original(tmp_path: Path) -> None:
    with begun(tmp_path) as session:
        last = session.before_call()
        while not clears(session):
            last = write(session, len(inputs(last)))
        [made] = clears(session)
        assert made.tokens_saved > 4_000
        assert made.uuid[:8] in inputs(last)["w0"]["content"]
        assert session.expand(made.uuid[:8]).text.count(BODY.splitlines()[0]) > 200
        with working(session) as c:
            events = [c.log.events["clearing"].data]
        assert events[0]["answers"] == list(made.shortened)


@pytest.mark.spec("B1", "M7")
def test_an_undo_shows_the_answers_again_and_they_are_never_shortened_again(tmp_path: Path) -> None:
    with begun(tmp_path) as session:
        before = last = session.before_call()
        while not clears(session):
            before, last = last, write(session, len(inputs(last)))
        undone = session.undo()
        assert undone.kind == "clearing"
        request = session.before_call()
        assert extends(before, request)
        shown = set(clears(session)[0].shortened)
        for number in range(len(inputs(last)), len(inputs(last)) + 3):
            write(session, number)
        assert all(shown.isdisjoint(one.shortened) for one in clears(session)[1:])


@pytest.mark.spec("B1")
def test_a_resumed_session_sends_the_same_bytes(tmp_path: Path) -> None:
    with begun(tmp_path) as session:
        last = [write(session, number) for number in range(12)][-1]
        name = session.id
    with opened(tmp_path, tools=None, resume=name) as session:
        assert session.before_call()["messages"] == last["messages"]


@pytest.mark.spec("C5", "B1")
def test_shortened_answers_that_a_compaction_keeps_stay_short_after_a_resume(tmp_path: Path) -> None:
    with begun(tmp_path) as session:
        for number in range(12):
            write(session, number)
        session.add_user("And the rest?")
        with working(session) as c:
            kept = [item.uuid for item in c.log.view.items if item.role == "assistant"][3]
        done = session.compact(pivot=Pivot("up_to", kept))
        assert done.done, done.why
        before = session.before_call()
        assert "characters were cleared from this input" in str(inputs(before)["w3"])
        name = session.id
    with opened(tmp_path, tools=None, resume=name) as session:
        assert session.before_call()["messages"] == before["messages"]


def test_a_failed_write_is_not_said_to_be_in_its_file(tmp_path: Path) -> None:
    with begun(tmp_path) as session:
        write(session, 0, failed=True)
        last = [write(session, number) for number in range(1, 12)][-1]
        assert "The file has them" not in inputs(last)["w0"]["content"]
        assert "The file has them" in inputs(last)["w1"]["content"]


def test_long_texts_of_the_model_are_shortened_too(tmp_path: Path) -> None:
    with begun(tmp_path) as session:
        for number in range(14):
            words = {"type": "text", "text": f"Explanation {number}. {BODY}"}
            session.after_call(
                answer(f"m{number}", words, usage={"input_tokens": session.window_state.tokens, "output_tokens": 3_700})
            )
            session.add_user(f"Go on {number}.")
            session.before_call()
        text = str(session.messages)
        assert "Explanation 0. a line" in text
        assert "characters were cleared from this text" in text
        assert session.window_state.tokens < WINDOW * 3 // 4


@pytest.mark.parametrize("tool", ["mcp__files__write", "TodoWrite"])
def test_inputs_of_other_tools_stay(tmp_path: Path, tool: str) -> None:
    with begun(tmp_path) as session:
        last = [write(session, number, tool=tool) for number in range(10)][-1]
        assert clears(session) == []
        assert all(BODY in given["content"] for given in inputs(last).values())


def test_nothing_is_shortened_if_size_clearing_is_off(tmp_path: Path) -> None:
    with begun(tmp_path, settings=quiet(size_clearing=False)) as session:
        for number in range(10):
            write(session, number)
        assert clears(session) == []
