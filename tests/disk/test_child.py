"""Processes: their output in order, and nobody left when they are stopped."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.clocks import UpWhenReady
from tests.tools.doing import ENVIRON

from lamina.disk import child
from lamina.disk.child import BoundedOutput, ChildEnd, ChildProgram, child_environ, run_child, start_detached

# Nothing here needs as long, even on a busy machine.
LONG = 300.0


def shell(script: str, cwd: Path, **bounds: Any) -> tuple[ChildEnd, bytes]:
    parts = list[bytes]()

    def take(part: bytes) -> bool:
        parts.append(part)
        return True

    end = run_child(
        ChildProgram(["/bin/sh", "-c", script]), cwd=cwd, environ=ENVIRON, timeout=LONG, take=take, leave=True, **bounds
    )
    return end, b"".join(parts)


@pytest.fixture
def up_when_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time is up as soon as the program has made the file `ready`."""
    monkeypatch.setattr(child, "time", UpWhenReady(tmp_path / "ready"))


@pytest.fixture(params=["select", "thread"])
def pipe(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways to read a pipe; the thread is what Windows uses."""
    if request.param == "thread":
        monkeypatch.setattr(child, "_Pipes", child._ThreadPipes)


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
        assert ended == ChildEnd(3, "exit", held=False)
        assert out == b"a\nb\nc\n"

    def test_a_megabyte_arrives_whole(self, tmp_path: Path) -> None:
        _, out = shell("head -c 1000000 /dev/zero", tmp_path)
        assert out == b"\0" * 1_000_000

    def test_something_in_the_background_does_not_hold_the_call(self, tmp_path: Path, witness: Witness) -> None:
        ended, out = shell("(exec 9>alive; exec sleep 60) & echo now; echo $! > pid", tmp_path)
        assert ended == ChildEnd(0, "exit", held=True)
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
        ended = run_child(
            ChildProgram(["/bin/sh", "-c", script]), cwd=tmp_path, environ=ENVIRON, timeout=LONG, abort=abort.is_set, take=take
        )
        assert ended.why == "abort"
        assert witness.all_gone()

    def test_a_program_that_prints_without_end_is_stopped(self, tmp_path: Path, witness: Witness) -> None:
        size = 0

        def take(part: bytes) -> bool:
            nonlocal size
            size += len(part)
            return size < 1_000_000

        argv = ["/bin/sh", "-c", "exec 9>alive; yes"]
        ended = run_child(ChildProgram(argv), cwd=tmp_path, environ=ENVIRON, timeout=LONG, take=take)
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

    monkeypatch.setattr(child, "time", Ticking())
    argv = ["/bin/sh", "-c", "echo $$; until [ -e go ]; do sleep 0.01; done; echo two"]
    ended = run_child(ChildProgram(argv), cwd=tmp_path, environ=ENVIRON, timeout=1e9, take=take)
    assert ended == ChildEnd(0, "exit", held=False)
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

    monkeypatch.setattr(child, "time", Ticking())
    argv = ["/bin/sh", "-c", "echo $$; until [ -e go ]; do sleep 0.01; done; echo two"]
    ended = run_child(ChildProgram(argv), cwd=tmp_path, environ=ENVIRON, timeout=1e9, abort=abort.is_set, take=take)
    assert ended.why == "abort"
    assert b"".join(out[1:]) == b"two\n"


def test_a_program_gets_the_chance_to_tidy_up(tmp_path: Path, up_when_ready: None) -> None:
    script = "trap 'echo tidy; exit 7' TERM; touch ready; while :; do sleep 0.01; done"
    ended, out = shell(script, tmp_path, grace=LONG)
    assert ended == ChildEnd(7, "timeout", held=False)
    assert out.endswith(b"tidy\n")


def test_who_does_not_listen_is_killed(tmp_path: Path, witness: Witness, up_when_ready: None) -> None:
    ended, _ = shell("trap '' TERM; exec 9>alive; touch ready; while :; do sleep 0.05; done", tmp_path, grace=0.2)
    assert ended == ChildEnd(-9, "timeout", held=False)
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
    assert shell("cat; echo end", tmp_path) == (ChildEnd(0, "exit", held=False), b"end\n")


def test_an_error_in_the_caller_leaves_nobody_behind(tmp_path: Path, witness: Witness) -> None:
    def take(part: bytes) -> bool:
        raise ZeroDivisionError

    argv = ["/bin/sh", "-c", "exec 9>alive; echo x; sleep 60"]
    with pytest.raises(ZeroDivisionError):
        run_child(ChildProgram(argv), cwd=tmp_path, environ=ENVIRON, timeout=LONG, take=take)
    assert witness.all_gone()


def test_a_program_that_is_not_there_is_an_error_of_the_systems(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        run_child(ChildProgram(["/no/such"]), cwd=tmp_path, environ=ENVIRON, timeout=LONG, take=lambda _: True)


def run(*programs: ChildProgram, cwd: Path, **bounds: Any) -> tuple[ChildEnd, bytes, bytes]:
    output, errors = BoundedOutput(1_000), BoundedOutput(1_000)
    bounds = {"environ": ENVIRON, "timeout": LONG, **bounds}
    end = run_child(*programs, cwd=cwd, take=output.take, take_errors=errors.take, **bounds)
    return end, bytes(output.data), bytes(errors.data)


@pytest.mark.usefixtures("pipe")
def test_programs_are_joined_by_pipes_and_errors_come_apart(tmp_path: Path) -> None:
    programs = [
        ChildProgram("cat; echo a >&2", "shown"),
        ChildProgram(["tr", "a-z", "A-Z"]),
        ChildProgram("cat; exit 4", "dropped"),
    ]
    assert run(*programs, cwd=tmp_path, stdin=b"text\n") == (ChildEnd(4, "exit", held=False), b"TEXT\n", b"a\n")


def test_a_program_need_not_read_its_input(tmp_path: Path) -> None:
    assert run(ChildProgram("echo done"), cwd=tmp_path, stdin=b"x" * 1_000_000)[1] == b"done\n"


@pytest.mark.parametrize("grace", [0, 60.0])
def test_what_is_in_the_background_ends_with_the_program(tmp_path: Path, witness: Witness, grace: float) -> None:
    end, output, _ = run(
        ChildProgram("(exec 9>alive; touch ready; exec sleep 60) & echo now; until [ -e ready ]; do :; done"),
        cwd=tmp_path,
        grace=grace,
    )
    assert (end.code, end.why, output) == (0, "exit", b"now\n")
    assert witness.all_gone()


def test_what_ignores_the_end_of_its_program_is_killed(tmp_path: Path, witness: Witness) -> None:
    stays = "(trap '' TERM; exec 9>alive; touch ready; sleep 60) & until [ -e ready ]; do :; done"
    end, _, _ = run(ChildProgram(stays), cwd=tmp_path, grace=0.2)
    assert end == ChildEnd(0, "exit", held=True)
    assert witness.all_gone()


def test_when_a_later_program_cannot_start_the_first_ones_end(tmp_path: Path) -> None:
    processes = list[int]()
    with pytest.raises(FileNotFoundError):
        run(ChildProgram("sleep 60"), ChildProgram(["/no/such"]), cwd=tmp_path, started=processes.append)
    [process] = processes
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_more_output_than_wanted_is_dropped_or_stops_the_program(tmp_path: Path) -> None:
    output = BoundedOutput(3)
    assert [output.take(part) for part in (b"ab", b"cd", b"ef")] == [True, True, True]
    assert (bytes(output.data), output.dropped) == (b"abc", 3)
    assert not BoundedOutput(3, stop=True).take(b"abcd")


def test_a_detached_program_gets_its_input(tmp_path: Path) -> None:
    process = start_detached(["/bin/sh", "-c", "cat > made"], cwd=str(tmp_path), stdin=b"text")
    assert process.wait(LONG) == 0
    assert (tmp_path / "made").read_bytes() == b"text"


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "anthropic_auth_token", "LAMINA_EMBED_KEY"])
def test_a_program_does_not_see_our_keys(name: str) -> None:
    assert child_environ({name: "x", "GITHUB_TOKEN": "y"}) == {"GITHUB_TOKEN": "y"}
    assert child_environ({name: "x"}, frozenset({name})) == {name: "x"}
