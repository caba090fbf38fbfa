"""What is code and what is a comment in a markdown text; pure, and linear in its length.

Not a markdown parser: it knows as much as finding `@path` includes needs (I2). Where it is in doubt it calls a line code, so that
nothing is included by accident.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from itertools import groupby

# A fence may stand in quotes and list items. A backtick fence has no further backtick in its line: that would be a code span.
_FENCE = re.compile(r"[ \t]*(?:>[ \t]*|(?:[-*+]|\d{1,9}[.)])[ \t]+)*(?P<mark>`{3,}(?=[^`\n]*$)|~{3,})")
_LIST_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_INDENTED = ("    ", "\t")
_RUN = re.compile(r"`+")
_REST_OF_LINE = re.compile(r"[ \t]*(?:\n|\Z)")


def mask_code(text: str) -> str:
    """The same text with spaces where code is: same length, same lines."""
    if "`" not in text and "~~~" not in text and "    " not in text and "\t" not in text:
        return text
    paragraphs = groupby(_mask_blocks(text).split("\n"), key=lambda line: not line.strip())
    return "\n".join(_mask_spans("\n".join(lines)) for _, lines in paragraphs)


def _mask_blocks(text: str) -> str:
    lines: list[str] = []
    mark = ""  # of the fence we are in
    in_list, after_blank = False, True
    for line in text.split("\n"):
        is_code = bool(mark)
        if mark:
            closing = line.strip(" \t>")
            if len(closing) >= len(mark) and not closing.strip(mark[0]):
                mark = ""
        elif (opening := _FENCE.match(line)) is not None:
            mark, is_code = opening["mark"], True
        elif not line.strip():
            after_blank = True
        elif line.startswith(_INDENTED) and after_blank and not in_list:
            is_code = True
        else:
            after_blank = False
            in_list = bool(_LIST_ITEM.match(line)) or (in_list and line[0] in " \t")
        lines.append(" " * len(line) if is_code else line)
    return "\n".join(lines)


def _mask_spans(paragraph: str) -> str:
    """A span opens with a run of backticks and closes with the next run of the same length in the paragraph."""
    runs = list(_RUN.finditer(paragraph))
    by_length: dict[int, list[int]] = defaultdict(list)
    for index, run in enumerate(runs):
        by_length[len(run[0])].append(index)
    pieces: list[str] = []
    done = index = 0
    while index < len(runs):
        run = runs[index]
        same = by_length[len(run[0])]
        after = bisect_right(same, index)
        escaped = paragraph[run.start() - 1 : run.start()] == "\\"
        if not escaped and after < len(same):
            index = same[after]
            end = runs[index].end()
            pieces += [paragraph[done : run.start()], re.sub(r"[^\n]", " ", paragraph[run.start() : end])]
            done = end
        index += 1
    return "".join([*pieces, paragraph[done:]])


def without_comments(text: str) -> str:
    """Without HTML comments that stand on lines of their own; those inside a line, in code or never closed stay."""
    if "<!--" not in text:
        return text
    mask = mask_code(text)
    kept: list[str] = []
    done = at = 0
    while (start := mask.find("<!--", at)) >= 0 and (end := mask.find("-->", start + 4)) >= 0:
        at = end + 3
        # Up to three spaces before it: with four it would be code.
        before = text[max(0, start - 4) : start]
        indent = len(before) - before.rfind("\n") - 1 if "\n" in before else start
        rest = _REST_OF_LINE.match(text, at)
        if indent <= 3 and not before[len(before) - indent :].strip() and rest is not None:
            kept.append(text[done : start - indent])
            done = at = rest.end()
    return "".join([*kept, text[done:]])
