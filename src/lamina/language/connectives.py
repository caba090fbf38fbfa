"""Finds the reason in a sentence by the word that introduces it: "because", "so", 因为, ので, weil.

A language has words before a reason that comes first, words before one that comes last, and words before what follows from a reason.
Seven languages share three patterns. A purpose ("so that I can read it") counts as a reason. Pure, and linear in the text.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Reason(NamedTuple):
    """The parts of a sentence: the rule, its reason, and how to apply it. Missing parts are empty."""

    rule: str
    why: str = ""
    how: str = ""


# Shorter parts are not clauses.
FEWEST_CHARS = 4

# A statement follows, so that "as we deploy on Fridays" counts and "as a rule" does not.
_SAYS = (
    r"(?=(?:i|we|it|they|s?he|there|nobody|no one|everyone|people) (?!said|mentioned|told|wrote|agreed)"
    r"|(?:the|our|my|this|most|many|some|all)(?: [\w-]+){1,3} (?:is|are|was|were|ha[sd]|have|can|can['’]t|will|won['’]t"
    r"|do(?:es)?|do(?:es)?n['’]t|needs?|uses?|runs?)\b)"
)
_SAGT = r"(?=(?:ich|wir|es|er|sie|die|der|das|unsere?|mein|alle|viele|niemand|keiner|man|dort|hier|sonst)\b)"
_DIT = r"(?=(?:ils?|elles?|on|nous|je|les?|la|ça|ce|nos|mon|ma|personne|une?|cela|tout)\b|[ljc]')"
# A time follows: "since Monday" gives no reason.
_TIME = (
    r"(?!then\b|last\b|yesterday\b|today\b|v?\d|(?:the )?(?:start|beginning|end)\b|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day)"
)
# Something is so now: "since they hide the call" gives a reason, and "since we moved" a time.
_NOT_PAST = r"(?!\w+ed\b|was\b|were\b|had\b|went\b|left\b|came\b|got\b|began\b)"
_IS_SO = (
    rf"(?=(?:i|we|it|they|s?he|nobody|everyone|people)(?:['’](?:s|re|m)\b| {_NOT_PAST}\w)"
    r"|(?:the|our|my|your|their|its|this|every|each|most|some|all|no|half)(?: [\w-]+){1,3}?"
    rf" (?:is|are|has|have|can|can['’]t|will|won['’]t|do(?:es)?|do(?:es)?n['’]t|need|use|run|\w{{2,}}[^\Ws]s(?= {_NOT_PAST}(?!of\b)\w))\b)"
)
# Something happened. It is the reason for what "we" do or did, and only a time after the perfect: "since legal flagged it".
_HAPPENED = r"(?=(?:[\w'’-]+ ){1,4}?(?:\w{2,}ed|was|were|had|got|went|left|broke|lost|said|told|came|quit|cut|ran|made)\b)"
_WE_DO = re.compile(r"\b(?:we|i)\b(?!['’]ve)(?!.*\b(?:has|have|had|been|ever)\b)", re.IGNORECASE)
_PAUSE = r"[,;，；.。—–(（-]\s*+"

_LEAD = (
    r"\s*+(?:(?:also|and|but|btw|by the way|ok(?:ay)?|hey|well|oh|yes|no|please|note|und|et|y|ah|übrigens|另外|还有|对了"
    r"|顺便说?一?下?)[,，:：!]?\s+|[另还对][外有了][，,]\s*)*+"
)
# Before a reason that comes first; a comma ends it.
_FIRST = re.compile(
    rf"^{_LEAD}(?:(?:because|since {_TIME}|as {_SAYS}|given(?: that)?|seeing (?:that|as)|now that|considering(?: that)?|due to)(?: of)?\s*"
    rf"|(?:weil|da {_SAGT})\s*|(?:comme(?! (?:toujours|d'hab|convenu|avant|prévu))|puisque?|vu que?|étant donné que?|parce que?)[ ']"
    r"|(?:como (?!siempre|antes|ya)|ya que|puesto que|dado que|debido a(?: que)?|porque|visto que)\s*"
    r"|因为|因為|由于|由於|既然|鉴于|考虑到|为了|為了)",
    re.IGNORECASE,
)
_END_OF_FIRST = re.compile(r"[,，]\s*+(?:(?:so|then|dann|donc|alors|entonces)\s+)?")
# Before a reason that comes last. Words that carry a meaning of their own stay with it: "otherwise", "to avoid".
_LAST = re.compile(
    rf"\b(?:because(?: of)?|bc|due to|owing to|seeing (?:that|as)|given that|so that|in order(?= to ))\s"
    rf"|[,;]\s*+(?:since {_TIME}|as {_SAYS})|\bsince {_TIME}{_IS_SO}|\b(?P<happened>since) {_TIME}{_HAPPENED}"
    r"|(?<![,;] )\bso (?=(?:i|we|they|it|s?he|people|everyone|nobody|others|the \w+) (?:can|could|don['’]?t|doesn|won|will|never"
    r"|knows?|sees?|gets?|stays?)\b)"
    r"|\b(?=to (?:avoid|prevent|make sure|ensure|reduce)\b)"
    rf"|{_PAUSE}(?=(?:otherwise|or else|sonst|ansonsten|andernfalls|sinon|si no|de lo contrario)\b)"
    r"|,?\s(?=or (?:we|it|they|the \w+|i|nobody|everything|you) (?:will|won|lose|have|has|can|get|end|break|fail))"
    rf"|,\s*+(?:weil|denn|damit|da {_SAGT})\s*|\bwegen\s|\bparce que?[ ']|,\s*+(?:car|puisque?|vu que?)[ ']|\bcar {_DIT}"
    rf"|\b(?:pour|afin) que?[ ']"
    r"|\b(?=afin de |pour éviter )|\b(?:à cause|en raison) d[e'us]+\s?|\b(?:porque|ya que|puesto que|dado que|debido a(?: que)?|para que)\s"
    r"|,\s*+pues\s|\b(?=para (?:evitar|no) )"
    r"|(?:因为|因為|由于|由於|原因是|毕竟|なぜなら|というのも|왜냐하면)[:：，,]?|[，,；]\s*+(?:是?为了|為了|为的是)"
    r"|[，,；。、.]\s*+(?=否则|不然|要不然|免得|以免|省得|以便|好让|さもないと|でないと|そうしないと|안 그러면|그렇지 않으면)",
    re.IGNORECASE,
)
# Before what follows from a reason.
_SO = re.compile(
    r"[,;.—–-]\s*+(?:and )?(?:so|therefore|thus|hence|that['’]s why|which is why|which means)\s+(?!that\b|far\b|much\b|many\b)"
    r"|[,;.—–]\s*+(?:deshalb|daher|darum|deswegen|also|folglich|donc|du coup|c['’]est pourquoi|alors|par conséquent)\s+"
    r"|[,;.—–]\s*+(?:así que|por eso|por (?:lo )?tanto|de modo que|entonces)\s+"
    r"|[，,；。]\s*+(?:所以|因此|因而|于是)[，,]?|[。、]\s*+(?:だから|そのため|なので|ですので|それで)、?|[,.]?\s(?:그래서|그러니까?|따라서)[,]?\s",
    re.IGNORECASE,
)
# Begins a sentence that follows from the one before it, or that gives its reason.
_SO_BEGINS = re.compile(
    r"^(?:so|therefore|thus|hence|that['’]s why|deshalb|daher|darum|deswegen|donc|du coup|c['’]est pourquoi|así que|por eso"
    r"|por (?:lo )?tanto)[, ]\s*"
    r"|^(?:所以|因此|だから|そのため|なので|그래서|그러니까?|따라서)[，,、]?\s*",
    re.IGNORECASE,
)
_WHY_BEGINS = re.compile(
    r"^(?:(?:that['’]s|this is|it['’]s) (?:just |only )?)?(?:because|bc)\s|^(?:the )?reason(?: is(?: that)?|:)\s|^(?=otherwise\b|or else\b)"
    r"|^(?:weil|denn)\s|^(?:der )?grund(?: ist|:)\s|^(?=sonst\b|ansonsten\b)|^(?:c['’]est )?parce que?[ ']|^(?=sinon\b)"
    r"|^(?:es )?porque\s|^(?=si no,|de lo contrario)"
    "|^(?:这是)?(?:因为|由于)|^(?:原因|理由)(?:是|：|:)|^(?=否则|不然|要不然)|^(?:なぜなら|というのも)、?|^(?=でないと"
    "|さもないと)|^왜냐하면,? |^(?=안 그러면)",
    re.IGNORECASE,
)
# Japanese and Korean mark the reason at its end, whether it comes first or last.
_ENDS_FIRST = re.compile(
    r"ので(?![はすしも])、?|(?:ため|為)に?、|(?<=[だいるたす])から、|(?<=[るい])ように、|(?<=기 때문)에,? |(?<=때문)에,? "
    r"|(?<![습입])(?<=니까),? |(?<=므로),? |(?<![에여거기래]서)(?<=[가-힣]서), "
)
_ENDS_LAST = re.compile(
    r"(?P<rule>[^、,]{4,}?(?:ください|下さい|ほしい|주세요|마세요|줘))[、,]\s*+(?P<why>[^、,]{4,}?)(?:ので|から(?:です)?|ため(?:です)?|니까요?|거든요|서요)[。.]?$"
)
_REASON_END = re.compile(r"(?:から|ため|ので)(?:です|だ)?[。.]?$")
_IS_REASON = re.compile(r"(?:から(?:です|だ)|ため(?:です|だ)|ので|거든요?|때문(?:입니다|이에요)|니까요)[。.]?$")
# The reason under its label, as a bullet of a daily log gives it: "…; why: Friday is short".
_LABELLED = re.compile(
    r"(?:[,;.，；。]\s*+|(?<!\s)\s++[—–-]\s+|(?<!\s)\s*+[（(])(?:why|reason|warum|grund|pourquoi|raison|por qué|motivo"
    r"|原因|理由|이유)\s?[:：]\s*",
    re.IGNORECASE,
)
_AROUND = " \t\n,;:，；。、：—–-"


def marked_reason(text: str) -> Reason | None:
    """Return the parts of a text whose reason is introduced by a word such as "because"."""
    return _labelled(text) or _first(text) or _last(text) or _ends(text)


def consequence(text: str) -> Reason | None:
    """Return a statement that is followed by "so" and what follows from it, as a reason and its rule."""
    found = _SO.search(text)
    return _parts(text[found.end() :], text[: found.start()]) if found is not None else None


def without_so(sentence: str) -> str | None:
    """Return a sentence that begins with "so" or "that's why" without these words, or None."""
    found = _SO_BEGINS.match(sentence)
    return sentence[found.end() :] if found is not None else None


def begins_as_reason(sentence: str) -> str | None:
    """Return the reason that a sentence after a rule gives by its first words or its ending ("Otherwise …", …からです), or None."""
    if (found := _WHY_BEGINS.match(sentence)) is not None:
        return sentence[found.end() :]
    return bare_reason(sentence) if _IS_REASON.search(sentence) else None


def bare_reason(why: str) -> str:
    """Return a reason without the ending that means "because"."""
    return _REASON_END.sub("", why.strip()) or why


def _labelled(text: str) -> Reason | None:
    found = _LABELLED.search(text)
    return _parts(text[: found.start()], text[found.end() :]) if found is not None else None


def _first(text: str) -> Reason | None:
    if (found := _FIRST.match(text)) is None:
        return None
    rest = text[found.end() :]
    end = (_SO.search(rest) if not rest[:1].isascii() else None) or _END_OF_FIRST.search(rest)
    return _parts(rest[end.end() :], rest[: end.start()]) if end is not None else None


def _last(text: str) -> Reason | None:
    for found in _LAST.finditer(text):
        if (parts := _parts(text[: found.start()], text[found.end() :])) is None:
            continue
        if found["happened"] and not _WE_DO.search(parts.rule):
            continue  # a time
        follows = _SO.search(parts.why)
        if follows is None:
            return parts
        return Reason(parts.rule, bare_reason(parts.why[: follows.start()]), parts.why[follows.end() :].strip())
    return None


def _ends(text: str) -> Reason | None:
    if (last := _ENDS_LAST.match(text)) is not None:
        return _parts(last["rule"], last["why"])
    found = _ENDS_FIRST.search(text)
    return _parts(text[found.end() :], text[: found.start()]) if found is not None and "。" not in text[: found.start()] else None


def _parts(rule: str, why: str) -> Reason | None:
    rule, why = rule.strip(f"{_AROUND}(（"), why.strip(_AROUND.replace("。", ""))
    if why.endswith((")", "）")) and not re.search("[(（]", why):
        why = why[:-1]
    return Reason(rule, bare_reason(why)) if min(len(rule), len(why)) >= FEWEST_CHARS else None
