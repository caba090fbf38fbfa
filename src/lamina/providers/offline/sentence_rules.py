"""Classifies a sentence to remember by its words.

It also decides whether a sentence replaces an older one: "we deploy on Thursdays" after "we deploy on Tuesdays".

It supports English, Chinese, German and Japanese, and some Korean. The rules only look at words: a sentence that matches no rule is a
fact about the project. Replacing is cautious. A new sentence replaces an old one only if they differ in a single value of a kind that
has one value at a time (a day, a number, the person in charge), or if the new one states that something changed. "Anna likes tea"
does not replace "Bob likes tea". A missed replacement stays as a second memory, so nothing is lost.
"""

from __future__ import annotations

import re
from datetime import date

from ...language.dates import relative_dates
from ...language.terms import normal, terms

_URL = re.compile(r"https?://\S+", re.IGNORECASE)

# Patterns for the type

_ISO = re.compile(r"\b\d{4}-\d\d\b")
# Whether a rule has a relative date does not depend on the day.
_ANY_DAY = date(2000, 1, 1)

_USER = re.compile(
    r"^\s*(?:i am|i'm|i’m|my name|my role|my job|my (?:native|first) language|i work (?:as|for|at)|i know|i have been|i've been"
    r"|i (?:do not|don't) know|i (?:like|love|speak|live|studied|maintain))\b"
    r"|^\s*(?:ich (?:bin|heiße|heisse|arbeite|kenne|mag|spreche|wohne)|mein name|meine (?:rolle|aufgabe im team|muttersprache))\b"
    r"|^\s*(?:我是|我叫|我的名字|我的角色|我的职位|我(?:喜欢|擅长|熟悉|负责|从事|不熟悉))"
    r"|^\s*(?:私は|私の(?:名前|役割|仕事)|僕は|俺は|저는|나는|제 이름)",
    re.IGNORECASE,
)
_FEEDBACK = re.compile(
    r"\b(?:always|never|prefers?|avoid|don't|don’t|do not|should|must|instead of|no longer|only ever)\b"
    r"|\b(?:\w*tests?|commits?|reviews?|pull requests?)\b"
    r"|\b(?:immer|nie|niemals|soll|sollen|sollst|solltest|muss|müssen|darf|dürfen|anstatt|statt|bevorzug\w*|vermeide\w*|bitte)\b"
    r"|总是|总要|从不|不要|不得|别|必须|应该|应当|优先|喜欢|一律|测试|提交|總是|必須|應該|測試"
    r"|べき|ください|テスト|必ず|絶対|決して|常に|いつも|禁止|ないこと|しない(?:で|。|$)|ましょう|항상|절대|테스트",
    re.IGNORECASE,
)
_REFERENCE = re.compile(
    r"\b(?:lives?|lies|is|are|tracked|documented|found|kept) (?:in|at|on|under)\b|\b(?:dashboard|wiki|tracker|channel)\b"
    r"|\b(?:liegt|liegen|steht|stehen|findet sich|finden sich|dokumentiert) (?:in|im|auf|unter|bei|beim)\b|\b(?:kanal|ticketsystem)\b"
    r"|(?:in|im|auf|unter|bei|beim) .{1,40} (?:liegt|liegen|steht|stehen|dokumentiert)\b"
    r"|位于|位於|存放在|网址|链接|看板|频道|にあります|にある|で管理|トラッカー|ダッシュボード|에 있습니다",
    re.IGNORECASE,
)


def kind_of(rule: str) -> str:
    """Return the memory type of a rule."""
    if _USER.search(rule):
        return "user"
    if _URL.search(rule):
        return "reference"
    if _FEEDBACK.search(rule):
        return "feedback"
    if _ISO.search(rule) or relative_dates(rule, _ANY_DAY, plan=True):
        return "project"  # "the release is on Thursday" is no place
    return "reference" if _REFERENCE.search(rule) else "project"


