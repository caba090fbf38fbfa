"""Check Lamina inside other agents: where it is installed, which program writes memories there, and whether its hooks were answered in
time. Changes nothing.

Claude Code records in its transcripts which hooks it skipped or gave up. Codex records nothing of the kind.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...disk.regular_file import open_regular
from ...language.wording import counted
from ...memory.auto_memory import auto_memory
from ..install import claude_code, codex, mcp_agents
from .finding import Finding

# The newest sessions, and the end of each: what matters is whether hooks work now.
MOST_SESSIONS = 20
MOST_READ = 4 << 20
# A command of Lamina takes about 0.2 s.
SLOW_MS = 1_000


def check_plugins(cwd: Path, environ: Mapping[str, str]) -> Iterator[Finding]:
    if claude_code.is_installed(environ):
        top, found = claude_code.folder(environ), auto_memory(cwd, environ)
        yield from _state("Claude Code", "claude-code", claude_code.state(environ), str(top))
        if found.on:
            text = f"Claude Code writes the memories here: its auto memory is on ({found.decided_by}). Lamina searches and repairs them."
        else:
            text = f"Lamina writes the memories here: Claude Code's auto memory is off ({found.decided_by})."
        yield Finding("machine", "plugin", text, str(found.path) if found.on and found.path is not None else "")
        yield from _hook_trouble(top.parents[1] / "projects")
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


def _hook_trouble(projects: Path) -> Iterator[Finding]:
    """Yield a finding if Claude Code skipped or gave up hooks of Lamina, or waited long for one."""
    newest = sorted(((_modified(path), path) for path in projects.glob("*/*.jsonl")), reverse=True)[:MOST_SESSIONS]
    troubles = [trouble for _, path in newest if (trouble := Counter(_troubles(path)))]
    if not troubles:
        return
    total = sum(troubles, Counter[str]())
    told = ", ".join(f"{counted(count, 'hook')} {how}" for how, count in sorted(total.items()))
    text = f"{len(troubles)} of the last {counted(len(newest), 'session')} of Claude Code had trouble with Lamina: {told}."
    yield Finding("machine", "plugin-hooks", text, str(newest[0][1].parent.parent))


def _modified(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _troubles(transcript: Path) -> Iterator[str]:
    try:
        with open_regular(transcript) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_READ))
            lines = file.read(MOST_READ).split(b"\n")
    except OSError:
        return
    for line in lines:
        if b'"hook_' in line and (trouble := _trouble(line)):
            yield trouble


def _trouble(line: bytes) -> str:
    """Return what went wrong with a hook of Lamina, or nothing. A hook that the user interrupted has no time limit in its record."""
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    hook = record.get("attachment") if isinstance(record, dict) else None
    if not isinstance(hook, dict):
        return ""
    command = str(hook.get("command", ""))
    match hook.get("type"):
        case "hook_non_blocking_error" if "plugin:lamina:" in str(hook.get("stderr", "")):
            return "skipped"
        case "hook_cancelled" if hook.get("timedOut") is True and (not command or "lamina" in command):
            return "timed out"
        case "hook_success" if "-m lamina hook" in command and isinstance(hook.get("durationMs"), int):
            return "slow" if hook["durationMs"] > SLOW_MS else ""
        case _:
            return ""
