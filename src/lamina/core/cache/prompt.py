"""One block of a prompt, its cache mark taken off and weighed: the atoms the caches count in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import msgspec

from ..blocks import unmarked
from ..errors import InputError

Raw: TypeAlias = Mapping[str, Any]
Count: TypeAlias = Callable[[Raw], int]
Place: TypeAlias = tuple[str, int, int]

# The API refuses a fifth mark.
MAX_MARKS = 4
MINUTES_5 = 300
HOUR = 3_600
LIFETIMES = {"5m": MINUTES_5, "1h": HOUR}
# One token is about four bytes of English text or code; the tests need a count that anyone can repeat by hand, not an exact one.
BYTES_PER_TOKEN = 4
# Images cost by area, not by bytes: about 1,600 tokens at the largest size the API does not scale down.
IMAGE_TOKENS = 1_600

# `blocks.canonical` without the call around it; a request of 2,000 blocks is encoded in every test.
encode = msgspec.json.Encoder().encode
# Block types that can't carry a mark themselves; they are cached as part of what follows them.
UNMARKABLE = frozenset({"thinking", "redacted_thinking"})


class Piece(NamedTuple):
    """One block of a prompt."""

    role: str  # tools | system | user | assistant
    kind: str  # the block's type
    tokens: int
    ttl: int  # seconds its mark asks for; 0 = no mark
    digest: bytes  # of the block alone, without its mark
    data: bytes  # canonical JSON, without the mark
    block: Raw  # the same as a value
    at: Place  # section, index, block within the message (-1 where there is none)

    @property
    def path(self) -> str:
        """As the API names it in its errors."""
        return _path(self.at)


class Prompt(NamedTuple):
    """A request in the cache's order. `system_at` and `messages_at` are the indices where these levels begin."""

    model: str
    pieces: Sequence[Piece]
    system_at: int
    messages_at: int
    system_key: bytes
    messages_key: bytes
    results: Mapping[str, int]  # tool_use_id → index of its result
    deletes: tuple[str, ...]  # results the request asks to delete from the cache

    @property
    def tokens(self) -> int:
        return sum(piece.tokens for piece in self.pieces)


def count_block(block: Raw) -> int:
    """The default count: a quarter of the bytes of a text, or of the JSON of anything else, and a fixed size for an image."""
    kind = block.get("type")
    if kind == "text" and isinstance(text := block.get("text"), str):
        return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN) or 1
    if kind == "image":
        return IMAGE_TOKENS
    content = block.get("content")
    if has_image(content):
        return sum(count_block(part) for part in content or () if isinstance(part, Mapping))
    return -(-len(encode(block)) // BYTES_PER_TOKEN)


def has_image(content: object) -> bool:
    return isinstance(content, list) and any(isinstance(part, Mapping) and part.get("type") == "image" for part in content)


def unmark(raw: Raw, at: Place) -> tuple[Raw, int]:
    """The block without its mark, and the mark's lifetime. A mark inside a tool result counts as the result's own."""
    mark = raw.get("cache_control")
    plain = unmarked(raw)
    content = raw.get("content") if raw.get("type") == "tool_result" else None
    if isinstance(content, list) and any(isinstance(part, Mapping) and "cache_control" in part for part in content):
        inner = [part.get("cache_control") for part in content if isinstance(part, Mapping)]
        mark = mark or next((found for found in inner if found is not None), None)
        plain = {**plain, "content": [unmarked(part) for part in content]}
    return plain, 0 if mark is None else _lifetime(mark, _path(at))


def _path(at: Place) -> str:
    section, index, block = at
    return f"{section}.{index}" if block < 0 else f"{section}.{index}.content.{block}"


def _lifetime(mark: object, path: str) -> int:
    if not isinstance(mark, Mapping) or mark.get("type") != "ephemeral":
        raise InputError(f"{path}.cache_control.type", "Input should be 'ephemeral'")
    ttl = mark.get("ttl") or "5m"
    if not isinstance(ttl, str) or ttl not in LIFETIMES:
        raise InputError(f"{path}.cache_control.ttl", "Input should be '5m' or '1h'")
    return LIFETIMES[ttl]


def settle_marks(request: Raw, pieces: list[Piece]) -> None:
    """Put the mark of the request as a whole on the last block that can carry it, and refuse in the API's words what it refuses."""
    own = request.get("cache_control")
    count = sum(1 for piece in pieces if piece.ttl) + (own is not None)
    last = next((at for at in reversed(range(len(pieces))) if pieces[at].kind not in UNMARKABLE), None)
    if own is not None and last is not None:
        ttl = _lifetime(own, "request")
        if pieces[last].ttl not in (0, ttl):
            raise InputError(f"{pieces[last].path}.cache_control", "the request's own cache mark asks for another lifetime")
        pieces[last] = pieces[last]._replace(ttl=ttl)
    if count > MAX_MARKS:
        raise InputError("cache_control", f"A maximum of {MAX_MARKS} blocks with cache_control may be provided. Found {count}")
    marked = [piece for piece in pieces if piece.ttl]
    for before, after in pairwise(marked):
        if after.ttl > before.ttl:
            problem = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
            raise InputError(f"{after.path}.cache_control.ttl", f"{problem}; the order is `tools`, `system`, `messages`")
    for piece in marked:
        if piece.kind in UNMARKABLE:
            raise InputError(f"{piece.path}.cache_control", "thinking can't carry a cache mark", "mark the block behind it")
