"""Compaction with notes: no call, a receipt for every record, the tail and the pins word for word, and every reason for giving up."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.session.hosts import lend
from tests.session.plain import AsyncSession, Session

from lamina import turn
from lamina.conversation import revision
from lamina.conversation.compaction.hooks import CompactHooks
from lamina.core.blocks import ToolResult, ToolUse, Wire
from lamina.core.effects import Effect, Wait, drive
from lamina.core.errors import NotCompacted
from lamina.core.policy import CLASSIC
from lamina.core.records import Pin
from lamina.core.settings import Settings
from lamina.disk.transcripts.search import read_session_info
from lamina.fork.background import Background
from lamina.fork.host import Restorable
from lamina.layers.l3_notes import step as notes
from lamina.layers.l3_notes.plan import Cursor
from lamina.layers.l3_notes.sections import own_template, render
from lamina.layers.l3_notes.step import state_of
from lamina.providers.anthropic import AnthropicProvider
from lamina.session.base import conversation_of, working
from lamina.testing import MessagesServer, Received, Status
from lamina.testing.script import Step
from lamina.tools.hooks.protocol import HookOutcome

from .noting import (
    LONG,
    MODEL,
    WINDOW,
    Seen,
    answering,
    asked_for_notes,
    boundaries,
    by_rules,
    connected,
    fates,
    fill,
    notes_file,
    order_of,
    purpose,
    settle,
    talk,
    told,
)
from .words import READ, answer, call, reasons, refused, said, text


def filled(session: Session) -> None:
    """Almost up to the threshold: the next long message passes it."""
    fill(session, conversation_of(session).limits.autocompact - 1_500)


def ask(session: Session, words: str = "go on") -> Wire:
    session.add_user([text(words), text(LONG * 2)])
    request = session.before_call()
    assert refused(request) == []
    return request


@pytest.mark.spec("N6", "C5")
def test_at_the_threshold_the_notes_take_the_place_of_what_they_cover_without_a_call(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path, tools=[READ]) as session:
        filled(session)
        before, order = session.window_state.tokens, order_of(session)
        requests = len(messages_server.requests)
        request = ask(session)
        assert len(messages_server.requests) == requests
        (boundary,) = boundaries(session)
        assert (boundary.trigger, boundary.kept[-1]) == ("auto", order_of(session)[-1])
        assert session.window_state.tokens < before / 2
        first = said(request["messages"])[0]
        assert "<system-reminder>\n# Session Title\n" in first
        assert str(notes_file(session)) in first
        assert str(session.path) in first
        done = told(session).named("compaction")[-1]
        assert (done["by"], done["tokens_after"]) == ("notes", session.window_state.tokens)
        assert reasons(session.path) == ["compaction"]
        summary = conversation_of(session).log.view.items[0].uuid
        whole = fates(boundary, [*order, order_of(session)[-1]])
        assert {told_of.fate for told_of in whole.values()} == {"kept", "summarised"}
        assert {told_of.where for told_of in whole.values()} == {"", summary}
        assert [uuid for uuid, told_of in whole.items() if told_of.fate == "kept"] == list(boundary.kept)
        session.after_call(answer("m-after", "going on"))
    assert [purpose(received) for received in messages_server.requests if purpose(received) not in ("", "notes")] == []


@pytest.mark.spec("N6", "T9")
def test_the_tail_has_its_least_tokens_and_messages(messages_server: MessagesServer, tmp_path: Path) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path) as session:
        filled(session)
        ask(session)
        kept = [item for item in conversation_of(session).log.view.items if item.kind == "said"]
        tokens = sum(len(block.text) for item in kept for block in item.blocks if hasattr(block, "text")) / 4.6
        assert len(kept) >= 5
        assert 2_500 * 0.9 < tokens < 10_000


@pytest.mark.spec("N6", "B1")
def test_an_undo_brings_everything_back_byte_for_byte_and_the_notes_still_know_what_they_cover(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path) as session:
        filled(session)
        session.add_user(LONG * 2)
        before = session.messages
        session.before_call()
        assert session.messages != before
        with working(session) as c:
            revision.undo(c, boundaries(session)[-1].uuid)
            assert session.messages == before
            assert isinstance(notes._plan(c), notes.PlannedCompaction)


@pytest.mark.spec("B2")
def test_pins_and_the_last_words_of_the_person_survive_word_for_word(messages_server: MessagesServer, tmp_path: Path) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path) as session:
        talk(session, "Never push to main.")
        with working(session) as c:
            uuid, parent, time = c.head()
            c.append([Pin(uuid, parent, time, target=order_of(session)[0])])
            uuid, parent, time = c.head()
            c.append([Pin(uuid, parent, time, text="Deploy <b>on Friday</b>")])
        for _ in range(2):
            filled(session)
            request = ask(session, "What I want now.")
            texts = said(request["messages"])
            assert "Never push to main." in texts
            assert "What I want now." in texts
            assert sum("Deploy <b>on Friday</b>" in words for words in texts) == 1
            session.after_call(answer(f"m-{len(boundaries(session))}", "yes"))
        assert len(boundaries(session)) == 2


def test_calls_stay_with_their_results(tmp_path: Path) -> None:
    """Without a key the local functions write the notes."""
    with Session(
        "anthropic:a-model", home=tmp_path, cwd=tmp_path, window=WINDOW, settings=Settings(size_clearing=False)
    ) as session:
        session.add_user("Read everything.")
        number = 0
        while not boundaries(session):
            request = session.before_call()
            assert refused(request) == []
            usage = {"input_tokens": session.window_state.tokens + 1, "output_tokens": 20}
            session.after_call(answer(f"m{number}", "look", call(f"a{number}"), call(f"b{number}"), usage=usage))
            settle(session)
            for part in "ab":
                session.add_tool_result(f"{part}{number}", LONG)
            number += 1
            assert number < 60
        blocks = [block for _, block in conversation_of(session).log.view.blocks()]
        calls = {block.id for block in blocks if isinstance(block, ToolUse)}
        results = {block.tool_use_id for block in blocks if isinstance(block, ToolResult)}
        assert calls == results
        assert "Read everything." in said(session.messages)


@pytest.mark.spec("N6")
def test_context_is_put_back_and_hooks_run(messages_server: MessagesServer, tmp_path: Path) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path) as session:
        lend(session, restorable=lambda: [Restorable("plan", "p", "The plan: ship it.")])
        lend(session, todos=lambda: "- [ ] mend the parser")
        lend(session, session_start=lambda source: HookOutcome(context=(f"from {source}",)))
        ran: list[tuple[str, str]] = []

        def after(trigger: str, summary: str) -> HookOutcome:
            ran.append((trigger, summary))
            return HookOutcome()

        lend(session, post_compact=after)
        for _ in range(2):
            filled(session)
            request = ask(session)
            texts = said(request["messages"])
            for words in ("The plan: ship it.", "mend the parser", "from compact"):
                assert any(words in text for text in texts), words
            assert sum("- [ ] mend the parser" in text for text in texts) == 1
            session.after_call(answer(f"m-{len(ran)}", "yes"))
        assert [trigger for trigger, _ in ran] == ["auto", "auto"]
        assert "# Session Title" in ran[0][1]


@pytest.mark.exhaustive
@pytest.mark.spec("N6")
def test_a_session_resumed_behind_a_compaction_sends_the_same_and_compacts_again(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path) as session:
        filled(session)
        request = ask(session)
    with connected(messages_server, tmp_path, resume=session.id) as again:
        assert again.before_call()["messages"] == request["messages"]
        again.after_call(answer("m-again", "yes"))
        filled(again)
        ask(again)
        assert [done["by"] for done in told(again).named("compaction")] == ["notes"]


@pytest.mark.spec("N6")
def test_a_cursor_whose_message_left_moves_to_the_summary_and_is_found_again(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path) as session:
        fill(session, 20_000)
        answering(messages_server, lambda received: Status(status=500))
        for number in range(12):
            talk(session, f"More {number}. {LONG}")
        state = state_of(conversation_of(session))
        assert state.cursor is not None
        covered = state.cursor.covered
        assert compacted(session)
        assert covered not in order_of(session)
        cursor = state.cursor
        assert cursor.covered == conversation_of(session).log.view.items[0].uuid
    with connected(messages_server, tmp_path, resume=session.id) as again:
        found = state_of(conversation_of(again)).cursor
        assert found is not None
        assert found.covered == cursor.covered


def compacted(session: Session) -> bool:
    """Only this layer's part of a compaction."""
    with working(session) as c:
        return drive(notes.compact(c, CompactHooks(c, "auto")), session._perform) is not None


