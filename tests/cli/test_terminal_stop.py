"""A signal requests a stop during a turn and ends the program outside of one; a closed output requests a stop, never raises."""

from __future__ import annotations

import io
import os
import signal
import sys
from pathlib import Path

import pytest

from lamina.agent.agent import Agent
from lamina.cli.output import StdoutSink
from lamina.cli.signals import SIGHUP, SIGPIPE, StoppableProvider, StopRequest
from lamina.core.errors import Aborted
from lamina.providers.offline import OfflineProvider


def test_once_an_end_is_wished_no_call_begins() -> None:
    stop = StopRequest()
    provider = StoppableProvider(OfflineProvider(), stop)
    request = {"messages": [{"role": "user", "content": [{"type": "text", "text": "help"}]}]}
    assert "offline stand-in" in provider.ask(request).text
    assert provider.seconds > 0
    stop.request(signal.SIGTERM)
    with pytest.raises(Aborted):
        provider.ask(request)


def test_a_wish_that_came_just_before_the_turn_is_not_forgotten(tmp_path: Path) -> None:
    stop = StopRequest()
    with Agent.open(StoppableProvider(OfflineProvider(), stop), cwd=tmp_path, in_memory=True) as agent, stop.turn(agent.abort):
        stop.request(signal.SIGTERM)
        with pytest.raises(Aborted):
            agent.run("hello")
        assert [message["role"] for message in agent.session.messages] == ["user"]


def test_a_new_turn_begins_without_the_old_wish_but_not_without_the_end() -> None:
    stop, aborted = StopRequest(), list[str]()
    with stop.turn(lambda: aborted.append("first")):
        stop.request(signal.SIGINT)
    assert (aborted, state(stop)) == (["first"], (True, False))
    with stop.turn(lambda: aborted.append("second")):
        assert state(stop) == (False, False)
        stop.request(SIGHUP)
    with stop.turn(lambda: aborted.append("third")):
        assert state(stop) == (True, True)
    assert stop.code == 128 + SIGHUP


def state(stop: StopRequest) -> tuple[bool, bool]:
    return stop.requested, stop.leaving


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_a_signal_is_a_wish_in_a_turn_and_an_end_outside() -> None:
    stop = StopRequest()
    with stop.listening():
        with stop.turn(lambda: None):
            os.kill(os.getpid(), signal.SIGTERM)
            assert stop.requested
            assert stop.code == 128 + signal.SIGTERM
        with pytest.raises(SystemExit) as ended:
            os.kill(os.getpid(), signal.SIGTERM)
        assert ended.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_a_second_ctrl_c_waits_no_longer() -> None:
    stop = StopRequest()
    with stop.listening(), stop.turn(lambda: None):
        os.kill(os.getpid(), signal.SIGINT)
        assert state(stop) == (True, False)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert state(stop) == (True, True)
        assert stop.code == 130


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stop = StopRequest()
        with stop.listening(), stop.turn(lambda: None):
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.requested
    finally:
        signal.signal(signal.SIGHUP, before)


class Broken(io.StringIO):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def write(self, text: str) -> int:
        raise self._error


@pytest.mark.parametrize(
    ("error", "number"), [(BrokenPipeError(), SIGPIPE), (OSError(5, "gone"), SIGHUP), (ValueError(), SIGHUP)]
)
def test_output_that_goes_away_is_a_wish_to_stop(monkeypatch: pytest.MonkeyPatch, error: Exception, number: int) -> None:
    stop = StopRequest()
    sink = StdoutSink(stop)
    monkeypatch.setattr(sys, "stdout", Broken(error))
    monkeypatch.setattr(sys, "__stdout__", None)
    sink.write("hello")
    sink.write("hello")
    assert sink.gone
    assert stop.signal == number
    assert stop.code == (0 if number == SIGPIPE else 128 + number)
