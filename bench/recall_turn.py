"""What recall brings to a message, what it leaves out, and what it costs a turn.

    python bench/recall_turn.py [--runs 30] [--locomo DIR] [--json]

bar      `recall_corpus.json`: 47 memories and 206 messages in eight languages; with about half of these none of the memories helps.
         Precision and recall of what is brought, and how many of the other messages stay without; by the messages the bar was chosen
         with, by those that three corrections were made with, and by those that were written when it was done. Beside it: the
         ranker's first five whatever they are, and its first one.
cost     `before_call` for one message, wall milliseconds, best and median: no memory directory, an empty one, 200 memories of which
         none fits, 200 of which some do; a session's first message and the next ones. Beside it: the same with recall off, and the first
         message of a process, which loads what recall takes.
locomo   `DIR` holds conversations with questions and the turns that answer them. R@5: how often the five best turns hold all the evidence
         of a question, or some of it. Ours and SQLite's FTS5 with its BM25, in the same run; by the three conversations our constants
         were chosen with, by the others, and by all.

No model takes part.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import lamina
from lamina.core.settings import Settings
from lamina.memory.recall.rank import Corpus, SearchDocument
from lamina.memory.recall.threshold import LOOKED_AT, clear_fits
from lamina.memory.store.topic import Topic, write_topic
from lamina.session.session import Session

CORPUS = Path(__file__).with_name("recall_corpus.json")
MOST = 5
MEMORIES = 200
PROCESSES = 7
# The ranker's constants were chosen with so many conversations of LoCoMo; the others show what that is worth.
CHOSEN_WITH = 3


def bench_bar() -> dict[str, dict[str, float]]:
    data = json.loads(CORPUS.read_text("utf-8"))
    memories = data["memories"]
    corpus = Corpus(SearchDocument(each["file"], each["name"], each["description"], each["body"]) for each in memories)

    def clear(say: str) -> list[str]:
        ranked = corpus.rank(say, LOOKED_AT)
        fits = clear_fits(say, ranked, [memories[each.at]["name"] for each in ranked], len(memories))
        return [memories[fit.ranked.at]["file"] for fit in fits[:MOST]]

    def best(most: int) -> Callable[[str], list[str]]:
        return lambda say: [memories[each.at]["file"] for each in corpus.rank(say, most)]

    ways = {"what clearly fits": clear, "the first five": best(MOST), "the first one": best(1)}
    sets = {"chosen with": data["messages"], "corrected with": data["other_messages"], "unseen": data["unseen_messages"]}
    return {f"{way}, {name}": judged(found, messages) for name, messages in sets.items() for way, found in ways.items()}


def judged(found: Callable[[str], list[str]], messages: Sequence[dict[str, Any]]) -> dict[str, float]:
    pairs = [(set(found(each["say"])), set(each["want"])) for each in messages]
    right = sum(len(got & want) for got, want in pairs)
    nothing = [got for got, want in pairs if not want]
    return {
        "precision": right / max(1, sum(len(got) for got, _ in pairs)),
        "recall": right / max(1, sum(len(want) for _, want in pairs)),
        "rightly silent": sum(not got for got in nothing) / max(1, len(nothing)),
    }


def bench_cost(runs: int) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory() as base:
        homes = {"no directory": None, "an empty one": 0, f"{MEMORIES} memories": MEMORIES}
        made = {name: _home(Path(base) / str(number), count) for number, (name, count) in enumerate(homes.items())}
        found: dict[str, dict[str, float]] = {}
        for name, home in made.items():
            for recall in (True, False):
                first, later = [], []
                for run in range(runs):
                    times = _turns(home, recall, run)
                    first.append(times[0])
                    later += times[1:]
                label = name if recall else f"{name}, recall off"
                found[f"{label}: first message"] = _summary(first)
                found[f"{label}: next ones"] = _summary(later)
            found[f"{name}: first of a process"] = _summary([_first_of_a_process(home) for _ in range(PROCESSES)])
        return found


def _first_of_a_process(home: Path) -> float:
    program = (
        "import sys, time; from lamina import Session\n"
        "with Session('offline', home=sys.argv[1], cwd=sys.argv[1]) as session:\n"
        "    session.add_user(sys.argv[2]); began = time.perf_counter(); session.before_call()\n"
        "    print((time.perf_counter() - began) * 1000)"
    )
    say = json.loads(CORPUS.read_text("utf-8"))["messages"][0]["say"]
    environ = {**os.environ, "PYTHONPATH": str(Path(lamina.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", program, str(home), say], env=environ, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def _home(home: Path, count: int | None) -> Path:
    home.mkdir()
    if count is None:
        return home
    with Session("offline", home=home, cwd=home) as session:
        from lamina.memory.store.scopes import locate_memory

        path = locate_memory(cwd=session.cwd, home=home, settings=Settings(), user_home=home).path
    path.mkdir(parents=True, mode=0o700)
    random = Random(1)
    words = json.loads(CORPUS.read_text("utf-8"))["memories"]
    for number in range(count):
        like = words[number % len(words)]
        body = f"{like['body']}\n\n" + " ".join(random.choices(like["body"].split(), k=60))
        topic = Topic(f"m{number}.md", f"{like['name']} {number}", like["description"], "project", body)
        (path / topic.file).write_text(write_topic(topic))
    return home


def _turns(home: Path, recall: bool, run: int) -> list[float]:
    messages = json.loads(CORPUS.read_text("utf-8"))["messages"]
    taken = []
    with Session("offline", home=home, cwd=home, settings=Settings(recall=recall)) as session:
        for number in range(5):
            session.add_user(messages[(5 * run + number) % len(messages)]["say"])
            began = time.perf_counter()
            request = session.before_call()
            taken.append((time.perf_counter() - began) * 1000)
            session.after_call(session.provider.ask(request))
            session.end_turn()
    return taken


def _summary(times: Sequence[float]) -> dict[str, float]:
    return {"best": min(times), "median": statistics.median(times), "most": max(times)}


# LoCoMo


def bench_locomo(directory: Path) -> dict[str, dict[str, float]]:
    samples = [sample for path in sorted(directory.glob("*.json")) for sample in json.loads(path.read_text("utf-8"))]
    parts = {"chosen with": samples[:CHOSEN_WITH], "held out": samples[CHOSEN_WITH:], "all": samples}
    found: dict[str, dict[str, float]] = {}
    judged_once = [_answered(sample) for sample in samples]
    for name, part in parts.items():
        rows = [judged_once[samples.index(sample)] for sample in part]
        count = sum(row["of"] for row in rows)
        for who in ("ours", "fts5"):
            shares = {key: sum(row[f"{who} {key}"] for row in rows) / max(1, count) for key in ("all of it", "some of it")}
            taken = 1000 * sum(row[f"{who} seconds"] for row in rows) / max(1, count)
            found[f"{who}, {name}"] = {**shares, "ms a question": taken, "of": count}
    return found


def _answered(sample: dict[str, Any]) -> Counter[str]:
    """How many questions of one conversation find their evidence, by who looks for it."""
    turns = _spoken(sample["conversation"])
    corpus = Corpus(SearchDocument(at, speaker, "", text) for at, speaker, text in turns)
    table, tally = _fts5(turns), Counter[str]()
    ways: dict[str, Callable[[str], set[str]]] = {
        "ours": lambda question: {turns[each.at][0] for each in corpus.rank(question, MOST)},
        "fts5": lambda question: _asked(table, question),
    }
    for asked in sample["qa"]:
        want = {one for each in asked.get("evidence") or () for one in re.findall(r"D\d+:\d+", each)}
        if not want:
            continue
        tally["of"] += 1
        for who, look in ways.items():
            began = time.perf_counter()
            files = look(asked["question"])
            tally[f"{who} seconds"] += time.perf_counter() - began  # type: ignore[assignment]
            tally[f"{who} all of it"] += want <= files
            tally[f"{who} some of it"] += bool(want & files)
    table.close()
    return tally


def _spoken(conversation: dict[str, Any]) -> list[tuple[str, str, str]]:
    sessions = [name for name in conversation if re.fullmatch(r"session_\d+", name)]
    return [(turn["dia_id"], turn["speaker"], turn.get("text", "")) for name in sessions for turn in conversation[name]]


def _fts5(turns: Sequence[tuple[str, str, str]]) -> sqlite3.Connection:
    table = sqlite3.connect(":memory:")
    table.execute("create virtual table t using fts5(file unindexed, speaker, text, tokenize='porter unicode61')")
    table.executemany("insert into t values (?, ?, ?)", turns)
    return table


def _asked(table: sqlite3.Connection, question: str) -> set[str]:
    words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question))
    return {file for (file,) in table.execute("select file from t where t match ? order by rank limit ?", (words, MOST))}


def show(title: str, rows: dict[str, dict[str, float]]) -> None:
    print(f"\n{title}")
    for name, values in rows.items():
        shown = "  ".join(f"{key} {value:.0f}" if key == "of" else f"{key} {value:.3f}" for key, value in values.items())
        print(f"  {name:<44} {shown}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = {"bar": bench_bar(), "cost": bench_cost(given.runs)}
    if given.locomo is not None:
        found["locomo"] = bench_locomo(given.locomo)
    if given.json:
        json.dump(found, sys.stdout, indent=1)
        return
    titles = {"bar": "What is brought", "cost": "before_call, milliseconds", "locomo": "LoCoMo, evidence in the first five"}
    for name, rows in found.items():
        show(titles[name], rows)


if __name__ == "__main__":
    main()
