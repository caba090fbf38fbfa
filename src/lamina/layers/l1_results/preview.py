"""The text that replaces a large result: a preview, a page, or its beginning and end with a note. Pure, so the same result gives the same
bytes on every call.

A result is data, whatever it contains: nothing inside a preview can close its fence (core/fence.py).
"""

from __future__ import annotations

import codecs
import re

import msgspec

from ...core.fence import escape
from ...core.reach import EXPAND, Reach

# A preview is cut at a line end in its second half; an earlier one would leave too little text.
_SECOND_HALF = 2
# A character of UTF-8 has at most four bytes.
_BYTES_PER_CHARACTER = 4
_CONTINUATION = bytes(range(0x80, 0xC0))
# What a model without a tool for files can do to see a result again.
REPEAT = "Repeat the call if you need the rest.\n"
# The line number that Read prints before each line.
_NUMBERED = re.compile(r" *([0-9]{1,15})[\t→]")
# What precedes the parts of a result in a preview. `beginning_in` finds the parts of logged previews by them, so they must not change.
_BEGINS, _ENDS = "\nIt begins:\n", "\nIt ends:\n"
# Characters reserved inside a page for the note at its end.
_ADVICE = 200
# How the notes at the end of a cut result begin. `parts_of` recognises logged results by them, so they must not change.
_OF_A_PART = ("This result was cut: ", "One line is longer than a page: ", "A page of this file is ")
# The note in the middle of a cut result, and how it is recognised in a logged one.
_MIDDLE = (
    "\n[This result was cut: {gone:,} of its {whole:,} characters are left out here, and could not be saved ({reason}). {again}\n"
)
_LEFT_OUT = re.compile(r"\n\[This result was cut: [0-9,]++ of its ([0-9,]++) characters are left out here, [^\n]*+\n")
# The part of a cut result that is its beginning; the rest is its end.
_HEAD_TOP, _HEAD_BOTTOM = 2, 3
# A reason contains a path, which can have thousands of characters.
_LONGEST_REASON = 300


class ResultHead(msgspec.Struct, frozen=True):
    """The beginning of a result, and whether the result is binary."""

    text: str
    binary: bool


def head_of(data: bytes, most: int, *, whole: bool) -> ResultHead:
    """Decode the first `most` characters of `data`. `whole` means that `data` is the complete result, not just its beginning."""
    start = data[: most * _BYTES_PER_CHARACTER + _BYTES_PER_CHARACTER]
    # A character split at the end of `start` does not make the result binary.
    decoder = codecs.getincrementaldecoder("utf-8")("strict")
    try:
        text = decoder.decode(start, final=whole and len(start) == len(data))
    except UnicodeDecodeError:
        return ResultHead(start.decode("utf-8", "replace")[: most + 1], binary=True)
    return ResultHead(text[: most + 1], binary="\0" in text)


def line_end(text: str, most: int) -> str:
    """Return the first `most` characters, cut back to the last line end if that is in their second half."""
    if len(text) <= most:
        return text
    end = text.rfind("\n", 0, most + 1)
    return text[:end] if end > most // _SECOND_HALF else text[:most]


def last_lines(data: bytes, most: int) -> str:
    """Decode the last `most` characters of `data`, the end of a result. They begin with a full line, if one begins in their first half."""
    # The first bytes may belong to a character that began before.
    text = data.lstrip(_CONTINUATION).decode("utf-8", "replace").removesuffix("\n")
    return _line_start(text[-most:]) if most else ""


def _line_start(text: str) -> str:
    return text[start + 1 :] if 0 <= (start := text.find("\n")) < len(text) // _SECOND_HALF else text


def rest_of(call: str, reach: Reach) -> str:
    """Tell the model how to see the rest of a result, in terms of the tools it has; empty if it has none."""
    if reach.files:
        return "Read that file in parts or search it to see the rest.\n"
    return f"{EXPAND} with node={call} shows the rest, page by page.\n" if reach.expand else ""


def persisted(
    head: ResultHead, *, most: int, size: int, path: str, rest: str, most_bytes: int | None = None, end: str = ""
) -> str:
    """Return the preview with the size and path of the whole result. `most_bytes` limits its beginning further in a small window, `rest`
    tells how to see the rest, and `end` is the end of the result, if it is shown too."""
    # The path helps only a model that can open it.
    only = "Only its beginning and its end are shown." if end else "Only its beginning is shown."
    where = only if not rest or rest.startswith(EXPAND) else f"The complete result is in {escape(path)}"
    kind = "It contains binary or non-UTF-8 data; bytes that cannot be decoded are shown as \ufffd.\n" if head.binary else ""
    return (
        "<persisted-output>\n"
        f"This result has {size:,} bytes, too many to show at once. {where}\n"
        f"{escape(rest)}{kind}"
        f"{_excerpt(head, end, most, most_bytes)}"
        "</persisted-output>"
    )


