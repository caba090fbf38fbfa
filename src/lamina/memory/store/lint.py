"""Checks of memory texts and of the index.

They find vague descriptions, identical or similar memories, and index lines that point at missing files, are duplicates, are
too long or contain content. Reports are worded elsewhere. Invariants: the same texts give the same problems in any process.
The work grows linearly with the number of memories, even if all texts are alike. Pure, except for `repair_index`.

A crash during a repair leaves the old index or the new one. The old one is copied to `.history/` first, because the journal
does not contain its lines.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import UTC, datetime
from heapq import nsmallest
from typing import Literal, NamedTuple, TypeAlias
from zlib import crc32

from .directory import DirectoryStore
from .history import HISTORY_DIRECTORY, hold_guard
from .index import LINE_CHARS, MOST_BYTES, MOST_LINES, IndexEntry, entry_line, entry_of, put_entry, read_entries
from .secrets import redact
from .topic import Topic, fold_name, name_key

# Words that could be in the description of any memory: only the others tell something.
_OF_ANY = """a an the this that these some any various misc miscellaneous general other important useful relevant new old my our your
    note notes memory memories info information detail details data stuff thing things item items summary overview description
    project user feedback reference file topic update updates todo tbd n na none about of on for from to in and or with is are
    remember context knowledge content text document documentation"""
_EMPTY_WORDS = frozenset(_OF_ANY.split())
# 笔记 notes, 备注 remarks, 记录 record, 信息 information, 说明 explanation, 内容 content, …
_EMPTY_HAN = re.compile(
    "笔记|备注|记录|信息|资料|重要|其他|其它|杂项|说明|内容|项目|用户|反馈|参考|记忆|事项|相关|关于|一些|的|メモ|記録|情報|その他|について|메모|기록|정보|기타"
)
_ANY_WORD = re.compile(r"\w+")


def is_vague(description: str, name: str) -> bool:
    """Tell whether a description fails to distinguish this memory from others. An empty one is reported separately."""
    if not description:
        return False
    if name_key(description) == name_key(name) and len(_ANY_WORD.findall(description)) < 3 and description.isascii():
        return True
    words = _ANY_WORD.findall(_EMPTY_HAN.sub(" ", description.casefold()))
    return all(word in _EMPTY_WORDS or word.isdecimal() for word in words)


# The shortest known form of a secret. Shorter ones appear in an address or after a telling word.
LONG_ENOUGH = 15
_LONG = re.compile(rf"\S{{{LONG_ENOUGH}}}")
GIVEAWAYS = (
    *("://", "pass", "pwd", "secret", "token", "key", "credential", "bearer", "basic", "mysql", "wifi", "wi-fi", "wlan", "wpa"),
    *("密码", "密钥", "口令", "令牌", "パスワード", "비밀번호"),
)


def find_secrets(text: str) -> tuple[str, ...]:
    """Return the kinds of secrets in a text. Most texts contain nothing long and no such word, and return at once."""
    lower = text.lower()
    if _LONG.search(text) is None and not any(word in lower for word in GIVEAWAYS):
        return ()
    return redact(text).kinds


# Positions of memories that are alike in one respect.
Alike: TypeAlias = tuple[int, ...]


def find_same_names(topics: Sequence[Topic]) -> list[Alike]:
    return _groups(topics, lambda topic: name_key(topic.name))


def find_same_descriptions(topics: Sequence[Topic]) -> list[Alike]:
    return _groups(topics, lambda topic: " ".join(topic.description.casefold().split()) or None)


def find_same_bodies(topics: Sequence[Topic]) -> list[Alike]:
    return _groups(topics, lambda topic: topic.body.strip() or None)


def find_identical(topics: Sequence[Topic]) -> list[Alike]:
    """Group memories that are identical except for name and date: one of them is enough."""
    return _groups(
        topics, lambda topic: (topic.body.strip(), topic.description, topic.type, _fields(topic)) if topic.body.strip() else None
    )


def _fields(topic: Topic) -> str:
    metadata = topic.fields.get("metadata")
    if not isinstance(metadata, dict):
        return repr(sorted(topic.fields.items(), key=str))
    # The session and time of writing are not part of the content.
    content = {key: value for key, value in metadata.items() if key not in ("modified", "originSessionId")}
    return repr(sorted((topic.fields | {"metadata": content}).items(), key=str))


def _groups(topics: Sequence[Topic], key: Callable[[Topic], Hashable | None]) -> list[Alike]:
    groups: dict[Hashable, list[int]] = {}
    for position, topic in enumerate(topics):
        if (value := key(topic)) is not None:
            groups.setdefault(value, []).append(position)
    return [tuple(positions) for positions in groups.values() if len(positions) > 1]


def order_by_worth(group: Alike, topics: Sequence[Topic], listed: Iterable[str]) -> Alike:
    """Sort the group by which memory to keep: listed in the index, older, then by file name."""
    files = set(listed)

    def rank(position: int) -> tuple[bool, float, str]:
        topic = topics[position]
        return topic.file not in files, topic.modified, topic.file

    return tuple(sorted(group, key=rank))


# Similar memories. A text is the set of its runs of three words (of three characters in scripts without spaces); the smallest
# hashes of that set are its sketch. Texts that share part of a sketch are compared in full.

# A memory is a page at most; if the first pages are alike, the texts are.
MOST_CHARS = 6_000
# Fewer words are a phrase, and phrases are alike by chance.
FEWEST_WORDS = 12
# Seven of ten runs of words are in both texts.
NEAR = 0.7
# Enough that two texts at the limit of NEAR share several with near certainty.
_SKETCH = 32
# The number of earlier texts to compare with for each value: among equals the first few stand for all.
_EARLIER = 6
# A pair that shares fewer values of the sketch cannot reach NEAR.
_FEWEST_SHARED = 12

_WORD = re.compile(r"[^\W_\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]+|[\u2e80-\u9fff\uac00-\ud7af\u3040-\u30ff]")


class SimilarPair(NamedTuple):
    """Positions of two similar texts; `second` is the later one."""

    first: int
    second: int
    likeness: float


def find_near_pairs(texts: Sequence[str], pause: Callable[[], None] = lambda: None) -> list[SimilarPair]:
    """Return for each text the most similar earlier one, if any. `pause` is called before each text."""
    earlier: dict[int, list[int]] = {}
    pairs = list[SimilarPair]()
    word_hashes: dict[str, int] = {}
    for number, text in enumerate(texts):
        pause()
        runs = _runs(text, word_hashes)
        sketch = nsmallest(_SKETCH, runs)
        shared = Counter(other for value in sketch for other in earlier.get(value, ())).most_common(_EARLIER)
        likely = [other for other, count in shared if count >= min(_FEWEST_SHARED, len(sketch) // 2)]
        similar = [SimilarPair(other, number, _likeness(runs, _runs(texts[other], word_hashes))) for other in likely]
        pairs += sorted((pair for pair in similar if pair.likeness >= NEAR), key=lambda pair: (-pair.likeness, pair.first))[:1]
        for value in sketch:
            places = earlier.setdefault(value, [])
            if len(places) < _EARLIER:
                places.append(number)
    return pairs


def _likeness(runs: set[int], others: set[int]) -> float:
    """Return the Jaccard similarity: shared runs divided by all runs."""
    return len(runs & others) / len(runs | others) if runs and others else 0.0


def _runs(text: str, word_hashes: dict[str, int]) -> set[int]:
    words = _WORD.findall(text[:MOST_CHARS].casefold())
    if len(words) < FEWEST_WORDS:
        return set()
    hashes = [word_hashes.get(word) or word_hashes.setdefault(word, crc32(word.encode("utf-8", "replace")) | 1) for word in words]
    return {
        (first * 0x9E3779B1 ^ second * 0x85EBCA6B ^ third * 0xC2B2AE35) & 0xFFFF_FFFF
        for first, second, third in zip(hashes, hashes[1:], hashes[2:], strict=False)
    }


# The index

Fault: TypeAlias = Literal["dead", "outside", "double", "long", "long and fixed", "content"]
# The number of old indexes to keep: anyone who wants one back wants a recent one.
MOST_KEPT = 5
_KEPT = "index-"


class LineFault(NamedTuple):
    line: int  # from 1
    fault: Fault
    file: str
    chars: int


class IndexPlan(NamedTuple):
    """The planned index. `unlisted` are memories without a line. `text` has new lines for those that fit; the others are in
    `no_room`."""

    text: str
    faults: tuple[LineFault, ...] = ()
    unlisted: tuple[str, ...] = ()
    no_room: tuple[str, ...] = ()

    @property
    def removed(self) -> list[LineFault]:
        return [fault for fault in self.faults if fault.fault in ("dead", "double")]

    @property
    def shortened(self) -> list[LineFault]:
        return [fault for fault in self.faults if fault.fault == "long and fixed"]

    @property
    def left(self) -> tuple[int, ...]:
        """Numbers of the lines that cannot be repaired."""
        return tuple(fault.line for fault in self.faults if fault.fault in ("outside", "long", "content"))

    @property
    def added(self) -> list[str]:
        no_room = set(self.no_room)
        return [file for file in self.unlisted if file not in no_room]


def plan_index(text: str, *, exists: Callable[[str], bool], topics: Iterable[Topic]) -> IndexPlan:
    """Plan the repair of an index. `exists` tells whether a file exists below the directory; `topics` are all memories."""
    rows: list[str] = []
    faults: list[LineFault] = []
    listed: set[str] = set()
    for number, line in enumerate(text.split("\n"), 1):
        new, fault = _judged(line, number, exists, listed)
        if fault is not None:
            faults.append(fault)
        if new is not None:
            rows.append(new)
    unlisted = [entry_of(topic) for topic in topics if fold_name(topic.file) not in listed]
    mended, no_room = "\n".join(rows), list[IndexEntry]()
    # Add a line for each memory as long as a session still receives the whole index.
    for number, entry in enumerate(unlisted):
        longer = put_entry(mended, entry)
        if longer.count("\n") > MOST_LINES or len(longer.encode("utf-8", "replace")) > MOST_BYTES:
            no_room = unlisted[number:]
            break
        mended = longer
    return IndexPlan(mended, tuple(faults), tuple(entry.file for entry in unlisted), tuple(entry.file for entry in no_room))


def _judged(line: str, number: int, exists: Callable[[str], bool], listed: set[str]) -> tuple[str | None, LineFault | None]:
    """Return the corrected line (None to remove it) and its fault."""
    entries = read_entries(line)
    chars = len(line.rstrip("\r"))
    if not entries:
        return line, LineFault(number, "content", "", chars) if chars > LINE_CHARS else None
    entry, key = entries[0], fold_name(entries[0].file)
    if entry.file.startswith(("/", "\\", "~")) or ".." in entry.file.replace("\\", "/").split("/"):
        return line, LineFault(number, "outside", entry.file, chars)
    if not exists(entry.file):
        return None, LineFault(number, "dead", entry.file, chars)
    if key in listed:
        return None, LineFault(number, "double", entry.file, chars)
    listed.add(key)
    if chars <= LINE_CHARS:
        return line, None
    short = entry_line(entry)
    if len(short) > LINE_CHARS:
        return line, LineFault(number, "long", entry.file, chars)
    return short + ("\r" if line.endswith("\r") else ""), LineFault(number, "long and fixed", entry.file, chars)


def repair_index(store: DirectoryStore, *, exists: Callable[[str], bool], now: float) -> IndexPlan | None:
    """Apply `plan_index` to the current index; None if there is nothing to do."""
    plan: IndexPlan | None = None

    def mended(text: str) -> str | None:
        nonlocal plan
        wanted = plan_index(text, exists=exists, topics=store.topics())
        plan = wanted if wanted.text != text else None
        if plan is not None and text:
            _keep(store, text.encode("utf-8", "surrogateescape"), now)
        return plan and plan.text

    with hold_guard(store.root):
        store.index_file.edit(mended)
    return plan


def _keep(store: DirectoryStore, old: bytes, now: float) -> None:
    stamp = f"{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%S%f}"
    store.root.replace(f"{HISTORY_DIRECTORY}/{_KEPT}{stamp}.md", old)
    for name in list_index_backups(store)[:-MOST_KEPT]:
        store.root.unlink(name)


def list_index_backups(store: DirectoryStore) -> list[str]:
    """Return the backups of the index made before repairs, oldest first, as paths below the directory."""
    names = [entry.name for entry in store.root.listdir(HISTORY_DIRECTORY) if entry.name.startswith(_KEPT) and not entry.is_dir]
    return [f"{HISTORY_DIRECTORY}/{name}" for name in sorted(names)]
