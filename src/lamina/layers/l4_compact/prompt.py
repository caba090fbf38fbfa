"""What the summariser is asked (C3, C6): one directive behind the conversation as it stands. Pure.

Nothing of the conversation is repeated in it: the fork reads it from the cache. Where only a part is to be summarised, the part is
named by the beginning of the message it starts or ends at.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...conversation.compaction.user_messages import words_of
from ...core.prompt_files import prompt_sections
from ...core.view import Item
from .plan import Plan

# Enough of a message to find it by, for a model that has it in view.
BEGINNING = 200


def directive(
    items: Sequence[Item], made: Plan, *, instructions: str = "", dropped: int = 0, partial: bool = False, again: str = ""
) -> str:
    """`partial`: a person chose the place; `dropped`: rounds that are not in the request (C7); `again`: why the last try failed."""
    texts = prompt_sections(__file__, "summary")
    parts = [texts["summary"]]
    if made.start > 0:
        parts.append(texts["from"].format(beginning=beginning(items[made.start :])))
    elif made.end < made.count:
        parts.append(texts["up_to" if partial else "kept"].format(beginning=beginning(items[made.end :])))
    if dropped:
        parts.append(texts["dropped"].format(count=dropped))
    if instructions.strip():
        parts.append(texts["instructions"].format(instructions=instructions.strip()))
    if again:
        parts.append(texts["again"].format(why=again))
    return "\n\n".join(parts)


def beginning(items: Sequence[Item]) -> str:
    """How the first of these that has words begins, in one line."""
    for item in items:
        if words := " ".join(words_of(item.blocks).split()):
            return f"“{words[:BEGINNING]}”" + ("…" if len(words) > BEGINNING else "")
    return "(a message without words)"
