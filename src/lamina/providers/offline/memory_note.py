"""Turns "Remember: …" into a memory by simple rules: its name, its type, the rule and the reason.

`reasons` finds the reason and `sentence_rules` classifies the words. A wrong type or a clumsy name is easy to correct in an editor, so the
chat never asks about those. It asks only if the sentence is clearly not worth remembering: code, a place in the project, or the current
task.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from ...language.connectives import Reason
from ...language.dates import COMPUTED, dated, relative_dates
from ...language.detection import HOW, labels_for, language_of, without_common_words
from ...language.excluded_kinds import no_memory as no_memory  # re-exported for the modules that save notes
from ...language.invisible import JOINERS, remove_invisible
from ...language.memory_requests import to_remember
from ...language.terms import normal, terms
from ...language.wording import shorten
from .reasons import reason
from .sentence_rules import kind_of

# Number of words in a name: enough to distinguish it from others, and few enough for a line of the index.
NAME_WORDS = 6
NAME_CHARS = 40
DESCRIPTION_CHARS = 300

# Names with a special meaning in a memory directory.
_TAKEN = frozenset({"memory", "team", "logs", "readme"})
# Six or more letters and digits mixed, or a long run of capitals.
_LIKE_A_KEY = re.compile(
    r"(?<![^\s\"'`(<\[{:=：])(?=\S{0,80}[A-Za-z])(?=\S{0,80}\d)(?!\d{4}-\d\d)[\w+/=.!@#$%^&*~-]{6,}|\b[A-Z0-9]{16,}\b", re.ASCII
)
# "I'm" and "we've" would leave a single letter in a name.
_CONTRACTED = re.compile(r"['’](?:m|s|re|ve|d|ll)\b")
_NOT = re.compile(r"n['’]t\b")
# A number within another script belongs to its word: 11月30日.
_RUN = re.compile(r"(?:[0-9]*[^\W_a-z0-9]+)+|[a-z0-9]+")
_URL = re.compile(r"https?://\S+", re.IGNORECASE)
# Relative dates. A memory with one of these records the day on which it was stated.
_RELATIVE = re.compile(
    r"\b(?:today|tomorrow|yesterday|tonight|(?:next|this|last) (?:week|month|year|sprint)|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
    r"|\b(?:heute|morgen|übermorgen|gestern|(?:nächste|kommende|diese|letzte)[mnrs]? (?:woche|monat|jahr|quartal|sprint)"
    r"|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch)\b"
    r"|今天|明天|后天|昨天|下周|本周|上周|下个?月|本月|星期|周[一二三四五六日]|今日|明日|昨日|来週|今週|先週|来月|오늘|내일|다음 주",
    re.IGNORECASE,
)
# One item of a list: a bullet or a number at the beginning of a line, or numbers in a row: "1) … 2) …".
_ITEM = re.compile(r"^[ \t]*(?:[-*+•・]|\d{1,2}[.)、．])[ \t]*(?P<item>\S.*)$", re.MULTILINE)
_INLINE = re.compile(r"(?:(?<=\s)|^)(?:\((?P<closed>\d{1,2})\)|(?P<number>\d{1,2})[)．])\s*")
# Maximum number of items saved from one message; a longer list is not meant to be remembered.
MOST_NOTES = 20


class Note(NamedTuple):
    """A memory to save. `why` and `how` may be empty; `on` is the day it was stated, if it contains a relative date."""

    name: str
    type: str
    rule: str
    why: str = ""
    on: str = ""
    how: str = ""

    @property
    def description(self) -> str:
        line = "".join(char if char.isprintable() or char in JOINERS else " " for char in self.rule)
        line = " ".join(remove_invisible(line).split())
        return shorten(line, DESCRIPTION_CHARS)

    def file(self, why: str = "", name: str = "", rest: Sequence[str] = ()) -> str:
        """Return the text of the file. For an existing memory, pass its reason, its name and its other paragraphs (`rest`)."""
        parts, labels = [_sentence(self.rule)], labels_for(self.rule)
        if known := self.why or why:
            parts.append(f"{labels.why}{_sentence(known)}")
        if self.how:
            parts.append(f"{labels.how}{_sentence(self.how)}")
            rest = [part for part in rest if not HOW.match(part)]
        if self.on:
            parts.append(labels.on.format(on=self.on))
        parts += rest
        head = f"---\nname: {_scalar(name or self.name)}\ndescription: {_scalar(self.description)}\ntype: {self.type}\n---\n"
        return head + "\n" + "\n\n".join(parts) + "\n"


def items(text: str) -> list[str]:
    """Return the items that a message asks to remember: the items of its list, or the whole text."""
    listed = [found["item"].strip() for found in _ITEM.finditer(text)]
    outside = _ITEM.sub("", text).strip()
    # Text around a list belongs to it, so the whole is one item. A line that only introduces the list does not count.
    if len(listed) > 1 and (not outside or (outside.endswith((":", "：")) and "\n" not in outside)):
        return listed
    return _in_a_row(text) or [text]


def _in_a_row(text: str) -> list[str]:
    """Return the items of "1) … 2) … 3) …"; empty unless the text starts with 1 and the numbers are consecutive."""
    marks = list(_INLINE.finditer(text))
    if (
        len(marks) < 2
        or marks[0].start()
        or [int(mark["closed"] or mark["number"]) for mark in marks] != [*range(1, len(marks) + 1)]
    ):
        return []
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    return [text[mark.end() : end].strip(" \t\n;,，；") for mark, end in zip(marks, ends, strict=True)]


def notes(prompt: str, today: str = "") -> list[Note]:
    """Return the notes for a message in order, each with a unique name."""
    made: dict[str, Note] = {}
    for item in items(to_remember(prompt.strip())):
        note = _noted(item, today)
        name, number = note.name, 1
        while name in made and made[name].rule != note.rule:
            number += 1
            name = f"{note.name}-{number}"
        made.setdefault(name, note._replace(name=name))
    return list(made.values())


def noted(prompt: str, today: str = "", *, plan: bool = False) -> Note:
    return _noted(to_remember(prompt.strip()), today, plan=plan)


def _noted(text: str, today: str, *, plan: bool = False) -> Note:
    return note_of(reason(text), today, plan=plan)


def note_of(parts: Reason, today: str, *, plan: bool = False) -> Note:
    """Return the note for a sentence whose reason was found."""
    rule, why, how = parts
    text = " ".join(part for part in parts if part)
    on = today if _RELATIVE.search(text) or with_dates(text, today, plan=True) != text else ""
    says = with_dates(rule, today, plan=plan)
    return Note(named(rule), kind_of(rule), says, with_dates(why, today), on, with_dates(how, today))


def with_dates(text: str, today: str, *, plan: bool = False) -> str:
    """Return the text with a date after each relative date."""
    if not today:
        return text
    return dated(text, relative_dates(text, date.fromisoformat(today), plan=plan))


def named(rule: str) -> str:
    """Make a name from the first meaningful words, joined by hyphens; it is also the file name.

    Possible keys and passwords are left out, because names are shown everywhere.
    """
    kept: list[str] = []
    rule = COMPUTED.sub("", rule) or rule
    for run in _RUN.findall(
        _CONTRACTED.sub("", _NOT.sub(" not", normal(_LIKE_A_KEY.sub(" ", _URL.sub(" ", without_common_words(rule))))))
    ):
        if not run.isascii() or run in ("not", "no") or terms(run):
            kept.append(run)
    name = "-".join(kept[:NAME_WORDS])
    if len(name) > NAME_CHARS:  # whole words only, unless the first one is too long
        name = name[:NAME_CHARS].rpartition("-")[0] if "-" in name[: NAME_CHARS + 1] else name[:NAME_CHARS]
    return f"about-{name}" if name in _TAKEN or len(name) < 2 else name


# Scripts that use the ideographic full stop: Han and kana.
_FULL_STOP = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff）」』]")


def _sentence(text: str) -> str:
    """Return the text as a sentence, with the full stop of its script."""
    line = text.strip()
    line = line[:1].upper() + line[1:]
    if not line or line[-1] in ".!?。！？…":
        return line
    return line + ("。" if _FULL_STOP.fullmatch(line[-1]) or language_of(line) in ("zh", "ja") else ".")


def _scalar(text: str) -> str:
    """Return a front matter value: plain if that is safe, otherwise quoted."""
    plain = re.fullmatch(r"[^\W_][^:#\"'{}\[\]&*!|>%@`\\\n]*[^\s:#\"'{}\[\]&*!|>%@`\\]", text) and not re.fullmatch(
        r"[\d.,e+-]+|true|false|null|yes|no|on|off", text, re.IGNORECASE
    )
    return text if plain else json.dumps(text, ensure_ascii=False)
