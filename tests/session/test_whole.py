"""A bare session is all seven layers: instruction files, memory, recall, extraction and dreams under a loop that is not ours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest
from tests.agent.dream_helpers import kept, remembered

import lamina
from lamina.conversation.isolate import take_job_results
from lamina.core.errors import InputError
from lamina.core.settings import Settings
from lamina.disk.files import DREAM_LOCK
from lamina.fork.fork import directive_in
from lamina.session.base import context_of, conversation_of, working
from lamina.testing import MessagesServer

from . import clearing
from .words import Wire, answer

WORDS = "Please run integration tests against a real database, mocks have bitten us."
RULE = {
    "file": "testing-db.md",
    "type": "feedback",
    "description": "Integration tests run against a real database",
    "body": "Integration tests run against a real database.",
}
NOW: Wire = {"name": "Now", "description": "Tells the time.", "input_schema": {"type": "object", "properties": {}}}
PATIENCE = 120
QUIET = {"session_notes": False}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = (tmp_path / "project").resolve()
    path.mkdir()
    (path / "CLAUDE.md").write_text("Use two spaces after a full stop.\n")
    return path


@pytest.fixture
def client(messages_server: MessagesServer) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key="any", base_url=messages_server.url, max_retries=0) as client:
        yield client


def opened(project: Path, client: Any = None, **given: Any) -> lamina.Session:
    given = {"system": "Be brief.", "settings": Settings(**QUIET), **given}
    return lamina.Session("anthropic:claude-sonnet-5-5", cwd=project, client=client, **given)


def turn(session: lamina.Session, client: anthropic.Anthropic, words: str) -> str:
    """The README's loop."""
    session.add_user(words)
    while True:
        reply = session.after_call(client.messages.create(**session.before_call()))
        if not reply.tool_uses:
            session.end_turn()
            return reply.text
        for call in reply.tool_uses:
            if not session.answer_tool(call):
                session.add_tool_result(call.id, "It is noon.")


def settle(session: lamina.Session, job: str) -> None:
    with working(session) as c:
        assert c.background.wait(job, PATIENCE)
        take_job_results(c)


def texts(request: Wire) -> list[str]:
    return [block["text"] for message in request["messages"] for block in message["content"] if block["type"] == "text"]


def system(request: Wire) -> str:
    return "\n".join(block["text"] for block in request["system"])


def listed(*memories: Wire) -> str:
    return f"<memories>{json.dumps(memories)}</memories>"


# The prompt


@pytest.mark.spec("U2", "I4")
def test_instruction_files_come_once_before_the_first_message(project: Path) -> None:
    with opened(project) as session:
        session.add_user("Hello.")
        first = session.before_call()
        assert "Use two spaces" in texts(first)[0]
        assert texts(first)[1] == "Hello."
        session.after_call(answer("m1", "Hi."))
        session.add_user("And now?")
        assert [text.count("Use two spaces") for text in texts(session.before_call())] == [1, 0, 0, 0]
        assert session.status.cache_breaks == 0
        path = session.path
    with opened(project, resume=path, system=None) as session:
        assert session.before_call()["messages"][0] == first["messages"][0]


@pytest.mark.spec("U2", "S9")
def test_the_memory_section_follows_the_callers_system_prompt(project: Path) -> None:
    with opened(project) as session:
        session.add_user("Hello.")
        blocks = session.before_call()["system"]
        assert blocks[0]["text"] == "Be brief."
        assert blocks[1]["text"].startswith("# Memory\n")
        path = session.path
        session.after_call(answer("m1", "Hi."))
    with opened(project, resume=path) as session:
        session.add_user("Again.")
        assert [block["text"] for block in session.before_call()["system"]] == [block["text"] for block in blocks]
        assert session.status.cache_breaks == 0


@pytest.mark.spec("U2")
@pytest.mark.parametrize(
    ("off", "gone"),
    [
        ({"instructions": False}, ("two spaces", "Today is")),
        ({"memory": False}, ("# Memory", "Drinks it black", "coffee.md")),
        ({"recall": False}, ("<recalled-memory>",)),
        ({"instructions": False, "memory": False}, ("two spaces", "Today is", "# Memory", "coffee.md", "<system-reminder>")),
    ],
)
def test_each_part_is_turned_off_by_one_argument(project: Path, off: dict[str, bool], gone: tuple[str, ...]) -> None:
    with lamina.Memory.open(project) as memory:
        memory.save("coffee", type="user", description="Drinks it black", body="Coffee without sugar.")
    parts = ("two spaces", "Today is", "# Memory", "coffee.md", "<recalled-memory>")

    def said(**given: bool) -> str:
        with opened(project, **given) as session:
            session.add_user("How do I drink my coffee, black or with sugar?")
            request = session.before_call()
            return system(request) + "\n".join(texts(request))

    whole, less = said(), said(**off)
    assert all(part in whole for part in parts)
    assert not any(part in less for part in gone)
    if "memory" not in off:
        assert "coffee.md" in less


