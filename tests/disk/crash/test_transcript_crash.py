"""SIGKILL before every system call of a session's life: what was acknowledged is there, and the next session goes on from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.session.foreign import SESSION, TEXTS, foreign_transcript
from tests.session.plain import Session
from tests.session.play import compact, turns
from tests.session.words import READ, answer, call, refused, said

from lamina.core.errors import NothingToSend
from lamina.core.records import Forked
from lamina.disk.transcripts.search import find_transcript, list_transcripts, newest_transcript
from lamina.disk.transcripts.store import read_transcript
from lamina.session.base import conversation_of

from ..processes import needs_fork
from .harness import Act, Kill, Say, every

pytestmark = needs_fork

NAME = "the-session"
TORN = pytest.mark.parametrize("torn", [False, True], ids=["between calls", "in the middle of a write"])


def a_turn(directory: Path, say: Say) -> None:
    """Acknowledges each record as soon as the call that wrote it has returned."""
    with Session("offline", home=directory / "home", session_id=NAME, system="s", tools=[READ]) as session:
        say(session.add_user("a " * 2_000))
        session.before_call()
        session.after_call(answer("m1", "b", call("c1")))
        say("answered")
        say(session.add_tool_result("c1", "r " * 2_000))
        session.before_call()
        session.after_call(answer("m2", "done"))
        say("done")
        session.end_turn()


def written(directory: Path) -> Path | None:
    found = list((directory / "home").rglob(f"{NAME}.jsonl"))
    return found[0] if found else None


def check_what_was_said(session: Session, acknowledged: tuple[str, ...]) -> None:
    texts = said(session.messages)
    uuids = {item.uuid for item in conversation_of(session).log.view.items}
    assert set(acknowledged) - {"answered", "done"} <= uuids
    assert "answered" not in acknowledged or "b" in texts
    assert "done" not in acknowledged or "done" in texts


@pytest.mark.spec("Z4", "Z6")
@TORN
@pytest.mark.usefixtures("crash_points")
def test_a_killed_turn_loses_nothing_that_was_acknowledged(tmp_path: Path, torn: bool) -> None:
    for run in every(tmp_path, Path.is_dir, a_turn, Kill(torn)):
        path = written(run.directory)
        if path is None or not path.stat().st_size:
            assert run.said == (), run
            continue
        before = path.read_bytes()
        with Session("offline", home=run.directory / "home", resume=NAME) as session:
            assert session.id == NAME, "the dead one's lock is free"
            assert len(session.notices) <= torn, run
            check_what_was_said(session, run.said)
            session.add_user("and now?")
            request = session.before_call()
            assert refused(request) == [], run
            session.after_call(answer("m9", "fine"))
        assert path.read_bytes().startswith(before), run
        with Session("offline", home=run.directory / "home", resume=NAME) as again:
            assert said(again.messages)[-2:] == ["and now?", "fine"], run


def a_session_with_a_stub(directory: Path) -> None:
    with Session("offline", home=directory / "home", session_id=NAME, system="s", tools=[READ]) as session:
        turns(session, "a", "b")
    path = written(directory)
    assert path is not None
    with path.open("ab") as file:
        file.write(b'{"type":"user","uu')


def go_on(directory: Path, say: Say) -> None:
    with Session("offline", home=directory / "home", resume=NAME) as session:
        say(session.add_user("c"))
        session.before_call()


@pytest.mark.spec("Z4")
@TORN
@pytest.mark.usefixtures("crash_points")
def test_a_killed_resume_leaves_what_was_there(tmp_path: Path, torn: bool) -> None:
    for run in every(tmp_path, a_session_with_a_stub, go_on, Kill(torn)):
        with Session("offline", home=run.directory / "home", resume=NAME) as session:
            texts = said(session.messages)
            assert texts in (["a", "about a", "b", "about b"], ["a", "about a", "b", "about b", "c"]), run
            assert texts[-1] == "c" or not run.said, run
            assert len(session.notices) == 1, run
            try:
                assert refused(session.before_call()) == [], run
            except NothingToSend:
                assert texts[-1] == "about b", run


def a_foreign_transcript(directory: Path) -> None:
    foreign_transcript(directory / "theirs")


def fork_it(directory: Path, say: Say) -> None:
    with Session("offline", home=directory / "home", cwd=directory, resume=directory / "theirs" / f"{SESSION}.jsonl") as session:
        session.add_user("c")
        say(session.id)


@TORN
@pytest.mark.usefixtures("crash_points")
def test_a_killed_fork_is_there_whole_or_not_at_all(tmp_path: Path, torn: bool) -> None:
    original = foreign_transcript(tmp_path / "original").read_bytes()
    for run in every(tmp_path, a_foreign_transcript, fork_it, Kill(torn)):
        source = run.directory / "theirs" / f"{SESSION}.jsonl"
        assert source.read_bytes() == original, run
        forks = [path for project in (run.directory / "home").glob("projects/*") for path in list_transcripts(project)]
        assert len(forks) <= 1, run
        assert forks or not run.said, run
        for path in forks:
            assert path.read_bytes().startswith(original), run
            assert any(isinstance(record, Forked) for record in read_transcript(path)), run
            assert newest_transcript(path.parent.parent, path.parent.name) == path
            with Session("offline", home=run.directory / "home", cwd=run.directory, resume=path.stem) as session:
                assert [words for words in said(session.messages) if words in TEXTS] == TEXTS, run


def a_talk(directory: Path) -> None:
    with Session("offline", home=directory / "home", session_id=NAME, system="s", tools=[READ]) as session:
        turns(session, "a", "b")


def compact_it(directory: Path, say: Say) -> None:
    with Session("offline", home=directory / "home", resume=NAME) as session:
        compact(session, "the summary", tuple(item.uuid for item in conversation_of(session).log.view.items[-1:]))
        say("compacted")


@TORN
@pytest.mark.usefixtures("crash_points")
def test_a_killed_compaction_leaves_the_old_view_or_the_new_one(tmp_path: Path, torn: bool) -> None:
    seen = set()
    for run in every(tmp_path, a_talk, compact_it, Kill(torn)):
        with Session("offline", home=run.directory / "home", resume=NAME) as session:
            texts = said(session.messages)
            seen.add(json.dumps(texts))
            assert texts in (["a", "about a", "b", "about b"], ["the summary", "about b"]), run
            assert texts[0] == "the summary" or not run.said, run
            session.add_user("c")
            request = session.before_call()
            assert refused(request) == [], run
            assert request["system"][0]["text"] == "s", run
            assert [tool["name"] for tool in request["tools"]] == ["Read"], run
    assert len(seen) == 2


def open_and_close(directory: Path, say: Say) -> None:
    Session("offline", home=directory / "home", session_id=NAME).close()
    say("closed")


@pytest.mark.parametrize("act", [a_turn, open_and_close])
@pytest.mark.usefixtures("crash_points")
def test_a_killed_process_leaves_no_lock_and_no_litter(tmp_path: Path, act: Act) -> None:
    for run in every(tmp_path, Path.is_dir, act, Kill()):
        names = {path.name for path in (run.directory / "home").rglob("*") if path.is_file()}
        assert names <= {f"{NAME}.jsonl", "writer.lock"}, run
        if written(run.directory) is not None:
            projects = run.directory / "home" / "projects"
            assert find_transcript(projects, "x", NAME) == written(run.directory)
            Session("offline", home=run.directory / "home", resume=NAME).close()
