"""Thinking blocks are signed when they are handed out and checked when they come back.

The signature names the words and the conversation before them. The words are always checked. The conversation is checked where
the server is told to (`bind_thinking`), as newer models do: then a block behind anything that was changed, cleared or summarised
is an error, or is dropped where the request asks for it with `thinking.block_binding.prefix_mismatch_behavior: "drop_block"`.
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

from ..core.blocks import DIGEST_BYTES, Wire
from ..core.cache import Piece, Prompt
from .api_json import Problem, bad

KINDS = frozenset({"thinking", "redacted_thinking"})
BINDING_BETA = "thinking-binding-controls-2026-08-01"
# Any secret will do: a forged signature in a test is a mistake, not an attack.
_SECRET = b"lamina.testing"
_MAGIC = b"LT1"


def prefix_of(prompt: Prompt) -> bytes:
    """One digest over all blocks with their roles."""
    return _digest(prompt.pieces).digest()


def _digest(pieces: Iterable[Piece]) -> blake2b:
    chain = blake2b(digest_size=DIGEST_BYTES)
    for piece in pieces:
        chain.update(piece.role.encode() + piece.digest)
    return chain


def sign(said: str, prefix: bytes) -> str:
    return b64encode(_MAGIC + prefix + _mac(said, prefix)).decode()


def prefix_signed(said: str, signature: str) -> bytes | None:
    """The conversation a block was signed in; None: the words or the signature were changed."""
    try:
        raw = b64decode(signature, validate=True)
    except ValueError:
        return None
    prefix, mac = raw[len(_MAGIC) : len(_MAGIC) + DIGEST_BYTES], raw[len(_MAGIC) + DIGEST_BYTES :]
    return prefix if raw.startswith(_MAGIC) and hmac.compare_digest(mac, _mac(said, prefix)) else None


def _mac(said: str, prefix: bytes) -> bytes:
    return blake2b(said.encode("utf-8", "replace") + prefix, key=_SECRET, digest_size=DIGEST_BYTES).digest()


def sign_blocks(blocks: tuple[Wire, ...], prompt: Prompt) -> tuple[Wire, ...]:
    """An answer's blocks with the signatures that are missing. All of them are bound to what the answer answers."""
    if not any(block.get("type") in KINDS for block in blocks):
        return blocks
    prefix = prefix_of(prompt)
    return tuple(_signed(block, prefix) for block in blocks)


def _signed(block: Wire, prefix: bytes) -> Wire:
    if block.get("type") == "thinking" and not block.get("signature"):
        return {**block, "signature": sign(block["thinking"], prefix)}
    if block.get("type") == "redacted_thinking" and not block.get("data"):
        return {**block, "data": sign("", prefix)}
    return block


class Checked(NamedTuple):
    problem: Problem | None
    dropped: tuple[Piece, ...]  # blocks the model is not shown


def check_thinking(prompt: Prompt, body: Mapping[str, Any], *, bind: bool) -> Checked:
    dropped: list[Piece] = []
    drop = _drops(body)
    for piece, signed, here in _signatures(prompt):
        if signed is None:
            return Checked(
                bad(f"{piece.path}: Invalid `signature` in `{piece.kind}` block. Send it back as it was received."), ()
            )
        if not bind or (signed == here and not dropped):
            continue
        if not drop:
            return Checked(
                bad(
                    f"{piece.path}: Invalid `signature` in `{piece.kind}` block. The block is bound to a different conversation: "
                    "something before it was changed. Leave the block out, or set `thinking.block_binding` to drop it."
                ),
                (),
            )
        dropped.append(piece)
    return Checked(None, tuple(dropped))


def _signatures(prompt: Prompt) -> Iterator[tuple[Piece, bytes | None, bytes]]:
    """Thinking blocks with the conversation they were signed in and the one before the message they stand in."""
    if not any(piece.kind in KINDS for piece in prompt.pieces):
        return
    chain = _digest(())
    message, before = -1, chain.digest()
    for piece in prompt.pieces:
        if piece.at[0] == "messages" and piece.at[1] != message:
            message, before = piece.at[1], chain.copy().digest()
        if piece.kind == "thinking":
            yield piece, prefix_signed(str(piece.block.get("thinking")), str(piece.block.get("signature"))), before
        elif piece.kind == "redacted_thinking":
            yield piece, prefix_signed("", str(piece.block.get("data"))), before
        chain.update(piece.role.encode() + piece.digest)


def _drops(body: Mapping[str, Any]) -> bool:
    thinking = body.get("thinking")
    binding = thinking.get("block_binding") if isinstance(thinking, Mapping) else None
    return isinstance(binding, Mapping) and binding.get("prefix_mismatch_behavior") == "drop_block"
