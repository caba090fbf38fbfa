"""Turns of a session: a user's message and everything up to the next one, numbered as the index numbers them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..core.blocks import Text
from ..core.records import Message, Record
from .scan import is_injected


def numbered(records: Iterable[Record]) -> Iterator[tuple[int, Message]]:
    """Yield the messages of a session in file order, each with the number of its turn, from 1. A summary belongs to the turn before it."""
    number, main = 0, None
    for record in records:
        if not isinstance(record, Message) or record.silent:
            continue
        # The first message tells whether this is a subagent's file, whose messages are all marked.
        main = record.sidechain if main is None else main
        if record.sidechain == main and is_users(record):
            number += 1
        yield max(1, number), record


def is_users(record: Message) -> bool:
    """Whether the user wrote the message."""
    if record.role != "user" or record.meta or record.synthetic or record.summary:
        return False
    texts = (block.text for block in record.blocks if isinstance(block, Text))
    return any(text.strip() and not is_injected(text) for text in texts)
