"""Compaction that does not go well: whatever the summariser says or does, the conversation goes on and nothing is lost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.session.plain import Session

from lamina.core.effects import Ask, drive
from lamina.core.errors import Aborted, InputError, NotCompacted, PromptTooLong, WindowFull
from lamina.core.policy import CLASSIC
from lamina.core.receipts import Told
from lamina.core.records import Boundary, Pin
from lamina.core.view import Item
from lamina.layers.l3_notes import step as notes
from lamina.layers.l4_compact import step
from lamina.layers.l4_compact.expand import page_of, stands_for, text_of
from lamina.layers.l4_compact.plan import EVENT, BreakerLedger, Pivot
from lamina.session.base import working
from lamina.testing import MessagesServer
from lamina.testing.received_request import Received
from lamina.testing.script import Status, Step, make_answer
from lamina.tools.hooks.protocol import HookOutcome

from .compacting import (
    LONG,
    SECTIONS,
    SUMMARY,
    Answers,
    boundaries,
    fates,
    ids,
    is_summary,
    opened,
    quiet,
    records,
    rounds,
    summaries,
    summarising,
    told,
    until_compacted,
)
from .hosts import lend
from .words import refused, said

EMPTY = make_answer(text=" ")
REFUSED = make_answer(text="I can't.", stop_reason="refusal")
CUT_OFF = make_answer(text=SUMMARY, stop_reason="max_tokens")
UNTAGGED = make_answer(text="We talked about files.")
HUGE = make_answer(text=f"<summary>{SECTIONS} {'word ' * 20_000}</summary>")
CALLING = make_answer(text="I look first.", tool_use=[("Read", {"file_path": "x"}, "other")])
BROKEN = Status(status=500)


def words(session: Session) -> str:
    return "\n".join(said(session.messages))


@pytest.mark.spec("C8", "B1")
@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (EMPTY, "empty"),
        (REFUSED, "refused"),
        (CUT_OFF, "cut off"),
        (UNTAGGED, "no <summary>"),
        (HUGE, "no smaller than"),
        (CALLING, "calls a tool"),
        (BROKEN, "500"),
    ],
    ids=["empty", "refused", "cut-off", "untagged", "huge", "calling", "broken"],
)
def test_what_is_no_summary_is_asked_for_again_and_never_replaces_history(
    messages_server: MessagesServer, tmp_path: Path, bad: Step, why: str
) -> None:
    messages_server.answer_with(summarising(bad))
    with opened(messages_server, tmp_path) as session:
        rounds(session, messages_server, 4)
        before = session.messages
        with pytest.raises(NotCompacted) as failed:
            session.compact()
        assert why in failed.value.why
        assert session.messages == before
        assert not boundaries(session)
        assert len(summaries(messages_server)) == 3
        if bad is not BROKEN:
            assert "Your previous answer could not be used" in str(summaries(messages_server)[-1].body["messages"][-1])
        messages_server.answer_with(summarising())
        assert session.compact().done, "and by hand it is tried again"


@pytest.mark.spec("C8")
def test_the_second_try_counts(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        rounds(session, messages_server, 4)
        messages_server.reply(text="", fork="summary")
        done = session.compact()
        assert done.done
        assert len(summaries(messages_server)) == 2
        assert done.usage.output_tokens > 0


@pytest.mark.exhaustive
@pytest.mark.spec("C8")
@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (EMPTY, "it is empty"),
        (REFUSED, "refused"),
        (CUT_OFF, "cut off"),
        (UNTAGGED, "holds no <summary>"),
        (HUGE, "no smaller than"),
        (CALLING, "calls a tool"),
        (BROKEN, "500"),
        (Status(status=401), "401"),
        (Status(status=400), "400"),
    ],
    ids=["empty", "refused", "cut-off", "untagged", "huge", "calling", "broken", "key", "rejected"],
)
def test_rules_make_room_in_the_same_turn_whenever_the_model_can_not(
    messages_server: MessagesServer, tmp_path: Path, bad: Step, why: str
) -> None:
    messages_server.answer_with(summarising(bad))
    with opened(messages_server, tmp_path) as session:
        until_compacted(session, messages_server)
        [event] = told(session, "compaction")
        assert event["by"] == "rules"
        assert why in event["instead"]
        assert not told(session, "compaction_failed")
        [notice] = [notice for notice in session.notices if "by rules" in notice]
        assert why in notice, "the notice gives the true reason"
        assert "did not fit" not in words(session), "and so does the summary"
        assert "No model made this summary" in words(session)
        assert "Question 0: what is in it?" in words(session)


@pytest.mark.exhaustive
@pytest.mark.spec("C8", "B1")
def test_after_three_failures_in_a_row_the_model_is_not_asked_again(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising(UNTAGGED))
    with opened(messages_server, tmp_path) as session:
        at = 0
        for _ in range(5):
            at = until_compacted(session, messages_server, start=at)
        assert [event["by"] for event in told(session, "compaction")] == ["rules"] * 5
        assert len(summaries(messages_server)) == 9, "three tries in each of three compactions"
        assert sum("in 3 compactions in a row" in notice for notice in session.notices) == 1
        assert sum("no longer asked" in notice for notice in session.notices) == 2
    with opened(messages_server, tmp_path, resume=session.id) as again:
        until_compacted(again, messages_server, start=at)
        assert len(summaries(messages_server)) == 9, "a resumed session knows it"
        messages_server.answer_with(summarising())
        rounds(again, messages_server, 3, start=at + 20)
        assert again.compact().how == "summary", "by hand the model is asked again"
        until_compacted(again, messages_server, start=at + 30)
        assert told(again, "compaction")[-1]["by"] == "summary", "and a success resets the count"


@pytest.mark.spec("C8")
def test_a_session_that_stopped_compacting_goes_on_when_the_window_is_full(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        with working(session) as c:
            c.record_event(EVENT, BreakerLedger(failures=3, stopped="failing").to_json())
        until_compacted(session, messages_server)
        assert told(session, "compaction")[0]["by"] == "rules"
        assert summaries(messages_server) == []


@pytest.mark.spec("C8")
def test_a_summary_of_the_model_resets_the_count(messages_server: MessagesServer, tmp_path: Path) -> None:
    answers = iter([UNTAGGED] * 6 + [SUMMARY] + [UNTAGGED] * 6)
    messages_server.answer_with(lambda received: next(answers) if is_summary(received) else "Done.")
    with opened(messages_server, tmp_path) as session:
        at = 0
        for _ in range(5):
            at = until_compacted(session, messages_server, start=at)
        assert [event["by"] for event in told(session, "compaction")] == ["rules", "rules", "summary", "rules", "rules"]
        assert not any("in a row" in notice for notice in session.notices)


@pytest.mark.spec("C8")
def test_by_hand_with_room_left_a_failed_summary_leaves_the_conversation_alone(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    messages_server.answer_with(summarising(UNTAGGED))
    with opened(messages_server, tmp_path) as session:
        rounds(session, messages_server, 4)
        with pytest.raises(NotCompacted, match="no <summary>"):
            session.compact()
    with opened(messages_server, tmp_path, resume=session.id, settings=quiet(auto_compact=False)) as full:
        number = 4
        while full.window_state.tokens < 13_950:
            rounds(full, messages_server, 1, start=number, content=LONG[:800])
            number += 1
        done = full.compact()
        assert done.how == "rules", "without room rules do it"
        assert "no <summary>" in done.instead


@pytest.mark.spec("C2", "C8")
def test_a_hook_that_vetoes_for_ever_does_not_end_the_conversation(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        lend(session, pre_compact=lambda trigger, instructions: HookOutcome(block="never"))
        until_compacted(session, messages_server)
        until_compacted(session, messages_server, start=100)
        refused = told(session, "compaction_refused")
        assert sum("overruled" in event for event in refused) == 2
        assert len(refused) >= 4, "while there is room the veto holds"
        assert sum("compacted anyway" in notice for notice in session.notices) == 2
        session.undo()


@pytest.mark.spec("B1", "C3")
def test_a_summary_of_200_000_tokens_does_not_end_the_conversation(messages_server: MessagesServer, tmp_path: Path) -> None:
    huge = f"<summary>{SECTIONS} {'word ' * 200_000}</summary>"
    messages_server.answer_with(summarising(huge))
    with opened(messages_server, tmp_path) as session:
        until_compacted(session, messages_server)
        assert told(session, "compaction")[-1]["by"] == "rules"
        assert not session.window_state.above_autocompact


@pytest.mark.spec("C3")
def test_a_huge_summary_is_cut_to_the_reserve_even_where_it_would_fit(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising(f"<summary>{SECTIONS} {'word ' * 200_000} the end</summary>"))
    messages_server.window = 1_000_000
    with opened(messages_server, tmp_path, window=1_000_000) as session:
        for number in range(5):
            session.add_user(f"Text {number}: {LONG * 100}")
            session.ask()
        done = session.compact()
        assert done.how == "summary"
        assert done.tokens_after < 60_000 < 200_000 < done.tokens_before
        assert "Primary request and intent" in words(session)
        assert "the end" in words(session)


@pytest.mark.spec("B1", "B15")
def test_a_summary_in_another_language_is_a_summary(messages_server: MessagesServer, tmp_path: Path) -> None:
    names = ("主要请求", "关键概念", "文件", "错误", "解决", "", "待办事项", "当前工作")
    body = "\n\n".join(f"## {number}、{name}\n解析器在端口 8417 上。" for number, name in enumerate(names, start=1) if name)
    messages_server.answer_with(summarising(f"<analysis>想一想</analysis><summary>{body}</summary>"))
    with opened(messages_server, tmp_path) as session:
        until_compacted(session, messages_server)
        assert told(session, "compaction")[-1]["by"] == "summary"
        text = words(session)
        assert text.index("解析器在端口 8417 上。") < text.index("Question 0: what is in it?") < text.index("待办事项")


@pytest.mark.spec("C3")
def test_a_conversation_about_our_tags_is_compacted_like_any_other(messages_server: MessagesServer, tmp_path: Path) -> None:
    quoting = SUMMARY.replace("words about it", "it said <summary>x</summary> and </summary>", 1)
    messages_server.answer_with(summarising(quoting))
    with opened(messages_server, tmp_path) as session:
        until_compacted(session, messages_server)
        assert told(session, "compaction")[-1]["by"] == "summary"
        assert "it said <summary>x</summary> and </summary>" in words(session)
        assert "Optional next step" in words(session)


def too_long(received: Received, window: int, *, numbers: bool = True) -> Step | None:
    assert received.use is not None
    if received.use.total <= window:
        return None
    message = f"prompt is too long: {received.use.total} tokens > {window} maximum" if numbers else "prompt is too long"
    return Status(status=400, kind="invalid_request_error", message=message)


def narrow(window: int, *, numbers: bool = True) -> Answers:
    """A server whose summaries must fit a smaller window than the conversation."""

    def answers(received: Received) -> Step | str | None:
        return (too_long(received, window, numbers=numbers) or SUMMARY) if is_summary(received) else "Done."

    return answers


@pytest.mark.spec("C7", "B1")
@pytest.mark.parametrize("numbers", [True, False], ids=["gap", "no-gap"])
def test_too_long_drops_the_oldest_rounds_and_says_so(messages_server: MessagesServer, tmp_path: Path, numbers: bool) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        rounds(session, messages_server, 9)
        with working(session) as c:
            c.append([Pin("p", c.log.tree.leaf, "", target=ids(session)[0])])
        order = ids(session)
        messages_server.answer_with(narrow(9_000, numbers=numbers))
        done = session.compact()
        assert done.done
        assert done.left_out > 0
        assert 2 <= len(summaries(messages_server)) <= 4
        last = summaries(messages_server)[-1].body
        assert refused(last) == []
        assert re.search(r"The beginning of the conversation \(\d+ rounds?\)", str(last["messages"][-1]))
        [boundary] = boundaries(session)
        found = fates(boundary, order)
        left = [uuid for uuid, fate in found.items() if fate == Told("left_out")]
        assert left
        assert left == [uuid for uuid in order if uuid in left], "in order"
        text = words(session)
        assert "Question 0: what is in it?" in text, "the person's words of dropped rounds are carried"
        assert found[order[0]].fate == "folded", "the pin has a record of its own"
        assert any("does not cover" in notice for notice in session.notices)


@pytest.mark.spec("C7")
def test_when_nothing_fits_the_summary_is_made_without_a_model(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(narrow(500, numbers=False))
    with opened(messages_server, tmp_path) as session:
        rounds(session, messages_server, 6)
        done = session.compact()
        assert done.done
        assert done.how == "rules"
        assert len(summaries(messages_server)) == 4, "the call and three shorter ones"
        text = words(session)
        assert "No model made this summary" in text
        assert "Question 5: what is in it?" in text
        assert "f5.py" in text


@pytest.mark.spec("C7")
def test_a_conversation_refused_as_too_long_is_compacted_and_may_be_sent_again(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        rounds(session, messages_server, 9)
        messages_server.window = 9_000
        session.add_user("One more")
        with working(session) as c:
            request = session.before_call()
            with pytest.raises(PromptTooLong) as caught:
                session.provider.ask(request)
            assert drive(step.too_long(c, caught.value, notes.compact), session._perform)
        assert session.ask().text == "Done."
        assert "One more" in words(session)


@pytest.mark.parametrize("numbers", [True, False], ids=["gap", "no-gap"])
def test_one_message_larger_than_the_window(messages_server: MessagesServer, tmp_path: Path, numbers: bool) -> None:
    """It is cut into a summary by rules, the transcript has all of it, and the conversation goes on."""

    def answers(received: Received) -> Step | str | None:
        return too_long(received, 8_000, numbers=numbers) or (SUMMARY if is_summary(received) else "Done.")

    messages_server.answer_with(answers)
    with opened(messages_server, tmp_path, window=8_000) as session:
        whole = "".join(f"line {number} of a very long message\n" for number in range(6_000))
        session.add_user(whole)
        assert session.ask().text == "Done."
        assert session.window_state.at_blocking is False
        text = words(session)
        assert "line 0 of a very long message" in text
        assert "line 5999 of a very long message" in text
        assert "characters of this message are left out here" in text
        assert whole in str([item.blocks[0].wire["text"] for item in opened_again(session)]).replace("\\n", "\n")
        rounds(session, messages_server, 2)


def opened_again(session: Session) -> list[Item]:
    [boundary] = boundaries(session)
    with working(session) as c:
        return stands_for(c.store, boundary.uuid)


@pytest.mark.spec("B3")
def test_a_model_that_fills_the_window_again_and_again_in_one_turn_is_stopped(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:

        def work() -> None:
            for number in range(40):
                messages_server.reply(text="I look.", tool_use=[("Read", {"file_path": "/w/large.py"}, f"c{number}")])
                for call in session.ask().tool_uses:
                    session.add_tool_result(call.id, f"{number} {LONG * 10}")

        session.add_user("Read all of it.")
        with pytest.raises(WindowFull):
            work()
        assert len(boundaries(session)) == 3
        assert any("full again within 3 turns" in notice for notice in session.notices)


@pytest.mark.spec("B3")
def test_a_window_that_fills_up_again_at_once_stops_with_an_explanation(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    # In a window this small each answer counts as a turn, and a round of this test is two answers.
    policy = replace(CLASSIC, compact=replace(CLASSIC.compact, thrash_turns=4))
    with opened(messages_server, tmp_path, policy=policy) as session:
        with pytest.raises(WindowFull):
            rounds(session, messages_server, 40, content=LONG * 10)
        assert len(boundaries(session)) == 3
        assert any("full again within 4 turns" in notice for notice in session.notices)
        assert len([notice for notice in session.notices if "full again" in notice]) == 1
        assert session.compact().done
        session.add_user("Smaller steps now")
        session.ask()


@pytest.mark.spec("B1")
def test_what_a_summary_stands_for_can_be_opened_page_by_page(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        rounds(session, messages_server, 4)
        order = ids(session)
        first = session.compact()
        rounds(session, messages_server, 3, start=4)
        second = session.compact()
        with working(session) as c:
            items = stands_for(c.store, first.boundary)
            assert [item.uuid for item in items] == order
            later = stands_for(c.store, second.boundary[:12])
        assert later[0].kind == "summary"
        text = text_of(items) * 8
        pages = [page_of(text, number) for number in range(1, page_of(text, 1).pages + 1)]
        whole = "".join(one.text for one in pages)
        assert whole == text
        assert "Question 0: what is in it?" in whole
        assert 'Read {"file_path":"/w/src/f3.py"}' in whole
        assert LONG in whole


@pytest.mark.spec("B1", "C6")
def test_what_a_part_in_the_middle_stands_for_can_be_opened_too(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        rounds(session, messages_server, 2)
        pivot = session.add_user("From here on")
        session.ask()
        rounds(session, messages_server, 4, start=2)
        order = ids(session)
        done = session.compact(pivot=Pivot("from", pivot))
        with working(session) as c:
            assert [item.uuid for item in stands_for(c.store, done.boundary)] == order[order.index(pivot) :]
            with pytest.raises(InputError, match="no compaction with this id"):
                stands_for(c.store, "nothing-like-it")


def test_a_session_in_memory_compacts_too(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path, in_memory=True) as session:
        until_compacted(session, messages_server)
        assert "The host keeps the original messages" in words(session)
        assert list(tmp_path.iterdir()) == []


def test_a_transcript_written_before_a_compaction_keeps_every_byte(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        rounds(session, messages_server, 4)
        assert session.path is not None
        before = session.path.read_bytes()
        assert session.compact().done
        assert session.path.read_bytes().startswith(before)
        assert any(isinstance(record, Boundary) for record in records(session))


def test_stopped_in_the_middle_of_the_call_nothing_has_changed(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        rounds(session, messages_server, 4)
        before = session.messages
        with working(session) as c:
            flow = step.compact(c, notes.compact)
            assert isinstance(next(flow), Ask)
            with pytest.raises(Aborted):
                flow.throw(Aborted())
        assert session.messages == before
        assert not boundaries(session)


def test_a_result_that_arrives_after_a_compaction_finds_its_call(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        rounds(session, messages_server, 4)
        messages_server.reply(text="Two at once.", tool_use=[("Read", {}, "one"), ("Read", {}, "two")])
        session.add_user("Look at both")
        session.ask()
        session.add_tool_result("one", "first")
        assert session.compact().done
        assert session.status.open_calls == ("two",)
        session.add_tool_result("two", "second")
        session.ask()
        sent = messages_server.requests[-1].body
        assert refused(sent) == []
        assert "'second'" in str(sent)
        assert "Look at both" in words(session)
