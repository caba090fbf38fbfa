"""Decides whether a text is a sentence of the user: the same words, numbers, negation and subject. Pure.

A statement of a memory may change the form and the order of the user's words, and may say that the user wants it. It may add no word, and
leave none out: a word that is left out may be the condition, the subject, or the one that says that somebody else believes it. Only the
reason, and a clause that stands alone ("…, and I work in Rome"), may be missing. Words that carry no content count on neither side. A part
of a sentence may move, but two words may not change places around a third ("tabs, not spaces"). This compares words, not meanings, in the
seven languages that extraction serves.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from ...language.connectives import consequence, marked_reason
from ...language.dates import COMPUTED
from ...language.memory_requests import asks_to_remember, to_remember
from ...language.terms import normal, pairs, stem
from ...providers.offline.judge.cues import CUES, NOT_MEANT, TAKEN_BACK, any_of
from ...providers.offline.reasons import reason
from .approval import APPROVES
from .sources import words
from .support import NEGATION, REJECTS, content, flips, negated, weight, without_idioms
from .word_forms import PHRASES, content_words, kana_verbs, missing

# Sentences of one message that a statement may join.
WINDOW = 3
# A memory of what the user approved of may have one word that is in neither message, or two characters.
MOST_ADDED = 1.0
# A statement with more words than this is not a sentence.
MOST_WORDS = 60

# Words that a memory may add but not leave out: of whom, of which thing and of which time a sentence speaks.
_MARKS = {
    "they": any_of(r"\b(?:s?he|his|her|him|they|er|elles?|ils|él|ell[ao]s?)\b", "[他她]|彼|그녀|그는|그들"),
    "this": any_of(
        r"\b(?:this(?! (?:is|was|will|has|means|way|should|must)\b)|dieser?|diese[nms]|cette|cet|est[ae])\b",
        "这个|这次|本次|この|今回|이번",
    ),
    "only": any_of("だけ|のみ|しか"),
    "until": any_of("まで"),
    "past": any_of(
        r"\b(?:habe?|haben|hat|hatten?)\b.*\b\w*ge\w{3,}(?:t|en)\b",
        r"\bused to\b(?! \w+ing)|\b(?:i was|we were|ich war|wir waren|j['’]étais|era|fui)\b",
    ),
}
_UNIVERSAL = any_of(
    CUES["always"].pattern, r"\b(?:all|any|alle[nrs]?|tou(?:te)?s|todos?|todas?)\b", "所有|全部|すべて|全て|모든|모두"
)
_POLITE = any_of(r"\b(?:can|could|would|will) (?:you|we)\b", r"\b(?:would|['’]d) (?:like|love|prefer|rather|want)\b")
# A short part at the beginning of a sentence, and what it may say besides an approval.
_FIRST_PART = re.compile(r"(?P<part>[A-Za-zß-ÿ'’]+(?: [A-Za-zß-ÿ'’]+){0,2}|[^\x00-\x7f，、！。；]{1,6})\s*[,，、!！]\s*")
_ANSWERS = re.compile(
    "no|(?:that was )?right|wrong|sure|good|great|nein|falsch|gut|non|bon|bueno|不|不[对對是行]|错了|好|对|就是这样|いや|いいえ|違います?"
    "|아니(?:요|에요)?|맞아요",
    re.IGNORECASE,
)
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b")
# The user's words for a date.
_DAY = any_of(
    "下*(?:周|星期|礼拜)[一二三四五六日天]",
    CUES["day"].pattern,
    r"\d+|next|nächste\w*|prochaine?|próxim[oa]|tomorrow|morgen|demain|mañana|明天|明日|내일",
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
# An answer with these words leaves a choice.
_CHOICE = any_of(r"\b(?:either|or|oder|ou|o|u)\b", "还是|或者|それとも|または|아니면|또는")
_IF = any_of(r"\b(?:if|unless|when|wenn|falls|si|cuando|quand)\b", "如果|要是|只要|もし|たら|なら|만약|(?:으|하|되|라)면")
# The stems of words that put one thing before another.
_ORDER = any_of("befor|aft|than|over|vor|nach|avant|apr|ant|despu")
_PASSIVE = any_of(
    r"\b(?:is|are|was|were|be|been)\b.{1,40}\bby\b",
    r"\bw(?:ird|erden|urden?)\b.{1,60}\bvon\b",
    r"\b(?:est|sont)\b.{1,40}\bpar\b",
    r"\b(?:es|son)\b.{1,40}\bpor\b",
    "被|によって|에 의해",
)
# What an approval adds to what it approves of.
_APPROVED = re.compile(
    r"\b(?:confirm\w*|approv\w*|accept\w*|bestätigt|gutgeheißen|approuvé|aprobado)\b|认可|确认|承認", re.IGNORECASE
)


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
    rest = NEGATION.sub(" ", PHRASES.sub(" ", CUES["from now on"].sub(" ", _DATE.sub(" ", plain))))
    return Sense(
        frozenset(content_words(rest)),
        len(NEGATION.findall(plain)) % 2 == 1,
        CUES["if"].search(_POLITE.sub(" ", plain)) is not None,
        _UNIVERSAL.search(NEGATION.sub(" ", plain)) is not None,
        frozenset(name for name, pattern in _MARKS.items() if pattern.search(plain)),
        tuple(_DATE.findall(text)),
        tuple(kana_verbs(NEGATION.sub(" ", plain))),
    )


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
            if _says(wanted, kept, [clause for sentence in window for clause in _clauses(sentence)]) and not _turned_around(
                claim, said := " ".join(window)
            ):
                return said
    return None


def is_proposed(claims: Sequence[str], answer: str, own: str) -> bool:
    """Whether an answer of the assistant says what these claims say, in a few more words at most. Words of the user's own may be added."""
    if asks(answer.rstrip()) and _CHOICE.search(answer) is not None:
        return False
    wanted = frozenset(word for word in read_sense(_APPROVED.sub(" ", "\n".join(claims))).words if content(word))
    added = missing(wanted, read_sense(answer).words)
    new = missing(added, read_sense(own).words)
    if any(word[0].isdigit() for word in new) or weight(new) > MOST_ADDED or not weight(wanted) > 2 * weight(added):
        return False
    return not any(
        _flips(claim, answer) or _turned_around(claim, answer, loosely=True) or _drops_condition(claim, answer)
        for claim in claims
    )


