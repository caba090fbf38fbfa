"""Notes of a living session: when they are written, what is asked for them, and what happens when that goes wrong."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.session.hosts import lend
from tests.session.plain import Session

from lamina.core.policy import CLASSIC
from lamina.core.settings import Settings
from lamina.layers.l3_notes.sections import own_template, render
from lamina.layers.l3_notes.step import state_of
from lamina.session.base import conversation_of
from lamina.testing import Answer, MessagesServer, Received, Status
from lamina.testing.script import Step, make_answer

from .compacting import SUMMARY
from .noting import (
    LONG,
    Seen,
    answering,
    asked_for_notes,
    by_rules,
    connected,
    fill,
    notes_file,
    notes_of,
    purpose,
    settle,
    talk,
    told,
)
from .words import Wire, answer, call, files_under

ASKED = "Mend the parser in src/parse.py."


def test_a_session_in_memory_keeps_no_notes_and_none_are_asked_for(messages_server: MessagesServer, tmp_path: Path) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path, in_memory=True) as session:
        fill(session, 6_000)
        assert told(session).named("notes") == []
    assert asked_for_notes(messages_server) == []
    assert list(files_under(tmp_path)) == []


@pytest.mark.spec("N1", "N3", "N4")
def test_notes_appear_once_the_conversation_is_long_enough_and_cost_little(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path, window=200_000) as session:
        talk(session, ASKED)
        fill(session, 9_000)
        assert not notes_file(session).exists()
        fill(session, 10_000)
        assert notes_file(session).exists()
        assert notes_file(session).parent.name == "session-memory"
        assert notes_of(session).sections[0].body == ASKED
        (noted,) = told(session).named("notes")
        assert noted["tokens"] >= 10_000
        assert noted["covered"] == conversation_of(session).log.view.items[-1].uuid
        (fork,) = told(session).named("fork")
        assert fork["purpose"] == "notes"
        assert fork["hit_rate"] > 0.8
        assert session.status.cache_misses == ()


@pytest.mark.spec("N3", "F1")
@pytest.mark.parametrize("off", ["session_notes", "auto_compact", "compaction"])
def test_no_notes_are_kept_while_their_switch_or_autocompaction_is_off(
    messages_server: MessagesServer, tmp_path: Path, off: str
) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path, settings=Settings(**{off: False})) as session:
        fill(session, 6_000)
        assert not notes_file(session).exists()
    assert asked_for_notes(messages_server) == []


@pytest.mark.spec("N3")
def test_an_update_needs_growth_and_three_calls_or_an_answer_without_one(tmp_path: Path) -> None:
    """Without a key the local functions write the notes; the answers and what they report are the test's own."""
    with Session("anthropic:a-model", home=tmp_path, cwd=tmp_path, window=200_000, tools=[]) as session:

        def hear(name: str, tokens: int, *calls: str) -> int:
            content: list[Wire | str] = [*(call(one) for one in calls)] or ["done"]
            session.after_call(answer(name, *content, usage={"input_tokens": tokens, "output_tokens": 1}))
            settle(session)
            for one in calls:
                session.add_tool_result(one, "found")
            return sum(1 for _ in told(session).named("notes"))

        lend(session, observer=Seen())
        session.add_user(ASKED)
        session.before_call()
        assert hear("m0", 9_000, "a") == 0
        assert hear("m1", 12_000, "b") == 1
        assert hear("m2", 16_999, "c", "d", "e") == 1, "grown by less than 5,000"
        assert hear("m3", 17_100, "f") == 2, "grown, and four calls since"
        assert hear("m4", 23_000, "g") == 2, "grown, but one call since"
        assert hear("m5", 23_100) == 3, "grown, and the last answer called no tool"


@pytest.mark.spec("N4")
def test_updates_never_overlap(messages_server: MessagesServer, tmp_path: Path) -> None:
    gate = threading.Event()
    under_way: list[int] = []

    def slowly(received: Received) -> Step:
        under_way.append(1)
        assert gate.wait(120)
        return by_rules(received)

    answering(messages_server, slowly)
    with connected(messages_server, tmp_path) as session:
        for number in range(6):
            session.add_user(f"Step {number}. {LONG}")
            session.ask()
        assert conversation_of(session).background.running("notes") is not None
        assert len(under_way) <= 1
        gate.set()
        settle(session)
        first = told(session).named("notes")
        assert len(first) == 1
        assert first[0]["tokens"] < session.window_state.tokens - 1_250
        talk(session, "and on")
        assert len(told(session).named("notes")) == 2
    assert len(under_way) == 2


