"""Content blocks: the parts of a message, read once and frozen.

All blocks are made by `read_block`. It takes a plain dict (from an SDK response, a caller, or a transcript) and returns one type of
a closed union. It replaces lone surrogates, which JSON cannot represent, by U+FFFD, and drops fields that the API does not accept
as input. All later requests share the block's `wire` dict, which never changes, so the prefix repeats byte for byte.

Blocks of unknown types are kept unchanged, because they must survive a round trip.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Literal, TypeAlias

import msgspec

from .errors import InputError

Wire: TypeAlias = dict[str, Any]
Role: TypeAlias = Literal["user", "assistant", "system"]

# 16 bytes: a collision needs 2**64 blocks, and a chain of 10,000 digests stays under a megabyte.
DIGEST_BYTES = 16

# The API rejects an error result without content.
EMPTY_ERROR = "(The call failed and said nothing.)"

# Fields that the Messages API accepts as input, by type. Any other field of an SDK object (parsed output, nulls, cache marks) would
# be rejected or would change the bytes of a block that was already sent.
_LEGAL: dict[str, tuple[str, ...]] = {
    "text": ("type", "text", "citations"),
    "thinking": ("type", "thinking", "signature"),
    "redacted_thinking": ("type", "data"),
    "tool_use": ("type", "id", "name", "input", "caller", "toolset_name"),
    "tool_result": ("type", "tool_use_id", "content", "is_error", "toolset_name"),
    "image": ("type", "source", "transformations"),
    "document": ("type", "source", "title", "context", "citations"),
}
_REQUIRED: dict[str, tuple[tuple[str, type], ...]] = {
    "text": (("text", str),),
    "thinking": (("thinking", str),),
    "redacted_thinking": (("data", str),),
    "tool_use": (("id", str), ("name", str)),
    "tool_result": (("tool_use_id", str),),
    "image": (("source", dict),),
    "document": (("source", dict),),
}


class Text(msgspec.Struct, frozen=True, gc=False):
    """A text block."""

    text: str
    wire: Wire
    digest: bytes


class Thinking(msgspec.Struct, frozen=True, gc=False):
    """A thinking block, which is sent back only with its signature."""

    thinking: str
    signature: str
    wire: Wire
    digest: bytes


class RedactedThinking(msgspec.Struct, frozen=True, gc=False):
    """A thinking block that the provider encrypted."""

    data: str
    wire: Wire
    digest: bytes


class ToolUse(msgspec.Struct, frozen=True, gc=False):
    """A tool call."""

    id: str
    name: str
    input: Any
    wire: Wire
    digest: bytes


class ToolResult(msgspec.Struct, frozen=True, gc=False):
    """The result of a tool call."""

    tool_use_id: str
    content: str | list[Wire]
    is_error: bool
    wire: Wire
    digest: bytes

    @property
    def text(self) -> str:
        """The text parts of the result."""
        return content_text(self.content)


class Image(msgspec.Struct, frozen=True, gc=False):
    """An image block."""

    wire: Wire
    digest: bytes


class Document(msgspec.Struct, frozen=True, gc=False):
    """A document block."""

    wire: Wire
    digest: bytes


class Unknown(msgspec.Struct, frozen=True, gc=False):
    """A block of an unknown type, kept unchanged."""

    kind: str
    wire: Wire
    digest: bytes


Block: TypeAlias = Text | Thinking | RedactedThinking | ToolUse | ToolResult | Image | Document | Unknown


def read_block(raw: Mapping[str, Any], *, where: str = "block") -> Block:
    """Read one block; `where` names it in error messages."""
    kind = raw.get("type")
    if not isinstance(kind, str):
        raise InputError(where, "a content block needs a string under 'type'")
    wire, data = _freeze(kind, raw, where)
    for name, kind_of in _REQUIRED.get(kind, ()):
        if not isinstance(wire.get(name), kind_of):
            raise InputError(where, f"a block of type {kind!r} needs {name!r} ({kind_of.__name__})")
    digest = blake2b(data, digest_size=DIGEST_BYTES).digest()
    match kind:
        case "text":
            return Text(wire["text"], wire, digest)
        case "thinking":
            return Thinking(wire["thinking"], wire.get("signature") or "", wire, digest)
        case "redacted_thinking":
            return RedactedThinking(wire["data"], wire, digest)
        case "tool_use":
            return ToolUse(wire["id"], wire["name"], wire["input"], wire, digest)
        case "tool_result":
            return ToolResult(wire["tool_use_id"], wire["content"], bool(wire.get("is_error")), wire, digest)
        case "image":
            return Image(wire, digest)
        case "document":
            return Document(wire, digest)
        case _:
            return Unknown(kind, wire, digest)


def text(value: str) -> Text:
    block = read_block({"type": "text", "text": value})
    assert isinstance(block, Text)
    return block


def tool_use(call_id: str, name: str, given: Mapping[str, Any]) -> ToolUse:
    block = read_block({"type": "tool_use", "id": call_id, "name": name, "input": dict(given)})
    assert isinstance(block, ToolUse)
    return block


def tool_result(tool_use_id: str, content: str | list[Wire], *, is_error: bool = False) -> ToolResult:
    raw: Wire = {"type": "tool_result", "tool_use_id": tool_use_id, "content": content}
    if is_error:
        raw["is_error"] = True
    block = read_block(raw, where=f"result of {tool_use_id}")
    assert isinstance(block, ToolResult)
    return block


def read_content(content: str | Iterable[Mapping[str, Any]] | None, *, where: str = "content") -> tuple[Block, ...]:
    """Read the content of a message as blocks: a plain string becomes one text block, None or an empty string an empty tuple."""
    if content is None:
        return ()
    if isinstance(content, str):
        return (text(content),) if content else ()
    if isinstance(content, Mapping) or not isinstance(content, Iterable):
        raise InputError(where, f"content must be a string or a list of blocks, not {type(content).__name__}")
    blocks = []
    for index, raw in enumerate(content):
        if not isinstance(raw, Mapping):
            raise InputError(f"{where}[{index}]", f"a content block must be an object, not {type(raw).__name__}")
        blocks.append(read_block(raw, where=f"{where}[{index}]"))
    return tuple(blocks)


def canonical(value: Any) -> bytes:
    """Return the JSON form that digests are computed from. Key order matters, as it does for the provider's cache."""
    return msgspec.json.encode(value)