def reason(session: Session) -> str:
    assert not compacted(session)
    return str(told(session).named("notes_compaction_skipped")[-1]["reason"])


@pytest.mark.spec("N6", "K5")
def test_every_reason_for_giving_up_is_told(messages_server: MessagesServer, tmp_path: Path) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path, in_memory=True) as session:
        talk(session, "hello")
        assert reason(session) == "in memory"
    with connected(messages_server, tmp_path) as session:
        talk(session, "hello")
        assert reason(session) == "no notes"
        fill(session, 3_000)
        assert reason(session) == "no smaller"
        fill(session, 20_000)
        mine, state = notes_file(session).read_text(), state_of(conversation_of(session))
        notes_file(session).write_text("nonsense")
        assert reason(session) == "not notes"
        notes_file(session).write_text(render(own_template().notes))
        assert reason(session) == "nothing noted"
        notes_file(session).write_text(mine)
        cursor, state.cursor = state.cursor, None
        assert reason(session) == "nothing known to be covered"
        state.cursor = cursor
        conversation_of(session).limits = replace(conversation_of(session).limits, autocompact=1_000)
        assert reason(session) == "too large still"
        assert boundaries(session) == []


@pytest.mark.spec("N6")
def test_what_is_put_back_counts_when_it_is_judged_whether_the_window_is_small_enough(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path) as session:
        fill(session, 20_000)
        lend(session, reminder=lambda: LONG * 60)
        assert reason(session) == "too large still"
        lend(session, reminder=None)
        assert compacted(session)


