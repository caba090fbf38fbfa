"""Past turns found by `lamina.search` among the first 5 and 10, on LoCoMo, beside SQLite's FTS5 on the same documents.

    python bench/past_turns.py LOCOMO.json [--out QUESTIONS.jsonl]

Each conversation becomes a home with one transcript per session, each turn a message with its speaker and date. A question's score
is the share of its evidence turns among the first k. `--out` writes one line per question: its id, its evidence and what was found.
"""

from __future__ import annotations

import argparse
import json
import re
import sqlite3
import statistics
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import lamina
from lamina.disk.paths.project import slug

KS = (5, 10)
EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
STOP_WORDS = """a an and are as at be but by did do does for from had has have how i if in into is it its of on or that the their
there these they this to was were what when where which who why will with would you your"""
STOP = frozenset(STOP_WORDS.split())


class Turn(NamedTuple):
    id: str
    text: str
    before: str
    session: int
    time: datetime


def turns_of(conversation: dict[str, Any]) -> list[Turn]:
    found: list[Turn] = []
    numbers = sorted(int(key.split("_")[1]) for key in conversation if re.fullmatch(r"session_\d+", key))
    for number in numbers:
        begun = datetime.strptime(conversation[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y")
        before = ""
        for at, turn in enumerate(conversation[f"session_{number}"]):
            text = f'{turn["speaker"]} said, "{turn["text"]}"'
            if turn.get("blip_caption"):
                text += f" [shares {turn['blip_caption']}]"
            found.append(Turn(turn["dia_id"], text, before, number, begun + timedelta(seconds=at)))
            before = text
    return found


def write_home(home: Path, project: Path, turns: list[Turn]) -> None:
    """Write one transcript per session; the two speakers take turns as user and assistant."""
    directory = home / "projects" / slug(project)
    directory.mkdir(parents=True)
    for at, turn in enumerate(turns):
        role = ("user", "assistant")[at % 2]
        message = {"role": role, "content": turn.text, "id": turn.id, "model": "offline"}
        row = {"type": role, "uuid": turn.id, "parentUuid": None, "sessionId": str(turn.session), "cwd": str(project)}
        with open(directory / f"session-{turn.session}.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps({**row, "timestamp": f"{turn.time.isoformat()}.000Z", "message": message}) + "\n")


class Searched:
    """`lamina.search` over the home, from the question to the results."""

    def __init__(self, home: Path, project: Path, turns: list[Turn]) -> None:
        write_home(home, project, turns)
        self._project, self._environ = project, {"LAMINA_HOME": str(home), "HOME": str(home.parent)}
        self._ids = {turn.text: turn.id for turn in turns}

    def find(self, question: str, k: int) -> list[str]:
        found = lamina.search(question, self._project, k, settings=lamina.Settings(), environ=self._environ)
        return [self._ids[one.text] for one in found]


class Fts5:
    """SQLite's FTS5 with the porter stemmer and its bm25, over the same texts; `before` adds the turn before to each."""

    def __init__(self, turns: list[Turn], *, before: bool) -> None:
        self._turns = turns
        self._database = sqlite3.connect(":memory:")
        self._database.execute("CREATE VIRTUAL TABLE t USING fts5(body, tokenize='porter unicode61')")
        for at, turn in enumerate(turns):
            head = f"{turn.before}\n" if before and turn.before else ""
            stamp = turn.time.strftime("%I:%M %p on %d %B, %Y")
            self._database.execute("INSERT INTO t (rowid, body) VALUES (?, ?)", (at + 1, f"({stamp}) {head}{turn.text}"))

    def find(self, question: str, k: int) -> list[str]:
        words = dict.fromkeys(word for word in re.findall(r"\w+", question.lower()) if word not in STOP)
        match = " OR ".join(f'"{word}"' for word in words)
        rows = self._database.execute("SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT ?", (match, k)) if match else ()
        return [self._turns[row[0] - 1].id for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    scores: dict[str, dict[int, list[float]]] = {}
    times: dict[str, list[float]] = {}
    lines: list[str] = []
    for sample in json.loads(arguments.data.read_text("utf-8")):
        turns = turns_of(sample["conversation"])
        known = {turn.id for turn in turns}
        with tempfile.TemporaryDirectory() as directory:
            project = Path(directory) / "project"
            project.mkdir()
            ways = {
                "lamina.search": Searched(Path(directory) / "home", project, turns),
                "fts5, a turn": Fts5(turns, before=False),
                "fts5, with the turn before": Fts5(turns, before=True),
            }
            for number, question in enumerate(sample["qa"]):
                gold = {f"D{int(one)}:{int(two)}" for raw in question.get("evidence") or [] for one, two in EVIDENCE.findall(raw)}
                if not gold & known:
                    continue
                row: dict[str, Any] = {"id": f"{sample['sample_id']}-{number}", "evidence": sorted(gold & known)}
                for name, way in ways.items():
                    began = time.perf_counter()
                    found = way.find(question["question"], max(KS))
                    times.setdefault(name, []).append(1_000 * (time.perf_counter() - began))
                    for k in KS:
                        share = len(gold & set(found[:k])) / len(gold & known)
                        scores.setdefault(name, {}).setdefault(k, []).append(share)
                    row[name] = found
                lines.append(json.dumps(row))
    print(f"{len(lines)} questions")
    print(f"{'':30}{'among 5':>10}{'among 10':>10}{'ms median':>12}{'ms 95th':>10}")
    for name, by_k in scores.items():
        shares = "".join(f"{100 * statistics.fmean(by_k[k]):>10.1f}" for k in KS)
        print(f"{name:30}{shares}{statistics.median(times[name]):>12.2f}{statistics.quantiles(times[name], n=20)[-1]:>10.2f}")
    if arguments.out is not None:
        arguments.out.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
