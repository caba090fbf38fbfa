"""The prompt and the tools of a dream that has no agent's to share: one started by hand, or under a host without file tools.

Such a dream shares no cache with a conversation. Its tools have a fork's permissions: they read inside the project, search transcripts
narrowly, and write only the copy of the memory directory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ...conversation.request import Prompt
from ...core.blocks import Wire, text
from ...core.settings.resolution import Settings
from ...fork.handover import Handover
from ...fork.tool_runner import ToolRunner, tool_runner_for
from ...memory.instructions import memory_instructions
from ...memory.store.scopes import MemoryLocation
from ...tools.permissions.rules import read_rules
from ...tools.registry import builtin_tools
from ...tools.tool import Tool, definition

# Fits a long memory, and every known model can produce that much.
MAX_TOKENS = 8_000
# What the directive names. Under another program's loop a dream runs no commands.
FILE_TOOLS = ("Read", "Write", "Edit", "Grep", "Glob")


def file_tools() -> tuple[Tool, ...]:
    return tuple(tool for tool in builtin_tools() if tool.name in FILE_TOOLS)


def own_handover(
    model: str, ttl: str | None, tools: Sequence[Tool], place: MemoryLocation, settings: Settings, system: Sequence[Wire] = ()
) -> Handover:
    """Return a request without messages: the system prompt with the memory section, and the tools."""
    section = memory_instructions(
        place=place,
        mode=settings.memory_mode["private"],
        tools=[tool.name for tool in tools],
        index=False,
        past=settings.past_search,
        transcripts=None,
        extra=settings.extra_guidelines,
    )
    blocks = [*system, text(section).wire] if section.strip() else list(system)
    prompt = Prompt(model, MAX_TOKENS, blocks, [definition(tool) for tool in tools], {}, ttl)
    return Handover(prompt.head, (), {}, prompt.base, 0, b"", ttl, broken="branch")


def own_tool_runner(
    tools: Sequence[Tool],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    home: Path | None,
    place: MemoryLocation,
    settings: Settings,
) -> ToolRunner:
    rules = read_rules(settings.permissions)
    return tool_runner_for(
        tools,
        cwd=cwd,
        environ=environ,
        home=home,
        memory_dir=place.path,
        mode=lambda: "read-only",  # a fork's permissions apply: nobody is asked
        rules=lambda: rules,
        readable=(place.team,) if place.team is not None else (),
    )
