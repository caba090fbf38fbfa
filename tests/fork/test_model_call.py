"""An abortable call: events arrive in the caller's thread, one at a time, and are dropped after an abort."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import pytest

from lamina.core.blocks import Wire
from lamina.core.effects import Ask
from lamina.core.errors import Aborted, Overloaded
from lamina.core.reply import Reply
from lamina.fork.model_call import Deadline, ask_until
from lamina.providers import OnEvent
from lamina.providers.offline import OfflineProvider

PATIENCE = 120
ASK = Ask({"messages": []}, "notes")
REPLY = Reply("m", "a-model", (), "end_turn")


class Speaker(OfflineProvider):
    """A custom provider: the protocol, and whatever answer a test needs."""

    def __init__(self, act: Callable[[OnEvent], Reply]) -> None:
        super().__init__()
        self.purpose = ""
        self._act = act

    def ask(
        self, request: Wire, *, purpose: str = "chat", on_event: OnEvent | None = None, abort: threading.Event | None = None
    ) -> Reply:
        assert on_event is not None
        self.purpose = purpose
        return self._act(on_event)


def test_events_are_heard_in_the_callers_thread_in_order_and_before_the_reply() -> None:
    heard: list[tuple[int, int]] = []

    def speak(on_event: OnEvent) -> Reply:
        for number in range(100):
            on_event({"n": number})
            assert len(heard) == number + 1, "the listener is done with it"
        return REPLY

    speaker = Speaker(speak)
    here = threading.get_ident()
    reply = ask_until(threading.Event(), speaker, ASK, lambda event: heard.append((event["n"], threading.get_ident())))
    assert reply is REPLY
    assert heard == [(number, here) for number in range(100)]
    assert speaker.purpose == "notes"


def test_what_the_call_raises_comes_out_as_it_is() -> None:
    error = Overloaded("busy")

    def fail(_: OnEvent) -> Reply:
        raise error

    with pytest.raises(Overloaded) as caught:
        ask_until(threading.Event(), Speaker(fail), ASK)
    assert caught.value is error


def test_an_abort_leaves_a_silent_call_and_what_it_still_says_is_dropped() -> None:
    abort, asked, go_on, ended = (threading.Event() for _ in range(4))
    heard: list[Any] = []

    def stay_silent(on_event: OnEvent) -> Reply:
        asked.set()
        assert go_on.wait(PATIENCE)
        try:
            on_event({"n": "too late"})
        finally:
            ended.set()
        raise AssertionError("a call that was left goes no further")

    def stop() -> None:
        asked.wait(PATIENCE)
        abort.set()

    stopper = threading.Thread(target=stop)
    stopper.start()
    with pytest.raises(Aborted):
        ask_until(abort, Speaker(stay_silent), ASK, heard.append)
    go_on.set()
    assert ended.wait(PATIENCE)
    stopper.join(PATIENCE)
    assert heard == []


def test_a_listener_that_fails_ends_the_call_at_its_next_word() -> None:
    said: list[int] = []
    ended = threading.Event()

    def speak(on_event: OnEvent) -> Reply:
        try:
            for number in range(10):
                said.append(number)
                on_event({"n": number})
        finally:
            ended.set()
        return REPLY

    def fail(_: Any) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        ask_until(threading.Event(), Speaker(speak), ASK, fail)
    assert ended.wait(PATIENCE)
    assert said == [0]


def test_the_call_runs_in_the_callers_context() -> None:
    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="nobody")
    tenant.set("one")
    found: list[str] = []

    def look(_: OnEvent) -> Reply:
        found.append(tenant.get())
        return REPLY

    ask_until(threading.Event(), Speaker(look), ASK)
    assert found == ["one"]


# Deadlines


class Slow(Speaker):
    """A provider whose client takes its time to load."""

    def __init__(self, act: Callable[[OnEvent], Reply], loading: threading.Event) -> None:
        super().__init__(act)
        self._loading = loading

    def prepare(self) -> None:
        assert self._loading.wait(PATIENCE)


@pytest.mark.spec("Q4")
def test_what_a_client_takes_to_load_counts_for_no_deadline() -> None:
    loaded, go_on, done = (threading.Event() for _ in range(3))
    until = Deadline(0.0)

    def stay_silent(_: OnEvent) -> Reply:
        go_on.wait(PATIENCE)
        return REPLY

    def ask() -> None:
        with pytest.raises(Aborted):
            ask_until(until, Slow(stay_silent, loaded), ASK)
        done.set()

    threading.Thread(target=ask, daemon=True).start()
    assert not until.is_set()
    loaded.set()
    try:
        assert done.wait(PATIENCE), "then no time is left"
    finally:
        go_on.set()
    assert until.is_set()
    assert not until.stopped


def test_somebody_who_stops_is_heard_while_a_client_is_loaded() -> None:
    stop, loaded = threading.Event(), threading.Event()
    until = Deadline(600.0, None, stop)
    threading.Timer(0.0, stop.set).start()
    with pytest.raises(Aborted):
        ask_until(until, Slow(lambda _: REPLY, loaded), ASK)
    assert until.stopped
    loaded.set()
