"""A list that the caller owns goes together with Lamina's own tools and reminders: what Lamina added is not part of the list."""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path
from typing import Any

import msgspec
import pytest

import lamina
from lamina.core.message_list import MISSING_RESULT
from lamina.core.settings import Settings
from lamina.session.base import conversation_of

from .words import COMPACT, READ, Wire, answer, assistant, call, objects, reasons, refused, result, said, text, unmarked, user

MODEL = "anthropic:claude-sonnet-5-5"


def search(call_id: str, query: str = "deploy") -> Wire:
    return {"type": "tool_use", "id": call_id, "name": "MemorySearch", "input": {"query": query}}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    (path / "CLAUDE.md").write_text("Use two spaces after a full stop.\n")
    with lamina.Memory.open(path) as memory:
        memory.save("deploy-day", type="project", description="We deploy on Thursdays", body="Never on a Friday.")
    return path


def opened(project: Path, **given: Any) -> lamina.Session:
    settings = Settings(recall=False, extraction=False, dream=False)
    return lamina.Session(MODEL, cwd=project, **{"tools": [READ], "offer_tools": True, "settings": settings, **given})


def results(session: lamina.Session) -> dict[str, str]:
    blocks = [block for message in session.messages for block in message["content"] if block["type"] == "tool_result"]
    return {block["tool_use_id"]: str(block["content"]) for block in blocks}


def branched(session: lamina.Session) -> bool:
    return any("branches" in notice for notice in session.notices)


def searched(session: lamina.Session, messages: list[Wire], *uses: Wire) -> list[Wire]:
    """Play one answer with these calls, of which the session answers its own; the list with the answer."""
    session.sync(messages)
    session.before_call()
    response = answer(f"m-{uses[0]['id']}", *uses)
    for given in session.after_call(response).tool_uses:
        session.answer_tool(given)
    return [*messages, {"role": "assistant", "content": response["content"]}]


@pytest.mark.parametrize("resumed", [False, True], ids=["at once", "after a resume"])
def test_a_result_that_the_list_does_not_hold_is_kept(project: Path, resumed: bool) -> None:
    session = opened(project)
    messages = searched(session, [user("When do we deploy?")], search("c1"))
    before = session.before_call()
    if resumed:
        session.close()
        session = opened(project, resume=session.id)
    messages.append(user("And?"))
    session.sync(messages)
    session.sync(copy.deepcopy(messages))
    request = session.before_call()
    assert "Never on a Friday" in results(session)["c1"]
    assert refused(request) == []
    assert reasons(session.path) == []
    assert unmarked(request["messages"])[: len(before["messages"]) - 1] == unmarked(before["messages"])[:-1]
    assert not branched(session)
    session.close()


def test_the_loop_of_the_readme_with_a_list(project: Path) -> None:
    """Own calls, the host's calls, and both in one answer."""
    with opened(project) as session:
        messages = [user("When do we deploy?")]
        for uses in ([search("c1")], [search("c2"), call("h1")], [call("h2"), search("c3")], [call("h3")]):
            messages = searched(session, messages, *uses)
            if own := [use["id"] for use in uses if use["name"] == "Read"]:
                messages.append(user(*(result(name, f"file {name}") for name in own)))
        session.sync(messages)
        assert refused(session.before_call()) == []
        texts = results(session)
        assert all("Never on a Friday" in texts[name] for name in ("c1", "c2", "c3"))
        assert [texts[name] for name in ("h1", "h2", "h3")] == ["file h1", "file h2", "file h3"]
        assert reasons(session.path) == []
        assert not branched(session)


@pytest.mark.parametrize("resumed", [False, True], ids=["at once", "after a resume"])
def test_a_list_may_hold_our_results_in_any_order(project: Path, resumed: bool) -> None:
    session = opened(project)
    messages = searched(session, [user("a")], search("c1"), call("h1"))
    ours = results(session)["c1"]
    if resumed:
        session.close()
        session = opened(project, resume=session.id)
    messages.append(user(result("h1"), result("c1", ours), "Go on."))
    session.sync(messages)
    size = len(objects(session.path))
    session.sync(copy.deepcopy(messages))
    assert len(objects(session.path)) == size
    assert results(session) == {"c1": ours, "h1": "found"}
    assert not session.notices
    session.close()


