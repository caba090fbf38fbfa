"""Sentences as values: a template and its values, in English until a surface renders them in its language.

A `Text` is its English sentence, so every program, log and file can use it as a string. It also keeps the template it came from, and
`render` looks that template up in the catalogue of a language (`zh_CN.json`, template → translation). No code parses a finished
sentence. A string without a template, such as one read from a file, is looked up as it is; a missing translation shows English.
What is written to a file is `str(text)`: msgspec encodes no subclass of `str`.

A template is a literal in the source, the first argument of `Text` or of a surface's `words`, so `scripts/translations.py` can list all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

Shown: TypeAlias = Literal["en", "zh"]
LANGUAGES: tuple[Shown, ...] = ("en", "zh")
HTML_LANGUAGE: dict[Shown, str] = {"en": "en", "zh": "zh-CN"}


class Text(str):
    """A sentence in English that a surface can render in another language.

    `{name}` stands for a value; a value may be a Text of its own. The whole number `n` gets thousands separators and chooses between two
    forms that a bar separates: `Text("{n} turn|{n} turns", n=3)`. A meaning behind `##` tells two uses of one English text apart and is
    never shown: `Text("Open##a folder")`. A Text in place of the template is filled with other values.
    """

    __slots__ = ("template", "values")
    template: str
    values: dict[str, Any]

    def __new__(cls, template: str, /, **values: Any) -> Text:
        template = template.template if isinstance(template, Text) else template
        values = {name: message(value) if isinstance(value, Exception) else value for name, value in values.items()}
        text = super().__new__(cls, _fill(template.partition("##")[0], values))
        text.template = template
        text.values = values
        return text

    @classmethod
    def whole(cls, sentence: str) -> Text:
        """Return a sentence that came without a template: it is looked up as it is."""
        if isinstance(sentence, Text):
            return sentence
        text = super().__new__(cls, sentence)
        text.template, text.values = sentence, {}
        return text

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (self.template,), self.values


class Words:
    """The texts of a surface in its language: `words("Saved “{name}”.", name=…)`, `words(text)`, or a stored sentence."""

    def __init__(self, language: Shown = "en") -> None:
        self.language = language

    def __call__(self, template: str | Exception, /, **values: Any) -> str:
        if isinstance(template, Exception):
            template = message(template)
        return render(Text(template, **values) if values else template, self.language)


def render(text: str, language: Shown) -> str:
    """Return the text in the language, with every value that is a Text rendered too."""
    if language == "en":
        return str(text)
    translation = _catalogue().get(text.template if isinstance(text, Text) else text)
    if not isinstance(text, Text) or not text.values:
        return str(text) if translation is None else translation
    values = {name: render(value, language) if isinstance(value, Text) else value for name, value in text.values.items()}
    return _fill(text.template.partition("##")[0] if translation is None else translation, values)


def message(error: Exception) -> Text:
    """Return what an error says: its own text, or the path and the reason of an error of the operating system."""
    if isinstance(error, OSError) and error.errno is not None:
        reason = system_reason(error)
        return Text("{path}: {reason}", path=error.filename, reason=reason) if error.filename else reason
    return Text.whole(error.args[0] if error.args and isinstance(error.args[0], Text) else str(error))


def system_reason(error: OSError) -> Text:
    """Return why a system call failed, in lower case: a catalogue has the system's own words."""
    return Text.whole(os.strerror(error.errno or 0).lower())


def joined(parts: Iterable[str], form: str = "{first}, {rest}") -> Text:
    """Return the parts as one text. `form` is the template that joins two of them."""
    *before, last = [Text.whole(part) for part in parts] or [Text.whole("")]
    for part in reversed(before):
        last = Text(form, first=part, rest=last)
    return last


def encodable(value: object) -> object:
    """The `enc_hook` of msgspec, which encodes no subclass of `str`: a Text is written as its English sentence."""
    if isinstance(value, str):
        return str(value)
    raise NotImplementedError(f"objects of type {type(value).__name__} are not encoded")


def pack(value: object) -> object:
    """The `enc_hook` for a cache that gives Texts back: a Text is its template and its values."""
    if not isinstance(value, Text):
        return encodable(value)
    plain = {name: each if isinstance(each, str | int | float) else str(each) for name, each in value.values.items()}
    return [value.template, plain]


def unpack(kind: type, raw: Any) -> Any:
    """The `dec_hook` that belongs to `pack`; a plain string is a sentence that an earlier version kept."""
    if isinstance(raw, str):
        return Text.whole(raw)
    template, values = raw
    return Text(template, **{name: unpack(Text, value) if isinstance(value, list) else value for name, value in values.items()})


def _fill(template: str, values: dict[str, Any]) -> str:
    number = values.get("n")
    if isinstance(number, int):
        singular, _, other = template.partition("|")
        template = other if other and number != 1 else singular
        values = {**values, "n": f"{number:,}"}
    return template.format_map(values) if values else template


@cache
def _catalogue() -> dict[str, str]:
    catalogue: dict[str, str] = json.loads(Path(__file__).with_name("zh_CN.json").read_text("utf-8"))
    return catalogue


SENTENCES, CLAUSES = Text("{first} {rest}"), Text("{first}; {rest}")
