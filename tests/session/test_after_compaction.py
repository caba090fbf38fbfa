"""The request after each kind of compaction, read as the model would: task, correction, files, last round and the way back.

`pytest -s tests/session/test_after_compaction.py` prints each request.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.session.plain import Session

from lamina.conversation.compaction.commit import Compacted
from lamina.core.reply import Reply
from lamina.core.settings import Settings
from lamina.layers.l4_compact.plan import Pivot
from lamina.session.base import working
from lamina.testing import MessagesServer, Received
from lamina.testing.script import Step

from .compacting import SECTIONS, SUMMARY
from .noting import by_rules, connected, purpose, settle
from .words import COMPACT, READ, Wire, answer, refused

WINDOW = 60_000
TASK = "Move the parser of the billing service to a package of its own. Keep every public name."
CORRECTION = "No, not billing_parse: the package is called ledger_parse."
FILES = [f"/w/src/billing/part{number}.py" for number in range(6)]
UNSEEN = "def last_round():\n    return 4711\n" * 20
LINES = "    total = total + row.amount  # nothing special in this line\n" * 60
PASTE = "2026-11-16 12:00:00 worker 7 did nothing of interest\n" * 300
# Characters of each block that are printed.
PRINTED = 1_500


def model(server: MessagesServer, *, notes: bool = False) -> None:
    def say(received: Received) -> Step | str | None:
        asked = purpose(received)
        return by_rules(received) if asked == "notes" and notes else SUMMARY if asked else None

    server.answer_with(say)


def answered(session: Session, name: str, *blocks: Wire) -> Reply:
    """Give an answer and wait for the notes: a compaction keeps what they do not cover, and that must not depend on a thread."""
    session.before_call()
    usage = {"input_tokens": max(1, session.window_state.tokens), "output_tokens": 50}
    reply = session.after_call(answer(name, *blocks, usage=usage))
    settle(session)
    return reply


def read(session: Session, call: str, path: str, content: str) -> None:
    use = {"type": "tool_use", "id": call, "name": "Read", "input": {"file_path": path}}
    answered(session, f"m-{call}", {"type": "text", "text": f"I read {path}."}, use)
    session.add_tool_result(call, content)


def worked(session: Session) -> list[str]:
    """A session with a task, a correction, files, pastes, and a result that the model has not seen. The ids of the messages."""
    ids = [session.add_user(TASK)]
    for number, path in enumerate(FILES):
        read(session, f"c{number}", path, f"# {path}\n{LINES}")
        if number == 2:
            answered(session, "m-plan", {"type": "text", "text": "I will call it billing_parse."})
            ids.append(session.add_user(CORRECTION))
    answered(session, "m-read", {"type": "text", "text": "I have read everything."})
    for number in range(5):
        ids.append(session.add_user(f"Log {number}:\n{PASTE}"))
        answered(session, f"m-log{number}", {"type": "text", "text": f"Nothing in log {number}."})
    ids.append(session.add_user("Then look at the last file."))
    read(session, "last", "/w/src/billing/last.py", UNSEEN)
    return ids


def by_notes(session: Session, ids: list[str]) -> Compacted:
    return session.compact()


def by_summary(session: Session, ids: list[str]) -> Compacted:
    return session.compact("Be brief.")


def from_message(session: Session, ids: list[str]) -> Compacted:
    return session.compact(pivot=Pivot("from", ids[1]))


def up_to_message(session: Session, ids: list[str]) -> Compacted:
    return session.compact(pivot=Pivot("up_to", ids[-1]))


def by_model(session: Session, ids: list[str]) -> Compacted | None:
    use = {"type": "tool_use", "id": "ask", "name": "Compact", "input": {}}
    [call] = answered(session, "m-ask", {"type": "text", "text": "It returns 4711."}, use).tool_uses
    result = session.answer_tool(call)
    assert result is not None
    assert "will be compacted" in result.text
    return None


def automatic(session: Session, ids: list[str]) -> Compacted | None:
    with working(session) as c:
        at = c.count.judged - 100
        c.use_settings(session.settings, c.policy, replace(c.limits, autocompact=at, latest=at))
    return None


@contextmanager
def without_a_model(home: Path) -> Iterator[Session]:
    """A session without a client: local rules write the summary."""
    with Session(
        "anthropic:a-model",
        home=home,
        cwd=home,
        window=WINDOW,
        system="Be careful.",
        tools=[READ, COMPACT],
        settings=Settings(session_notes=False),
    ) as session:
        yield session


KINDS: dict[str, tuple[Callable[[Session, list[str]], Compacted | None], dict[str, Any], str]] = {
    "notes": (by_notes, {"notes": True}, "notes"),
    "full": (by_summary, {}, "summary"),
    "automatic": (automatic, {}, "summary"),
    "from": (from_message, {}, "summary"),
    "up_to": (up_to_message, {}, "summary"),
    "model": (by_model, {}, "summary"),
    "offline": (by_summary, {"offline": True}, "summary"),
}


@contextmanager
def opened(server: MessagesServer, home: Path, *, notes: bool = False, offline: bool = False) -> Iterator[Session]:
    if offline:
        with without_a_model(home) as session:
            yield session
        return
    model(server, notes=notes)
    settings = Settings(session_notes=notes, size_clearing=False)
    with connected(server, home, settings=settings, tools=[READ, COMPACT]) as session:
        yield session


@pytest.mark.spec("C4", "C6", "P7")
@pytest.mark.parametrize("kind", KINDS)
def test_the_model_finds_task_correction_files_last_round_and_way_back(
    messages_server: MessagesServer, tmp_path: Path, kind: str
) -> None:
    act, given, how = KINDS[kind]
    with opened(messages_server, tmp_path, **given) as session:
        ids = worked(session)
        before = session.window_state.tokens
        done = act(session, ids)
        request = session.before_call()
        with working(session) as c:
            event = c.log.events["compaction"].data
        print(f"\n===== {kind}: {before:,} to {session.window_state.tokens:,} tokens =====\n{printed(request)}")
        assert done is None or done.done, done.why
        assert event["by"] == how
        assert session.window_state.tokens < before / 2
        text = words(request)
        assert TASK in text
        assert CORRECTION in text
        assert "Then look at the last file." in text
        assert all(Path(path).name in text for path in FILES)
        assert last_round(request) == ("ask" if kind == "model" else "last")
        assert ("last_round" in text) == (kind != "model"), "only a result that the model has seen is summarised"
        assert event["boundary"] in text, "the id for Expand"
        assert str(session.path) in text, "the transcript to search"
        assert FILES[-1] in session.expand(event["boundary"]).text
        assert refused(request) == []
        if how == "summary" and kind != "offline":
            assert SECTIONS.splitlines()[0] in text


def last_round(request: Wire) -> str:
    """The id of the call in the last answer, whose result is the last message."""
    *_, call, result = request["messages"]
    [use] = [block for block in call["content"] if block["type"] == "tool_use"]
    assert use["id"] in [block["tool_use_id"] for block in result["content"] if block["type"] == "tool_result"]
    return str(use["id"])


def words(request: Wire) -> str:
    return "\n".join(shown for message in request["messages"] for shown in lines(message))


def printed(request: Wire) -> str:
    parts = [
        f"[{message['role']}] {shown[:PRINTED]}{' …' if len(shown) > PRINTED else ''}"
        for message in request["messages"]
        for shown in lines(message)
    ]
    return "\n".join(parts)


def lines(message: Wire) -> Iterator[str]:
    content = message["content"]
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        match block["type"]:
            case "text":
                yield block["text"]
            case "tool_use":
                yield f"{block['name']} {block['input']} (call {block['id']})"
            case "tool_result":
                yield f"(result of {block['tool_use_id']}) {block['content']}"
            case other:
                yield f"[{other}]"


GUIDE = "# Careful reviews\n" + "Read the whole change before you comment on a line of it.\n" * 20


def skill_session(tmp_path: Path, *, tail: str) -> Path:
    """A session of Claude Code in which a skill was invoked by the model, and another one by the user."""
    base = {"isSidechain": False, "userType": "external", "cwd": str(tmp_path), "sessionId": "s", "version": "2.1.30"}
    text: Wire = {"type": "text"}
    parent: str | None = None
    lines: list[str] = []

    def add(role: str, content: Any, **more: Any) -> None:
        nonlocal parent
        message = {"role": role, "content": content} | ({"id": f"m{len(lines)}", "model": "m"} if role == "assistant" else {})
        uuid = f"00000000-0000-4000-8000-{len(lines):012}"
        stamp = f"2026-11-01T10:00:{len(lines):02}.000Z"
        line = {"parentUuid": parent, **base, "type": role, "message": message, "uuid": uuid, "timestamp": stamp, **more}
        lines.append(json.dumps(line))
        parent = uuid

    add("user", "Review my change.")
    add("assistant", [{"type": "tool_use", "id": "t1", "name": "Skill", "input": {"skill": "team:careful-reviews"}}])
    add("user", [{"type": "tool_result", "tool_use_id": "t1", "content": "Launching skill: team:careful-reviews"}])
    add("user", [{**text, "text": f"Base directory for this skill: /s/careful-reviews\n\n{GUIDE}"}], isMeta=True)
    add("assistant", [{**text, "text": "I read it as the guide says."}])
    add("user", [{**text, "text": "Base directory for this skill: /s/short-answers\n\nAnswer shortly."}], isMeta=True)
    for number in range(12):
        add("user", f"Question {number}: {tail}")
        add("assistant", [{**text, "text": f"Answer {number}. {tail}"}])
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.spec("C4")
def test_skills_invoked_in_a_recorded_session_are_shown_again_after_each_compaction(tmp_path: Path) -> None:
    path = skill_session(tmp_path, tail="word " * 600)
    with Session("offline", home=tmp_path / "home", cwd=tmp_path, resume=path, window=60_000, policy="balanced") as session:
        for number in range(2):
            assert session.compact().done
            shown = [block["text"] for message in session.messages for block in message["content"] if block["type"] == "text"]
            skills = [words for words in shown if words.startswith("<system-reminder>\nRestored after the compaction (skill ")]
            assert [words.partition("(skill ")[2].partition(")")[0] for words in skills] == [
                "short-answers",
                "team:careful-reviews",
            ]
            assert GUIDE.strip() in skills[1]
            session.add_user(f"And further {number}? " + "word " * 20_000)
            session.before_call()
            session.after_call(answer(f"a{number}", "Done. " + "word " * 2_000))


@pytest.mark.spec("C4")
def test_a_skill_that_a_tool_of_the_host_returned_is_shown_again_within_its_budget(tmp_path: Path) -> None:
    with Session("offline", home=tmp_path, cwd=tmp_path, window=200_000) as session:
        session.add_user("Review my change.")
        for name, length in (("first", 100), ("second", 1_500)):
            session.before_call()
            session.after_call(answer(f"m-{name}", {"type": "tool_use", "id": name, "name": "Skill", "input": {"skill": name}}))
            session.add_tool_result(name, f"# The skill {name}\n" + "Do this, then that.\n" * length, is_error=False)
        session.before_call()
        session.after_call(answer("m-last", "Done. " + "word " * 30_000))
        session.add_user("Go on.")
        assert session.compact().done
        shown = [block["text"] for message in session.messages for block in message["content"] if block["type"] == "text"]
        second, first = (words for words in shown if "Restored after the compaction (skill " in words)
        assert "The skill first" in first
        assert "Cut here" in second
        assert len(second) < 5_000 * 5
