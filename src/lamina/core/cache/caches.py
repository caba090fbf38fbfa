"""Two prompt caches: `CacheModel` and `PrefixCache`.

`CacheModel` follows the documentation of the Messages API. An entry is written only at a mark, and covers everything up to that
mark. A mark reads the highest live entry at its own block or at one of the 19 before it. Reading an entry renews its lifetime,
counted from the start of the request. Prefixes below the model's minimum are neither written nor read. With several marks the
highest hit counts. Everything before the hit is read. The part up to the last 1-hour mark is written for an hour, the part up to
the last mark for five minutes, and the rest is plain input.

`look` computes a result without changing the cache; `commit` stores it. Like the real server, a test server calls `commit` when its
response begins. So two concurrent requests both write, and a failed request writes nothing.

`PrefixCache` has no marks. It finds the longest prefix that this request shares with any earlier one. With steps of 128 tokens from
1,024 on and a lifetime of five minutes it models OpenAI's cache. Without minimum, steps and expiry it is the best that any prefix
cache could do, and the baseline for measurements. A match extends into the first block that differs: the bytes that both texts
start with count, in proportion to the block's tokens.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import accumulate, islice
from typing import Any, Literal, NamedTuple

import msgspec

from ..blocks import DIGEST_BYTES
from ..prefix import first_difference
from ..usage import Usage
from .prompt_reader import HOUR, Count, Piece, Prompt, PromptReader, common_start, count_block

# Number of positions a mark checks, including its own.
LOOK_BACK = 20
# The size of the one-line marker that replaces a deleted result.
DELETED_TOKENS = 10
# Enough for a day of many sessions; entries that expire first are dropped first.
MAX_ENTRIES = 50_000

DEFAULT_MINIMUM = 1_024
# The shortest prefix a model caches, by family; the first match counts (platform documentation, autumn 2026).
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
    """Return the length of the shortest prefix that the model caches."""
    return next((minimum for pattern, minimum in _MINIMA if pattern.search(model)), DEFAULT_MINIMUM)


class CacheEntry(msgspec.Struct, frozen=True):
    expires: float
    ttl: int
    deleted: frozenset[str] = frozenset()  # results that cache edits removed from this prefix


class MarkUse(NamedTuple):
    """The outcome of one mark."""

    path: str
    tokens: int  # size of the prefix that ends here
    ttl: int
    outcome: Literal["read", "written", "covered", "short"]  # covered: it is before the entry that was read


class CacheUse(msgspec.Struct, frozen=True):
    """The tokens that a request reads from the cache, writes to it and pays in full."""

    read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    plain: int = 0
    marks: tuple[MarkUse, ...] = ()
    hit: str | None = None  # path of the last block that was read from the cache
    deleted: tuple[str, ...] = ()  # results that this request's edits delete, including any that were deleted before
    cleared: int = 0  # tokens that these deletions save, compared with the request as it was sent
    writes: tuple[tuple[bytes, int], ...] = ()  # keys and lifetimes to store
    touched: tuple[bytes, ...] = ()  # entries whose lifetime is renewed
    gone: frozenset[str] = frozenset()  # all results deleted from this prefix, by this request or earlier ones

    @property
    def total(self) -> int:
        return self.read + self.write_5m + self.write_1h + self.plain

    def usage(self, output_tokens: int = 0) -> Usage:
        return Usage(self.plain, self.read, self.write_5m + self.write_1h, self.write_1h, output_tokens)


class PromptChain:
    """A prompt's links and token sums, one per piece: a link identifies everything up to its piece, including the model.

    The next prompt is linked from the first piece that differs. What follows a shorter prompt stays, since the next may have it
    again; so only the first `length` links belong to the prompt.
    """

    def __init__(self) -> None:
        self.root = b""
        self.length = 0
        self.links: list[bytes] = []
        self.sums: list[int] = []
        self.marks: list[int] = []  # indices of pieces with a mark
        self._pieces: list[Piece] = []

    def follow(self, prompt: Prompt) -> None:
        pieces = list(prompt.pieces)
        root = blake2b(prompt.model.encode(), digest_size=DIGEST_BYTES).digest()
        same_model = root == self.root
        same = common_start(self._pieces, pieces) if same_model else 0
        self.root, self.length = root, len(pieces)
        if same_model and same == len(pieces):
            return
        del self._pieces[same:], self.links[same:], self.sums[same:], self.marks[bisect_left(self.marks, same) :]
        new = pieces[same:]
        link, total = (self.links[-1], self.sums[-1]) if same else (root, 0)
        for piece in new:
            link = blake2b(link + piece.role.encode() + piece.digest, digest_size=DIGEST_BYTES).digest()
            self.links.append(link)
        self.sums += islice(accumulate((piece.tokens for piece in new), initial=total), 1, None)
        self.marks += [index for index, piece in enumerate(new, same) if piece.ttl]
        self._pieces += new

    @property
    def total(self) -> int:
        return self.sums[self.length - 1] if self.length else 0


class _Sums:
    """The cache key and the token sum at each position of a prompt, without the results that were deleted."""

    def __init__(self, chain: PromptChain, prompt: Prompt, gone: frozenset[str] = frozenset()) -> None:
        self._chain = chain
        self._prompt = prompt
        results = prompt.results() if gone else {}
        self._saved = [(results[name], _saved(prompt.pieces[results[name]])) for name in gone if name in results]

    def key(self, at: int) -> bytes:
        """Return the link with the options that invalidate its level."""
        link, prompt = self._chain.links[at], self._prompt
        if at < prompt.system_at:
            return link
        return link + prompt.system_key + (prompt.messages_key if at >= prompt.messages_at else b"")

    def tokens(self, at: int) -> int:
        return self._chain.sums[at] - sum(saved for place, saved in self._saved if place <= at)

    @property
    def total(self) -> int:
        return self._chain.total - sum(saved for _, saved in self._saved)


class _Cache:
    """Reads requests and follows their chains. `shared` works as in PromptReader."""

    def __init__(self, count: Count, shared: bool) -> None:
        self.reader = PromptReader(count=count, shared=shared)
        self._shared = shared
        self._chain = PromptChain()

    def _prompt(self, request: Mapping[str, Any] | Prompt) -> Prompt:
        return request if isinstance(request, Prompt) else self.reader.read(request)

    def _follow(self, prompt: Prompt) -> PromptChain:
        self._chain = self._chain if self._shared else PromptChain()
        self._chain.follow(prompt)
        return self._chain


class CacheModel(_Cache):
    """The cache of one workspace. It is not thread-safe: callers with threads must use a lock."""

    def __init__(self, *, count: Count = count_block, minimum: int | None = None, shared: bool = False) -> None:
        """`minimum` overrides the model's minimum."""
        super().__init__(count, shared)
        self.minimum = minimum
        self._entries: dict[bytes, CacheEntry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def use(self, request: Mapping[str, Any] | Prompt, now: float) -> CacheUse:
        """Process one request: look and commit."""
        outcome = self.look(request, now)
        self.commit(outcome, now)
        return outcome

    def look(self, request: Mapping[str, Any] | Prompt, now: float) -> CacheUse:
        """Return what the request would use now, without storing anything."""
        prompt = self._prompt(request)
        minimum = minimum_tokens(prompt.model) if self.minimum is None else self.minimum
        return plan_use(self._entries, prompt, self._follow(prompt), now, minimum)

    def commit(self, use: CacheUse, now: float) -> None:
        for key in use.touched:
            entry = self._entries.get(key)
            if entry is not None:
                self._entries[key] = CacheEntry(now + entry.ttl, entry.ttl, entry.deleted | use.gone)
        for key, ttl in use.writes:
            self._entries[key] = CacheEntry(now + ttl, ttl, use.gone)
        if len(self._entries) > MAX_ENTRIES:
            live = sorted(((entry.expires, key) for key, entry in self._entries.items() if entry.expires > now), reverse=True)
            self._entries = {key: self._entries[key] for _, key in live[: MAX_ENTRIES // 2]}

    def clear(self) -> None:
        """Drop all entries, as an eviction would."""
        self._entries.clear()


def plan_use(entries: Mapping[bytes, CacheEntry], prompt: Prompt, chain: PromptChain, now: float, minimum: int) -> CacheUse:
    """Compute the cache use of a prompt from the given entries."""
    pieces = prompt.pieces
    marks = [index for index in chain.marks if index < chain.length]
    sums = _Sums(chain, prompt)
    hit = _highest_hit(entries, sums, marks, now)
    gone = frozenset(prompt.deletes) | (entries[sums.key(hit)].deleted if hit is not None else frozenset())
    if gone:
        sums = _Sums(chain, prompt, gone)
    results = prompt.results() if prompt.deletes else {}
    deleted = tuple(name for name in prompt.deletes if name in results)
    read = 0 if hit is None else sums.tokens(hit)
    uses = tuple(_mark_use(pieces[index], index, hit, sums, minimum) for index in marks)
    written = [index for index, use in zip(marks, uses, strict=True) if use.outcome == "written"]
    hour = max((sums.tokens(index) for index in written if pieces[index].ttl == HOUR), default=read)
    last = max((sums.tokens(index) for index in written), default=read)
    touched = [sums.key(index) for index in marks if hit is not None and index <= hit and _live(entries, sums.key(index), now)]
    if hit is not None and hit not in marks:
        touched.append(sums.key(hit))
    return CacheUse(
        read=read,
        write_5m=last - hour,
        write_1h=hour - read,
        plain=sums.total - last,
        marks=uses,
        hit=None if hit is None else pieces[hit].path,
        deleted=deleted,
        cleared=sum(_saved(pieces[results[name]]) for name in deleted),
        writes=tuple((sums.key(index), pieces[index].ttl) for index in written),
        touched=tuple(touched),
        gone=gone,
    )


def _saved(piece: Piece) -> int:
    return max(0, piece.tokens - DELETED_TOKENS)


def _highest_hit(entries: Mapping[bytes, CacheEntry], sums: _Sums, marks: Sequence[int], now: float) -> int | None:
    """Return the last position at which any mark finds an entry. Later marks look at higher positions, so they go first."""
    best: int | None = None
    for mark in reversed(marks):
        if best is not None and best >= mark:
            break
        for index in range(mark, max(-1, mark - LOOK_BACK), -1):
            if best is not None and index <= best:
                break
            if _live(entries, sums.key(index), now):
                best = index
                break
    return best


def _live(entries: Mapping[bytes, CacheEntry], key: bytes, now: float) -> bool:
    entry = entries.get(key)
    return entry is not None and entry.expires > now


def _mark_use(piece: Piece, index: int, hit: int | None, sums: _Sums, minimum: int) -> MarkUse:
    tokens = sums.tokens(index)
    if hit is not None and index <= hit:
        return MarkUse(piece.path, tokens, piece.ttl, "read" if index == hit else "covered")
    return MarkUse(piece.path, tokens, piece.ttl, "written" if tokens >= minimum else "short")


# OpenAI's cache starts at this length and grows in these steps; an entry lives five to ten minutes after its last use.
OPENAI_MINIMUM = 1_024
OPENAI_STEP = 128
OPENAI_TTL = 300.0
# Maximum number of blocks after the same prefix that are compared byte by byte. More are rare, and the newest are kept.
MAX_BRANCHES = 8
# The store is cleared beyond this size; a measurement of one long session needs a few thousand prefixes.
MAX_PREFIXES = 500_000


class PrefixCache(_Cache):
    def __init__(
        self,
        *,
        minimum: int = 0,
        step: int = 1,
        ttl: float | None = None,
        count: Count = count_block,
        shared: bool = False,
    ) -> None:
        super().__init__(count, shared)
        self.minimum = minimum
        self.step = step
        self.ttl = ttl
        self._used: dict[bytes, float] = {}  # link → time of last use
        self._next: dict[bytes, list[bytes]] = {}  # link → the blocks seen after it
        # The links of the last prompt, all used at this time. They are entered in `_used` when another prompt does not have them.
        self._last: list[bytes] = []
        self._last_used = 0.0

    def use(self, request: Mapping[str, Any] | Prompt, now: float = 0.0) -> CacheUse:
        """Process one request: look and commit. A mapping is a Messages request; for another wire format pass a Prompt."""
        prompt = self._prompt(request)
        outcome = self.look(prompt, now)
        self.commit(prompt, now)
        return outcome

    def look(self, request: Mapping[str, Any] | Prompt, now: float = 0.0) -> CacheUse:
        prompt = self._prompt(request)
        chain = self._follow(prompt)
        cached = self._known(chain, now)
        tokens = chain.sums[cached - 1] if cached else 0
        if cached < chain.length:
            before = chain.links[cached - 1] if cached else chain.root
            tokens += self._partial(before, prompt.pieces[cached], now, alive=cached > 0)
        tokens_read = tokens - tokens % self.step if tokens >= max(self.minimum, 1) else 0
        return CacheUse(
            read=tokens_read,
            plain=chain.total - tokens_read,
            hit=prompt.pieces[cached - 1].path if tokens_read and cached else None,
        )

    def commit(self, request: Mapping[str, Any] | Prompt, now: float = 0.0) -> None:
        prompt = self._prompt(request)
        if len(self._used) > MAX_PREFIXES:
            self.clear()
        chain = self._follow(prompt)
        links = chain.links[: chain.length]
        same = first_difference(self._last, links)
        self._used.update(dict.fromkeys(self._last[same:], self._last_used))
        before = links[same - 1] if same else chain.root
        self._used[chain.root] = now
        for index in range(same, chain.length):
            if links[index] not in self._used:
                branches = self._next.setdefault(before, [])
                branches.append(prompt.pieces[index].data)
                del branches[:-MAX_BRANCHES]
            before = links[index]
            self._used[before] = now
        self._last, self._last_used = links, now

    def _known(self, chain: PromptChain, now: float) -> int:
        """Return how many leading pieces are in the cache. Whoever used a piece has used all before it."""
        count = first_difference(self._last, chain.links[: chain.length])
        if count and not self._alive(self._last_used, now):
            return 0
        while count < chain.length and self._alive(self._used.get(chain.links[count]), now):
            count += 1
        return count

    def clear(self) -> None:
        self._used.clear()
        self._next.clear()
        self._last.clear()

    def _alive(self, used: float | None, now: float) -> bool:
        return used is not None and (self.ttl is None or now - used < self.ttl)

    def _partial(self, before: bytes, piece: Piece, now: float, *, alive: bool) -> int:
        """Return the tokens of the piece's start that another piece after the same link has too."""
        if not alive and not self._alive(self._used.get(before), now):
            return 0
        common = max((common_start(piece.data, branch) for branch in self._next.get(before, ())), default=0)
        return piece.tokens * common // len(piece.data)


def openai_cache(*, count: Count = count_block, shared: bool = False) -> PrefixCache:
    return PrefixCache(minimum=OPENAI_MINIMUM, step=OPENAI_STEP, ttl=OPENAI_TTL, count=count, shared=shared)
