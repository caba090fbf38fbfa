"""What memory costs, beside the bare operations on the same disk in the same run, in milliseconds.

    python bench/memory.py [--topics 10000] [--saves 60] [--starts 15] [--json]
    python bench/memory.py --only-start [--starts 30]

save      one new memory and one update in a directory of 200, against the same bytes written and synced without any checks; a new one
          among all topics, against listing them
scan      the heads of all topics: the first look (cold: nothing parsed yet), a new process with the cache file, the same process again;
          against listing the directory with the time and size of each file, and reading the first 4 kB of each
open      `Memory.open` with 200 memories and with none, against listing the 200
start     a new process that opens an agent in a project with 200 memories and with none, against bare Python: at least 15 processes each,
          one of each kind after the other and the first of them another one each time. What 200 memories cost is said as the
          difference of the medians and as the median of the differences within a round, with the middle half of those
search    a question over all topics with their bodies: the first of a process (nothing read yet), the next one once the index is made,
          and one after a save, each with its look at every file for changes. Without files: our corpus made and asked, and only asked,
          about rare words and with one that is in every fifth topic, against SQLite's FTS5 on the same texts. How many of the expected
          memories come first, in either.

Each row: wall time best and median, CPU time best and median. What is compared is taken in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeAlias

import lamina
from lamina.core.settings import Settings
from lamina.disk.trees.rootdir import RootDir
from lamina.memory.memory import Memory
from lamina.memory.recall.rank import Corpus, Document
from lamina.memory.store.contract import Why
from lamina.memory.store.directory import DirectoryStore
from lamina.memory.store.draft import Draft
from lamina.memory.store.scan import CACHE, Scanner
from lamina.memory.store.topic import Topic, write_topic

ME = Why("user", "bench")
BODY = "The rule in a sentence.\n\n**Why:** a reason that takes a line or two.\n\n**How to apply:** in these cases.\n"
SOURCE = str(Path(lamina.__file__).parents[1])
NO_SYNC = Settings(durability="process")
# In every fifth topic of `fill_for_search`.
COMMON = "weekly"
# Fewer processes of each kind than this say nothing on a machine that does other things too.
LEAST_STARTS = 15


class Times(NamedTuple):
    best: float
    median: float
    cpu_best: float
    cpu_median: float


Act: TypeAlias = Callable[[int], object]
Found: TypeAlias = dict[str, Times]


def timed(act: Act, number: int) -> tuple[float, float]:
    """Wall and CPU milliseconds, those of child processes too."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    act(number)
    return (time.perf_counter() - wall) * 1000, (cpu_seconds() - cpu) * 1000


def cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def in_turns(runs: int, **acts: Act) -> Found:
    """All see the same machine and disk."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in acts}
    for number in range(runs):
        for name, act in acts.items():
            taken[name].append(timed(act, number))
    return {name: summary(times) for name, times in taken.items()}


def summary(times: list[tuple[float, float]]) -> Times:
    wall, cpu = ([each[at] for each in times] for at in (0, 1))
    return Times(min(wall), statistics.median(wall), min(cpu), statistics.median(cpu))


def fill(directory: Path, count: int) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        topic = Topic(f"t{number}.md", f"t{number}", f"What is known about subject {number}", "project", BODY)
        path = directory / topic.file
        path.write_text(write_topic(topic))
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def listing(directory: Path, _: int) -> None:
    with os.scandir(directory) as entries:
        found = [entry.stat(follow_symlinks=False) for entry in entries]
    assert found


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


def bare_save(directory: Path, index: bytes, number: int) -> None:
    fd = os.open(directory / "journal", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    os.write(fd, b"x" * 600 + b"\n")
    os.fsync(fd)
    os.close(fd)
    bare_replace(directory, f"{number}.md", BODY.encode())
    bare_replace(directory, "MEMORY.md", index)


def save(store: DirectoryStore, body: str, number: int) -> None:
    store.save(Draft(f"new-{number}", type="project", description=f"new number {number}", body=body), why=ME)


def bench_save(base: Path, saves: int) -> Found:
    fill(base / "memory", 200)
    (base / "bare").mkdir()
    with DirectoryStore.open(base / "memory") as store:
        save(store, BODY, -1)
        return in_turns(
            saves,
            save_bare=partial(bare_save, base / "bare", store.index().encode()),
            save_new=partial(save, store, BODY),
            save_update=partial(save, store, BODY + "more"),
        )


def bench_scan(base: Path, topics: int) -> Found:
    memory = base / "many"
    fill(memory, topics)

    def bare_read(_: int) -> None:
        for name in os.listdir(memory):
            if name.endswith(".md"):
                fd = os.open(memory / name, os.O_RDONLY)
                os.read(fd, 4_096)
                os.close(fd)

    with RootDir.open(memory) as root, DirectoryStore.open(memory) as store:
        first = Scanner(root)

        def cold(_: int) -> None:
            (memory / CACHE).unlink(missing_ok=True)
            Scanner(root).headers()

        found = in_turns(3, scan_cold=cold, scan_bare_read=bare_read)
        found |= in_turns(
            11,
            scan_listing=partial(listing, memory),
            scan_again=lambda _: first.headers(),
            scan_next_process=lambda _: Scanner(root).headers(),
        )
        save(store, BODY, -1)
        return found | in_turns(5, save_new_of_all=partial(save, store, BODY), save_listing_of_all=partial(listing, memory))


def bench_open(base: Path) -> Found:
    full, empty = base / "two hundred", base / "none"
    for path, count in ((full, 200), (empty, 0)):
        with Memory.open(path=path, settings=NO_SYNC) as memory:
            for number in range(count):
                memory.save(f"t{number}", type="project", description=f"subject {number}", body=BODY)

    def opened(path: Path, _: int) -> None:
        with Memory.open(path=path, settings=NO_SYNC) as memory:
            memory.index()

    return in_turns(30, open_200=partial(opened, full), open_none=partial(opened, empty), open_listing=partial(listing, full))


class Spread(NamedTuple):
    between_medians: float
    median: float  # of the differences within a round
    lower: float  # a quarter of the differences is below this
    upper: float  # and a quarter above this


class Started(NamedTuple):
    """What 200 memories add to a start: wall and CPU milliseconds."""

    wall: Spread
    cpu: Spread


def spread(one: list[float], other: list[float]) -> Spread:
    lower, median, upper = statistics.quantiles([a - b for a, b in zip(one, other, strict=True)], n=4)
    return Spread(statistics.median(one) - statistics.median(other), median, lower, upper)


def alternating(runs: int, acts: dict[str, Act]) -> dict[str, list[tuple[float, float]]]:
    """One of each in a round, and another one first in the next: whatever follows from the order falls on all alike."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in acts}
    names = list(acts)
    for number in range(runs):
        for name in (*names[number % len(names) :], *names[: number % len(names)]):
            taken[name].append(timed(acts[name], number))
    return taken


