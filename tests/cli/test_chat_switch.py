"""Switching models and resuming another program's session: the prompt stays, the cache break is expected, counting restarts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anthropic
import pytest
from tests.cli.running import lamina
from tests.session.foreign import foreign_transcript

from lamina.agent.agent import Agent
from lamina.core.errors import InputError
from lamina.core.records import Break
from lamina.disk.transcripts.store import read_transcript
from lamina.providers import Provider, open_provider
from lamina.session.base import working
from lamina.session.session import Session
from lamina.testing import MessagesServer


@pytest.fixture
def client(messages_server: MessagesServer) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key="any", base_url=messages_server.url) as client:
        yield client


def model(client: anthropic.Anthropic, name: str) -> Provider:
    return open_provider(f"anthropic:{name}", client=client)


@pytest.mark.prefix_free("another model reads nothing of the first one's cache, and says so in a record")
def test_another_model_goes_on_with_the_same_conversation(
    messages_server: MessagesServer, client: anthropic.Anthropic, tmp_path: Path
) -> None:
    messages_server.reply(text="One.")
    messages_server.reply(text="Two.")
    with Agent.open(model(client, "claude-sonnet-5-5"), cwd=tmp_path, home=tmp_path / "home") as agent:
        agent.run("first")
        before = agent.session.window_state.tokens
        agent.session.switch_model(model(client, "claude-haiku-4-5"))
        assert agent.session.window_state.tokens == pytest.approx(before, rel=0.2), "an estimate until the new model reports"
        agent.run("second")
        path = agent.session.path
    first, second = messages_server.requests
    assert (first.body["model"], second.body["model"]) == ("claude-sonnet-5-5", "claude-haiku-4-5")
    assert second.body["system"] == first.body["system"]
    assert second.body["tools"] == first.body["tools"]
    assert "One." in str(second.messages)
    assert path is not None
    assert len([record for record in read_transcript(path) if isinstance(record, Break)]) == 1


def test_a_smaller_window_counts_from_the_switch_on(tmp_path: Path) -> None:
    with Agent.open("anthropic:claude-sonnet-5-5", cwd=tmp_path, in_memory=True) as agent:
        wide = agent.session.window_state.percent_left
        agent.session.add_user("word " * 50_000)
        before = agent.session.window_state.percent_left
        agent.session.switch_model(open_provider("offline"))
        assert wide > before > agent.session.window_state.percent_left


def test_another_programs_session_gets_the_tools_it_does_not_tell_of(
    messages_server: MessagesServer, client: anthropic.Anthropic, tmp_path: Path
) -> None:
    source = foreign_transcript(tmp_path / "theirs")
    messages_server.reply(text="Here I am.")
    provider = model(client, "claude-sonnet-5-5")
    with Agent.open(provider, cwd=tmp_path, home=tmp_path / "home", resume=source) as agent:
        agent.run("hello")
        path = agent.session.path
    (sent,) = messages_server.requests
    assert [tool["name"] for tool in sent.body["tools"]] == [
        "Read",
        "Write",
        "Edit",
        "Grep",
        "Glob",
        "Bash",
        "TodoWrite",
        "Expand",
        "PastSearch",
        "SendMessage",
        "Agent",
    ]
    assert sent.body["system"]
    messages_server.reply(text="Still here.")
    with Agent.open(provider, cwd=tmp_path, home=tmp_path / "home", resume=path) as again:
        again.run("and now?")
    assert messages_server.requests[-1].body["tools"][0]["name"] == "Read"


def window_of(session: Session) -> int:
    with working(session) as c:
        return c.limits.window


def test_a_window_that_was_asked_for_stays_with_another_model(tmp_path: Path) -> None:
    with Session("anthropic:claude-sonnet-5-5", in_memory=True, window=50_000, cwd=tmp_path) as session:
        asked = window_of(session)
        session.switch_model(open_provider("offline"))
        assert window_of(session) == asked == 50_000
        session.switch_model(open_provider("offline"), window=30_000)
        session.switch_model(open_provider("offline"))
        assert window_of(session) == 30_000


def test_no_window_that_was_asked_for_is_wider_than_the_new_model_takes(tmp_path: Path) -> None:
    with Session("offline", in_memory=True, window=900_000, cwd=tmp_path) as session:
        session.switch_model(open_provider("anthropic:claude-haiku-4-5", api_key="any"))
        assert window_of(session) == 200_000
        session.switch_model(open_provider("offline"))
        assert window_of(session) == 900_000
        with pytest.raises(InputError, match="too small"):
            session.switch_model(open_provider("anthropic:claude-haiku-4-5", api_key="any"), window=10)
        assert session.provider.name == "offline"
        assert window_of(session) == 900_000


@pytest.mark.exhaustive
@pytest.mark.prefix_free("one session with two models, each announced")
def test_a_resumed_session_keeps_its_model(messages_server: MessagesServer, tmp_path: Path) -> None:
    def answer(*arguments: str) -> str:
        return lamina(*arguments, cwd=tmp_path, ANTHROPIC_API_KEY="any", ANTHROPIC_BASE_URL=messages_server.url).stdout

    for text in ("One.", "Two.", "Three."):
        messages_server.reply(text=text)
    assert answer("-p", "first", "--model", "claude-haiku-4-5") == "One.\n"
    assert answer("--continue", "-p", "second") == "Two.\n"
    assert answer("--continue", "-p", "third", "--model", "claude-sonnet-5-5") == "Three.\n"
    models = [request.body["model"] for request in messages_server.requests if not request.fork]
    assert models == ["claude-haiku-4-5", "claude-haiku-4-5", "claude-sonnet-5-5"]
