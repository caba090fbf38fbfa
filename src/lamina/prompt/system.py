"""The system prompt: static text, made once when a session begins.

Nothing in it depends on the clock, and nothing is looked up again later: a change would cost the whole prompt cache. What does
change stands in reminders. The general text comes first, so that sessions in different directories share it in the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..core.blocks import Wire, text
from ..core.prompt_files import prompt_sections, prompt_text
from .instruction_files import shown


def system_prompt(*, base: str | None, cwd: Path, tools: Sequence[str], platform: str) -> list[Wire]:
    """`base` takes the place of our own text and its lines on tools."""
    general = base if base is not None else f"{prompt_text(__file__, 'system')}\n\n{_tool_lines(tools)}".strip()
    environment = f"# Where you are\n\n- Working directory: {shown(cwd)}\n- Platform: {platform}"
    return [text(part).wire for part in (general, environment) if part.strip()]


def with_section(prompt: list[Wire], section: str) -> list[Wire]:
    """The prompt with one more section behind, a block of its own; as it is where the section is empty."""
    return [*prompt, text(section).wire] if section.strip() else prompt


def _tool_lines(tools: Sequence[str]) -> str:
    known = prompt_sections(__file__, "tools")
    lines = [f"- {name}: {known[name]}" for name in tools if name in known]
    return "\n".join(["# Tools", "", *lines]) if lines else ""