def bench_start(base: Path, runs: int) -> tuple[Found, Started]:
    def start(count: int, code: str, _: int) -> None:
        project = base / f"project {count}"
        project.mkdir(exist_ok=True)
        environ = dict(os.environ, LAMINA_HOME=str(base / f"home {count}"), HOME=str(base), PYTHONPATH=SOURCE)
        # Byte-code is there, as where a package is installed.
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        environ["PYTHONPYCACHEPREFIX"] = str(base / "byte-code")
        subprocess.run([sys.executable, "-c", code], check=True, cwd=project, env=environ, stdout=subprocess.DEVNULL)

    filling = (
        f"import lamina\nwith lamina.Memory.open() as m:\n for n in range(200): m.save(f't{{n}}', type='user', body={BODY!r})"
    )
    agent = "import lamina\nlamina.Agent.open('offline').close()"
    start(200, filling, 0)
    for count in (0, 200):
        start(count, agent, 0)
    taken = alternating(
        max(LEAST_STARTS, runs),
        {
            "start_200": partial(start, 200, agent),
            "start_none": partial(start, 0, agent),
            "start_bare": partial(start, 0, "pass"),
        },
    )
    wall, cpu = ([[times[at] for times in taken[name]] for name in ("start_200", "start_none")] for at in (0, 1))
    return {name: summary(times) for name, times in taken.items()}, Started(spread(*wall), spread(*cpu))


def words_of(random: Random, vocabulary: list[str], count: int) -> str:
    """Some words are everywhere and most are rare, as in prose."""
    ranks = (int(random.paretovariate(0.5)) - 1 for _ in range(count))
    return " ".join(vocabulary[rank if rank < len(vocabulary) else random.randrange(len(vocabulary))] for rank in ranks)


