"""The plugin for Claude Code: a folder that it loads at its next start, with hooks and the MCP server. No file of the user changes.

The folder is `skills/lamina` in Claude Code's directory (`~/.claude`, or CLAUDE_CONFIG_DIR). It is Lamina's if its plugin.json names
Lamina's authors; any other folder of that name is refused. Entries and files that the user added to it are kept.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ... import __version__
from ...core.errors import DiskError, InputError, MissingExtra, UsageError
from ...core.wording import counted
from ...disk.home.agent_homes import agent_homes
from ...disk.temp_files import is_temp
from .file_change import AgentReport, FileChange, change_file, read_file, remove_empty
from .hook_entries import read_object, with_entries, without_entries, write_object

NAME = "claude-code"
AUTHOR = "The Lamina authors"
PLUGIN, HOOKS, SERVERS = Path(".claude-plugin") / "plugin.json", Path("hooks") / "hooks.json", Path(".mcp.json")
SERVER = "mem"
# Seconds. A hook that takes longer is dropped, and the user has waited that long.
_CONTEXT, _QUICK, _END = 10, 5, 5
# What Claude Code fills into the input of a call, by field.
_SESSION = ("session_id", "transcript_path", "cwd", "agent_id")
# Only these shapes can be replaced; see mcp/hook_results.py.
_TOOLS = "Bash|Read|Grep|Glob|mcp__.*"
# How the names of the files begin that hold what the plugin replaced (mcp/hook_results.py).
SPILLED = "lamina-"


def folder(environ: Mapping[str, str]) -> Path:
    home = agent_homes(environ).get("claude-code")
    if home is None:
        raise UsageError("No home directory found. Set HOME or CLAUDE_CONFIG_DIR.")
    return home / "skills" / "lamina"


def install(environ: Mapping[str, str], *, dry_run: bool = False) -> AgentReport:
    """Write the plugin's folder. Files that are up to date stay untouched."""
    need_server()
    top = folder(environ)
    _refuse_foreign(top)
    plans = {
        PLUGIN: ("says what the plugin is", lambda _: write_object(_manifest())),
        HOOKS: ("recall, large results, compaction, extraction", lambda old: with_entries(old, hook_groups(), str(top / HOOKS))),
        SERVERS: ("the MCP server, which also answers hooks", lambda old: _with_server(old, str(top / SERVERS))),
    }
    changes = [change_file(top / file, plan, about, dry_run=dry_run, environ=environ) for file, (about, plan) in plans.items()]
    notes = ("Claude Code loads the plugin at its next start. Remove it with: lamina uninstall claude-code",)
    return AgentReport(NAME, tuple(changes), notes, dry_run)


def uninstall(environ: Mapping[str, str], *, dry_run: bool = False) -> AgentReport:
    """Remove the plugin's entries, its folder if nothing else is in it, and its data folder."""
    top = folder(environ)
    if not os.path.isdir(top):
        return AgentReport(NAME, (), ("The plugin is not installed.", *_spills(top.parents[1])), dry_run)
    _refuse_foreign(top)
    plans = {
        HOOKS: lambda old: without_entries(old, str(top / HOOKS)),
        SERVERS: lambda old: _without_server(old, str(top / SERVERS)),
        # Last: without it, the folder would no longer count as Lamina's if this is interrupted.
        PLUGIN: lambda _: None,
    }
    changes = [change_file(top / file, plan, "", dry_run=dry_run, environ=environ) for file, plan in plans.items()]
    data = top.parents[1] / "plugins" / "data" / "lamina-skills-dir"
    home = top.parents[1]
    remove_empty([top / "hooks", top / ".claude-plugin", top, top.parent, data, *data.parents[:2], home], dry_run=dry_run)
    gone = {change.path for change in changes if change.action != "kept"}
    changes += [FileChange(str(file), "kept", "yours") for file in _files(top) if str(file) not in gone]
    return AgentReport(NAME, tuple(changes), tuple(_spills(top.parents[1])), dry_run)


def state(environ: Mapping[str, str]) -> str:
    """Return the state of the plugin: not installed, installed, out of date, or not Lamina's."""
    top = folder(environ)
    if not os.path.isdir(top):
        return "not installed"
    try:
        _refuse_foreign(top)
        changes = install(environ, dry_run=True).changes
    except (InputError, DiskError):
        return "not Lamina's"
    except MissingExtra as error:
        return f"broken: {error}"
    return "installed" if all(change.action == "unchanged" for change in changes) else "out of date"


