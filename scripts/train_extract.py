"""Train the judge that finds sentences worth keeping without a model, and write its weights into the package.

    python scripts/train_extract.py             # train, and write src/lamina/layers/l5_extract/weights.bin (15 s)
    python scripts/train_extract.py --validate # cross-validate on the corpus, and print recall and precision per threshold

`bench/extract_corpus.tsv` has the sentences: author, label, language and text, one sentence a line, and an empty line after each utterance.
The labels are the four types of a memory, `reason` (the reason for a sentence beside it) and `none`. "strangers" wrote as people talk and
had not seen the program; "ours" are short sentences that its authors wrote to tell look-alikes apart; "clauses" are strangers' sentences,
divided into a rule and its reason. Cross-validation keeps the sentences of an utterance together, leaves the clauses out, and counts the
strangers' only.

The result is a softmax regression over hashed features, six small integers for each. The same corpus gives the same weights.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lamina.layers.l5_extract.features import BUCKETS, features
from lamina.layers.l5_extract.judge import FIRST_KIND, LABELS, MOST, WEIGHTS
from lamina.layers.l5_extract.signals import is_vetoed

ROOT = Path(__file__).resolve().parents[1]
CORPUS = ROOT / "bench" / "extract_corpus.tsv"
# A sentence is kept if the odds that it is worth keeping are above e to this power. Chosen by `--validate`.
THRESHOLD = 1.15
# How much a wrong label weighs against large weights; when the search ends.
STRENGTH = 30.0
STEPS, MEMORY, PRECISION = 300, 10, 1e-7
FOLDS = 5
# The mix of utterances in the tests of strangers, for which precision is printed.
KEPT_SHARE = 32 / 60

Array = npt.NDArray[np.float64]


class Sentence(NamedTuple):
    utterance: int
    author: str
    label: int  # place in LABELS
    buckets: npt.NDArray[np.int64]
    values: Array
    vetoed: bool


def sentences(text: str) -> list[Sentence]:
    found = []
    for number, block in enumerate(text.strip().split("\n\n")):
        lines = [line.split("\t") for line in block.splitlines()]
        texts = [said for *_, said in lines]
        for at, (author, label, _, said) in enumerate(lines):
            row = features(texts, at)
            buckets, values = np.array(list(row)), np.array(list(row.values()))
            found.append(Sentence(number, author, LABELS.index(label), buckets, values, is_vetoed(said)))
    return found


def train(rows: Sequence[Sentence]) -> Array:
    """Return the weights with the least loss: the surprise over the labels, and the size of the weights."""
    buckets, values = np.concatenate([row.buckets for row in rows]), np.concatenate([row.values for row in rows])
    sizes = np.array([len(row.buckets) for row in rows])
    owner, starts = np.repeat(np.arange(len(rows)), sizes), np.cumsum(sizes) - sizes
    wanted = np.eye(len(LABELS))[[row.label for row in rows]]

    def loss(weights: Array) -> tuple[float, Array]:
        scores = np.add.reduceat(values[:, None] * weights[buckets], starts)
        scores -= scores.max(axis=1, keepdims=True)
        total = np.exp(scores).sum(axis=1, keepdims=True)
        error = (np.exp(scores) / total - wanted)[owner] * values[:, None]
        slope = np.stack([np.bincount(buckets, column, BUCKETS) for column in error.T], axis=1)
        surprise = float(np.log(total).sum() - (scores * wanted).sum())
        return STRENGTH * surprise + float((weights * weights).sum()) / 2, STRENGTH * slope + weights

    return minimize(loss, np.zeros((BUCKETS, len(LABELS))))


def minimize(loss: Callable[[Array], tuple[float, Array]], at: Array) -> Array:
    """Follow the slope, corrected by how it changed in the last steps (L-BFGS)."""
    value, slope = loss(at)
    past = deque[tuple[Array, Array]](maxlen=MEMORY)
    for _ in range(STEPS):
        way = -_corrected(slope, past)
        gain, step = float((slope * way).sum()), 1.0 if past else 1 / float(np.abs(slope).sum())
        while (found := loss(at + step * way))[0] > value + 1e-4 * step * gain:
            step /= 2
        past.append((step * way, found[1] - slope))
        at, (before, value), slope = at + step * way, (value, found[0]), found[1]
        if before - value < PRECISION * value:
            break
    return at


def _corrected(slope: Array, past: Sequence[tuple[Array, Array]]) -> Array:
    shares = []
    for moved, changed in reversed(past):
        share = float((moved * slope).sum() / (moved * changed).sum())
        slope = slope - share * changed
        shares.append(share)
    if past:
        moved, changed = past[-1]
        slope = slope * float((moved * changed).sum() / (changed * changed).sum())
    for (moved, changed), share in zip(past, reversed(shares), strict=True):
        slope = slope + (share - float((changed * slope).sum() / (moved * changed).sum())) * moved
    return slope


def margins(weights: Array, rows: Sequence[Sentence]) -> tuple[Array, npt.NDArray[np.int64]]:
    """Return the log odds of each sentence to be worth keeping, and its likeliest type."""
    scores = np.array([(weights[row.buckets] * row.values[:, None]).sum(axis=0) for row in rows])
    rest, kinds = scores[:, :FIRST_KIND], scores[:, FIRST_KIND:]
    found = np.logaddexp.reduce(kinds, axis=1) - np.logaddexp.reduce(rest, axis=1)
    found[np.array([row.vetoed for row in rows])] = -np.inf
    return found, kinds.argmax(axis=1) + FIRST_KIND


def packed(weights: Array) -> tuple[npt.NDArray[np.int8], float]:
    """Return the weights as small integers, and the largest weight. The integers are roots: most weights are small."""
    largest = float(np.abs(weights).max())
    return np.rint(np.sign(weights) * np.sqrt(np.abs(weights) / largest) * MOST).astype(np.int8), largest


def unpacked(small: npt.NDArray[np.int8], largest: float) -> Array:
    roots = small.astype(np.float64) / MOST
    return roots * np.abs(roots) * largest


def cross_validate(rows: Sequence[Sentence]) -> None:
    count = rows[-1].utterance + 1
    fold = [zlib.crc32(str(number).encode()) % FOLDS for number in range(count)]
    best = dict[int, float]()
    kept = dict[int, bool]()
    types = [0, 0]
    for each in range(FOLDS):
        weights = train([row for row in rows if fold[row.utterance] != each and row.author != "clauses"])
        tested = [row for row in rows if fold[row.utterance] == each and row.author == "strangers"]
        scores, likeliest = margins(unpacked(*packed(weights)), tested)
        for row, score, label in zip(tested, scores, likeliest, strict=True):
            best[row.utterance] = max(best.get(row.utterance, -np.inf), score)
            kept[row.utterance] = kept.get(row.utterance, False) or row.label >= FIRST_KIND
            if row.label >= FIRST_KIND and score > THRESHOLD:
                types[0] += label == row.label
                types[1] += 1
    right = np.array([best[number] for number in best if kept[number]])
    wrong = np.array([best[number] for number in best if not kept[number]])
    for threshold in np.arange(-0.5, 3, 0.25):
        recall, lost = float((right > threshold).mean()), float((wrong > threshold).mean())
        hits = recall * KEPT_SHARE
        print(f"{threshold:5.2f}  recall {recall:.1%}  precision {hits / (hits + lost * (1 - KEPT_SHARE)):.1%}")
    print(f"{types[0]} of {types[1]} types right at {THRESHOLD}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--validate", action="store_true", help="cross-validate, and write nothing")
    options = parser.parse_args()
    text = CORPUS.read_text(encoding="utf-8")
    rows = sentences(text)
    if options.validate:
        cross_validate(rows)
        return
    small, largest = packed(train(rows))
    head = {"corpus": zlib.crc32(text.encode()), "largest": largest, "threshold": THRESHOLD}
    WEIGHTS.write_bytes(json.dumps(head).encode() + b"\n" + zlib.compress(small.tobytes(), 9))
    print(f"{len(rows):,} sentences, {WEIGHTS.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
