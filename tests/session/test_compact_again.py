"""What a host has put back, what a list of sessions still finds, what hooks refuse and what stays pinned, after a compaction."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.session.hosts import lend
from tests.session.plain import AsyncSession, Session
from tests.session.words import pins_of

from lamina.core.errors import InputError, NotCompacted
from lamina.core.policy import CLASSIC
from lamina.core.records import Attachment, Boundary, Message, Pin
from lamina.disk.transcripts.search import TAIL_BYTES, read_session_info
from lamina.fork.host import Restorable
from lamina.layers.l4_compact.plan import Pivot
from lamina.session.base import conversation_of, working
from lamina.testing import MessagesServer
from lamina.tools.hooks.protocol import HookOutcome
from lamina.tools.read_state import ReadRange, ReadState

from .compacting import LONG, boundaries, kinds, opened, quiet, records, rounds, summaries, summarising, told, until_compacted
from .words import EXPAND, READ, Wire, said


@contextmanager
def local(home: Path, **given: Any) -> Iterator[Session]:
    """No server: summaries are made by local functions."""
    with Session("offline", home=home, cwd=home, window=60_000, **given) as session:
        yield session


def talk(session: Session, count: int, words: str = LONG) -> None:
    for number in range(count):
        session.add_user(f"Question {number}: {words}")
        session.ask()


def view(session: Session) -> str:
    return "\n".join(said(session.messages))


# What a host registered


@pytest.mark.spec("C4")
def test_what_comes_back_stands_behind_what_was_kept_in_a_fixed_order(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    (tmp_path / "read.py").write_text("def now(): ...\n")
    with opened(messages_server, tmp_path) as session:
        reads = ReadState()
        lend(session, reads=reads)
        reads.note(tmp_path / "read.py", ReadRange(b""))
        lend(session, todos=lambda: "- [ ] ship it")
        lend(session, session_start=lambda source: HookOutcome(context=("a hook's words",)))
        lend(session, restorable=lambda: [Restorable("background", "b", "one agent works")])
        for kind in ("mcp", "agents", "glossary", "tools", "plan", "skill"):
            session.restore_after_compaction(kind, "one", f"the text of {kind}")
        rounds(session, messages_server, 4)
        session.add_user("And now the last thing")
        assert session.compact().done
        behind = ["file", "skill", "plan", "todos", "background", "tools", "agents", "mcp", "glossary", "hook"]
        assert kinds(session) == ["summary", "said", *(f"attachment:{kind}" for kind in behind)]
        written = [
            record
            for record in records(session)
            if isinstance(record, Boundary | Attachment) or getattr(record, "summary", False)
        ]
        assert [type(record) for record in written[:3]] == [Boundary, Message, Attachment]


@pytest.mark.spec("C4")
def test_skills_come_back_newest_first_within_their_budget_and_the_rest_is_told(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    messages_server.answer_with(summarising())
    policy = replace(CLASSIC, compact=replace(CLASSIC.compact, skill_tokens=2_000, skills_tokens=5_000))
    with opened(messages_server, tmp_path, policy=policy) as session:
        for number in range(6):
            session.restore_after_compaction("skill", f"s{number}", f"skill number {number}\n" + "do this, then do that\n" * 100)
        session.restore_after_compaction("skill", "s1", "skill number 1, used again")
        session.restore_after_compaction("plan", "p", "the plan fits beside them")
        rounds(session, messages_server, 4)
        done = session.compact()
        assert kinds(session).count("attachment:skill") < 6
        text = view(session)
        back = [number for number in (1, 5, 4, 3, 2, 0) if f"skill number {number}" in text]
        assert back == [1, 5, 4, 3, 2, 0][: len(back)], "the one used last, then the newest"
        assert text.index("skill number 1") < text.index("skill number 5")
        assert "[Cut here" in text
        assert "the plan fits" in text
        missing = {key for key, why in done.not_back if "budget" in why}
        assert [why for key, why in done.not_back if key in {f"s{number}" for number in back}] == [
            why for _, why in done.not_back if why.startswith("cut: ")
        ]
        assert missing == {f"s{number}" for number in (1, 5, 4, 3, 2, 0) if number not in back}
        [event] = told(session, "restored")
        assert [(one["key"], one["why"]) for one in event["not"]] == [tuple(one) for one in done.not_back]


@pytest.mark.spec("C4")
def test_a_plan_in_one_line_and_the_todos_come_back_whole_before_files_and_skills_take_the_room(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    messages_server.answer_with(summarising())
    plan, todos = "First this, then that. " * 300, "[ ] look, " * 300
    policy = replace(CLASSIC, compact=replace(CLASSIC.compact, file_tokens=20_000, skill_tokens=20_000, skills_tokens=50_000))
    with opened(messages_server, tmp_path, policy=policy) as session:
        reads = ReadState()
        lend(session, reads=reads, todos=lambda: todos)
        for number in range(5):
            (tmp_path / f"r{number}.json").write_text("[" + "12345," * 1_500)
            reads.note(tmp_path / f"r{number}.json", ReadRange(b""))
            session.restore_after_compaction("skill", f"s{number}", "do this; " * 300)
        session.restore_after_compaction("plan", "p", plan)
        rounds(session, messages_server, 9)
        done = session.compact()
        assert done.done
        assert plan in view(session)
        assert todos in view(session)
        assert "12345,12345," in view(session)
        assert {key for key, _ in done.not_back}.isdisjoint({"p", "todos"})
        assert session.window_state.above_autocompact is False


@pytest.mark.spec("C4")
def test_a_function_is_asked_at_each_compaction_and_may_have_nothing(tmp_path: Path) -> None:
    plan: list[str | None] = [None]
    with local(tmp_path) as session:
        session.restore_after_compaction("plan", "p", lambda: plan[0])
        session.restore_after_compaction("tools", "t", "gone before it was needed")
        session.restore_after_compaction("tools", "t", None)
        for text in (None, "step one", "step two"):
            plan[0] = text
            talk(session, 4, LONG * 6)
            assert session.compact().done
            assert ("attachment:plan" in kinds(session)) == (text is not None)
            assert (text or "nobody") in view(session) or text is None
        assert "step one" not in view(session)
        assert "attachment:tools" not in kinds(session)
        with pytest.raises(InputError, match="pass both"):
            session.restore_after_compaction("plan", " ", "x")


@pytest.mark.spec("C4")
def test_a_plan_that_is_a_file_comes_back_as_the_plan_only(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    plan = tmp_path / "plan.md"
    plan.write_text("first this\n")
    with opened(messages_server, tmp_path) as session:
        reads = ReadState()
        lend(session, reads=reads)
        reads.note(plan, ReadRange(b""))
        session.restore_after_compaction("plan", str(plan), plan.read_text)
        rounds(session, messages_server, 4)
        assert session.compact().files == ()
        assert view(session).count("first this") == 1


@pytest.mark.spec("C4")
def test_a_session_of_an_event_loop_takes_them_too(tmp_path: Path) -> None:
    async def work() -> None:
        async with AsyncSession("offline", home=tmp_path, cwd=tmp_path, window=60_000) as session:
            session.restore_after_compaction("mcp", "servers", "one server")
            for number in range(4):
                session.add_user(f"Question {number}: {LONG * 6}")
                await session.ask()
            assert (await session.compact()).done
            assert "one server" in "\n".join(said(session.messages))

    asyncio.run(work())


# What a list of sessions reads


def tail(path: Path) -> list[Wire]:
    lines = path.read_bytes()[-TAIL_BYTES:].split(b"\n")[1:]
    return [json.loads(line) for line in lines if line]


@pytest.mark.spec("C4")
@pytest.mark.parametrize("pivot", [False, True])
def test_a_title_that_stood_at_the_top_stands_near_the_end_again(
    messages_server: MessagesServer, tmp_path: Path, pivot: bool
) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        assert session.path is not None
        with working(session) as c:
            titles = [
                {"type": "ai-title", "aiTitle": "An old name", "sessionId": session.id},
                {"type": "tag", "tag": "billing", "sessionId": session.id},
                {"type": "custom-title", "customTitle": "The migration", "sessionId": session.id},
            ]
            c.store.append_lines([json.dumps(title).encode() for title in titles])
        for round_ in range(3):
            rounds(session, messages_server, 3, start=round_ * 3)
            second = session.turns[1].first
            assert session.compact(pivot=Pivot("from", second) if pivot else None).done
            conversation_of(session).record_event("padding", {"x": "y" * 20_000})
            found = {row["type"]: row for row in tail(session.path)}
            assert found["custom-title"]["customTitle"] == "The migration"
            assert found["ai-title"]["aiTitle"] == "An old name"
            assert found["tag"]["tag"] == "billing"
            assert found["last-prompt"]["lastPrompt"].startswith(f"Question {round_ * 3 + 2}")
        shown = read_session_info(session.path)
        assert shown is not None
        assert shown.title == "The migration"
        path = session.path
    only_the_end = tmp_path / "end.jsonl"
    only_the_end.write_bytes(path.read_bytes()[-TAIL_BYTES:])
    shown = read_session_info(only_the_end)
    assert shown is not None
    assert shown.title == "The migration"
    assert shown.source == "lamina"


@pytest.mark.spec("C4")
def test_a_session_without_a_title_is_still_listed_by_its_first_words(tmp_path: Path) -> None:
    with local(tmp_path) as session:
        session.add_user("Rename the billing module")
        session.ask()
        talk(session, 4, LONG * 8)
        assert session.compact().done
        path = session.path
        assert path is not None
    before = read_session_info(path)
    end = tmp_path / "end.jsonl"
    end.write_bytes(path.read_bytes()[-16_000:])
    after = read_session_info(end)
    assert before is not None
    assert after is not None
    assert after.title == before.title == "Rename the billing module"
    with Session("offline", home=tmp_path, cwd=tmp_path, resume=path.stem) as again:
        assert again.path == path, "a transcript whose last line is a title is ours still"


# Hooks that say no


@pytest.mark.spec("C2")
def test_a_hook_that_says_no_is_asked_again_after_the_next_message_only(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        asked: list[str] = []

        def no(trigger: str, instructions: str) -> HookOutcome:
            asked.append(trigger)
            return HookOutcome(block="the build runs")

        lend(session, pre_compact=no)
        number = 0
        while not asked:
            rounds(session, messages_server, 1, start=number)
            number += 1
        assert asked == ["auto"]
        session.add_user("Now many calls in one turn.")
        for call in range(3):
            messages_server.reply(text="I look.", tool_use=[("Read", {"file_path": "/w/x.py"}, f"x{call}")])
            for use in session.ask().tool_uses:
                session.add_tool_result(use.id, "short")
        session.ask()
        assert len(asked) == 2, "once for the new message, not for its calls"
        assert sum("the build runs" in notice for notice in session.notices) == 2
        assert told(session, "compaction_refused") == [{"trigger": "auto", "why": "the build runs"}] * 2
        assert told(session, "compaction_failed") == []
        assert told(session, "autocompact")[-1]["failures"] == 0
        lend(session, pre_compact=None)
        session.add_user("And on.")
        session.ask()
        assert len(boundaries(session)) == 1


@pytest.mark.spec("C2")
def test_by_hand_a_hook_can_always_say_no(messages_server: MessagesServer, tmp_path: Path) -> None:
    with opened(messages_server, tmp_path, settings=quiet(auto_compact=False)) as session:
        rounds(session, messages_server, 9)
        lend(session, pre_compact=lambda trigger, instructions: HookOutcome(block="never"))
        with pytest.raises(NotCompacted, match="never"):
            session.compact()
        assert not boundaries(session)
        assert not summaries(messages_server)


# Pins


@pytest.mark.spec("B2")
def test_a_pin_larger_than_its_share_is_refused_with_the_size_it_may_have(tmp_path: Path) -> None:
    with local(tmp_path) as session:
        with pytest.raises(
            InputError, match=r"takes [\d,]+ tokens, but all pins together may take [\d,]+ .*at most [\d,]+ tokens"
        ):
            session.pin("word " * 40_000)
        uuid = session.add_user("long " * 20_000)
        with pytest.raises(InputError, match="pin at most"):
            session.pin(message=uuid)
        assert pins_of(session) == {}
        session.pin("Always answer in German.")
        with pytest.raises(InputError, match="of which existing pins use"):
            session.pin("word " * 40_000)


@pytest.mark.spec("B2")
def test_pins_too_large_for_a_smaller_window_are_cut_in_view_told_once_and_opened_by_their_id(tmp_path: Path) -> None:
    text = " ".join(f"rule{number}" for number in range(5_000))
    with local(tmp_path, tools=[READ, EXPAND]) as session:
        small = session.pin("Never push to main.")
        message = session.add_user("The message: " + text)
        session.ask()
        with working(session) as c:
            large, kept = (
                Pin("p-large-1", c.log.tree.leaf, c.clock(), text=text),
                Pin("p-message", c.log.tree.leaf, c.clock(), target=message),
            )
            c.append([large, kept])
            assert "p-large-1" in pins_of(session)
        with pytest.raises(InputError, match="remove a pin first"):
            session.pin("One more.")
        for _ in range(2):
            talk(session, 3, LONG * 6)
            done = session.compact()
            assert done.done, done.why
            shown = view(session)
            assert "Never push to main." in shown
            assert text not in shown
            assert "expand p-large-1 to see all of it" in shown
            assert "expand p-message to see all of it" in shown
            assert "rule4999" in shown, "its end"
        [notice] = [notice for notice in session.notices if "shortened from now on" in notice]
        assert "p-large-, p-messag" in notice
        assert set(pins_of(session)) == {small, "p-large-1", "p-message"}
        whole = [
            session.expand("p-large-1", page_number=number).text for number in range(1, session.expand("p-large-1").pages + 1)
        ]
        assert "".join(whole) == text
        assert session.expand("p-message").text.startswith("The message: rule0 rule1")


@pytest.mark.spec("K4")
def test_a_compaction_tells_how_many_facts_can_still_be_answered(messages_server: MessagesServer, tmp_path: Path) -> None:
    messages_server.answer_with(summarising())
    with opened(messages_server, tmp_path) as session:
        until_compacted(session, messages_server)
        [event] = told(session, "compaction")
        found = event["fidelity"]
        assert 0 < found["facts"] <= 60
        assert found["facts"] == found["in_context"] + found["one_call"] + found["lost"]
        assert found["in_context"] > 0, "the person's own sentences at least"
        assert found["lost"] == 0, "the model has Read, and the transcript lies on disk"
        assert len(summaries(messages_server)) == 1
        rounds(session, messages_server, 3, start=50)
        done = session.compact()
        assert done.fidelity is not None
        assert " removed, " in (done.fidelity.sentence() or "")


@pytest.mark.spec("K4")
def test_without_a_way_to_open_it_what_is_not_in_context_is_lost(tmp_path: Path) -> None:
    with local(tmp_path) as session:
        for number in range(4):
            session.add_user(f"Look at src/app/module_{number}.py: {LONG * 6}")
            session.ask()
        done = session.compact()
        assert done.fidelity is not None
        assert done.fidelity.one_call == 0
