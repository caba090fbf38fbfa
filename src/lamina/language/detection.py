"""The language of a text, and the labels of a memory in that language.

Owns the table of labels. A memory's labels are written in the language of its text; readers accept those of every language, because a
memory may be older than the language of the conversation. Pure.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

from .patterns import read_patterns

Language: TypeAlias = Literal["en", "de", "fr", "es", "zh", "ja", "ko"]

# The beginning of a message shows its language; the rest may be pasted text.
_BEGINNING = 500
# The letters that only one of the languages in Latin script has. Their common words are in detection.txt.
_LETTERS: dict[Language, str] = {"en": "", "de": "äöüß", "fr": "çœâèêëîïôûù", "es": "ñ¿¡áíóú"}
_PATTERNS = read_patterns("detection")
_SCRIPTS: tuple[tuple[Language, re.Pattern[str]], ...] = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7af]")),
    ("zh", re.compile("[\u3400-\u9fff]")),
)
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")


class Labels(NamedTuple):
    """The labels of a memory: `why` and `how` begin a paragraph, and `on` says when a relative date was stated."""

    why: str
    how: str
    on: str
    keep: str  # begins a memory of what was approved of


LABELS: dict[Language, Labels] = {
    "en": Labels("**Why:** ", "**How to apply:** ", "Said on {on}.", "Keep doing this, it was approved of: {what}"),
    "de": Labels("**Warum:** ", "**Anwendung:** ", "Gesagt am {on}.", "So weitermachen, es wurde gutgeheißen: {what}"),
    "fr": Labels("**Pourquoi :** ", "**Application :** ", "Dit le {on}.", "Continuer ainsi, cela a été approuvé : {what}"),
    "es": Labels("**Por qué:** ", "**Aplicación:** ", "Dicho el {on}.", "Seguir así, fue aprobado: {what}"),
    "zh": Labels("**原因：**", "**如何应用：**", "说于 {on}。", "继续这样做，用户表示认可：{what}"),
    "ja": Labels("**理由：**", "**適用：**", "{on} の発言。", "これを続ける（承認済み）：{what}"),
    "ko": Labels("**이유:** ", "**적용:** ", "{on}에 한 말.", "계속 이렇게 하기(승인됨): {what}"),
}


def _any(*texts: str) -> str:
    return "|".join(re.escape(text.strip()).replace(re.escape("{on}"), r"\d{4}-\d\d-\d\d") for text in texts)


# Paragraphs of a memory by their label, in any language.
WHY = re.compile(rf"^(?:{_any(*(labels.why for labels in LABELS.values()))})\s*(?P<why>.+)$", re.MULTILINE)
HOW = re.compile(rf"^(?:{_any(*(labels.how for labels in LABELS.values()))})", re.MULTILINE)
ON = re.compile(rf"^(?:{_any(*(labels.on for labels in LABELS.values()))})", re.MULTILINE)


def language_of(text: str) -> Language:
    """Return the language of a text by its script or its common words; English if nothing else shows."""
    return shown_language(text) or "en"


def shown_language(text: str) -> Language | None:
    """Return the language that the script or the common words of a text show, if any."""
    begins = text[:_BEGINNING]
    script = next((name for name, pattern in _SCRIPTS if pattern.search(begins)), None)
    if script is not None and not _is_quoted(begins):
        return script
    counts = {
        name: len(_PATTERNS[name].findall(begins)) + sum(begins.lower().count(letter) for letter in letters)
        for name, letters in _LETTERS.items()
    }
    best = max(counts, key=counts.__getitem__)  # English comes first, so it wins a tie
    return best if counts[best] else None


def _is_quoted(text: str) -> bool:
    """Tell whether the characters of another script in a text are only quoted in an English sentence."""
    foreign = sum(len(pattern.findall(text)) for _, pattern in _SCRIPTS)
    words = _LATIN_WORD.findall(text)
    return (
        len(words) > foreign and _LATIN_WORD.match(text.lstrip()) is not None and _PATTERNS["sentence"].search(text) is not None
    )


def without_common_words(text: str) -> str:
    """Return a German, French or Spanish text without its common words, except for negative ones; other texts as they are.

    `terms` knows only the stop words of English.
    """
    if (language := language_of(text)) not in ("de", "fr", "es"):
        return text
    remainder = _PATTERNS[language].sub(lambda word: word[0] if _PATTERNS["negative"].fullmatch(word[0]) else " ", text)
    return remainder if re.search(r"\w", remainder) else text


def labels_for(text: str) -> Labels:
    return LABELS[language_of(text)]