_DAY = re.compile(
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:jan|febr)uary|march|april|may|june|july|august|(?:sept|nov|dec)ember|october"
    r"|(?:morning|evening|afternoon|night|noon|midnight)s?|daily|weekly|monthly|yearly|hourly"
)
_NUMBER = re.compile(r"v?\d[\d.,:-]*(?:[a-z%]{0,3})")
_WORD = re.compile(r"[\w.:%-]*\w%?")
# Only one person is in charge of something, so a new name replaces the old one.
_IN_CHARGE = re.compile(r"(?:owns?|leads?|maintains?|manages?|heads?|approves?|is responsible for|is in charge of|is the)\b")
# Words before a name or a thing that has one value: "the on-call is Bob", "it is called heron".
_BEFORE_VALUE = frozenset({"is", "are", "by", "called", "named"})
# Words that announce a change.
_CHANGED = re.compile(
    r"\b(?:now|no longer|instead|any ?more|from now on|changed to|moved to|switched to)\b"
    r"|不再|改为|改成|现在|今后|もう|今は|変更|이제|더 이상",
    re.IGNORECASE,
)
_FILLING = frozenset({"now", "the", "a", "an", "our", "we", "all", "currently", "always"})
# In scripts without spaces: a day of the week, a number, or the person in charge, with the same words around it.
_SIGN = re.compile(r"[一二三四五六七八九十日天月火水木金土\d월화수목금토일.:点時时号]{1,6}")
_HAN_CHARGE = re.compile(r"^(?P<who>[^\W\d_a-zA-Z]{1,6}?)(?P<what>(?:负责|負責|管理|维护|維護|が担当|が管理).+)$")


def says_instead(new: str, old: str) -> bool:
    """Whether the new sentence replaces the old one."""
    one, other = _words(new), _words(old)
    if not one or not other or one == other:
        return False
    if not (new.isascii() and old.isascii()) and _says_instead_han(normal(new), normal(old)):
        return True
    if len(one) == len(other):
        different = [at for at, (mine, theirs) in enumerate(zip(one, other, strict=True)) if mine != theirs]
        if len(different) == 1 and _one_value(one, other, different[0]):
            return True
    return _corrects(new, old)


def _words(text: str) -> list[str]:
    return [word for word in _WORD.findall(normal(text)) if word not in _FILLING]


def _one_value(new: list[str], old: list[str], at: int) -> bool:
    mine, theirs = new[at], old[at]
    if _DAY.fullmatch(mine) and _DAY.fullmatch(theirs):
        return True
    if _NUMBER.fullmatch(mine) and _NUMBER.fullmatch(theirs):
        # Near the start of a sentence a number names a thing: ticket 12, version 3.
        return at >= 2 and at >= len(new) - 3
    if at == 0:
        return _IN_CHARGE.match(" ".join(new[1:])) is not None
    return at == len(new) - 1 and new[at - 1] in _BEFORE_VALUE


def _corrects(new: str, old: str) -> bool:
    """Whether the new sentence announces a change and contains all terms of the old one.

    Example: "The deploy day is Wednesday now, not Thursday".
    """
    had = set(terms(old))
    return _CHANGED.search(new) is not None and len(had) > 1 and had <= set(terms(new))


def _says_instead_han(new: str, old: str) -> bool:
    one, other = _HAN_CHARGE.match(new), _HAN_CHARGE.match(old)
    if one and other and one["what"].rstrip("。.") == other["what"].rstrip("。."):
        return True
    new, old = new.rstrip("。.！!"), old.rstrip("。.！!")
    shorter = min(len(new), len(old))
    head = next((at for at in range(shorter) if new[at] != old[at]), shorter)
    tail = next((at for at in range(shorter - head) if new[-1 - at] != old[-1 - at]), shorter - head)
    mine, theirs = new[head : len(new) - tail], old[head : len(old) - tail]
    # Require enough common text; otherwise they are just two sentences of the same form.
    return bool(_SIGN.fullmatch(mine) and _SIGN.fullmatch(theirs)) and head + tail >= 3
