"""Features: what of a block costs tokens, in whole numbers that add up.

Owns the reading of a block into counts of character classes, frames and flat parts. A block is read once; after that counting a
view is addition. The invariant: features depend on the block alone, never on the calibration, so they may be kept by digest.

Classes are what tokenizers treat alike, and they hold across languages (B15): letters join into words, blanks join the word
behind them, digits and punctuation stand nearly alone, a Chinese, Japanese or Korean character is about a token of its own, and
any other script goes by its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias, assert_never

import msgspec

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

# T2.
BYTES_PER_TEXT_TOKEN = 4
BYTES_PER_JSON_TOKEN = 2
FLAT_TOKENS = 2_000

# What the wire puts around a block, in tokens. Fitted on 1,745 requests and answers whose final output count is known; the
# parameters of a call are wrapped one by one, which is why a call with many keys costs more than its text.
TEXT_FRAME = 3
THINKING_FRAME = 12
CALL_FRAME = 36
CALL_KEY_FRAME = 15
RESULT_FRAME = 11

# A signature is base64 (3 bytes in 4 characters) around the thinking it signs, with about this many bytes of its own. Where it
# holds more than the text shows, the text is a summary or left out, and the model is still given the whole.
SIGNATURE_BYTES = 170

_LETTERS = bytes([*range(ord("A"), ord("Z") + 1), *range(ord("a"), ord("z") + 1)])
_HIGH = bytes(range(0x80, 0x100))
# First bytes of the three-byte characters of Chinese, Japanese and Korean: kana and CJK marks (E3), ideographs (E4-E9), hangul
# (EA-ED), full-width forms (EF). Each such character has exactly one of them.
_WIDE = bytes([*range(0xE3, 0xEE), 0xEF])
_WIDE_BYTES = 3


class Features(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    letters: int = 0  # ASCII letters
    blanks: int = 0  # spaces and tabs
    marks: int = 0  # digits, punctuation, line ends
    wide: int = 0  # Chinese, Japanese and Korean characters
    rare: int = 0  # bytes of all other characters
    frame: int = 0  # tokens the wire puts around
    flat: int = 0  # tokens of images and documents, whose size is not known
    plain: int = 0  # tokens by T2's rule

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


EMPTY = Features()

# Features by block digest: a digest covers the content and the tool_use id, so an equal digest is an equal block.
Memo: TypeAlias = dict[bytes, Features]


def measure(block: Block) -> Features:
    match block:
        case Text():
            return _text(block.text, TEXT_FRAME)
        case Thinking():
            return _thinking(block)
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
    """The sum over blocks; with a memo each block is read once for as long as the caller keeps it."""
    if memo is None:
        return sum(map(measure, blocks), EMPTY)
    total = EMPTY
    for block in blocks:
        found = memo.get(block.digest)
        if found is None:
            found = memo[block.digest] = measure(block)
        # Mostly there is one block, whose features are the sum.
        total = found if total is EMPTY else total + found
    return total


def _text(text: str, frame: int, *, per_token: int = BYTES_PER_TEXT_TOKEN, more_letters: int = 0) -> Features:
    # One pass drops the letters, which are most of it; everything else is counted in what is left.
    data = text.encode()
    rest = data.translate(None, _LETTERS)
    left = len(rest)
    blanks = rest.count(b" ") + rest.count(b"\t")
    letters = len(data) - left + more_letters
    plain = -(-len(data) // per_token)
    if text.isascii():
        return Features(letters, blanks, left - blanks, 0, 0, frame, 0, plain)
    high = left - len(rest.translate(None, _HIGH))
    wide = left - len(rest.translate(None, _WIDE))
    return Features(letters, blanks, left - blanks - high, wide, high - wide * _WIDE_BYTES, frame, 0, plain)


def _signed(signature: str) -> int:
    return max(0, len(signature) * 3 // 4 - SIGNATURE_BYTES)


def _thinking(block: Thinking) -> Features:
    hidden = max(0, _signed(block.signature) - len(block.thinking))
    return _text(block.thinking, THINKING_FRAME, more_letters=hidden)


def _call(arguments: dict[str, Any]) -> Features:
    """The model writes each argument as it is, not escaped into JSON; T2 counts the JSON."""
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
    """T2's flat number, unless the text itself is there to be read."""
    match wire.get("source"):
        case {"type": "text", "data": str(text)}:
            return msgspec.structs.replace(_text(text, TEXT_FRAME), plain=FLAT_TOKENS)
        case _:
            return Features(flat=FLAT_TOKENS, plain=FLAT_TOKENS)


def _json(value: Any) -> Features:
    return _text(canonical(value).decode(), TEXT_FRAME, per_token=BYTES_PER_JSON_TOKEN)


def is_json(text: str) -> bool:
    """An object or a list. Its first and last character decide almost always, so that prose is never parsed."""
    start, end = text[:1], text[-1:]
    if start.isspace() or end.isspace():
        text = text.strip()
        start, end = text[:1], text[-1:]
    if (start, end) not in (("{", "}"), ("[", "]")):
        return False
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):  # nested deeper than the parser goes: text, as far as anyone can use it
        return False
    return True