def altered(received: Received) -> Step:
    made = by_rules(received)
    assert isinstance(made, Answer)
    return make_answer(text=made.blocks[0]["text"].replace("# Current State", "# Diary"))


@pytest.mark.spec("N1", "N3")
def test_an_update_that_fails_records_nothing_and_is_tried_again(messages_server: MessagesServer, tmp_path: Path) -> None:
    answering(messages_server, altered)
    with connected(messages_server, tmp_path) as session:
        fill(session, 3_000)
        assert not notes_file(session).exists()
        assert told(session).named("notes") == []
        assert "# Diary" in told(session).named("notes_failed")[0]["why"]
        assert state_of(conversation_of(session)).cursor is None
        answering(messages_server)
        talk(session, "go on")
        assert notes_file(session).exists()
        before = notes_file(session).read_text()
        answering(messages_server, altered)
        fill(session, session.window_state.tokens + 2_000)
        assert notes_file(session).read_text() == before
        assert len(told(session).named("notes")) == 1


@pytest.mark.spec("N3", "B3")
def test_a_provider_that_fails_every_time_is_not_asked_after_every_answer(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    answering(messages_server, lambda received: Status(status=500))
    with connected(messages_server, tmp_path, window=200_000) as session:
        fill(session, 30_000)
        failed = told(session).named("notes_failed")
        # Three in a row, then one for each 5,000 tokens.
        assert [one["times"] for one in failed] == list(range(1, len(failed) + 1))
        assert 4 <= len(failed) <= 7
        assert session.notices == []


@pytest.mark.spec("N3", "B3")
def test_notes_that_fail_for_good_are_reported_once_and_start_again_after_a_compaction(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    works = False

    def notes(received: Received) -> Step | str | None:
        return by_rules(received) if works else Status(status=500)

    def answers(received: Received) -> Step | str | None:
        if received.fork.startswith("summary"):
            return SUMMARY
        return notes(received) if purpose(received) == "notes" else None

    messages_server.answer_with(answers)
    with connected(messages_server, tmp_path, settings=Settings(notes_compaction=False)) as session:
        fill(session, 30_000)
        failed = told(session).named("notes_failed")
        assert len(failed) == CLASSIC.notes.breaker
        (said,) = [notice for notice in session.notices if "notes" in notice]
        assert said.startswith("Updating the session notes failed (8 failures in a row)")
        works = True
        fill(session, 35_000)
        assert told(session).named("notes") == [], "stopped"
        assert session.compact().done
        fill(session, session.window_state.tokens + 4_000)
        assert told(session).named("notes"), "started again"
        assert [notice for notice in session.notices if "notes" in notice] == [said]


BAD = {
    "refused": make_answer(text="No.", stop_reason="refusal"),
    "empty": make_answer(text=""),
    "cut off": make_answer(text="<notes>\n# Session", stop_reason="max_tokens"),
    "tools": make_answer(tool_use=("Bash", {"command": "rm -rf /"})),
    "too much": make_answer(text=f"<notes>\n{render(own_template().notes)}{'word ' * 100_000}\n</notes>"),
}


@pytest.mark.spec("N1", "B1")
@pytest.mark.parametrize("step", BAD.values(), ids=BAD)
def test_whatever_a_model_answers_the_conversation_goes_on_and_the_notes_stay(
    messages_server: MessagesServer, tmp_path: Path, step: Step
) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path) as session:
        fill(session, 3_000)
        before = notes_file(session).read_text()
        answering(messages_server, lambda received: step)
        fill(session, 6_000)
        assert notes_file(session).read_text() == before
        assert told(session).named("notes_failed")
        assert session.notices == []


def test_a_place_that_cannot_be_written_is_told_and_stops_nothing(messages_server: MessagesServer, tmp_path: Path) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path) as session:
        assert session.path is not None
        session.path.with_suffix("").mkdir(exist_ok=True)
        notes_file(session).parent.write_text("in the way")
        fill(session, 6_000)
        assert told(session).named("notes_failed")
        assert notes_file(session).parent.read_text() == "in the way"


