"""Reads a request the way a provider's cache sees it: a sequence of pieces in the order tools, system, messages.

A piece is one block without its cache mark: its digest, its tokens, and the lifetime that its mark requests. Some options are not
blocks but still invalidate the cache (tool choice, thinking, the first image). They are mixed into the hash chain at the start of
their level, so a change invalidates that level and all later ones, but no earlier one:

    model · tools | speed, web search, citations · system | tool choice, thinking, effort, images · messages

No provider has a public format for cache edits, so Lamina defines one. The request contains
`cache_edits: {"delete": [tool_use_id, …]}` next to its messages, which do not change. From then on the named results count as a
short marker and the prefix stays the same. The cache entries store the deletions: a later request that reads such an entry does
not repeat them, one that finds the cache cold must. The response confirms with
`cache_edits: {"deleted": […], "cleared_input_tokens": n}`.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import msgspec

from ..blocks import DIGEST_BYTES, canonical, unmarked
from ..errors import InputError

Raw: TypeAlias = Mapping[str, Any]
Count: TypeAlias = Callable[[Raw], int]
PiecePlace: TypeAlias = tuple[str, int, int]
_Look: TypeAlias = Callable[[Raw], tuple[int, bytes, bytes]]

# The API rejects a fifth mark.
MAX_MARKS = 4
MINUTES_5 = 300
HOUR = 3_600
LIFETIMES = {"5m": MINUTES_5, "1h": HOUR}
# One token is about four bytes of English text or code. Tests need a count that is easy to repeat by hand, not an exact one.
BYTES_PER_TOKEN = 4
# The cost of an image depends on its area, not its bytes: about 1,600 tokens at the largest size that the API does not scale down.
IMAGE_TOKENS = 1_600

# `blocks.canonical` without the function call, because every test encodes requests of up to 2,000 blocks.
encode = msgspec.json.Encoder().encode
# Block types that cannot carry a mark; they are cached as part of the block after them.
UNMARKABLE = frozenset({"thinking", "redacted_thinking"})
# Block types that need more than their digest and tokens.
SPECIAL = UNMARKABLE | {"tool_result", "image", "document"}


class Piece(NamedTuple):
    """One block of a prompt."""

    role: str  # tools | system | user | assistant
    kind: str  # the block's type
    tokens: int
    ttl: int  # lifetime in seconds that its mark requests; 0 = no mark
    digest: bytes  # of the block alone, without its mark
    data: bytes  # canonical JSON, without the mark
    block: Raw  # the block without the mark
    at: PiecePlace  # section, index, block within the message (-1 outside of messages)

    @property
    def path(self) -> str:
        """The path of the block, in the form that the API uses in its errors."""
        return _path(self.at)


class Prompt(NamedTuple):
    """A request in the cache's order. `system_at` and `messages_at` are the indices at which these levels begin."""

    model: str
    pieces: Sequence[Piece]
    system_at: int
    messages_at: int
    system_key: bytes
    messages_key: bytes
    deletes: tuple[str, ...]  # results that the request deletes from the cache

    @property
    def tokens(self) -> int:
        return sum(piece.tokens for piece in self.pieces)

    def results(self) -> dict[str, int]:
        """Return the index of each tool result by its tool_use id."""
        return {
            str(piece.block.get("tool_use_id")): index for index, piece in enumerate(self.pieces) if piece.kind == "tool_result"
        }


def count_block(block: Raw) -> int:
    """Estimate the tokens of a block: a quarter of the bytes of its text or JSON, and a fixed size for an image."""
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


def unmark(raw: Raw, at: PiecePlace) -> tuple[Raw, int]:
    """Return the block without its mark, and the lifetime of the mark. A mark inside a tool result counts for the result."""
    mark = raw.get("cache_control")
    plain = unmarked(raw)
    content = raw.get("content") if raw.get("type") == "tool_result" else None
    if isinstance(content, list) and any(isinstance(part, Mapping) and "cache_control" in part for part in content):
        inner = [part.get("cache_control") for part in content if isinstance(part, Mapping)]
        mark = mark or next((part_mark for part_mark in inner if part_mark is not None), None)
        plain = {**plain, "content": [unmarked(part) for part in content]}
    return plain, 0 if mark is None else _lifetime(mark, _path(at))


def _path(at: PiecePlace) -> str:
    section, index, block = at
    return f"{section}.{index}" if block < 0 else f"{section}.{index}.content.{block}"


def _lifetime(mark: object, path: str) -> int:
    if not isinstance(mark, Mapping) or mark.get("type") != "ephemeral":
        raise InputError(f"{path}.cache_control.type", "Input should be 'ephemeral'")
    ttl = mark.get("ttl") or "5m"
    if not isinstance(ttl, str) or ttl not in LIFETIMES:
        raise InputError(f"{path}.cache_control.ttl", "Input should be '5m' or '1h'")
    return LIFETIMES[ttl]


