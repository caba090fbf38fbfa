"""Decides whether a text is a sentence of the user: the same words, numbers, negation and subject. Pure.

A statement of a memory may change the form and the order of the user's words, and may say that the user wants it. It may add no word, and
leave none out: a word that is left out may be the condition, the subject, or the one that says that somebody else believes it. Only the
reason, and a clause that stands alone ("…, and I work in Rome"), may be missing. Words that carry no content count on neither side. This
compares words, not meanings, in the seven languages that extraction serves.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from ...core.connectives import consequence, marked_reason
from ...core.dates import COMPUTED
from ...core.language import LABELS
from ...core.memory_requests import asks_to_remember, to_remember
from ...core.terms import normal, pairs, stem
from ...providers.offline.judge.cues import CUES, NOT_MEANT, TAKEN_BACK, any_of
from ...providers.offline.reasons import reason
from .approval import APPROVES
from .sources import words
from .support import NEGATION, without_idioms

# Sentences of one message that a statement may join.
WINDOW = 3
# A statement with more words than this is not a sentence.
MOST_WORDS = 60
# Two words are forms of one word if they begin with the same letters: at least this many, and more than this share of the longer one.
FEWEST_SAME, SAME_SHARE = 3, 0.6
# Korean words carry their particles at the end, so their first syllables decide.
SYLLABLES = 2

# Words that a memory adds or leaves out without a change in meaning: articles, pronouns, auxiliary verbs, politeness, and "the user wants".
_FUNCTION_WORDS = """
    a an the this that these those there here it its i me my mine we us our ours you your yours they them their theirs and or also too
    to of in on at for by as is am are be been being do does did doing done has have had having will shall should must can could would
    let so then when which who what where how please just really very quite ok okay yes no well hey hi oh thanks thank now btw way
    note fyi reason something anything everything but all any if name named call called user users person prefer prefers preferred
    preference preferences want wants wish wishes like likes love loves need needs keep keeps use uses used using get gets im ive id
    ll ve re s t d m don doesn isn aren won because since always never ever every each whenever was were
    heiße heißt wenn falls aber alle allen aller der die das den dem des ein eine einen einem einer eines ich mich mir mein meine
    meinen meinem meiner wir uns unser unsere unseren unserer du dir dich dein deine sie ihr ihnen ihre es man und oder auch zu zum
    zur ins auf für von vom bei beim als wie ist sind bin sein wird werden hat haben habe kann können soll sollen muss müssen möchte
    bitte danke mal doch gern gerne ja dann da dass wer welche benutzer nutzer nutzerin bevorzugt bevorzuge mag mögen lieber benutze
    benutzt benutzen nutze nutzt nutzen immer jedes jede jeden jedem jeder war waren im an am will in so was
    mais si tous toutes tout le la les l un une de je j moi mon ma mes nous notre nos tu te toi ton ta tes vous votre vos ils elles ce
    c cet cette ces ça cela y en et ou à au aux dans sur pour par comme qui que qu quoi est sont suis sommes êtes être ai avons avez
    ont avoir faut n ne plaît stp svp merci utilisateur utilisatrice utilisateurs préfère préférer veut veux voudrais aime souhaite
    utilise utiliser toujours chaque du des on as es
    pero todos todas el los las lo unos unas yo mi mis nosotros nuestro nuestra nuestros nuestras tú tus ti usted su sus se quien cual
    e o u al del por para como son soy somos ser estar está están estoy hay he ha han haber debe deben debo tiene tengo favor gracias
    usuario usuaria prefiere prefiero quiere quiero gusta gustan desea usa usar usamos siempre cada era eran es la de en y un una me
    te
    저는 제가 나는 내가 저희 저희는 우리 우리는 우리가 사용자 사용자는 사용자가 주세요 한다 합니다 해요 입니다 선호
    선호한다 항상 앞으로 앞으로는 언제나 매번 꼭 반드시 수 것 등 및 그 더 좀 줘 는 은 을 를 에 의 도 로 해
