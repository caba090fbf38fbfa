"""What the end of a turn pays for knowing whether a dream is due (D1): time, and calls to the system, gate by gate.

    python bench/dream_gate.py [--turns 2000] [--transcripts 1000]

A real agent without a provider, a memory on disk, and the function that `end_turn` calls. Calls are those of the module `posix`.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

from lamina.agent.agent import Agent
from lamina.core.settings import Settings
from lamina.disk.files import DREAM_LOCK as LOCK
from lamina.disk.paths.project import slug
from lamina.layers.l6_dream.trigger import DreamState, begin_dream
from lamina.memory.memory import Memory
from lamina.session.base import working


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--turns", type=int, default=2_000)
    options.add_argument("--transcripts", type=int, default=1_000)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home, project = Path(scratch) / "home", Path(scratch) / "project"
        project.mkdir()
        print(f"{'the gate that stops':<42}{'median us':>10}{'99% us':>10}  calls to the system")
        for name, days, settings in (
            ("off", 0, Settings(dream=False, extraction=False)),
            ("time: the last one was just now", 0, Settings(extraction=False)),
            ("throttle: sessions were counted just now", 2, Settings(extraction=False, dream_sessions=10_000)),
        ):
            _measure(name, home, project, days, settings, turns=given.turns)
        _transcripts(home, project, given.transcripts)
        counting = Settings(extraction=False, dream_sessions=10_000, dream_scan_minutes=0.0)
        _measure(f"sessions: {given.transcripts:,} transcripts counted", home, project, 2, counting, turns=20)


def _transcripts(home: Path, project: Path, count: int) -> None:
    directory = home / "projects" / slug(project.resolve())
    for number in range(count):
        (directory / f"old-{number}.jsonl").write_text("{}\n")


def _measure(name: str, home: Path, project: Path, days: int, settings: Settings, *, turns: int) -> None:
    with Memory.open(project, home=home, settings=settings) as memory:
        memory.save("printer", type="project", description="Its name", body="Ada.\n")
        lock = memory.path / LOCK
    lock.touch(mode=0o600)
    then = time.time() - days * 86_400
    os.utime(lock, (then, then))
    with (
        Agent.open("offline", cwd=project, home=home, settings=settings, interactive=True) as agent,
        working(agent.session) as c,
    ):
        begin_dream(c)  # what is loaded and said once is behind us
        took = []
        for _ in range(turns):
            began = time.perf_counter()
            begin_dream(c)
            took.append((time.perf_counter() - began) * 1e6)
        calls = _calls(lambda: begin_dream(c))
        assert c.layer_state(DreamState).failures == 0
    took.sort()
    said = ", ".join(f"{count} {call}" for call, count in calls.items()) or "none"
    print(f"{name:<42}{took[len(took) // 2]:>10.1f}{took[len(took) * 99 // 100]:>10.1f}  {said}")


def _calls(act: Any) -> Counter[str]:
    found: Counter[str] = Counter()

    def seen(_: FrameType, event: str, what: Any) -> None:
        if event == "c_call" and getattr(what, "__module__", "") in ("posix", "nt"):
            found[what.__name__] += 1

    sys.setprofile(seen)
    try:
        act()
    finally:
        sys.setprofile(None)
    for harmless in ("fspath", "getpid"):
        del found[harmless]
    return found


if __name__ == "__main__":
    main()