def settle_marks(request: Raw, pieces: list[Piece], marks: list[int]) -> None:
    """Move the request-level mark to the last block that can carry one; `marks` are the indices of the blocks with their own.

    Invalid marks raise errors in the API's own words.
    """
    own = request.get("cache_control")
    count = len(marks) + (own is not None)
    markable = (index for index in reversed(range(len(pieces))) if pieces[index].kind not in UNMARKABLE)
    last = next(markable, None) if own is not None else None
    if last is not None:
        ttl = _lifetime(own, "request")
        if pieces[last].ttl not in (0, ttl):
            raise InputError(f"{pieces[last].path}.cache_control", "the request-level cache mark has a different lifetime")
        pieces[last] = pieces[last]._replace(ttl=ttl)
        marks = sorted({*marks, last})
    if count > MAX_MARKS:
        raise InputError("cache_control", f"A maximum of {MAX_MARKS} blocks with cache_control may be provided. Found {count}")
    marked = [pieces[index] for index in marks]
    for before, after in pairwise(marked):
        if after.ttl > before.ttl:
            problem = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
            raise InputError(f"{after.path}.cache_control.ttl", f"{problem}; the order is `tools`, `system`, `messages`")
    for piece in marked:
        if piece.kind in UNMARKABLE:
            raise InputError(
                f"{piece.path}.cache_control", "thinking blocks cannot carry a cache mark", "mark the next block instead"
            )


# The beta name that enables Lamina's cache edits; see the module docstring.
CACHE_EDITS_BETA = "lamina-cache-edits-1"

# These models drop the thinking of earlier turns once a user message contains anything but tool results; newer models keep it.
_DROPS_THINKING = re.compile(r"claude-(3|sonnet-4(?!-[6-9])|opus-4(?!-[5-9])|haiku-4)")


def keeps_thinking(model: str) -> bool:
    """Return True if the model still sees the thinking of earlier turns."""
    return _DROPS_THINKING.search(model) is None


class _Reading:
    """The pieces of a list of messages. A list that starts with the same messages is read from the first one that differs."""

    def __init__(self) -> None:
        self.messages: list[Raw] = []
        self.ends = [0]  # number of pieces before each message, and of all
        self.pieces: list[Piece] = []
        # Indices of the pieces with a mark, of those with an image, and of documents with citations.
        self.marks: list[int] = []
        self.images: list[int] = []
        self.cited: list[int] = []
        self.border = 0  # the messages before this index are read without their thinking

    def read(self, messages: Sequence[Raw], border: int, look: _Look) -> None:
        """Read what is new. If nothing is, the messages behind a shorter list stay, since the next one may have them again."""
        same = common_start(self.messages, messages)
        if border != self.border:
            same = min(same, border, self.border)
        if same == len(messages):
            return
        end = self.ends[same]
        del self.messages[same:], self.ends[same + 1 :], self.pieces[end:]
        for places in (self.marks, self.images, self.cited):
            del places[bisect_left(places, end) :]
        self.border = border
        for index in range(same, len(messages)):
            self._add(index, messages[index], look)
            self.messages.append(messages[index])
            self.ends.append(len(self.pieces))

    def _add(self, at: int, message: Raw, look: _Look) -> None:
        """Read one message. This is the hot loop: most blocks have no mark, so they take the fast path."""
        pieces, role = self.pieces, str(message.get("role"))
        for index, raw in enumerate(_content(message.get("content"))):
            kind = raw.get("type")
            if "cache_control" in raw or kind in SPECIAL:
                if kind in UNMARKABLE and at < self.border and "cache_control" not in raw:
                    continue
                piece = _piece(role, raw, ("messages", at, index), look)
                if piece.ttl:
                    self.marks.append(len(pieces))
                if _shows_image(piece):
                    self.images.append(len(pieces))
                if _cites(piece):
                    self.cited.append(len(pieces))
                pieces.append(piece)
            else:
                tokens, digest, data = look(raw)
                pieces.append(Piece(role, str(kind), tokens, 0, digest, data, raw, ("messages", at, index)))


