"""The words of the page in English and Chinese: one table, in a module for each part of the page.

A key maps to the English and the Chinese text. `{name}` stands for a value. A text with a count has two English forms, split by a
bar: `{n} turn|{n} turns`. Numbers in values are formatted by the caller, except `n`, which also chooses the form.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from starlette.requests import Request

from . import dream, frame, inbox, memory, overview, replay, search, session, settings
from .told import in_chinese

Language: TypeAlias = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
COOKIE = "lamina-lang"
PARTS = (
    dream.WORDS,
    frame.WORDS,
    inbox.WORDS,
    memory.WORDS,
    overview.WORDS,
    replay.WORDS,
    search.WORDS,
    session.WORDS,
    settings.WORDS,
)
TABLE: dict[str, tuple[str, str]] = {key: texts for part in PARTS for key, texts in part.items()}


def say(lang: Language, key: str, **values: Any) -> str:
    """Return the text of a key in a language."""
    text = TABLE[key][LANGUAGES.index(lang)]
    number = values.get("n")
    if isinstance(number, int):
        one, _, many = text.partition("|")
        text = (one if number == 1 else many) if many else one
        values["n"] = f"{number:,}"
    return text.format_map(values) if values else text


class Words:
    """The texts of one language. Call it with a key: `words("session.turns", n=3)`."""

    __slots__ = ("lang",)

    def __init__(self, lang: Language) -> None:
        self.lang: Language = lang

    def __call__(self, key: str, **values: Any) -> str:
        return say(self.lang, key, **values)

    def told(self, sentence: str) -> str:
        """Return a sentence of a lower package in the language of the page."""
        return in_chinese(sentence) if self.lang == "zh" else sentence

    def for_scripts(self) -> dict[str, str]:
        """Return the texts that the scripts of the page show."""
        at = LANGUAGES.index(self.lang)
        return {key.removeprefix("js."): texts[at] for key, texts in TABLE.items() if key.startswith("js.")}


def words_for(request: Request) -> Words:
    """Return the words in the language of a request: `?lang=`, the cookie, or what the browser prefers."""
    accepted = [part.split(";")[0].strip().lower()[:2] for part in request.headers.get("accept-language", "").split(",")]
    asked = [request.query_params.get("lang", ""), request.cookies.get(COOKIE, ""), *accepted]
    for lang in asked:
        if lang in LANGUAGES:
            return Words(lang)
    return Words("en")