@pytest.mark.spec("F1", "N6")
def test_with_its_switch_off_the_notes_are_kept_but_not_used(messages_server: MessagesServer, tmp_path: Path) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path, settings=Settings(notes_compaction=False)) as session:
        fill(session, 20_000)
        assert notes_file(session).exists()
        assert not compacted(session)
        assert boundaries(session) == []


def update_begun(session: Session) -> None:
    """An update is under way, whatever the cursor says."""
    with working(session) as c:
        state = state_of(c)
        assert state.cursor is not None
        state.cursor = Cursor(0, state.cursor.covered)
        notes.after_answer(c)
        assert c.background.running("notes") is not None


class Hands:
    """A flow carried on by hand: what it asks for, one effect after another."""

    def __init__(self, session: Session) -> None:
        self.flow = turn.before_call(conversation_of(session))
        self.done = False

    def go(self, result: Any = None) -> Effect | None:
        try:
            return self.flow.send(result)
        except StopIteration:
            self.done = True
            return None


@pytest.mark.exhaustive
@pytest.mark.spec("N7")
@pytest.mark.parametrize("age", [0.0, 59.0, 60.0])
def test_a_compaction_waits_for_an_update_under_way_unless_it_is_old(
    messages_server: MessagesServer, tmp_path: Path, age: float
) -> None:
    gate, now = threading.Event(), [0.0]

    def slowly(received: Received) -> Step:
        assert gate.wait(120)
        return by_rules(received)

    answering(messages_server)
    with connected(messages_server, tmp_path) as session:
        with working(session) as c:
            c.background = Background(clock=lambda: now[0])
        filled(session)
        answering(messages_server, slowly)
        update_begun(session)
        session.add_user(LONG * 2)
        now[0] += age
        before = len(told(session).named("notes"))
        hands = Hands(session)
        effect = hands.go()
        if age < 60.0:
            assert effect == Wait("notes", 15.0)
            gate.set()
            assert conversation_of(session).background.wait("notes", 120)
            assert hands.go(True) is None
            assert len(told(session).named("notes")) == before + 1
        else:
            assert effect is None
            assert len(told(session).named("notes")) == before
        assert hands.done
        assert told(session).named("compaction")[-1]["by"] == "notes"
        gate.set()


