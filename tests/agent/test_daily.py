"""Assistant mode in a conversation: the log instead of the index, no extraction, and the model learns when the day changes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.session.compacting import quiet, summarising

from lamina.agent.agent import Agent
from lamina.cli.dream_status import read_status
from lamina.cli.start import MemorySource
from lamina.core.settings import Settings
from lamina.disk.settings_files import lamina_home
from lamina.layers.l6_dream.gates import MOST_FAILURES
from lamina.layers.l6_dream.trigger import DreamState
from lamina.memory.memory import Memory
from lamina.providers.offline import OfflineProvider
from lamina.session.base import working
from lamina.session.provider import offline
from lamina.testing import MessagesServer

from .agent_helpers import accepted, contexts, reminders, results
from .dream_helpers import Dreamer, kept

Open = Callable[..., Agent]
ASSISTANT = Settings(assistant=True, index_in_prompt=False, extraction=False)
EVENING, NIGHT, NEXT_NIGHT = "2026-03-31T21:00:00.000Z", "2026-04-01T00:10:00.000Z", "2026-04-02T00:10:00.000Z"
CHANGED = "it was {}, today is {}."


@pytest.fixture(autouse=True)
def greenwich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The user's day is that of their clock."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        if hasattr(time, "tzset"):
            time.tzset()
        yield
    if hasattr(time, "tzset"):
        time.tzset()


@pytest.fixture
def memory(project: Path) -> Iterator[Memory]:
    with Memory.open(project) as memory:
        yield memory


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Set the clock of every session from now on."""

    def say(now: str) -> None:
        monkeypatch.setattr("lamina.session.base._now", lambda: now)

    say(EVENING)
    return say


def said_dates(server: MessagesServer) -> list[str]:
    """Return the changes of date in the newest request."""
    return [text for text in reminders(accepted(server)[-1]) if "The date has changed" in text]


def turn(agent: Agent, server: MessagesServer, words: str = "Go on.") -> None:
    server.reply(text="Done.")
    agent.run(words)


def moved(agent: Agent, now: str) -> None:
    with working(agent.session) as conversation:
        conversation.clock = lambda: now


@pytest.mark.spec("W2", "S9")
def test_the_model_notes_in_the_log_of_the_day_and_the_index_is_not_sent(
    opened: Open, messages_server: MessagesServer, memory: Memory, at: Callable[[str], None]
) -> None:
    memory.save("testing-db", type="feedback", description="Tests use a real database", body="b")
    path = memory.path / "logs/2026/03/2026-03-31.md"
    messages_server.reply(tool_use=("Write", {"file_path": str(path), "content": "- We deploy on Thursdays\n"}, "w1"))
    messages_server.reply(tool_use=("Edit", {"file_path": str(path), "old_string": "Thurs", "new_string": "Fri"}, "e1"))
    messages_server.reply(text="Noted.")
    agent = opened(settings=ASSISTANT, mode="ask")
    answer = agent.run("We deploy on Thursdays, remember that.")
    assert answer.notices == ("Added 1 bullet to the log of 2026-03-31.",)
    assert path.read_text() == "- 21:00 We deploy on Thursdays\n"
    first, second, third = accepted(messages_server)
    text = json.dumps(first.body["system"])
    assert "logs/YYYY/MM/YYYY-MM-DD.md" in text
    assert "2026-03-31" not in text, "the prompt is the same tomorrow"
    assert "Tests use a real database" not in json.dumps(first.body["messages"])
    assert results(second)["w1"].startswith("Added 1 bullet at the end of")
    assert results(third)["e1"].startswith("!")


@pytest.mark.spec("W2")
def test_what_is_remembered_offline_goes_into_the_log_and_is_found_there(
    opened: Open, memory: Memory, at: Callable[[str], None]
) -> None:
    agent = opened(provider=OfflineProvider(), settings=ASSISTANT)
    assert agent.run("Remember: 1) deploys happen on Thursdays 2) Anna leads the team").text.startswith(
        "I added this to today's log"
    )
    text = (memory.path / "logs/2026/03/2026-03-31.md").read_text()
    assert text == "- 21:00 deploys happen on Thursdays\n- 21:00 Anna leads the team\n"
    assert memory.topics() == []
    later = opened(provider=OfflineProvider(), settings=ASSISTANT)
    assert later.run("When do deploys happen?").text == "- 21:00 deploys happen on Thursdays\n(memory: 2026-03-31)"


