"""Compares a text with others: which of its content words another text has, and which text it is closest to. Pure.

This tells where a memory comes from, and finds what the model took from another text. Words are compared by their stems, and scripts
without spaces by pairs of characters, which weigh half a word each. Words that a memory adds around any statement ("the user prefers …")
and negations carry no content. Whether a memory is the user's own sentence is decided in own_sentence.py.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from ...language.connectives import consequence, marked_reason
from ...language.detection import ON
from ...language.terms import is_word, normal, stem, terms

# A statement keeps at least this share of its content in a paraphrase, and at least two of its words.
SHARE = 0.5
FEWEST = 2.0
# Of a statement of one or two words, nearly all.
SHORT_SHARE = 0.6
# A pair of characters is about half a word.
PAIR = 0.5
# Words match if one begins with the other and this much of them is equal: summary and summarize.
PREFIX = 4
# A sentence of advice is the model's own. It is taken from a passage only if it has this much of it.
ADVICE_SHARE, ADVICE_FEWEST = 0.6, 3.0
# A passage that shares less with a memory is about something else.
ORIGIN_SHARE = 0.4

_WORDS = """
    user users person people prefer prefers preference preferences want wants wish wishes like likes ask asks asked say says said
    name named call called role dislike dislikes hate hates memory memories feedback rule rules always never keep keeps kept avoid
    avoids stop without instead rather don doesn isn aren won m d ll re ve im not no nor none must need needs shall may might also
    only just very every each here now approve approved approval approves doing does done how why remember know knows known
"""
_SCAFFOLD = frozenset(stem(word) for word in _WORDS.split())
# The same in scripts without spaces, removed before pairs are made.
_CJK_SCAFFOLD = re.compile(
    "用户|使用者|希望|喜欢|偏好|要求|记住|总是|以后|一律|应该|必须|不要|不能|不用|ユーザーは?|希望|好み|必ず|今後は?|ください|してください|します|です|ます"
    "|사용자[는가]?|선호|항상|앞으로[는]?|주세요|합니다|입니다|한다|해요"
)
# A memory writes dates out that the user gave as a day.
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_HIRAGANA = re.compile("[\u3041-\u309f]{2}")
# Words that negate what follows, or reject it. Two of them in a Spanish sentence negate once.
NEGATION = re.compile(
    r"\bno (?:\w+ ){1,4}?(?:nunca|nada|nadie|jamás)\b"
    r"|\b(?:not|no|never|none|nobody|neither|nor|without|stop|avoid\w*|instead|cannot|(?:do|does|did|is|are|was|were|ca|wo|would|should|could|must"
    r"|have|has|had|need|ai)n['’]?t|dislikes?|hate[sd]?|detests?|doubt(?:s|ed)?|bezweif\w+|dout(?:e|ons)|dudo|nicht|nie|niemals|kein\w*|ohne|statt|hass(?:e|t|en)|vermeid\w*"
    r"|pas|jamais|sans|aucune?|détest\w+|évit\w+|nunca|jamás|sin|odi[oa]|detest[oa]|evit[ae]\w*|non(?!-)|mai)\b"
    r"|[不别別没沒勿無无莫未]|讨厌|避免|禁止|停止|ない|なく|なかっ|ません|嫌|やめ|避け"
    r"|않[가-힣]*|(?:(?<=지)|(?<=지 ))(?:말|못|마(?=[세시라십요\s.!]|$))[가-힣]*|말고|(?<![가-힣])(?:안|못) |없[가-힣]*|싫|피하|금지|그만",
    re.IGNORECASE,
)
# Words that reject something without a negation.
REJECTS = re.compile(
    r"\b(?:hate|dislike|annoy\w*|l(?:eave|eft) (?:out|off|away)|drop(?:ped)?|removed?"
    r"|omit(?:ted)?|skip(?:ped)?|less|fewer|too (?:many|much)|enough|tired of|refrain|quit"
    r"|lass\w*|weg|weniger|genug|hasse|nervt)\b|讨厌|省略|去掉|别再|やめ|嫌|省い|싫|빼|그만",
    re.IGNORECASE,
)
# Words with a negation in them that negate nothing.
_NOT_NEGATED = re.compile(
    r"不错|没错|不客气|no problem|not bad|non-?stop|\b(?:do(?:n['’]?t| not)|never) forget|vergiss(?: bitte)? nicht|n['’]oublie[sz]? pas"
    r"|no olvides|(?:不要|不能|[别別勿])忘|忘れないで|잊지\s?(?:말|마)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？;；\n]")
_PART_END = re.compile(r"[,;:，、；：–—.!。！]|\s-\s")
_LABEL = re.compile(
    r"\s*[-*]*\s*\**(?:why|warum|pourquoi|por qué|为什么|原因|理由|이유|(?P<advice>(?:how to )?apply|(?:so )?anwend(?:ung|en)|application"
    r"|comment (?:l['’])?appliquer|aplicación|cómo aplicar(?:l[oa])?|(?:如何)?应用|適用|적용))\s*[:：]\**",
    re.IGNORECASE,
)


class Statement(NamedTuple):
    """A sentence of a memory. Advice is what the model concludes for its own work."""

    text: str
    content: frozenset[str]
    advice: bool = False


def content(text: str) -> frozenset[str]:
    """Return the words that carry a text's content."""
    plain = _DATE.sub(" ", text)
    found = terms(_CJK_SCAFFOLD.sub(" ", plain)) if not plain.isascii() else terms(plain)
    return frozenset(term for term in found if term not in _SCAFFOLD and not _HIRAGANA.fullmatch(term))


