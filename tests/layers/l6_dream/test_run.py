"""A running dream: its record after each answer, and what ends it."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from lamina.core.blocks import Wire, read_content
from lamina.core.reply import Reply
from lamina.core.usage import Usage
from lamina.disk.locks.dream_lock import DreamLock, HeldDreamLock
from lamina.disk.trees.rootdir import RootDir
from lamina.layers.l6_dream.record import MOST_NAMED, MOST_TURNS, TURN_CHARS, DreamRecord, read_record, request_kill, write_record
from lamina.layers.l6_dream.run import DreamProgress, DreamWatch

DREAM = "20260501T0500-abcd"
PATIENCE = 120
MINUTE = 60 * 1_000_000_000


def record() -> DreamRecord:
    return DreamRecord(id=DREAM, started=0.0, pid=1, by="hand")


def reply(text: str, model: str = "claude-sonnet-5-5") -> Reply:
    content: list[Wire] = [{"type": "text", "text": text}, {"type": "tool_use", "id": "c", "name": "Read", "input": {}}]
    return Reply("m", model, read_content(content, where="test"), "tool_use", Usage(input_tokens=1_000, output_tokens=10))


@pytest.mark.spec("D4")
def test_the_record_follows_each_answer(tmp_path: Path) -> None:
    heard: list[DreamRecord] = []
    with RootDir.open(tmp_path) as root:
        progress = DreamProgress(root, record(), heard.append)
        for number in range(MOST_TURNS + 2):
            progress.said(reply(f"answer {number}"), "")
        there = read_record(root, DREAM)
        assert there is not None
        assert there == progress.record == heard[-1]
        assert (there.turns[0].text, there.turns[0].calls) == ("answer 2", 1)
        assert (len(there.turns), there.tokens, there.phase) == (MOST_TURNS, 1_010 * (MOST_TURNS + 2), "starting")
        assert there.cost > 0
        progress.touched(())
        assert heard[-1].phase == "starting"
        progress.touched(("a.md", "b.md"))
        progress.touched(("a.md", "b.md"))
        assert (heard[-1].phase, heard[-1].files) == ("updating", ("a.md", "b.md"))
        assert len(heard) == MOST_TURNS + 3


@pytest.mark.spec("D4")
def test_a_record_stays_short_and_holds_no_secret(tmp_path: Path) -> None:
    with RootDir.open(tmp_path) as root:
        progress = DreamProgress(root, record(), lambda _: None)
        progress.said(reply(f"turn\nwith ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8 {'x' * 900}"), "")
        [turn] = progress.record.turns
        assert len(turn.text) <= TURN_CHARS
        assert "ghp_" not in turn.text
        assert "\n" not in turn.text
        progress.touched([f"{number}.md" for number in range(MOST_NAMED + 5)])
        assert len(progress.record.files) == MOST_NAMED


@pytest.mark.spec("D4", "B9")
def test_what_no_model_answered_costs_nothing(tmp_path: Path) -> None:
    with RootDir.open(tmp_path) as root:
        progress = DreamProgress(root, record(), lambda _: None)
        progress.said(reply("by rules", model="offline"), "offline")
        assert (progress.record.tokens, progress.record.cost) == (0, 0.0)


@pytest.mark.spec("D5")
def test_a_request_to_stop_sets_the_abort(tmp_path: Path) -> None:
    abort = Event()
    with RootDir.open(tmp_path) as root, held(root) as hold, DreamWatch(root, DREAM, hold, abort) as watch:
        write_record(root, record())
        assert request_kill(root, DREAM)
        assert abort.wait(PATIENCE)
        assert watch.why == "killed"


@pytest.mark.spec("D2")
def test_one_that_takes_too_long_ends_itself(tmp_path: Path) -> None:
    abort, time = Event(), [0]
    with RootDir.open(tmp_path) as root, held(root, time) as hold, DreamWatch(root, DREAM, hold, abort) as watch:
        time[0] = 56 * MINUTE
        assert abort.wait(PATIENCE)
        assert watch.why == "overdue"


@pytest.mark.spec("D4")
def test_a_dream_that_ends_by_itself_is_left_alone(tmp_path: Path) -> None:
    abort = Event()
    with RootDir.open(tmp_path) as root, held(root) as hold, DreamWatch(root, DREAM, hold, abort) as watch:
        pass
    assert not abort.is_set()
    assert watch.why == ""


def held(root: RootDir, time: list[int] | None = None) -> HeldDreamLock:
    clock = (lambda: time[0]) if time is not None else None
    lock = DreamLock(root) if clock is None else DreamLock(root, boottime=clock)
    hold = lock.acquire(lock.last_ns())
    assert isinstance(hold, HeldDreamLock)
    return hold
