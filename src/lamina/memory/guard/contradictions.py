"""Pairs of memories that contradict each other, found by narrow rules: a dream without a model, the page and doctor show them. Pure.

Two sentences contradict each other if they agree but for one value of a kind that has one value at a time (a day, a number, a language, a
package manager, the person in charge), if one of them is negated, or if they prefer opposite sides ("tabs over spaces"). Each sentence is
looked up by what remains without that value, so the time depends on the length of the texts. In doubt there is no contradiction: "Anna
likes tea" and "Bob likes tea" both hold. A contradiction is only a question to the user; nothing is settled here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from msgspec.structs import replace

from ...language.detection import HOW, ON, WHY
from ..store.journal import digest_of
from ..store.topic import Kind, Topic, write_topic
from .facts import count_words, folded_words, negates

# More than anyone decides at once; the next dream asks about the rest.
MOST = 10
# Longer sentences say too much to differ in one value only.
MOST_WORDS = 40
FEWEST_WORDS = 3
# A sentence with more values than this is true of many things: "the ticket has 3 votes".
MOST_VALUES = 8

_SENTENCE = re.compile(r"[^\s.!?。！？；][^\n]*?(?:[.!?](?=\s|$)|[。！？；]|(?=\n|$))")
_MARKER = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_PLACED = re.compile(r"\s*(?:#|\||```|~~~|>)")
_COUNT = r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_LENGTH = "short|brief|concise|terse|long|detailed|thorough|verbose"
_VALUE = re.compile(
    r"\b(?P<day>(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:mon|diens|donners|frei|sams|sonn)tags?|mittwochs?|noon|midnight)\b"
    r"|\b(?P<often>daily|weekly|monthly|yearly|hourly|nightly)\b"
    r"|\b(?P<month>january|february|march|april|may|june|july|august|september|october|november|december)\b"
    r"|\b(?P<language>english|german|french|spanish|chinese|japanese|korean|englisch|deutsch|französisch)\b"
    r"|(?P<tongue>[英中日韩德法](?:文|语)|英語|日本語|中国語|韓国語|영어|한국어|일본어)"
    rf"|(?<![\w.-])(?P<number>\d+(?:[.,:]\d+)*|{_COUNT})(?![\w-])"
    # Things of which a project or a user has one.
    r"|(?<![a-z0-9])(?:(?P<indent>tabs|spaces)|(?P<packages>npm|pnpm|yarn|bun)|(?P<theme>dark|light)"
    rf"|(?P<database>postgres(?:ql)?|mysql|mariadb|sqlite|mongodb)|(?P<length>(?:{_LENGTH})(?:(?:,| and) (?:{_LENGTH}))*))(?![a-z0-9])"
    r"|(?P<brevity>简短|简洁|详细|详尽)"
    r"|(?P<weekday>(?:周|星期|礼拜)[一二三四五六日天]|[月火水木金土日]曜日|[월화수목금토일]요일)",
    re.IGNORECASE,
)
# A number behind one of these words names a thing: ticket 12, version 3.
_NAMES = re.compile(
    r"(?:^|\b(?:ticket|issue|pr|version|python|node|phase|step|part|room|floor|chapter|no\.?|#)) ?$", re.IGNORECASE
)
_IN_CHARGE = re.compile(
    r"^(?P<who>[\w’'-]+) (?P<what>(?:owns|leads|maintains|manages|heads|approves|is responsible for|is in charge of) .+)$",
    re.IGNORECASE,
)
_IN_CHARGE_HAN = re.compile(r"^(?P<who>[^\W\d_a-zA-Z]{1,6}?)(?P<what>(?:负责|負責|が担当|이 담당).+)$")
_CHARGED = re.compile(
    r"^(?P<what>.+ (?:is|are) (?:owned|led|maintained|managed|approved|handled) by) (?P<who>[\w’'-]+)$"
    r"|^(?P<han>.+?由)(?P<whom>[^\W\d_a-zA-Z]{1,6}?)(?P<does>负责|負責|维护|审批|管理)$",
    re.IGNORECASE,
)
_SIDES = re.compile(
    r"^(?P<head>.*?\b(?:prefer|use|like|want) )(?P<one>.+?),? (?P<link>over|instead of|rather than|not) (?P<other>.+)$"
)
# Words whose absence changes nothing between a sentence and its negation.
_ENGLISH = ("a", "an", "the", "do", "does", "did", "always", "please", "any", "must", "should", "need", "to", "be", "is", "are")
_WEAK = frozenset((*_ENGLISH, *"要请都总是的必须"))


class Sentence(NamedTuple):
    topic: Topic
    text: str


class Contradiction(NamedTuple):
    """Two memories and the sentences in question; `old` was written first."""

    old: Sentence
    new: Sentence

    @property
    def id(self) -> str:
        return digest_of("\n".join(sorted(f"{each.topic.file}: {each.text}" for each in self)).encode())

    @property
    def why(self) -> str:
        sides = (f'{each.topic.name} says "{each.text}"' for each in (self.new, self.old))
        return f"contradiction: {' and '.join(sides)}; accept to keep only the newer one, reject to keep both"


class _Key(NamedTuple):
    kind: str
    rest: str


def find_contradictions(
    topics: Sequence[Topic],
    are_distinct: Callable[[Topic, Topic], bool] = lambda old, new: False,
    pause: Callable[[], None] = lambda: None,
) -> list[Contradiction]:
    """Return at most one contradiction for each pair of memories, without the pairs that the user called distinct.

    `pause` is called before each memory.
    """
    seen = dict[tuple[Kind | None, _Key], dict[str, Sentence]]()
    for topic in sorted((each for each in topics if not each.problems), key=lambda each: (each.modified, each.file)):
        pause()
        for sentence in _sentences(topic):
            for key, value in _values(sentence.text):
                values = seen.setdefault((topic.type, key), {})
                values.pop(value, None)  # the newest sentence comes last
                values[value] = sentence
    found = dict[tuple[str, str], Contradiction]()
    for values in seen.values():
        if len(values) <= MOST_VALUES:
            for old, new in combinations(values.values(), 2):
                found.setdefault((old.topic.file, new.topic.file), Contradiction(old, new))
    return [each for (old, new), each in found.items() if old != new and not are_distinct(each.old.topic, each.new.topic)]


def _sentences(topic: Topic) -> Iterator[Sentence]:
    for line in topic.body.splitlines():
        if _PLACED.match(line) or WHY.match(line) or HOW.match(line) or ON.match(line):
            continue
        for part in _SENTENCE.finditer(_MARKER.sub("", line)):
            yield Sentence(topic, part[0].strip())


def _values(text: str) -> Iterator[tuple[_Key, str]]:
    """Yield each value of a sentence with the rest of it."""
    words = folded_words(text)
    if not FEWEST_WORDS <= count_words(text) <= MOST_WORDS:
        return
    for found in _VALUE.finditer(text):
        kind, before = str(found.lastgroup), text[: found.start()]
        if kind != "number" or not _NAMES.search(before):
            yield _Key(kind, f"{folded_words(before)} … {folded_words(text[found.end() :])}"), found[0].casefold()
    line = text.rstrip(".。!！")
    if charge := _IN_CHARGE.match(line) or _IN_CHARGE_HAN.match(line):
        yield _Key("charge", folded_words(charge["what"])), charge["who"].casefold()
    if charged := _CHARGED.match(line):
        what = charged["what"] or f"{charged['han']}…{charged['does']}"
        yield _Key("charge", folded_words(what)), (charged["who"] or charged["whom"]).casefold()
    if sides := _SIDES.match(line.casefold()):
        pair = " | ".join(sorted((sides["one"], sides["other"])))
        yield _Key("sides", f"{sides['head']}{pair}"), sides["one"]
    plain = [word for word in words.split() if word not in _WEAK and not negates(word)]
    if len(plain) >= 2:
        yield _Key("not", " ".join(plain)), str(negates(words))


def without_sentence(sentence: Sentence) -> str | None:
    """Return the memory without the sentence; None if nothing else is left in it."""
    topic = sentence.topic
    text = re.escape(sentence.text)
    rest = re.sub(rf"(?m)^[ \t]*(?:[-*+•][ \t]+)?{text}[ \t]*\n?|[ \t]*{text}", "", topic.body, count=1)
    left = [line for line in rest.splitlines() if line.strip() and not (WHY.match(line) or HOW.match(line) or ON.match(line))]
    if not left:
        return None
    about = (
        topic.description
        if folded_words(sentence.text) not in folded_words(topic.description)
        else left[0].lstrip("-*+• ").strip()
    )
    return write_topic(replace(topic, body=f"{rest.strip()}\n", description=about, fields={**topic.fields, "description": about}))
