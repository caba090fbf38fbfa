"""The gates of a dream: each stops for its own reason, cheapest first."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina import Settings
from lamina.agent.dream_gate import find_switch
from lamina.agent.manual_dream import run_by_hand
from lamina.layers.l6_dream.gates import HOUR_NS, MOST_FAILURES, DreamStop, check_sessions, check_throttle, check_time, find_stop

FINE: dict[str, Any] = {"on": True, "remote": False, "lent": True, "mode": "auto"}
NOW = 1_790_000_000 * 1_000_000_000


@pytest.mark.spec("D1", "K5")
@pytest.mark.parametrize(
    ("changed", "gate"),
    [
        ({"on": False, "remote": True, "mode": "read-only"}, "off"),
        ({"remote": True, "lent": False}, "remote"),
        ({"lent": False, "mode": "off"}, "agent"),
        ({"mode": "read-only", "failures": MOST_FAILURES}, "mode"),
        ({"mode": "off"}, "mode"),
        ({"failures": MOST_FAILURES}, "failures"),
    ],
)
def test_the_cheapest_gate_speaks_first(changed: dict[str, Any], gate: str) -> None:
    stop = find_stop(**{**FINE, **changed})
    assert stop is not None
    assert stop.gate == gate
    assert stop.why


@pytest.mark.spec("D1")
def test_what_stands_well_is_not_stopped() -> None:
    assert find_stop(**FINE, failures=MOST_FAILURES - 1) is None
    assert find_stop(**{**FINE, "mode": "confirm"}) is None


@pytest.mark.spec("D1", "D2")
@pytest.mark.parametrize(
    ("ago", "due"),
    [(None, True), (24.0, True), (23.99, False), (0.0, False), (-0.5, False), (-2.0, True), (1_000.0, True)],
)
def test_a_day_lies_between_two_dreams(ago: float | None, due: bool) -> None:
    last = None if ago is None else NOW - int(ago * HOUR_NS)
    stop = check_time(last, NOW, hours=24.0, daily=False)
    assert (stop is None) is due
    assert stop is None or stop.gate == "time"


@pytest.mark.parametrize(
    ("seconds", "hours", "why"),
    [
        (0, 24, "the last dream was less than a minute ago; the next may run in 24 h"),
        (140, 24, "the last dream was 2 minutes ago; the next may run in 23 h 58 min"),
        (-30, 24, "the last dream was less than a minute ago; the next may run in 24 h"),
        (3_600, 24, "the last dream was 1 hour ago; the next may run in 23 h"),
        (86_399, 24, "the last dream was 23 hours ago; the next may run in 1 min"),
        (60, 0.5, "the last dream was 1 minute ago; the next may run in 29 min"),
        (1, 0.001, "the last dream was less than a minute ago; the next may run in 1 min"),
    ],
)
def test_the_time_gate_says_when_the_last_dream_was_and_when_the_next_may_run(seconds: int, hours: float, why: str) -> None:
    stop = check_time(NOW - seconds * 1_000_000_000, NOW, hours=hours, daily=False)
    assert stop is not None
    assert stop.why == why


@pytest.mark.spec("W2")
@pytest.mark.parametrize(
    ("before", "now", "due"),
    [
        ("2026-05-01T23:50", "2026-05-02T00:05", True),
        ("2026-05-02T00:01", "2026-05-02T23:59", False),
        ("2026-05-02T00:30", "2026-05-02T00:05", False),
        ("2026-04-01T12:00", "2026-05-02T12:00", True),
    ],
)
def test_in_assistant_mode_local_midnight_lies_between(before: str, now: str, due: bool) -> None:
    zone = timezone(timedelta(hours=9))
    moments = [int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()) * 1_000_000_000 for text in (before, now)]
    assert (check_time(*moments, hours=24.0, daily=True, zone=zone) is None) is due


@pytest.mark.spec("D1")
@given(hours=st.floats(0, 10_000), ago=st.integers(0, 10**19))
def test_time_only_ever_opens_the_gate(hours: float, ago: int) -> None:
    if check_time(NOW - ago, NOW, hours=hours, daily=False) is None:
        assert check_time(NOW - ago - 1, NOW, hours=hours, daily=False) is None


@pytest.mark.spec("D1")
def test_sessions_are_counted_at_most_every_so_many_minutes_and_must_be_enough() -> None:
    assert check_throttle(None, minutes=10) is None
    assert check_throttle(600.0, minutes=10) is None
    young = check_throttle(599.0, minutes=10)
    assert young is not None
    assert young.gate == "throttle"
    assert check_sessions(5, wanted=5) is None
    few = check_sessions(4, wanted=5)
    assert few is not None
    assert (few.gate, few.why) == ("sessions", "only 4 of 5 sessions since the last dream")


@pytest.mark.spec("D1", "B5")
@pytest.mark.parametrize(
    ("document", "environ", "says"),
    [
        ({"lamina": {"memoryMode": "off"}}, {}, "lamina.memoryMode is off ({file}); set it to auto or confirm"),
        ({}, {"LAMINA_MEMORY_MODE": "off"}, "lamina.memoryMode is off (LAMINA_MEMORY_MODE); set it to auto or confirm"),
        ({"autoMemoryEnabled": False}, {}, "autoMemoryEnabled is false ({file}); set it to true"),
        ({}, {"LAMINA_DISABLE_MEMORY": "1"}, "LAMINA_DISABLE_MEMORY is set; unset it"),
        ({}, {"LAMINA_BARE": "1"}, "bare mode is on; start without it"),
        ({"env": {"LAMINA_DISABLE_MEMORY": "1"}}, {}, "{file} env.LAMINA_DISABLE_MEMORY is set; unset it"),
        (
            {},
            {"LAMINA_REMOTE": "1"},
            "this machine is ephemeral and has no memory directory; set LAMINA_REMOTE_MEMORY_DIR",
        ),
    ],
)
def test_a_memory_that_is_off_names_the_setting_that_did_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, document: dict[str, object], environ: dict[str, str], says: str
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "settings.json"
    file.write_text(json.dumps(document), "utf-8")
    found = Settings.load(tmp_path, home=tmp_path)
    told = f"private memory is off: {says.format(file=file)}"
    stop = find_switch(found)
    assert stop is not None
    assert stop.why == told
    outcome = run_by_hand("offline", cwd=tmp_path, home=tmp_path, settings=found)
    assert outcome.stop == stop


def test_a_memory_that_is_off_in_code_says_so() -> None:
    assert find_switch(Settings(memory=False)) == DreamStop(
        "off", "private memory is off: autoMemoryEnabled is false (argument); set it to true"
    )
    assert find_switch(Settings(memory_mode={"private": "read-only"})) == DreamStop("mode", "private memory is read-only")
    assert find_switch(Settings()) is None
