"""Edits by hand: pins, hidden messages, collapses, expansion, and undo byte for byte."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.session.hosts import lend
from tests.session.plain import AsyncSession, Session
from tests.session.words import pins_of

from lamina.core.errors import InputError, UndoOrder, UsageError
from lamina.core.receipts import open_receipt, read_receipt
from lamina.core.records import Span
from lamina.core.settings import Settings
from lamina.session.base import conversation_of

from .play import turns
from .words import EXPAND, READ, answer, call


def reported(session: Session) -> dict[str, int]:
    return {"input_tokens": len(str(session.messages)) // 4, "output_tokens": 20}


def long(session: Session, count: int = 8, words: int = 60) -> None:
    for number in range(count):
        session.add_user(f"question {number}: " + "word " * words)
        session.before_call()
        asked = call(f"c{number}", path=f"/f{number}")
        session.after_call(answer(f"m{number}", f"about {number}", asked, usage=reported(session)))
        session.add_tool_result(f"c{number}", f"content of file {number} " * words)
        session.before_call()
        session.after_call(answer(f"n{number}", f"done {number}", usage=reported(session)))


def messages_of(session: Session) -> list[str]:
    return [str(message) for message in session.messages]


@pytest.mark.spec("C10", "B1")
def test_a_snip_leaves_a_marker_opens_again_and_is_undone_byte_for_byte(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, tools=[READ]) as session:
        long(session, 3)
        before = messages_of(session)
        items = list(conversation_of(session).log.view.items)
        node = session.hide_messages(items[0].uuid, items[3].uuid)
        assert "question 0" not in "".join(messages_of(session)).replace('began with "question 0', "")
        span = conversation_of(session).log.decisions[node]
        assert isinstance(span, Span)
        fates = open_receipt(read_receipt(node, span.receipt), [item.uuid for item in items])
        assert [fates[item.uuid].fate for item in items[:4]] == ["snipped"] * 4
        assert {fates[item.uuid].fate for item in items[4:]} == {"kept"}
        page = session.expand(node[:8])
        assert "content of file 0" in page.text
        assert "content of file 1" not in page.text
        session.add_user("on")
        assert session.before_call()["extra_headers"] == {"x-lamina-break": "snip"}
        session.after_call(answer("m9", "yes"))
        undone = session.undo(node[:8])
        assert (undone.id, undone.kind) == (node, "snip")
        assert messages_of(session)[: len(before)] == before


@pytest.mark.spec("C10")
def test_a_full_window_collapses_its_oldest_turns_and_does_not_compact(tmp_path: Path) -> None:
    settings = Settings(collapse=True)
    with Session("offline", home=tmp_path, tools=[READ, EXPAND], window=8_000, settings=settings) as session:
        told: list[str] = []
        lend(session, observer=lambda name, data: told.append(name))
        for number in range(40):
            session.add_user(f"question {number}: " + "word " * 150)
            session.before_call()
            session.after_call(answer(f"m{number}", f"done {number} " * 20, usage=reported(session)))
        assert "collapse" in told
        assert "compaction" not in told
        decisions = conversation_of(session).log.decisions.values()
        assert {decision.kind for decision in decisions if isinstance(decision, Span)} == {"collapse"}
        assert session.window_state.tokens < conversation_of(session).limits.blocking
        folded = next(message for message in session.messages if "Expand" in str(message))
        assert "question 0" in str(folded)
        node = next(iter(conversation_of(session).log.decisions))
        assert "question" in session.expand(node).text
    with Session("offline", home=tmp_path, resume=session.id) as resumed:
        assert messages_of(resumed) == messages_of(session)


@pytest.mark.spec("B2")
def test_pins_are_listed_and_taken_back(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path) as session:
        turns(session, "hello")
        pin = session.pin("never push to main")
        message = conversation_of(session).log.view.items[0].uuid
        other = session.pin(message=message)
        assert pins_of(session) == {pin: "never push to main", other: f"message {message}"}
        assert session.undo(pin).kind == "pin"
        assert list(pins_of(session)) == [other]
        for wrong in ({"text": ""}, {"text": "a", "message": message}, {"message": "nowhere"}):
            with pytest.raises(InputError):
                session.pin(**wrong)
        with pytest.raises(InputError, match="is pinned"):
            session.hide_messages(message)


@pytest.mark.spec("B1", "B2")
def test_what_is_in_force_is_listed_with_what_it_concerns_and_an_undo_ends_it(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, tools=[READ]) as session:
        turns(session, "one", "two", "three")
        messages = [item.uuid for item in conversation_of(session).log.view.items]
        pin = session.pin(message=messages[-2])
        hidden = session.hide_messages(messages[0], messages[1])
        session.add_user("read it")
        session.before_call()
        session.after_call(answer("m9", call("big")))
        session.add_tool_result("big", "a long line of text\n" * 20_000)
        listed = {decision.kind: decision for decision in session.decisions()}
        assert {kind: decision.messages for kind, decision in listed.items()} == {
            "pin": (messages[-2],),
            "snip": tuple(messages[:2]),
            "spill": (),
        }
        assert (listed["spill"].calls, listed["pin"].id, listed["snip"].id) == (("big",), pin, hidden)
        with pytest.raises(InputError, match="use expand"):
            session.undo(listed["spill"].id)
        assert session.undo() == listed["snip"]
        assert {decision.kind for decision in session.decisions()} == {"pin", "spill"}


@pytest.mark.spec("B1")
def test_two_undos_in_the_wrong_order_are_refused_with_the_right_one_named(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, tools=[READ]) as session:
        long(session, 4)
        first = session.hide_messages(
            conversation_of(session).log.view.items[0].uuid, conversation_of(session).log.view.items[1].uuid
        )
        second = session.hide_messages(
            conversation_of(session).log.view.items[4].uuid, conversation_of(session).log.view.items[5].uuid
        )
        with pytest.raises(UndoOrder, match=second):
            session.undo(first)
        assert session.undo().id == second
        assert session.undo().id == first
        with pytest.raises(UsageError, match="nothing to undo"):
            session.undo()


@pytest.mark.spec("C1", "B1")
def test_compact_preview_expand_and_undo_without_a_model(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, tools=[READ]) as session:
        long(session)
        before = messages_of(session)
        foreseen = session.preview_compaction()
        assert messages_of(session) == before
        assert foreseen.summarised
        done = session.compact("keep the paths")
        assert done.done, done
        assert done.tokens_after < done.tokens_before
        assert messages_of(session) != before
        assert "content of file 3" in session.expand(done.boundary).text
        with pytest.raises(InputError, match="does not exist, the text has 1 page; use page 1"):
            session.expand(done.boundary, page_number=99)
        session.add_user("and now?")
        assert session.before_call()["extra_headers"] == {"x-lamina-break": "compaction"}
        session.after_call(answer("m99", "on we go", usage=reported(session)))
        session.undo()
        assert messages_of(session)[: len(before)] == before
        assert "and now?" in messages_of(session)[-2]


def test_an_async_session_compacts_too(tmp_path: Path) -> None:
    async def run() -> None:
        async with AsyncSession("offline", home=tmp_path, window=12_000) as session:
            for number in range(30):
                session.add_user(f"question {number} " + "word " * 100)
                await session.ask()
            done = await session.compact()
            assert done.done, done
            assert session.undo().id == done.boundary

    asyncio.run(run())


@pytest.mark.spec("T10", "B1")
def test_after_an_undo_a_resumed_session_counts_as_the_one_that_took_it_back(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, tools=[READ], system="be brief " * 500) as session:
        long(session)
        assert session.compact("keep the paths").done
        session.undo()
        tokens = session.window_state.tokens
    with Session("offline", home=tmp_path, resume=session.id) as resumed:
        assert resumed.window_state.tokens == tokens
        assert resumed.window_state.percent_left == session.window_state.percent_left