"""
_FUNCTION = frozenset(map(normal, _FUNCTION_WORDS.split()))
# The same in scripts without spaces: phrases, then single characters.
_PHRASES = re.compile(
    "因为|所以|用户|使用者|希望|喜欢|偏好|记住|总是|永远|每次|以后|今后|从现在(?:起|开始)?|一律|统一|应该|必须|谢谢|麻烦|一下|一点|使用"
    r"|s['’]il (?:te|vous) plaît|ユーザー|好み|好き|必ず|常に|今後|これから|お願い|下さい|使用|使|私|僕"
    "|" + "|".join(re.escape(each.keep.partition("{")[0].strip()) for each in LABELS.values())
)
_CHARACTERS = frozenset("的了是在把和与也都就要会请我你您们这那个吧呢啊吗给对让得着从由于为用该可以能有")
# Words that a memory may add but not leave out: of whom, of which thing and of which time a sentence speaks.
_MARKS = {
    "they": any_of(r"\b(?:s?he|his|her|him|they|er|elles?|ils|él|ell[ao]s?)\b", "[他她]|彼|그녀|그는|그들"),
    "this": any_of(
        r"\b(?:this(?! (?:is|was|will|has|means|way|should|must)\b)|dieser?|diese[nms]|cette|cet|est[ae])\b",
        "这个|这次|本次|この|今回|이번",
    ),
    "past": any_of(r"\bused to\b(?! \w+ing)|\b(?:i was|we were|ich war|wir waren|j['’]étais|era|fui)\b"),
}
_UNIVERSAL = any_of(
    CUES["always"].pattern, r"\b(?:all|any|alle[nrs]?|tou(?:te)?s|todos?|todas?)\b", "所有|全部|すべて|全て|모든|모두"
)
_POLITE = any_of(r"\b(?:can|could|would|will) (?:you|we)\b", r"\b(?:would|['’]d) (?:like|love|prefer|rather|want)\b")
# A short part at the beginning of a sentence, and what it may say besides an approval.
_FIRST_PART = re.compile(r"(?P<part>[A-Za-zß-ÿ'’]+(?: [A-Za-zß-ÿ'’]+){0,2}|[^\x00-\x7f，、！。；]{1,6})\s*[,，、!！]\s*")
_ANSWERS = re.compile(
    "no|(?:that was )?right|sure|good|great|nein|gut|non|bon|bueno|不|好|对|就是这样|いや|아니요?|맞아요", re.IGNORECASE
)
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
# The user's words for a date.
_DAY = any_of(
    "下*(?:周|星期|礼拜)[一二三四五六日天]",
    CUES["day"].pattern,
    r"\d+|next|nächste\w*|prochaine?|próxim[oa]|tomorrow|morgen|demain|mañana|明天|明日|내일",
)

_HAN, _KATAKANA, _HANGUL, _HIRAGANA = "\u3400-\u9fff", "\u30a0-\u30ff", "\uac00-\ud7af", "\u3041-\u309f"
# Japanese verbs without a Chinese character. Shorter runs are particles and endings.
_KANA = re.compile(f"[{_HIRAGANA}]{{3,}}")
_SHORT_VERB = re.compile(rf"[{_HANGUL}]|[{_HANGUL}]다")
# An address is one word, whatever its path spells.
_WORD = re.compile(
    r"(?P<address>https?://\S+|[^\s@]{1,64}@[^\s@]{1,64}|[\w.-]{1,64}(?:/[\w.#-]+)+)"
    rf"|(?P<number>\d+(?:[.,:]\d+)*)(?:st|nd|rd|th)?|(?P<han>[{_HAN}])|(?P<other>[{_KATAKANA}]+|[{_HANGUL}]+|[\U0001f300-\U0001faff\u2600-\u27bf])"
    rf"|(?P<latin>[^\W\d_{_HAN}{_KATAKANA}{_HANGUL}{_HIRAGANA}]+)"
)
# In Korean, "니까" ends a question after some syllables and a reason after others.
_QUESTION = re.compile(r"(?:[?？]|[吗嗎呢]|ですか|ますか|[습입합됩봅갑옵줍]니까|나요|(?<!니)까요)[\s.!。！”\"')]*$")
_REQUEST = re.compile(
    r"\s*(?:(?:and|but|so|also|ok(?:ay)?)[,\s]+)?(?:(?:can|could|would|will) (?:you|we)\b|please\b|kannst du|könntest du|können (?:sie|wir)"
    r"|bitte|请|請|能不能|可不可以|可以|麻烦)|.*(?:もらえますか|できますか|くれますか|いただけますか|주실|줄 수|줄래)",
    re.IGNORECASE,
)
# A line break ends a sentence unless the next line goes on in small letters. An empty line and a bullet do in any case.
_SENTENCE_END = re.compile(
    r"(?<=[.!?;])\s+|(?<=[。！？；])\s*|(?P<blank>\n[ \t]*\n\s*)|\n(?=[ \t]*(?:[-*•]|\d+[.)])\s)|\s+(?=\d+\)\s)"
    r"|\n(?=[^a-zß-ÿ\s]|(?:but|also|btw|aber|mais|pero)\b)|(?<=[,\"”)])\n"
)
_BULLET = re.compile(r"^(?:[-*•]|\d+[.)])\s+")
# After "and", a clause with a pronoun as its subject stands alone.
_PRONOUN = (
    r"(?:(?:i|we|it|they|this|that|there|ich|wir|es|je|nous|on|ça|yo|nosotros)\b|(?:i|we|it|they|that|there)['’]"
    r"|[jc]['’]|[我这它]|私|저는|우리)"
)
_AND = re.compile(rf"[,，;；—–]?\s*\b(?:and|but|und|aber|et|mais|y|pero)\s+(?={_PRONOUN})", re.IGNORECASE)
_BEGINS = re.compile(_PRONOUN, re.IGNORECASE)
_PART = re.compile(r"[,，、;；—–()（）]|\s-\s")


class Sense(NamedTuple):
    """What a text says, apart from its form."""

    words: frozenset[str]
    negated: bool
    conditional: bool
    universal: bool  # it holds always, or for all
    marks: frozenset[str] = frozenset()  # it speaks of others, of one thing, or of the past
    dates: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()  # in hiragana: two characters of each are the user's


class Clause(NamedTuple):
    text: str
    sense: Sense
    parts: tuple[Sense, ...]  # between commas: a "not" belongs to one of them
    days: frozenset[str]  # the words of a date
    alone: bool  # a statement that may be left out


def asks(sentence: str) -> bool:
    """Whether a sentence is a question, which states nothing. A request may have the form of one."""
    return _QUESTION.search(sentence[-20:]) is not None and _REQUEST.match(sentence) is None


@lru_cache(maxsize=4_096)
def read_sense(text: str) -> Sense:
    plain = without_idioms(COMPUTED.sub("", text))
    rest = NEGATION.sub(" ", _PHRASES.sub(" ", CUES["from now on"].sub(" ", _DATE.sub(" ", plain))))
    content = {word for found in _WORD.finditer(rest) for word in _read_words(found)}
    return Sense(
        frozenset(content),
        len(NEGATION.findall(plain)) % 2 == 1,
        CUES["if"].search(_POLITE.sub(" ", plain)) is not None,
        _UNIVERSAL.search(NEGATION.sub(" ", plain)) is not None,
        frozenset(name for name, pattern in _MARKS.items() if pattern.search(plain)),
        tuple(_DATE.findall(text)),
        tuple(_KANA.findall(NEGATION.sub(" ", plain))),
    )


def _read_words(found: re.Match[str]) -> Iterator[str]:
    """Yield the words that carry content."""
    match found.lastgroup:
        case "address":
            yield found[0].casefold().rstrip(".,;:!?)\"'")
        case "number":
            yield re.sub(r"[.,](?=\d{3}\b)", "", found["number"])
        case "han":
            yield from (found[0],) if found[0] not in _CHARACTERS else ()
        case "latin":
            word = normal(found[0])
            yield from (stem(word),) if word not in _FUNCTION else ()
        case _:
            word = normal(found[0])
            if word not in _FUNCTION:
                # A short Korean verb keeps its first consonant in all forms.
                yield unicodedata.normalize("NFD", word)[0] if _SHORT_VERB.fullmatch(word) else word


def _is_form(one: str, other: str) -> bool:
    """Whether two words are forms of one word."""
    if one == other or not (one[0].isalpha() and other[0].isalpha()) or "/" in one + other or "@" in one + other:
        return one == other
    shared = next(
        (place for place, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), min(len(one), len(other))
    )
    if re.match(f"[{_HANGUL}]", one):
        return shared >= min(SYLLABLES, len(one), len(other))
    return shared >= FEWEST_SAME and shared > SAME_SHARE * max(len(one), len(other))


def missing(wanted: Collection[str], known: Collection[str]) -> frozenset[str]:
    """Return the wanted words of which no form is known."""
    return frozenset(word for word in wanted if word not in known and not any(_is_form(word, other) for other in known))


def find_sentence(claim: str, message: str, memory: str = "") -> str | None:
    """Return the sentences of the user's message that say what the claim says; None if there are none. What the claim leaves out may stand
    elsewhere in the memory."""
    wanted, kept = read_sense(claim), read_sense(f"{claim}\n{memory}")
    repeated = words(COMPUTED.sub("", _without_answer(claim)))
    verbatim = " ".join(repeated) in " ".join(words(message))
    known = 0 < len(wanted.words) <= MOST_WORDS and not missing(wanted.words, read_sense(message).words)
    sentences = list(_sentences(message)) if verbatim or known else []
    for sentence in sentences if verbatim else ():
        if _repeats(repeated, sentence, kept):
            return sentence
    for size in range(1, WINDOW + 1) if known else ():
        for place in range(len(sentences) - size + 1):
            window = sentences[place : place + size]
            if _says(wanted, kept, [clause for sentence in window for clause in _clauses(sentence)]):
                return " ".join(window)
    return None


def _sentences(message: str) -> Iterator[str]:
    """Yield the statements of a message. What ends with a colon, and a "not" alone, belongs to the sentences below it."""
    ends = [*_SENTENCE_END.finditer(message)]
    starts = [0, *(end.end() for end in ends)]
    texts = [
        message[start:stop].strip() for start, stop in zip(starts, [*(end.start() for end in ends), len(message)], strict=True)
    ]
    lead = ""
    for place, text in enumerate(texts):
        following = texts[place + 1] if place + 1 < len(texts) else ""
        sentence = _without_answer(_BULLET.sub("", text))
        if asks_to_remember(sentence):
            sentence = to_remember(sentence)
        if sentence.endswith((":", "：")) or ((sense := read_sense(sentence)).negated and not sense.words):
            lead = f"{lead}{sentence} "
        elif re.search(r"\w", sentence) and not (asks(sentence) or _is_void(sentence) or TAKEN_BACK.search(following)):
            yield lead + sentence
        if place < len(ends) and ends[place]["blank"] is not None:
            lead = ""


def _is_void(sentence: str) -> bool:
    return NOT_MEANT.search(sentence) is not None or TAKEN_BACK.search(sentence) is not None


def _without_answer(sentence: str) -> str:
    """Return a sentence without words at its beginning that answer something else: "No, never …", "Perfect, …"."""
    while (first := _FIRST_PART.match(sentence)) is not None and (
        _ANSWERS.fullmatch(first["part"]) or APPROVES.search(first["part"])
    ):
        sentence = sentence[first.end() :]
    return sentence


def _repeats(claim: list[str], sentence: str, kept: Sense) -> bool:
    """Whether a claim is a sentence word for word, or its rule without the reason, or the reason if the memory has the rule."""
    parts = reason(sentence)
    if claim in (words(sentence), words(parts.rule)):
        return True
    return claim == words(parts.why) and not missing(read_sense(parts.rule).words, kept.words)


def _clauses(sentence: str) -> list[Clause]:
    """Divide a sentence. The reason for something may be left out, and so may what follows from it."""
    follows = consequence(sentence)
    parts = follows or reason(sentence)
    clauses = list[Clause]()
    for text, alone in (
        (parts.rule, follows is not None or marked_reason(sentence) is not None),
        (parts.why, True),
        (parts.how, True),
    ):
        starts = [0, *(found.end() for found in _AND.finditer(text)), len(text)]
        for start, end in pairwise(starts):
            clause = text[start:end]
            days = read_sense(" ".join(_DAY.findall(clause))).words
            stands = alone or start > 0 or (len(starts) > 2 and _BEGINS.match(text) is not None)
            clauses.append(Clause(clause, read_sense(clause), tuple(map(read_sense, _PART.split(clause))), days, stands))
    return clauses


def _says(wanted: Sense, kept: Sense, clauses: Sequence[Clause]) -> bool:
    """Whether these clauses say what is wanted, and nothing else but clauses that may be left out."""
    used = [clause for clause in clauses if not clause.alone or _is_about(clause.sense, wanted)]
    said = frozenset[str]().union(*(clause.sense.words for clause in used))
    left_out = missing(said, kept.words)
    if wanted.dates:  # the date is written out
        left_out = left_out.difference(*(clause.days for clause in used))
    negations = sum(part.negated for clause in used for part in clause.parts if _is_about(part, wanted))
    return (
        not missing(wanted.words, said)
        and not left_out
        and all(clause.sense.marks <= kept.marks for clause in used)
        and wanted.negated == (negations % 2 == 1)
        and wanted.conditional == any(clause.sense.conditional for clause in clauses)
        and (not wanted.universal or any(clause.sense.universal for clause in used))
        and all(_fits(date, said) for date in wanted.dates)
        and all(any(pair in clause.text for clause in used for pair in pairs(verb)) for verb in wanted.verbs)
    )


def _is_about(part: Sense, wanted: Sense) -> bool:
    """Whether a part says something of what is wanted, or nothing by itself."""
    return not part.words or len(missing(part.words, wanted.words)) < len(part.words)


def _fits(date: str, said: Collection[str]) -> bool:
    """Whether a date that was written out has a number of the user's, if they gave one."""
    numbers = {int(word) for word in said if word.isdecimal()}
    return not numbers or not numbers.isdisjoint(map(int, date.split("-")))
