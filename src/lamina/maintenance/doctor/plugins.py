"""Check Lamina inside other agents: where it is installed, and which program writes memories there (U5). Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ...memory.auto_memory import auto_memory
from ..install import claude_code, codex, mcp_agents
from .finding import Finding


def check_plugins(cwd: Path, environ: Mapping[str, str]) -> Iterator[Finding]:
    if claude_code.is_installed(environ):
        top, found = claude_code.folder(environ), auto_memory(cwd, environ)
        yield from _state("Claude Code", "claude-code", claude_code.state(environ), str(top))
        if found.on:
            text = f"Claude Code writes the memories here: its auto memory is on ({found.decided_by}). Lamina searches and repairs them."
        else:
            text = f"Lamina writes the memories here: Claude Code's auto memory is off ({found.decided_by})."
        yield Finding("machine", "plugin", text, str(found.path) if found.on and found.path is not None else "")
    if (state := codex.state(environ)) != "not installed":
        yield from _state("Codex", "codex", state, str(codex.folder(environ)))
    for name, agent in mcp_agents.AGENTS.items():
        if (state := mcp_agents.state(name, environ)) != "not installed":
            yield from _state(agent.title, name, state, str(mcp_agents.folder(name, environ)))


def _state(name: str, agent: str, state: str, path: str) -> Iterator[Finding]:
    if state == "installed":
        yield Finding("machine", "plugin", f"Lamina is installed in {name}.", path)
    else:
        advice = f"Run `lamina install {agent}` again."
        yield Finding("machine", "plugin-outdated", f"Lamina in {name} is {state}.", path, advice=advice)
