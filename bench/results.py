"""What layer 1 costs: taking a small result, and spilling a large one, beside a bare copy of the same bytes.

    python bench/results.py [--megabytes 1024] [--runs 5] [--json]

Small results are handed to `arriving` in a session whose transcript is written; the time is CPU microseconds for each, beside the
making of the block itself. Large ones are handed in as bytes, text and an open file, each in a process of its own, so that its peak
of memory is its own; the peak is what came on top of the process with the result in it. All files lie in one temporary directory.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from lamina.core.blocks import tool_result
from lamina.layers.l1_results import step as results
from lamina.session.base import add_results, working
from lamina.session.session import Session

KINDS = ("copy", "bytes", "str", "file")
LINE = b"2031-02-03 04:05:06 INFO worker-7 handled request 12345 in 17 ms\n"


def answer(calls: int) -> dict[str, Any]:
    content = [{"type": "tool_use", "id": f"c{number}", "name": "Grep", "input": {}} for number in range(calls)]
    usage = {"input_tokens": 10, "output_tokens": 5}
    return {"id": "m", "role": "assistant", "model": "m", "content": content, "stop_reason": "tool_use", "usage": usage}


def small(home: Path, size: int, runs: int, number: int = 2_000) -> dict[str, float]:
    """Microseconds for one result of `size` characters."""
    text = (LINE.decode() * (size // len(LINE) + 1))[:size]
    times: dict[str, list[float]] = {"arriving": [], "making the block": []}
    block = tool_result("c0", text)
    with Session("offline", home=home, instructions=False, memory=False) as session:
        session.add_user("go")
        session.before_call()
        session.after_call(answer(1))
        with working(session) as c:
            for _ in range(runs):
                began = time.process_time()
                for _ in range(number):
                    block = tool_result("c0", text)
                middle = time.process_time()
                for _ in range(number):
                    results.arriving(c, [block])
                ended = time.process_time()
                times["making the block"].append((middle - began) / number * 1e6)
                times["arriving"].append((ended - middle) / number * 1e6)
    return {name: statistics.median(values) for name, values in times.items()}


def one_large(kind: str, source: Path, home: Path) -> dict[str, float]:
    """In a process of its own: seconds, and megabytes on top of the result itself."""
    given: Any = None
    match kind:
        case "bytes":
            given = source.read_bytes()
        case "str":
            given = source.read_text()
        case "file":
            given = source.open("rb")
        case _:
            pass  # a bare copy of the file
    with Session("offline", home=home, instructions=False, memory=False) as session:
        session.add_user("go")
        session.before_call()
        session.after_call(answer(1))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began, cpu = time.perf_counter(), time.process_time()
        if kind == "copy":
            shutil.copyfile(source, home / "copy")
        else:
            with working(session) as c:
                add_results(session, [results.hand_in(c, "c0", given)])
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "cpu": cpu, "megabytes": (peak - before) / 1024}


def large(root: Path, megabytes: int, runs: int) -> dict[str, dict[str, float]]:
    source = root / "source.txt"
    block = (LINE * ((1 << 20) // len(LINE) + 1))[: 1 << 20]
    with source.open("wb") as file:
        for _ in range(megabytes):
            file.write(block)
    found: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
    for _ in range(runs):
        for kind in KINDS:  # in turn, so that a slow minute of the machine is shared
            home = root / "home"
            command = [sys.executable, __file__, "--one", kind, str(source), str(home)]
            home.mkdir()
            found[kind].append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
            shutil.rmtree(home)
    return {
        kind: {
            "seconds": min(one["seconds"] for one in all_),
            "cpu": min(one["cpu"] for one in all_),
            "megabytes": max(one["megabytes"] for one in all_),
        }
        for kind, all_ in found.items()
    }


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one_large(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=1_024)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as made:
        sizes = {str(size): small(Path(made) / f"small-{size}", size, options.runs) for size in (0, 300, 9_000, 29_000)}
        big = large(Path(made), options.megabytes, options.runs)
    if options.json:
        print(json.dumps({"small": sizes, "large": big}))
        return
    print(f"{'characters':>12} {'arriving, µs':>14} {'making the block, µs':>22}")
    for size, row in sizes.items():
        print(f"{size:>12} {row['arriving']:>14.1f} {row['making the block']:>22.1f}")
    print(f"\n{options.megabytes:,} MB as   seconds   CPU seconds   MB of memory on top   (best of {options.runs}, most memory)")
    for kind, one in big.items():
        print(f"{kind:>11} {one['seconds']:>9.2f} {one['cpu']:>13.2f} {one['megabytes']:>21.0f}")


if __name__ == "__main__":
    main()
