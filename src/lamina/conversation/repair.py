"""Repairs a request that the server refused (400): the blocks it objects to are left out of this and every later request.

Rendering produces only what the API is known to accept, so a rejection has a cause that could not be known in advance: a signature
of another model, thinking bound to text that was cleared since, an unreadable image, or an unsupported block. `objected` finds the
rejected blocks from the server's message. `without` leaves them out and repairs the rest: a call and its result go together, and
the neighbours of an empty message merge. Both functions are pure. Each message depends only on itself and the ones before it, so a
growing list keeps its repaired start byte for byte.

The log keeps the blocks and records which ones are left out, so a resumed session sends the same bytes. The first request without
them is recorded as a cache break with the reason "repair".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set

from ..core.blocks import Wire, content_text, digest_of
from ..core.errors import BadRequest
from ..core.message_list import OPENING
from ..core.prefix import first_difference
from ..language.text import Text
from .request import RefusedBlocks
from .state import Conversation

EVENT = "repair"
THOUGHTS = ("thinking", "redacted_thinking")
MEDIA = ("image", "document")
LEFT_OUT = "[left out: the server refused this {kind}]"


def applied(c: Conversation, messages: list[Wire]) -> list[Wire]:
    """Return the messages without the blocks that the server refused."""
    refused = _refused(c)
    return without(messages, refused.blocks) if refused.blocks else messages


def leave_out(c: Conversation, error: BadRequest) -> bool:
    """Leave out the blocks that the error names. Returns False if it names none, so that a retry would be pointless."""
    from ..fork.handover import chain_of

    refused = _refused(c)
    messages = applied(c, c.log.view.messages())
    rejected = objected(str(error), messages)
    mended = without(messages, rejected) if rejected else messages
    if mended == messages:
        return False
    refused.blocks |= rejected
    refused.first = len(c.prompt.base) + first_difference(chain_of(messages), chain_of(mended))
    c.record_event(EVENT, {"why": str(error), "blocks": _names(refused.blocks)})
    c.notify(Text("The server refused part of the conversation, which is left out from now on ({error}).", error=error))
    return True


def _refused(c: Conversation) -> RefusedBlocks:
    refused = c.refused
    if not refused.known:
        refused.known = True
        event = c.log.events.get(EVENT)
        named = [*(c.resumed.get(EVENT) or ()), *(event.data.get("blocks") or () if event is not None else ())]
        refused.blocks = {
            bytes.fromhex(name) for name in named if isinstance(name, str) and re.fullmatch(r"(?:[0-9a-f]{2})*", name)
        }
        c.checkpoint_with(EVENT, lambda: _names(refused.blocks))
    return refused


def _names(blocks: Iterable[bytes]) -> list[str]:
    return sorted(block.hex() for block in blocks)


def objected(sentence: str, messages: Sequence[Wire]) -> frozenset[bytes]:
    """Return the digests of the blocks that the server's message rejects; empty if it is about something else."""
    named: Wire | None = None
    if (place := re.search(r"messages[.\[](\d+)\]?\.content[.\[](\d+)", sentence)) is not None:
        index, number = int(place[1]), int(place[2])
        if index < len(messages) and number < len(messages[index]["content"]):
            named = messages[index]["content"][number]
    if (named is not None and named["type"] in THOUGHTS) or (named is None and re.search("(?i)thinking|signature", sentence)):
        blocks = (block for message in messages for block in message["content"])
        return frozenset(digest_of(block) for block in blocks if block["type"] in THOUGHTS)
    if named is not None:
        # Text is never left out: a rejection that names a text block is about its cache mark or another field.
        return frozenset((digest_of(named),)) if named["type"] != "text" else frozenset()
    if re.search("(?i)image|document|pdf|media", sentence):
        for message in reversed(messages):
            if media := [block for block in message["content"] if _has_media(block)]:
                return frozenset(map(digest_of, media))
    return frozenset()


def _has_media(block: Wire) -> bool:
    parts = block.get("content")
    return block["type"] in MEDIA or (isinstance(parts, list) and any(part.get("type") in MEDIA for part in parts))


def without(messages: Sequence[Wire], refused: Set[bytes]) -> list[Wire]:
    """Return the list without the rejected blocks. Unchanged messages are the same dicts."""
    result: list[Wire] = []
    gone: set[str] = set()  # ids of calls that are left out
    for message in messages:
        content = [part for block in message["content"] for part in _kept(block, refused, gone)]
        while message["role"] == "assistant" and content and content[-1]["type"] in THOUGHTS:
            content.pop()
        if content == message["content"]:
            content = message["content"]
        if not content:
            continue
        if result and result[-1]["role"] == message["role"]:
            result[-1] = {**result[-1], "content": _results_first([*result[-1]["content"], *content])}
        else:
            result.append(message if content is message["content"] else {**message, "content": _results_first(content)})
    if result and result[0]["role"] == "assistant":
        result.insert(0, {"role": "user", "content": [{"type": "text", "text": OPENING}]})
    return result


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
