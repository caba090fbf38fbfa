"""Real processes for tests: forked from the warm test process, started together, each one's failure shown."""

from __future__ import annotations

import os
import traceback
import warnings
from collections.abc import Callable
from functools import partial

import pytest

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def fork() -> int:
    """`os.fork`; newer Pythons warn when the test runner has threads, but the child runs only the code under test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def run_child(action: Callable[[], object]) -> int:
    """Runs `action` in a child and says how it ended: 0, or 1 after an exception, which is printed."""
    if pid := fork():
        return pid
    code = 1
    try:
        action()
        code = 0
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        os._exit(code)


def together(count: int, action: Callable[[int], object]) -> None:
    """Runs `action(0)` … `action(count - 1)` in as many processes, started at one signal, and waits for all of them."""
    ready, go = os.pipe()

    def wait_and_act(number: int) -> None:
        os.close(go)
        os.read(ready, 1)
        action(number)

    pids = [run_child(partial(wait_and_act, number)) for number in range(count)]
    os.close(ready)
    os.close(go)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0] * count
