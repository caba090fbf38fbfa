"""Texts of any length: the work between two pauses is bounded, words at both ends are found, and no part of a secret is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from lamina.disk.regular_file import stamp
from lamina.history import catalogue, scan
from lamina.history.catalogue import Catalogue
from lamina.history.places import SourceFile
from lamina.history.scan import MOST_CHARS, Scan, ScannedTurn, shorten
from lamina.memory.store.secrets import RedactedText, redact

from .agents import claude_answer, claude_user, said, write

PROSE = "The order is rounded once, and the token of the sandbox is in tax.py. "
KEY = "-----BEGIN RSA PRIVATE KEY-----\n"
KEY_END = "-----END RSA PRIVATE KEY-----\n"
VALUE = "tR4v3rs3" * 10_000
# More than the characters of both ends that are looked at.
LONG = 50_000


def test_of_a_long_text_only_both_ends_are_searched_for_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = list[int]()

    def noted(text: str, **options: Any) -> RedactedText:
        searched.append(len(text))
        return redact(text, **options)

    monkeypatch.setattr(scan, "redact", noted)
    turns = list[ScannedTurn]()
    for text in (f"aardvark {PROSE * 10_000} zebra", "x" * 700_000):
        Scan().said(turns, "assistant", text, "")
        assert sum(searched) <= 4 * MOST_CHARS
        searched.clear()
    assert (turns[0].text[:8], turns[0].text[-5:]) == ("aardvark", "zebra")


@pytest.mark.parametrize("language", ["", "数据库的设置。" * 20])
def test_both_ends_are_as_if_the_whole_text_was_searched(language: str) -> None:
    secrets = f'password="tR4v3rs3!x" {PROSE} sk-ant-{"a1b2" * 10}\n{PROSE * 9}{KEY}{"MIIEpQ" * 99}\n{KEY_END}'
    text = (language + (secrets + PROSE * 30) * 40).strip()
    assert len(text) > LONG
    clean, half = redact(text).text, MOST_CHARS // 2
    beginning, _, end = shorten(text).partition("\n…\n")
    assert clean.startswith(beginning)
    assert half - 50 < len(beginning) <= half
    assert end == clean[-half:]


@pytest.mark.parametrize(
    "text",
    [
        f"{PROSE * 900}password={VALUE}",
        f"{PROSE * 900}password={VALUE} zebra",
        f'{PROSE * 900}"key-data": "{VALUE[:11_900]}" zebra',
        f"password={VALUE} zebra",
        f"{PROSE * 900}{KEY}{VALUE}\n{KEY_END} zebra",
        f"{PROSE * 900}{KEY}{(VALUE[:64] + chr(10)) * 900}{KEY_END} zebra",
        f"{PROSE * 900}{KEY}{(VALUE[:64] + chr(10)) * 900}",
        f"{KEY}{(VALUE[:64] + chr(10)) * 900}{KEY_END} zebra",
    ],
)
def test_no_part_of_a_long_secret_stays(text: str) -> None:
    assert len(text) > LONG
    short = shorten(text)
    assert "v3rs3" not in short
    assert ("zebra" in short) == ("zebra" in text)


def test_a_blob_without_words_is_cut_at_its_end_and_the_words_behind_it_stay() -> None:
    assert shorten("picture " + "/9j+" * LONG + " zebra").endswith("\n…\n zebra")


def test_adding_and_removing_long_texts_pauses_after_few_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    long = (PROSE * 200)[: MOST_CHARS - 1]
    rows = [row for number in range(1, 21) for row in (claude_user(number, long), *claude_answer(number, said(long)))]
    path = write(tmp_path / "a.jsonl", rows)
    since, most = 0, 0
    indexed_words = catalogue.indexed_words

    def counted(text: str, *more: str) -> tuple[str, str, str]:
        nonlocal since, most
        since += len(text)
        most = max(most, since)
        return indexed_words(text, *more)

    def pause() -> None:
        nonlocal since
        since = 0

    monkeypatch.setattr(catalogue, "indexed_words", counted)
    index = Catalogue(None)
    index.pause = pause
    found = os.stat(path)
    for files in ([SourceFile("claude-code", str(path), stamp(found))], []):
        index.follow("session", files)
        assert 0 < most <= 4 * MOST_CHARS
        since, most = 0, 0
    index.close()
