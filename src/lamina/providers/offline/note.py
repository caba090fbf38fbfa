"""From "Remember: …" to a memory, by simple rules: what it is called, which type it has, the rule and the reason.

Pure. It understands nothing: a wrong type or a clumsy name is mended with an editor, so it never asks about those. It asks back only
where the sentence is plainly none to remember (S8): code, a place in the project, the task of the moment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple

from ...core.dates import dated, relative_dates
from ...core.words import normal, terms, to_remember

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
_BECAUSE_FIRST = re.compile(
    r"^\s*(?:because\s+(?P<en>.+?),\s*|(?:因为|因為|由于|由於)(?P<zh>.+?)[，,]\s*(?:所以)?)(?P<rule>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_BECAUSE = re.compile(
    r"^(?P<rule>.+?)(?:[,;]?\s+because(?:\s+of)?\s+|[,;]\s*since\s+|\s*[，,；。]?\s*(?:因为|因為|由于|由於|原因是|なぜなら|왜냐하면)[:：]?\s*)(?P<why>.+)$",
    re.IGNORECASE | re.DOTALL,
)
_URL = re.compile(r"https?://\S+", re.IGNORECASE)
_USER = re.compile(
    r"^\s*(?:i am|i'm|my name|my role|my job|i work (?:as|for|at)|i know|i have been)\b|^\s*(?:我是|我叫|我的名字|我的角色|私は|저는|나는)",
    re.IGNORECASE,
)
_FEEDBACK = re.compile(
    r"\b(?:always|never|prefers?|avoid|don't|do not|should|must|instead of|no longer|only ever|tests?|commits?|reviews?|pull requests?)\b"
    r"|总是|总要|从不|不要|不得|别|必须|应该|应当|优先|喜欢|一律|测试|提交|總是|必須|應該|測試|べき|ください|テスト|항상|절대|테스트",
    re.IGNORECASE,
)
_REFERENCE = re.compile(
    r"\b(?:lives?|lies|is|are|tracked|documented|found|kept) (?:in|at|on|under)\b|\b(?:dashboard|wiki|tracker|channel)\b"
    r"|位于|位於|存放在|网址|链接|看板|频道|にあります|에 있습니다",
    re.IGNORECASE,
)
# Days that mean another one tomorrow. Those that cannot be dated by themselves get the day on which they were said.
_RELATIVE = re.compile(
    r"\b(?:today|tomorrow|yesterday|tonight|(?:next|this|last) (?:week|month|year|sprint)|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
    r"|今天|明天|后天|昨天|下周|本周|上周|下个?月|本月|星期|周[一二三四五六日]|今日|明日|来週|오늘|내일|다음 주",
    re.IGNORECASE,
)
_CODE = re.compile(
    r"```|\b(?:def|function|fn|func) \w+\s*\(|\b(?:const|let|var) \w+ =|^\s*(?:class|import|from \w+ import)\b.*[(){};=]|=>\s*[{(]"
    r"|\b(?i:select)\b.{1,80}\b(?i:from) \w+.*(?:[;=*]|\b(?i:where)\b)|`[^`\n]*(?:[=;{}]|\(\))[^`\n]*`"
    r"|^\s*(?:th(?:is|e following)\s+)?(?:code|snippet|function|class|regex)\s*[:：]|^\s*(?:这段|以下)?代码\s*[:：]",
    re.MULTILINE,
)
_PATH = re.compile(r"(?<![\w:/.])(?:\.{0,2}/)?(?:[\w.-]+/)+[\w-]+\.[A-Za-z]\w{0,4}\b")
_MOMENT = re.compile(
    r"^\s*(?:(?:i am|i'm|we are|we're) (?:now |currently |just )?(?:working on|fixing|debugging|editing|halfway)"
    r"|(?:(?:the|our|my|your) )?(?:current|present) (?:task|job|step)|(?:the|our|my|your) (?:next step|task (?:now|is)))\b"
    r"|^\s*(?:(?:我们?的?)?当前(?:的)?任务|我(?:们)?正在|今のタスク|現在の(?:タスク|作業)|현재 작업)",
    re.IGNORECASE,
)
_GIT = re.compile(r"\bcommit [0-9a-f]{7,40}\b|\bgit (?:log|blame|history)\b|提交 ?[0-9a-f]{7,40}", re.IGNORECASE)
_FIX = re.compile(
    r"\b(?:bug|error|crash|issue|problem|failure) (?:was|is|got|has been) (?:fixed|solved|resolved) (?:by|with|in)\b"
    r"|\bthe (?:fix|workaround) (?:for|is|was)\b|(?:错误|问题|缺陷|故障)(?:是)?(?:通过|用).{1,30}(?:修复|解决)",
    re.IGNORECASE,
)
_SHAPE = re.compile(
    r"^\s*(?:the|our) (?:architecture|directory structure|folder structure|file layout|code ?base) (?:has|is|consists|uses|contains)\b"
    r"|^\s*(?:我们的)?(?:架构|目录结构|代码结构)(?:是|有|分为|包括)",
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
    """A memory to be. `why` is empty where no reason was given; `on` is the day it was said, where that matters."""

    name: str
    type: str
    rule: str
    why: str = ""
    on: str = ""

    @property
    def description(self) -> str:
        line = " ".join("".join(char if char.isprintable() else " " for char in self.rule).split())
        return line if len(line) <= DESCRIPTION_CHARS else f"{line[: DESCRIPTION_CHARS - 1]}…"

    def file(self, why: str = "", name: str = "", rest: Sequence[str] = ()) -> str:
        """The text of its file. `why` is a reason that was known before, `name` the name it has already, `rest` what else it says."""
        parts = [_sentence(self.rule)]
        if reason := self.why or why:
            parts.append(f"**Why:** {_sentence(reason)}")
        if self.on:
            parts.append(f"Said on {self.on}.")
        parts += rest
        head = f"---\nname: {_scalar(name or self.name)}\ndescription: {_scalar(self.description)}\ntype: {self.type}\n---\n"
        return head + "\n" + "\n\n".join(parts) + "\n"


def no_memory(text: str) -> str | None:
    """What the text is, where it is plainly nothing to remember (S8); None where it may be."""
    if _CODE.search(text):
        return "code"
    if _MOMENT.search(text):
        return "the task of the moment"
    if _reason(text)[1]:
        return None
    if _PATH.search(_URL.sub(" ", text)):
        return "where a file lies"
    kinds = ((_GIT, "the history of the code"), (_FIX, "how something was mended"), (_SHAPE, "how the code is built"))
    return next((what for pattern, what in kinds if pattern.search(text)), None)


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
    rule, why = _reason(text)
    on = today if _RELATIVE.search(text) or _dated(text, today) != text else ""
    return Note(named(rule), _type(rule), _dated(rule, today), _dated(why, today), on)


def _dated(text: str, today: str) -> str:
    """With the date behind each day that means another one tomorrow (S7)."""
    if not today:
        return text
    return dated(text, relative_dates(text, date.fromisoformat(today)))


def _reason(text: str) -> tuple[str, str]:
    if first := _BECAUSE_FIRST.match(text):
        return first["rule"].strip(), (first["en"] or first["zh"]).strip()
    if found := _BECAUSE.match(text):
        return found["rule"].strip(" ,;，；。"), found["why"].strip()
    return text, ""


def _type(rule: str) -> str:
    if _USER.search(rule):
        return "user"
    if _URL.search(rule):
        return "reference"
    if _FEEDBACK.search(rule):
        return "feedback"
    return "reference" if _REFERENCE.search(rule) else "project"


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