@pytest.mark.spec("U1", "U2")
def test_an_argument_wins_over_the_settings_and_the_environment(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_INSTRUCTIONS", "0")
    with lamina.Session("offline", cwd=project) as session:
        assert not session.settings.instructions
    with lamina.Session("offline", cwd=project, instructions=True, recall=False) as session:
        assert session.settings.instructions
        assert not session.settings.recall
        assert session.settings.resolved("recall").source == "argument"
    with lamina.Session("offline", cwd=project, settings=Settings(recall=True), recall=False) as session:
        assert not session.settings.recall


@pytest.mark.spec("U2")
def test_a_session_in_memory_gets_instruction_files_and_no_memory(project: Path, tmp_path: Path) -> None:
    with opened(project, in_memory=True) as session:
        session.add_user("Hello.")
        request = session.before_call()
        assert "Use two spaces" in texts(request)[0]
        assert system(request) == "Be brief."
        session.after_call(answer("m1", "Hi."))
        session.end_turn()
        assert session.status.background_jobs == ()


@pytest.mark.spec("U2", "I4")
def test_an_editors_selection_is_sent_once(project: Path) -> None:
    with opened(project, selection="def add(a, b):") as session:
        session.add_user("What does this do?")
        assert "<editor-selection>\ndef add(a, b):\n</editor-selection>" in texts(session.before_call())[0]


@pytest.mark.spec("U2")
def test_a_list_of_the_callers_own_gets_the_same_and_keeps_it_when_it_branches(project: Path) -> None:
    with opened(project) as session:
        session.sync([{"role": "user", "content": "Hello."}])
        first = texts(session.before_call())
        assert "Use two spaces" in first[0]
        session.sync([{"role": "user", "content": "Something else."}])
        second = texts(session.before_call())
        assert [second[0], second[-1]] == [first[0], "Something else."]
        assert "Hello." not in second


def test_an_async_session_is_as_whole(project: Path) -> None:
    async def run() -> Wire:
        async with lamina.AsyncSession("offline", cwd=project) as session:
            session.add_user("Hello.")
            return await session.before_call()

    request = asyncio.run(run())
    assert "Use two spaces" in texts(request)[0]
    assert "# Memory" in system(request)


# Tools


@pytest.mark.spec("U2")
def test_a_host_offers_the_tools_in_two_lines(
    project: Path, client: anthropic.Anthropic, messages_server: MessagesServer
) -> None:
    memory = {"name": "deploy-day", "type": "project", "description": "We deploy on Thursdays", "body": "Never on a Friday."}
    messages_server.reply(tool_use=("MemorySave", memory))
    messages_server.reply(tool_use=[("MemorySearch", {"query": "deploy day"}), ("Now", {})])
    messages_server.reply(text="On Thursdays.")
    with opened(project, client, tools=[NOW], offer_tools=True, extraction=False) as session:
        assert turn(session, client, "We deploy on Thursdays, never on a Friday. What is the time?") == "On Thursdays."
        assert "Saved memory: deploy-day" in session.notices
    requests = messages_server.requests
    assert [tool["name"] for tool in requests[0].body["tools"]] == ["Now", "Expand", "MemorySearch", "MemorySave", "PastSearch"]
    found, other = requests[-1].messages[-1]["content"]
    assert "Never on a Friday." in str(found["content"])
    assert "noon" in str(other["content"])
    with lamina.Memory.open(project) as kept_memory:
        [version] = kept_memory.log("deploy-day")
        assert version.why is not None
        assert (version.why.who, version.why.session) == ("agent", session.id)


@pytest.mark.spec("U2")
def test_a_memory_that_was_not_seen_is_not_replaced(project: Path) -> None:
    with lamina.Memory.open(project) as memory:
        memory.save("deploy-day", type="project", description="We deploy on Thursdays", body="Never on a Friday.")
    new = {"name": "deploy-day", "type": "project", "description": "We deploy on Mondays", "body": "Mondays."}
    with opened(project, offer_tools=True) as session:
        session.add_user("We deploy on Mondays now.")
        session.before_call()
        calls = [("c1", "MemorySave", new), ("c2", "MemorySearch", {"query": "deploy day"}), ("c3", "MemorySave", new)]
        for number, (call_id, name, given) in enumerate(calls):
            use = {"type": "tool_use", "id": call_id, "name": name, "input": given}
            [call] = session.after_call(answer(f"m{number}", use)).tool_uses
            assert session.answer_tool(call)
            session.before_call()
        results = [block for message in session.messages for block in message["content"] if block["type"] == "tool_result"]
        assert [bool(block.get("is_error")) for block in results] == [True, False, False]
        assert "Find it with MemorySearch" in str(results[0]["content"])


@pytest.mark.spec("U2")
@pytest.mark.parametrize("given", [{"query": ["deploy"]}, {}, [], "deploy"])
def test_bad_input_for_a_tool_is_one_sentence(project: Path, given: Any) -> None:
    with opened(project, offer_tools=True) as session:
        session.add_user("When do we deploy?")
        session.before_call()
        use = {"type": "tool_use", "id": "c1", "name": "MemorySearch", "input": given}
        [call] = session.after_call(answer("m1", use)).tool_uses
        assert session.answer_tool(call)
        [result] = [block for block in session.messages[-1]["content"] if block["type"] == "tool_result"]
        assert result["is_error"]
        assert str(result["content"]).count("\n") == 0


def test_a_tool_of_the_same_name_is_refused_before_anything_is_written(project: Path, tmp_path: Path) -> None:
    own = {"name": "Expand", "description": "Mine.", "input_schema": {"type": "object"}}
    with pytest.raises(InputError, match="Expand: Lamina's own tools have this name"):
        opened(project, tools=[own], offer_tools=True, home=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_the_tools_fit_what_memory_allows(project: Path) -> None:
    def offered(**given: Any) -> list[str]:
        with opened(project, offer_tools=True, **given) as session:
            session.add_user("Hello.")
            return [tool["name"] for tool in session.before_call()["tools"]]

    assert offered(settings=Settings(memory_mode={"private": "read-only"})) == ["Expand", "MemorySearch", "PastSearch"]
    assert offered(settings=Settings(past_search=False)) == ["Expand", "MemorySearch", "MemorySave"]
    assert offered(memory=False) == ["Expand"]


@pytest.mark.spec("U2", "X2")
@pytest.mark.parametrize(
    "given",
    [
        {"interactive": False},
        {"extraction": False},
        {"settings": Settings(**QUIET, memory_mode={"private": "read-only"})},
        {"settings": Settings(**QUIET, remote=True, remote_memory_directory="/srv/memory")},
    ],
    ids=["no user", "extraction off", "read-only", "remote"],
)
def test_a_model_is_told_that_something_will_be_saved_only_if_it_will_be(project: Path, given: dict[str, Any]) -> None:
    def section(**given: Any) -> str:
        with opened(project, **given) as session:
            session.add_user("Hello.")
            return system(session.before_call())

    assert "is saved after the turn" in section()
    assert "is saved after the turn" not in section(**given)
    assert "You cannot change memory." in section(**given)


PROMISES = (
    "Read that file",
    "read the file",
    "with Grep",
    "Expand",
    "Read it",
    "can be read there",
    "MemorySearch",
    "MemorySave",
    "Memory directory",
)


@pytest.mark.spec("U2", "R2", "M2")
@pytest.mark.parametrize("offers", [False, True])
@pytest.mark.parametrize("name", ["Now", "grep", "Grep", "Read", "Bash", "bash", "read_file"])
def test_nothing_promises_a_tool_that_is_not_offered(project: Path, offers: bool, name: str) -> None:
    """Previews, markers, both kinds of summary, the memory section: each names a tool only if it is there.

    The name of a host's tool does not say that it reads local files."""
    big = "".join(f"line {number}: the value is {number * 7}\n" for number in range(8_000))
    with lamina.Memory.open(project) as memory:
        memory.save("coffee", type="user", description="Drinks it black", body="Coffee without sugar.")
    with opened(project, tools=[{**NOW, "name": name}], offer_tools=offers, window=40_000, extraction=False) as session:
        session.add_user("Look.")
        session.before_call()
        session.after_call(answer("m1", {"type": "tool_use", "id": "toolu_big", "name": name, "input": {}}))
        session.add_tool_result("toolu_big", big)
        request = session.before_call()
        shown = system(request) + json.dumps(request["messages"])
        session.after_call(answer("m2", "Seen."))
        session.compact()
        session.add_user("And now?")
        after = json.dumps(session.before_call()["messages"])
        said = {promise for promise in PROMISES if promise in shown + after}
        if not offers:
            assert said == set()
            return
        assert said == {"Expand", "MemorySearch", "MemorySave"}
        assert "Expand with node=toolu_big" in shown
        page = session.expand("toolu_big").text
        assert page.startswith("line 0: the value is 0")
        node = after.partition("call Expand with node=")[2].partition(" ")[0]
        assert "Look." in session.expand(node).text


@pytest.mark.parametrize("named", ["read_tool", "file_tools"])
def test_a_tool_that_the_host_declares_is_named(project: Path, named: str) -> None:
    given = {"read_tool": "grep"} if named == "read_tool" else {"host": lamina.Host(file_tools=("grep",))}
    with opened(project, tools=[{**NOW, "name": "grep"}], **given) as session:
        session.add_user("Look.")
        session.before_call()
        session.after_call(answer("m1", {"type": "tool_use", "id": "toolu_big", "name": "grep", "input": {}}))
        session.add_tool_result("toolu_big", "a long line of text\n" * 20_000)
        shown = json.dumps(session.before_call()["messages"])
        assert "Read that file in parts or search it" in shown
        assert "toolu_big.txt" in shown


@pytest.mark.spec("U2", "M2")
def test_a_cleared_result_is_opened_by_its_call(project: Path) -> None:
    with clearing.opened(project, tools=[NOW], offer_tools=True) as session:
        clearing.begun(session)
        requests = clearing.until_cleared(session)
        shown = clearing.shown(requests[-1])
        first = clearing.cleared(requests[-1])[0]
        assert f"Expand with node={first} shows the complete result" in str(shown[first])
        assert session.expand(first).text == clearing.LONG


# Files used last


@pytest.mark.spec("U2", "C4")
@pytest.mark.parametrize("named", [True, False])
def test_files_read_last_come_back_after_a_compaction(project: Path, named: bool) -> None:
    (project / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    read = {**NOW, "name": "read_file"}
    with opened(project, tools=[read], read_tool="read_file" if named else None) as session:
        session.add_user("Look at calc.py.")
        session.before_call()
        session.after_call(answer("m1", {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": "calc.py"}}))
        session.add_tool_result("c1", "def add(a, b):\n    return a - b\n")
        if not named:
            session.note_read("calc.py")
        session.before_call()
        session.after_call(answer("m2", "It subtracts. " * 500))
        (project / "calc.py").write_text("def add(a, b):\n    return a + b\n")
        done = session.compact()
        assert [Path(file).name for file in done.files] == ["calc.py"]
        session.add_user("And now?")
        assert "return a + b" in "".join(texts(session.before_call()))


def test_all_files_of_one_answer_are_noted_and_a_failed_read_is_not(project: Path) -> None:
    for name in ("a.py", "b.py", "c.py"):
        (project / name).write_text(f"# {name}\n")
    uses = [{"type": "tool_use", "id": name, "name": "read_file", "input": {"path": name}} for name in ("a.py", "b.py", "c.py")]
    with opened(project, tools=[{**NOW, "name": "read_file"}], read_tool="read_file") as session:
        session.add_user("Look.")
        session.before_call()
        session.after_call(answer("m1", *uses))
        for name in ("a.py", "b.py"):
            session.add_tool_result(name, "text")
        session.add_tool_result("c.py", "no such file", is_error=True)
        session.before_call()
        reads = conversation_of(session).host.reads
        assert reads is not None
        assert {Path(one.path).name for one in reads.recent(9)} == {"a.py", "b.py"}


@pytest.mark.spec("U2")
def test_instruction_files_next_to_a_file_that_was_read_come_after_it(project: Path) -> None:
    (project / "web").mkdir()
    (project / "web" / "CLAUDE.md").write_text("Here we use tabs.\n")
    with opened(project, tools=[NOW], read_tool="Now") as session:
        session.add_user("Look.")
        session.before_call()
        session.after_call(answer("m1", {"type": "tool_use", "id": "c1", "name": "Now", "input": {"path": "web/a.ts"}}))
        session.add_tool_result("c1", "let a = 1")
        assert "Here we use tabs." in texts(session.before_call())[-1]


# Extraction and dreams


@pytest.mark.spec("U2", "X1")
def test_memories_are_extracted_without_file_tools(
    project: Path, client: anthropic.Anthropic, messages_server: MessagesServer
) -> None:
    messages_server.reply(text="Understood.")
    messages_server.reply(text=listed(RULE), fork="extraction")
    with opened(project, client, tools=[NOW]) as session:
        turn(session, client, WORDS)
        settle(session, "extraction")
        fork = next(request for request in messages_server.requests if request.fork)
        assert fork.body["tools"] == messages_server.requests[0].body["tools"]
        directive = directive_in(fork.body) or ""
        assert "Write" not in directive.replace("Write dates out", "").replace("Write in the user", "")
    with lamina.Memory.open(project) as memory:
        topic = memory.get("testing-db")
        assert topic is not None
        assert (topic.type, topic.body.strip()) == ("feedback", "Integration tests run against a real database.")
        [version] = memory.log("testing-db")
        assert version.why is not None
        assert (version.why.who, version.why.session) == ("extraction", session.id)


@pytest.mark.spec("U2", "B6")
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("There is nothing to keep.", "had no list between"),
        ("<memories>nothing</memories>", "not valid"),
        ('<memories>[{"file": "a.md"}]</memories>', "missing required field"),
        (listed({**RULE, "mode": "0777"}), "unknown field"),
        (listed({**RULE, "file": "../../outside.md"}), ""),
        (listed({**RULE, "file": "/tmp/outside.md"}), ""),
        (listed({**RULE, "file": "MEMORY.md"}), ""),
        (listed({**RULE, "body": ""}), "Expected `str` of length >= 1"),
    ],
)
def test_an_answer_that_is_wrong_writes_nothing(
    project: Path, client: anthropic.Anthropic, messages_server: MessagesServer, said: str, reason: str
) -> None:
    messages_server.reply(text="Understood.")
    messages_server.reply(text=said, fork="extraction")
    told: list[Wire] = []
    host = lamina.Host(observer=lambda name, data: told.append(data) if name == "extraction" else None)
    with opened(project, client, host=host) as session:
        turn(session, client, WORDS)
        settle(session, "extraction")
        assert reason in str(told[-1].get("failed", ""))
        assert reason or told[-1]["denied"] == 1
    with lamina.Memory.open(project) as memory:
        assert memory.topics() == []
    assert not (project.parent / "outside.md").exists()


@pytest.mark.spec("U2", "X8")
@pytest.mark.parametrize("long", [False, True])
def test_only_a_memory_that_was_shown_in_full_is_changed(
    project: Path, client: anthropic.Anthropic, messages_server: MessagesServer, long: bool
) -> None:
    body = "Integration tests use mocks of the database." + " More." * (1_000 if long else 0)
    with lamina.Memory.open(project) as memory:
        memory.save("testing-db", type="feedback", description="Integration tests and the database", body=body)
    messages_server.reply(text="Understood.")
    messages_server.reply(text=listed(RULE), fork="extraction")
    with opened(project, client) as session:
        turn(session, client, WORDS)
        settle(session, "extraction")
    with lamina.Memory.open(project) as memory:
        topic = memory.get("testing-db")
        assert topic is not None
        assert ("real database" in topic.body) == (not long)


@pytest.mark.spec("U2", "O1")
def test_the_local_rules_extract_too(project: Path) -> None:
    with lamina.Session("offline", cwd=project, settings=Settings(**QUIET)) as session:
        session.add_user("From now on, always run the tests against a real database.")
        session.ask()
        session.end_turn()
        settle(session, "extraction")
    with lamina.Memory.open(project) as memory:
        assert [topic.type for topic in memory.topics()] == ["feedback"]


def stand_in(project: Path, prompt: str, **given: Any) -> str:
    """Return the stand-in's last answer in a session of its own under the README's loop."""
    with lamina.Session("offline", cwd=project, settings=Settings(**QUIET), **given) as session:
        session.add_user(prompt)
        while (reply := session.ask()).tool_uses:
            assert all(session.answer_tool(call) for call in reply.tool_uses)
        session.end_turn()
        return reply.text


@pytest.mark.spec("U2", "O1")
@pytest.mark.parametrize("offers", [False, True])
@pytest.mark.parametrize(
    ("wish", "said", "question", "part"),
    [
        ("Remember: my project is called Kestrel", "I will remember that", "What is my project called?", "Kestrel"),
        ("记住：集成测试要连真实数据库", "记住了", "我们的集成测试连什么？", "真实数据库"),
        (
            "From now on, always run the tests against a real database.",
            "Noted",
            "What do the tests run against?",
            "a real database",
        ),
    ],
)
def test_the_stand_in_remembers_under_a_loop_of_ones_own(
    project: Path, offers: bool, wish: str, said: str, question: str, part: str
) -> None:
    assert said in stand_in(project, wish, offer_tools=offers)
    assert part in stand_in(project, question, offer_tools=offers)
    assert part in stand_in(project, question, offer_tools=offers, recall=False), "the index is enough"


@pytest.mark.spec("U2", "O1")
@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"memory": False}, "there is no memory here"),
        ({"extraction": False}, "I have no Write tool"),
        ({"interactive": False}, "I have no"),
    ],
)
def test_the_stand_in_promises_no_memory_that_will_not_be_saved(project: Path, given: dict[str, bool], why: str) -> None:
    assert why in stand_in(project, "Remember: my project is called Kestrel", **given)
    assert why in stand_in(project, "Forget what you know about the project", **given)
    with lamina.Memory.open(project) as memory:
        assert list(memory.topics()) == []


