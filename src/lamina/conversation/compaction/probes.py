"""Measures how many facts of removed messages the model can still answer after a compaction. By rules, without a model.

Facts are exact strings: names, paths, numbers with a unit, error messages, sentences of the user. The same items always yield the
same facts. A fact is *in context* if the text that the model sees now contains it. If not, it is *one call away* if the model has
a tool that opens the removed messages, and *lost* otherwise.

The cost is bounded: only a sample of each text is read, at most MOST_TEXT characters in all, which takes milliseconds.

The result is reported with each compaction and never prevents one. "One call away" means that the model has the Expand tool, or
that the transcript is on disk and the model has a tool that reads files; every summary names both ways. A lost fact is lost to
the model only: the user can still open the transcript.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ...core.blocks import Block, Text, ToolResult, ToolUse, canonical
from ...core.view import Item
from ...language.text import Text as Sentence
from ...language.text import joined
from ...language.wording import counted
from ..state import Conversation
from .cuts import is_said

# The same number as in the coverage benchmark.
MOST = 60
# Maximum number of characters read in all; this takes about ten milliseconds.
MOST_TEXT = 60_000
# Minimum number of characters read of each text: the first lines of a result tell what it is.
LEAST_EACH = 400
SHORTEST, LONGEST = 6, 160

Kind: TypeAlias = Literal["name", "path", "number", "error", "sentence"]

# Every pattern runs in linear time: possessive quantifiers never backtrack.
_WORD = re.compile(r"[^\s\"'`()<>\[\]{},;|=]++")
_NAME = re.compile(r"[A-Za-z]\w++", re.ASCII)
_HUMP = re.compile(r"[a-z][A-Z]")
_NUMBER = re.compile(r"(?<![\w.,-])\d[\d.,]*+ ?+(%|[A-Za-z]++)")
_SIZES = ("%", "kB", "KB", "MB", "GB", "KiB", "MiB", "GiB", "byte", "bytes", "px", "USD", "EUR")
_TIMES = ("ms", "s", "second", "seconds", "minute", "minutes", "hour", "hours", "day", "days")
_COUNTS = ("token", "tokens", "line", "lines", "file", "files", "test", "tests", "row", "rows")
_UNITS = frozenset((*_SIZES, *_TIMES, *_COUNTS))
_ERROR = re.compile(r"(?:Error|Exception|error|fatal|panic): [^\n\"\\]{4,120}+")
_ENDS = re.compile(r"(?<=[.!?。！？])\s|\n")


class Fact(NamedTuple):
    kind: Kind
    text: str


class Fidelity(msgspec.Struct, frozen=True):
    """The number of removed facts that are in context, one call away, or lost."""

    in_context: int = 0
    one_call: int = 0
    lost: int = 0

    @property
    def facts(self) -> int:
        return self.in_context + self.one_call + self.lost

    def to_json(self) -> dict[str, int]:
        return {"facts": self.facts, "in_context": self.in_context, "one_call": self.one_call, "lost": self.lost}

    def sentence(self) -> Sentence | None:
        """Return the numbers as a sentence for the user; None if there were no facts."""
        if not self.facts:
            return None
        places = (
            (self.in_context, Sentence("{n} is still in the context|{n} are still in the context")),
            (self.one_call, Sentence("{n} is one tool call away|{n} are one tool call away")),
            (self.lost, Sentence("{n} is out of the model's reach|{n} are out of the model's reach")),
        )
        found = joined(Sentence(place, n=count) for count, place in places if count)
        return Sentence("Of {facts} removed, {places}.", facts=counted(self.facts, "fact"), places=found)


def drawn(items: Sequence[Item]) -> list[Fact]:
    """Return at most MOST facts, spread evenly over the kinds and over the items."""
    kinds: dict[Kind, dict[str, None]] = {"sentence": {}, "path": {}, "number": {}, "error": {}, "name": {}}
    for by_user, text in _sampled(items):
        for fact in _facts(text, said=by_user):
            if SHORTEST <= len(fact.text) <= LONGEST:
                kinds[fact.kind][fact.text] = None
    fitting = {kind: list(texts) for kind, texts in kinds.items()}
    return [Fact(kind, text) for kind, most in _shares(fitting).items() for text in _spread(fitting[kind], most)]


def _facts(text: str, *, said: bool) -> Iterator[Fact]:
    if said:
        yield from (Fact("sentence", _plain(sentence)) for sentence in _ENDS.split(text) if " " in sentence.strip())
    yield from (Fact("number", _plain(match[0])) for match in _NUMBER.finditer(text) if match[1] in _UNITS)
    yield from (Fact("error", _plain(match[0])) for match in _ERROR.finditer(text))
    for word in _WORD.findall(text):
        head, slash, last = word.rpartition("/")
        if slash and head and "." in last[1:-1] and "//" not in word:
            yield Fact("path", word.rstrip(".:"))
        elif (name := _NAME.match(word)) and ("_" in name[0] or _HUMP.search(name[0])):
            yield Fact("name", name[0])


def judged(facts: Sequence[Fact], shown: Iterable[str], *, reachable: bool) -> Fidelity:
    """Judge the facts by the texts that the model sees now. `reachable` means that it has a tool to open removed messages."""
    context = _plain("\n".join(shown))
    in_context = sum(fact.text in context for fact in facts)
    removed = len(facts) - in_context
    return Fidelity(in_context, removed if reachable else 0, 0 if reachable else removed)


def texts_of(items: Iterable[Item]) -> Iterable[str]:
    return (text for item in items for block in item.blocks if (text := _text(block)))


def _sampled(items: Sequence[Item]) -> list[tuple[bool, str]]:
    """Return (whether the user wrote it, text) pairs. Long texts are cut, and if there are too many, they are sampled evenly."""
    texts = [(is_said(item), text) for item in items for block in item.blocks if (text := _text(block))]
    texts = [texts[index] for index in _places(len(texts), MOST_TEXT // LEAST_EACH)]
    most = MOST_TEXT // max(1, len(texts))
    return [(by_user, text[:most]) for by_user, text in texts]


def _text(block: Block) -> str:
    match block:
        case Text():
            return block.text
        case ToolUse():
            return canonical(block.input).decode("utf-8", "replace")
        case ToolResult():
            return block.text
        case _:
            return ""


def _plain(text: str) -> str:
    return " ".join(text.split())


def _shares(texts: dict[Kind, list[str]]) -> dict[Kind, int]:
    """Divide the facts among the kinds. Kinds with few facts come first, and the others share what these leave over."""
    shares: dict[Kind, int] = {}
    room = MOST
    for number, kind in enumerate(sorted(texts, key=lambda kind: (len(texts[kind]), kind))):
        shares[kind] = min(len(texts[kind]), room // (len(texts) - number))
        room -= shares[kind]
    return shares


def _spread(texts: Sequence[str], most: int) -> list[str]:
    return [texts[index] for index in _places(len(texts), most)]


def _places(count: int, most: int) -> list[int]:
    """Return at most `most` indexes, spread evenly over `count`."""
    return list(range(count)) if count <= most else [index * count // most for index in range(most)]


def fidelity(c: Conversation, before: Sequence[Item]) -> Fidelity:
    """Measure the facts of the items that were in the view `before` and are no longer."""
    now = c.log.view.items
    stays = {item.uuid for item in now}
    facts = drawn([item for item in before if item.uuid not in stays])
    return judged(facts, texts_of(now), reachable=reachable(c))


def reachable(c: Conversation) -> bool:
    reach = c.prompt.reach
    return reach.expand or (c.store.path is not None and reach.files)
