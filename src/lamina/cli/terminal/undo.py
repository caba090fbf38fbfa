"""Taking back the last turn: the conversation goes on from before the person's last message.

The log keeps everything; the view is what it would be without the turn, and the next request is an announced break. Files that tools
changed stay as they are.
"""

from __future__ import annotations

from typing import NamedTuple

from ...conversation.revision import rewind
from ...conversation.state import Conversation
from ...core.blocks import Text, ToolResult, ToolUse
from ...core.view import Item
from ..safe_text import counted, shorten

# Tools that leave something behind.
CHANGING = frozenset({"Write", "Edit", "Bash"})
SHOWN = 70


class RemovedTurn(NamedTuple):
    said: str
    answers: int
    calls: tuple[str, ...]

    def sentence(self) -> str:
        words = shorten(" ".join(self.said.split()), SHOWN)
        calls = f", {counted(len(self.calls), 'tool call')}" if self.calls else ""
        answers = counted(self.answers, "answer") if self.answers else "no answer"
        stay = " Files that were changed stay changed." if CHANGING.intersection(self.calls) else ""
        return f'Taken back: "{words}", {answers}{calls}.{stay}'


def undo_turn(c: Conversation) -> RemovedTurn | None:
    """None where the person has said nothing that could be taken back."""
    items = c.log.view.items
    last = next((at for at in range(len(items) - 1, -1, -1) if _is_said(items[at])), None)
    if last is None:
        return None
    gone = items[last:]
    said = " ".join(block.text for block in gone[0].blocks if isinstance(block, Text))
    answers = {item.key or item.uuid for item in gone if item.role == "assistant"}
    calls = [block.name for item in gone for block in item.blocks if isinstance(block, ToolUse)]
    rewind(c, c.log.tree.nodes[items[last].uuid].parent)
    return RemovedTurn(said, len(answers), tuple(calls))


def _is_said(item: Item) -> bool:
    """By the person, and not what a tool brought."""
    if item.role != "user" or item.kind != "said" or item.synthetic:
        return False
    return any(not isinstance(block, ToolResult) for block in item.blocks)
