"""Lines that state a value in words, found by rule (O1): what a summary made without a model keeps of answers, results and arguments.

A line counts if it reads like a sentence and holds a number. A log repeats its forms: a line whose form, digits aside, stands more than
once says less than one that stands alone, and is left out. Each text gives its best line before any gives a second, so that one
long file does not crowd out the rest; the newest texts come first when there are more than fit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

# Shorter lines are labels, longer ones are data.
SHORTEST, LONGEST = 20, 240
LEAST_WORDS = 4
# Of prose nearly everything is letters and blanks; of code and tables much is not.
LEAST_LETTERS = 0.75
EACH = 2
# A text beyond this is a file of data, and its beginning is like its end.
LONGEST_TEXT = 200_000

_SENTENCE = re.compile(r"[^\n]+?(?:[.!?。！？](?=\s|$)|$)", re.MULTILINE)
_DIGITS = re.compile(r"\d+")
# What stands before a line is no part of it: its number, a bullet, a mark of quotation.
_BEFORE = re.compile(r"\A(?:\d+(?:\s*[→│|]|:\s))?[\s>*•#-]*")
_WORD = re.compile(r"[^\W\d_]{2,}")


def stated(texts: Sequence[str], most: int) -> list[str]:
    """At most so many lines, in the order they were said."""
    found = [[line for line in _lines(text) if _is_value(line)] for text in texts]
    # A file read twice gives its lines once.
    newest = {line: at for at, lines in enumerate(found) for line in lines}
    forms = Counter(map(_form, newest))
    alone = [
        [line for line in dict.fromkeys(lines) if newest[line] == at and forms[_form(line)] == 1]
        for at, lines in enumerate(found)
    ]
    kept: list[tuple[int, int, str]] = []
    for rank in range(EACH):
        for at in range(len(alone) - 1, -1, -1):
            if rank < len(alone[at]) and len(kept) < most:
                kept.append((at, rank, alone[at][rank]))
    return [line for _, _, line in sorted(kept)]


def _lines(text: str) -> Iterator[str]:
    for found in _SENTENCE.finditer(text[:LONGEST_TEXT]):
        line = found[0].strip()
        if SHORTEST <= len(line) <= LONGEST:
            yield _BEFORE.sub("", line)


def _is_value(line: str) -> bool:
    if not _DIGITS.search(line) or len(_WORD.findall(line)) < LEAST_WORDS:
        return False
    return sum(char.isalpha() or char == " " for char in line) >= LEAST_LETTERS * len(line)


def _form(line: str) -> str:
    return _DIGITS.sub("0", line)
