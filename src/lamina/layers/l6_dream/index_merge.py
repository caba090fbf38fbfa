"""Computes the index after a dream, and after its undo. Pure.

Only lines count, and a line belongs to the file it points at. Invariants: lines that others added or reworded in the meantime stay; an
existing memory keeps its line, unless the index exceeds the part that is loaded; text that is found nowhere else is not dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from itertools import takewhile
from typing import NamedTuple

from ...memory.guard.facts import folded_words, is_said
from ...memory.store.index import MOST_LINES, IndexEntry, drop_entry, put_entry, read_entries
from ...memory.store.topic import fold_name


def index_text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "surrogateescape")


def rows_of(text: str) -> dict[str, str]:
    """Map each folded file name to its line, or to the first line if there are several."""
    found: dict[str, str] = {}
    for row in text.split("\n"):
        for entry in read_entries(row):
            found.setdefault(fold_name(entry.file), row)
    return found


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
    return restore_index(work, now, [], own=IndexRewrite(work, base)), both


def merge_index(work: str, *, base: str, now: str, files: Collection[str], changed: Collection[str]) -> str:
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
            text = _with_row(text, file, row, behind)
        behind = file
    return text


class IndexRewrite(NamedTuple):
    """The index right before and right after the dream rewrote it."""

    found: str
    made: str


def restore_index(
    before: str, now: str, back: Collection[str], stay: Collection[str] = (), own: IndexRewrite | None = None
) -> str:
    """Return the index as it was `before` the dream, with the changes others made since.

    `back` are restored files, whose lines are restored too. `stay` are the dream's files that were not restored; they keep their line.
    For other files a line is the dream's if it is worded as in `own` (None: the dream did not get to rewriting the index).
    """
    then, there, found, made = (rows_of(text) for text in (before, now, *(own or ("", ""))))
    files, others, text = {fold_name(file) for file in back}, {fold_name(file) for file in stay}, before
    for file in dict.fromkeys([*there, *then]):
        row = there.get(file)
        if file not in others and found.get(file) != made.get(file) == row:
            row = found.get(file)
        if file in files or row == then.get(file):
            continue
        text = _with_row(text, file, row) if row is not None else drop_entry(text, file)
    added, dropped = (
        (_prose(own.made) - _prose(own.found), _prose(own.found) - _prose(own.made)) if own else (Counter(), Counter())
    )
    return _with_prose(text, removed=_prose(before) - _prose(now) - dropped, added=_prose(now) - _prose(before) - added)


def restore_lines(before: str, now: str, dreamt: Mapping[str, Collection[str]]) -> str:
    """Return the index with the lines of some files as `before` the dream, and everything else as it is now.

    `dreamt` maps each file to the lines that the dream gave it. A line that is worded otherwise stays.
    """
    then = rows_of(before)
    for file, lines in dreamt.items():
        key, there = fold_name(file), rows_of(now)
        row, old = there.get(key), then.get(key)
        if row is not None and row.rstrip("\r") not in lines:
            continue
        if old is not None:
            above = [one for one in takewhile(lambda one: one != key, then) if one in there]  # noqa: B023  # used at once
            now = _with_row(now, key, old, above[-1] if above else "")
        elif row is not None:
            now = drop_entry(now, file)
    return now


def _prose(text: str) -> Counter[str]:
    return Counter(row for row in text.split("\n") if row.strip() and not read_entries(row))


def _with_prose(text: str, *, removed: Counter[str], added: Counter[str]) -> str:
    rows = list[str]()
    for row in text.split("\n"):
        if removed[row] > 0:
            removed[row] -= 1
        else:
            rows.append(row)
    more = "".join(f"{row}\n" for row in added.elements())
    kept = "\n".join(rows)
    return kept if not more else f"{kept}{'' if not kept or kept.endswith(chr(10)) else chr(10)}{more}"


def _with_row(text: str, file: str, row: str, behind: str = "") -> str:
    """Return the text with this line for a file. It replaces the file's old line, else follows `behind`, else goes where new lines go."""
    rows, done = list[str](), False
    for old in text.split("\n"):
        if not _points_at(file, old):
            rows.append(old)
        elif not done:
            rows.append(row)
            done = True
    if done:
        return "\n".join(rows)
    if (at := next((at for at, old in enumerate(rows) if behind and _points_at(behind, old)), None)) is not None:
        return "\n".join([*rows[: at + 1], row, *rows[at + 1 :]])
    entry: IndexEntry = read_entries(row)[0]
    return _with_row(put_entry(text, entry), file, row)


def _points_at(file: str, row: str) -> bool:
    return any(fold_name(entry.file) == file for entry in read_entries(row))
