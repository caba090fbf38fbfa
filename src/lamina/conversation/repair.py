"""Repairs a request that the server refused (400): the blocks it objects to are left out of this and every later request.

The log keeps the blocks and records which ones are left out, so a resumed session sends the same bytes. The first request without
them is recorded as a cache break with the reason "repair".
"""

from __future__ import annotations

from collections.abc import Iterable

from ..core.blocks import Wire
from ..core.errors import BadRequest
from ..core.prefix import first_difference
from .request import RefusedBlocks
from .state import Conversation

EVENT = "repair"


def applied(c: Conversation, messages: list[Wire]) -> list[Wire]:
    """Return the messages without the blocks that the server refused."""
    refused = _refused(c)
    if not refused.blocks:
        return messages
    from ..core.repair import without

    return without(messages, refused.blocks)


def leave_out(c: Conversation, error: BadRequest) -> bool:
    """Leave out the blocks that the error names. Returns False if it names none, so that a retry would be pointless."""
    from ..core.repair import objected, without
    from ..fork.handover import chain_of

    refused = _refused(c)
    messages = applied(c, c.log.view.messages())
    found = objected(str(error), messages)
    mended = without(messages, found) if found else messages
    if mended == messages:
        return False
    refused.blocks |= found
    refused.first = len(c.prompt.base) + first_difference(chain_of(messages), chain_of(mended))
    c.record_event(EVENT, {"why": str(error), "blocks": _names(refused.blocks)})
    c.notify(f"The server refused part of the conversation, which is left out from now on ({error}).")
    return True


def _refused(c: Conversation) -> RefusedBlocks:
    refused = c.refused
    if not refused.known:
        refused.known = True
        event = c.log.events.get(EVENT)
        named = [*(c.resumed.get(EVENT) or ()), *(event.data.get("blocks") or () if event is not None else ())]
        refused.blocks = {bytes.fromhex(name) for name in named if isinstance(name, str) and _is_hex(name)}
        c.checkpoint_with(EVENT, lambda: _names(refused.blocks))
    return refused


def _names(blocks: Iterable[bytes]) -> list[str]:
    return sorted(block.hex() for block in blocks)


def _is_hex(name: str) -> bool:
    return len(name) % 2 == 0 and all(letter in "0123456789abcdef" for letter in name)