@pytest.mark.spec("W2", "I4")
def test_at_midnight_the_model_is_told_once_behind_what_has_not_left_yet(
    opened: Open, messages_server: MessagesServer, at: Callable[[str], None]
) -> None:
    agent = opened(settings=ASSISTANT)
    turn(agent, messages_server)
    assert "Today is 2026-03-31." in reminders(messages_server.requests[-1])[0]
    assert said_dates(messages_server) == []
    moved(agent, NIGHT)
    turn(agent, messages_server)
    [told] = said_dates(messages_server)
    assert CHANGED.format("2026-03-31", "2026-04-01") in told
    assert messages_server.requests[-1].messages[-1]["content"][-1]["text"] == told
    turn(agent, messages_server)
    assert said_dates(messages_server) == [told], "once"
    moved(agent, NEXT_NIGHT)
    turn(agent, messages_server)
    assert CHANGED.format("2026-04-01", "2026-04-02") in said_dates(messages_server)[1]
    assert contexts(agent).count("date") == 2


@pytest.mark.spec("W2")
def test_a_turn_that_goes_past_midnight_is_told_behind_its_results_and_writes_to_the_new_day(
    opened: Open, messages_server: MessagesServer, memory: Memory, at: Callable[[str], None]
) -> None:
    agent = opened(settings=ASSISTANT)
    old, new = (str(memory.path / f"logs/2026/{file}.md") for file in ("03/2026-03-31", "04/2026-04-01"))
    messages_server.reply(tool_use=("Write", {"file_path": old, "content": "- late"}, "w1"))
    messages_server.reply(tool_use=("Write", {"file_path": new, "content": "- early"}, "w2"))
    messages_server.reply(text="Done.")
    with working(agent.session) as conversation:
        agent.on_event = lambda event: setattr(conversation, "clock", lambda: NIGHT) if event["type"] == "tool_call" else None
    agent.run("Go on.")
    first, second, third = accepted(messages_server)
    assert not any("The date has changed" in text for text in reminders(first))
    assert "only today's can be extended; write to logs/2026/04/2026-04-01.md" in results(second)["w1"]
    assert CHANGED.format("2026-03-31", "2026-04-01") in second.messages[-1]["content"][-1]["text"]
    assert "Added 1 bullet" in results(third)["w2"]
    assert len(said_dates(messages_server)) == 1
    assert not Path(old).exists()


@pytest.mark.spec("W2")
def test_the_change_is_told_once_also_after_a_resume(
    opened: Open, messages_server: MessagesServer, at: Callable[[str], None]
) -> None:
    agent = opened(settings=ASSISTANT, session_id="days")
    turn(agent, messages_server)
    agent.close()
    at(NIGHT)
    again = opened(settings=ASSISTANT, resume="days")
    turn(again, messages_server)
    assert len(said_dates(messages_server)) == 1
    again.close()
    third = opened(settings=ASSISTANT, resume="days")
    turn(third, messages_server)
    assert len(said_dates(messages_server)) == 1


@pytest.mark.spec("W2", "I4")
def test_behind_a_compaction_the_first_reminder_gives_the_new_date_and_no_change_is_told(
    opened: Open, messages_server: MessagesServer, at: Callable[[str], None]
) -> None:
    agent = opened(settings=quiet())
    messages_server.reply(text="Once upon a time there was a long story. " * 400)
    agent.run("Tell me a story.")
    turn(agent, messages_server)
    moved(agent, NIGHT)
    messages_server.answer_with(summarising())
    assert agent.compact().done
    turn(agent, messages_server)
    assert any("Today is 2026-04-01." in text for text in reminders(messages_server.requests[-1]))
    assert said_dates(messages_server) == []


