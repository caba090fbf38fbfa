"""System and developer messages in the caller's list (Session.sync).

The leading ones are the system prompt. If the session has none, they become it; if it contains them already, nothing happens. All
others are context in the middle of the conversation. Not every model accepts the role `system` there, so the text is sent in place
as a reminder, and recorded as injected context. Both keep the prefix of the requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..conversation.state import Conversation
from ..core.blocks import Block, Text, Unknown, text
from ..core.errors import InputError
from ..core.fence import escape, reminder

ROLES = ("system", "developer")
KIND = "system_message"
NOT_SENT = (
    "A message in the list has its own output_config, which is not sent: it would drop the prompt cache. "
    "Set it for all requests with options={'output_config': …}."
)


def read(blocks: Sequence[Block], where: str) -> tuple[tuple[Block, ...], str]:
    """Return a system message as the block that is sent, and its text."""
    words = _words(blocks, where)
    return (text(reminder([escape(words)])),) if words else (), words


def leading(rows: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of system messages before the first other message."""
    return next((index for index, row in enumerate(rows) if row.get("role") not in ROLES), len(rows))


def take_prompt(c: Conversation, words: str, *, begun: bool) -> bool:
    """Use the leading system messages as the system prompt. Return False if they must be sent as context instead.

    If the conversation has begun, a changed text replaces the first part of the prompt, which breaks the cache.
    """
    now = [str(block.get("text", "")) for block in c.prompt.system]
    if any(words in one for one in (*now, "\n\n".join(now))):
        return True
    if now and not begun:
        return False
    c.replace_prompt([text(words).wire, *c.prompt.system[1:]], c.prompt.tools)
    return True


def _words(blocks: Sequence[Block], where: str) -> str:
    parts = [block for block in blocks if not (isinstance(block, Unknown) and block.kind == "chat_fields")]
    if wrong := next((block for block in parts if not isinstance(block, Text)), None):
        raise InputError(f"{where}.content", f"system messages cannot contain {wrong.wire['type']} blocks")
    return "\n\n".join(block.text for block in parts if isinstance(block, Text) and block.text.strip())
