"""The handover from a parent to its fork: the request it would send now, rendered and frozen, with digests to verify it.

Nothing is rendered again: the message dicts are the parent's own, shared and read-only. `check` compares a request with the handover
block by block, as a provider's cache does, so a fork that would miss the cache is found before it is paid for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from ..core.blocks import DIGEST_BYTES, Wire, canonical, tool_result
from ..core.errors import LaminaError
from ..core.prefix import ROOT, Reason, base_chain, link

# The result of every open call in a fork. It is the same text for all, so that forks of one answer share their prefix.
PLACEHOLDER = "The conversation that started this fork is running this call. Its result is not known here."


class PrefixChanged(LaminaError):
    """A fork's request does not start with what its parent handed over, so it is not sent."""

    def __init__(self, purpose: str, where: str) -> None:
        super().__init__(
            f"The {purpose} fork was not sent: {where} differs from what the conversation handed over. Please report this."
        )
        self.purpose = purpose
        self.where = where


class Handover(msgspec.Struct, frozen=True):
    head: Wire  # model, max_tokens, system and tools, with the parent's cache marks
    messages: tuple[Wire, ...]  # without marks, shared, read-only
    options: Wire
    base: tuple[bytes, ...]  # digests of tools and system
    links: int  # number of message blocks that are the parent's own, without the placeholders
    last: bytes  # digest of the chain up to there
    ttl: str | None  # of the cache marks; None: no marks
    open_calls: tuple[str, ...] = ()  # answered with the placeholder, in the last message
    readable: int = 0  # tokens the provider should find in its cache; 0: unknown
    broken: Reason | None = None  # why the messages do not start with the parent's last request, if they do not
    handed_at: str = ""  # the log's time; empty if the messages are not the parent's
    once: frozenset[str] = frozenset()  # calls whose results the parent shows once
    unseen: frozenset[str] = frozenset()  # those that the parent's coming request still shows whole


def _unmarked(block: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in block.items() if key != "cache_control"} if "cache_control" in block else block


def chain_of(messages: Iterable[Mapping[str, Any]]) -> list[bytes]:
    """Return one link per block, without cache marks."""
    chain: list[bytes] = []
    last = ROOT
    for message in messages:
        for block in message["content"]:
            last = link(last, message["role"], blake2b(canonical(_unmarked(block)), digest_size=DIGEST_BYTES).digest())
            chain.append(last)
    return chain


def check(handover: Handover, request: Wire, purpose: str) -> None:
    """Raise PrefixChanged unless the request starts, byte for byte, with the handover."""
    if base_chain(request.get("tools") or (), request.get("system") or ()) != handover.base:
        raise PrefixChanged(purpose, "the system prompt or the list of tools")
    for name in ("model", *handover.options):
        if name != "extra_headers" and request.get(name) != {**handover.head, **handover.options}.get(name):
            raise PrefixChanged(purpose, f"the option {name}")
    chain = chain_of(request["messages"])
    if handover.links and (len(chain) < handover.links or chain[handover.links - 1] != handover.last):
        raise PrefixChanged(purpose, "a message")


def of_request(request: Mapping[str, Any], answer: Sequence[Wire]) -> Handover:
    """Build a handover for a run without a conversation of ours: a request it sent and the answer, with placeholders for the answer's
    calls."""
    heads = ("model", "max_tokens", "system", "tools")
    sent_messages = request["messages"]
    marks = [block["cache_control"] for message in sent_messages for block in message["content"] if "cache_control" in block]
    messages = [{**message, "content": [_unmarked(block) for block in message["content"]]} for message in sent_messages]
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
    """Return the handover with other messages, for a fork that cannot repeat its parent's. It names the reason and expects no cache hit."""
    own_messages = tuple(messages)
    chain = chain_of(own_messages)
    return msgspec.structs.replace(
        handover,
        messages=own_messages,
        links=len(chain),
        last=chain[-1] if chain else b"",
        open_calls=(),
        readable=0,
        broken=why,
        handed_at="",
    )
