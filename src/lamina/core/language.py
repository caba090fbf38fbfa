"""The language of a text, and the labels of a memory in that language.

Owns the table of labels. A memory's labels are written in the language of its text; readers accept those of every language, because a
memory may be older than the language of the conversation. Pure.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

Language: TypeAlias = Literal["en", "de", "zh", "ja", "ko"]

# The beginning of a message shows its language; the rest may be pasted text.
_BEGINNING = 500
# Words that English does not have.
_GERMAN = re.compile(
    r"\b(?:ich|wir|ist|sind|nicht|und|bitte|eine?[mnrs]?|schreibe?|erkläre?|hilfe?|merke?|vergiss|benutze|soll|wann|wer|wie|warum|welche[nrs]?|weil|nie|immer|hallo|danke|tschüss|guten|kannst|bist|für)\b",
    re.IGNORECASE,
)
_SCRIPTS: tuple[tuple[Language, re.Pattern[str]], ...] = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ko", re.compile("[\uac00-\ud7af]")),
    ("zh", re.compile("[\u3400-\u9fff]")),
)


# Words of an English sentence. One that begins in Latin script and has more Latin words than foreign characters only quotes these.
_ENGLISH = re.compile(
    r"\b(?:the|an?|is|are|was|be|i|we|you|it|they|my|our|your|to|of|in|on|for|and|or|not|with|what|how|why|does|because|that|this)\b",
    re.IGNORECASE,
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
    "zh": Labels("**原因：**", "**如何应用：**", "说于 {on}。", "继续这样做，用户表示认可：{what}"),
    "ja": Labels("**理由：**", "**適用：**", "{on} の発言。", "これを続ける（承認済み）：{what}"),
    "ko": Labels("**이유:** ", "**적용:** ", "{on}에 한 말.", "계속 이렇게 하기(승인됨): {what}"),
}


def _any(*texts: str) -> str:
    return "|".join(re.escape(text.strip()).replace(re.escape("{on}"), r"\d{4}-\d\d-\d\d") for text in texts)


# Paragraphs of a memory by their label, in any language.
WHY = re.compile(rf"^(?:{_any(*(each.why for each in LABELS.values()))})\s*(?P<why>.+)$", re.MULTILINE)
HOW = re.compile(rf"^(?:{_any(*(each.how for each in LABELS.values()))})", re.MULTILINE)
ON = re.compile(rf"^(?:{_any(*(each.on for each in LABELS.values()))})", re.MULTILINE)


def language_of(text: str) -> Language:
    """Return the language of a text by its script and, for German, by its words; English if nothing else shows."""
    begins = text[:_BEGINNING]
    script = next((name for name, pattern in _SCRIPTS if pattern.search(begins)), None)
    if script is not None and not _is_quoted(begins):
        return script
    return "de" if _GERMAN.search(begins) else "en"


def _is_quoted(text: str) -> bool:
    """Tell whether the characters of another script in a text are only quoted in an English sentence."""
    foreign = sum(len(pattern.findall(text)) for _, pattern in _SCRIPTS)
    words = _LATIN_WORD.findall(text)
    return len(words) > foreign and _LATIN_WORD.match(text.lstrip()) is not None and _ENGLISH.search(text) is not None


def labels_for(text: str) -> Labels:
    return LABELS[language_of(text)]
