"""Sentences as values: English as a string, the same sentence in another language from its template."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import msgspec
import pytest

from lamina.language import text as module
from lamina.language.text import Text, encodable, joined, message, pack, render, unpack


@pytest.fixture(autouse=True)
def catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    words = {
        "{n} turn|{n} turns": "{n} 轮",
        "Undo {turns} of {who}.": "撤销 {who} 的 {turns}。",
        "you": "你",
        "Open##a folder": "打开文件夹",
        "Open##not done": "未完成",
    }
    monkeypatch.setattr(module, "_catalogue", lambda: words)


def test_a_text_is_its_english_sentence() -> None:
    text = Text("Undo {turns} of {who}.", turns=Text("{n} turn|{n} turns", n=1_200), who="you")
    assert text == "Undo 1,200 turns of you."
    assert json.dumps([text]) == '["Undo 1,200 turns of you."]'
    assert type(str(text)) is str


def test_a_text_is_rendered_with_its_values() -> None:
    text = Text("Undo {turns} of {who}.", turns=Text("{n} turn|{n} turns", n=1), who=Text("you"))
    assert render(text, "en") == "Undo 1 turn of you."
    assert render(text, "zh") == "撤销 你 的 1 轮。"


def test_a_missing_translation_shows_english_and_a_plain_string_is_looked_up_whole() -> None:
    assert render(Text("Nothing for {n} {who}.", n=2, who="b"), "zh") == "Nothing for 2 b."
    assert render("you", "zh") == "你"
    assert render("you {and} me", "zh") == "you {and} me"


def test_one_english_text_with_two_meanings_has_two_translations() -> None:
    assert (Text("Open##a folder"), Text("Open##not done")) == ("Open", "Open")
    assert (render(Text("Open##a folder"), "zh"), render(Text("Open##not done"), "zh")) == ("打开文件夹", "未完成")
    assert render(Text("Open##unknown"), "zh") == "Open"


def test_a_value_with_braces_is_shown_as_it_is() -> None:
    assert render(Text("Undo {turns} of {who}.", turns="{x}", who="%s|##"), "zh") == "撤销 %s|## 的 {x}。"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda text: pickle.loads(pickle.dumps(text))])
def test_a_copy_keeps_the_template(copied: object) -> None:
    assert callable(copied)
    text = copied(Text("{n} turn|{n} turns", n=3))
    assert (text, render(text, "zh")) == ("3 turns", "3 轮")


def test_a_cache_gives_texts_back_with_their_values() -> None:
    text = Text("Undo {turns} of {who}.", turns=Text("{n} turn|{n} turns", n=2), who=Path("you"))
    packed = msgspec.json.encode({"text": text}, enc_hook=pack)
    again = msgspec.json.decode(packed, type=dict[str, Text], dec_hook=unpack)["text"]
    assert (again, render(again, "zh")) == ("Undo 2 turns of you.", "撤销 you 的 2 轮。")
    assert msgspec.json.decode(b'"Kept before."', type=Text, dec_hook=unpack) == "Kept before."
    assert msgspec.json.encode([text], enc_hook=encodable) == b'["Undo 2 turns of you."]'


def test_an_error_says_its_own_text_and_parts_are_joined() -> None:
    assert render(joined([Text("you"), "b", Text("you")], Text("{first}; {rest}")), "zh") == "你; b; 你"
    assert joined([]) == ""
    assert message(ValueError(Text("you"))).template == "you"
    assert message(PermissionError(13, "x", "/a")) == "/a: permission denied"
