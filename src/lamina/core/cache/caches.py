"""Two prompt caches. `CacheModel` is the one of the Messages API, as its documentation states it.

An entry is written only where a mark stands, and covers everything up to there. A mark reads the highest live entry at its own
block or at one of the 19 before it. Reading an entry starts its lifetime again; the time is the request's start. Prefixes below
the model's minimum are neither written nor read. Of several marks the highest hit counts: what lies before it is read, from there
to the last 1-hour mark is written for an hour, from there to the last mark for five minutes, the rest is plain input.

`look` decides and changes nothing; `commit` stores what was decided. A server calls `commit` when its answer begins, as the real
one does, so that two requests at once both write, and one that failed wrote nothing.

`PrefixCache` has no marks and finds the longest prefix any earlier request had in common with this one. With steps of 128 tokens from
1,024 on and five minutes of life it is OpenAI's. With no minimum, no steps and no end of life it is the best any prefix cache could do,
and what measurements compare with. The match runs into the first block that differs: of two texts that begin alike the common bytes
count, in proportion to the block's tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

import msgspec

from ..blocks import DIGEST_BYTES
from ..usage import Usage
from .prompt_reader import HOUR, Count, Piece, Prompt, PromptReader, count_block

# Positions a mark looks at, its own counted as the first.
LOOK_BACK = 20
# What is left of a deleted result: a line that says so.
DELETED_TOKENS = 10
# Enough for a day of many sessions; the entries that expire first go first.
MAX_ENTRIES = 50_000

DEFAULT_MINIMUM = 1_024
# The shortest prefix a model caches, by family, first match counts (platform documentation, autumn 2026).
_MINIMA: tuple[tuple[re.Pattern[str], int], ...] = tuple(
    (re.compile(pattern), minimum)
    for pattern, minimum in (
        (r"(opus|fable|mythos)-5", 512),
        (r"(sonnet|haiku)-5-5", 512),
        (r"mythos|opus-4-7", 2_048),
        (r"opus-4-[56]|haiku-4", 4_096),
        (r"claude-3(-5)?-haiku", 2_048),
    )
)


def minimum_tokens(model: str) -> int:
    """The shortest prefix the model caches."""
    return next((minimum for pattern, minimum in _MINIMA if pattern.search(model)), DEFAULT_MINIMUM)


class CacheEntry(msgspec.Struct, frozen=True):
    expires: float
    ttl: int
    deleted: frozenset[str] = frozenset()  # results that were edited out of this prefix (M4)


class MarkUse(NamedTuple):
    """What became of one mark."""

    path: str
    tokens: int  # of the prefix it closes
    ttl: int
    outcome: Literal["read", "written", "covered", "short"]  # covered: it stands before the entry that was read


class CacheUse(msgspec.Struct, frozen=True):
    """What a request reads, writes and pays in full, in tokens."""

    read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    plain: int = 0
    marks: tuple[MarkUse, ...] = ()
    hit: str | None = None  # path of the last block that was read from the cache
    deleted: tuple[str, ...] = ()  # results this request's edits removed, whether they were removed before or not
    cleared: int = 0  # tokens those deletions save, compared with the request as it was sent
    writes: tuple[tuple[bytes, int], ...] = ()  # keys and lifetimes to store
    touched: tuple[bytes, ...] = ()  # entries whose lifetime starts again
    gone: frozenset[str] = frozenset()  # every result deleted from this prefix, now and before

    @property
    def total(self) -> int:
        return self.read + self.write_5m + self.write_1h + self.plain

    def usage(self, output_tokens: int = 0) -> Usage:
        return Usage(self.plain, self.read, self.write_5m + self.write_1h, self.write_1h, output_tokens)


class _Sums(NamedTuple):
    """Chain key and token sum at the positions that matter."""

    keys: Mapping[int, bytes]
    tokens: Mapping[int, int]
    total: int


class CacheModel:
    """One workspace's cache. Not locked: a caller with threads brings its own lock."""

    def __init__(self, *, count: Count = count_block, minimum: int | None = None, shared: bool = False) -> None:
        """`minimum` overrides the model's own; `shared` as in PromptReader."""
        self.reader = PromptReader(count=count, shared=shared)
        self.minimum = minimum
        self._entries: dict[bytes, CacheEntry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def use(self, request: Mapping[str, Any] | Prompt, now: float) -> CacheUse:
        """Answer one request: look and commit."""
        found = self.look(request, now)
        self.commit(found, now)
        return found

    def look(self, request: Mapping[str, Any] | Prompt, now: float) -> CacheUse:
        """What the request would use now; nothing is stored."""
        prompt = request if isinstance(request, Prompt) else self.reader.read(request)
        minimum = minimum_tokens(prompt.model) if self.minimum is None else self.minimum
        return plan_use(self._entries, prompt, now, minimum)

    def commit(self, use: CacheUse, now: float) -> None:
        for key in use.touched:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries[key] = CacheEntry(now + entry.ttl, entry.ttl, entry.deleted | use.gone)
        for key, ttl in use.writes:
            self._entries[key] = CacheEntry(now + ttl, ttl, use.gone)
        if len(self._entries) > MAX_ENTRIES:
            self._drop_oldest(now)

    def clear(self) -> None:
        """Forget everything, as an eviction would."""
        self._entries.clear()

    def _drop_oldest(self, now: float) -> None:
        live = sorted(((entry.expires, key) for key, entry in self._entries.items() if entry.expires > now), reverse=True)
        self._entries = {key: self._entries[key] for _, key in live[: MAX_ENTRIES // 2]}


def plan_use(entries: Mapping[bytes, CacheEntry], prompt: Prompt, now: float, minimum: int) -> CacheUse:
    """The decision, as a function of the entries there are."""
    pieces = prompt.pieces
    marks = [index for index, piece in enumerate(pieces) if piece.ttl]
    sums = _sum(prompt, marks)
    hit = _highest_hit(entries, sums, marks, now)
    gone = frozenset(prompt.deletes) | (entries[sums.keys[hit]].deleted if hit is not None else frozenset())
    if gone:
        sums = _without(sums, prompt, gone)
    deleted = tuple(name for name in prompt.deletes if name in prompt.results)
    read = 0 if hit is None else sums.tokens[hit]
    uses = tuple(_mark_use(pieces[index], index, hit, sums, minimum) for index in marks)
    written = [index for index, use in zip(marks, uses, strict=True) if use.outcome == "written"]
    hour = max((sums.tokens[index] for index in written if pieces[index].ttl == HOUR), default=read)
    last = max((sums.tokens[index] for index in written), default=read)
    touched = [sums.keys[index] for index in marks if hit is not None and index <= hit and _live(entries, sums.keys[index], now)]
    if hit is not None and hit not in marks:
        touched.append(sums.keys[hit])
    return CacheUse(
        read=read,
        write_5m=last - hour,
        write_1h=hour - read,
        plain=sums.total - last,
        marks=uses,
        hit=None if hit is None else pieces[hit].path,
        deleted=deleted,
        cleared=sum(_saved(pieces[prompt.results[name]]) for name in deleted),
        writes=tuple((sums.keys[index], pieces[index].ttl) for index in written),
        touched=tuple(touched),
        gone=gone,
    )


def _sum(prompt: Prompt, marks: Iterable[int]) -> _Sums:
    """One pass: a running hash and a running sum, kept only where a mark may look."""
    wanted = {at for mark in marks for at in range(max(0, mark - LOOK_BACK + 1), mark + 1)}
    chain = blake2b(prompt.model.encode(), digest_size=DIGEST_BYTES)
    update, roles = chain.update, {role: role.encode() for role in ("tools", "system", "user", "assistant")}
    keys: dict[int, bytes] = {}
    tokens: dict[int, int] = {}
    total = 0
    for index, piece in enumerate(prompt.pieces):
        if index == prompt.system_at:
            update(prompt.system_key)
        if index == prompt.messages_at:
            update(prompt.messages_key)
        update(roles.get(piece.role) or piece.role.encode())
        update(piece.digest)
        total += piece.tokens
        if index in wanted:
            keys[index] = chain.copy().digest()
            tokens[index] = total
    return _Sums(keys, tokens, total)


def _without(sums: _Sums, prompt: Prompt, gone: frozenset[str]) -> _Sums:
    """The sums once the deleted results are only their markers."""
    places = sorted(
        (prompt.results[name], _saved(prompt.pieces[prompt.results[name]])) for name in gone if name in prompt.results
    )
    tokens = {at: total - sum(saved for place, saved in places if place <= at) for at, total in sums.tokens.items()}
    return _Sums(sums.keys, tokens, sums.total - sum(saved for _, saved in places))


def _saved(piece: Piece) -> int:
    return max(0, piece.tokens - DELETED_TOKENS)


def _highest_hit(entries: Mapping[bytes, CacheEntry], sums: _Sums, marks: Sequence[int], now: float) -> int | None:
    """The last position any mark finds an entry at. Windows of later marks lie higher, so the first find of the last one wins."""
    best: int | None = None
    for mark in reversed(marks):
        if best is not None and best >= mark:
            break
        for at in range(mark, max(-1, mark - LOOK_BACK), -1):
            if best is not None and at <= best:
                break
            if _live(entries, sums.keys[at], now):
                best = at
                break
    return best


def _live(entries: Mapping[bytes, CacheEntry], key: bytes, now: float) -> bool:
    entry = entries.get(key)
    return entry is not None and entry.expires > now


def _mark_use(piece: Piece, index: int, hit: int | None, sums: _Sums, minimum: int) -> MarkUse:
    tokens = sums.tokens[index]
    if hit is not None and index <= hit:
        return MarkUse(piece.path, tokens, piece.ttl, "read" if index == hit else "covered")
    return MarkUse(piece.path, tokens, piece.ttl, "written" if tokens >= minimum else "short")


# OpenAI: caching begins at this length and grows in these steps; an entry lives five to ten minutes after its last use.
OPENAI_MINIMUM = 1_024
OPENAI_STEP = 128
OPENAI_TTL = 300.0
# Blocks that followed the same prefix and are compared byte by byte; a branch point with more is rare, and the newest are kept.
MAX_BRANCHES = 8
# Beyond this the store starts anew: a measurement of one long session holds a few thousand prefixes.
MAX_PREFIXES = 500_000


class PrefixCache:
    def __init__(
        self,
        *,
        minimum: int = 0,
        step: int = 1,
        ttl: float | None = None,
        count: Count = count_block,
        shared: bool = False,
    ) -> None:
        self.reader = PromptReader(count=count, shared=shared)
        self.minimum = minimum
        self.step = step
        self.ttl = ttl
        self._used: dict[bytes, float] = {}  # chain → time of last use
        self._next: dict[bytes, list[bytes]] = {}  # chain → the blocks seen behind it

    def use(self, request: Mapping[str, Any] | Prompt, now: float = 0.0) -> CacheUse:
        """Read what is known, remember the rest. A mapping is read as a Messages request; hand in a Prompt for another wire."""
        prompt = self._prompt(request)
        found = self.look(prompt, now)
        self.commit(prompt, now)
        return found

    def look(self, request: Mapping[str, Any] | Prompt, now: float = 0.0) -> CacheUse:
        prompt = self._prompt(request)
        tokens = 0
        path = None
        last = _root(prompt)
        for piece in prompt.pieces:
            after = _after(last, piece.role, piece.digest)
            used = self._used.get(after)
            if used is None or not self._alive(used, now):
                tokens += self._partial(last, piece.data, piece.tokens, now)
                break
            tokens += piece.tokens
            path = piece.path
            last = after
        read = tokens - tokens % self.step if tokens >= max(self.minimum, 1) else 0
        return CacheUse(read=read, plain=prompt.tokens - read, hit=path if read else None)

    def commit(self, request: Mapping[str, Any] | Prompt, now: float = 0.0) -> None:
        prompt = self._prompt(request)
        if len(self._used) > MAX_PREFIXES:
            self.clear()
        last = _root(prompt)
        self._used[last] = now
        for piece in prompt.pieces:
            after = _after(last, piece.role, piece.digest)
            if after not in self._used:
                branches = self._next.setdefault(last, [])
                branches.append(piece.data)
                del branches[:-MAX_BRANCHES]
            self._used[after] = now
            last = after

    def clear(self) -> None:
        self._used.clear()
        self._next.clear()

    def _prompt(self, request: Mapping[str, Any] | Prompt) -> Prompt:
        return request if isinstance(request, Prompt) else self.reader.read(request)

    def _alive(self, used: float, now: float) -> bool:
        return self.ttl is None or now - used < self.ttl

    def _partial(self, last: bytes, data: bytes, tokens: int, now: float) -> int:
        used = self._used.get(last)
        if used is None or not self._alive(used, now):
            return 0
        common = max((_common(data, known) for known in self._next.get(last, ())), default=0)
        return tokens * common // len(data)


def openai_cache(*, count: Count = count_block, shared: bool = False) -> PrefixCache:
    return PrefixCache(minimum=OPENAI_MINIMUM, step=OPENAI_STEP, ttl=OPENAI_TTL, count=count, shared=shared)


def _root(prompt: Prompt) -> bytes:
    return blake2b(prompt.model.encode(), digest_size=DIGEST_BYTES).digest()


def _after(last: bytes, role: str, digest: bytes) -> bytes:
    return blake2b(last + role.encode() + digest, digest_size=DIGEST_BYTES).digest()


def _common(one: bytes, other: bytes) -> int:
    """Length of the common start; halving, because comparing slices is what the machine does fast."""
    low, high = 0, min(len(one), len(other))
    if one[:high] == other[:high]:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
