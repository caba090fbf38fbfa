"""The settings of the process of the page."""

from __future__ import annotations

import subprocess
import sys

import pytest

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


def reserved(kind: str) -> int:
    return int(subprocess.run([sys.executable, "-c", RESERVED, kind], capture_output=True, check=True, text=True).stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc, and only glibc has arenas")
def test_all_threads_of_the_page_share_one_arena() -> None:
    plain = reserved("plain")
    if plain < 100:
        pytest.skip("this C library has no arenas")
    assert reserved("tuned") < 60
