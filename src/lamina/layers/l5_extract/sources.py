"""Who said what (B6): the person's own words in a range, and everything in view that nobody said. Pure.

A person's words are those of their messages alone. Results of tools, files, summaries, what hooks and agents brought are data; what
came from memory and instruction files is kept apart, since it is there already.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...core.blocks import Text, ToolResult
from ...core.view import Item
from ...memory.surfacing import REMINDER, words_of

_FROM_MEMORY = frozenset(f"attachment:{kind}" for kind in ("relevant_memories", "instructions", "nested_memory"))
# A word; where words are not spaced, a character.
_WORD = re.compile(r"[^\W_\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]+|[\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]")
# So many words in a row are taken over, not met by chance.
RUN = 3


class Said(NamedTuple):
    message: str  # the record's id
    words: str
    before: str = ""  # the answer it replies to


class Sources(NamedTuple):
    said: tuple[Said, ...]  # of the range
    data: tuple[str, ...]  # of all that is visible: whoever looks back finds it there
    known: tuple[str, ...]  # from memory and instruction files


def sources(items: Sequence[Item], start: int) -> Sources:
    said: list[Said] = []
    data: list[str] = []
    known: list[str] = []
    answer = ""
    for at, item in enumerate(items):
        if item.role == "assistant":
            answer = "\n".join([answer, *_texts(item)]) if at and items[at - 1].role == "assistant" else "\n".join(_texts(item))
            continue
        words = words_of(item) if not item.synthetic else ""
        if words and at >= start:
            said.append(Said(item.uuid, words, answer))
        if item.kind in _FROM_MEMORY:
            known += _texts(item)
        else:
            data += _data(item)
    return Sources(tuple(said), tuple(data), tuple(known))


def _texts(item: Item) -> list[str]:
    return [block.text for block in item.blocks if isinstance(block, Text)]


def _data(item: Item) -> Iterator[str]:
    for block in item.blocks:
        nobody_s = isinstance(block, Text) and (item.kind != "said" or block.text.startswith(REMINDER))
        if isinstance(block, ToolResult) or (isinstance(block, Text) and nobody_s):
            yield block.text


def plain(text: str) -> str:
    """Without what may differ between a sentence and its quotation: case, spacing, the form of letters and of quotation marks."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.sub(r"[\"'`“”„‟‘’‚‹›«»「」『』*_]", "", folded).split())


def words(text: str) -> list[str]:
    return _WORD.findall(plain(text))


def runs(text: str) -> frozenset[tuple[str, ...]]:
    """All runs of words; of a shorter text the text itself."""
    found = words(text)
    if len(found) < RUN:
        return frozenset([tuple(found)] if found else [])
    return frozenset(zip(*(found[at:] for at in range(RUN)), strict=False))
