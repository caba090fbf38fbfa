"""Saving and finding in a large memory, beside the limits it was built for, in CPU milliseconds.

    python bench/recall_size.py [--topics 10000] [--large 100000]

save     a new memory and a change among all, each with its line in the journal, over the same bytes written and synced without any
         checks
search   among all, with their bodies: the next one, one after a save, and the first of a new process, which includes its imports; by
         words, and with word vectors if their package is installed
large    the same by words, among `--large` memories

The index is made before; the time for that is printed by itself. Medians, with the best in brackets. Exits with 1 if a median is over
its limit.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from lamina.core.errors import EncoderUnavailable
from lamina.core.settings import Settings
from lamina.memory.memory import Memory
from lamina.memory.recall.encoders import load_encoders
from lamina.memory.store.directory import DirectoryStore
from lamina.memory.store.history import HISTORY_DIRECTORY
from lamina.memory.store.journal import MemoryChange, make_line
from memory import BODY, ME, SOURCE, Times, bare_save, fill, fill_for_search, in_turns, save

SAVE_LIMIT, SEARCH_LIMIT, START_LIMIT, LARGE_LIMIT = 3.0, 10.0, 150.0, 40.0
RUNS = 31
# About as many lines as a segment of the journal holds.
SEGMENT_LINES = 4_000
Vectors = Literal["none", "static"]
FIRST = """
import sys
from lamina.core.settings import Settings
from lamina.memory.memory import Memory
with Memory.open(path=sys.argv[1], settings=Settings(durability="process", recall_vectors=sys.argv[2])) as memory:
    memory.recall(sys.argv[3])
"""


class Row(NamedTuple):
    name: str
    median: float
    best: float
    limit: float | None


def row(name: str, times: Times, limit: float | None, less: Times | None = None) -> Row:
    median, best = (less.cpu_median, less.cpu_best) if less is not None else (0.0, 0.0)
    return Row(name, times.cpu_median - median, times.cpu_best - best, limit)


def write_journal(directory: Path) -> None:
    """Write the journal of a directory whose memories were all saved once, oldest first."""
    (directory / HISTORY_DIRECTORY).mkdir(mode=0o700)
    files = sorted(directory.glob("t*.md"), key=lambda path: path.stat().st_mtime)
    changes = (MemoryChange(path.name, path.stem, "save", None, path.read_bytes(), ME, path.stem) for path in files)
    rows = [msgspec.json.encode(make_line(change, 0.0)) + b"\n" for change in changes]
    for number, at in enumerate(range(0, len(rows), SEGMENT_LINES), 1):
        path = directory / HISTORY_DIRECTORY / f"journal-{number:06}.jsonl"
        path.touch(mode=0o600)
        path.write_bytes(b"".join(rows[at : at + SEGMENT_LINES]))


def bench_save(base: Path, topics: int) -> Iterator[Row]:
    fill(base / "saved", topics)
    write_journal(base / "saved")
    (base / "bare").mkdir()
    with DirectoryStore.open(base / "saved") as store:
        save(store, BODY, -1)
        found = in_turns(
            RUNS,
            bare=partial(bare_save, base / "bare", store.index().encode()),
            new=partial(save, store, BODY),
            changed=partial(save, store, BODY + "more"),
        )
    yield row("saving a new memory, over the bare writes", found["new"], SAVE_LIMIT, found["bare"])
    yield row("saving a change, over the bare writes", found["changed"], SAVE_LIMIT, found["bare"])


def bench_search(
    path: Path, questions: list[tuple[str, str]], vectors: Vectors, limit: float, first: float | None
) -> Iterator[Row]:
    settings, by = Settings(durability="process", recall_vectors=vectors), "words" if vectors == "none" else "words and vectors"
    with Memory.open(path=path, settings=settings) as memory:
        began = time.process_time()
        memory.recall(questions[0][0])
        yield Row(f"the index, {by}", 1000 * (time.process_time() - began), 0.0, None)

        def ask(number: int) -> None:
            memory.recall(questions[number % len(questions)][0])

        ask(0)
        yield row(f"a search, {by}", in_turns(RUNS, ask=ask)["ask"], limit)

        def change(number: int) -> None:
            memory.save(f"{vectors} {number}", type="project", description="d", body="b")

        yield row(f"a search after a save, {by}", in_turns(RUNS, change=change, ask=ask)["ask"], limit)
    yield row(f"the first search of a process, {by}", in_turns(7, first=partial(start, path, vectors, questions))["first"], first)


def start(path: Path, vectors: Vectors, questions: list[tuple[str, str]], number: int) -> None:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([SOURCE, *sys.path[1:]])}
    # Byte-code is there, as where a package is installed.
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    environ["PYTHONPYCACHEPREFIX"] = str(path.parent / "byte-code")
    asked = questions[number % len(questions)][0]
    subprocess.run([sys.executable, "-c", FIRST, str(path), vectors, asked], check=True, env=environ)


def kinds() -> list[Vectors]:
    try:
        load_encoders(Settings(recall_vectors="static"))
    except EncoderUnavailable as error:
        print(f"(vectors are left out. {error})")
        return ["none"]
    return ["none", "static"]


def table(title: str, rows: Iterator[Row]) -> bool:
    """Print the rows as they come. Return whether all are within their limits."""
    print(f"\n| {title} | CPU ms | limit |\n|---|---|---|")
    good = True
    for name, median, best, limit in rows:
        good = good and (limit is None or median <= limit)
        print(f"| {name} | {median:,.1f}{f' ({best:.1f})' if best else ''} | {limit or ''} |", flush=True)
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--large", type=int, default=100_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        base, good = Path(made), True
        good &= table(f"{asked.topics:,} memories", bench_save(base, asked.topics))
        questions = fill_for_search(base / "searched", asked.topics)
        for kind in kinds():
            # Vectors need numpy and their weights, which takes longer than everything else.
            rows = bench_search(base / "searched", questions, kind, SEARCH_LIMIT, START_LIMIT if kind == "none" else None)
            good &= table(f"{asked.topics:,} memories", rows)
        if asked.large:
            questions = fill_for_search(base / "large", asked.large)
            good &= table(f"{asked.large:,} memories", bench_search(base / "large", questions, "none", LARGE_LIMIT, None))
    sys.exit(not good)


if __name__ == "__main__":
    main()
