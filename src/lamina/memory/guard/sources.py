"""Separates the user's own words in a range from everything else in view. Pure.

Only the user's messages count as their words, without what they pasted or quoted. Tool results (also those of the provider's own tools),
files, summaries, and output of hooks, agents and programs are data, each with the name of its origin. Text from memory and instruction
files is kept apart, because it is saved already.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ...core.blocks import Document, Text, ToolResult, ToolUse, Unknown
from ...core.view import Item
from ...language.invisible import remove_invisible, without_joiners
from ..recall.plan import split_user_words, user_words
from .own_words import split_pasted

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
_QUOTES = re.compile(r"[\"'`“”„‟‘’‚‹›«»「」『』]")


Runs: TypeAlias = frozenset[tuple[str, ...]]


# Origins of data: "tool NAME", or one of these.
TOOL = "tool"
PASTED = "pasted text"
AGENT = "agent message"
PROGRAM = "program output"
SUMMARY = "summary"
# What the model concluded by itself.
ASSISTANT = "assistant"
_ORIGINS = {"mail": AGENT}


class UserWords(NamedTuple):
    message: str  # the record's id
    words: str
    before: str = ""  # the answer it replies to
    own: str = ""  # the words without what was pasted or quoted
    read: bool = False  # the turn of that answer read, pasted or received a text


class ForeignText(NamedTuple):
    """A text that is not the user's, and where it comes from."""

    text: str
    origin: str = TOOL


class Sources(NamedTuple):
    said: tuple[UserWords, ...] = ()  # in the range
    data: tuple[ForeignText, ...] = ()  # in everything visible, since a model can copy from any of it
    known: tuple[str, ...] = ()  # from memory and instruction files


def read_sources(items: Sequence[Item], start: int) -> Sources:
    said: list[UserWords] = []
    data: list[ForeignText] = []
    known: list[str] = []
    tools: dict[str, str] = {}
    answer, turn = "", 0
    for at, item in enumerate(items):
        if item.role == "assistant":
            texts = _block_texts(item)
            answer = "\n".join([answer, *texts]) if at and items[at - 1].role == "assistant" else "\n".join(texts)
            tools |= {block.id: block.name for block in item.blocks if isinstance(block, ToolUse)}
            data += _provider_results(item)
            continue
        words = remove_invisible(user_words(item)) if not item.synthetic else ""
        if words:
            read, turn = any(each.origin != PROGRAM for each in data[turn:]), len(data)
            own, pasted = split_pasted(words)
            said += [UserWords(item.uuid, words, answer, own, read)] if at >= start else []
            data += [ForeignText(pasted, PASTED)] if pasted else []
        if item.kind in _FROM_MEMORY:
            known += _block_texts(item)
        else:
            data += _data_texts(item, tools)
    return Sources(tuple(said), tuple(data), tuple(known))


def by_agent(heard: Sources) -> Sources:
    """Return the sources of a conversation whose messages were written by another agent: none of them are the user's words."""
    return heard._replace(said=(), data=(*heard.data, *(ForeignText(one.words, AGENT) for one in heard.said)))


def _block_texts(item: Item) -> list[str]:
    return [block.text for block in item.blocks if isinstance(block, Text)]


def _data_texts(item: Item, tools: Mapping[str, str]) -> Iterator[ForeignText]:
    for block in item.blocks:
        if isinstance(block, ToolResult):
            yield ForeignText(strip_line_numbers(block.text), f"{TOOL} {tools.get(block.tool_use_id, '')}".strip())
        elif isinstance(block, Text):
            found = block.text if item.kind != "said" else split_user_words(block.text)[1]
            if found:
                yield ForeignText(found, _origin_of(item))
        elif isinstance(block, Document):
            yield ForeignText("\n".join(strings_in(block.wire)), PASTED)


def _origin_of(item: Item) -> str:
    kind = item.kind.removeprefix("attachment:")
    return _ORIGINS.get(kind, SUMMARY if kind in ("summary", "partial") else PROGRAM)


def _provider_results(item: Item) -> Iterator[ForeignText]:
    """Yield the results of tools that the provider runs itself; they are part of the answer."""
    for block in item.blocks:
        if isinstance(block, Unknown) and block.kind.endswith("_result"):
            yield ForeignText("\n".join(strings_in(block.wire)), f"{TOOL} {block.kind.removesuffix('_tool_result')}")


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
    folded = without_joiners(unicodedata.normalize("NFKC", remove_invisible(text))).casefold()
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
