"""Measures the features of a block that cost tokens, as integers that can be added.

A block is read once into counts of character classes, frames and flat parts; after that, counting a view is addition. Invariant:
features depend on the block alone, never on the calibration, so they can be cached by digest.

The classes group characters that tokenizers treat alike, in all languages: letters join into words, blanks join the following
word, digits and punctuation are nearly one token each, a Chinese, Japanese or Korean character is about one token, and other
scripts are counted in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias, assert_never

import msgspec
from msgspec.structs import astuple

from ...core.blocks import (
    Block,
    Document,
    Image,
    RedactedThinking,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
    Wire,
    canonical,
)
from ...core.decoding import UNDECODABLE

# The fixed rule, without calibration.
BYTES_PER_TEXT_TOKEN = 4
BYTES_PER_JSON_TOKEN = 2
FLAT_TOKENS = 2_000

# Tokens that the wire format adds around a block. Fitted on 1,745 requests and answers whose final output count is known. The
# arguments of a call are wrapped one by one, so a call with many keys costs more than its text.
TEXT_FRAME = 3
THINKING_FRAME = 12
CALL_FRAME = 36
CALL_KEY_FRAME = 15
RESULT_FRAME = 11

# A signature is base64 (3 bytes in 4 characters) of the thinking it signs, plus about this many bytes. If it is larger than the
# visible text, the text is a summary or omitted, but the model still reads the whole.
SIGNATURE_BYTES = 170

_LETTERS = bytes([*range(ord("A"), ord("Z") + 1), *range(ord("a"), ord("z") + 1)])
_HIGH = bytes(range(0x80, 0x100))
# First bytes of the three-byte characters of Chinese, Japanese and Korean: kana and CJK marks (E3), ideographs (E4-E9), hangul
# (EA-ED), full-width forms (EF). Each such character contains exactly one of these bytes.
_WIDE = bytes([*range(0xE3, 0xEE), 0xEF])
_WIDE_BYTES = 3


class Features(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    letters: int = 0  # ASCII letters
    blanks: int = 0  # spaces and tabs
    marks: int = 0  # digits, punctuation, line ends
    wide: int = 0  # Chinese, Japanese and Korean characters
    rare: int = 0  # bytes of all other characters
    frame: int = 0  # tokens of the wire format around the block
    flat: int = 0  # tokens of images and documents, whose size is unknown
    plain: int = 0  # tokens by the fixed rule

    def __add__(self, other: Features) -> Features:
        return Features(
            self.letters + other.letters,
            self.blanks + other.blanks,
            self.marks + other.marks,
            self.wide + other.wide,
            self.rare + other.rare,
            self.frame + other.frame,
            self.flat + other.flat,
            self.plain + other.plain,
        )

    def __sub__(self, other: Features) -> Features:
        return Features(*(mine - theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


EMPTY = Features()

# Features by block digest: a digest covers the content and the tool_use id, so an equal digest is an equal block.
Memo: TypeAlias = dict[bytes, Features]


def measure(block: Block) -> Features:
    match block:
        case Text():
            return _text(block.text, TEXT_FRAME)
        case Thinking():
            hidden = max(0, _signed(block.signature) - len(block.thinking))
            return _text(block.thinking, THINKING_FRAME, more_letters=hidden)
        case RedactedThinking():
            return Features(letters=_signed(block.data), frame=THINKING_FRAME, plain=-(-len(block.data) // BYTES_PER_TEXT_TOKEN))
        case ToolUse():
            return _call(block.input)
        case ToolResult():
            return _result(block.content)
        case Image():
            return Features(flat=FLAT_TOKENS, plain=FLAT_TOKENS)
        case Document():
            return _document(block.wire)
        case Unknown():
            return _json(block.wire)
        case _:
            assert_never(block)


def measure_all(blocks: Iterable[Block], memo: Memo | None = None) -> Features:
    """Return the sum over the blocks. With a memo, each block is read only once."""
    if memo is None:
        return sum(map(measure, blocks), EMPTY)
    total = EMPTY
    for block in blocks:
        features = memo.get(block.digest)
        if features is None:
            features = memo[block.digest] = measure(block)
        # Usually there is just one block, and its features are the sum.
        total = features if total is EMPTY else total + features
    return total


def _text(text: str, frame: int, *, per_token: int = BYTES_PER_TEXT_TOKEN, more_letters: int = 0) -> Features:
    # One pass removes the letters, which are most of the text; the rest is counted in the short remainder.
    data = text.encode()
    others = data.translate(None, _LETTERS)
    count = len(others)
    blanks = others.count(b" ") + others.count(b"\t")
    letters = len(data) - count + more_letters
    plain = -(-len(data) // per_token)
    if text.isascii():
        return Features(letters, blanks, count - blanks, 0, 0, frame, 0, plain)
    high = count - len(others.translate(None, _HIGH))
    wide = count - len(others.translate(None, _WIDE))
    return Features(letters, blanks, count - blanks - high, wide, high - wide * _WIDE_BYTES, frame, 0, plain)


def _signed(signature: str) -> int:
    return max(0, len(signature) * 3 // 4 - SIGNATURE_BYTES)


def _call(arguments: dict[str, Any]) -> Features:
    """Measure a call's arguments as plain text, the way the model writes them. The fixed rule (`plain`) counts their JSON."""
    plain = -(-len(canonical(arguments)) // BYTES_PER_JSON_TOKEN)
    text = "\n".join(
        f"{key} {value if isinstance(value, str) else canonical(value).decode()}" for key, value in arguments.items()
    )
    return msgspec.structs.replace(_text(text, CALL_FRAME + CALL_KEY_FRAME * len(arguments)), plain=plain)


def _result(content: str | list[Wire]) -> Features:
    if isinstance(content, str):
        return _result_text(content, RESULT_FRAME)
    return sum(map(_part, content), Features(frame=RESULT_FRAME))


def _part(part: Wire) -> Features:
    match part:
        case {"type": "text", "text": str(text)}:
            return _result_text(text, 0)
        case {"type": "image"}:
            return Features(flat=FLAT_TOKENS, plain=FLAT_TOKENS)
        case {"type": "document"}:
            return _document(part)
        case _:
            return _json(part)


def _result_text(text: str, frame: int) -> Features:
    return _text(text, frame, per_token=BYTES_PER_JSON_TOKEN if is_json(text) else BYTES_PER_TEXT_TOKEN)


def _document(wire: Wire) -> Features:
    """Measure a document: by its text if it has one, else by the flat number."""
    match wire.get("source"):
        case {"type": "text", "data": str(text)}:
            return msgspec.structs.replace(_text(text, TEXT_FRAME), plain=FLAT_TOKENS)
        case _:
            return Features(flat=FLAT_TOKENS, plain=FLAT_TOKENS)


def _json(value: Any) -> Features:
    return _text(canonical(value).decode(), TEXT_FRAME, per_token=BYTES_PER_JSON_TOKEN)


def is_json(text: str) -> bool:
    """Return whether a text is a JSON object or list. The first and last character usually decide, so prose is never parsed."""
    start, end = text[:1], text[-1:]
    if start.isspace() or end.isspace():
        text = text.strip()
        start, end = text[:1], text[-1:]
    if (start, end) not in (("{", "}"), ("[", "]")):
        return False
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except UNDECODABLE:  # nested too deeply to parse, so it counts as text
        return False
    return True
