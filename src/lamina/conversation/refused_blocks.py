"""Blocks that a server refused: they are left out of every later request (repair.py)."""

from __future__ import annotations


class RefusedBlocks:
    """The blocks that are left out, by their digests."""

    def __init__(self) -> None:
        self.blocks: set[bytes] = set()
        self.known = False  # whether the log was asked
        self.first: int | None = None  # the next request is the first without them, and this is the first block that differs
