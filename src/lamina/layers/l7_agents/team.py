"""The prompt that a member of a team starts with. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.prompt_files import prompt_text

ALONE = "It has no other members yet."
NO_TASK = "Your task arrives by message."


def member_prompt(name: str, team: str, others: Sequence[str], task: str) -> str:
    """Return the first message of a member: who it is, who the others are, and its task."""
    known = f"The other members are {', '.join(others)}." if others else ALONE
    told = prompt_text(__file__, "team").format(name=name, team=team, others=known)
    return f"{told}\n\n{task.strip() or NO_TASK}"
