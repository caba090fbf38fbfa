"""Processes: their output in order, and nobody left when they are stopped."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clocks import UpWhenReady

from lamina.tools import process
from lamina.tools.process import ProcessEnd, run_process

from .doing import ENVIRON

# Nothing here needs as long, even on a busy machine.
LONG = 300.0


def shell(script: str, cwd: Path, *, abort: threading.Event | None = None) -> tuple[ProcessEnd, bytes]:
    parts = list[bytes]()

    def take(part: bytes) -> bool:
        parts.append(part)
        return True

    ended = run_process(
        ["/bin/sh", "-c", script], cwd=cwd, environ=ENVIRON, timeout=LONG, abort=abort or threading.Event(), take=take
    )
    return ended, b"".join(parts)


@pytest.fixture
def up_when_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is up as soon as the program has made the file `ready`."""
    monkeypatch.setattr(process, "time", UpWhenReady(tmp_path / "ready"))


@pytest.fixture(params=["select", "thread"])
def pipe(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to read a pipe; the thread is what Windows uses."""
    if request.param == "thread":
        monkeypatch.setattr(process, "_SelectPipe", process._ThreadPipe)


class Witness:
    """A named pipe: the kernel says when the last process that had it open for writing is gone."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def all_gone(self) -> bool:
        """Waits for it, because a killed process needs a moment to die; False also when nobody ever was there."""
        poll = select.poll()
        poll.register(self.fd, 0)
        return bool(poll.poll(120_000))


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[Witness]:
    made = Witness(tmp_path / "alive")
    yield made
    os.close(made.fd)


@pytest.mark.usefixtures("pipe")
class TestEitherPipe:
    def test_output_and_errors_come_in_order_with_the_exit_code(self, tmp_path: Path) -> None:
        ended, out = shell("echo a; echo b >&2; echo c; exit 3", tmp_path)
        assert ended == ProcessEnd(3, "exit", held=False)
        assert out == b"a\nb\nc\n"

    def test_a_megabyte_arrives_whole(self, tmp_path: Path) -> None:
        _, out = shell("head -c 1000000 /dev/zero", tmp_path)
        assert out == b"\0" * 1_000_000

    def test_something_in_the_background_does_not_hold_the_call(self, tmp_path: Path, witness: Witness) -> None:
        ended, out = shell("(exec 9>alive; exec sleep 60) & echo now; echo $! > pid", tmp_path)
        assert ended == ProcessEnd(0, "exit", held=True)
        assert out == b"now\n"
        os.kill(int((tmp_path / "pid").read_text()), 9)
        assert witness.all_gone()

    def test_a_time_out_ends_the_whole_group(self, tmp_path: Path, witness: Witness, up_when_ready: None) -> None:
        ended, out = shell("exec 9>alive; (sleep 60; echo no) & echo started; touch ready; sleep 60", tmp_path)
        assert ended.why == "timeout"
        assert out == b"started\n"
        assert witness.all_gone()

    def test_an_abort_ends_the_whole_group(self, tmp_path: Path, witness: Witness) -> None:
        abort = threading.Event()

        def take(part: bytes) -> bool:
            abort.set()
            return True

        script = "exec 9>alive; sleep 60 & echo ready; wait"
        ended = run_process(["/bin/sh", "-c", script], cwd=tmp_path, environ=ENVIRON, timeout=LONG, abort=abort, take=take)
        assert ended.why == "abort"
        assert witness.all_gone()

    def test_a_program_that_prints_without_end_is_stopped(self, tmp_path: Path, witness: Witness) -> None:
        size = 0

        def take(part: bytes) -> bool:
            nonlocal size
            size += len(part)
            return size < 1_000_000

        argv = ["/bin/sh", "-c", "exec 9>alive; yes"]
        ended = run_process(argv, cwd=tmp_path, environ=ENVIRON, timeout=LONG, abort=threading.Event(), take=take)
        assert ended.why == "full"
        assert size < 2_000_000
        assert witness.all_gone()


class Ticking:
    """Stands in for the module `time`: a second passes from one reading to the next, as on a machine that is very busy."""

    def __init__(self) -> None:
        self._now = 0.0

    def monotonic(self) -> float:
        self._now += 1.0
        return self._now


def test_what_a_program_printed_last_is_read_however_late_its_end_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = list[bytes]()

    def take(part: bytes) -> bool:
        out.append(part)
        if len(out) == 1:
            (tmp_path / "go").touch()
            os.waitid(os.P_PID, int(out[0]), os.WEXITED | os.WNOWAIT)
        return True

    monkeypatch.setattr(process, "time", Ticking())
    argv = ["/bin/sh", "-c", "echo $$; until [ -e go ]; do sleep 0.01; done; echo two"]
    ended = run_process(argv, cwd=tmp_path, environ=ENVIRON, timeout=1e9, abort=threading.Event(), take=take)
    assert ended == ProcessEnd(0, "exit", held=False)
    assert b"".join(out[1:]) == b"two\n"


def test_what_a_program_printed_before_it_was_stopped_is_read_however_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = list[bytes]()
    abort = threading.Event()

    def take(part: bytes) -> bool:
        out.append(part)
        if not abort.is_set():
            abort.set()
            (tmp_path / "go").touch()
            os.waitid(os.P_PID, int(out[0]), os.WEXITED | os.WNOWAIT)
        return True

    monkeypatch.setattr(process, "time", Ticking())
    argv = ["/bin/sh", "-c", "echo $$; until [ -e go ]; do sleep 0.01; done; echo two"]
    ended = run_process(argv, cwd=tmp_path, environ=ENVIRON, timeout=1e9, abort=abort, take=take)
    assert ended.why == "abort"
    assert b"".join(out[1:]) == b"two\n"


def test_a_program_gets_the_chance_to_tidy_up(tmp_path: Path, up_when_ready: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "GRACE", LONG)
    script = "trap 'echo tidy; exit 7' TERM; touch ready; while :; do sleep 0.01; done"
    ended, out = shell(script, tmp_path)
    assert ended == ProcessEnd(7, "timeout", held=False)
    assert out.endswith(b"tidy\n")


def test_who_does_not_listen_is_killed(
    tmp_path: Path, witness: Witness, up_when_ready: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "GRACE", 0.2)
    ended, _ = shell("trap '' TERM; exec 9>alive; touch ready; while :; do sleep 0.05; done", tmp_path)
    assert ended == ProcessEnd(-9, "timeout", held=False)
    assert witness.all_gone()


def test_a_child_that_does_not_listen_is_killed_when_its_parent_has_gone(
    tmp_path: Path, witness: Witness, up_when_ready: None
) -> None:
    ended, _ = shell("exec 9>alive; (trap '' TERM; touch ready; sleep 60) & sleep 60", tmp_path)
    assert ended.why == "timeout"
    assert witness.all_gone()


def test_a_program_that_closes_its_output_is_still_waited_for(tmp_path: Path) -> None:
    ended, _ = shell("exec >&- 2>&-; sleep 0.2; touch done", tmp_path)
    assert ended.why == "exit"
    assert (tmp_path / "done").exists()


def test_a_program_that_closes_its_output_and_hangs_is_stopped(tmp_path: Path, witness: Witness, up_when_ready: None) -> None:
    ended, _ = shell("exec 9>alive >&- 2>&-; touch ready; sleep 60", tmp_path)
    assert ended.why == "timeout"
    assert witness.all_gone()


def test_standard_input_is_empty(tmp_path: Path) -> None:
    assert shell("cat; echo end", tmp_path) == (ProcessEnd(0, "exit", held=False), b"end\n")


def test_an_error_in_the_caller_leaves_nobody_behind(tmp_path: Path, witness: Witness) -> None:
    def take(part: bytes) -> bool:
        raise ZeroDivisionError

    argv = ["/bin/sh", "-c", "exec 9>alive; echo x; sleep 60"]
    with pytest.raises(ZeroDivisionError):
        run_process(argv, cwd=tmp_path, environ=ENVIRON, timeout=LONG, abort=threading.Event(), take=take)
    assert witness.all_gone()


def test_a_program_that_is_not_there_is_an_error_of_the_systems(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run_process(["/no/such"], cwd=tmp_path, environ=ENVIRON, timeout=LONG, abort=threading.Event(), take=lambda _: True)
