"""Pictures in transcripts: a line with type and size stands for each, and a click loads it from our own origin.

Invariants: only PNG, JPEG, GIF and WebP of bounded size are sent, with the type that their bytes show, whatever the transcript says.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core.blocks import Block, Image, ToolResult

# The largest picture that is sent. Providers take at most half of it.
MOST_BYTES = 10 << 20
# How files of each type begin. An SVG may carry scripts, so it is not among them.
SIGNATURES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8", "image/webp": b"RIFF"}
HEAD_CHARS = 24


class Picture(NamedTuple):
    """A picture as a transcript holds it: the type that it claims, and its data in base64."""

    claimed: str
    data: str

    @property
    def size(self) -> int:
        return len(self.data) * 3 // 4 - self.data[-2:].count("=")

    @property
    def type(self) -> str | None:
        """The type that its bytes show; None if it is not shown."""
        head = _decoded(self.data[:HEAD_CHARS]) or b""
        found = next((type for type, start in SIGNATURES.items() if head.startswith(start)), None)
        webp = found != "image/webp" or head[8:12] == b"WEBP"
        return found if webp and self.size <= MOST_BYTES else None

    def bytes(self) -> bytes | None:
        return _decoded(self.data) if self.type is not None else None


def pictures_of(block: Block) -> list[Picture]:
    """Return the pictures in a block: its own, or those of a tool's result."""
    match block:
        case Image(wire=wire):
            return [_picture(wire)]
        case ToolResult(content=list(parts)):
            return [_picture(part) for part in parts if part.get("type") == "image"]
        case _:
            return []


def _picture(wire: Mapping[str, Any]) -> Picture:
    source = wire.get("source")
    found = source if isinstance(source, Mapping) else {}
    claimed, data = (str(found.get(name) or "") for name in ("media_type", "data"))
    return Picture(claimed or str(found.get("type") or "?"), data)


def _decoded(data: str) -> bytes | None:
    try:
        return binascii.a2b_base64(data.encode("ascii"), strict_mode=True)
    except (binascii.Error, UnicodeEncodeError):
        return None
