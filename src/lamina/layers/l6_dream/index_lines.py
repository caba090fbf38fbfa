"""What a dream may put into the index (S3, B6): lines that say of a memory what the memory says, and headings.

The index is sent with every session, so a line of it speaks louder than any memory. A line that was there may stay as it is. A new or
changed one points at a memory of the copy, and most of its words stand in that memory or in the line it had. Other text is the person's
own and is not added to; a heading is short. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ...memory.store.index import INDEX, read_entries
from .facts import WORDED_ANEW, folded_words

# A heading names a subject.
HEADING_WORDS = 6
QUOTED_CHARS = 80
NO_SUCH = f"{INDEX}: {{line!r}} points at no memory of the copy. Leave it out."
NOT_SAID = f"{INDEX}: {{line!r}} says what the memory does not say. Use its name and description."
NO_TEXT = f"{INDEX} is an index: {{line!r}} belongs in a memory, or nowhere."

_HEADING = re.compile(r"#{1,6}\s")


def problem(new: str, old: str, text_of: Callable[[str], str | None]) -> str | None:
    """Why the index may not become this, as a sentence; None where it may. `text_of` is a memory of the copy, None where there is none."""
    there = {line.strip() for line in old.splitlines()}
    before = {entry.file: f"{entry.title} {entry.hook}" for entry in read_entries(old)}
    for line in new.splitlines():
        if line.strip() and line.strip() not in there and (why := _why_not(line, text_of, before)) is not None:
            return why.format(line=line.strip()[:QUOTED_CHARS])
    return None


def _why_not(line: str, text_of: Callable[[str], str | None], before: Mapping[str, str]) -> str | None:
    found = read_entries(line)
    if not found:
        heading = _HEADING.match(line) is not None and len(folded_words(line).split()) <= HEADING_WORDS
        return None if heading else NO_TEXT
    entry = found[0]
    text = text_of(entry.file)
    if text is None:
        return NO_SUCH
    own = set(folded_words(f"{entry.title} {entry.hook}").split())
    # A title spells the parts of a file's name as words.
    known = set(folded_words(f"{entry.file.replace('_', ' ')} {text} {before.get(entry.file, '')}").split())
    return None if len(own & known) >= WORDED_ANEW * len(own) else NOT_SAID
