"""The language of a text, and the labels of a memory in it."""

from __future__ import annotations

import pytest

from lamina.language.detection import HOW, LABELS, ON, WHY, labels_for, language_of, without_common_words

TEXTS = {
    "Der Code-Freeze beginnt nächsten Montag.": "de",
    "Mach die Schrift im Footer kleiner": "de",
    "Il y a deux semaines, on a changé de banque.": "fr",
    "Évite les abréviations": "fr",
    "N'utilise pas de singletons": "fr",
    "Las alertas llegan al canal #ops": "es",
    "¿Qué hora es?": "es",
    "No Friday deploys, thanks": "en",
    "Ship it to Los Angeles in the morning": "en",
    "pnpm": "en",
    "回答要简短": "zh",
    "短く答えて": "ja",
    "짧게 답해 줘": "ko",
}


@pytest.mark.spec("S7")
def test_the_common_words_or_the_script_tell_the_language() -> None:
    assert {text: language_of(text) for text in TEXTS} == TEXTS
    assert {labels_for(text).why for text in TEXTS} == {labels.why for labels in LABELS.values()}


def test_labels_of_every_language_are_read_again() -> None:
    for labels in LABELS.values():
        assert WHY.search(f"{labels.why}so it is")
        assert HOW.match(f"{labels.how}so it goes")
        assert ON.match(labels.on.format(on="2026-05-04"))


def test_common_words_are_left_out_except_negative_ones() -> None:
    texts = {
        "Das Release ist nicht am Freitag": "Release nicht Freitag",
        "La démo est sans Camille": "démo sans Camille",
        "El lanzamiento no es el lunes": "lanzamiento no lunes",
        "The release is on Friday": "The release is on Friday",
        "Soy yo": "Soy yo",
    }
    assert {text: " ".join(without_common_words(text).split()) for text in texts} == texts