def once_preview(head: ResultHead, *, most: int, size: int, path: str, rest: str, most_bytes: int, end: str = "") -> str:
    """Return the text that replaces a result after it was shown once. The arguments are those of `persisted`."""
    where = f" All of it is in {escape(path)}" if rest and not rest.startswith(EXPAND) else ""
    return (
        "<persisted-output>\n"
        f"This result of {size:,} bytes was shown once.{where}\n"
        f"{escape(rest) or REPEAT}"
        f"{_excerpt(head, end, most, most_bytes)}"
        "</persisted-output>"
    )


def _excerpt(head: ResultHead, end: str, most: int, most_bytes: int | None) -> str:
    fitting = head.text if most_bytes is None else head.text.encode()[:most_bytes].decode("utf-8", "ignore")
    beginning = f"{_BEGINS}{escape(line_end(head.text, min(most, len(fitting))))}\n"
    return beginning + (f"{_ENDS}{escape(end)}\n" if end else "")


def beginning_in(preview: str) -> str:
    """Return the beginning of a result that its preview shows, escaped."""
    parts = preview.partition(_BEGINS)[2].removesuffix("\n</persisted-output>")
    return parts.rpartition(f"\n{_ENDS}")[0] or parts


class ShownParts(msgspec.Struct, frozen=True):
    """The parts of a result that are left after a cut. `whole` is its full length, 0 if only the beginning is known."""

    head: str
    tail: str = ""
    whole: int = 0

    def belong_to(self, text: str) -> bool:
        if self.whole:
            return len(text) == self.whole and text.startswith(self.head) and text.endswith(self.tail)
        return text.startswith(self.head) and len(text) > len(self.head)


def parts_of(shown: str) -> ShownParts | None:
    """Return the parts of a result that `cut` or `cut_to_page` kept, or None if the text comes from neither."""
    text, bracket, sentence = shown.rpartition("\n[")
    if bracket and sentence.startswith(_OF_A_PART) and sentence.endswith("]") and "\n" not in sentence:
        return ShownParts(text)
    gap = _LEFT_OUT.search(shown)
    return ShownParts(shown[: gap.start()], shown[gap.end() :], int(gap[1].replace(",", ""))) if gap else None


def cut(text: str, most: int, why: str, *, whole: bool = True) -> str:
    """Return the beginning and the end of a result whose middle cannot be stored, with a note about what is missing.

    With `whole` off, `text` is only the beginning of the result. The note is part of the `most` characters if it fits."""
    reason = why[:_LONGEST_REASON].rstrip(".")
    again = "Repeat the call so that it returns less output.]"
    if not whole:
        note = f"\n[This result was cut: only its beginning is shown, the rest could not be saved ({reason}). {again}"
        return line_end(text, max(0, most - len(note))) + note
    room = max(0, most - len(_MIDDLE.format(gone=len(text), whole=len(text), reason=reason, again=again)))
    room = min(room, len(text))
    head = line_end(text, room * _HEAD_TOP // _HEAD_BOTTOM)
    tail = text[len(text) - (room - len(head)) :] if room > len(head) else ""
    tail = _line_start(tail)
    gone = len(text) - len(head) - len(tail)
    return head + _MIDDLE.format(gone=gone, whole=len(text), reason=reason, again=again) + tail


def cut_to_page(text: str, most: int, *, offset: int = 1) -> str:
    """Return one page of a spilled file that was read, with the offset of the next page. `offset` is the first requested line."""
    page = text[: max(1, most - _ADVICE)]
    end = page.rfind("\n")
    if end <= 0:
        return (
            f"{page}\n[One line is longer than a page: {len(page):,} of {len(text):,} characters are shown. "
            "Use a command that prints part of a line, or search the file.]"
        )
    page = page[:end]
    last = page[page.rfind("\n") + 1 :]
    numbered = _NUMBERED.match(last)
    following = int(numbered[1]) + 1 if numbered else max(1, offset) + page.count("\n") + 1
    return f"{page}\n[A page of this file is {most:,} characters. Continue with offset={following}.]"