class PromptReader:
    """Reads requests into prompts.

    With `shared=True` the caller promises not to change what it passes in (this holds for everything that a session renders).
    Then a request is read from the first message that differs from the previous request, and shares the pieces before it. So the
    cost of a long replay is the cost of what is new in each request.
    """

    def __init__(self, *, count: Count = count_block, shared: bool = False) -> None:
        self._count = count
        self._shared = shared
        # The last tools and system with their pieces, and the index at which the system level begins.
        self._head: tuple[object, list[Piece], int] | None = None
        self._reading = _Reading()

    def read(self, request: Raw) -> Prompt:
        """Read a Messages request, in canonical or wire form. Raise InputError for marks that the API rejects."""
        return self._read(request, _thinking_border(request))

    def read_sent(self, request: Raw) -> Prompt:
        """Read all blocks of a Messages request, including those that the model will not see."""
        return self._read(request, 0)

    def _read(self, request: Raw, border: int) -> Prompt:
        """Read a request without the thinking in the messages before the index `border`."""
        messages = list(request.get("messages") or ())
        head, system_at = self._read_head(request)
        reading = self._reading = self._reading if self._shared else _Reading()
        reading.read(messages, border, self._look)
        first, end = len(head), reading.ends[len(messages)]
        pieces = head + reading.pieces[:end]
        marks = [index for index, piece in enumerate(head) if piece.ttl] + [
            first + index for index in reading.marks if index < end
        ]
        settle_marks(request, pieces, marks)
        edits = request.get("cache_edits")
        deletes = edits.get("delete") if isinstance(edits, Mapping) else None
        if edits is not None and not (isinstance(deletes, list) and all(isinstance(name, str) for name in deletes)):
            raise InputError("cache_edits.delete", "must be a list of tool_use ids")
        config = request.get("output_config")
        effort = config.get("effort") if isinstance(config, Mapping) else None
        image = any(index < end for index in reading.images[:1]) or any(map(_shows_image, head))
        cites = any(index < end for index in reading.cited[:1]) or any(map(_cites, head))
        return Prompt(
            str(request.get("model") or ""),
            pieces,
            system_at,
            first,
            canonical([request.get("speed") or "standard", cites]),
            canonical([request.get("tool_choice"), _thinking_key(request), effort, image]),
            tuple(dict.fromkeys(deletes or ())),
        )

    def _read_head(self, request: Raw) -> tuple[list[Piece], int]:
        """Return the pieces of tools and system, and the index at which the system level begins."""
        head = request.get("tools"), request.get("system")
        if self._shared and self._head is not None and self._head[0] == head:
            return self._head[1:]
        tools = list(enumerate(head[0] or ()))
        pieces = [_piece("tools", tool, ("tools", index, -1), self._look) for index, tool in tools if not _searches(tool)]
        system_at = len(pieces)
        pieces += [_piece("tools", tool, ("tools", index, -1), self._look) for index, tool in tools if _searches(tool)]
        pieces += [_piece("system", raw, ("system", index, -1), self._look) for index, raw in enumerate(_content(head[1]))]
        self._head = head, pieces, system_at
        return pieces, system_at

    def read_chat(self, request: Raw) -> Prompt:
        """Read a Chat Completions request; every tool and every message is one piece."""
        pieces = [
            _piece("tools", tool, ("tools", index, -1), self._look) for index, tool in enumerate(request.get("tools") or ())
        ]
        messages_at = len(pieces)
        for index, message in enumerate(request.get("messages") or ()):
            pieces.append(_piece(str(message.get("role")), message, ("messages", index, -1), self._look))
        return Prompt(str(request.get("model") or ""), pieces, messages_at, messages_at, b"", b"", ())

    def _look(self, block: Raw) -> tuple[int, bytes, bytes]:
        """Return the tokens, the digest and the canonical JSON of a block."""
        data = encode(block)
        return self._count(block), blake2b(data, digest_size=DIGEST_BYTES).digest(), data


def shown(prompt: Prompt, request: Raw) -> Prompt:
    """Return the part of a prompt that the model sees. Older models drop the thinking of earlier turns and the cache after it."""
    border = _thinking_border(request)
    return prompt._replace(pieces=[piece for piece in prompt.pieces if piece.kind not in UNMARKABLE or piece.at[1] >= border])


def _piece(role: str, raw: Raw, at: PiecePlace, look: _Look) -> Piece:
    plain, ttl = unmark(raw, at)
    tokens, digest, data = look(plain)
    return Piece(role, str(raw.get("type") or ""), tokens, ttl, digest, data, plain, at)


def _shows_image(piece: Piece) -> bool:
    return piece.kind == "image" or (piece.kind == "tool_result" and has_image(piece.block.get("content")))


def _cites(piece: Piece) -> bool:
    wish = piece.block.get("citations") if piece.kind == "document" else None
    return isinstance(wish, Mapping) and bool(wish.get("enabled"))


def common_start(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Return the length of the common start, by bisection: comparing slices is faster than a loop, most of all over shared objects."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _thinking_border(request: Raw) -> int:
    """Return the index of the first message whose thinking the model sees."""
    messages = request.get("messages") or ()
    edits = (request.get("context_management") or {}).get("edits") or ()
    if keeps_thinking(str(request.get("model"))) or any(str(edit.get("type", "")).startswith("clear_thinking") for edit in edits):
        return 0
    if _thinking_key(request) is None:
        return len(messages)
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].get("role") == "user" and not _only_results(messages[index].get("content")):
            return index
    return 0


def _only_results(content: object) -> bool:
    return isinstance(content, list) and all(isinstance(raw, Mapping) and raw.get("type") == "tool_result" for raw in content)


def _content(content: object) -> Iterable[Raw]:
    if isinstance(content, str):
        return ({"type": "text", "text": content},) if content else ()
    return content if isinstance(content, list | tuple) else ()


def _searches(tool: Raw) -> bool:
    """Whether this is web search, which counts as a line of the system prompt: toggling it leaves the tools cached."""
    return str(tool.get("type") or "").startswith("web_search_")


def _thinking_key(request: Raw) -> list[object] | None:
    thinking = request.get("thinking")
    if not isinstance(thinking, Mapping) or thinking.get("type") in (None, "disabled"):
        return None
    return [thinking.get("type"), thinking.get("budget_tokens")]
