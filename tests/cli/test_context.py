"""`lamina context`: the context window of recorded and live sessions, and the exact request of any call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest
from tests.history import agents
from tests.session.foreign import foreign_transcript

from lamina.agent.agent import Agent
from lamina.providers import open_provider
from lamina.session.base import working
from lamina.session.session import Session
from lamina.testing import MessagesServer

from .running import here, lamina, misused, on_a_terminal


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "home"))
    return place


def report(session: str, *arguments: str) -> dict[str, Any]:
    done = here("context", session, "--json", *arguments)
    assert (done.returncode, done.stderr) == (0, ""), done
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture
def client(messages_server: MessagesServer) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key="any", base_url=messages_server.url) as client:
        yield client


def talk(server: MessagesServer, client: anthropic.Anthropic, work: Path, *, rounds: int = 3) -> Agent:
    """An agent that has read one file again and again."""
    (work / "CLAUDE.md").write_text("Use tabs.")
    (work / "app.py").write_text("x = 1\n" * 200)
    provider = open_provider("anthropic:claude-sonnet-5-5", client=client)
    agent = Agent.open(provider, cwd=work, mode="all")
    for _ in range(rounds):
        server.reply(thinking="Hm.", text="Let me look.", tool_use=("Read", {"file_path": str(work / "app.py")}))
    server.reply(tool_use=("Bash", {"command": "echo hello"}))
    server.reply(text="It sets x.")
    agent.run("What does it do?")
    return agent


@pytest.mark.spec("T8")
def test_every_kind_has_its_tokens_and_files_read_again_are_named(
    messages_server: MessagesServer, client: anthropic.Anthropic, work: Path
) -> None:
    with talk(messages_server, client, work) as agent:
        live = report(agent.session.id)
        assert live["session_id"] == agent.session.id
        tokens, left = agent.session.window_state.tokens, agent.session.window_state.percent_left
    found = report(live["session_id"][:8])
    assert found == live, "a live session reads as a recorded one"
    assert json.loads(here("context", "--json").stdout) == live, "the newest session is taken without an id"
    for kind in ("human", "assistant", "thinking", "memory", "system_and_tools"):
        assert found[kind] > 0, kind
    assert list(found["results"]) == ["Read", "Bash"]
    assert set(found["requests"]) == {"Read", "Bash"}
    (again,) = found["repeats"]
    assert (again["path"], again["reads"]) == (str(work / "app.py"), 3)
    assert found["tokens"] == tokens
    assert found["tokens"] == found["system_and_tools"] + found["total"]
    assert found["percent_left"] == round(left, 1)
    assert found["model"] == "claude-sonnet-5-5"


@pytest.mark.spec("T8")
def test_a_person_gets_a_table_that_fits(
    messages_server: MessagesServer, client: anthropic.Anthropic, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with talk(messages_server, client, work) as agent:
        name = agent.session.id
    for columns in (120, 80, 40):
        monkeypatch.setenv("COLUMNS", str(columns))
        rows = here("context", name).stdout.splitlines()
        said = " ".join(rows)
        assert said.startswith("claude-sonnet-5-5: about ")
        assert "% left Context window: " in said
        assert any("Read results" in line for line in rows)
        assert any("3 times" in line for line in rows)
        assert all(len(line) <= columns for line in rows if not line.startswith(("Files read", "Large results"))), rows


@pytest.mark.spec("T8")
def test_the_rows_add_up_to_the_header_even_if_the_model_reported_less_than_the_estimate(work: Path) -> None:
    usage = {"input_tokens": 900, "output_tokens": 5}
    with Session("anthropic:claude-haiku-4-5", cwd=work, system="Be brief, and be kind.") as session:
        session.add_user("What is here? " * 1_000)
        session.before_call()
        session.after_call(
            {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "Words."}], "usage": usage} | DONE
        )
    found = report(session.id)
    assert found["tokens"] == 905
    assert found["system_and_tools"] > 0
    assert found["system_and_tools"] + found["total"] == 905
    rows = [line.split() for line in here("context", session.id).stdout.splitlines() if line.startswith("  ")]
    numbers = [int(word.replace(",", "")) for row in rows for word in row if word.replace(",", "").isdigit()]
    assert sum(numbers) == 905, rows


DONE = {"type": "message", "model": "claude-haiku-4-5", "stop_reason": "end_turn", "stop_sequence": None}


@pytest.mark.spec("T8")
def test_the_window_and_its_thresholds_are_named(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Session("anthropic:claude-haiku-4-5", cwd=work) as session:
        session.sync([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}])
        with working(session) as c:
            limits = c.limits
    asked = {"size": 200_000, "source": "model", "auto_compact": True, "last_compacted_at": None}
    names = ("effective", "warning", "autocompact", "blocking")
    assert report(session.id)["window"] == asked | {name: getattr(limits, name) for name in names}
    said = " ".join(here("context", session.id).stdout.split())
    assert (
        "Context window: 200,000 tokens (known for this model). 20,000 of them are reserved for the answer, 180,000 are usable."
        in said
    )
    assert f"Warning at {limits.warning:,}, automatic compaction at {limits.autocompact:,}, full at {limits.blocking:,}." in said
    monkeypatch.setenv("LAMINA_CONTEXT_WINDOW", "50000")
    monkeypatch.setenv("DISABLE_AUTO_COMPACT", "1")
    changed = report(session.id)["window"]
    assert (changed["size"], changed["source"], changed["auto_compact"]) == (50_000, "setting", False)
    assert "automatic compaction is off" in here("context", session.id).stdout


@pytest.mark.spec("T8")
def test_the_bar_is_for_terminals_and_its_colour_for_those_who_want_one(work: Path) -> None:
    with Session("offline", cwd=work) as session:
        session.add_user("hi " * 500)
    colour = b"\x1b[32m["
    seen, code = on_a_terminal("context", session.id, cwd=work)
    assert (code, colour in seen, "░".encode() in seen) == (0, True, True)
    seen, code = on_a_terminal("context", session.id, cwd=work, NO_COLOR="1")
    assert (code, b"\x1b" in seen, "░".encode() in seen) == (0, False, True)
    piped = lamina("context", session.id, cwd=work)
    assert (piped.returncode, "\x1b" in piped.stdout, "░" in piped.stdout, "█" in piped.stdout) == (0, False, False, False)


def test_the_exact_request_of_a_call_is_what_was_sent(
    messages_server: MessagesServer, client: anthropic.Anthropic, work: Path
) -> None:
    with talk(messages_server, client, work, rounds=1) as agent:
        name = agent.session.id
    for number, sent in enumerate(messages_server.requests, 1):
        done = here("context", name, "--turn", str(number), "--json")
        shown = json.loads(done.stdout)
        assert shown["messages"] == unmarked(sent.body["messages"])
        assert shown["system"] == unmarked(sent.body["system"])
        assert shown["tools"] == unmarked(sent.body["tools"])
        assert shown["model"] == sent.body["model"]
    assert misused(here("context", name, "--turn", "9"))


def unmarked(value: Any) -> Any:
    """Without the cache marks, which belong to the sending."""
    if isinstance(value, dict):
        return {key: unmarked(item) for key, item in value.items() if key != "cache_control"}
    return [unmarked(item) for item in value] if isinstance(value, list) else value


def test_what_was_taken_back_no_longer_counts(tmp_path: Path, work: Path) -> None:
    with Agent.open("offline", cwd=work) as agent:
        agent.run("Remember: one.")
        before = report(agent.session.id)
        agent.run("Remember: two, " + "and so on " * 500)
        assert report(agent.session.id)["human"] > before["human"] + 500
        agent.session.undo_turn()
        assert report(agent.session.id)["human"] == before["human"]


def test_another_programs_transcript_and_a_new_session_can_be_looked_at(tmp_path: Path, work: Path) -> None:
    assert report(str(foreign_transcript(tmp_path / "theirs")))["total"] > 0
    with Session("offline", cwd=work) as session:
        session.add_user("hello")
        assert report(session.id)["model"] == ""


def test_what_is_no_session_is_said_in_one_line(tmp_path: Path) -> None:
    assert misused(here("context", "no-such-session"))
    assert misused(here("context"))
    assert misused(here("context", str(tmp_path / "none.jsonl")))
    (tmp_path / "other.jsonl").write_text('{"no": "record"}\n' * 3)
    assert misused(here("context", str(tmp_path / "other.jsonl")))


def test_no_control_sequence_of_a_session_reaches_the_terminal(tmp_path: Path, work: Path) -> None:
    with Session("offline", cwd=work) as session:
        call = {"type": "tool_use", "id": "t1", "name": "Evil\x1b]0;owned\x07", "input": {}}
        session.sync([{"role": "user", "content": "hi"}, {"role": "assistant", "content": [call]}])
        for form in ((), ("--json",)):
            done = here("context", session.id, *form)
            assert done.returncode == 0
            assert "\x1b" not in done.stdout
            assert "\x07" not in done.stdout


@pytest.mark.spec("B10")
def test_a_request_is_told_block_by_block_with_tokens_and_what_the_cache_gave(
    messages_server: MessagesServer, client: anthropic.Anthropic, work: Path
) -> None:
    with talk(messages_server, client, work, rounds=2) as agent:
        name = agent.session.id
    shown = report(name, "--turn", "3")
    blocks = shown["blocks"]
    places = [("tools", block) for block in shown["tools"]] + [("system", block) for block in shown["system"]]
    places += [("messages", block) for message in shown["messages"] for block in message["content"]]
    assert len(blocks) == len(places)
    assert [block["path"].split("[")[0] for block in blocks] == [where for where, _ in places]
    kinds = {block["kind"] for block in blocks}
    assert {"message", "attachment:instructions", "thinking", "call of Read", "result of Read"} <= kinds
    usage = shown["usage"]
    whole = usage["input_tokens"] + usage["cache_read_input_tokens"] + usage["cache_creation_input_tokens"]
    assert abs(sum(block["tokens"] for block in blocks) - whole) <= len(blocks)
    cached = [block["cached"] for block in blocks]
    assert cached[0] == "read"
    assert cached[-1] == "new"
    assert cached == sorted(cached, key=["read", "partly", "new"].index)
    assert shown["breaks"] == []


@pytest.mark.spec("B10")
def test_two_requests_are_compared_block_by_block(
    messages_server: MessagesServer, client: anthropic.Anthropic, work: Path
) -> None:
    with talk(messages_server, client, work, rounds=2) as agent:
        name = agent.session.id
        agent.session.undo_turn()
        messages_server.reply(text="Something else.")
        agent.run("And now?")
    grown = report(name, "--turn", "3", "--against", "2")["changed"]
    assert grown["removed"] == []
    assert [block["kind"] for block in grown["added"]] == ["thinking", "answer", "call of Read", "result of Read"]
    after = report(name, "--turn", "5", "--against", "4")
    assert after["breaks"] == ["branch"]
    assert after["changed"]["removed"]
    assert [block["words"] for block in after["changed"]["added"]] == ["And now?"]
    text = here("context", name, "--turn", "5", "--against", "4").stdout
    assert "Expected cache break before this call: branch" in text
    assert "And now?" in text
    assert misused(here("context", name, "--against", "1"))


def test_the_system_prompt_of_another_agent_is_a_block_of_its_own(tmp_path: Path) -> None:
    rows = [agents.claude_user(1, "Fix the test."), *agents.claude_answer(1, agents.said("Done."))]
    shown = report(str(agents.write(tmp_path / "other.jsonl", rows)), "--turn", "1")
    assert [(block["kind"], block["words"]) for block in shown["blocks"]] == [("not recorded", ""), ("message", "Fix the test.")]
    head, first = (block["tokens"] for block in shown["blocks"])
    assert head + first == 1_100
    assert first < 20
