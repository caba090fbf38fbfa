"""The prefix rule: a request starts with all blocks of the previous request, or a break record is written between them.

The prefix is the sequence (tools, system, then role and block) in canonical JSON without cache marks. It is stored as a chain of
digests, in which link n covers everything up to block n. So one lookup compares a request with the previous one, and a binary search
finds the first changed block.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

import msgspec

from .blocks import DIGEST_BYTES, digest_of

# All reasons for a changed prefix. A layer names its reason before it breaks the prefix; "unexplained" indicates a bug in Lamina.
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
    """Return the next link of the chain."""
    return blake2b(before + digest, digest_size=DIGEST_BYTES, key=role.encode()).digest()


def base_chain(tools: Iterable[Mapping[str, Any]], system: Iterable[Mapping[str, Any]]) -> tuple[bytes, ...]:
    """Return the chain over tools and system, in the order of a provider's cache."""
    chain: list[bytes] = []
    last = ROOT
    for role, blocks in (("tools", tools), ("system", system)):
        for block in blocks:
            last = link(last, role, digest_of(block))
            chain.append(last)
    return tuple(chain)


class Sent(msgspec.Struct, frozen=True):
    """A fingerprint of the last request, for comparison with the next one."""

    base: tuple[bytes, ...]
    links: int  # number of links of the message chain at that time
    last: bytes  # the last of these links
    tools: int = 0  # number of links of the base that are tools


class Difference(msgspec.Struct, frozen=True):
    """The place where two requests start to differ."""

    where: Literal["tools", "system", "messages"]
    block: int  # index over tools, system, messages


def compare(
    sent: Sent, old_chain: Sequence[bytes], base: tuple[bytes, ...], tools: int, chain: Sequence[bytes]
) -> Difference | None:
    """Return the first difference, or None if the new request starts with the whole old one.

    `old_chain` is the message chain at the time of `sent` (the same list, if no message was rewritten). `tools` is the number of
    links of the new base that are tools.
    """
    if base != sent.base:
        at = first_difference(sent.base, base)
        # If the last tool was removed, the system prompt takes its place, so compare with the longer list of tools.
        return Difference("tools" if at < max(tools, sent.tools) else "system", at)
    if sent.links == 0 or (len(chain) >= sent.links and chain[sent.links - 1] == sent.last):
        return None
    return Difference("messages", len(base) + first_difference(old_chain[: sent.links], chain))


def first_difference(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    """Return the index of the first link that differs, by bisection: all links after a different one differ too."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high) // 2
        if old[middle] == new[middle]:
            low = middle + 1
        else:
            high = middle
    return low
