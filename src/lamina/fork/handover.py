"""What a parent hands to its fork (A1): the request it would send now, as rendered, frozen, and the digests to prove it by.

Nothing is rendered again: the message dicts are the parent's own, shared and read-only. `check` compares a request with what was
handed over block by block, as a provider's cache will, so a fork that would miss the cache is found before it is paid for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from ..core.blocks import DIGEST_BYTES, Wire, canonical, tool_result
from ..core.errors import LaminaError
from ..core.prefix import ROOT, Reason, base_chain, link

# What every open call is answered with in a fork (A2): the same words for all, so that forks of one answer share their prefix.
PLACEHOLDER = "This call is being carried out by the conversation this run was forked from; its result is not known here."


class PrefixChanged(LaminaError):
    """A fork whose request does not start with what its parent handed over: it is not sent (K2)."""

    def __init__(self, purpose: str, where: str) -> None:
        super().__init__(
            f"The {purpose} fork was not sent: {where} is not what the conversation handed over; please report this."
        )
        self.purpose = purpose
        self.where = where


class Handover(msgspec.Struct, frozen=True):
    head: Wire  # model, max_tokens, system and tools, marked as the parent marks them
    messages: tuple[Wire, ...]  # without marks, shared, read-only
    options: Wire
    base: tuple[bytes, ...]  # digests of tools and system
    links: int  # blocks of the messages that are the parent's own: all but the placeholders
    last: bytes  # the digest of the chain up to there
    ttl: str | None  # of the cache marks; None: no marks
    open_calls: tuple[str, ...] = ()  # answered with the placeholder, in the last message
    readable: int = 0  # tokens the provider should find in its cache; 0: nothing can be expected
    broken: Reason | None = None  # why the messages do not start with the parent's last request, where they do not


def _unmarked(block: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in block.items() if key != "cache_control"} if "cache_control" in block else block


def chain_of(messages: Iterable[Mapping[str, Any]]) -> list[bytes]:
    """One link per block, cache marks left out."""
    chain: list[bytes] = []
    last = ROOT
    for message in messages:
        for block in message["content"]:
            last = link(last, message["role"], blake2b(canonical(_unmarked(block)), digest_size=DIGEST_BYTES).digest())
            chain.append(last)
    return chain


def check(handover: Handover, request: Wire, purpose: str) -> None:
    """Raise PrefixChanged unless the request starts, byte for byte, with what was handed over."""
    if base_chain(request.get("tools") or (), request.get("system") or ()) != handover.base:
        raise PrefixChanged(purpose, "the system prompt or the list of tools")
    for name in ("model", *handover.options):
        if name != "extra_headers" and request.get(name) != {**handover.head, **handover.options}.get(name):
            raise PrefixChanged(purpose, f"the option {name}")
    chain = chain_of(request["messages"])
    if handover.links and (len(chain) < handover.links or chain[handover.links - 1] != handover.last):
        raise PrefixChanged(purpose, "a message")


def of_request(request: Mapping[str, Any], answer: Sequence[Wire]) -> Handover:
    """What a run that has no conversation of ours hands over: a request it sent and what was answered, with placeholders for the calls
    in it."""
    heads = ("model", "max_tokens", "system", "tools")
    sent = request["messages"]
    marks = [block["cache_control"] for message in sent for block in message["content"] if "cache_control" in block]
    messages = [{**message, "content": [_unmarked(block) for block in message["content"]]} for message in sent]
    messages += [{"role": "assistant", "content": list(answer)}] if answer else []
    chain = chain_of(messages)
    calls = tuple(str(block["id"]) for block in answer if block["type"] == "tool_use")
    if calls:
        messages.append({"role": "user", "content": [tool_result(call, PLACEHOLDER).wire for call in calls]})
    return Handover(
        head={name: request[name] for name in heads if name in request},
        messages=tuple(messages),
        options={name: value for name, value in request.items() if name not in (*heads, "messages")},
        base=base_chain(request.get("tools") or (), request.get("system") or ()),
        links=len(chain),
        last=chain[-1] if chain else b"",
        ttl=str(marks[-1].get("ttl", "5m")) if marks else None,
        open_calls=calls,
    )


def altered(handover: Handover, messages: Sequence[Wire], why: Reason) -> Handover:
    """The same with other messages, for a fork that cannot repeat its parent's: it says so, and expects nothing of the cache."""
    kept = tuple(messages)
    chain = chain_of(kept)
    return msgspec.structs.replace(
        handover,
        messages=kept,
        links=len(chain),
        last=chain[-1] if chain else b"",
        open_calls=(),
        readable=0,
        broken=why,
    )