def test_a_result_of_ours_that_the_host_edited_stays_ours_and_is_named_once(project: Path) -> None:
    with opened(project) as session:
        messages = searched(session, [user("a")], search("c1"))
        messages += [user(result("c1", "nothing found")), assistant("b"), user("c")]
        session.sync(messages)
        session.sync(copy.deepcopy(messages))
        assert "Never on a Friday" in results(session)["c1"]
        [notice] = session.notices
        assert "MemorySearch" in notice
        assert refused(session.before_call()) == []


def test_a_branch_keeps_the_answers_of_the_calls_that_are_left(project: Path) -> None:
    with opened(project) as session:
        messages = searched(session, [user("a")], search("c1"), call("h1"))
        messages.append(user(result("h1", "one")))
        messages = searched(session, messages, search("c2"))
        edited = [*messages[:2], user(result("h1", "another")), user("Go on.")]
        session.sync(edited)
        assert branched(session)
        assert results(session)["h1"] == "another"
        assert "Never on a Friday" in results(session)["c1"]
        assert "c2" not in results(session)
        session.sync([*messages, user("Go on.")])
        assert all("Never on a Friday" in results(session)[name] for name in ("c1", "c2")), "the first branch, taken up again"
        assert refused(session.before_call()) == []
    with opened(project, resume=session.id) as again:
        again.sync([*messages, user("Go on.")])
        assert all("Never on a Friday" in results(again)[name] for name in ("c1", "c2"))
        assert not branched(again)


def test_an_id_that_another_call_uses_gets_no_answer_of_ours(project: Path) -> None:
    with opened(project) as session:
        searched(session, [user("a")], search("c1"))
        session.sync([user("b"), assistant(call("c1")), user(result("c1", "a file"))])
        assert results(session) == {"c1": "a file"}
        session.sync([user("b"), assistant(search("c1", "something else")), user("Go on.")])
        assert results(session) == {"c1": MISSING_RESULT}


TALK = [
    user("a"),
    assistant("b", search("c1")),
    user("c"),
    assistant(call("h1")),
    user(result("h1", "one")),
    assistant("d"),
    user("e"),
]
MANGLED: dict[str, list[Wire]] = {
    "a repeated question": [*TALK[:3], TALK[2], *TALK[3:]],
    "a repeated answer with our call": [*TALK[:3], TALK[1], *TALK[2:]],
    "a repeated round": [*TALK[:5], *TALK[3:]],
    "a question left out": [*TALK[:2], *TALK[3:]],
    "our call left out": [TALK[0], *TALK[2:]],
    "a host's call left out": [*TALK[:3], *TALK[4:]],
    "a host's result left out": [*TALK[:4], *TALK[5:]],
    "two rounds in the other order": [TALK[0], *TALK[3:5], *TALK[1:3], *TALK[5:]],
    "a result before its call": [*TALK[:3], TALK[4], TALK[3], *TALK[5:]],
    "our result from nowhere": [TALK[0], user(result("c1", "x")), *TALK[1:]],
}


@pytest.mark.parametrize("mangled", MANGLED.values(), ids=MANGLED.keys())
@pytest.mark.parametrize("resumed", [False, True], ids=["at once", "after a resume"])
def test_a_list_mangled_in_the_middle_keeps_what_can_be_kept(project: Path, mangled: list[Wire], resumed: bool) -> None:
    session = opened(project)
    searched(session, TALK[:1], *TALK[1]["content"][1:])
    session.sync([])
    session.sync(TALK[:1])
    session.before_call()
    [own] = session.after_call(answer("m1", *TALK[1]["content"])).tool_uses
    assert session.answer_tool(own)
    session.sync(TALK)
    session.before_call()
    if resumed:
        session.close()
        session = opened(project, resume=session.id)
    session.notices.clear()
    session.sync(mangled)
    request = session.before_call()
    assert refused(request) == []
    assert session.notices
    assert all(notice.endswith(".") and "\n" not in notice for notice in session.notices)
    calls = [block.get("id") for row in mangled for block in row["content"]]
    assert ("c1" in results(session)) == ("c1" in calls)
    assert "c1" not in calls or "Never on a Friday" in results(session)["c1"]
    spoken = [part for row in mangled for part in said([row])]
    assert [part for part in said(request["messages"]) if len(part) == 1] == spoken
    session.sync(copy.deepcopy(mangled))
    assert len(session.notices) == len(dict.fromkeys(session.notices))
    session.close()