def is_installed(environ: Mapping[str, str]) -> bool:
    return "claude-code" in agent_homes(environ) and os.path.isfile(folder(environ) / PLUGIN)


def need_server() -> None:
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise MissingExtra("mcp", "mcp")


def _refuse_foreign(top: Path) -> None:
    if os.path.islink(top) or (os.path.exists(top) and not os.path.isdir(top)):
        raise InputError(str(top), "is not a folder", "move it away, then try again")
    # Another installation may run: it writes the manifest first, so whatever was listed before the manifest is read has one.
    listed = [file for file in _files(top) if not is_temp(file.name)]
    data = read_file(top / PLUGIN)
    if data is None and not listed:
        return
    found = read_object(data, str(top / PLUGIN))
    author = found.get("author")
    if found.get("name") != "lamina" or not isinstance(author, dict) or author.get("name") != AUTHOR:
        raise InputError(str(top), "was not made by Lamina, so nothing was changed", "move it away, then try again")


# The files


def _manifest() -> dict[str, Any]:
    about = "Memory across sessions: recall, extraction, and small previews of large tool results."
    return {"name": "lamina", "version": __version__, "description": about, "author": {"name": AUTHOR}}


def lamina_command(*arguments: str) -> list[str]:
    """Return the command that runs this installation of Lamina, whatever the directory holds it is started in."""
    return [sys.executable, "-P", "-m", "lamina", *arguments]


def hook_groups() -> dict[str, list[dict[str, Any]]]:
    """Return the hooks by event."""

    def command(event: str, seconds: int) -> dict[str, Any]:
        program, *arguments = lamina_command("hook", event)
        return {"type": "command", "command": program, "args": arguments, "timeout": seconds}

    def call(tool: str, *fields: str) -> dict[str, Any]:
        given = {name: f"${{{name}}}" for name in (*_SESSION, *fields)}
        return {"type": "mcp_tool", "server": f"plugin:lamina:{SERVER}", "tool": tool, "input": given, "timeout": _CONTEXT}

    return {
        "SessionStart": [{"matcher": "startup|clear|compact", "hooks": [command("SessionStart", _CONTEXT)]}],
        "UserPromptSubmit": [{"hooks": [call("hook_prompt", "prompt")]}],
        "PostToolUse": [{"matcher": _TOOLS, "hooks": [call("hook_result", "tool_name", "tool_use_id", "tool_response")]}],
        "PreCompact": [{"hooks": [command("PreCompact", _CONTEXT)]}],
        "Stop": [{"hooks": [call("hook_stop")]}],
        "SessionEnd": [{"hooks": [command("SessionEnd", _END)]}],
    }


def _with_server(old: bytes | None, path: str) -> bytes:
    document = read_object(old, path)
    program, *arguments = lamina_command("mcp", "--hooks", "claude-code")
    servers = document.get("mcpServers")
    entry = {"command": program, "args": arguments}
    return write_object({**document, "mcpServers": {**(servers if isinstance(servers, dict) else {}), SERVER: entry}}, old)


def _without_server(old: bytes | None, path: str) -> bytes | None:
    document = read_object(old, path)
    servers = document.get("mcpServers")
    others = {name: entry for name, entry in (servers if isinstance(servers, dict) else {}).items() if name != SERVER}
    left = {**document, "mcpServers": others}
    return write_object(left, old) if others or left.keys() - {"mcpServers"} else None


# What stays


def _files(top: Path) -> Iterator[Path]:
    for directory, _, names in os.walk(top):
        yield from (Path(directory) / name for name in sorted(names))


def _spills(home: Path) -> Iterator[str]:
    """Yield a sentence about the tool results that stay, because conversations point to them."""
    found = [file for file in home.glob(f"projects/*/*/tool-results/{SPILLED}*") if file.is_file()]
    if found:
        size = sum(file.stat().st_size for file in found)
        yield (
            f"{counted(len(found), 'tool result')} ({size / 1e6:,.1f} MB) stay in {home / 'projects'}: "
            f"conversations point to them. Their names begin with {SPILLED}."
        )
