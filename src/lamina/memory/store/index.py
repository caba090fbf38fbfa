"""The text of the index `MEMORY.md`: one line `- [Title](file.md) — hook` for each topic, their order, and the part a session
receives. `index_file` owns the file.

Invariants: a line we write is one line of at most 150 characters that can neither break its link nor open a tag. Lines that
are not ours keep their bytes. No text raises. Lines are ordered by topic, which is the first word of the file name, and
within a topic by use; the order changes only when a line is added. Pure.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple
from urllib.parse import unquote

from ...core.errors import InputError
from ...core.fence import escape
from ...core.front_matter import split_front_matter
from ...language.text import Text
from ...language.wording import counted, plural, shorten
from .secrets import redact
from .topic import INDEX as INDEX
from .topic import Topic, fold_name, one_line
from .topic_files import TopicHeader

# One and a half terminal lines; a session receives up to two hundred of them.
LINE_CHARS = 150
MOST_LINES = 200
MOST_BYTES = 25_000
# Lines that leave a full index beyond the one that must: choosing them costs as much as all else in a save.
SPARE_LINES = 10
# A line of the longest kind in any script.
_LINE_BYTES = 4 * LINE_CHARS
# Three hundred times as much as is sent: a longer file is not an index. Earlier versions wrote up to 4 MiB.
MOST_INDEX = 8 << 20
# Enough for a title; the hook tells the rest.
_TITLE_CHARS = 60
_SHOWN_CHARS = 60

_ENTRY = re.compile(r"[ \t]{0,8}[-*+][ \t]+\[(?P<title>[^\n]*?)\]\((?P<file><[^<>\n]*>|[^()\s]*)\)[ \t]*(?P<hook>[^\n]*)")
_DASH = re.compile(r"^(?:—|–|--?|:)\s+")
_MARKUP = re.compile(r"<(?=[/!?\w])")
_COMMENT = re.compile(r"^[ \t]*<!--.*?-->[ \t]*(?:\r?\n|\Z)", re.MULTILINE | re.DOTALL)
_WORD_END = re.compile(r"[-_./ ]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_NO_USES: Mapping[str, int] = {}


class IndexEntry(NamedTuple):
    title: str
    file: str
    hook: str


def entry_of(topic: Topic | TopicHeader) -> IndexEntry:
    return IndexEntry(topic.name, topic.file, topic.description)


def read_entries(text: str) -> list[IndexEntry]:
    """Return the lines that point at a file; other lines belong to the user."""
    return [entry for line in text.split("\n") if "](" in line and (entry := _entry(line)) is not None]


# The same lines are read at every save. A cache smaller than an index would never hit.
@lru_cache(maxsize=16_384)
def _entry(line: str) -> IndexEntry | None:
    match = _ENTRY.match(line)
    if match is None:
        return None
    file = unquote(match["file"].removeprefix("<").removesuffix(">")).removeprefix("./")
    if not file.endswith(".md") or _SCHEME.match(file):
        return None
    return IndexEntry(match["title"], file, _DASH.sub("", match["hook"].strip()).strip())


@lru_cache(maxsize=16_384)
def _key(line: str) -> str | None:
    """Return the file that a line points at, folded; None for a line of the user's."""
    return fold_name(entry.file) if (entry := _entry(line)) is not None else None