def test_notes_turned_into_nonsense_are_kept_beside_and_the_person_is_told(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path) as session:
        fill(session, 3_000)
        notes_file(session).write_text("my shopping list")
        fill(session, 6_000)
        beside = Path(told(session).named("notes")[-1]["beside"])
        assert beside.read_text() == "my shopping list"
        assert notes_of(session).bodies[0]
        assert any("It is renamed" in notice for notice in session.notices)


@pytest.mark.spec("N4")
def test_a_persons_change_within_a_section_is_what_the_next_update_begins_with(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path) as session:
        fill(session, 3_000)
        learnings = own_template().heads[7].description
        mine = notes_file(session).read_text().replace(learnings, f"{learnings}\nnever use tabs")
        notes_file(session).write_text(mine)
        fill(session, 6_000)
        assert "never use tabs" in str(asked_for_notes(messages_server)[-1].body)
        assert notes_of(session).bodies[7] == "never use tabs"


@pytest.mark.spec("N5")
def test_a_template_and_prompt_in_the_home_are_used(messages_server: MessagesServer, tmp_path: Path) -> None:
    config = tmp_path / "session-memory" / "config"
    config.mkdir(parents=True)
    (config / "template.md").write_text("# Goal\n_why_\n")
    (config / "prompt.md").write_text("Write it down in {{notesPath}}. Now: {{currentNotes}} {{unknown}}")
    answering(messages_server, lambda received: make_answer(text="<notes>\n# Goal\n_why_\nto ship\n</notes>"))
    with connected(messages_server, tmp_path) as session:
        fill(session, 3_000)
        assert notes_file(session).read_text() == "# Goal\n_why_\nto ship\n"
        asked = str(asked_for_notes(messages_server)[0].body["messages"][-1])
        assert f"Write it down in {notes_file(session)}. Now: # Goal" in asked
        assert "{{unknown}}" in asked


@pytest.mark.spec("O1")
def test_offline_notes_are_written_from_the_request_alone(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, cwd=tmp_path, window=60_000) as session:
        talk(session, ASKED)
        for number in range(4):
            talk(session, f"Step {number}. {LONG}")
        notes = notes_of(session)
        assert notes.bodies[0] == ASKED
        assert notes.bodies[1].startswith("- Last request: Step ")
        assert ASKED in notes.bodies[2]


@pytest.mark.spec("N3")
def test_a_resumed_session_knows_what_its_notes_cover(messages_server: MessagesServer, tmp_path: Path) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path) as session:
        fill(session, 3_000)
        cursor = state_of(conversation_of(session)).cursor
    assert cursor is not None
    with connected(messages_server, tmp_path, resume=session.id) as again:
        assert state_of(conversation_of(again)).cursor == cursor
        before = len(asked_for_notes(messages_server))
        talk(again, "short")
        assert len(asked_for_notes(messages_server)) == before


def test_an_update_that_ends_after_its_session_was_aborted_changes_nothing(
    messages_server: MessagesServer, tmp_path: Path
) -> None:
    gate, begun = threading.Event(), threading.Event()

    def slowly(received: Received) -> Step:
        begun.set()
        assert gate.wait(120)
        return by_rules(received)

    answering(messages_server, slowly)
    with connected(messages_server, tmp_path) as session:
        for number in range(3):
            session.add_user(f"Step {number}. {LONG}")
            session.ask()
        assert begun.wait(120)
        session.abort()
        gate.set()
        assert conversation_of(session).background.wait("notes", 120)
        assert not notes_file(session).exists()
    answering(messages_server)
    with connected(messages_server, tmp_path, resume=session.id) as again:
        assert state_of(conversation_of(again)).cursor is None
        talk(again, "go on")
        assert notes_file(again).exists()


def test_a_session_continued_under_another_id_begins_its_own_notes(messages_server: MessagesServer, tmp_path: Path) -> None:
    answering(messages_server)
    with connected(messages_server, tmp_path) as session:
        fill(session, 3_000)
        with connected(messages_server, tmp_path, resume=session.id) as other:
            assert other.id != session.id
            assert state_of(conversation_of(other)).cursor is None
            talk(other, "go on")
            assert notes_file(other).exists()
            assert notes_file(other) != notes_file(session)