@pytest.mark.spec("N7")
def test_an_update_that_takes_longer_than_the_wait_is_not_waited_for_any_more(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    gate = threading.Event()

    def slowly(received: Received) -> Step:
        assert gate.wait(120)
        return by_rules(received)

    policy = replace(CLASSIC, notes=replace(CLASSIC.notes, wait_seconds=0.001))
    answering(messages_server)
    with connected(messages_server, tmp_path, policy=policy) as session:
        fill(session, 20_000)
        answering(messages_server, slowly)
        update_begun(session)
        assert compacted(session)
        gate.set()
        settle(session)
        talk(session, "the conversation goes on")


async def _async_session(server: MessagesServer, home: Path) -> list[str]:
    provider = AnthropicProvider(MODEL, base_url=server.url, api_key="any", max_retries=0)
    async with AsyncSession(provider, home=home, cwd=home, window=WINDOW) as session:
        seen = Seen()
        lend(session, observer=seen)
        server.follow(breaks=lambda: [None] * session.status.cache_breaks)
        number = 0
        while not seen.named("compaction"):
            session.add_user(f"Step {number}. {LONG}")
            await session.ask()
            conversation_of(session).background.wait("notes", 120)
            number += 1
            assert number < 100
    await provider.aclose()
    return [str(done["by"]) for done in seen.named("compaction")]


@pytest.mark.spec("N6")
def test_an_async_session_compacts_with_its_notes_too(messages_server: MessagesServer, tmp_path: Path) -> None:
    answering(messages_server)
    assert asyncio.run(_async_session(messages_server, tmp_path)) == ["notes"]
    assert asked_for_notes(messages_server)


@pytest.mark.spec("C2", "N6")
def test_a_hook_that_says_no_stops_notes_and_summary_alike(messages_server: MessagesServer, tmp_path: Path) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path) as session:
        asked: list[str] = []

        def no(trigger: str, instructions: str) -> HookOutcome:
            asked.append(trigger)
            return HookOutcome(block="not while the tests run")

        fill(session, 20_000)
        lend(session, pre_compact=no)
        with pytest.raises(NotCompacted, match="not while the tests run"):
            session.compact()
        assert asked == ["manual"], "once, not once for each way"
        assert boundaries(session) == []
        assert told(session).named("notes_compaction_skipped") == [{"reason": "a hook said no"}]
        lend(session, pre_compact=lambda trigger, instructions: HookOutcome())
        done = session.compact()
        assert (done.done, done.how) == (True, "notes")
        assert done.fidelity is not None
        assert told(session).named("compaction")[-1]["fidelity"]["facts"] == done.fidelity.facts > 0


@pytest.mark.spec("C2", "N6")
def test_where_a_hook_adds_instructions_a_summary_follows_them_instead_of_the_notes(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, cwd=tmp_path, window=WINDOW) as session:
        lend(session, observer=Seen())
        fill(session, 20_000)
        lend(session, pre_compact=lambda trigger, instructions: HookOutcome(context=("Keep the names.",)))
        assert session.compact().how == "summary"
        assert told(session).named("notes_compaction_skipped") == [{"reason": "a hook adds instructions"}]


@pytest.mark.spec("C4", "N6")
def test_a_title_stands_near_the_end_again_after_a_compaction_with_notes(messages_server: MessagesServer, tmp_path: Path) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path) as session:
        with working(session) as c:
            c.store.append_lines([b'{"type":"custom-title","customTitle":"The migration","sessionId":"x"}'])
        fill(session, 20_000)
        assert session.compact().how == "notes"
        assert session.path is not None
        end = tmp_path / "end.jsonl"
        end.write_bytes(session.path.read_bytes()[-16_000:])
        shown = read_session_info(end)
        assert shown is not None
        assert shown.title == "The migration"
