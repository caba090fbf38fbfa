"""`PrefixCache`: a cache without marks, which finds the longest prefix any earlier request had in common with this one.

With steps of 128 tokens from 1,024 on and five minutes of life it is OpenAI's. With no minimum, no steps and no end of life it
is the best any prefix cache could do, and what measurements compare with. The match runs into the first block that differs: of
two texts that begin alike the common bytes count, in proportion to the block's tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from ..blocks import DIGEST_BYTES
from .marked_cache import CacheUse
from .prompt_reader import Count, Prompt, PromptReader, count_block

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
