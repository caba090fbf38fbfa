"""Whether one sentence takes the place of another: "we deploy on Thursdays" after "we deploy on Tuesdays".

Pure, and careful rather than clever: two sentences are one only where they differ in a single value of a kind that has one value at a
time (a day, a number, who is in charge), or where the new one says itself that things have changed. "Anna likes tea" does not end
"Bob likes tea". What is not seen here stays as a second memory; nothing is lost by that.
"""

from __future__ import annotations

import re

from ...core.terms import normal, terms

_DAY = re.compile(
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:jan|febr)uary|march|april|may|june|july|august|(?:sept|nov|dec)ember|october"
    r"|(?:morning|evening|afternoon|night|noon|midnight)s?|daily|weekly|monthly|yearly|hourly"
)
_NUMBER = re.compile(r"v?\d[\d.,:-]*(?:[a-z%]{0,3})")
_WORD = re.compile(r"[\w.:%-]*\w%?")
# Who is in charge is one person; whom somebody likes is not.
_IN_CHARGE = re.compile(r"(?:owns?|leads?|maintains?|manages?|heads?|approves?|is responsible for|is in charge of|is the)\b")
# Words before a name or a thing that stands for the one value: "the on-call is Bob", "it is called heron".
_BEFORE_VALUE = frozenset({"is", "are", "by", "called", "named"})
# Said anew because it changed.
_CHANGED = re.compile(
    r"\b(?:now|no longer|instead|any ?more|from now on|changed to|moved to|switched to)\b"
    r"|不再|改为|改成|现在|今后|もう|今は|変更|이제|더 이상",
    re.IGNORECASE,
)
_FILLING = frozenset({"now", "the", "a", "an", "our", "we", "all", "currently", "always"})
# In scripts without spaces: a day of the week, a number, or who is in charge, with the same words around it.
_SIGN = re.compile(r"[一二三四五六七八九十日天月火水木金土\d월화수목금토일.:点時时号]{1,6}")
_HAN_CHARGE = re.compile(r"^(?P<who>[^\W\d_a-zA-Z]{1,6}?)(?P<what>(?:负责|負責|管理|维护|維護|が担当|が管理).+)$")


def says_instead(new: str, old: str) -> bool:
    """Whether the new sentence takes the place of the old one."""
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
        # At the beginning a number names a thing: ticket 12, version 3.
        return at >= 2 and at >= len(new) - 3
    if at == 0:
        return _IN_CHARGE.match(" ".join(new[1:])) is not None
    return at == len(new) - 1 and new[at - 1] in _BEFORE_VALUE


def _corrects(new: str, old: str) -> bool:
    """ "The deploy day is Wednesday now, not Thursday": it says that it changed, and names all that the old sentence names."""
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
    # More is the same than differs, or they are two sentences of one form.
    return bool(_SIGN.fullmatch(mine) and _SIGN.fullmatch(theirs)) and head + tail >= 3