@pytest.mark.spec("U2", "X2")
@pytest.mark.parametrize("off", [{"interactive": False}, {"extraction": False}, {"memory": False}])
def test_without_a_user_or_when_turned_off_nothing_is_extracted(
    project: Path, client: anthropic.Anthropic, messages_server: MessagesServer, off: dict[str, bool]
) -> None:
    messages_server.reply(text="Understood.")
    with opened(project, client, **off) as session:
        turn(session, client, WORDS)
        assert session.status.background_jobs == ()
    assert [request.fork for request in messages_server.requests] == [""]


@pytest.mark.spec("U2", "X3")
def test_a_turn_that_saved_a_memory_itself_is_not_reviewed(
    project: Path, client: anthropic.Anthropic, messages_server: MessagesServer
) -> None:
    saved = {"name": "testing-db", "type": "feedback", "description": "Tests use a real database", "body": "A real one."}
    messages_server.reply(tool_use=("MemorySave", saved))
    messages_server.reply(text="Saved.")
    with opened(project, client, offer_tools=True) as session:
        turn(session, client, f"Remember: {WORDS}")
        assert session.status.background_jobs == ()
    assert [request.fork for request in messages_server.requests] == ["", ""]


@pytest.mark.spec("U2", "D1")
@pytest.mark.parametrize("dreaming", [None, False])
def test_a_dream_brings_its_own_tools(
    project: Path, client: anthropic.Anthropic, messages_server: MessagesServer, dreaming: bool | None
) -> None:
    memory = remembered(project)
    messages_server.reply(text="Understood.")
    messages_server.reply(text="Memory is in order.", fork="dream")
    before = (memory / DREAM_LOCK).stat().st_mtime_ns
    with opened(project, client, tools=[NOW], extraction=False, dreaming=dreaming) as session:
        turn(session, client, "Hello.")
        settle(session, "dream")
    forks = [request for request in messages_server.requests if request.fork]
    if dreaming is False:
        assert (forks, (memory / DREAM_LOCK).stat().st_mtime_ns) == ([], before)
        return
    [dream] = forks
    assert [tool["name"] for tool in dream.body["tools"]] == ["Read", "Write", "Edit", "Grep", "Glob"]
    assert "Memory directory" in str(dream.body["system"])
    assert [record.status for record in kept(memory)] == ["completed"]
    assert (memory / DREAM_LOCK).stat().st_mtime_ns > before


def test_a_host_that_is_lent_keeps_what_the_session_offers_itself(project: Path) -> None:
    with opened(project, host=lamina.Host()) as session:
        session.add_user("Hello.")
        context_of(session).lend(lamina.Host(observer=lambda name, data: None))
        host = conversation_of(session).host
        assert host.memory is not None
        assert host.reads is not None
        assert host.reminder is not None
        assert host.observer is not None
