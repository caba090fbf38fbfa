"""Stops a writer at every one of its crash points and hands over what is left, one run at a time.

    for run in every(tmp_path, prepare, act, Kill()):
        ...                      # look at run.directory; run.said holds what `act` acknowledged before it was stopped

`prepare(directory)` sets up a fresh directory, `act(directory, say)` does the writing in a forked child; `say("…")` reports an
acknowledgement to the parent at once. The k-th run meets its fault at the k-th point, until a run ends without meeting one: that
last run is handed over too, with `point` empty, as proof that the action works. `Kill(torn=True)` meets every write and one in three
of the other calls, where it is `Kill()` again.

A test that uses the fixture `crash_points` runs twice: by default at a few points from the first to the last, and at every point
in the exhaustive run (`pytest -m exhaustive`).

Faults: `Kill()` ends the process with SIGKILL before the call; `Kill(torn=True)` lets a write through by half first; `Fail(code)`
makes the call fail once, `Fail(code, forever=True)` it and all later ones; `Short()` cuts a write to its half, once.
"""

from __future__ import annotations

import json
import os
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, assert_never

from lamina.core.errors import LaminaError
from lamina.disk import crash_points as crash

from ..processes import fork

Say = Callable[[str], None]
Prepare = Callable[[Path], object]
Act = Callable[[Path, Say], object]

# No writer has nearly as many; a run that never ends by itself is a loop.
MOST_POINTS = 500
# The default run stops a writer at its first point, its last one and this many between them.
BETWEEN = 0


class Kill(NamedTuple):
    torn: bool = False


class Fail(NamedTuple):
    code: int
    forever: bool = False


class Short(NamedTuple):
    pass


Fault = Kill | Fail | Short


class Extent:
    """Whether every point is tried; the fixture `crash_points` says so for each test."""

    every = True


class Run(NamedTuple):
    directory: Path
    number: int  # of the point that met the fault, from 1
    point: str  # its name; empty when the action ended before
    ended: Literal["killed", "finished", "raised"]
    error: str  # the name of the error's class, if it raised one
    said: tuple[str, ...]


def every(base: Path, prepare: Prepare, act: Act, fault: Fault, *, step: int = 1, start: int = 1) -> Iterator[Run]:
    """`step` leaves points out, where the same points are tried with another fault and each try is dear."""
    numbers: Iterable[int] = range(start, MOST_POINTS, step)
    if fault == Kill(torn=True) or not Extent.every:
        sizes = _sizes(base, prepare, act)
        end = len(sizes) + 1
        inside = [
            number for number in numbers if number < end and (fault != Kill(torn=True) or sizes[number - 1] or number % 3 == 1)
        ]
        numbers = [*(inside if Extent.every else _few(inside)), *range(end, MOST_POINTS)]
    for number in numbers:
        directory = base / f"{type(fault).__name__}-{number}"
        directory.mkdir()
        prepare(directory)
        run = _one(directory, act, fault, number)
        yield run
        if not run.point:
            return
    raise AssertionError(f"still a point after {MOST_POINTS}")


def _few(numbers: Sequence[int]) -> list[int]:
    """The first, the last and some between them, evenly spread."""
    parts = BETWEEN + 1
    return sorted({numbers[(len(numbers) - 1) * part // parts] for part in range(parts + 1)}) if numbers else []


def _sizes(base: Path, prepare: Prepare, act: Act) -> list[int]:
    """How much each point of an undisturbed action writes."""
    directory = base / "undisturbed"
    directory.mkdir()
    prepare(directory)
    told, status = _child_of(directory, act, lambda tell: lambda _, size: tell("size", str(size)))
    assert os.waitstatus_to_exitcode(status) == 0
    return [int(text) for kind, text in told if kind == "size"]


def points(base: Path, act: Act) -> list[str]:
    """The names of all points of one undisturbed action, in order."""
    seen = list[str]()

    def watch(name: str, _: int) -> None:
        seen.append(name)

    with crash.watched(watch):
        act(base, lambda _: None)
    return seen


def _one(directory: Path, act: Act, fault: Fault, number: int) -> Run:
    told, status = _child_of(directory, act, lambda tell: _watcher(fault, number, lambda name: tell("point", name)))
    said = tuple(text for kind, text in told if kind == "said")
    point = "".join(text for kind, text in told if kind == "point")
    error = "".join(text for kind, text in told if kind == "raised")
    killed = os.WIFSIGNALED(status)
    assert killed or os.waitstatus_to_exitcode(status) == 0
    return Run(directory, number, point, "killed" if killed else "raised" if error else "finished", error, said)


Tell = Callable[[str, str], None]


def _child_of(directory: Path, act: Act, watching: Callable[[Tell], crash.Watcher]) -> tuple[list[tuple[str, str]], int]:
    """Run the action in a forked child and return its reports, in order, and how it ended."""
    reader, writer = os.pipe()
    pid = fork()
    if pid == 0:
        os.close(reader)
        _child(directory, act, watching, writer)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        told = [(kind, text) for kind, text in map(json.loads, pipe)]
    status = os.waitpid(pid, 0)[1]
    if bug := "".join(text for kind, text in told if kind == "bug"):
        raise AssertionError(f"at {[text for kind, text in told if kind == 'point']}:\n{bug}")
    return told, status


def _child(directory: Path, act: Act, watching: Callable[[Tell], crash.Watcher], writer: int) -> None:
    def tell(kind: str, text: str) -> None:
        os.write(writer, (json.dumps([kind, text]) + "\n").encode())

    try:
        with crash.watched(watching(tell)):
            act(directory, lambda text: tell("said", text))
    except LaminaError as error:
        tell("raised", type(error).__name__)
    except BaseException:
        tell("bug", traceback.format_exc())
        raise
    finally:
        os._exit(0)


def _watcher(fault: Fault, number: int, met: Callable[[str], None]) -> crash.Watcher:
    count = 0

    def watch(name: str, size: int) -> int | None:
        nonlocal count
        count += 1
        if count == number:
            met(name)
        match fault:
            case Kill(torn):
                if count == number and torn and size:
                    return size // 2
                if count >= number:
                    os.kill(os.getpid(), signal.SIGKILL)
            case Fail(code, forever):
                if count == number or (forever and count > number):
                    raise OSError(code, os.strerror(code))
            case Short():
                if count == number and size:
                    return size // 2
            case _:
                assert_never(fault)
        return None

    return watch
