"""A replayed request costs what is new in it, however long the session is."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import pytest

from lamina.core.settings import Settings
from lamina.replay.options import ReplayOptions
from lamina.replay.run import replay
from lamina.replay.variants import APPEND, RECORDED, variants

from .recording import MODEL, Recording, text

REQUESTS = 240


def session(model: str) -> Recording:
    """Requests of the same size: each reads one of a few files, and its answer quotes an earlier result."""
    made = Recording(model=model)
    made.say("Look at all of them.")
    for number in range(REQUESTS - 1):
        made.read(f"/w/file{number % 5}.py", f"result {number:04} is one line that is long enough to be quoted\n")
        if number % 10 == 9:
            made.say(f"Go on with part {number // 10:04}.")
    made.answer(text("All is done now."))
    return made


@pytest.mark.parametrize("model", [MODEL, "gpt-5"])
def test_a_request_late_in_a_session_needs_no_more_function_calls_than_an_early_one(tmp_path: Path, model: str) -> None:
    path = session(model).write(tmp_path / "long.jsonl")
    calls = 0
    counted: dict[str, list[int]] = {}

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    def on_call(row: str, done: int, total: int) -> None:
        counted.setdefault(row, []).append(calls)

    wanted = ReplayOptions(variants(), lambda arguments: Settings(**arguments), on_call=on_call)
    before = sys.getprofile()
    sys.setprofile(count)
    try:
        report = replay([path], wanted)
    finally:
        sys.setprofile(before)
    assert list(report.figures) == [RECORDED, APPEND, "balanced"]
    assert report.figures["balanced"].repeated_reads > REQUESTS / 2
    for at in counted.values():
        assert len(at) == REQUESTS
        early, late = at[REQUESTS // 4 + 50] - at[REQUESTS // 4], at[-1] - at[-51]
        assert late < early * 1.2
