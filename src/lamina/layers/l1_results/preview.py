"""What stands in the place of a result: a preview, a page, or its beginning with a sentence. Pure, so the same result gives the same
bytes on every call.

Nothing inside a preview can close its fence (core/fence.py): a result is data, whatever it says.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple

from ...core.fence import escape

# A line end in the second half of a preview is where it is cut; an earlier one would leave too little of it.
_SECOND_HALF = 2
# A character of UTF-8 has at most four bytes.
_BYTES_PER_CHARACTER = 4
# The number a Read puts before each line.
_NUMBERED = re.compile(r" *([0-9]{1,15})[\t→]")
# The sentence behind a page has room inside the page.
_ADVICE = 200
# How the sentences behind a part of a result begin.
_OF_A_PART = ("This result was cut: ", "One line is longer than a page: ", "A page of this file is ")
# A reason names a path, and a path may have thousands of characters.
_LONGEST_REASON = 300


class Head(NamedTuple):
    """The beginning of a result, and whether it is text at all."""

    text: str
    binary: bool


def head_of(data: bytes, most: int, *, whole: bool) -> Head:
    """The first `most` characters of these bytes, which hold at least as many; `whole`: they are all of the result."""
    start = data[: most * _BYTES_PER_CHARACTER + _BYTES_PER_CHARACTER]
    # A character cut in two at the end of what is looked at is no fault of the result's.
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    try:
        text = decoder.decode(start, final=whole and len(start) == len(data))
    except UnicodeDecodeError:
        return Head(start.decode("utf-8", "replace")[: most + 1], binary=True)
    return Head(text[: most + 1], binary="\0" in text)


def line_end(text: str, most: int) -> str:
    """The first `most` characters, cut back to the end of a line where one stands in their second half."""
    if len(text) <= most:
        return text
    end = text.rfind("\n", 0, most + 1)
    return text[:end] if end > most // _SECOND_HALF else text[:most]


def persisted(head: Head, *, most: int, size: int, path: str, most_bytes: int | None = None) -> str:
    """R2: the preview, with the size and the place of the whole. `most_bytes` counts where a window is small."""
    fitting = head.text if most_bytes is None else head.text.encode()[:most_bytes].decode("utf-8", "ignore")
    beginning = line_end(head.text, min(most, len(fitting)))
    kind = "It is binary data or not UTF-8; what is no text is shown as \ufffd.\n" if head.binary else ""
    return (
        "<persisted-output>\n"
        f"This result has {size:,} bytes, more than is shown at once. All of it is in {escape(path)}\n"
        f"Read that file in parts, or search it, for what is not shown here.\n{kind}"
        f"\nIt begins:\n{escape(beginning)}\n"
        "</persisted-output>"
    )


def beginning_of(shown: str) -> str | None:
    """What `cut` and `cut_to_page` left of a result; None for a text that neither of them made."""
    text, bracket, sentence = shown.rpartition("\n[")
    return text if bracket and sentence.startswith(_OF_A_PART) and sentence.endswith("]") else None


def cut(text: str, most: int, why: str) -> str:
    """The beginning of a result whose rest could not be kept anywhere; the sentence is within `most` where that is possible."""
    sentence = (
        f"\n[This result was cut: only its beginning is shown, the rest could not be kept ({why[:_LONGEST_REASON].rstrip('.')}). "
        "Make the call again in a way that returns less.]"
    )
    return line_end(text, max(0, most - len(sentence))) + sentence


def cut_to_page(text: str, most: int, *, offset: int = 1) -> str:
    """R5: of a spilled file that was read, one page and where to go on. `offset` is the first line that was asked for."""
    shown = text[: max(1, most - _ADVICE)]
    end = shown.rfind("\n")
    if end <= 0:
        return (
            f"{shown}\n[One line is longer than a page: {len(shown):,} of {len(text):,} characters are shown. "
            "Use a command that takes a part of a line, or search the file.]"
        )
    shown = shown[:end]
    last = shown[shown.rfind("\n") + 1 :]
    numbered = _NUMBERED.match(last)
    following = int(numbered[1]) + 1 if numbered else max(1, offset) + shown.count("\n") + 1
    return f"{shown}\n[A page of this file is {most:,} characters. Go on with offset={following}.]"
