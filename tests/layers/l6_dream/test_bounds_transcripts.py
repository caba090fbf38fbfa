"""Narrow searches in transcripts: the last hits of a word, never a whole file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.layers.l6_dream.bounds import AROUND, MOST_HITS, search_transcripts


def said(place: Path, name: str, lines: list[str], seconds: int) -> None:
    place.mkdir(exist_ok=True)
    path = place / f"{name}.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    os.utime(path, (seconds, seconds))


@pytest.mark.spec("D3")
def test_the_last_hits_are_shown_oldest_first(tmp_path: Path) -> None:
    said(tmp_path, "older", [f"older {number}: the Importer" for number in range(40)], 100)
    said(tmp_path, "newer", [f"newer {number}: the importer" for number in range(30)], 200)
    hits = search_transcripts([tmp_path], "IMPORTER")
    assert len(hits) == MOST_HITS
    assert [hit.split(":")[0] for hit in hits] == ["older"] * 20 + ["newer"] * 30
    assert hits[0] == "older:21: older 20: the Importer"
    assert hits[-1] == "newer:30: newer 29: the importer"


@pytest.mark.spec("D3", "Z7")
def test_a_hit_shows_what_stands_around_it_and_no_more(tmp_path: Path) -> None:
    said(tmp_path, "one", ["x" * 10_000 + " needle " + "y" * 10_000], 100)
    [hit] = search_transcripts([tmp_path], "needle")
    assert "needle" in hit
    assert len(hit) <= len("one:1: ") + 2 * AROUND + len("needle")


@pytest.mark.spec("D3")
def test_a_term_is_taken_as_it_is(tmp_path: Path) -> None:
    said(tmp_path, "one", ["aaaa", "a.*b", '"(a+)+$"'], 100)
    assert search_transcripts([tmp_path], "a.*b") == ["one:2: a.*b"]
    assert search_transcripts([tmp_path], "(a+)+$") == ['one:3: "(a+)+$"']
    assert search_transcripts([tmp_path], "zzz") == []


@pytest.mark.spec("D3")
def test_what_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_bytes(b"\xff\xfe importer \xff\n")
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "bad.jsonl")
    assert [hit.split(":")[0] for hit in search_transcripts([tmp_path, tmp_path / "gone"], "importer")] == ["bad"]
