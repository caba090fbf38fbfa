"""Separates the user's own words in a range from everything else in view. Pure.

Only the user's messages count as their words. Tool results (also those of the provider's own tools), files, summaries, and output of
hooks, agents and programs are data. Text from memory and instruction files is kept apart, because it is saved already.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from ...core.blocks import Document, Text, ToolResult, Unknown
from ...core.view import Item
from ...memory.recall.plan import split_user_words, user_words

_FROM_MEMORY = frozenset(f"attachment:{kind}" for kind in ("relevant_memories", "instructions", "nested_memory"))
# A word; in scripts without spaces, a character.
_UNSPACED = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]")
_WORD = re.compile(r"[^\W_\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]+|(?=\w)[\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]")
# This many words in a row are copied, not a coincidence.
RUN = 3
# In scripts without spaces, four characters count as three words.
CHARACTER = 0.75
# Line numbers that Read puts before each line.
_NUMBER = re.compile(r"^[ ]*\d+\t", re.MULTILINE)
# Invisible characters.
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_QUOTES = re.compile(r"[\"'`“”„‟‘’‚‹›«»「」『』]")


Runs: TypeAlias = frozenset[tuple[str, ...]]


class UserWords(NamedTuple):
    message: str  # the record's id
    words: str
    before: str = ""  # the answer it replies to


class Sources(NamedTuple):
    said: tuple[UserWords, ...]  # in the range
    data: tuple[str, ...]  # in everything visible, since a model can copy from any of it
    known: tuple[str, ...]  # from memory and instruction files


def read_sources(items: Sequence[Item], start: int) -> Sources:
    said: list[UserWords] = []
    data: list[str] = []
    known: list[str] = []
    answer = ""
    for at, item in enumerate(items):
        if item.role == "assistant":
            answer = (
                "\n".join([answer, *_block_texts(item)])
                if at and items[at - 1].role == "assistant"
                else "\n".join(_block_texts(item))
            )
            data += _provider_results(item)
            continue
        words = user_words(item) if not item.synthetic else ""
        if words and at >= start:
            said.append(UserWords(item.uuid, words, answer))
        if item.kind in _FROM_MEMORY:
            known += _block_texts(item)
        else:
            data += _data_texts(item)
    return Sources(tuple(said), tuple(data), tuple(known))


def _block_texts(item: Item) -> list[str]:
    return [block.text for block in item.blocks if isinstance(block, Text)]


def _data_texts(item: Item) -> Iterator[str]:
    for block in item.blocks:
        if isinstance(block, ToolResult):
            yield strip_line_numbers(block.text)
        elif isinstance(block, Text):
            found = block.text if item.kind != "said" else split_user_words(block.text)[1]
            if found:
                yield found
        elif isinstance(block, Document):
            yield "\n".join(strings_in(block.wire))


def _provider_results(item: Item) -> Iterator[str]:
    """Yield the results of tools that the provider runs itself; they are part of the answer."""
    for block in item.blocks:
        if isinstance(block, Unknown) and block.kind.endswith("_result"):
            yield "\n".join(strings_in(block.wire))


def strings_in(value: Any, *, keys: bool = False) -> Iterator[str]:
    """Yield all strings in a JSON value. With `keys`, object keys too."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            left += [*one, *one.values()] if keys else one.values()
        elif isinstance(one, list | tuple):
            left += one


def strip_line_numbers(text: str) -> str:
    return _NUMBER.sub("", text)


def fold_text(text: str) -> str:
    """Remove what may differ between a sentence and its quotation: case, spacing, letter forms and quotation marks."""
    folded = _UNSEEN.sub("", unicodedata.normalize("NFKC", text)).casefold()
    return " ".join(_QUOTES.sub("", folded).replace("*", " ").replace("_", " ").split())


def words(text: str) -> list[str]:
    return _WORD.findall(fold_text(text))


def weigh_words(found: Sequence[str]) -> float:
    """Return the length in words; a character of a script without spaces counts as less than one."""
    return sum(CHARACTER if _UNSPACED.match(word) else 1.0 for word in found)


def runs_of(found: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield all runs of words, or the words themselves if there are too few for a run."""
    if 0 < len(found) < RUN:
        yield tuple(found)
    yield from zip(*(found[at:] for at in range(RUN)), strict=False)


def word_runs(text: str) -> Runs:
    return frozenset(runs_of(words(text)))
