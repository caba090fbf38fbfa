"""The system prompt: static text, built once when a session begins.

It does not depend on the clock and is never looked up again, because any change would cost the whole prompt cache. Context
that does change goes into reminders. The general text comes first, so that sessions in different directories share it in the
cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..core.blocks import Wire, text
from ..core.prompt_files import prompt_sections, prompt_text
from .instruction_files import shown


def system_prompt(*, base: str | None, cwd: Path, tools: Sequence[str], platform: str) -> list[Wire]:
    """Build the system blocks. `base` replaces our general text and its lines about tools."""
    lines = [f"- {name}: {line}" for name in tools if (line := prompt_sections(__file__, "tools").get(name)) is not None]
    about_tools = "\n".join(["# Tools", "", *lines]) if lines else ""
    general = base if base is not None else f"{prompt_text(__file__, 'system')}\n\n{about_tools}".strip()
    environment = f"# Where you are\n\n- Working directory: {shown(cwd)}\n- Platform: {platform}"
    return [text(part).wire for part in (general, environment) if part.strip()]


def with_section(prompt: list[Wire], section: str) -> list[Wire]:
    """Return the prompt with the section appended as a separate block, or unchanged if the section is empty."""
    return [*prompt, text(section).wire] if section.strip() else prompt
