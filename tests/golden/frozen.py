"""A fixed clock and fixed random numbers, so that two runs give the same ids and the same ages. Only the standard library is replaced.

python -m tests.golden.frozen SEED lamina ARGUMENTS…
"""

from __future__ import annotations

import datetime
import hashlib
import os
import random
import runpy
import sys
import threading

import time_machine

NOW = datetime.datetime(2030, 1, 15, 12, 0, tzinfo=datetime.UTC)
_lock, _drawn, _seed = threading.Lock(), 0, ""


def seed(text: str) -> None:
    """Start the random numbers anew."""
    global _drawn, _seed
    _drawn, _seed = 0, text
    random.seed(text)


def _urandom(size: int) -> bytes:
    global _drawn
    with _lock:
        _drawn += 1
        return hashlib.shake_256(f"{_seed} {_drawn}".encode()).digest(size)


def freeze(now: datetime.datetime = NOW) -> None:
    """Fix the clock and the random numbers for the rest of this process. The clock starts at `now` and runs on."""
    os.urandom = _urandom
    random._urandom = _urandom  # type: ignore[attr-defined]
    time_machine.travel(now, tick=True).start()


if __name__ == "__main__":
    freeze(datetime.datetime.fromisoformat(os.environ.get("GOLDEN_NOW", NOW.isoformat())))
    seed(sys.argv[1])
    sys.argv = sys.argv[2:]
    runpy.run_module("lamina", run_name="__main__", alter_sys=False)
