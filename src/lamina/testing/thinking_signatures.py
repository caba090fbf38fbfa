"""Signs thinking blocks in answers and checks them when they come back.

The signature covers the text and the conversation before it. The text is always checked. With `bind_thinking`, the conversation
is checked too, as newer models do: a block after anything that was changed, cleared or summarised is an error, or is dropped if
the request sets `thinking.block_binding.prefix_mismatch_behavior: "drop_block"`.
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
# The secret may be public: a forged signature in a test is a mistake, not an attack.
_SECRET = b"lamina.testing"
_MAGIC = b"LT1"


def prefix_of(prompt: Prompt) -> bytes:
    """Return one digest over all blocks and their roles."""
    return _digest(prompt.pieces).digest()


def _digest(pieces: Iterable[Piece]) -> blake2b:
    chain = blake2b(digest_size=DIGEST_BYTES)
    for piece in pieces:
        chain.update(piece.role.encode() + piece.digest)
    return chain


def sign(said: str, prefix: bytes) -> str:
    return b64encode(_MAGIC + prefix + _mac(said, prefix)).decode()


def prefix_signed(said: str, signature: str) -> bytes | None:
    """Return the digest of the conversation that a block was signed in, or None if the text or signature was changed."""
    try:
        raw = b64decode(signature, validate=True)
    except ValueError:
        return None
    prefix, mac = raw[len(_MAGIC) : len(_MAGIC) + DIGEST_BYTES], raw[len(_MAGIC) + DIGEST_BYTES :]
    return prefix if raw.startswith(_MAGIC) and hmac.compare_digest(mac, _mac(said, prefix)) else None


def _mac(said: str, prefix: bytes) -> bytes:
    return blake2b(said.encode("utf-8", "replace") + prefix, key=_SECRET, digest_size=DIGEST_BYTES).digest()


def sign_blocks(blocks: tuple[Wire, ...], prompt: Prompt) -> tuple[Wire, ...]:
    """Return an answer's blocks with missing signatures added. All are bound to the prompt of the answer."""
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
    dropped: tuple[Piece, ...]  # blocks hidden from the model


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
    """Yield each thinking block with the conversation it was signed in and the one that precedes its message now."""
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
