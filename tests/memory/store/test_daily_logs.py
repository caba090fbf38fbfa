"""Daily logs: what a write adds and what it may not do, many writers at once, a crash at every call, and when a dream is due."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.disk.crash.harness import Fail, Kill, Say, every
from tests.disk.processes import needs_fork, together

from lamina.core.errors import InputError
from lamina.core.settings import Mode, Settings
from lamina.disk.trees.rootdir import RootDir
from lamina.memory.instructions import memory_instructions
from lamina.memory.memory import Memory
from lamina.memory.store.contract import ChangeReason
from lamina.memory.store.daily_logs import (
    MOST_BYTES,
    MOST_CHARACTERS,
    append_bullets,
    days_to_distil,
    list_logs,
    log_day,
    log_file,
    plan_addition,
)
from lamina.memory.store.scopes import MemoryLocation
from lamina.memory.tool_writes import RequestedWrite, WriteOutcome, find_memory_file, write_memory_file

WHY = ChangeReason("agent", "asked for", "session-1", "message-1")
NOW = datetime(2026, 3, 31, 14, 5)
TODAY = "logs/2026/03/2026-03-31.md"
KEY = "sk-ant-" + "a1B2c3D4e5F6g7H8i9J0"
HERE = Path("/home/p/.lamina/projects/x/memory")


def opened(tmp_path: Path, mode: str = "auto", **more: object) -> Memory:
    settings: dict[str, Any] = {"durability": "process", "assistant": True, "memory_mode": {"private": mode}, **more}
    return Memory.open(tmp_path, path=tmp_path / "memory", settings=Settings(**settings))


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with opened(tmp_path) as memory:
        yield memory


def put(memory: Memory, text: str, file: str = TODAY, *, now: datetime | None = NOW, before: bytes | None = None) -> WriteOutcome:
    """As the Write tool would, which looks at the file and has not shown it to anybody."""
    path = memory.path / file
    found = find_memory_file(memory.place, path)
    assert found is not None
    known = path.read_bytes() if before is None and path.exists() else before
    return write_memory_file(memory, found, RequestedWrite(path, text, known, "it has not been read"), why=WHY, now=now)


def log(memory: Memory, file: str = TODAY) -> str:
    return (memory.path / file).read_text()


@pytest.mark.spec("W2")
def test_bullets_are_added_at_the_end_with_the_time_by_who_has_not_read_the_log(memory: Memory) -> None:
    done = put(memory, "- Deploys happen on Thursdays\n\n* Anna leads the team\nNo marker\n")
    assert done.said == f"Added 3 bullets at the end of {memory.path / TODAY}, at 14:05. Nothing else was changed."
    assert (done.notice, done.facts) == ("Added 3 bullets to the log of 2026-03-31.", {"bullets": 3})
    put(memory, "- a later one", now=NOW.replace(hour=15))
    lines = ["- 14:05 Deploys happen on Thursdays", "- 14:05 Anna leads the team", "- 14:05 No marker", "- 15:05 a later one"]
    assert log(memory).splitlines() == lines
    assert (memory.path / TODAY).stat().st_mode & 0o777 == 0o600
    assert (memory.topics(), memory.index(), memory.log()) == ([], "", []), "no memory, no index line, no version"


@pytest.mark.spec("W2")
def test_a_log_that_is_written_back_whole_with_more_at_its_end_grows_by_that(memory: Memory) -> None:
    put(memory, "- one")
    put(memory, f"{log(memory)}- two\n")
    assert "already has this content" in put(memory, log(memory)).said
    assert log(memory) == "- 14:05 one\n- 14:05 two\n"


def test_a_log_that_an_editor_saved_its_own_way_is_added_to_all_the_same(memory: Memory) -> None:
    path = memory.path / TODAY
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\xef\xbb\xbf- 09:00 one\r\n- 09:01 two, \xff")
    put(memory, "\ufeff- three")
    assert path.read_bytes() == b"\xef\xbb\xbf- 09:00 one\r\n- 09:01 two, \xff\n- 14:05 three\n"


@pytest.mark.spec("W2", "G1")
def test_a_link_in_the_place_of_a_log_is_not_followed(memory: Memory, tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("- 09:00 theirs\n")
    (memory.path / TODAY).parent.mkdir(parents=True)
    (memory.path / TODAY).symlink_to(outside)
    assert put(memory, "- mine").is_error
    assert outside.read_text() == "- 09:00 theirs\n"


@pytest.mark.spec("W2")
def test_what_another_process_added_meanwhile_stays(memory: Memory) -> None:
    put(memory, "- one")
    known = (memory.path / TODAY).read_bytes()
    put(memory, "- of another session")
    put(memory, f"{known.decode()}- two\n", before=known)
    assert log(memory) == "- 14:05 one\n- 14:05 of another session\n- 14:05 two\n"


@pytest.mark.spec("W2")
@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        (TODAY, "", "can only grow"),
        (TODAY, " \n", "can only grow"),
        (TODAY, "- 14:05 one\n", "can't be changed or repeated"),
        (TODAY, "- 14:05 two\n- 14:05 three\n", "can't be changed or repeated"),
        (TODAY, "- 13:00 three\n", "begins with a time, which is added automatically"),
        (TODAY, "- 14:05 one\n- 14:05 two\n- 14:06 three\n", "begins with a time, which is added automatically"),
        (TODAY, "---\nname: x\n---\n\nwords\n", "no front matter"),
        (TODAY, f"- {'x' * (MOST_CHARACTERS + 1)}", "the limit is 500"),
        ("logs/2026/03/2026-03-30.md", "- late", f"only today's can be extended; write to {TODAY}"),
        ("logs/2026/04/2026-04-01.md", "- early", f"only today's can be extended; write to {TODAY}"),
        ("logs/2026/04/2026-03-31.md", "- x", "is not a daily log"),
        ("logs/notes.md", "- x", "is not a daily log"),
        ("Logs/2026/03/2026-03-31.md", "- x", "is not a daily log"),
        ("logs/2026/03/.2026-03-31.md", "- x", "is not a daily log"),
    ],
)
def test_anything_but_an_addition_is_refused_in_a_sentence(memory: Memory, file: str, text: str, problem: str) -> None:
    put(memory, "- one\n- two")
    before = log(memory)
    done = put(memory, text, file)
    assert done.is_error
    assert problem in done.said
    assert done.said.count("\n") == 0
    assert log(memory) == before
    assert list(memory.path.rglob("*.md")) == [memory.path / TODAY]


@pytest.mark.spec("W2", "B5")
@pytest.mark.parametrize(("mode", "taken"), [("auto", True), ("confirm", True), ("read-only", False)])
def test_a_memory_that_takes_nothing_takes_no_bullets(tmp_path: Path, mode: str, taken: bool) -> None:
    with opened(tmp_path, mode) as memory:
        done = put(memory, "- one")
        assert done.is_error is not taken
        assert (memory.path / TODAY).exists() is taken


@pytest.mark.spec("W2")
def test_there_are_no_daily_logs_outside_assistant_mode_and_none_of_the_team(tmp_path: Path) -> None:
    with opened(tmp_path, team=True) as memory:
        assert "assistant mode only" in put(memory, "- one", now=None).said
        assert "assistant mode only" in put(memory, "- one", f"team/{TODAY}").said


@pytest.mark.spec("W2", "B7")
def test_a_secret_never_reaches_a_log(memory: Memory) -> None:
    done = put(memory, f"- the key is {KEY}\n- another line")
    assert "A secret was removed (Anthropic key)." in done.said
    assert KEY not in log(memory)
    assert "another line" in log(memory)


@pytest.mark.spec("W2")
def test_a_full_log_takes_no_more(memory: Memory) -> None:
    path = memory.path / TODAY
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x" * (MOST_BYTES - 5))
    assert "is full" in put(memory, "- one").said
    assert path.stat().st_size == MOST_BYTES - 5


WORDS = st.text(max_size=60)


@given(before=st.lists(WORDS, max_size=4), text=WORDS)
def test_whatever_is_written_the_log_only_grows_by_bullets(before: list[str], text: str) -> None:
    held = "".join(f"- 09:00 {line}\n" for line in before)
    try:
        added = plan_addition(TODAY, text, held, NOW)
    except InputError:
        return
    assert all(line.startswith("- 14:05 ") and line.splitlines() == [line] for line in added.bullets)


@pytest.mark.exhaustive
@needs_fork
@pytest.mark.spec("W2", "Z2")
def test_sixteen_processes_lose_no_bullet_and_tear_none(tmp_path: Path) -> None:
    with RootDir.open(tmp_path / "memory"):
        pass

    def note(number: int) -> None:
        with RootDir.open(tmp_path / "memory") as root:
            for turn in range(4):
                append_bullets(root, TODAY, [f"- 14:05 {number} says {turn}"], durability="process")

    together(16, note)
    lines = (tmp_path / "memory" / TODAY).read_text().splitlines()
    assert sorted(lines) == sorted(f"- 14:05 {number} says {turn}" for number in range(16) for turn in range(4))


def _prepare(directory: Path) -> None:
    with RootDir.open(directory / "memory") as root:
        append_bullets(root, TODAY, ["- 09:00 old"], durability="process")


def _add(directory: Path, say: Say) -> None:
    with RootDir.open(directory / "memory") as root:
        append_bullets(root, TODAY, ["- 14:05 one", "- 14:05 two"])
        say("done")


@needs_fork
@pytest.mark.spec("W2", "Z1")
@pytest.mark.parametrize("fault", [Kill(torn=True), Fail(errno.ENOSPC)], ids=str)
@pytest.mark.usefixtures("crash_points")
def test_a_crash_leaves_the_log_without_the_bullets_or_with_all_of_them(tmp_path: Path, fault: Kill | Fail) -> None:
    old, seen = "- 09:00 old\n", set[str]()
    new = f"{old}- 14:05 one\n- 14:05 two\n"
    for run in every(tmp_path, _prepare, _add, fault):
        text = (run.directory / "memory" / TODAY).read_text()
        seen.add(text)
        assert text in (old, new), run
        assert not run.said or text == new, run
    assert seen == {old, new}


def test_what_is_a_log_is_told_by_its_path_and_days_are_listed_newest_first(memory: Memory) -> None:
    assert log_file(date(2026, 3, 31)) == TODAY
    assert log_day(TODAY) == date(2026, 3, 31)
    assert [log_day(file) for file in ("logs/2026/02/2026-02-30.md", "logs/2026/2026-03-31.md", "a.md")] == [None] * 3
    for file in (TODAY, "logs/2025/12/2025-12-31.md", "logs/2026/03/2026-03-02.md", "logs/2026/03/other.md", "logs/x/y.md"):
        (memory.path / file).parent.mkdir(parents=True, exist_ok=True)
        (memory.path / file).write_text("- 09:00 x\n")
    assert [each.day.isoformat() for each in list_logs(memory.store().store.root)] == ["2026-03-31", "2026-03-02", "2025-12-31"]
    assert memory.topics() == []
    assert memory.headers() == [], "recall never sees a log (S11)"


@pytest.mark.spec("W2")
def test_the_logs_of_days_that_are_over_wait_for_a_dream_until_one_has_seen_them(memory: Memory) -> None:
    root = memory.store().store.root

    def at(day: int, hour: int) -> float:
        return time.mktime((2026, 3, day, hour, 0, 0, 0, 0, -1))

    assert days_to_distil(root, None, at(10, 9)) == [], "nothing was noted yet"
    for day in (8, 9, 10):
        append_bullets(root, log_file(date(2026, 3, day)), ["- 09:00 x"], durability="process")
    assert days_to_distil(root, None, at(10, 9)) == [date(2026, 3, 9), date(2026, 3, 8)], "today's is not over"
    assert days_to_distil(root, at(9, 1), at(10, 9)) == [date(2026, 3, 9)], "the night's dream saw what lay before its own day"
    assert days_to_distil(root, at(10, 1), at(10, 9)) == []


def said(assistant: bool, mode: Mode = "auto") -> str:
    place, tools = MemoryLocation(HERE, None, "default"), ("Read", "Write", "Edit", "Grep")
    return memory_instructions(
        place=place, mode=mode, tools=tools, transcripts=HERE.parent, index=not assistant, assistant=assistant
    )


@pytest.mark.spec("W2", "S9")
def test_the_model_is_told_the_pattern_of_the_path_and_never_a_date() -> None:
    text = said(assistant=True)
    assert f"\n- Daily log: {HERE}/logs/YYYY/MM/YYYY-MM-DD.md\n" in text
    assert datetime.now().strftime("%Y-%m-%d") not in text
    assert "### What is not saved" in text
    assert "### How to save" not in text
    assert "Types of memory" in text, "what is worth a note, and what the dream makes of it"
    assert "(daily logs are among them, in `logs/`)" in text
    assert "is not sent to you" in text
    assert "Daily log" not in said(assistant=True, mode="read-only")
    assert "daily log" not in said(assistant=False).lower()
