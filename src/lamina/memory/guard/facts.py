"""Splits a memory into facts, and checks whether another text still contains them.

A fact is a sentence, or a line of a list, table or code. Two kinds of folding make facts comparable: letters fold as in file names, and
only words and meaningful signs are kept, without conjunctions such as "and" and fillers such as "please". Contractions are written
out, and "the user prefers" is "I prefer".
Exact spellings (paths, options, names with an underscore or inner capitals) are also compared
as they are. A text contains a fact if one of its sentences has the fact's words in a row, in order, and adds no "not". So a merge that
keeps sentences keeps facts, and one that rewords them does not count as keeping them. In scripts without spaces every character is a
word. Pure; the time depends on the length of the texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from ...core.front_matter import read_front_matter
from ...disk.paths.file_names import fold

# A shorter heading names a section and states nothing.
HEADING_WORDS = 5
# Fewer words occur in a sentence by chance, so such a fact must match a whole sentence.
SHORT_WORDS = 3
# If this share of a fact's words is in the new text, the fact was reworded and not dropped.
WORDED_ANEW = 0.6

_CJK = "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_CJK}]|(?:(?<=\s)|^)-(?=\d)|[^\W_{_CJK}]+(?:['’_]+[^\W_{_CJK}]+)*|!(?==)|[%@&/\\+=<>~$^|≠≤≥≈→]")
# A path, a command option or a code name: one more letter or sign makes it something else.
_EXACT = re.compile(
    r"(?<![\w/\\.~-])(?:--?[A-Za-z][\w-]*|[\w./\\~-]*(?:[^\W_][_/\\]+[^\W_]|[/\\][^\W_]|[a-z0-9][A-Z])[\w./\\-]*)", re.ASCII
)
_LINE_START = re.compile(r"\s*(?:>\s*)*(?:[-*+•]\s+(?:\[[ xX]\]\s+)?|\d{1,3}[.)]\s+)?")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_SENTENCE = re.compile(r"(?<=[.!?])[\"'”’)*_]*\s+|(?<=[。！？；])|;\s+")
# Conjunctions that add a clause and do not change it ("or" and "if" do), and words whose absence changes nothing.
_JOINING = frozenset(("and", "but", "also", "then", "und", "aber", "auch"))
_FILLERS = frozenset(("please", "always", "the", "our", "bitte", "immer", *"请要的了"))
_JOINING_SIGNS = re.compile("并且|而且|以及|そして|그리고")
# Two spellings of the same words: what a user says, and what a model writes down about the user.
_SAME = (
    (
        re.compile(r"\b(can|won|shan)(?:['’]t|not)\b"),
        lambda found: f"{ {'won': 'will', 'shan': 'shall'}.get(found[1], found[1]) } not",
    ),
    (re.compile(r"(?<=[a-z])n['’]t\b"), lambda _: " not"),
    (re.compile(r"\bi['’]m\b|\b(?:the )?user is\b"), lambda _: "i am"),
    (re.compile(r"\b(?:the )?user (?P<verb>[a-z]{2,})s\b"), lambda found: f"i {found['verb']}"),
    (re.compile(r"\bsince (?!\d|last|then|yesterday)"), lambda _: "because "),
)
_NOT = """not no never none nor without cannot can't don't doesn't didn't won't isn't aren't wasn't shouldn't mustn't avoid stop except
    unless instead formerly nicht kein keine nie ohne statt"""
_NEGATIONS = frozenset(_NOT.split())
_NEGATING_SIGNS = re.compile("[不没沒非无無未勿别別莫否않못없]|な い|ま せ ん|안 ")


class Facts(NamedTuple):
    """The folded facts of a text in order, and all its sentences as one line each, to look facts up in."""

    each: tuple[str, ...]
    lines: str


# A merge looks up the same few texts again and again.
@lru_cache(maxsize=512)
def facts_of(text: str) -> Facts:
    """Return the facts of a topic file. If the body is empty, the description is the only fact."""
    matter = read_front_matter(text)
    sentences = list(_split_sentences(matter.body))
    description = matter.fields.get("description")
    lines = [folded for folded, _ in sentences]
    if isinstance(description, str) and (said := folded_words(description)):
        lines.append(said)
    each = tuple(dict.fromkeys(folded for folded, counts in sentences if counts))
    return Facts(each or tuple(lines[-1:]), "".join(f"\n {line} \n" for line in lines))


def sentences_of(text: str) -> dict[str, str]:
    """Return the facts of a topic file in order, each with the sentence that states it."""
    each = facts_of(text).each
    matter = read_front_matter(text)
    found: dict[str, str] = {}
    for part, folded, _ in _split_parts(matter.body):
        found.setdefault(folded, part.strip())
    return {fact: found.get(fact, str(matter.fields.get("description") or fact)) for fact in each}


def _split_sentences(body: str) -> Iterator[tuple[str, bool]]:
    """Yield each folded sentence, and whether it counts as a fact."""
    return ((folded, counts) for _, folded, counts in _split_parts(body))


def _split_parts(body: str) -> Iterator[tuple[str, str, bool]]:
    """Yield each sentence, its folded form, and whether it counts as a fact."""
    for line in body.splitlines():
        heading = _HEADING.match(line) is not None
        for part in _SENTENCE.split(line.lstrip(" #") if heading else _LINE_START.sub("", line, count=1)):
            if folded := folded_words(part):
                yield part, folded, not heading or count_words(part) >= HEADING_WORDS


def folded_words(text: str) -> str:
    """Return the folded words and meaningful signs, with single spaces."""
    return " ".join(_words(text))


def count_words(text: str) -> int:
    """Count all words of a text, fillers included; in scripts without spaces, its characters."""
    return len(_TOKEN.findall(fold(text)))


def _words(text: str) -> list[str]:
    folded = _JOINING_SIGNS.sub(" ", fold(text))
    for pattern, same in _SAME:
        folded = pattern.sub(same, folded)
    words = _TOKEN.findall(folded)
    return [word for word in words if word not in _JOINING and word not in _FILLERS] or words


@lru_cache(maxsize=512)
def exact_words(text: str) -> frozenset[str]:
    """Return the exact spellings in a topic file's body."""
    return frozenset(match[0].rstrip("_.-/") for match in _EXACT.finditer(read_front_matter(text).body))


