"""The words of the page in English and Chinese: one table, in a module for each part of the page.

A key maps to the English and the Chinese text. `{name}` stands for a value. A text with a count has two English forms, split by a
bar: `{n} turn|{n} turns`. Numbers in values are formatted by the caller, except `n`, which also chooses the form. A text about money has
another one for users with a subscription, with the key `overview.money@subscription`.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from starlette.requests import Request

from ...core.settings import Billing
from . import dream, frame, inbox, memory, overview, replay, search, session, settings, subscription
from .told import error_in_chinese, in_chinese

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
    subscription.WORDS,
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
    """The texts of one language and one way to pay. Call it with a key: `words("session.turns", n=3)`."""

    __slots__ = ("billing", "lang")

    def __init__(self, lang: Language, billing: Billing = "list") -> None:
        self.lang: Language = lang
        self.billing: Billing = billing

    def __call__(self, key: str, **values: Any) -> str:
        return say(self.lang, self._key(key), **values)

    def _key(self, key: str) -> str:
        return other if (other := f"{key}@{self.billing}") in TABLE else key

    def told(self, sentence: str) -> str:
        """Return a sentence of a lower package in the language of the page."""
        return in_chinese(sentence) if self.lang == "zh" else sentence

    def error(self, error: Exception) -> str:
        """Return the sentence of an error in the language of the page."""
        return error_in_chinese(error) if self.lang == "zh" else str(error)

    def for_scripts(self) -> dict[str, str]:
        """Return the texts that the scripts of the page show."""
        at = LANGUAGES.index(self.lang)
        return {key.removeprefix("js."): TABLE[self._key(key)][at] for key in TABLE if key.startswith("js.") and "@" not in key}


def words_for(request: Request) -> Words:
    """Return the words for a request, in the language of `?lang=`, of the cookie, or that the browser prefers."""
    app = request.scope.get("app")  # a visitor who is not let in reaches no application
    asked_for = getattr(app.state, "billing", None) if app is not None else None
    billing: Billing = asked_for() if asked_for is not None else "list"
    accepted = [part.split(";")[0].strip().lower()[:2] for part in request.headers.get("accept-language", "").split(",")]
    asked = [request.query_params.get("lang", ""), request.cookies.get(COOKIE, ""), *accepted]
    for lang in asked:
        if lang in LANGUAGES:
            return Words(lang, billing)
    return Words("en", billing)
