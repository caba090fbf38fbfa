"""Train the judges that find sentences worth keeping and their reasons without a model, and write their weights into the package.

    python scripts/train_extract.py             # train, and write keep.bin and reason.bin to src/lamina/providers/offline/judge (20 s)
    python scripts/train_extract.py --validate # leave out one part after the other, and print what is kept of it per threshold (15 min)

`bench/extract_corpus.tsv` has sentences: author, label, language and text, one sentence a line, and an empty line after each utterance.
The labels are the four types of a memory, `reason` (the reason for a sentence beside it) and `none`. "strangers" wrote as people talk and
had not seen the program; "ours" are short sentences that its authors wrote to tell look-alikes apart; "clauses" are strangers' sentences,
divided into a rule and its reason; "more" and "wide" were written later by authors of the program, "wide" about many subjects. The other
authors are parts of `bench/extract_said.tsv`, whose utterances are divided into sentences here.

`bench/extract_reasons.tsv` has pairs: a rule, its type (or `none`), and the text beside it, which is its reason or something else. A
pair trains the judge of reasons in several ways to join the two. A rule with its reason also trains the judge of what to keep.

Cross-validation leaves out one of those parts, trains on everything else, and counts what is kept of the utterances of the part. The same
corpus gives the same weights.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from regression import Array, packed, train

from lamina.layers.l5_extract.offline import UserText, plan_memories
from lamina.layers.l5_extract.plan import ExtractDirective
from lamina.providers.offline.judge import keep
from lamina.providers.offline.judge import reason as reasons
from lamina.providers.offline.judge.features import BUCKETS, REASON_BUCKETS, features, pair_features
from lamina.providers.offline.judge.keep import KINDS, LABELS
from lamina.providers.offline.judge.weights import Weights, read_weights

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "bench"))
import extract_said  # noqa: E402

CORPUS = ROOT / "bench" / "extract_corpus.tsv"
PAIRS = ROOT / "bench" / "extract_reasons.tsv"
# A sentence is kept if the odds of its likeliest type are above e to this power, and the same for a reason. Chosen by `--validate`.
THRESHOLD = 1.6
REASON_THRESHOLD = -0.5
THRESHOLDS = (0.8, 1.2, 1.4, 1.6, 1.8, 2.0, 2.4)
FOLDS = 5
# The ways to join a pair, for those that do not say. A bracket is always said.
LINKS = ("comma", "dash", "sentence")
FULL_STOPS = {"zh": "。", "ja": "。"}
COMMAS = {"zh": "，", "ja": "、"}


class Sentence(NamedTuple):
    utterance: int
    author: str
    label: int  # place in LABELS
    found: Mapping[int, float]


class Pair(NamedTuple):
    utterance: int
    author: str
    is_reason: bool
    link: str
    found: Mapping[int, float]


class Row(NamedTuple):
    """A line of `extract_reasons.tsv`."""

    language: str
    keep: str
    link: str
    is_: str
    rule: str
    beside: str


def checksum() -> int:
    return zlib.crc32(CORPUS.read_bytes() + PAIRS.read_bytes())


def utterances() -> list[list[list[str]]]:
    blocks = CORPUS.read_text(encoding="utf-8").strip().split("\n\n")
    return [[line.split("\t") for line in block.splitlines()] for block in blocks]


def rows() -> list[Row]:
    with PAIRS.open(encoding="utf-8", newline="") as file:
        return [Row(*line) for line in list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]]


def sentences() -> list[Sentence]:
    spoken = (_spoken(row) for row in rows() if row.link == "any" and row.is_ == "reason")
    return [found for number, block in enumerate([*utterances(), *spoken]) for found in _sentences(number, block)]


def _sentences(number: int, block: Sequence[Sequence[str]]) -> Iterator[Sentence]:
    texts = [said for *_, said in block]
    for at, (author, label, *_) in enumerate(block):
        yield Sentence(number, author, LABELS.index(label), features(texts, at))


def _spoken(row: Row) -> list[list[str]]:
    """Return an utterance with a rule and its reason, in one sentence or in two."""
    stop, comma = FULL_STOPS.get(row.language, "."), COMMAS.get(row.language, ", ")
    if zlib.crc32(row.rule.encode()) % 2:
        return [["pairs", row.keep, row.language, f"{row.rule}{comma}{row.beside}{stop}"]]
    beside = "none" if row.keep == "none" else "reason"
    return [["pairs", row.keep, row.language, row.rule + stop], ["pairs", beside, row.language, row.beside + stop]]


def pairs() -> list[Pair]:
    blocks = utterances()
    found = [pair for number, block in enumerate(blocks) for pair in _corpus_pairs(number, block)]
    return found + [pair for number, row in enumerate(rows(), len(blocks)) if row.keep != "none" for pair in _joined(number, row)]


def _corpus_pairs(number: int, block: Sequence[Sequence[str]]) -> Iterator[Pair]:
    for (author, label, _, rule), (_, other, _, beside) in pairwise(block):
        if label in KINDS:
            link = "comma" if author == "clauses" else "sentence"
            yield Pair(number, author, other == "reason", link, pair_features(rule, beside, link, label))


def _joined(number: int, row: Row) -> Iterator[Pair]:
    def pair(rule: str, why: str, link: str, *, is_reason: bool) -> Pair:
        return Pair(number, "pairs", is_reason, link, pair_features(rule, why, link, row.keep))

    is_reason = row.is_ == "reason"
    for link in LINKS if row.link == "any" else (row.link,):
        yield pair(row.rule, row.beside, link, is_reason=is_reason)
    if row.link == "any":  # the other order: a reason may come first, and a rule is no reason
        if is_reason:
            yield pair(row.rule, row.beside, "first", is_reason=True)
        yield pair(row.beside, row.rule, "first", is_reason=False)
        yield pair(row.beside, row.rule, "comma", is_reason=False)


def train_keep(found: Sequence[Sentence]) -> Array:
    return train([each.found for each in found], [each.label for each in found], len(LABELS), BUCKETS)


def train_reason(found: Sequence[Pair]) -> Array:
    weights = train([each.found for each in found], [int(each.is_reason) for each in found], 2, REASON_BUCKETS)
    return weights[:, 1:] - weights[:, :1]


def scores(weights: Array, found: Mapping[int, float]) -> Array:
    return (weights[np.array(list(found))] * np.array(list(found.values()))[:, None]).sum(axis=0)


def fold(utterance: int) -> int:
    return zlib.crc32(str(utterance).encode()) % FOLDS


def validate_keep(found: Sequence[Sentence]) -> None:
    asked = ExtractDirective(1, "2026-05-04", "m", "", "")
    said = extract_said.utterances()
    scores = dict.fromkeys(THRESHOLDS, extract_said.Score())
    for part in dict.fromkeys(each.part for each in said):
        others = [one for one in found if one.author != part]
        if len(others) == len(found):
            continue  # not in the corpus
        weights = quantized(train_keep(others))
        for threshold in THRESHOLDS:
            judge = weights._replace(threshold=threshold)
            with patch.object(keep, "weights", lambda judge=judge: judge):
                for each in (each for each in said if each.part == part):
                    plans = plan_memories(asked, [UserText(each.said, "")])
                    kept = [extract_said.Kept(plan.note.type, plan.note.why or None, plan.path) for plan in plans]
                    scores[threshold] = scores[threshold].plus(each, kept)
        print(f"without {part}")
    for threshold, score in scores.items():
        print(f"{threshold:4.1f}  {score}")


def quantized(weights: Array) -> Weights:
    """Return the weights as the judge reads them."""
    with tempfile.TemporaryDirectory() as directory:
        write(path := Path(directory) / "keep.bin", weights, THRESHOLD)
        return read_weights(path)


def validate_reason(found: Sequence[Pair]) -> None:
    odds = list[tuple[bool, float]]()
    for each in range(FOLDS):
        weights = train_reason([one for one in found if fold(one.utterance) != each])
        tested = [one for one in found if fold(one.utterance) == each and one.author in ("strangers", "clauses")]
        odds += [(one.is_reason, float(scores(weights, one.found)[0])) for one in tested]
    for threshold in np.arange(-1, 2, 0.25):
        right = sum(is_reason and score > threshold for is_reason, score in odds)
        all_, kept = sum(is_reason for is_reason, _ in odds), sum(score > threshold for _, score in odds)
        print(f"{threshold:5.2f}  {right} of {all_} reasons, {kept - right} false")


def write(path: Path, weights: Array, threshold: float) -> None:
    small, largest = packed(weights)
    head = {"corpus": checksum(), "largest": largest, "threshold": threshold}
    path.write_bytes(json.dumps(head).encode() + b"\n" + zlib.compress(small.tobytes(), 9))
    print(f"{path.name}: {path.stat().st_size:,} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--validate", action="store_true", help="cross-validate, and write nothing")
    options = parser.parse_args()
    if options.validate:
        validate_keep(sentences())
        validate_reason(pairs())
        return
    write(keep.WEIGHTS, train_keep(sentences()), THRESHOLD)
    write(reasons.WEIGHTS, train_reason(pairs()), REASON_THRESHOLD)


if __name__ == "__main__":
    main()
