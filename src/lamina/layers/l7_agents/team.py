"""The prompt that a member of a team starts with. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.blocks import Wire
from ...core.fence import Fenced, reminder
from ...core.prompt_files import prompt_text

ALONE = "It has no other members yet."
NO_TASK = "Your task arrives by message."


def member_prompt(name: str, team: str, others: Sequence[str], task: str) -> list[Wire]:
    """Return the first message of a member: its task in the user's words, and a reminder of who it is and who the others are."""
    known = f"The other members are {', '.join(others)}." if others else ALONE
    told = prompt_text(__file__, "team").format(name=name, team=team, others=known)
    return [{"type": "text", "text": text} for text in (task.strip() or NO_TASK, reminder([Fenced(told.strip())]))]