def fill_for_search(directory: Path, count: int) -> list[tuple[str, str]]:
    """Topics in made-up words, and questions: a few rare words of one topic, and its file."""
    random = Random(1)
    syllables = [one + two for one in "bdfgklmnprstvz" for two in "aeiou"]
    vocabulary = list(dict.fromkeys("".join(random.choices(syllables, k=random.randint(2, 4))) for _ in range(20_000)))
    places = {word: place for place, word in enumerate(vocabulary)}
    directory.mkdir(parents=True)
    questions = []
    for number in range(count):
        name, description, body = (words_of(random, vocabulary, size) for size in (3, 12, 60))
        topic = Topic(f"t{number}.md", name, description, "project", f"{body}{'' if number % 5 else f' {COMMON}'}\n")
        (directory / topic.file).write_text(write_topic(topic))
        if number % max(1, count // 50) == 0:
            rare = sorted(set(f"{description} {body}".split()), key=places.__getitem__)[-4:]
            questions.append((" ".join(rare), topic.file))
    return questions


def bench_search(base: Path, topics: int) -> tuple[Found, dict[str, int]]:
    path = base / "searched"
    questions = fill_for_search(path, topics)
    with Memory.open(path=path, settings=NO_SYNC) as memory:
        memory.headers()  # writes the cache of heads, as any earlier session did

    def ask(memory: Memory, number: int) -> list[str]:
        return [found.topic.file for found in memory.recall(questions[number % len(questions)][0])]

    def first(number: int) -> None:
        with Memory.open(path=path, settings=NO_SYNC) as memory:
            ask(memory, number)

    with Memory.open(path=path, settings=NO_SYNC) as memory:
        hits = sum(file in ask(memory, number)[:1] for number, (_, file) in enumerate(questions))
        found = in_turns(21, search_next=partial(ask, memory), search_listing=partial(listing, path))
        after = []
        for number in range(5):
            memory.save(f"new {number}", type="project", description="d", body="b")
            after.append(timed(partial(ask, memory), number))
    found |= {"search_after_a_save": summary(after)} | in_turns(3, search_first=first)
    ours, fts5_hits = bench_fts5(path, questions)
    return found | ours, {"found first": hits, "found first by fts5": fts5_hits, "of": len(questions)}


def bench_fts5(directory: Path, questions: list[tuple[str, str]]) -> tuple[Found, int]:
    documents = [(path.name, path.read_text()) for path in directory.glob("t*.md")]

    def made() -> sqlite3.Connection:
        table = sqlite3.connect(":memory:")
        table.execute("create virtual table t using fts5(file unindexed, text, tokenize='porter unicode61')")
        table.executemany("insert into t values (?, ?)", documents)
        return table

    def corpus() -> Corpus:
        return Corpus(Document(file, "", "", text) for file, text in documents)

    def words(number: int, more: str = "") -> str:
        return f"{questions[number % len(questions)][0]} {more}"

    def ask(table: sqlite3.Connection, question: str) -> list[str]:
        query = " OR ".join(f'"{word}"' for word in question.split())
        rows = table.execute("select file from t where t match ? order by bm25(t) limit 5", (query,))
        return [str(row[0]) for row in rows]

    ours, table = corpus(), made()
    for number in range(len(questions)):  # more than it takes to make the whole index
        ours.rank(words(number), 5)
    hits = sum(file in ask(table, question)[:1] for question, file in questions)
    return in_turns(
        3,
        search_made_and_asked=lambda number: corpus().rank(words(number), 5),
        search_fts5_made_and_asked=lambda number: ask(made(), words(number)),
    ) | in_turns(
        50,
        search_asked=lambda number: ours.rank(words(number), 5),
        search_fts5_asked=lambda number: ask(table, words(number)),
        search_asked_common=lambda number: ours.rank(words(number, COMMON), 5),
        search_fts5_asked_common=lambda number: ask(table, words(number, COMMON)),
    ), hits


# What is said of two rows: the difference of their medians, or how many times the one is the other.
OVER = (("save_new", "save_bare"), ("save_update", "save_bare"), ("open_200", "open_none"))
TIMES = (
    *(("save_new_of_all", "save_listing_of_all"), ("scan_cold", "scan_bare_read"), ("scan_next_process", "scan_listing")),
    *(("scan_again", "scan_listing"), ("search_next", "search_listing"), ("search_asked", "search_fts5_asked")),
    *(("search_asked_common", "search_fts5_asked_common"), ("search_made_and_asked", "search_fts5_made_and_asked")),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--saves", type=int, default=60)
    parser.add_argument("--starts", type=int, default=LEAST_STARTS)
    parser.add_argument("--only-start", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    found: Found = {}
    hits: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as made:
        base = Path(made)
        if not options.only_start:
            found |= bench_save(base, options.saves) | bench_scan(base, options.topics) | bench_open(base)
            searched, hits = bench_search(base, options.topics)
            found |= searched
        starts, started = bench_start(base, options.starts)
    found |= starts
    if options.json:
        print(json.dumps({"load": load, **hits, **found, "start_200_over_none": {"wall": started.wall, "cpu": started.cpu}}))
        return
    print(f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after; {os.cpu_count()} cores; {hits}")
    print(f"{'ms':30} {'best':>9} {'median':>9} {'CPU best':>9} {'median':>9}")
    for name, times in found.items():
        print(f"{name.replace('_', ' '):30} " + " ".join(f"{value:9.2f}" for value in times))
    for kind, one in zip(("wall", "CPU"), started, strict=True):
        print(f"a start with 200 memories over one with none, {kind}: {one.between_medians:.2f} ms between the medians, ", end="")
        print(f"{one.median:.2f} ms in the middle round (half of them {one.lower:.2f} to {one.upper:.2f})")
    if options.only_start:
        return
    for name, beside in OVER:
        print(f"{name} over {beside}: {found[name].median - found[beside].median:.2f} ms", end="")
        print(f", CPU {found[name].cpu_median - found[beside].cpu_median:.2f} ms")
    for name, beside in TIMES:
        print(f"{name} / {beside}: {found[name].median / found[beside].median:.2f}")


if __name__ == "__main__":
    main()
