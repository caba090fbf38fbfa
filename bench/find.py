"""What memory search finds, per question, beside SQLite's FTS5 and bm25s in the same run.

    python bench/find.py [--locomo FILE] [--out FILE] [--only locomo own] [--vectors DIR]

locomo   `FILE` holds LoCoMo's conversations. Documents: session summaries, single facts, or turns with the one before. A question's score
         is the share of its evidence turns that the first five documents cover; by the three conversations the numbers were chosen with,
         by the others, and by all.
own      `find_corpus.json`: paraphrases, five languages, and questions about the pages of docs/ as long documents. A question's score is 1
         if the wanted memory is among the first five (mean reciprocal rank beside it). Only the required cosine was chosen with it; the
         third marked `held_out` is printed by itself.

Words is the base; static and encoder, alone and fused with words, are compared if their packages are installed (docs/design/vectors.md),
bm25s if it is. `--out` writes one JSON line per question and way: what was wanted, what was found. `--vectors` keeps the vectors in DIR, so
that another run needs minutes instead of half an hour. No model takes part. Exits with 1 if a fusion finds less on LoCoMo than its better
half.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from lamina.core.errors import EncoderUnavailable
from lamina.core.settings import Settings
from lamina.disk.trees.rootdir import RootDir
from lamina.memory.recall.encoders import WeightedEncoder, load_encoders
from lamina.memory.recall.fusion import DEPTH, SimilarMemory, fuse
from lamina.memory.recall.rank import Corpus, Ranked, SearchDocument
from lamina.memory.recall.vectors import VectorTables
from lamina.memory.store.topic_files import TopicHeader

HERE = Path(__file__).parent
MOST = 5
CHOSEN_WITH = 3
KINDS = ("static", "encoder")
EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
STOP_WORDS = """a an and are as at be but by did do does for from had has have how i if in into is it its of on or that the their
there these they this to was were what when where which who why will with would you your"""
STOP = frozenset(STOP_WORDS.split())

Search = Callable[[str], list[str]]
Make = Callable[[Sequence[SearchDocument]], Search]
Rank = Callable[[str, int], list[tuple[TopicHeader, Ranked]]]


class Question(NamedTuple):
    id: str
    ask: str
    wanted: frozenset[str]


class Store(NamedTuple):
    """Documents, the evidence each of them covers, and questions about them."""

    documents: list[SearchDocument]
    covers: dict[str, frozenset[str]]
    questions: list[Question]


# Ways to search


def words(documents: Sequence[SearchDocument]) -> Search:
    corpus = Corpus(documents)
    return lambda ask: [documents[each.at].file for each in corpus.rank(ask, MOST)]


def with_vectors(kind: Any, *, alone: bool = False) -> Make | None:
    try:
        encoders = load_encoders(Settings(recall_vectors=kind))
    except EncoderUnavailable as error:
        if not alone:
            print(f"({kind} is left out. {error})")
        return None

    def make(documents: Sequence[SearchDocument]) -> Search:
        rank, table = fused(kind, encoders, documents)

        def search(ask: str) -> list[str]:
            if alone:
                close = table.similarities(ask, (), MOST)
                return sorted(close, key=lambda file: -close[file])
            return [header.file for header, _ in rank(ask, MOST)]

        return search

    return make


def fused(kind: str, encoders: Sequence[WeightedEncoder], documents: Sequence[SearchDocument]) -> tuple[Rank, VectorTables]:
    """Return the ranking by words and vectors, and the vectors."""
    headers = [TopicHeader(each.file, each.name, each.description, None, 0.0, 0, 0, at) for at, each in enumerate(documents)]
    corpus, table = Corpus(documents), encoded(kind, encoders, documents, headers)
    by_file, share = {header.file: header for header in headers}, sum(each.share for each in encoders)

    def rank(ask: str, most: int) -> list[tuple[TopicHeader, Ranked]]:
        found = [(headers[each.at], each) for each in corpus.rank(ask, DEPTH)]
        similar = table.similarities(ask, [header.file for header, _ in found], DEPTH)
        known = {file: SimilarMemory(by_file[file], cosine) for file, cosine in similar.items()}
        return fuse(found, known, most, share)

    return rank, table


# The directory for vectors, if one was named.
_asked: dict[str, Path] = {}
# Of each kind and list of documents; the list itself keeps its id from being used again.
_encoded: dict[tuple[str, int], tuple[Sequence[SearchDocument], VectorTables]] = {}


def keep_vectors(directory: Path | None) -> None:
    """Keep the vectors in this directory, for the next run."""
    if directory is not None:
        _asked["vectors"] = directory


def encoded(
    kind: str, encoders: Sequence[WeightedEncoder], documents: Sequence[SearchDocument], headers: Sequence[TopicHeader]
) -> VectorTables:
    """Return the vectors of the documents, made once for all ways to search them."""
    if (known := _encoded.get((kind, id(documents)))) is not None:
        return known[1]
    table = VectorTables(encoders)
    texts = {each.file: f"{each.name}\n{each.description}\n{each.body}".strip() for each in documents}
    with tempfile.TemporaryDirectory() as base:
        kept = Path(base)
        if "vectors" in _asked:
            kept = _asked["vectors"] / hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:16]
        with RootDir.open(kept) as root:
            table.follow(root, headers, lambda some: [texts[header.file] for header in some])
    _encoded[kind, id(documents)] = documents, table
    return table


def fts5(documents: Sequence[SearchDocument]) -> Search:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE t USING fts5(file UNINDEXED, text, tokenize='porter unicode61')")
    database.executemany(
        "INSERT INTO t VALUES (?, ?)", [(each.file, f"{each.name}\n{each.description}\n{each.body}") for each in documents]
    )

    def search(ask: str) -> list[str]:
        terms = [term for term in re.findall(r"\w+", ask.lower()) if term not in STOP]
        match = " OR ".join(f'"{term}"' for term in dict.fromkeys(terms))
        rows = database.execute("SELECT file FROM t WHERE t MATCH ? ORDER BY rank LIMIT ?", (match, MOST)) if terms else ()
        return [row[0] for row in rows]

    return search


def bm25s_way() -> Make | None:
    try:
        import bm25s
        import Stemmer
    except ImportError:
        return None
    stemmer = Stemmer.Stemmer("english")

    def make(documents: Sequence[SearchDocument]) -> Search:
        def tokens(texts: list[str]) -> Any:
            return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)

        index = bm25s.BM25()
        index.index(tokens([f"{each.name}\n{each.description}\n{each.body}" for each in documents]), show_progress=False)

        def search(ask: str) -> list[str]:
            rows, scores = index.retrieve(tokens([ask]), k=min(MOST, len(documents)), show_progress=False)
            return [documents[int(row)].file for row, score in zip(rows[0], scores[0], strict=True) if score > 0]

        return search

    return make


def ways() -> dict[str, Make]:
    found: dict[str, Make | None] = {"FTS5": fts5, "bm25s": bm25s_way(), "words": words}
    found |= {f"{kind} alone": with_vectors(kind, alone=True) for kind in KINDS}
    found |= {f"words + {kind}": with_vectors(kind) for kind in KINDS}
    return {name: make for name, make in found.items() if make is not None}


# LoCoMo


def evidence(raw: object) -> list[str]:
    texts = [raw] if isinstance(raw, str) else list(raw or [])  # type: ignore[call-overload]
    return [f"D{int(session)}:{int(turn)}" for text in texts for session, turn in EVIDENCE.findall(text)]


def locomo(path: Path, unit: str) -> list[Store]:
    return [_store(sample, unit) for sample in json.loads(path.read_text("utf-8"))]


def _store(sample: dict[str, Any], unit: str) -> Store:
    documents, covers, turns = list[SearchDocument](), dict[str, frozenset[str]](), set[str]()
    conversation = sample["conversation"]
    for number in sorted(int(key[8:]) for key in conversation if re.fullmatch(r"session_\d+", key)):
        said = [(turn["dia_id"], _said(turn)) for turn in conversation[f"session_{number}"]]
        turns |= {turn for turn, _ in said}
        stamp = f"({conversation.get(f'session_{number}_date_time', '')}) "
        for file, text, covered in _units(sample, unit, number, said):
            documents.append(SearchDocument(file, file, "", stamp + text))
            covers[file] = frozenset(covered)
    questions = []
    for at, each in enumerate(sample["qa"]):
        if wanted := frozenset(evidence(each.get("evidence"))) & turns:
            questions.append(Question(f"{sample['sample_id']}-{at}", each["question"], wanted))
    return Store(documents, covers, questions)


def _said(turn: dict[str, Any]) -> str:
    shared = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
    return f'{turn["speaker"]} said, "{turn["text"]}"{shared}'


def _units(sample: dict[str, Any], unit: str, number: int, said: list[tuple[str, str]]) -> Iterator[tuple[str, str, list[str]]]:
    if unit == "summaries":
        yield f"S{number}", sample["session_summary"].get(f"session_{number}_summary", ""), [turn for turn, _ in said]
    elif unit == "single facts":
        for who, facts in sample["observation"].get(f"session_{number}_observation", {}).items():
            for at, (fact, source) in enumerate(facts):
                yield f"S{number}/{who}/{at}", fact, evidence(source)
    else:
        for at, (turn, text) in enumerate(said):
            yield turn, (said[at - 1][1] + "\n" if at else "") + text, [turn]


def bench_locomo(path: Path, out: TextIO | None) -> bool:
    """Print the table. Return whether each fusion finds at least as much as its better half, and the encoder as word vectors."""
    made, whole = ways(), True
    print("| LoCoMo, evidence among five | conversations 1 to 3 | the others | all | ms a question |\n|---|---|---|---|---|")
    for unit in ("summaries", "single facts", "turns with the one before"):
        stores, shares = locomo(path, unit), dict[str, float]()
        for name, make in made.items():
            taken: list[float] = []
            scores = [_score(store, make(store.documents), taken, out, f"{unit}: {name}") for store in stores]
            parts = (scores[:CHOSEN_WITH], scores[CHOSEN_WITH:], scores)
            means = [statistics.fmean(x for part in some for x in part) for some in parts]
            row = " | ".join(f"{100 * mean:.1f}" for mean in means)
            print(f"| {unit}: {name} | {row} | {1000 * statistics.median(taken):.2f} |", flush=True)
            shares[name] = means[-1]
        for kind, less in (
            ("static", "words"),
            ("static", "static alone"),
            ("encoder", "encoder alone"),
            ("encoder", "words + static"),
        ):
            if shares.get(f"words + {kind}", 1.0) < shares.get(less, 0.0):
                whole = False
                print(f"words + {kind} finds less than {less} ({unit})", flush=True)
    return whole


def _score(store: Store, search: Search, taken: list[float], out: TextIO | None, way: str) -> list[float]:
    scores = []
    for question in store.questions:
        began = time.perf_counter()
        found = search(question.ask)
        taken.append(time.perf_counter() - began)
        covered = frozenset[str]().union(*(store.covers[file] for file in found))
        scores.append(len(question.wanted & covered) / len(question.wanted))
        write(out, way=way, id=question.id, wanted=sorted(question.wanted), found=found, score=scores[-1])
    return scores


# Our own set


def bench_own(out: TextIO | None) -> None:
    data = json.loads((HERE / "find_corpus.json").read_text("utf-8"))
    memories = [SearchDocument(each["file"], each["name"], each["description"], each["body"]) for each in data["memories"]]
    pages = sorted((HERE.parent / "docs").rglob("*.md"))
    long = [
        SearchDocument(page.relative_to(HERE.parent).as_posix(), page.stem, "", page.read_text("utf-8")[: 16 << 10])
        for page in pages
    ]
    kinds = list(dict.fromkeys(each["kind"] for each in data["questions"]))
    print("\n| our own set, wanted among five (mean reciprocal rank) | " + " | ".join(kinds) + " | all | held out |")
    print("|---|" + "---|" * (len(kinds) + 2))
    for name, make in ways().items():
        searches = {"memories": make(memories), "long": make(long)}
        rows = [(each, searches["long" if each["kind"] == "long" else "memories"](each["ask"])) for each in data["questions"]]
        for each, found in rows:
            write(out, way=f"own: {name}", id=each["ask"], wanted=[each["want"]], found=found, score=float(each["want"] in found))
        sets = [[row for row in rows if row[0]["kind"] == kind] for kind in kinds]
        cells = [_own_cell(some) for some in (*sets, rows, [row for row in rows if row[0]["held_out"]])]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def _own_cell(rows: Sequence[tuple[dict[str, Any], list[str]]]) -> str:
    ranks = [1 / (found.index(each["want"]) + 1) if each["want"] in found else 0.0 for each, found in rows]
    return f"{sum(rank > 0 for rank in ranks)} of {len(ranks)} ({statistics.fmean(ranks):.2f})"


def write(out: TextIO | None, **row: Any) -> None:
    if out is not None:
        out.write(json.dumps(row, ensure_ascii=False) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", nargs="+", choices=["locomo", "own"], default=["locomo", "own"])
    parser.add_argument("--vectors", type=Path)
    asked = parser.parse_args()
    keep_vectors(asked.vectors)
    out = asked.out.open("w", encoding="utf-8") if asked.out is not None else None
    whole = "locomo" not in asked.only or asked.locomo is None or bench_locomo(asked.locomo, out)
    if "own" in asked.only:
        bench_own(out)
    if out is not None:
        out.close()
    if not whole:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
