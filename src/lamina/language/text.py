"""Sentences as values: a template and its values, in English until a surface renders them in its language.

A `Text` is its English sentence, so every program, log and file can use it as a string. It also keeps the template it came from, and
`render` looks that template up in the catalogue of a language (`zh_CN.json`, template → translation). No code parses a finished
sentence. A string without a template, such as one read from a file, is looked up as it is; a missing translation shows English.
What is written to a file is `str(text)`: msgspec encodes no subclass of `str`.

A template is a literal in the source, the first argument of `Text` or of a surface's `words`, so `scripts/translations.py` can list all.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
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
        text = super().__new__(cls, _fill(template.partition("##")[0], values))
        text.template = template
        text.values = values
        return text

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (self.template,), self.values


class Words:
    """The texts of a surface in its language: `words("Saved “{name}”.", name=…)`, `words(text)`, or a stored sentence."""

    def __init__(self, language: Shown = "en") -> None:
        self.language = language

    def __call__(self, template: str, /, **values: Any) -> str:
        return render(Text(template, **values) if values else template, self.language)


def render(text: str, language: Shown) -> str:
    """Return the text in the language, with every value that is a Text rendered too."""
    if language == "en":
        return str(text)
    catalogue = _catalogue()
    if not isinstance(text, Text):
        return catalogue.get(text, text)
    values = {name: render(value, language) if isinstance(value, Text) else value for name, value in text.values.items()}
    return _fill(catalogue.get(text.template, text.template.partition("##")[0]), values)


def _fill(template: str, values: dict[str, Any]) -> str:
    number = values.get("n")
    if isinstance(number, int):
        singular, _, other = template.partition("|")
        template = other if other and number != 1 else singular
        values = {**values, "n": f"{number:,}"}
    return template.format_map(values) if values else template


@cache
def _catalogue() -> dict[str, str]:
    catalogue: dict[str, str] = json.loads(files(__package__).joinpath("zh_CN.json").read_text("utf-8"))
    return catalogue
