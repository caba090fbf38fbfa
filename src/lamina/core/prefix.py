"""The prefix rule: a request starts with all blocks of the one before, or a break record stands between them.

The prefix is the sequence (tools, system, then role and block) in canonical JSON without cache marks. It is kept as a chain of
digests, link n standing for everything up to block n, so that comparing a request with the one before is one look-up, and finding
the first changed block is a binary search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

import msgspec

from .blocks import DIGEST_BYTES, digest_of

# Every way a prefix may change. A layer that breaks it names one of these beforehand; "unexplained" is a fault of ours.
Reason: TypeAlias = Literal[
    "compaction",
    "clearing",
    "spill",
    "snip",
    "collapse",
    "undo",
    "branch",
    "system",
    "tools",
    "model",
    "options",
    "repair",
    "unexplained",
]

ROOT = b"\0" * DIGEST_BYTES


def link(before: bytes, role: str, digest: bytes) -> bytes:
    """One step of the chain."""
    return blake2b(before + digest, digest_size=DIGEST_BYTES, key=role.encode()).digest()


def base_chain(tools: Iterable[Mapping[str, Any]], system: Iterable[Mapping[str, Any]]) -> tuple[bytes, ...]:
    """The chain over tools and system, in the order a provider's cache sees them."""
    chain: list[bytes] = []
    last = ROOT
    for role, blocks in (("tools", tools), ("system", system)):
        for block in blocks:
            last = link(last, role, digest_of(block))
            chain.append(last)
    return tuple(chain)


class Sent(msgspec.Struct, frozen=True):
    """What the last request held: enough to compare the next one with it."""

    base: tuple[bytes, ...]
    links: int  # links of the message chain at that time
    last: bytes  # its last link
    tools: int = 0  # how many links of the base are tools


class Difference(msgspec.Struct, frozen=True):
    """Where two requests part."""

    where: Literal["tools", "system", "messages"]
    block: int  # index over tools, system, messages


def compare(
    sent: Sent, old_chain: Sequence[bytes], base: tuple[bytes, ...], tools: int, chain: Sequence[bytes]
) -> Difference | None:
    """None: the new request starts with all of the old one. `old_chain` is the message chain as it was when `sent` left (the very
    same list where nothing was rewritten); `tools` is how many links of the new base are tools."""
    if base != sent.base:
        at = first_difference(sent.base, base)
        # Where the last tool was taken away, the system stands in its place: the longer row of tools counts.
        return Difference("tools" if at < max(tools, sent.tools) else "system", at)
    if sent.links == 0 or (len(chain) >= sent.links and chain[sent.links - 1] == sent.last):
        return None
    return Difference("messages", len(base) + first_difference(old_chain[: sent.links], chain))


def first_difference(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    """Index of the first link that differs. A chain that differs once differs for ever, so halving finds it."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high) // 2
        if old[middle] == new[middle]:
            low = middle + 1
        else:
            high = middle
    return low
