"""What memory costs, beside the bare operations on the same disk in the same run, in milliseconds.

    python bench/memory.py [--topics 10000] [--saves 100] [--json]

save      one new memory and one update in a directory of 200, against the same bytes written and synced without any checks
scan      the heads of all topics: the first look (cold: nothing parsed yet), a new process with the cache file, the same process again;
          against listing the directory with the time and size of each file, and reading the first 4 kB of each
open      a directory with 200 memories, against listing it
search    a question over all topics with their bodies: the first of a process (nothing read yet), the next one, and one after a save,
          each with its look at every file for changes. Without files: our corpus made and asked, and only asked, against SQLite's
          FTS5 on the same texts. How many of the expected memories come first, in either.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from lamina.core.settings import Settings
from lamina.disk.paths import RootDir
from lamina.memory.directory import DirectoryStore
from lamina.memory.memory import Memory
from lamina.memory.rank import Corpus, Document
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


def words_of(random: Random, vocabulary: list[str], count: int) -> str:
    """Some words are everywhere and most are rare, as in prose."""
    ranks = (int(random.paretovariate(0.5)) - 1 for _ in range(count))
    return " ".join(vocabulary[rank if rank < len(vocabulary) else random.randrange(len(vocabulary))] for rank in ranks)


def fill_for_search(directory: Path, count: int) -> list[tuple[str, str]]:
    """Topics in made-up words, and questions: a few rare words of one topic, and its file."""
    random = Random(1)
    syllables = [one + two for one in "bdfgklmnprstvz" for two in "aeiou"]
    vocabulary = list(dict.fromkeys("".join(random.choices(syllables, k=random.randint(2, 4))) for _ in range(20_000)))
    directory.mkdir(parents=True)
    questions = []
    for number in range(count):
        name, description, body = (words_of(random, vocabulary, size) for size in (3, 12, 60))
        topic = Topic(f"t{number}.md", name, description, "project", body + "\n")
        (directory / topic.file).write_text(write_topic(topic))
        if number % (count // 50) == 0:
            rare = sorted(set(f"{description} {body}".split()), key=vocabulary.index)[-4:]
            questions.append((" ".join(rare), topic.file))
    return questions


def bench_search(base: Path, topics: int) -> dict[str, float]:
    memory_path = base / "searched"
    questions = fill_for_search(memory_path, topics)
    settings = Settings(durability="process")
    with Memory.open(path=memory_path, settings=settings) as memory:
        memory.headers()  # writes the cache of heads, as any earlier session did

    def ask(memory: Memory, number: int) -> list[str]:
        return [found.topic.file for found in memory.recall(questions[number % len(questions)][0])]

    def first(number: int) -> None:
        with Memory.open(path=memory_path, settings=settings) as memory:
            ask(memory, number)

    with Memory.open(path=memory_path, settings=settings) as memory:
        ask(memory, 0)
        next_one = median(lambda number: ask(memory, number), 50)
        hits = sum(file in ask(memory, number)[:1] for number, (_, file) in enumerate(questions))
        after = []
        for number in range(5):
            memory.save(f"new {number}", type="project", description="d", body="b")
            after.append(timed(partial(ask, memory, number)))
    return {
        "search, first question": median(first, 5),
        "search, next question": next_one,
        "search, after a save": statistics.median(after),
        "search, found first of 50": float(hits),
    } | bench_fts5(memory_path, questions)


def bench_fts5(directory: Path, questions: list[tuple[str, str]]) -> dict[str, float]:
    documents = [(path.name, path.read_text()) for path in directory.glob("t*.md")]

    def made() -> sqlite3.Connection:
        table = sqlite3.connect(":memory:")
        table.execute("create virtual table t using fts5(file unindexed, text, tokenize='porter unicode61')")
        table.executemany("insert into t values (?, ?)", documents)
        return table

    def ask(table: sqlite3.Connection, number: int) -> list[str]:
        query = " OR ".join(f'"{word}"' for word in questions[number % len(questions)][0].split())
        rows = table.execute("select file from t where t match ? order by bm25(t) limit 5", (query,))
        return [str(row[0]) for row in rows]

    def corpus() -> Corpus:
        return Corpus(Document(file, "", "", text) for file, text in documents)

    ours = corpus()
    table = made()
    hits = sum(file in ask(table, number)[:1] for number, (_, file) in enumerate(questions))
    return {
        "search, made and asked": median(lambda number: corpus().rank(questions[number][0], 5), 3),
        "search, asked": median(lambda number: ours.rank(questions[number % len(questions)][0], 5), 50),
        "search, fts5 made and asked": median(lambda number: ask(made(), number), 3),
        "search, fts5 asked": median(lambda number: ask(table, number), 50),
        "search, fts5 found first of 50": float(hits),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--saves", type=int, default=100)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        base = Path(made)
        found = bench_save(base, options.saves) | bench_scan(base, options.topics) | bench_open(base)
        found |= bench_search(base, options.topics)
    over = {
        "save, new, over bare": found["save, new"] - found["save, bare"],
        "save, update, over bare": found["save, update"] - found["save, bare"],
    }
    ratios = {
        "scan, cold / bare read": found["scan, cold"] / found["scan, cold, bare read"],
        "scan, next process / listing": found["scan, next process"] / found["scan, bare listing"],
        "scan, again / listing": found["scan, again"] / found["scan, bare listing"],
        "search, made / fts5 made": found["search, made and asked"] / found["search, fts5 made and asked"],
        "search, asked / fts5 asked": found["search, asked"] / found["search, fts5 asked"],
        "open / listing": found["open, 200 memories"] / found["open, bare listing"],
    }
    if options.json:
        print(json.dumps(found | over | ratios))
        return
    for name, value in (found | over).items():
        print(f"{name:30} {value:9.2f} {'' if 'of 50' in name else 'ms'}")
    for name, value in ratios.items():
        print(f"{name:30} {value:9.2f} times")


if __name__ == "__main__":
    main()
