"""The settings of the process of the page."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Iterator
from weakref import ReferenceType, ref

import pytest

from lamina.web import tuning
from lamina.web.tuning import COLLECT_AFTER, Garbage
from lamina.web.views_made import ViewsMade

from . import patient

# Each arena of a thread reserves 64 MB of addresses; a stack takes 1.
RESERVED = """
import re, sys, threading
from pathlib import Path
if sys.argv[1] == "tuned":
    from lamina.web.tuning import tune_process
    tune_process()
else:
    import lamina.web.tuning
threading.stack_size(1 << 20)
def size():
    return int(re.search(r"VmSize:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1_024
before, go = size(), threading.Barrier(9)
def work():
    kept = [bytes(1_000) for _ in range(1_000)]
    go.wait()
threads = [threading.Thread(target=work) for _ in range(8)]
for one in threads: one.start()
while go.n_waiting < 8: pass
print(size() - before)
go.wait()
"""


COLLECTED = """
import gc
from lamina.web.tuning import tune_process
tune_process()
before, kept = gc.get_stats()[2]["collections"], [[] for _ in range(3_000_000)]
print(gc.get_stats()[2]["collections"] - before, max(gc.get_threshold()[:2]), gc.isenabled())
"""


def test_a_view_never_waits_for_a_collection_of_all_objects() -> None:
    done = subprocess.run([sys.executable, "-c", COLLECTED], capture_output=True, check=True, text=True)
    assert done.stdout.split() == ["0", str(COLLECT_AFTER), "True"]


class Ring:
    """Garbage that only a collection finds."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def old_garbage() -> Iterator[ReferenceType[Ring]]:
    """Garbage in the generation that only a full collection looks at."""
    was = gc.isenabled()
    gc.disable()
    ring = Ring()
    gc.collect()
    seen = ref(ring)
    del ring
    gc.collect(1)
    assert seen() is not None
    yield seen
    if was:
        gc.enable()


def test_all_garbage_is_collected_once_nobody_clicks(monkeypatch: pytest.MonkeyPatch, old_garbage: ReferenceType[Ring]) -> None:
    views = ViewsMade()
    garbage = Garbage(views)
    garbage.look()
    due = [garbage.is_due]
    assert due == [False], "few objects were made since the last collection"
    monkeypatch.setattr(tuning, "FULL_AFTER", 0)
    monkeypatch.setattr(tuning, "QUIET", 0.05)
    views.change(1)
    garbage.look()
    garbage.look()
    assert garbage.is_due
    time.sleep(0.2)
    assert old_garbage() is not None, "a view is being made"
    views.change(-1)
    patient.wait_for(lambda: old_garbage() is None)
    patient.wait_for(lambda: not garbage.is_due)


def test_a_stopping_server_collects_nothing(monkeypatch: pytest.MonkeyPatch, old_garbage: ReferenceType[Ring]) -> None:
    monkeypatch.setattr(tuning, "FULL_AFTER", 0)
    views = ViewsMade()
    views.change(1)
    garbage = Garbage(views)
    garbage.look()
    views.stopping = lambda: True
    patient.wait_for(lambda: not garbage.is_due)
    assert old_garbage() is not None


def reserved(kind: str) -> int:
    return int(subprocess.run([sys.executable, "-c", RESERVED, kind], capture_output=True, check=True, text=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc, and only glibc has arenas")
def test_all_threads_of_the_page_share_one_arena() -> None:
    plain = reserved("plain")
    if plain < 100:
        pytest.skip("this C library has no arenas")
    assert reserved("tuned") < 60