def _flips(claim: str, answer: str) -> bool:
    """Whether a claim drops a "not" of the answer, or adds one although the answer rejects nothing."""
    return flips(claim, answer) or (negated(claim) and not negated(answer) and REJECTS.search(answer) is None)


def _drops_condition(claim: str, answer: str) -> bool:
    """Whether the sentence that says the most of the claim has an "if", and the claim has none."""
    wanted = read_sense(claim).words
    closest = min(
        filter(None, _SENTENCE_END.split(answer)),
        key=lambda sentence: len(missing(wanted, read_sense(sentence).words)),
        default="",
    )
    return _IF.search(closest) is not None and _IF.search(claim) is None


def _turned_around(claim: str, said: str, *, loosely: bool = False) -> bool:
    """Whether two words with content changed places around a third one: "tabs, not spaces", "Bob reviews Alice's changes". A part that
    moves to another place of the sentence turns nothing around. "Alice is reviewed by Bob" turns "Bob reviews Alice" around for itself.
    Loosely, only around a word without content, or "before"."""
    ours, theirs = _word_places(claim), _word_places(said)
    shared = [(word, theirs[word]) for word in ours if word in theirs]
    if len(shared) > 2 * MOST_WORDS:
        return True  # no sentence is that long
    carries = [next(content_words(word), None) is not None for word, _ in shared]
    around = {
        _is_relation(word)
        for middle, (word, (place, part)) in enumerate(shared)
        for before, (_, (left, left_part)) in enumerate(shared[:middle])
        for after, (_, (right, right_part)) in enumerate(shared[middle + 1 :], middle + 1)
        if left > place > right and carries[before] and carries[after] and (_is_relation(word) or left_part == part == right_part)
    }
    if loosely:
        return True in around
    return True in around or (False in around) != ((_PASSIVE.search(claim) is None) != (_PASSIVE.search(said) is None))


def _is_relation(stemmed: str) -> bool:
    return not content(stemmed) or _ORDER.fullmatch(stemmed) is not None


def _word_places(text: str) -> dict[str, tuple[int, int]]:
    """Return the stems that occur once, in order, each with its place and the part between commas in which it stands."""
    stems = [(stem(normal(word)), part) for part, piece in enumerate(_PART.split(text)) for word in words(piece)]
    counts = Counter(word for word, _ in stems)
    return {word: (place, part) for place, (word, part) in enumerate(stems) if counts[word] == 1}


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
    """Whether a claim is a sentence word for word, or its rule without the reason, or another part of it if the memory has the rest."""
    division = reason(sentence)
    if claim in (words(sentence), words(division.rule)):
        return True
    if claim == words(division.why):
        return not missing(read_sense(division.rule).words, kept.words)
    # A part between commas, if the memory has the others. A part without words, such as "never", speaks of the rest.
    parts, whole = [part for part in _PART.split(sentence) if re.search(r"\w", part)], read_sense(sentence)
    complete = not whole.conditional and not missing(whole.words, kept.words)
    return complete and claim in map(words, parts) and all(read_sense(part).words for part in parts)


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
