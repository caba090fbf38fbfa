"""The language of a conversation: that of the last message, and before it that of the locale."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...language.detection import language_of
from ...language.text import Shown

# `read a.py` and `run make test` are the same in every language; a longer text is a sentence.
_COMMAND = re.compile(
    r"(?:read|list|search|grep|find|run|write|replace|todo|cat|ls|pwd|git)\b[^.?!]{0,80}(?:\.\w[^?!]{0,40})*",
)


def detect_language(words: str, current: Shown) -> Shown:
    """Return the language of a message; one in no language, such as a number or a command of the stand-in, keeps the current one."""
    if language_of(words) == "zh":
        return "zh"
    return "en" if any(map(str.isalpha, words)) and not _COMMAND.fullmatch(words.strip()) else current


def locale_language(environ: Mapping[str, str]) -> Shown:
    """Return the language that the locale asks for, until the user has said something."""
    locale = environ.get("LC_ALL") or environ.get("LC_MESSAGES") or environ.get("LANG") or ""
    return "zh" if locale.startswith("zh") else "en"
