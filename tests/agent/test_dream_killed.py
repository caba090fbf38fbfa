"""kill -9 in the middle of a dream: the next session recovers, notifies the user, and dreams at once."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lamina.agent.agent import Agent
from lamina.agent.manual_dream import run_by_hand
from lamina.core.settings import Settings
from lamina.disk.crash_points import watched

from .agent_helpers import PATIENCE
from .dream_helpers import QUIET, Dreamer, kept, last, remembered

# This dream has read and written, and then waits for an answer that never comes.
DREAMER = """
import sys, threading
from lamina import Agent
from lamina.core.settings import Settings
from lamina.layers.l6_dream.offline import answer
from lamina.providers.offline import DEFAULT_TABLE, OfflineProvider

def hang(request):
    said = answer(request)
    if said[0]["type"] == "text":
        print("there", flush=True)
        threading.Event().wait()
    return said

provider = OfflineProvider({**DEFAULT_TABLE, "dream": hang})
settings = Settings(extraction=False, session_notes=False)
with Agent.open(provider, cwd=sys.argv[1], session_id="killed", mode="all", interactive=True, settings=settings) as agent:
    agent.run("Hello.")
"""
HOLDER = """
import os, sys
from lamina.disk.locks.dream_lock import DreamLock
from lamina.disk.trees.rootdir import RootDir

lock = DreamLock(RootDir.open(sys.argv[1]))
lock.acquire(lock.last_ns())
os._exit(9)
"""


@pytest.mark.spec("D2", "Z5", "Z12")
def test_a_dream_whose_process_was_killed_never_was(opened: Callable[..., Agent], project: Path) -> None:
    memory = remembered(project)
    before = last(memory)
    command = [sys.executable, "-c", DREAMER, str(project)]
    victim = subprocess.Popen(command, env=dict(os.environ), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        assert victim.stdout is not None
        assert victim.stdout.readline() == b"there\n"
    finally:
        victim.kill()
        victim.communicate(timeout=PATIENCE)
    assert last(memory) != before
    assert list((memory / ".dreams").glob("*/work/importer-rows.md"))
    one = Dreamer(opened, provider="offline")
    [told] = one.notices
    [record] = kept(memory)
    assert told == f"Dream {record.id} was stopped before it changed anything. Its copy was removed."
    assert record.status == "failed"
    assert last(memory) == before, "it does not count"
    assert not list((memory / ".dreams").glob("*/work"))
    assert (memory / "importer.md").exists()
    one.run()
    one.settle()
    assert [record.status for record in kept(memory)] == ["completed", "failed"]
    assert not (memory / "importer.md").exists()


@pytest.mark.spec("D2", "Z12")
def test_one_that_died_with_nothing_but_the_lock_is_put_right_and_said(opened: Callable[..., Agent], project: Path) -> None:
    memory = remembered(project)
    before = last(memory)
    subprocess.run([sys.executable, "-c", HOLDER, str(memory)], env=dict(os.environ), timeout=PATIENCE)
    assert last(memory) != before
    one = Dreamer(opened, provider="offline")
    assert one.notices == ["A dream was stopped before it began. Nothing was changed."]
    assert last(memory) == before
    assert Dreamer(opened, provider="offline").notices == []


@pytest.mark.spec("B4", "Z12")
def test_what_a_full_disk_left_half_changed_is_put_back_by_the_next_session(opened: Callable[..., Agent], project: Path) -> None:
    memory = remembered(project)
    before = {path.name: path.read_bytes() for path in memory.glob("*.md")}

    def full(name: str, size: int) -> None:
        if size and not (memory / "importer.md").exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with watched(full):
        outcome = run_by_hand("offline", cwd=project, settings=Settings(**QUIET))
    assert outcome.record is not None
    assert (outcome.record.status, outcome.record.phase) == ("failed", "applying")
    assert "full" in outcome.record.why
    assert not (memory / "importer.md").exists()
    [told] = Dreamer(opened, provider="offline").notices
    assert told.startswith(f"Dream {outcome.record.id} was stopped while changing memories")
    assert {path.name: path.read_bytes() for path in memory.glob("*.md")} == before
