"""Transcripts that are too large to load: the end is loaded, a summary stands for the rest, and nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import pytest
from tests.session.plain import Session
from tests.session.words import pins_of

from lamina.core.blocks import text
from lamina.core.errors import InputError, UsageError
from lamina.core.log import BY_RESUME
from lamina.core.record_lines import Envelope, write_record
from lamina.core.records import Boundary, Message
from lamina.disk.transcripts import resume
from lamina.session.base import working

from .words import READ, Wire, answer, call, records, refused, said

PROMPT: dict[str, Any] = {"system": "be brief", "tools": [READ], "window": 200_000, "max_tokens": 500}
FILL = "What the tool found in this file, line by line. " * 40


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every limit is a few turns of a test instead of megabytes."""
    for name, size in (("MAX_LIVE", 60_000), ("TAIL", 20_000), ("NEAR", 20_000)):
        monkeypatch.setattr(resume, name, size)


def talk(session: Session, numbers: range) -> None:
    for number in numbers:
        session.add_user(f"Question {number}: what is there?")
        session.before_call()
        names = [f"c{number}-{at}" for at in range(3)]
        session.after_call(answer(f"a{number}", "I look.", *(call(name, file_path=f"/w/f{number}.py") for name in names)))
        for name in names:
            session.add_tool_result(name, f"{name} {FILL}")
        session.before_call()
        session.after_call(answer(f"b{number}", f"Answer {number}."))
        session.end_turn()


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A session of about 140 KB that was never compacted, with a pin at its beginning."""
    with Session("offline", home=tmp_path, session_id="large", **PROMPT) as session:
        session.add_user("The task: write the parser.")
        session.pin("Never touch the lexer.")
        session.before_call()
        session.after_call(answer("a", "I begin."))
        talk(session, range(1, 20))
        assert session.path is not None
        return session.path


def resumed(home: Path, **given: Any) -> Session:
    return Session("offline", home=home, **{"resume": "large", "window": 200_000, **given})


@pytest.mark.spec("Z4", "Z7")
@pytest.mark.usefixtures("small")
def test_the_end_is_loaded_and_a_summary_stands_for_the_rest(tmp_path: Path, large: Path) -> None:
    before = large.read_bytes()
    with resumed(tmp_path) as session:
        assert [notice for notice in session.notices if "too large to load" in notice] == session.notices
        texts = said(session.messages)
        assert "Question 19: what is there?" in texts
        assert "Question 1: what is there?" not in texts
        assert "The task: write the parser." in texts[0]
        assert "c1-0" not in str(session.messages)
        assert pins_of(session)
        session.add_user("go on")
        request = session.before_call()
        assert refused(request) == []
        assert request["extra_headers"]["x-lamina-break"] == "compaction"
        assert [block["text"] for block in request["system"]] == ["be brief"]
        shown = session.messages
    assert large.read_bytes().startswith(before)
    with resumed(tmp_path) as again:
        assert again.notices == []
        assert again.messages == shown
        assert len([record for record in records(large) if isinstance(record, Boundary)]) == 1


@pytest.mark.usefixtures("small")
def test_it_cannot_be_undone_but_a_later_compaction_can(tmp_path: Path, large: Path) -> None:
    with resumed(tmp_path) as session:
        [made] = [record for record in records(large) if isinstance(record, Boundary)]
        assert made.receipt["by"] == BY_RESUME
        with pytest.raises(UsageError, match="too large to load"):
            session.undo(made.uuid)
        with pytest.raises(InputError, match="too large to show"):
            session.expand(made.uuid)
        shown = session.messages
        assert session.compact().done
        assert session.messages != shown
        session.undo()
        assert session.messages == shown
        assert pins_of(session)


@pytest.mark.usefixtures("small")
def test_what_is_not_loaded_is_not_loaded_for_an_undo_either(
    tmp_path: Path, large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume, "MAX_WHOLE", 60_000)
    with resumed(tmp_path) as session:
        with pytest.raises(UsageError, match=r"large.jsonl is too large \(0 MB\)"):
            session.undo("12345678")
        session.add_user("go on")
        assert refused(session.before_call()) == []


@pytest.mark.usefixtures("small")
def test_a_session_that_grew_too_large_behind_a_compaction(tmp_path: Path, large: Path) -> None:
    with Session("offline", home=tmp_path, resume="large", window=200_000) as session:
        talk(session, range(20, 40))
        with working(session) as c:
            assert c.start > 0
    with resumed(tmp_path) as again:
        assert any("too large to load" in notice for notice in again.notices)
        texts = said(again.messages)
        assert "Question 39: what is there?" in texts
        assert "Question 21: what is there?" not in texts
        assert "The task: write the parser." in texts[0]
        assert pins_of(again)
        again.add_user("go on")
        assert refused(again.before_call()) == []


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("in_memory", [False, True])
def test_a_file_of_another_program_is_copied_whole_and_its_end_is_loaded(tmp_path: Path, large: Path, in_memory: bool) -> None:
    foreign = tmp_path / "theirs.jsonl"
    foreign.write_bytes(large.read_bytes() + b'{"type":"summary","summary":"A parser"}\n')
    before, home = foreign.read_bytes(), tmp_path / "other"
    with Session("offline", home=home, resume=foreign, window=200_000, in_memory=in_memory) as session:
        assert any("too large to load" in notice for notice in session.notices)
        assert list(home.rglob("*.jsonl")) == [], "it is not known yet whether it is wanted"
        shown = session.messages
        assert "The task: write the parser." in said(shown)[0]
        session.add_user("go on")
        request = session.before_call()
        assert refused(request) == []
        copies = list(home.rglob("*.jsonl"))
    assert foreign.read_bytes() == before
    if in_memory:
        assert copies == []
        return
    [copy] = copies
    assert copy.read_bytes().startswith(before)
    with Session("offline", home=home, resume=copy, window=200_000) as again:
        assert again.messages[: len(shown)] == shown
        assert again.notices == []


@pytest.mark.spec("Z6")
@pytest.mark.parametrize("tail", range(500, 12_000, 700))
def test_wherever_it_is_cut_the_request_is_valid(tmp_path: Path, tail: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """One turn of many parallel calls, with no message of the user to cut at."""
    with Session("offline", home=tmp_path, session_id="large", **PROMPT) as session:
        session.add_user("Read them all.")
        for number in range(12):
            session.before_call()
            names = [f"c{number}-{at}" for at in range(3)]
            session.after_call(answer(f"a{number}", "I look.", *(call(name, file_path="/w/f.py") for name in names)))
            for name in names:
                session.add_tool_result(name, f"{name} found it")
    monkeypatch.setattr(resume, "MAX_LIVE", 10)
    monkeypatch.setattr(resume, "TAIL", tail // resume.MOST_TAILS)
    with resumed(tmp_path) as session:
        request = session.before_call()
        assert refused(request) == []
        assert "Read them all." in str(request["messages"][0])


@pytest.mark.spec("Z4", "Z12")
def test_what_a_reader_may_miss_is_said_when_a_session_is_resumed(tmp_path: Path) -> None:
    def line(number: int, parent: int | None) -> Wire:
        content = f"Word {number}"
        return {
            "type": "user",
            "sessionId": "s",
            "uuid": f"u{number}",
            "parentUuid": f"u{parent}" if parent else None,
            "message": {"role": "user", "content": content},
        }

    path = tmp_path / "theirs.jsonl"
    rows = [line(1, 3), line(2, 1), line(3, 2), line(3, 2), line(4, 3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with Session("offline", home=tmp_path / "home", resume=path) as session:
        assert said(session.messages) == ["Word 1", "Word 2", "Word 3", "Word 4"]
        assert session.notices[1:] == [
            f"{path}: 1 record has the id of an earlier record; the later one counts.",
            f"{path}: 1 record is its own ancestor (a cycle of parents); the order in the file counts.",
        ]


PEAK = """
import sys, pathlib, resource
from tests.session.plain import Session
path = pathlib.Path(sys.argv[1])
with Session("offline", resume=path, home=path.parent, window=200_000) as session:
    session.add_user("and now?")
    session.before_call()
status = pathlib.Path("/proc/self/status").read_text().splitlines()
print(next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM")))
"""


def peak(path: Path) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(path)], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    return int(done.stdout)


def chain(path: Path, size: int) -> Path:
    """A conversation of questions and answers, without any decision."""
    envelope, parent, written, number = Envelope("s", "/", "0"), None, 0, 0
    with path.open("wb") as file:
        while written < size:
            role: Literal["user", "assistant"] = "assistant" if number % 2 else "user"
            name = f"msg_{number}" if number % 2 else None
            record = Message(f"u{number}", parent, "2026-01-01T00:00:00.000Z", role, (text(f"{number} {FILL}"),), name)
            written += file.write(write_record(record, envelope) + b"\n")
            parent, number = record.uuid, number + 1
    return path


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the kernel's own count of memory")
@pytest.mark.exhaustive
@pytest.mark.spec("Z7")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """A file of 100 MB takes less than its own size; loaded whole it takes several times as much."""
    huge, small = (chain(tmp_path / f"{size}.jsonl", size << 20) for size in (100, 1))
    assert peak(huge) - peak(small) < huge.stat().st_size
