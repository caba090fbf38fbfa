"""`forget` over a home with something of every kind in it."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import pytest
from tests.session.play import compact, turns

from lamina.core.errors import InputError
from lamina.core.log import Log
from lamina.core.records import Spill
from lamina.core.settings import Settings
from lamina.disk.transcripts.jsonl import raw_lines_back
from lamina.disk.transcripts.resume import find_resume_point
from lamina.disk.transcripts.store import read_transcript
from lamina.maintenance.forget.forget import forget
from lamina.maintenance.forget.subject import Subject
from lamina.memory.memory import Memory
from lamina.memory.recall.vectors import FILE as VECTORS
from lamina.memory.store.directory import DirectoryStore
from lamina.memory.store.topic_files import INDEX_FILE
from lamina.session.base import conversation_of
from lamina.session.session import Session

from ..made import COPIED, NAME, all_of, forgotten, make_home, make_memory, make_session, project, texts


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    path = tmp_path / "project"
    path.mkdir()
    return path


@pytest.mark.spec("B11")
def test_one_call_takes_it_out_of_everything_and_says_so(home: Path, cwd: Path) -> None:
    make_home(home, cwd)
    report = forgotten(home, cwd)
    everything = texts(home) + texts(cwd)
    assert not re.search("anna", everything, re.IGNORECASE)
    assert COPIED not in everything, "a line of a memory that went was copied into the transcript"
    assert everything.count("Bob") >= 10, "what is not about it stays"
    kinds = {
        "memories",
        "history",
        "inbox",
        "notes",
        "transcripts",
        "spills",
        "daily logs",
        "agent memory",
        "team memory",
        "indexes",
    }
    assert kinds <= set(report.counts()), report.counts()
    assert {"chat history", "git history", "trash"} <= set(report.counts())
    assert report.skipped == []
    assert report.left == []


@pytest.mark.spec("B11")
def test_the_search_index_of_a_large_memory_goes_and_is_made_anew(home: Path, cwd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.memory.recall.library.LARGE", 2)
    make_home(home, cwd)
    with Memory.open(cwd, home=home) as memory:
        memory.save("second", description="Bob likes tea", body="Not about the other one.")
        assert memory.recall(NAME)
        index = memory.path / INDEX_FILE
        assert index.exists()
        vectors = memory.path / VECTORS.format("static")
        vectors.write_text("numbers")
        forgotten(home, cwd)
        assert not index.exists(), "it holds words in pieces that no search for the name would find"
        assert not vectors.exists(), "numbers tell what a text was about"
        assert memory.recall(NAME) == []
        assert memory.recall("Bob likes tea")
    assert b"anna" not in index.read_bytes().lower()


@pytest.mark.spec("B11")
def test_nothing_brings_it_back(home: Path, cwd: Path) -> None:
    make_home(home, cwd)
    forgotten(home, cwd)
    with Memory.open(cwd, home=home, settings=Settings()) as memory:
        with pytest.raises(InputError):
            memory.restore("anna-lee")
        brought = memory.restore("trashed")
        assert brought.body == "\nAnd Bob.\n"
        assert memory.waiting() == []
        assert not any(NAME in (memory.content(version.id) or "") for version in memory.log())
        assert [version.action for version in memory.log("food")] == ["save"], "and the journal fits what stands there"
        memory.save("food", description="What they eat", body="Bread.")
        assert [version.action for version in memory.log("food")] == ["save", "save"]
    assert not (project(home, cwd) / "memory" / ".history" / "git").exists()


def test_a_dry_run_changes_nothing_and_says_the_same(home: Path, cwd: Path) -> None:
    make_home(home, cwd)
    before = texts(home)
    planned = forget(all_of(home, cwd), Subject(NAME), do=False)
    assert texts(home) == before
    assert planned.counts() == forgotten(home, cwd).counts()


def test_a_second_time_there_is_nothing_left_to_do(home: Path, cwd: Path) -> None:
    make_home(home, cwd)
    forgotten(home, cwd)
    before = texts(home)
    assert forgotten(home, cwd).done == []
    assert texts(home) == before


@pytest.mark.spec("B11")
def test_the_transcript_stays_one_and_its_tool_pairs_hold(home: Path, cwd: Path) -> None:
    path = make_session(home, cwd)
    untouched = [line for line in path.read_bytes().split(b"\n") if b"nna" not in line and b"sha256" not in line]
    forgotten(home, cwd)
    assert set(untouched) <= set(path.read_bytes().split(b"\n")), "other lines keep their bytes"
    with Session("offline", home=home, cwd=cwd, resume=path.stem) as again:
        again.add_user("and now?")
        request = again.before_call()
    said = json.dumps(request["messages"])
    assert "[removed]" in said
    assert "what is the weather" in said
    [spill] = [record for record in read_transcript(path) if isinstance(record, Spill)]
    data = Path(spill.path).read_bytes()
    assert data == b"one\n[removed]\nthree\n"
    assert (spill.sha256, spill.size) == (hashlib.sha256(data).hexdigest(), len(data))


def test_a_resume_still_starts_where_the_checkpoint_says(home: Path, cwd: Path) -> None:
    with Session("offline", home=home, cwd=cwd) as session:
        turns(session, "a Anna Lee and more of it", "b", "c", "d Anna Lee")
        kept = tuple(item.uuid for item in conversation_of(session).log.view.items[-2:])
        compact(session, "all of it", kept)
        session.add_user("e")
        session.before_call()
        path = session.path
    assert path is not None
    forgotten(home, cwd)
    start, checkpoint = find_resume_point(raw_lines_back(path))
    assert checkpoint is not None
    assert kept[0].encode() in path.read_bytes()[start:].split(b"\n")[0]
    with Session("offline", home=home, cwd=cwd, resume=path.stem) as again:
        assert conversation_of(again).start == start
        assert again.messages == Log.load(lambda: read_transcript(path)).view.messages()


def test_of_a_damaged_line_the_records_stay(home: Path, cwd: Path) -> None:
    path = make_session(home, cwd)
    lines = path.read_bytes().split(b"\n")
    hit = next(number for number, line in enumerate(lines) if b"weather" in line)
    lines[hit] = b'{"torn": "Anna Lee' + lines[hit]
    path.write_bytes(b"\n".join(lines))
    before = len(list(read_transcript(path)))
    assert forgotten(home, cwd).left == []
    assert len(list(read_transcript(path))) == before


@pytest.mark.spec("B11")
def test_an_open_session_is_left_alone_and_reported(home: Path, cwd: Path) -> None:
    make_memory(home, cwd)
    with Session("offline", home=home, cwd=cwd) as session:
        session.add_user(f"about {NAME}")
        session.before_call()
        path = session.path
        assert path is not None
        before = path.read_bytes()
        report = forgotten(home, cwd)
        assert path.read_bytes() == before
    [skipped] = report.skipped
    assert skipped.path == str(path)
    assert "open" in skipped.why
    assert str(path) in [left.path for left in report.left]
    assert forgotten(home, cwd).left == []


def test_what_may_not_be_written_is_reported(home: Path, cwd: Path) -> None:
    root = make_memory(home, cwd)
    os.chmod(root / "food.md", 0o400)
    report = forgotten(home, cwd)
    assert [skipped.path for skipped in report.skipped] == [str(root / "food.md")]
    assert [left.path for left in report.left] == [str(root / "food.md")]


def test_other_projects_only_when_asked(home: Path, cwd: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    make_session(home, cwd)
    path = make_session(home, other)
    before = path.read_bytes()
    forgotten(home, cwd)
    assert path.read_bytes() == before
    forgotten(home, cwd, everywhere=True)
    assert b"Anna" not in path.read_bytes()


def test_sessions_of_subdirectories_belong_to_the_project(home: Path, cwd: Path) -> None:
    (cwd / ".git").mkdir()
    (cwd / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    below = cwd / "src"
    below.mkdir()
    path = make_session(home, below)
    forgotten(home, cwd)
    assert b"Anna" not in path.read_bytes()


def test_another_process_that_has_the_journal_open_reads_it_anew(home: Path, cwd: Path) -> None:
    root = make_memory(home, cwd)
    with DirectoryStore.open(root) as store:
        store.history.catch_up()
        assert store.history.last("anna-lee.md") is not None
        forgotten(home, cwd)
        store.history.catch_up()
        assert store.history.last("anna-lee.md") is None


def test_settings_are_not_changed_but_named(home: Path, cwd: Path) -> None:
    make_session(home, cwd)
    (home / "settings.json").write_text('{"lamina": {"extraGuidelines": "Anna Lee is the boss"}}')
    report = forgotten(home, cwd)
    assert "boss" in (home / "settings.json").read_text()
    assert [left.path for left in report.left] == [str(home / "settings.json")]


def test_names_of_files_and_directories_are_named(home: Path, cwd: Path) -> None:
    path = make_session(home, cwd)
    odd = path.with_suffix("") / "anna lee"
    odd.mkdir()
    (odd / "x.txt").write_text("Bob")
    assert [(left.path, left.why) for left in forgotten(home, cwd).left] == [(str(odd), "its name contains it")]


def test_lines_of_json_in_the_home_stay_json(home: Path, cwd: Path) -> None:
    make_session(home, cwd)
    (home / "prompts.jsonl").write_text(json.dumps({"id": "1", "text": f"so\n{NAME}\nsaid"}) + "\n")
    assert forgotten(home, cwd).left == []
    assert json.loads((home / "prompts.jsonl").read_text()) == {"id": "1", "text": "so\n[removed]\nsaid"}


def test_parts_of_longer_words_are_named(home: Path, cwd: Path) -> None:
    make_memory(home, cwd)
    (project(home, cwd) / "memory" / "plain.md").write_text("An ann-ual plan for the Annam coast.\n")
    report = forgotten(home, cwd, "Annam coa")
    assert report.done == []
    assert "longer words" in report.left[0].why
