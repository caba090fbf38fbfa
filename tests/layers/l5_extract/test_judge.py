"""The learned judge: its weights belong to the corpus, and it finds what strangers said, without what they did not mean."""

from __future__ import annotations

import csv
import importlib
import zlib
from pathlib import Path

import pytest

from lamina.layers.l5_extract.offline import UserText, plan_memories
from lamina.layers.l5_extract.plan import ExtractDirective
from lamina.layers.l5_extract.signals import find_signals
from lamina.providers.offline.judge import keep, reason

ROOT = Path(__file__).parents[3]
CORPUS = ROOT / "bench" / "extract_corpus.tsv"
PAIRS = ROOT / "bench" / "extract_reasons.tsv"
SAID = ROOT / "bench" / "extract_said.tsv"
ASKED = ExtractDirective(1, "2026-05-04", "m", "", "")


def test_the_weights_were_trained_on_the_corpus_as_it_is() -> None:
    checksum = zlib.crc32(CORPUS.read_bytes() + PAIRS.read_bytes())
    assert keep.weights().corpus == reason.weights().corpus == checksum, "run python scripts/train_extract.py"
    assert keep.WEIGHTS.stat().st_size + reason.WEIGHTS.stat().st_size < 250_000


@pytest.mark.exhaustive
def test_training_again_gives_the_same_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    script, regression = importlib.import_module("train_extract"), importlib.import_module("regression")
    for judge, trained in ((keep, script.train_keep(script.sentences())), (reason, script.train_reason(script.pairs()))):
        small, _ = regression.packed(trained)
        pairs = [*zip(small.ravel().tolist(), judge.weights().rows, strict=True)]
        # Another processor may add numbers in another order and end the search a step apart: one weight in 2,000 was off by more
        # than one. Ten sentences fewer change one in 55.
        assert sum(abs(new - old) > 1 for new, old in pairs) <= len(pairs) / 500


@pytest.mark.spec("O1", "S7", "S8")
def test_the_judge_holds_on_utterances_of_strangers() -> None:
    with SAID.open(encoding="utf-8", newline="") as file:
        rows = [
            row
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            if row["part"] in ("stranger-13", "stranger-14")
        ]
    kept = [row["keep"] for row in rows if any(True for _ in find_signals(row["said"]))]
    right = sum(keep != "-" for keep in kept)
    assert right / sum(row["keep"] != "-" for row in rows) >= 0.7
    assert right / len(kept) >= 0.97


@pytest.mark.spec("O1", "S7")
@pytest.mark.parametrize(
    ("said", "kind", "rule", "why"),
    [
        (
            "Don't recap your changes after each answer, I can read the diff myself.",
            "feedback",
            "Don't recap your changes after each answer",
            "I can read the diff myself.",
        ),
        ("变量名别用缩写，新同事看不懂。", "feedback", "变量名别用缩写", "新同事看不懂。"),
        (
            "Ne mets jamais d'abréviations dans les titres, parce que nos clients ne les comprennent pas.",
            "feedback",
            "Ne mets jamais d'abréviations dans les titres",
            "nos clients ne les comprennent pas.",
        ),
        ("From now on, always lint before you push.", "feedback", "From now on, always lint before you push.", ""),
        ("Soy enfermera y programo los fines de semana.", "user", "Soy enfermera y programo los fines de semana.", ""),
        ("Fix the header. By the way I'm a nurse, code is new to me.", "user", "By the way I'm a nurse, code is new to me.", ""),
    ],
)  # fmt: skip
def test_a_clause_that_gives_the_reason_becomes_the_why(said: str, kind: str, rule: str, why: str) -> None:
    [plan] = plan_memories(ASKED, [UserText(said, "")])
    assert (plan.note.type, plan.note.rule, plan.note.why) == (kind, rule, why)
