"""Recognizes requests to remember or forget something in a user's message, and extracts their subject.

Supports English, German, French, Spanish, Chinese, Japanese and Korean. The request is at the start of a message, or at its end in some
languages.
"""

from __future__ import annotations

import re

# Polite phrases that may precede a request at the start of a message.
_POLITE = (
    r"(?:(?:also|and|ok(?:ay)?|hey|hi)[,，]?\s+)?(?:(?:please|pls)\s+|(?:can|could|would|will) you\s+(?:please\s+)?|i want you to\s+"
    r"|bitte\s+|请|請|麻烦(?:你)?)?"
)
REMEMBER = re.compile(
    rf"^\s*{_POLITE}(?:(?:(?:always |do )?remember|memori[sz]e|keep in mind|(?:don['’]?t|do not|never) forget)\b"
    r"(?!\s+(?:when|how|what|where|who)\b)(?:\s+(?:this|that|to|these|the following)\b)?"
    # "save" and "note" also refer to files and notes, so they require a certain word or a colon after them.
    r"|(?:note|save)(?:\s+(?:this|that|(?:in|to) memory)\b|(?=\s*[:：]))"
    r"|(?:merke?\s+(?:dir|euch)|merken\s+sie\s+sich|denke?\s+dar?an|vergiss\s+nicht)\b(?:\s+bitte\b)?(?:\s*,\s*dass\b|\s+folgendes\b)?"
    r"|(?:retiens|retenez|souviens-toi|souvenez-vous|n['’]oublie pas)\b(?:\s+bien\b)?(?:\s+(?:que?\b|ceci\b)|\s+(?=qu['’]))?"
    r"|(?:recuerda|recuerde|acuérdate|no olvides|ten en cuenta)\b(?:\s+(?:de\s+)?(?:que|esto)\b)?"
    r"|记住|記住|记得|記得|记下|記下|(?:别|不要|勿)忘(?:记|記|了)|覚えて(?:おいて)?(?:ください|下さい|ね)?"
    r"|기억해\s?줘|기억해)\s*[:：,，、。]?\s*",
    re.IGNORECASE,
)
# The request at the end of a message, as in Japanese and Korean. The required punctuation excludes "we always remember".
_REMEMBER_LAST = re.compile(
    r"(?:[,;.，。；]\s*(?:please\s+)?(?:remember|keep in mind|don['’]?t forget)(?:\s+(?:this|that|it))?"
    r"|[，,。；\s]\s*(?:请|請)?(?:你)?(?:记住|記住|记一下|记下来|别忘了|不要忘记)(?:这一?点|这件事)?"
    r"|[、，,。\s]*(?:と|を|ことを)?\s*(?:覚えておいて|覚えといて|覚えて)(?:ください|下さい|ね)?"
    r"|[,.\s]*(?:라고|(?<=다)고|는\s?(?:것을|거|걸)|을|를)?\s*기억해(?:\s?줘|\s?주세요|\s?둬)?)\s*[.!。！]*\s*$",
    re.IGNORECASE,
)
FORGET = re.compile(
    rf"^\s*{_POLITE}(?:forget\b(?!\s+it\b)|vergiss\b(?!\s+(?:nicht|es)\b)(?:\s+bitte\b)?"
    r"(?:\s+alles\b(?=\s+über)|\s*,?\s*was\s+du\b)?(?:\s*,?\s*dass\b|\s+über\b)?"
    r"|(?:oublie|olvida)\b(?!\s+(?:pas|ça)\b)(?:\s+(?:que)\b)?"
    r"|忘记|忘記|忘掉|忘了|忘れて(?:ください|下さい)?|잊어\s?줘|잊어)\s*[:：,，、]?\s*",
    re.IGNORECASE,
)
_FORGET_LAST = re.compile(
    r"(?:のこと|について)?(?:は|を)?\s*忘れて(?:ください|下さい|ね)?\s*[.!。！]*\s*$"
    r"|(?:에\s?대해(?:서)?|은|는|을|를)?\s*잊어(?:\s?줘|\s?주세요|버려)\s*[.!。！]*\s*$"
)
# The end of "Vergiss, was du über … weißt".
_KNOWN_BY_YOU = re.compile(r"\s+(?:weißt|weisst)\s*[.!]*\s*$", re.IGNORECASE)

_QUESTION = re.compile(r"(?:[?？]|吗|嗎|か)\s*$")
_REQUEST = re.compile(
    r"^\s*(?:can|could|would|will) you\s+(?:please\s+)?(?:remember|memori[sz]e|keep in mind)\s+that\b", re.IGNORECASE
)


# Requests at the end of a message are searched only in this many last characters, so a long text costs no more than a short one.
_TAIL = 80


def _at_end(pattern: re.Pattern[str], text: str) -> int | None:
    """Return the position at which the pattern starts near the end of the text, or None."""
    base = max(0, len(text) - _TAIL)
    found = pattern.search(text[base:])
    return base + found.start() if found is not None else None


def asks_to_remember(text: str) -> bool:
    """Whether the text asks to remember something.

    "Remember our deploy day?" is a question, so it does not. "Could you remember that …?" is a request phrased as a question.
    """
    if _REQUEST.match(text):
        return True
    if _QUESTION.search(text[-_TAIL:]):
        return False
    return REMEMBER.match(text) is not None or _at_end(_REMEMBER_LAST, text) is not None


def to_remember(text: str) -> str:
    """Return the text to remember, without the request itself."""
    if first := REMEMBER.match(text):
        return (text[first.end() :].rstrip(" ?？") if _REQUEST.match(text) else text[first.end() :]).strip()
    return text[: _at_end(_REMEMBER_LAST, text)].strip()


def asks_to_forget(text: str) -> bool:
    return FORGET.match(text) is not None or _at_end(_FORGET_LAST, text) is not None


def to_forget(text: str) -> str:
    """Return the text to forget, without the request itself."""
    if first := FORGET.match(text):
        return _KNOWN_BY_YOU.sub("", text[first.end() :]).strip()
    return text[: _at_end(_FORGET_LAST, text)].strip()


def asks_for_memory(text: str) -> bool:
    """Whether the text explicitly asks to remember or forget something."""
    return asks_to_remember(text) or asks_to_forget(text)
