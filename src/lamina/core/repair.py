"""Repairs a message list that a server rejected, by leaving out the blocks it rejected.

Rendering produces only what the API is known to accept, so a rejection has a cause that could not be known in advance: a signature
of another model, thinking bound to text that was cleared since, an unreadable image, or an unsupported block. `objected` finds the
rejected blocks from the server's message. `without` leaves them out and repairs the rest: a call and its result go together, and
the neighbours of an empty message merge. Both functions are pure. Each message depends only on itself and the ones before it, so a
growing list keeps its repaired start byte for byte. The history itself does not change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from .blocks import Wire, content_text, digest_of
from .message_list import OPENING

_NAMED = re.compile(r"messages[.\[](\d+)\]?\.content[.\[](\d+)")
_THINKING = re.compile(r"thinking|signature", re.IGNORECASE)
_MEDIA = re.compile(r"image|document|pdf|media", re.IGNORECASE)

THOUGHTS = ("thinking", "redacted_thinking")
MEDIA = ("image", "document")

LEFT_OUT = "[left out: the server refused this {kind}]"


def objected(sentence: str, messages: Sequence[Wire]) -> frozenset[bytes]:
    """Return the digests of the blocks that the server's message rejects; empty if it is about something else."""
    named = _block_named(sentence, messages)
    if (named is not None and named["type"] in THOUGHTS) or (named is None and _THINKING.search(sentence)):
        blocks = (block for message in messages for block in message["content"])
        return frozenset(digest_of(block) for block in blocks if block["type"] in THOUGHTS)
    if named is not None:
        # Text is never left out: a rejection that names a text block is about its cache mark or another field.
        return frozenset((digest_of(named),)) if named["type"] != "text" else frozenset()
    if _MEDIA.search(sentence):
        for message in reversed(messages):
            if found := [block for block in message["content"] if _has_media(block)]:
                return frozenset(map(digest_of, found))
    return frozenset()


def _block_named(sentence: str, messages: Sequence[Wire]) -> Wire | None:
    if (found := _NAMED.search(sentence)) is None:
        return None
    at, number = int(found[1]), int(found[2])
    if at >= len(messages) or number >= len(messages[at]["content"]):
        return None
    block: Wire = messages[at]["content"][number]
    return block


def _has_media(block: Wire) -> bool:
    parts = block.get("content")
    return block["type"] in MEDIA or (isinstance(parts, list) and any(part.get("type") in MEDIA for part in parts))


def without(messages: Sequence[Wire], refused: Set[bytes]) -> list[Wire]:
    """Return the list without the rejected blocks. Unchanged messages are the same dicts."""
    kept: list[Wire] = []
    gone: set[str] = set()  # ids of calls that are left out
    for message in messages:
        content = [part for block in message["content"] for part in _kept(block, refused, gone)]
        while message["role"] == "assistant" and content and content[-1]["type"] in THOUGHTS:
            content.pop()
        if content == message["content"]:
            content = message["content"]
        if not content:
            continue
        if kept and kept[-1]["role"] == message["role"]:
            kept[-1] = {**kept[-1], "content": _results_first([*kept[-1]["content"], *content])}
        else:
            kept.append(message if content is message["content"] else {**message, "content": _results_first(content)})
    if kept and kept[0]["role"] == "assistant":
        kept.insert(0, {"role": "user", "content": [{"type": "text", "text": OPENING}]})
    return kept


def _kept(block: Wire, refused: Set[bytes], gone: set[str]) -> list[Wire]:
    """Return the replacement of a block: the block itself, nothing, or a line that describes what was left out."""
    kind = block["type"]
    if kind == "tool_result" and block["tool_use_id"] in gone:
        return [_text(f"Result of a call that is left out:\n{content_text(block.get('content'))}")]
    if digest_of(block) not in refused:
        return [block]
    if kind == "tool_use":
        gone.add(str(block["id"]))
        return [_text(LEFT_OUT.format(kind=f"call of {block['name']}"))]
    if kind == "tool_result":
        return [
            {**block, "content": f"{content_text(block.get('content'))}\n{LEFT_OUT.format(kind='part of the result')}".strip()}
        ]
    return [] if kind in THOUGHTS else [_text(LEFT_OUT.format(kind=kind))]


def _results_first(content: list[Wire]) -> list[Wire]:
    return sorted(content, key=lambda block: block["type"] != "tool_result")


def _text(words: str) -> Wire:
    return {"type": "text", "text": words}