@pytest.mark.parametrize("resumed", [False, True], ids=["at once", "after a resume"])
@pytest.mark.parametrize("model", [MODEL, "openai:gpt-5"])
def test_a_list_taken_from_the_request_is_no_branch(project: Path, model: str, resumed: bool) -> None:
    settings = Settings(extraction=False, dream=False)
    session = lamina.Session(model, cwd=project, settings=settings)
    session.sync([{"role": "user", "content": "When do we deploy?"}])
    for number in range(3):
        messages = copy.deepcopy(session.before_call()["messages"])
        assert "two spaces after a full stop" in str(messages), "the first reminder is in the list"
        messages += [{"role": "assistant", "content": f"answer {number}"}, {"role": "user", "content": f"And deploy {number}?"}]
        if resumed:
            session.close()
            session = lamina.Session(model, cwd=project, settings=settings, resume=session.id)
        session.sync(messages)
    assert reasons(session.path) == []
    assert not branched(session)
    kinds = [item.kind for item in conversation_of(session).log.view.items]
    assert kinds.count("attachment:instructions") == 1
    session.close()


def test_a_list_taken_from_a_request_with_an_open_call_waits_for_its_result(project: Path) -> None:
    with opened(project) as session:
        session.sync([user("a"), assistant(call("h1")), user("b")])
        messages = copy.deepcopy(session.before_call()["messages"])
        assert MISSING_RESULT in str(messages)
        session.sync([*messages, assistant("c"), user("d")])
        assert not branched(session)
        assert refused(session.before_call()) == []


def test_a_reminder_that_the_user_wrote_is_the_users(project: Path) -> None:
    with opened(project) as session:
        words = "<system-reminder>\nMine.\n</system-reminder>"
        session.sync([user(words, "a")])
        session.sync([user(words, "a"), assistant("b"), user("c")])
        assert said(session.messages)[-4:] == [words, "a", "b", "c"]


def test_answer_tool_returns_the_result_and_none_for_a_tool_of_the_host(project: Path) -> None:
    with opened(project) as session:
        session.add_user("a")
        session.before_call()
        own, other = session.after_call(answer("m1", search("c1"), call("h1"))).tool_uses
        given = session.answer_tool(own)
        assert given is not None
        assert (given.tool_use_id, given.is_error) == ("c1", False)
        assert "Never on a Friday" in given.text
        assert given.wire == session.messages[-1]["content"][0]
        assert session.answer_tool(other) is None


def test_a_result_without_text_is_true(project: Path) -> None:
    with opened(project, offer_tools=False, tools=[COMPACT]) as session:
        session.add_user("a")
        session.before_call()
        use = {"type": "tool_use", "id": "c1", "name": "Compact", "input": {}}
        [own] = session.after_call(answer("m1", use)).tool_uses
        given = session.answer_tool(own)
        assert given is not None
        assert bool(msgspec.structs.replace(given, content=""))


def test_an_async_session_keeps_its_own_results_too(project: Path) -> None:
    async def main() -> None:
        async with lamina.AsyncSession(MODEL, cwd=project, offer_tools=True) as session:
            session.sync([user("a")])
            await session.before_call()
            [own] = (await session.after_call(answer("m1", search("c1")))).tool_uses
            assert session.answer_tool(own)
            session.sync([user("a"), assistant(search("c1")), user("b")])
            assert "Never on a Friday" in str(await session.before_call())

    asyncio.run(main())


def test_a_result_of_ours_in_the_chat_form(project: Path) -> None:
    given = {"name": "MemorySearch", "arguments": '{"query": "deploy"}'}
    asked = {"id": "c1", "type": "function", "function": given}
    completion = {
        "id": "x1",
        "model": "gpt-5",
        "choices": [
            {"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", "content": None, "tool_calls": [asked]}}
        ],
    }
    settings = Settings(recall=False, extraction=False, dream=False)
    with lamina.Session("openai:gpt-5", cwd=project, offer_tools=True, settings=settings) as session:
        messages: list[Wire] = [{"role": "user", "content": "a"}]
        session.sync(messages)
        session.before_call()
        [own] = session.after_call(completion).tool_uses
        reply = session.answer_tool(own)
        assert reply is not None
        messages += [{"role": "assistant", "tool_calls": [asked]}]
        session.sync([*messages, {"role": "user", "content": "b"}])
        assert "Never on a Friday" in results(session)["c1"]
        session.sync([*messages, {"role": "tool", "tool_call_id": "c1", "content": reply.text}, {"role": "user", "content": "b"}])
        assert "Never on a Friday" in results(session)["c1"]
        assert not branched(session)
        assert text("b") in session.messages[-1]["content"]
