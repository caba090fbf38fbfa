"""Sentences as values: a template and its values, in English until a surface renders them in its language.

A `Text` is its English sentence, so every program, log and file can use it as a string. It also keeps the template it came from, and
`render` looks that template up in the catalogue of a language (`zh_CN.json`, template → translation). No code parses a finished
sentence. A string without a template, such as one read from a file, is looked up as it is; a missing translation shows English.
The first argument of `Text` is a literal, so `scripts/translations.py` can list all templates. What is written to a file is `str(text)`:
msgspec encodes no subclass of `str`.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeAlias

Shown: TypeAlias = Literal["en", "zh"]


class Text(str):
    """A sentence in English that a surface can render in another language.

    `{name}` stands for a value; a value may be a Text of its own. The whole number `n` gets thousands separators and chooses between two
    forms that a bar separates: `Text("{n} turn|{n} turns", n=3)`. A meaning behind `##` tells two uses of one English text apart and is
    never shown: `Text("Open##a folder")`.
    """

    __slots__ = ("template", "values")
    template: str
    values: dict[str, Any]

    def __new__(cls, template: str, /, **values: Any) -> Text:
        text = super().__new__(cls, _fill(template.partition("##")[0], values))
        text.template = template
        text.values = values
        return text

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (self.template,), self.values


def render(text: str, language: Shown) -> str:
    """Return the text in the language, with every value that is a Text rendered too."""
    if language == "en":
        return str(text)
    catalogue = _catalogue()
    if not isinstance(text, Text):
        return catalogue.get(text, text)
    values = {name: render(value, language) if isinstance(value, str) else value for name, value in text.values.items()}
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