def entry_line(entry: IndexEntry) -> str:
    """Format an entry as one safe line. If the file name leaves no room, the line has its link and a short title."""
    file = f"<{entry.file}>" if re.search(r"[\s()]", entry.file) else entry.file
    room = LINE_CHARS - len(f"- []({file}) — ")
    hook = _safe(entry.hook, LINE_CHARS)
    title = _safe(entry.title, max(8, min(_TITLE_CHARS, room if not hook else room // 2))).translate(_BRACKETS) or "memory"
    hook = shorten(hook, room - len(title)) if room > len(title) + 1 else ""
    return f"- [{title}]({file})" + (f" — {hook}" if hook else "")


_BRACKETS = str.maketrans({"[": "(", "]": ")"})


def _safe(text: str, longest: int) -> str:
    return shorten(escape(_MARKUP.sub("&lt;", one_line(text, longest))), longest)


def put_entry(text: str, entry: IndexEntry, *, was: str = "", uses: Mapping[str, int] = _NO_USES) -> str:
    """Return the index with this entry: its line is replaced in place, or inserted among the lines of its topic. `was` is the
    former file, whose line it replaces; `uses` counts the uses of each file."""
    line, key, former = entry_line(entry), fold_name(entry.file), fold_name(was)
    lines = text.split("\n")
    places = [(number, file) for number, old in enumerate(lines) if (file := _key(old)) is not None]
    mine = [number for number, file in places if file in (key, former)]
    if mine:
        old, ending = lines[mine[0]], "\r" if lines[mine[0]].endswith("\r") else ""
        if _entry(old) != _entry(line):
            lines[mine[0]] = line + ending
        doubles = set(mine[1:])
        return "\n".join(old for number, old in enumerate(lines) if number not in doubles)
    if not places:
        separator = "\n" if text and not text.endswith("\n") else ""
        return f"{text}{separator}{line}\n"
    place = _place(places, key, uses)
    ending = "\r" if "\r\n" in text else ""
    if place == len(lines):
        lines = [*lines[:-1], lines[-1] + ending, line, ""]
    else:
        lines.insert(place, line + ending)
    return "\n".join(_by_use(lines, uses))


def _place(places: list[tuple[int, str]], key: str, uses: Mapping[str, int]) -> int:
    """Return the line number for a new entry: ordered by topic, not by date.

    Within its topic it goes before the first file that is used less, or equally and sorted behind it. A new topic goes to its
    sorted place if the topics are sorted, else to the end.
    """
    mine, topic = (-uses.get(key, 0), key), _topic(key)
    if same := [(number, file) for number, file in places if _topic(file) == topic]:
        return next((number for number, file in same if (-uses.get(file, 0), file) > mine), same[-1][0] + 1)
    topics = [_topic(file) for _, file in places]
    position = bisect(topics, topic) if topics == sorted(topics) else len(places)
    return places[position][0] if position < len(places) else places[-1][0] + 1


@lru_cache(maxsize=16_384)
def _topic(file: str) -> str:
    """Return the topic of a file: the first word of its name."""
    return _WORD_END.split(file, maxsplit=1)[0]


def _by_use(lines: list[str], uses: Mapping[str, int]) -> list[str]:
    """Sort neighbouring lines of one topic by use, the most used first; all others keep their places."""
    if not uses:
        return lines
    rows = [(_key(line), line) for line in lines]
    ordered: list[str] = []
    for topic, group in groupby(rows, key=lambda row: None if row[0] is None else _topic(row[0])):
        run = list(group)
        if topic is not None:
            run.sort(key=lambda row: -uses.get(row[0] or "", 0))
        ordered += [line for _, line in run]
    return ordered


# Merging


def rows_of(text: str) -> dict[str, str]:
    """Map each folded file name to its line, or to the first line if there are several."""
    rows: dict[str, str] = {}
    for row in text.split("\n"):
        if (file := _key(row)) is not None:
            rows.setdefault(file, row)
    return rows


def with_row(text: str, file: str, row: str | None, behind: str = "") -> str:
    """Return the text with this line for a folded file name, or without one. It replaces the file's old line, else follows the line of
    `behind`, else goes where new lines go."""
    rows = text.split("\n")
    mine = [number for number, old in enumerate(rows) if _key(old) == file]
    if row is not None and not mine:
        after = next((number + 1 for number, old in enumerate(rows) if behind and _key(old) == behind), None)
        if after is not None:
            return "\n".join([*rows[:after], row, *rows[after:]])
        entry = _entry(row)
        return with_row(put_entry(text, entry), file, row) if entry is not None else text
    drop = set(mine if row is None else mine[1:])
    return "\n".join(row if number in mine and row is not None else old for number, old in enumerate(rows) if number not in drop)


def merge_indexes(ours: str, theirs: str, *, base: str, our_rows: Collection[str] = (), their_rows: Collection[str] = ()) -> str:
    """Return our index with the lines that others changed from `base` to `theirs`. The files in `our_rows` keep our line, those in
    `their_rows` get theirs."""
    base_lines, their_lines, text = rows_of(base), rows_of(theirs), ours
    for file in dict.fromkeys([*their_lines, *base_lines, *their_rows]):
        if file in their_rows or (file not in our_rows and their_lines.get(file) != base_lines.get(file)):
            text = with_row(text, file, their_lines.get(file))
    base_prose, their_prose, our_prose = map(_prose, (base, theirs, text))
    rows, dropped = list[str](), (base_prose - their_prose) & (our_prose - their_prose)
    for row in text.split("\n"):
        if dropped[row] > 0:
            dropped[row] -= 1
        else:
            rows.append(row)
    text, added = "\n".join(rows), (their_prose - base_prose) - (our_prose - base_prose)
    separator = "\n" if added and text and not text.endswith("\n") else ""
    return text + separator + "".join(f"{row}\n" for row in added.elements())


def _prose(text: str) -> Counter[str]:
    return Counter(row for row in text.split("\n") if row.strip() and _key(row) is None)


# The limit


def sent_part(text: str) -> str:
    """Return the index without front matter and comments, as far as it counts for the limits."""
    return _COMMENT.sub("", split_front_matter(text).body).strip("\ufeff \t\r\n")


def excess(text: str) -> tuple[int, int]:
    """Return by how many lines and bytes the index exceeds what a session receives; not positive if it fits."""
    body = sent_part(text)
    return body.count("\n") + 1 - MOST_LINES, len(body.encode("utf-8", "replace")) - MOST_BYTES


def is_over(text: str) -> bool:
    """Tell whether the index exceeds what a session receives. A text within both limits fits, whatever part of it is sent."""
    short = text.count("\n", 0, -1) < MOST_LINES and len(text.encode("utf-8", "replace")) <= MOST_BYTES
    return not short and max(excess(text)) > 0


def is_full(text: str) -> bool:
    """Tell whether lines may have left the index, or another one may not fit."""
    lines, size = excess(text)
    return lines >= -SPARE_LINES or size > -SPARE_LINES * LINE_CHARS - _LINE_BYTES


def note_rest(text: str, left: int) -> str:
    """Add to the part a session receives that this number of memories has no line in it."""
    if left <= 0:
        return text
    have = counted(left, "more memory has", "more memories have")
    return f"{text}\n\n> {have} no line here. Recall brings those that fit a message; search the directory for others."


def make_room(text: str, leaving: Iterable[str], *, keep: str) -> str:
    """Return an index that fits: lines of the files in `leaving` go, the first ones first, until the next few lines fit too.

    If the index is still too long, it is mostly the user's. Then the line of `keep` goes to the top, so that it is sent.
    """
    lines, size = excess(text)
    if lines <= 0 and size <= 0:
        return text
    sizes = {file: len(line.encode("utf-8", "replace")) + 1 for line in text.split("\n") if (file := _key(line)) is not None}
    gone: set[str] = set()
    for file in map(fold_name, leaving):
        if lines <= -SPARE_LINES and size <= -SPARE_LINES * LINE_CHARS:
            break
        if file in sizes:
            gone.add(file)
            lines, size = lines - 1, size - sizes[file]
    rows = [row for row in text.split("\n") if _key(row) not in gone]
    if lines > 0 or size > 0:
        mine = [row for row in rows if _key(row) == fold_name(keep)]
        others = [row for row in rows if row not in mine]
        first = next((number for number, row in enumerate(others) if _key(row) is not None), 0)
        rows = [*others[:first], *mine, *others[first:]]
    return "\n".join(rows)


def choose_lines(entries: Iterable[IndexEntry], uses: Mapping[str, int]) -> str:
    """Return a new index with the first of these entries that fit, ordered by topic and use."""
    rows, size = list[tuple[str, int, str, str]](), 0
    for entry in entries:
        line, file = entry_line(entry), fold_name(entry.file)
        size += len(line.encode("utf-8", "replace")) + 1
        if len(rows) == MOST_LINES or size - 1 > MOST_BYTES:
            break
        rows.append((_topic(file), -uses.get(file, 0), file, line))
    return "".join(f"{line}\n" for *_, line in sorted(rows))


class RewrittenIndex(NamedTuple):
    """A valid index. `missing` lists files that its lines named but that don't exist; `redacted` lists the kinds of removed
    secrets."""

    text: str
    missing: tuple[str, ...] = ()
    redacted: tuple[str, ...] = ()


def rewrite_index(text: str, old: str, files: Iterable[str], *, known: bool, team: bool = False) -> RewrittenIndex:
    """Make a rewritten index valid: one safe line for each existing memory, and no content.

    Lines of the old index keep their bytes. A writer that did not know the old index (`known`) can only add lines to it.
    """
    clean = redact(text)
    if team and clean.kinds:
        raise InputError(
            INDEX, Text("contains a secret ({kinds})", kinds=", ".join(clean.kinds)), "remove it, because team memory is shared"
        )
    rows = split_front_matter(clean.text).body.split("\n")
    existing, old_rows, listed = {fold_name(file) for file in files}, set(old.split("\n")), set[str]()
    worded = {file for row in rows if row not in old_rows and (file := _key(row)) is not None}
    lines, missing = list[str](), list[str]()
    for line in rows:
        entry = _entry(line)
        if entry is not None and line in old_rows and fold_name(entry.file) in worded:
            continue  # replaced by another line
        if entry is None:
            lines.append(line if line in old_rows else shorten(line.rstrip(), LINE_CHARS))
        elif line not in old_rows and fold_name(entry.file) not in existing:
            missing.append(entry.file)
        elif fold_name(entry.file) not in listed:
            listed.add(fold_name(entry.file))
            lines.append(line if line in old_rows else entry_line(entry))
    whole = "\n".join(lines)
    whole = whole if not whole or whole.endswith("\n") else f"{whole}\n"
    return RewrittenIndex(whole if known else add_entries(old, whole), tuple(dict.fromkeys(missing)), clean.kinds)


def add_entries(old: str, new: str) -> str:
    """Return the old index with the entries of the new one."""
    for entry in read_entries(new):
        old = put_entry(old, entry)
    return old


def drop_entry(text: str, file: str) -> str:
    key = fold_name(file)
    return "\n".join(line for line in text.split("\n") if _key(line) != key)


def load_index(text: str) -> str:
    """Return the part a session receives: without front matter and comments, within both limits, with a warning if it was
    cut."""
    body = sent_part(text)
    lines = body.split("\n")
    size = len(body.encode("utf-8", "replace"))
    part = "\n".join(lines[:MOST_LINES])
    data = part.encode("utf-8", "replace")
    if len(data) > MOST_BYTES:
        head = data[:MOST_BYTES].decode("utf-8", "ignore")
        end = len(head) if part[len(head) : len(head) + 1] == "\n" else head.rfind("\n")
        part = head[:end] if end > 0 else head
    if len(part) == len(body):
        return body
    whole = part.count("\n") + 1
    return f"{part}\n\n{_warning(lines, whole, size)}"


def _warning(lines: list[str], whole: int, size: int) -> str:
    over = []
    if len(lines) > MOST_LINES:
        over.append(f"has {counted(len(lines), 'line')} (the limit is {MOST_LINES})")
    if size > MOST_BYTES:
        over.append(f"is {size:,} bytes long (the limit is {MOST_BYTES:,})")
    first = one_line(lines[min(whole, len(lines) - 1)], _SHOWN_CHARS)
    omitted = len(lines) - whole
    cut = (
        f"{counted(omitted, 'line')} {plural(omitted, 'is', 'are')} left out, from line {whole + 1} on"
        if omitted > 0
        else "its line is cut"
    )
    excerpt = escape(_MARKUP.sub("&lt;", first))
    return (
        f"> Warning: {INDEX} {' and '.join(over)}, so only its beginning was loaded: {cut} ({excerpt!r}). "
        f"Shorten lines to at most {LINE_CHARS} characters and move detail into topic files."
    )