def unmarked(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the block without its cache mark, or the same object if it has none."""
    return {key: value for key, value in block.items() if key != "cache_control"} if "cache_control" in block else block


def digest_of(block: Mapping[str, Any]) -> bytes:
    """Return the digest of a block, ignoring its cache mark."""
    return blake2b(canonical(unmarked(block)), digest_size=DIGEST_BYTES).digest()


def content_text(content: object) -> str:
    """Return the text of a result's content, joined by newlines, without images and other media."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "\n".join(part["text"] for part in parts if part.get("type") == "text" and isinstance(part.get("text"), str))


def _freeze(kind: str, raw: Mapping[str, Any], where: str) -> tuple[Wire, bytes]:
    """Return a private copy in plain JSON values, and its bytes. One round trip through JSON both copies and validates."""
    legal = _LEGAL.get(kind)
    if legal is None:
        picked: Wire = dict(unmarked(raw))
    else:
        picked = {key: raw[key] for key in legal if raw.get(key) is not None}
        if kind == "tool_use":
            # The API accepts only an object here, so any other value from a server is wrapped in one.
            value = picked.get("input", {})
            picked["input"] = value if isinstance(value, Mapping) else {"input": value}
        elif kind == "tool_result":
            _tidy_result(picked)
        elif kind == "thinking" and not isinstance(picked.get("signature"), str):
            picked.pop("signature", None)
    try:
        try:
            data = msgspec.json.encode(picked)
        except (UnicodeEncodeError, TypeError):
            data = msgspec.json.encode(scrub(picked))
        return msgspec.json.decode(data), data
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise InputError(where, f"the block is not plain JSON ({error})") from error


def _tidy_result(result: Wire) -> None:
    """Remove cache marks, nulls and empty texts from the parts of a result. Only the assembly of a request sets cache marks."""
    content = result.setdefault("content", "")
    if isinstance(content, Iterable) and not isinstance(content, str | Mapping):
        parts = (part if isinstance(part, Mapping) else {"type": "text", "text": str(part)} for part in content)
        result["content"] = [
            {key: value for key, value in part.items() if key != "cache_control" and value is not None}
            for part in parts
            if part.get("type") != "text" or part.get("text")
        ]
    elif not isinstance(content, str):
        result["content"] = str(content)
    if "is_error" in result:
        result["is_error"] = bool(result["is_error"])
        if result["is_error"] and not result["content"]:
            result["content"] = EMPTY_ERROR


def scrub(value: Any) -> Any:
    """Replace lone surrogates, which UTF-8 cannot represent, by U+FFFD at any depth."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, Mapping):
        return {scrub(key): scrub(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [scrub(item) for item in value]
    return value
