"""Repair: what is left out of a message list that a server refused.

`flatten` renders only what the API is known to take, so a refusal is about something nobody could know: a signature of another
model, thinking bound to words that were cleared since, an image the server cannot read, a block it does not know. `objected` reads
from the server's sentence which blocks it means; `without` leaves them out and mends what that tears: a call goes with its result, an
empty message goes and its neighbours merge. Both are pure. Each message is judged by itself and the ones before it, so a list that
grows keeps its repaired beginning byte for byte. The history is not changed.
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
    """Digests of the blocks a server's refusal is about; none where it is about something else."""
    named = _block_named(sentence, messages)
    if (named is not None and named["type"] in THOUGHTS) or (named is None and _THINKING.search(sentence)):
        blocks = (block for message in messages for block in message["content"])
        return frozenset(digest_of(block) for block in blocks if block["type"] in THOUGHTS)
    if named is not None:
        # Words are never left out: a refusal that names a text is about a mark or a field of it.
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
    """The list without these blocks; messages that keep all of theirs are the same dicts."""
    kept: list[Wire] = []
    gone: set[str] = set()  # calls that were left out
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
    """What stands in a block's place: itself, nothing, or a line that says what was there."""
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
