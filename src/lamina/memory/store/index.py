"""The index `MEMORY.md`: one line `- [Title](file.md) — hook` for each topic, the part a session receives, and the file.

Invariants: a line we write is one line of at most 150 characters that can neither break its link nor open a tag. Lines that
are not ours keep their bytes. No text raises. A change is applied to the index as it is at that moment, so a user's edit is
merged and never lost. Bytes that are not UTF-8 pass through unchanged. A file too long for an index is left alone.

A crash at any line leaves the old index or the new one. Writers hold the store's guard.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import unquote

from ...core.errors import DiskError, InputError
from ...core.fence import escape
from ...core.front_matter import split_front_matter
from ...core.wording import counted, plural
from ...disk.temp_files import Durability
from ...disk.trees.rootdir import RootDir
from .secrets import redact
from .topic import INDEX as INDEX
from .topic import Topic, fold_name, one_line
from .topic_files import TopicHeader

# One and a half terminal lines; a session receives up to two hundred of them.
LINE_CHARS = 150
MOST_LINES = 200
MOST_BYTES = 25_000
# A hundred times as much as is sent: a longer file is not an index.
MOST_INDEX = 4 << 20
# Each failed round means that another program saved the index at that very moment.
_ROUNDS = 10
# Enough for a title; the hook tells the rest.
_TITLE_CHARS = 60
_SHOWN_CHARS = 60

_ENTRY = re.compile(r"[ \t]{0,8}[-*+][ \t]+\[(?P<title>[^\n]*?)\]\((?P<file><[^<>\n]*>|[^()\s]*)\)[ \t]*(?P<hook>[^\n]*)")
_DASH = re.compile(r"^(?:—|–|--?|:)\s+")
_MARKUP = re.compile(r"<(?=[/!?\w])")
_COMMENT = re.compile(r"^[ \t]*<!--.*?-->[ \t]*(?:\r?\n|\Z)", re.MULTILINE | re.DOTALL)
_WORD_END = re.compile(r"[-_./ ]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class IndexEntry(NamedTuple):
    title: str
    file: str
    hook: str


def entry_of(topic: Topic | TopicHeader) -> IndexEntry:
    return IndexEntry(topic.name, topic.file, topic.description)


def read_entries(text: str) -> list[IndexEntry]:
    """Return the lines that point at a file; other lines belong to the user."""
    return [found for line in text.split("\n") if "](" in line and (found := _entry(line)) is not None]


# The same lines are read at every save. A cache smaller than an index would never hit.
@lru_cache(maxsize=16_384)
def _entry(line: str) -> IndexEntry | None:
    found = _ENTRY.match(line)
    if found is None:
        return None
    file = unquote(found["file"].removeprefix("<").removesuffix(">")).removeprefix("./")
    if not file.endswith(".md") or _SCHEME.match(file):
        return None
    return IndexEntry(found["title"], file, _DASH.sub("", found["hook"].strip()).strip())


def entry_line(entry: IndexEntry) -> str:
    """Format an entry as one safe line. If the file name leaves no room, the line has its link and a short title."""
    file = f"<{entry.file}>" if re.search(r"[\s()]", entry.file) else entry.file
    room = LINE_CHARS - len(f"- []({file}) — ")
    hook = _safe(entry.hook, LINE_CHARS)
    title = _safe(entry.title, max(8, min(_TITLE_CHARS, room if not hook else room // 2))).translate(_BRACKETS) or "memory"
    hook = _cut(hook, room - len(title))
    return f"- [{title}]({file})" + (f" — {hook}" if hook else "")


_BRACKETS = str.maketrans({"[": "(", "]": ")"})


def _safe(text: str, longest: int) -> str:
    return _cut(escape(_MARKUP.sub("&lt;", one_line(text, longest))), longest)


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    return f"{text[: longest - 1].rstrip()}…" if longest > 1 else ""


def put_entry(text: str, entry: IndexEntry, *, was: str = "") -> str:
    """Return the index with this entry: its line is replaced in place, or inserted next to related entries. `was` is the
    former file, whose line it replaces."""
    line, key, former = entry_line(entry), fold_name(entry.file), fold_name(was)
    lines = text.split("\n")
    places = [(number, fold_name(found.file)) for number, old in enumerate(lines) if (found := _entry(old)) is not None]
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
    at = _place(places, key)
    ending = "\r" if "\r\n" in text else ""
    if at == len(lines):
        return f"{text}{ending}\n{line}\n"
    return "\n".join([*lines[:at], line + ending, *lines[at:]])


def _place(places: list[tuple[int, str]], key: str) -> int:
    """Return the line number for a new entry: ordered by topic, not by date.

    It goes after the last file that begins with the same word. In a sorted list it goes to its sorted place. Otherwise it
    goes to the end.
    """
    files = [file for _, file in places]
    if files == sorted(files):
        position = bisect(files, key)
        return places[position][0] if position < len(places) else places[-1][0] + 1
    word, *_ = _WORD_END.split(key, maxsplit=1)
    same = (number for number, file in reversed(places) if _WORD_END.split(file, maxsplit=1)[0] == word)
    return next(same, places[-1][0]) + 1


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
        raise InputError(INDEX, f"contains a secret ({', '.join(clean.kinds)})", "remove it, because team memory is shared")
    rows = split_front_matter(clean.text).body.split("\n")
    there, kept, seen = {fold_name(file) for file in files}, set(old.split("\n")), set[str]()
    worded = {fold_name(found.file) for row in rows if row not in kept and (found := _entry(row)) is not None}
    lines, missing = list[str](), list[str]()
    for line in rows:
        entry = _entry(line)
        if entry is not None and line in kept and fold_name(entry.file) in worded:
            continue  # replaced by another line
        if entry is None:
            lines.append(line if line in kept else _cut(line.rstrip(), LINE_CHARS))
        elif line not in kept and fold_name(entry.file) not in there:
            missing.append(entry.file)
        elif fold_name(entry.file) not in seen:
            seen.add(fold_name(entry.file))
            lines.append(line if line in kept else entry_line(entry))
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
    return "\n".join(line for line in text.split("\n") if (found := _entry(line)) is None or fold_name(found.file) != key)


def load_index(text: str) -> str:
    """Return the part a session receives: without front matter and comments, within both limits, with a warning if it was
    cut."""
    body = _COMMENT.sub("", split_front_matter(text).body).strip("\ufeff \t\r\n")
    lines = body.split("\n")
    size = len(body.encode("utf-8", "replace"))
    kept = _first_bytes("\n".join(lines[:MOST_LINES]))
    if len(kept) == len(body):
        return body
    whole = kept.count("\n") + 1
    return f"{kept}\n\n{_warning(lines, whole, size)}"


def _first_bytes(text: str) -> str:
    data = text.encode("utf-8", "replace")
    if len(data) <= MOST_BYTES:
        return text
    head = data[:MOST_BYTES].decode("utf-8", "ignore")
    end = len(head) if text[len(head) : len(head) + 1] == "\n" else head.rfind("\n")
    return head[:end] if end > 0 else head


def _warning(lines: list[str], whole: int, size: int) -> str:
    over = []
    if len(lines) > MOST_LINES:
        over.append(f"has {counted(len(lines), 'line')} (the limit is {MOST_LINES})")
    if size > MOST_BYTES:
        over.append(f"is {size:,} bytes long (the limit is {MOST_BYTES:,})")
    first = one_line(lines[min(whole, len(lines) - 1)], _SHOWN_CHARS)
    left = len(lines) - whole
    cut = (
        f"{counted(left, 'line')} {plural(left, 'is', 'are')} left out, from line {whole + 1} on"
        if left > 0
        else "its line is cut"
    )
    shown = escape(_MARKUP.sub("&lt;", first))
    return (
        f"> Warning: {INDEX} {' and '.join(over)}, so only its beginning was loaded: {cut} ({shown!r}). "
        f"Shorten lines to at most {LINE_CHARS} characters and move detail into topic files."
    )


class IndexFile:
    __slots__ = ("_durability", "_root")

    def __init__(self, root: RootDir, *, durability: Durability = "full") -> None:
        self._root = root
        self._durability: Durability = durability

    def data(self) -> bytes | None:
        return self._root.read_bytes(INDEX, MOST_INDEX)

    def there(self) -> bool:
        return self._root.stat(INDEX) is not None

    def text(self) -> str:
        return (self.data() or b"").decode("utf-8", "replace")

    def line(self, file: str) -> str | None:
        """Return the line that points at this file, unchanged."""
        key = fold_name(file)
        rows = (row.rstrip("\r") for row in self.text().split("\n") if "](" in row)
        return next((row for row in rows if any(fold_name(entry.file) == key for entry in read_entries(row))), None)

    def add(self, topic: Topic, *, was: str = "") -> None:
        self.edit(lambda text: put_entry(text, entry_of(topic), was=was))

    def drop(self, file: str) -> None:
        self.edit(lambda text: drop_entry(text, file))

    def rebuild(self, headers: Iterable[TopicHeader]) -> None:
        """Write a new index ordered by file, and so by topic: the order that `put_entry` would produce one by one."""
        ordered = sorted(headers, key=lambda header: fold_name(header.file))
        text = "".join(f"{entry_line(entry_of(header))}\n" for header in ordered)
        self.edit(lambda there: there or text)

    def edit(self, change: Callable[[str], str | None]) -> None:
        """Write the result of `change`, which may be called several times; None leaves the file alone."""
        for _ in range(_ROUNDS):
            old = self.data()
            if old is not None and len(old) >= MOST_INDEX:
                raise DiskError(
                    INDEX, f"is larger than {MOST_INDEX >> 20} MiB", "move it away, and it is rebuilt from the memories"
                )
            text = change((old or b"").decode("utf-8", "surrogateescape"))
            new = old if text is None else text.encode("utf-8", "surrogateescape")
            if new is None or new == old or self._root.replace_if(INDEX, new, expected=old, durability=self._durability):
                return
        raise DiskError(INDEX, "another program keeps changing it", "close it there and try again")
