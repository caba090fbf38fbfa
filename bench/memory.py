"""What memory costs, beside the bare operations on the same disk in the same run, in milliseconds.

    python bench/memory.py [--topics 10000] [--saves 100] [--json]

save      one new memory and one update in a directory of 200, against the same bytes written and synced without any checks
scan      the heads of all topics: the first look (cold: nothing parsed yet), a new process with the cache file, the same process again;
          against listing the directory with the time and size of each file, and reading the first 4 kB of each
open      a directory with 200 memories, against listing it
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from lamina.disk.paths import RootDir
from lamina.memory.directory import DirectoryStore
from lamina.memory.scan import Scanner
from lamina.memory.store import Why
from lamina.memory.topic import Topic, write_topic

ME = Why("user", "bench")
BODY = "The rule in a sentence.\n\n**Why:** a reason that takes a line or two.\n\n**How to apply:** in these cases.\n"


def fill(directory: Path, count: int) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        topic = Topic(f"t{number}.md", f"t{number}", f"What is known about subject {number}", "project", BODY)
        path = directory / topic.file
        path.write_text(write_topic(topic))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def timed(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000


def median(act: Callable[[int], object], runs: int) -> float:
    return statistics.median(timed(partial(act, number)) for number in range(runs))


def bare_replace(directory: Path, name: str, data: bytes) -> None:
    temp = directory / ".bare.tmp"
    fd = os.open(temp, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    os.write(fd, data)
    os.fsync(fd)
    os.close(fd)
    os.rename(temp, directory / name)
    fd = os.open(directory, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def bare_save(directory: Path, number: int, index: bytes) -> None:
    fd = os.open(directory / "journal", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    os.write(fd, b"x" * 600 + b"\n")
    os.fsync(fd)
    os.close(fd)
    bare_replace(directory, f"{number}.md", BODY.encode())
    bare_replace(directory, "MEMORY.md", index)


def bench_save(base: Path, saves: int) -> dict[str, float]:
    fill(base / "memory", 200)
    (base / "bare").mkdir()
    with DirectoryStore.open(base / "memory") as store:
        index = store.index().encode()

        def save(number: int, body: str) -> None:
            store.save(f"new-{number}", type="project", description=f"new number {number}", body=body, why=ME)

        save(-1, BODY)
        new, update, bare = [], [], []
        # Taken in turns, so that all three see the same disk.
        for number in range(saves):
            bare.append(timed(partial(bare_save, base / "bare", number, index)))
            new.append(timed(partial(save, number, BODY)))
            update.append(timed(partial(save, number, BODY + "more")))
        return {
            "save, new": statistics.median(new),
            "save, update": statistics.median(update),
            "save, bare": statistics.median(bare),
        }


def bench_scan(base: Path, topics: int) -> dict[str, float]:
    memory = base / "many"
    fill(memory, topics)

    def bare_list() -> None:
        with os.scandir(memory) as entries:
            found = [entry.stat(follow_symlinks=False) for entry in entries]
        assert len(found) >= topics

    def bare_read() -> None:
        for name in os.listdir(memory):
            if name.endswith(".md"):
                fd = os.open(memory / name, os.O_RDONLY)
                os.read(fd, 4_096)
                os.close(fd)

    bare_list()
    with RootDir.open(memory) as root:
        first = Scanner(root)
        cold = timed(first.headers)
        return {
            "scan, cold": cold,
            "scan, cold, bare read": statistics.median(timed(bare_read) for _ in range(3)),
            "scan, next process": statistics.median(timed(Scanner(root).headers) for _ in range(7)),
            "scan, again": statistics.median(timed(first.headers) for _ in range(7)),
            "scan, bare listing": statistics.median(timed(bare_list) for _ in range(7)),
        }


def bench_open(base: Path) -> dict[str, float]:
    memory = base / "two hundred"
    with DirectoryStore.open(memory, durability="process") as store:
        for number in range(200):
            store.save(f"t{number}", type="project", description=f"subject {number}", body=BODY, why=ME)

    def opened(_: int) -> None:
        with DirectoryStore.open(memory) as store:
            store.index()
            store.headers()

    bare = median(lambda _: [entry.stat() for entry in os.scandir(memory)], 20)
    return {"open, 200 memories": median(opened, 20), "open, bare listing": bare}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--saves", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        base = Path(made)
        found = bench_save(base, options.saves) | bench_scan(base, options.topics) | bench_open(base)
    over = {
        "save, new, over bare": found["save, new"] - found["save, bare"],
        "save, update, over bare": found["save, update"] - found["save, bare"],
    }
    ratios = {
        "scan, cold / bare read": found["scan, cold"] / found["scan, cold, bare read"],
        "scan, next process / listing": found["scan, next process"] / found["scan, bare listing"],
        "scan, again / listing": found["scan, again"] / found["scan, bare listing"],
        "open / listing": found["open, 200 memories"] / found["open, bare listing"],
    }
    if options.json:
        print(json.dumps(found | over | ratios))
        return
    for name, value in (found | over).items():
        print(f"{name:30} {value:9.2f} ms")
    for name, value in ratios.items():
        print(f"{name:30} {value:9.2f} times")


if __name__ == "__main__":
    main()
