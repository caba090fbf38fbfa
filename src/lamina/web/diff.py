"""Differences as markup: removed and added lines, with the words that changed underlined, so that colour is not all that tells."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence

from ..language.wording import shorten
from .html import Child, Html, tag

_WORD = re.compile(r"\w[\w/-]*|\s+|[^\w\s]")
# A longer line is not compared word by word, and is shown up to here.
LINE_CHARS = 2_000
# More changed lines than this are counted, not shown.
MOST_ROWS = 200


def diff_texts(old: str, new: str) -> Html | None:
    """Return the difference of two texts; None if there is none."""
    rows = list(_rows(old.splitlines(), new.splitlines()))
    return _shown(rows) if rows else None


def diff_unified(text: str) -> Html | None:
    """Return a unified diff without its head and context; None if it changes nothing."""
    rows, removed, added = list[Html](), list[str](), list[str]()
    for line in [*text.splitlines()[2:], " "]:
        if line.startswith("-"):
            removed.append(line[1:])
        elif line.startswith("+"):
            added.append(line[1:])
        else:
            rows += _rows(removed, added)
            removed, added = [], []
    return _shown(rows) if rows else None


def whole_text(text: str, *, added: bool) -> Html:
    """Return a text as lines that are all added, or all removed."""
    return _shown([tag("div", {"class": "a" if added else "d"}, _line(line)) for line in text.splitlines() if line.strip()])


def _shown(rows: Sequence[Html]) -> Html:
    rest = tag("div", {"class": "more"}, f"… {len(rows) - MOST_ROWS:,}") if len(rows) > MOST_ROWS else None
    return tag("div", {"class": "diff"}, rows[:MOST_ROWS], rest)


def _rows(old: list[str], new: list[str]) -> Iterator[Html]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=len(old) > 2_000)
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind == "equal":
            continue
        removed, added = old[i:j], new[k:m]
        pairs = [_words(one, other) for one, other in zip(removed, added, strict=False)]
        yield from (tag("div", {"class": "d"}, one) for one, _ in pairs)
        yield from (tag("div", {"class": "d"}, _line(line)) for line in removed[len(pairs) :])
        yield from (tag("div", {"class": "a"}, other) for _, other in pairs)
        yield from (tag("div", {"class": "a"}, _line(line)) for line in added[len(pairs) :])


def _words(old: str, new: str) -> tuple[Html, Html]:
    """Return both lines, with the words that differ marked."""
    if max(len(old), len(new)) > LINE_CHARS:
        return _line(old), _line(new)
    left, right = _WORD.findall(old), _WORD.findall(new)
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    one, other = list[Child](), list[Child]()
    for kind, i, j, k, m in matcher.get_opcodes():
        mark = kind != "equal"
        for into, text in ((one, "".join(left[i:j])), (other, "".join(right[k:m]))):
            if text:
                into.append(tag("mark", None, text) if mark else text)
    return tag("bdi", None, one), tag("bdi", None, other)


def _line(line: str) -> Html:
    return tag("bdi", None, shorten(line, LINE_CHARS))