def is_said(fact: str, text: str) -> bool:
    """Whether a text contains a fact, word for word and not negated."""
    return _contains(fact, facts_of(text).lines)


def _contains(fact: str, lines: str) -> bool:
    if f"\n {fact} \n" in lines:
        return True
    if fact.count(" ") + 1 < SHORT_WORDS:
        return False
    at = lines.find(f" {fact} ")
    while at >= 0:
        begin, stop = lines.rfind("\n", 0, at + 1) + 1, lines.find("\n", at)
        if not negates(f"{lines[begin:at]} {lines[at + len(fact) + 1 : stop]}"):
            return True
        at = lines.find(f" {fact} ", at + 1)
    return False


def negates(words: str) -> bool:
    """Whether a folded sentence is negated, or these words around a fact may negate it."""
    return not _NEGATIONS.isdisjoint(words.split()) or _NEGATING_SIGNS.search(words) is not None


class FactIndex:
    """An index over many texts that finds one which contains a fact. The first lookup indexes every word. Only a text with the fact's
    words in a row is parsed."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._words: dict[str, str] = {}
        self._files: dict[str, set[str]] = {}

    def of(self, fact: str, fits: Callable[[str], bool] = bool) -> str | None:
        """Return the first file whose text contains the fact and `fits`."""
        if not self._words:
            self._build()
        having = sorted((self._files.get(word, set()) for word in set(fact.split(" "))), key=len)
        likely = (file for file in sorted(set.intersection(*having)) if f" {fact} " in self._words[file])
        return next((file for file in likely if is_said(fact, self._texts[file]) and fits(self._texts[file])), None)

    def _build(self) -> None:
        for file, text in self._texts.items():
            words = _words(text)
            self._words[file] = f" {' '.join(words)} "
            for word in set(words):
                self._files.setdefault(word, set()).add(file)


def is_emptied(old: str, new: Iterable[str]) -> bool:
    """Whether most facts of the old text are missing from the new ones, even in other words."""
    return 2 * dropped(old, new) > len(facts_of(old).each)


def dropped(old: str, new: Iterable[str]) -> int:
    """Count the facts of the old text that are missing from the new ones."""
    words = {word for text in new for word in facts_of(text).lines.split()}
    return sum(not is_mostly_in(fact, words) for fact in facts_of(old).each)


def is_mostly_in(folded: str, words: Collection[str]) -> bool:
    """Whether most words of a folded sentence are among `words`."""
    own = set(folded.split())
    return len(own.intersection(words)) >= WORDED_ANEW * len(own)