def weight(found: Iterable[str]) -> float:
    return sum(1.0 if is_word(term) or len(term) > 2 else PAIR for term in found)


def shared(wanted: Collection[str], known: Collection[str]) -> frozenset[str]:
    """Return the wanted words that are known, in any form."""
    exact = frozenset(term for term in wanted if term in known)
    longer = [term for term in known if is_word(term) and len(term) >= PREFIX]
    return exact | {
        term for term in wanted if term not in exact and is_word(term) and any(_one_word(term, each) for each in longer)
    }


def _one_word(one: str, other: str) -> bool:
    return len(one) >= PREFIX and not one[0].isdigit() and (one.startswith(other) or other.startswith(one))


def covers(wanted: Collection[str], known: Collection[str]) -> bool:
    """Whether known words have half of a statement."""
    total = weight(wanted)
    return total > 0 and weight(shared(wanted, known)) >= max(min(FEWEST, SHORT_SHARE * total), SHARE * total)


def without_idioms(text: str) -> str:
    """Return the text without words that contain a negation and negate nothing."""
    return _NOT_NEGATED.sub(" ", text)


def negated(text: str) -> bool:
    return NEGATION.search(without_idioms(text)) is not None


def flips(claim: str, quote: str) -> bool:
    """Whether a claim is the quotation with a "not" added or dropped. A "not" in the reason for it negates something else."""
    wanted = content(claim)
    parts = marked_reason(quote) or consequence(quote)
    if parts is not None and covers(wanted, content(parts.rule)):
        quote = parts.rule
    mine, theirs = negated(claim), negated(quote)
    if mine == theirs:
        return False
    new = weight(wanted - shared(wanted, content(quote)))
    return new < 1 and not REJECTS.search(quote) if mine else new <= 1 and negated(_up_to_claim(quote, wanted))


def _up_to_claim(quote: str, wanted: Collection[str]) -> str:
    """Return the sentence that says the most of what is wanted, up to the end of that part. A "not" behind it negates something else."""
    ends = [*(found.start() for found in _PART_END.finditer(quote)), len(quote)]
    parts = [quote[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    said = [weight(shared(wanted, content(part))) for part in parts]
    until = quote[: ends[said.index(max(said))]]
    return next((each for each in reversed(_SENTENCE_END.split(until)) if each.strip()), until)


def statements(body: str) -> list[Statement]:
    """Return the sentences of a memory's body."""
    found = list[Statement]()
    advice = False
    for line in body.split("\n"):
        if ON.fullmatch(line.strip()):
            continue  # the day of the statement, which the offline rules add
        label = _LABEL.match(line)
        if label is not None:
            advice, line = label["advice"] is not None, line[label.end() :]
        elif not line.strip():
            advice = False
        found += [Statement(each, content(each), advice) for each in _SENTENCE_END.split(line) if each.strip()]
    return [each for each in found if re.search(r"\w", each.text)]


class Passage(NamedTuple):
    """A passage of a text that shares words with a memory."""

    place: int  # of the text among the texts
    hits: frozenset[str]


def passages(wanted: Collection[str], texts: Sequence[str], least: float) -> Iterator[Passage]:
    """Yield the passages (a sentence and the next) that share words of at least this weight with what is wanted."""
    for place, text in enumerate(texts):
        plain = normal(text)
        likely = [term for term in wanted if term[:PREFIX] in plain]
        if weight(likely) < least:
            continue
        sentences = [each for each in _SENTENCE_END.split(plain) if each.strip()]
        rough = [frozenset(term for term in likely if term[:PREFIX] in each) for each in sentences]
        for at, here in enumerate(rough):
            below = rough[at + 1] if at + 1 < len(rough) else frozenset()
            if here and weight(here | below) >= least:
                window = f"{sentences[at]}\n{sentences[at + 1]}" if at + 1 < len(sentences) else sentences[at]
                hits = shared(wanted, content(window))
                if weight(hits) >= least:
                    yield Passage(place, hits)


def is_taken(statement: Statement, texts: Sequence[str], own: Collection[str]) -> bool:
    """Whether a passage of these texts has more of the statement than the user's own words have."""
    total, mine = weight(statement.content), weight(shared(statement.content, own))
    share, fewest = (ADVICE_SHARE, ADVICE_FEWEST) if statement.advice else (SHARE, min(FEWEST, total / 2))
    if total - mine < min(1.0, fewest):
        return False  # there is no word that could come from elsewhere
    for passage in passages(statement.content, texts, max(share * total, mine + PAIR)):
        foreign = passage.hits - shared(passage.hits, own)
        # One word is enough if the passage says all of it.
        enough = 1.0 if weight(passage.hits) >= total and not statement.advice else fewest
        if weight(foreign) >= min(enough, fewest) and weight(passage.hits) > mine:
            return True
    return False


def closest(wanted: Collection[str], texts: Sequence[str]) -> int | None:
    """Return the place of the text that shares most with what is wanted; None if none shares enough."""
    found = max(
        passages(wanted, texts, max(PAIR, ORIGIN_SHARE * weight(wanted))), key=lambda each: weight(each.hits), default=None
    )
    return found.place if found is not None else None
