"""From "Remember: …" to a memory, by simple rules: what it is called, which type it has, the rule and the reason.

Pure. It understands nothing: a wrong type or a clumsy name is mended with an editor, so it never asks about those. It asks back only
where the sentence is plainly none to remember (S8): code, a place in the project, the task of the moment.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from ...core.words import REMEMBER, normal, terms

# Words of a name: enough to tell it from its neighbours, few enough for a line of the index.
NAME_WORDS = 6
NAME_CHARS = 40
DESCRIPTION_CHARS = 300

# Names that mean something else in a memory directory.
_TAKEN = frozenset({"memory", "team", "logs", "readme"})
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
# Days that mean another one tomorrow.
_RELATIVE = re.compile(
    r"\b(?:today|tomorrow|yesterday|tonight|(?:next|this|last) (?:week|month|year|sprint)|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"
    r"|今天|明天|后天|昨天|下周|本周|上周|下个?月|本月|星期|周[一二三四五六日]|今日|明日|来週|오늘|내일|다음 주",
    re.IGNORECASE,
)
_CODE = re.compile(r"```|^\s*(?:def|class|function|const|import|from \w+ import|SELECT)\b.*[(){};=]", re.MULTILINE)
_PATH = re.compile(r"(?<![\w:/.])(?:\.{0,2}/)?(?:[\w.-]+/)+[\w-]+\.[A-Za-z]\w{0,4}\b")
_MOMENT = re.compile(
    r"^\s*(?:(?:i am|i'm|we are|we're) (?:now |currently |just )?(?:working on|fixing|debugging|editing|halfway)|(?:the )?current task)\b"
    r"|^\s*(?:当前任务|我(?:们)?正在)",
    re.IGNORECASE,
)

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

    def file(self, why: str = "", name: str = "") -> str:
        """The text of its file. `why` is a reason that was known before, `name` the name it has already."""
        parts = [_sentence(self.rule)]
        if reason := self.why or why:
            parts.append(f"**Why:** {_sentence(reason)}")
        if self.on:
            parts.append(f"Said on {self.on}.")
        head = f"---\nname: {_scalar(name or self.name)}\ndescription: {_scalar(self.description)}\ntype: {self.type}\n---\n"
        return head + "\n" + "\n\n".join(parts) + "\n"


def no_memory(text: str) -> str | None:
    """What the text is, where it is plainly nothing to remember (S8); None where it may be."""
    if _CODE.search(text):
        return "code"
    if _MOMENT.search(text):
        return "the task of the moment"
    if _PATH.search(_URL.sub(" ", text)) and not _reason(text)[1]:
        return "where a file lies"
    return None


def noted(prompt: str, today: str = "") -> Note:
    text = REMEMBER.sub("", prompt.strip(), count=1).strip()
    rule, why = _reason(text)
    on = today if _RELATIVE.search(text) else ""
    return Note(_name(rule), _type(rule), rule, why, on)


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


def _name(rule: str) -> str:
    """The first words that say something, joined by hyphens: a name that is its own file name."""
    kept: list[str] = []
    for run in _RUN.findall(normal(rule)):
        if not run.isascii() or terms(run):
            kept.append(run)
    name = "-".join(kept[:NAME_WORDS])[:NAME_CHARS].strip("-")
    return f"about-{name}" if name in _TAKEN or len(name) < 2 else name


def _sentence(text: str) -> str:
    """With a full stop, as the script has it."""
    line = text.strip()
    line = line[:1].upper() + line[1:]
    if not line or line[-1] in ".!?。！？…":
        return line
    return line + ("." if line[-1].isascii() else "。")


def _scalar(text: str) -> str:
    """A value of the front matter: plain where that is safe, else in quotes."""
    plain = re.fullmatch(r"[^\W_][^:#\"'{}\[\]&*!|>%@`\\\n]*[^\s:#\"'{}\[\]&*!|>%@`\\]", text) and not re.fullmatch(
        r"[\d.,e+-]+|true|false|null|yes|no|on|off", text, re.IGNORECASE
    )
    return text if plain else json.dumps(text, ensure_ascii=False)
