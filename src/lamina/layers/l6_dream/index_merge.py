"""Computes the index after a dream. Pure.

Only lines count, and a line belongs to the file it points at. Invariants: lines that others added or reworded in the meantime stay; an
existing memory keeps its line, unless the index exceeds the part that is loaded; text that is found nowhere else is not dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from ...memory.guard.facts import folded_words, is_said
from ...memory.store.index import MOST_LINES, merge_indexes, read_entries, rows_of, with_row
from ...memory.store.topic import fold_name


def index_text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "surrogateescape")


def only_added(before: str, now: str) -> bool:
    """Whether every old line is still there, so the index was changed only by adding memories."""
    return not Counter(before.split("\n")) - Counter([*now.split("\n"), ""])


def keep_prose(before: str, wanted: str, texts: Iterable[str]) -> tuple[str, list[str]]:
    """Put back each line that is neither an entry nor a heading, and that neither the new index nor any of the texts contains. Return
    the index and these lines."""
    there, rows, lost, position = [wanted, *texts], wanted.split("\n"), list[str](), 0
    for row in before.split("\n"):
        fact = folded_words(row.lstrip("-*+> \t"))
        if fact and row in rows:
            position = rows.index(row) + 1
        elif fact and not (read_entries(row) or row.lstrip().startswith("#") or any(is_said(fact, text) for text in there)):
            rows.insert(position, row)
            position += 1
            lost.append(row.strip())
    return "\n".join(rows), lost


def merge_edits(work: str, *, base: str, now: str) -> tuple[str, list[str]]:
    """Return the dream's index with the lines that others changed since `base`, and the files whose line the dream had changed too."""
    ours, then, theirs = rows_of(work), rows_of(base), rows_of(now)
    both = [file for file, row in then.items() if row != theirs.get(file) and ours.get(file) not in (row, theirs.get(file))]
    return merge_indexes(work, now, base=base), both


def finish_index(work: str, *, base: str, now: str, files: Collection[str], changed: Collection[str]) -> str:
    """Return the dream's index plus the lines it does not know: those of memories that others or the dream itself added.

    `now` is the index after the dream's files were written, `files` are all topic files, `changed` those the dream wrote.
    """
    ours, then, there = rows_of(work), rows_of(base), rows_of(now)
    kept, written = {fold_name(file) for file in files}, {fold_name(file) for file in changed}
    text, behind = work, ""
    for file, row in there.items():
        stale = file in written and ours.get(file) == then.get(file)  # the old line of a memory whose content has changed
        missing = file not in ours and file in kept and (file not in then or work.count("\n") < MOST_LINES)
        if stale or missing:
            text = with_row(text, file, row, behind)
        behind = file
    return text
