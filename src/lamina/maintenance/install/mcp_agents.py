"""Lamina in agents that take an MCP server from a JSON file: Cursor, Gemini CLI, opencode and VS Code, described as data.

Each gets the server in its user configuration and, where it reads instructions from a file of the user's, a section there. The rest of
every file keeps its bytes. None of these agents has hooks that Lamina uses.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from ...core.errors import DiskError, InputError, MissingExtra, UsageError
from ...core.prompt_files import prompt_text
from ...disk.settings_files import user_home
from .claude_code import lamina_command
from .file_change import AgentReport, change_files, read_file, remove_empty
from .json_member import read_text, with_member, without_member
from .marked_section import MARKDOWN, holds_section, with_section, without_section

SERVER = "lamina"
PAGE = "docs/other-agents.md"
# Editors start a server in a directory of their own, so the project is named by their variable.
_FOLDER = ("--cwd", "${workspaceFolder}")


class McpAgent(NamedTuple):
    title: str
    place: Literal["home", "config", "code"]  # the user's home, the directory for configurations, or that of VS Code
    folder: str
    config: str
    group: str  # the key of the servers
    shape: Literal["command and args", "stdio", "local"]
    arguments: tuple[str, ...] = ()
    instructions: str = ""  # the file of the user's instructions, if there is one
    note: str = ""


_BY_HAND = f"{{title}} keeps your instructions in its settings. {PAGE} has the section to paste there."
AGENTS: Mapping[str, McpAgent] = {
    "cursor": McpAgent("Cursor", "home", ".cursor", "mcp.json", "mcpServers", "command and args", _FOLDER, note=_BY_HAND),
    "gemini": McpAgent(
        "Gemini CLI",
        "home",
        ".gemini",
        "settings.json",
        "mcpServers",
        "command and args",
        instructions="GEMINI.md",
        note="Gemini CLI starts no MCP server in a folder that you do not trust, so Lamina works in trusted folders only.",
    ),
    "opencode": McpAgent("opencode", "config", "opencode", "opencode.jsonc", "mcp", "local", instructions="AGENTS.md"),
    "vscode": McpAgent("VS Code", "code", "User", "mcp.json", "servers", "stdio", _FOLDER, note=_BY_HAND),
}
Entry: TypeAlias = dict[str, Any]


def folder(name: str, environ: Mapping[str, str]) -> Path:
    """Return the directory of the agent's configuration."""
    agent, home = AGENTS[name], user_home(environ)
    if home is None:
        raise UsageError("No home directory found. Set HOME.")
    named = environ.get("XDG_CONFIG_HOME", "")
    config = Path(named) if os.path.isabs(named) else home / ".config"
    if agent.place == "code":
        if sys.platform == "darwin":
            config = home / "Library" / "Application Support"
        elif os.name == "nt":
            config = Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
        return config / "Code" / agent.folder
    return (home if agent.place == "home" else config) / agent.folder


def install(name: str, environ: Mapping[str, str], *, dry_run: bool = False) -> AgentReport:
    agent, home = AGENTS[name], folder(name, environ)
    config, text = home / agent.config, home / agent.instructions
    plans = {config: ("the MCP server", lambda old: _with_server(old, agent, str(config)))}
    if agent.instructions:
        section = prompt_text(__file__, "agents_md")
        plans[text] = (
            "when to search and save",
            lambda old: with_section(_decoded(old, str(text)), section, MARKDOWN, str(text)).encode(),
        )
    changes = change_files(plans, dry_run=dry_run, environ=environ)
    notes = (agent.note.format(title=agent.title),) if agent.note else ()
    return AgentReport(name, changes, (*notes, f"Restart {agent.title}. Remove it with: lamina uninstall {name}"), dry_run)


def uninstall(name: str, environ: Mapping[str, str], *, dry_run: bool = False) -> AgentReport:
    agent, home = AGENTS[name], folder(name, environ)
    config, text = home / agent.config, home / agent.instructions
    plans = {config: ("", lambda old: _without_server(old, agent, str(config)))}
    if agent.instructions:
        plans[text] = ("", lambda old: _without_section(old, str(text)))
    changes = change_files(plans, dry_run=dry_run, environ=environ)
    found = tuple(change for change in changes if change.action != "unchanged")
    if any(change.action == "removed" for change in found):
        person = user_home(environ)
        remove_empty([place for place in (home, *home.parents) if person in place.parents], dry_run=dry_run)
    return AgentReport(name, found, () if found else (f"Lamina is not installed in {agent.title}.",), dry_run)


def state(name: str, environ: Mapping[str, str]) -> str:
    agent, home = AGENTS[name], folder(name, environ)
    try:
        config = _decoded(read_file(home / agent.config), agent.config) or ""
        text = _decoded(read_file(home / agent.instructions), agent.instructions) if agent.instructions else None
        entry = _entry_in(read_text(config, agent.config), agent) if config.strip() else None
        if not _is_ours(entry) and not holds_section(text or "", MARKDOWN):
            return "not installed"
        changes = install(name, environ, dry_run=True).changes
    except (InputError, DiskError, MissingExtra) as error:
        return f"broken: {error}"
    return "installed" if all(change.action == "unchanged" for change in changes) else "out of date"


def _entry(agent: McpAgent) -> Entry:
    program, *arguments = lamina_command("mcp", *agent.arguments)
    if agent.shape == "local":
        return {"type": "local", "command": [program, *arguments]}
    kind = {"type": "stdio"} if agent.shape == "stdio" else {}
    return {**kind, "command": program, "args": arguments}


def _entry_in(document: Entry, agent: McpAgent) -> object:
    servers = document.get(agent.group)
    return servers.get(SERVER) if isinstance(servers, dict) else None


def _is_ours(entry: object) -> bool:
    if not isinstance(entry, dict):
        return False
    parts = (entry.get("command"), entry.get("args"))
    words = [word for part in parts for word in (part if isinstance(part, list) else [part])]
    return words[2:5] == lamina_command("mcp")[2:]


def _with_server(old: bytes | None, agent: McpAgent, path: str) -> bytes:
    text = _decoded(old, path)
    entry = _entry_in(read_text(text, path), agent) if text and text.strip() else None
    if entry is not None and not _is_ours(entry):
        raise InputError(path, "already has a server called lamina, so nothing was changed", "remove it, then try again")
    return with_member(text, agent.group, SERVER, _entry(agent), path).encode()


def _without_server(old: bytes | None, agent: McpAgent, path: str) -> bytes | None:
    text = _decoded(old, path)
    if text is None or not text.strip() or not _is_ours(_entry_in(read_text(text, path), agent)):
        return old
    new = without_member(text, agent.group, SERVER, path)
    return new.encode() if new is not None else None


def _without_section(old: bytes | None, path: str) -> bytes | None:
    text = _decoded(old, path)
    new = without_section(text, MARKDOWN, path) if text is not None else None
    return new.encode() if new is not None else None


def _decoded(data: bytes | None, path: str) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        raise InputError(path, "is not UTF-8, so nothing was changed", "correct it, then try again") from None
