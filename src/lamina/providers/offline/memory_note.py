"""From "Remember: …" to a memory, by simple rules: what it is called, which type it has, the rule and the reason.

Pure. What the words mean is `wording`. It understands nothing: a wrong type or a clumsy name is mended with an editor, so it never asks
about those. It asks back only where the sentence is plainly none to remember (S8): code, a place in the project, the task of the moment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from ...core.dates import dated, relative_dates
from ...core.memory_requests import to_remember
from ...core.terms import normal, terms
from .sentence_rules import kind_of, reason
from .sentence_rules import no_memory as no_memory  # who takes notes asks for it here

# Words of a name: enough to tell it from its neighbours, few enough for a line of the index.
NAME_WORDS = 6
NAME_CHARS = 40
DESCRIPTION_CHARS = 300

# Names that mean something else in a memory directory.
_TAKEN = frozenset({"memory", "team", "logs", "readme"})
# Six or more letters and digits mixed, or a long run of capitals.
_LIKE_A_KEY = re.compile(
    r"(?<![^\s\"'`(<\[{:=：])(?=\S{0,80}[A-Za-z])(?=\S{0,80}\d)(?!\d{4}-\d\d)[\w+/=.!@#$%^&*~-]{6,}|\b[A-Z0-9]{16,}\b", re.ASCII
)
_RUN = re.compile(r"[a-z0-9]+|[^\W_a-z0-9]+")
# Days that mean another one tomorrow. Those that cannot be dated by themselves get the day on which they were said.
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
# A list that is longer is no list of things to remember.
MOST_NOTES = 20

ASK_BACK = (
    "I did not save that: {what} can be looked up when it is needed, and a memory of it goes out of date. What about it is worth "
    'keeping: why it is so, or what to do differently? Say "Remember: …" with that.'
)


class Note(NamedTuple):
    """A memory to be. `why` and `how` are empty where the words give none; `on` is the day it was said, where that matters."""

    name: str
    type: str
    rule: str
    why: str = ""
    on: str = ""
    how: str = ""

    @property
    def description(self) -> str:
        line = " ".join("".join(char if char.isprintable() else " " for char in self.rule).split())
        return line if len(line) <= DESCRIPTION_CHARS else f"{line[: DESCRIPTION_CHARS - 1]}…"

    def file(self, why: str = "", name: str = "", rest: Sequence[str] = ()) -> str:
        """The text of its file. `why` is a reason that was known before, `name` the name it has already, `rest` what else it says."""
        parts = [_sentence(self.rule)]
        if known := self.why or why:
            parts.append(f"**Why:** {_sentence(known)}")
        if self.how:
            parts.append(f"**How to apply:** {_sentence(self.how)}")
            rest = [part for part in rest if not part.startswith("**How to apply:**")]
        if self.on:
            parts.append(f"Said on {self.on}.")
        parts += rest
        head = f"---\nname: {_scalar(name or self.name)}\ndescription: {_scalar(self.description)}\ntype: {self.type}\n---\n"
        return head + "\n" + "\n\n".join(parts) + "\n"


def items(text: str) -> list[str]:
    """The things one message asks to remember: the items of its list, or all of it."""
    listed = [found["item"].strip() for found in _ITEM.finditer(text)]
    outside = _ITEM.sub("", text).strip()
    # Words around a list belong to it: then it is one thing. A line that only announces it does not.
    if len(listed) > 1 and (not outside or (outside.endswith((":", "：")) and "\n" not in outside)):
        return listed
    return _in_a_row(text) or [text]


def _in_a_row(text: str) -> list[str]:
    """The items of "1) … 2) … 3) …"; none where the numbers are not counted up from one at the very beginning."""
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
    """What a message asks to remember, each with a name of its own, in the order of the message."""
    made: dict[str, Note] = {}
    for item in items(to_remember(prompt.strip())):
        note = _noted(item, today)
        name, number = note.name, 1
        while name in made and made[name].rule != note.rule:
            number += 1
            name = f"{note.name}-{number}"
        made.setdefault(name, note._replace(name=name))
    return list(made.values())


def noted(prompt: str, today: str = "") -> Note:
    return _noted(to_remember(prompt.strip()), today)


def _noted(text: str, today: str) -> Note:
    rule, why, how = reason(text)
    on = today if _RELATIVE.search(text) or with_dates(text, today) != text else ""
    return Note(named(rule), kind_of(rule), with_dates(rule, today), with_dates(why, today), on, with_dates(how, today))


def with_dates(text: str, today: str) -> str:
    """With the date behind each day that means another one tomorrow (S7)."""
    if not today:
        return text
    return dated(text, relative_dates(text, date.fromisoformat(today)))


def named(rule: str) -> str:
    """The first words that say something, joined by hyphens: a name that is its own file name. What may be a key or a password is
    left out: a name is shown everywhere."""
    kept: list[str] = []
    for run in _RUN.findall(normal(_LIKE_A_KEY.sub(" ", rule))):
        if not run.isascii() or terms(run):
            kept.append(run)
    name = "-".join(kept[:NAME_WORDS])[:NAME_CHARS].strip("-")
    return f"about-{name}" if name in _TAKEN or len(name) < 2 else name


# Scripts whose sentences end with a circle: Han and kana.
_FULL_STOP = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff）」』]")


def _sentence(text: str) -> str:
    """With a full stop, as the script has it."""
    line = text.strip()
    line = line[:1].upper() + line[1:]
    if not line or line[-1] in ".!?。！？…":
        return line
    return line + ("。" if _FULL_STOP.fullmatch(line[-1]) else ".")


def _scalar(text: str) -> str:
    """A value of the front matter: plain where that is safe, else in quotes."""
    plain = re.fullmatch(r"[^\W_][^:#\"'{}\[\]&*!|>%@`\\\n]*[^\s:#\"'{}\[\]&*!|>%@`\\]", text) and not re.fullmatch(
        r"[\d.,e+-]+|true|false|null|yes|no|on|off", text, re.IGNORECASE
    )
    return text if plain else json.dumps(text, ensure_ascii=False)