@pytest.mark.spec("W2", "X2")
def test_nothing_is_extracted_in_assistant_mode(
    opened: Open, messages_server: MessagesServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lamina.disk.settings_files import load_settings

    settings = load_settings(
        cwd=tmp_path, environ={"LAMINA_ASSISTANT": "1", "LAMINA_HOME": str(tmp_path / "h")}, home=tmp_path / "h"
    )
    assert settings.assistant
    messages_server.reply(text="Good to know.")
    agent = opened(settings=settings, interactive=True)
    agent.run("I always want tests against a real database, never mocks.")
    agent.close()
    assert len(messages_server.requests) == 1
    assert not [record for record in agent.session.notices if "memor" in record.lower()]


@pytest.mark.spec("W2", "D1")
def test_the_first_turn_after_midnight_starts_a_dream_that_makes_memories_of_the_log(
    opened: Open, memory: Memory, at: Callable[[str], None]
) -> None:
    agent = opened(provider=OfflineProvider(), settings=ASSISTANT, interactive=True)
    agent.run("Remember: deploys happen on Thursdays because Friday is short")
    assert agent.session.status.background_jobs == (), "the day is not over"
    moved(agent, NIGHT)
    agent.run("Hello again.")
    agent.close()
    [topic] = memory.topics()
    assert (topic.description, topic.file in memory.index()) == ("deploys happen on Thursdays", True)
    assert "**Why:** Friday is short." in topic.body
    assert [notice for notice in agent.session.notices if notice.startswith("Dream finished: ")]
    assert (memory.path / "logs/2026/03/2026-03-31.md").read_text().count("\n") == 1, "the log stays as it is"


@pytest.mark.spec("W2", "D1", "O1")
def test_the_first_turn_after_midnight_dreams_however_late_the_last_one_was(
    opened: Open, memory: Memory, at: Callable[[str], None]
) -> None:
    log = memory.path / "logs/2026/03/2026-03-31.md"
    log.parent.mkdir(parents=True)
    log.write_text("- 09:12 Deploys happen on Thursdays; why: Friday is short\n- 14:05 Anna leads the team since March\n")
    one = Dreamer(opened, provider=offline(), settings=ASSISTANT)
    moved(one.agent, "2026-03-31T23:57:00.000Z")
    one.run()
    assert [event["stopped"] for event in one.events] == ["nothing"], "the log of today is not finished"
    moved(one.agent, "2026-04-01T00:03:00.000Z")
    one.run("Good morning.")
    one.settle()
    assert [record.status for record in kept(memory.path)] == ["completed"]
    assert {topic.name: topic.body for topic in memory.topics()} == {
        "deploys-happen-thursdays": "Deploys happen on Thursdays.\n\n**Why:** Friday is short.\n\nSaid on 2026-03-31.\n",
        "anna-leads-team-since-march": "Anna leads the team since March.\n",
    }


@pytest.mark.spec("D5", "D1")
def test_the_status_in_a_chat_names_the_gate_that_its_next_turn_meets(
    opened: Open, memory: Memory, project: Path, at: Callable[[str], None]
) -> None:
    memory.save("testing-db", type="feedback", description="Tests use a real database", body="b")
    one = Dreamer(opened, provider=offline(), settings=Settings(dream_sessions=1, extraction=False))
    source = MemorySource(project, lamina_home(os.environ), one.agent.session.settings)

    def gate() -> tuple[str | None, str | None]:
        with working(one.agent.session) as conversation:
            inside, outside = read_status(source, conversation).stop, read_status(source).stop
        return inside and inside.gate, outside and outside.gate

    one.run()
    assert gate() == ("sessions", None), "another session would count this one; a look a moment ago is no reason"
    moved(one.agent, "2026-03-31T21:20:00.000Z")
    assert gate() == ("sessions", None), "its own transcript does not count"
    with working(one.agent.session) as conversation:
        conversation.layer_state(DreamState).failures = MOST_FAILURES
    assert gate() == ("failures", None)
