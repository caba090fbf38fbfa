"""When recall finds the memory that helps with a message, and when it stays silent, per message.

    python bench/silence.py [--locomo FILE] [--messages DIR] [--kinds none static encoder] [--apply] [--corpus FILE] [--out FILE]

`silence_corpus.json` has stores of 30 memories with short messages that one memory helps, and short and long messages that none
helps. Each store is alone, filled to 1,000 memories with sentences of docs/, and with `--locomo` with single facts of LoCoMo. Its
`about` says who wrote which store, and which ones the rule was fitted to. `--corpus` takes the stores of another file.
With `--apply`, the memories end with the line that models are asked to write; only the stores that have such lines are measured.

`recall_corpus.json` has 206 short messages in eight languages, alone and among 1,000 memories. With `--messages`, long user messages of
recorded sessions (Claude Code's files) are asked as well; no memory helps them.

`--kinds` compares by words (none) and with vectors whose packages are installed. `--out` writes one JSON line per message: what was
wanted, what was found. `--vectors DIR` keeps the vectors for another run. On a busy machine, OMP_NUM_THREADS=1 makes the encoder several
times as fast.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TextIO

from find import HERE, MOST, STOP, Rank, Search, fused, keep_vectors, locomo, write

from lamina.core.errors import EncoderUnavailable
from lamina.core.settings import Settings
from lamina.memory.recall.encoders import WeightedEncoder, load_encoders
from lamina.memory.recall.rank import SearchDocument
from lamina.memory.recall.threshold import LOOKED_AT, clear_fits
from lamina.memory.store.topic_files import MOST_IN_MANIFEST, NEWEST_IN_MANIFEST

STORE = 1_000
LONG_WORDS = range(70, 221)
# Of a large store, a model that selects is shown the ranker's best and the newest memories; only the first count here.
LISTED = MOST_IN_MANIFEST - NEWEST_IN_MANIFEST
HEADER = (
    "| {} | memories | right memory | others with it | right one listed for a model | wrong, short messages | wrong, long messages |"
    "\n|---|---|---|---|---|---|---|"
)


class Bench:
    """Measures one way to compare."""

    def __init__(self, kind: str, encoders: Sequence[WeightedEncoder], out: TextIO | None) -> None:
        self.kind = kind
        self._encoders = encoders
        self._out = out

    def measure(
        self,
        name: str,
        documents: list[SearchDocument],
        helped: Sequence[dict[str, Any]],
        quiet: Sequence[str],
        long: Sequence[str],
    ) -> None:
        """Print the row of a store."""
        rank, _ = fused(self.kind, self._encoders, documents)
        bring = partial(brought, rank, len(documents))
        short = [(each["say"], each["want"] if isinstance(each["want"], list) else [each["want"]]) for each in helped]
        found = [(want, self._asked(name, say, want, bring)) for say, want in short]
        right = sum(not set(want).isdisjoint(files) for want, files in found)
        listed = sum(not set(want).isdisjoint(header.file for header, _ in rank(say, LISTED)) for say, want in short)
        others = sum(len(files) for _, files in found) - right
        cells = [f"{right} of {len(short)}", str(others), f"{listed if len(documents) > MOST_IN_MANIFEST else len(short)}"]
        for part in (quiet, long):
            wrong = sum(len(self._asked(name, say, [], bring)) for say in part)
            cells.append(f"{wrong} in {len(part)}" if part else "")
        print(f"| {name} | {len(documents):,} | {' | '.join(cells)} |", flush=True)

    def _asked(self, name: str, say: str, want: list[str], bring: Search) -> list[str]:
        files = bring(say)
        write(self._out, way=f"{self.kind}: {name}", id=say[:80], wanted=want, found=files)
        return files


def brought(rank: Rank, memories: int, say: str) -> list[str]:
    """Return what recall brings to a message."""
    found = rank(say, LOOKED_AT)
    fits = clear_fits(say, [ranked for _, ranked in found], [header.name for header, _ in found], memories)
    return [found[fit.ranked.at][0].file for fit in fits[:MOST]]


def bench(measured: Bench, stores: list[dict[str, Any]], fillings: dict[str, list[SearchDocument]], long: Sequence[str]) -> None:
    print(HEADER.format(f"vectors: {measured.kind}"))
    for store in stores:
        own = read_documents(store["memories"])
        for name, filling in fillings.items():
            documents = [*own, *filling[: STORE - len(own)]]
            measured.measure(f"{store['name']}, {name}", documents, store["messages"], store.get("quiet", ()), store["long"])
    data = json.loads((HERE / "recall_corpus.json").read_text("utf-8"))
    own = read_documents(data["memories"])
    said = [each for part in ("messages", "other_messages", "unseen_messages") for each in data[part]]
    quiet = [each["say"] for each in said if not each["want"]]
    for name, filling in fillings.items():
        documents = [*own, *filling[: STORE - len(own)]]
        measured.measure(f"eight languages, {name}", documents, [each for each in said if each["want"]], quiet, long)
    print()


def read_documents(memories: Iterable[dict[str, str]]) -> list[SearchDocument]:
    return [SearchDocument(each["file"], each["name"], each["description"], each["body"]) for each in memories]


def with_apply_lines(store: dict[str, Any]) -> dict[str, Any]:
    memories = [{**each, "body": f"{each['body']}\n**How to apply:** {each['apply']}"} for each in store["memories"]]
    return {**store, "memories": memories}


def make_fillings(locomo_file: Path | None) -> dict[str, list[SearchDocument]]:
    found: dict[str, list[SearchDocument]] = {"alone": [], "sentences of docs/": made_memories(STORE)}
    if locomo_file is not None:
        facts = [document.body for store in locomo(locomo_file, "single facts") for document in store.documents]
        found["facts of LoCoMo"] = as_memories(fact.split(") ", 1)[1] for fact in Random(1).sample(facts, STORE))
    return found


def made_memories(count: int) -> list[SearchDocument]:
    """Memories made of the sentences of our documentation, so that they share words with messages about software."""
    sentences = []
    for page in sorted((HERE.parent / "docs").rglob("*.md")):
        prose = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
        lines = (line.strip("- *") for line in prose.splitlines() if not line.startswith(("|", "#", "<")))
        sentences += [each for line in lines for each in re.split(r"(?<=[.!?])\s+", line) if 8 <= len(each.split()) <= 25]
    Random(1).shuffle(sentences)
    return as_memories(sentences)[:count]


def as_memories(texts: Iterable[str]) -> list[SearchDocument]:
    sentences, made = list(texts), []
    for at, sentence in enumerate(sentences):
        telling = [word for word in re.findall(r"[a-z]{4,}", sentence.lower()) if word not in STOP]
        name = "-".join(telling[:3]) or f"x{at}"
        made.append(SearchDocument(f"x{at}.md", name, sentence, f"{sentence} {sentences[(at * 7 + 5) % len(sentences)]}"))
    return made


def long_messages(directory: Path) -> list[str]:
    """The first long message of each recorded session."""
    found = []
    for path in sorted(directory.rglob("*.jsonl")):
        texts = (_user_text(line) for line in path.read_text("utf-8", "replace").splitlines())
        long = (text for text in texts if len(text.split()) in LONG_WORDS and not text.startswith(("<", "This session is being")))
        found += [text for text in [next(long, "")] if text]
    return found


def _user_text(line: str) -> str:
    try:
        record = json.loads(line)
        content = record["message"]["content"] if record["type"] == "user" and not record.get("isMeta") else ""
        return content if isinstance(content, str) else " ".join(block.get("text", "") for block in content)
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--messages", type=Path)
    parser.add_argument("--kinds", nargs="+", choices=["none", "static", "encoder"], default=["none", "static", "encoder"])
    parser.add_argument("--apply", action="store_true")
    parser.add_argument("--corpus", type=Path, default=HERE / "silence_corpus.json")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--vectors", type=Path)
    asked = parser.parse_args()
    keep_vectors(asked.vectors)
    stores, fillings = json.loads(asked.corpus.read_text("utf-8"))["stores"], make_fillings(asked.locomo)
    if asked.apply:
        stores = [with_apply_lines(each) for each in stores if all("apply" in memory for memory in each["memories"])]
    long = long_messages(asked.messages) if asked.messages is not None else []
    out = asked.out.open("w", encoding="utf-8") if asked.out is not None else None
    for kind in asked.kinds:
        try:
            bench(Bench(kind, load_encoders(Settings(recall_vectors=kind)), out), stores, fillings, long)
        except EncoderUnavailable as error:
            print(f"({kind} is left out. {error})")
    if out is not None:
        out.close()


if __name__ == "__main__":
    main()
