"""Background work: one job per name, no lost results, a bounded inbox, and a `close` that waits, but not forever."""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from lamina.fork.background import MOST, Background, current_job

PATIENCE = 120


class Gate:
    """A job that waits until it is released or told to stop."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.let = threading.Event()
        self.told = False

    def __call__(self, abort: threading.Event) -> str:
        self.entered.set()
        while not self.let.wait(0.001):
            if abort.is_set():
                self.told = True
                raise InterruptedError
        return "through"


@pytest.fixture
def background() -> Iterator[Background]:
    before = threading.enumerate()
    made = Background()
    yield made
    made.abort()
    assert made.close(PATIENCE) == []
    after = [thread.name for thread in threading.enumerate() if thread not in before]
    assert [name for name in after if name.startswith("lamina-")] == []


def landed(background: Background, name: str) -> list[tuple[str, Any]]:
    assert background.wait(name, PATIENCE)
    return [(one.name, one.value) for one in background.drain()]


def test_what_a_job_returns_lands_once(background: Background) -> None:
    assert background.start("notes", lambda abort: 7)
    assert landed(background, "notes") == [("notes", 7)]
    assert background.drain() == []


def test_what_a_job_raises_lands_as_its_error(background: Background) -> None:
    for number, error in enumerate((ValueError("no"), SystemExit(3), KeyboardInterrupt())):

        def fail(abort: threading.Event, error: BaseException = error) -> None:
            raise error

        background.start(f"job{number}", fail)
        assert background.wait(f"job{number}", PATIENCE)
        (one,) = background.drain()
        assert one.error is error
        assert one.value is None


@pytest.mark.spec("N4")
def test_of_one_name_one_job_runs_and_another_name_runs_beside_it(background: Background) -> None:
    gate, other = Gate(), Gate()
    assert background.start("notes", gate)
    assert not background.start("notes", lambda abort: "second")
    assert background.start("summary", other)
    assert other.entered.wait(PATIENCE)
    gate.let.set()
    assert landed(background, "notes") == [("notes", "through")]
    assert background.start("notes", lambda abort: "third")
    assert landed(background, "notes") == [("notes", "third")]
    other.let.set()
    assert landed(background, "summary") == [("summary", "through")]


def test_how_long_a_job_has_run_is_known_by_the_clock_it_was_given() -> None:
    now = [100.0]
    background, gate = Background(lambda: now[0]), Gate()
    assert background.running("notes") is None
    background.start("notes", gate)
    now[0] = 161.5
    assert background.running("notes") == 61.5
    gate.let.set()
    assert background.wait("notes", PATIENCE)
    assert background.running("notes") is None
    (one,) = background.drain()
    assert one.seconds == 61.5
    assert background.close(PATIENCE) == []


def test_waiting_ends_with_its_time_or_with_the_job(background: Background) -> None:
    gate = Gate()
    background.start("notes", gate)
    assert not background.wait("notes", 0.0)
    gate.let.set()
    assert background.wait("notes", PATIENCE)
    assert background.wait("never started", 0.0)


def test_a_full_inbox_starts_nothing_and_loses_nothing(background: Background) -> None:
    for number in range(MOST):
        assert background.start(f"job{number}", lambda abort: "done")
        assert background.wait(f"job{number}", PATIENCE)
    assert not background.start("one too many", lambda abort: "done")
    assert len(background.drain()) == MOST
    assert background.start("now there is room", lambda abort: "done")


def test_an_abort_reaches_every_job_and_nothing_starts_after_it(background: Background) -> None:
    gates = [Gate(), Gate()]
    for number, gate in enumerate(gates):
        background.start(f"job{number}", gate)
    background.abort()
    assert background.close(PATIENCE) == []
    assert [gate.told for gate in gates] == [True, True]
    assert sorted(type(one.error).__name__ for one in background.drain()) == ["InterruptedError"] * 2
    assert not background.start("late", lambda abort: None)


def test_one_job_can_be_ended_alone(background: Background) -> None:
    gone, stays = Gate(), Gate()
    background.start("gone", gone)
    background.start("stays", stays)
    background.abort("gone")
    assert background.wait("gone", PATIENCE)
    assert (gone.told, stays.told) == (True, False)
    stays.let.set()
    assert background.wait("stays", PATIENCE)
    assert background.start("another", lambda abort: None)


@pytest.mark.spec("X7")
def test_closing_waits_for_what_runs_and_keeps_what_it_brings() -> None:
    background, gate = Background(), Gate()
    background.start("notes", gate)
    closed: list[list[str]] = []
    closer = threading.Thread(target=lambda: closed.append(background.close(PATIENCE)))
    closer.start()
    assert gate.entered.wait(PATIENCE)
    assert closer.is_alive()
    gate.let.set()
    closer.join(PATIENCE)
    assert closed == [[]]
    assert [one.value for one in background.drain()] == ["through"]


@pytest.mark.spec("X7")
def test_closing_names_what_still_runs_when_its_time_is_up_and_drops_its_result() -> None:
    background, stuck = Background(), threading.Event()
    background.start("stuck", lambda abort: stuck.wait(PATIENCE))
    assert background.close(0.0) == ["stuck"]
    assert background.close(0.0) == []
    stuck.set()
    for thread in threading.enumerate():
        if thread.name == "lamina-stuck":
            thread.join(PATIENCE)
    assert background.drain() == []


def test_a_job_sees_the_context_it_was_started_in(background: Background) -> None:
    tenant: contextvars.ContextVar[str] = contextvars.ContextVar("tenant", default="nobody")
    tenant.set("one")
    background.start("notes", lambda abort: tenant.get())
    assert landed(background, "notes") == [("notes", "one")]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_process_starts_with_nothing_running_even_when_the_lock_was_held(background: Background) -> None:
    gate = Gate()
    background.start("notes", gate)
    assert gate.entered.wait(PATIENCE)
    with background._lock:
        child = os.fork()
        if child == 0:  # pragma: no cover  # the child's lines are not counted
            fine = background.running("notes") is None and background.start("notes", lambda abort: 1)
            fine = fine and background.wait("notes", PATIENCE) and [one.value for one in background.drain()] == [1]
            os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert background.running("notes") is not None
    gate.let.set()


@pytest.mark.spec("B9")
def test_work_nobody_asked_for_needs_leave_and_knows_its_name() -> None:
    asked_about = list[str]()

    def allowed(name: str) -> bool:
        asked_about.append(name)
        return name != "notes"

    background = Background(allowed=allowed)
    assert not background.start("notes", lambda abort: current_job())
    assert background.start("summary", lambda abort: current_job())
    assert landed(background, "summary") == [("summary", "summary")]
    assert asked_about == ["notes", "summary"]
    assert background.start("agent-1", lambda abort: current_job(), asked=True)
    assert landed(background, "agent-1") == [("agent-1", None)]
    assert asked_about == ["notes", "summary"]
    assert current_job() is None
    assert background.close(PATIENCE) == []


@pytest.mark.spec("X7")
def test_a_job_that_has_something_to_put_back_is_given_the_time_when_all_is_closed() -> None:
    background, put_back = Background(), threading.Event()

    def job(abort: threading.Event) -> None:
        abort.wait(PATIENCE)
        put_back.set()

    assert background.start("dream", job, settles=PATIENCE)
    assert background.close(0.0) == ["dream"]
    assert put_back.is_set()
