"""Where a piece of text stands in a file, and what to say when it stands there not at all or twice.

Owns Edit's decision. Pure: texts in, a plan or a sentence out. Invariant: what is outside the matches is the same before and
after, byte for byte; line ends are those of the file, whichever the model wrote.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher, get_close_matches
from typing import NamedTuple

from .text_form import split_lines, with_line_ends

# Places named in a sentence; a text that stands there more often needs another text, not a longer list.
_MOST_PLACES = 10
# Similar lines are looked for in so many lines of so many characters: beyond that the hint takes longer than a Read.
_MOST_LINES = 5_000
_MOST_CHARACTERS = 300
_NUMBERED = re.compile(r"^ *\d+\t")


class EditPlan(NamedTuple):
    text: str  # the new content
    starts: tuple[int, ...]  # where each replacement begins in it
    length: int  # of each replacement


class EditRefusal(NamedTuple):
    sentence: str


def plan_edit(text: str, old: str, new: str, *, everywhere: bool, line_end: str) -> EditPlan | EditRefusal:
    spans = _find(text, old)
    if not spans:
        return EditRefusal(_not_found(text, old))
    if len(spans) > 1 and not everywhere:
        return EditRefusal(_too_many(text, spans))
    put = with_line_ends(new, line_end)
    if all(text[start:end] == put for start, end in spans):
        return EditRefusal("old_string and new_string are the same: nothing would change.")
    return _replace(text, spans, put)


def _find(text: str, old: str) -> list[tuple[int, int]]:
    """Matches from left to right, none overlapping; a line end in `old` matches either kind."""
    wanted = old.replace("\r\n", "\n")
    if "\r\n" in text and "\n" in wanted:
        pattern = re.compile(r"\r?\n".join(map(re.escape, wanted.split("\n"))))
        return [found.span() for found in pattern.finditer(text)]
    spans, start = list[tuple[int, int]](), text.find(wanted)
    while start >= 0:
        spans.append((start, start + len(wanted)))
        start = text.find(wanted, start + len(wanted))
    return spans


def _replace(text: str, spans: list[tuple[int, int]], put: str) -> EditPlan:
    parts, starts, done, length = list[str](), list[int](), 0, 0
    for start, end in spans:
        parts += [text[done:start], put]
        starts.append(length + start - done)
        length += start - done + len(put)
        done = end
    return EditPlan("".join([*parts, text[done:]]), tuple(starts), len(put))


def line_number(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _too_many(text: str, spans: list[tuple[int, int]]) -> str:
    lines = [str(line_number(text, start)) for start, _ in spans[:_MOST_PLACES]]
    places = ", ".join(lines) + (", …" if len(spans) > _MOST_PLACES else "")
    return (
        f"old_string stands there {len(spans):,} times (lines {places}): add lines around it until it means one of them, "
        "or set replace_all."
    )


def _not_found(text: str, old: str) -> str:
    lines = split_lines(text)
    wanted = [line for line in split_lines(old) if line.strip()]
    if not wanted:
        return "old_string stands nowhere in the file: Read it and copy the text exactly."
    if all(_NUMBERED.match(line) for line in wanted):
        return (
            "old_string stands nowhere in the file; it seems to begin with line numbers: leave out what Read puts before the tab."
        )
    bare = wanted[0].strip()
    number = next((number for number, line in enumerate(lines, 1) if line.strip() == bare), None)
    if number is not None:
        return _differs(lines, number, wanted)
    short = [line.strip()[:_MOST_CHARACTERS] for line in lines[:_MOST_LINES]]
    close = get_close_matches(bare[:_MOST_CHARACTERS], short, n=1, cutoff=0.6)
    if not close:
        return "old_string stands nowhere in the file, nor anything like it: Read the file and copy the text exactly."
    return f"old_string stands nowhere in the file; most similar is line {short.index(close[0]) + 1:,}: {close[0]}"


def _differs(lines: list[str], number: int, wanted: list[str]) -> str:
    """The first line is there but for white space: it is that, or a later line differs."""
    if lines[number - 1] != wanted[0]:
        return (
            f"old_string stands nowhere in the file; line {number:,} differs from it in white space only: "
            "copy the line exactly, tabs and spaces included."
        )
    following = [line for line in lines[number - 1 :] if line.strip()]
    pairs = zip(following, wanted, strict=False)
    first = next(((there, here) for there, here in pairs if there != here), None)
    if first is None:
        return f"old_string stands nowhere in the file; it begins like line {number:,}, but blank lines or the end differ."
    there, here = (line[:_MOST_CHARACTERS] for line in first)
    like = "is almost" if SequenceMatcher(None, there, here).ratio() > 0.6 else "is"
    return f"old_string stands nowhere in the file; it begins like line {number:,}, but then the file {like}: {there.strip()}"
