"""The original of a result as the bytes of a file (M2). Pure; who writes it is `layers/l2_micro/step.py`."""

from __future__ import annotations

from typing import NamedTuple

from lamina.core.blocks import ToolResult, canonical


class Original(NamedTuple):
    suffix: str
    data: bytes


def original(block: ToolResult) -> Original:
    """Text as it is; a result that holds more than text (an image) as the JSON of its parts, so that nothing is lost."""
    parts = block.content
    if isinstance(parts, str) or all(part.get("type") == "text" for part in parts):
        return Original(".txt", block.text.encode())
    return Original(".json", canonical(parts))
