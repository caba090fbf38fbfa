"""The plugin for Claude Code: a folder that it loads at its next start, with hooks and the MCP server. No file of the user changes.

The folder is `skills/lamina` in Claude Code's directory (`~/.claude`, or CLAUDE_CONFIG_DIR). It is Lamina's if its plugin.json names
Lamina's authors; another plugin or skill of that name is refused. Entries and files that the user added to it are kept and listed, and
an installation leaves them alone. Claude Code makes a data folder for the plugin, into which Lamina writes nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ... import __version__
from ...core.errors import DiskError, InputError, UsageError
from ...disk.home.agent_homes import agent_homes
from ...disk.prompt_claim import CLIENT, SHELL_PATH
from ...language.wording import counted
from .file_change import AgentReport, InstallChange, change_files, read_file, remove_empty
from .hook_entries import CALL_SECONDS, COMMAND_SECONDS, guarded_command, read_object, with_entries, without_entries, write_object

NAME = "claude-code"
AUTHOR = "The Lamina authors"
PLUGIN, HOOKS, SERVERS = Path(".claude-plugin") / "plugin.json", Path("hooks") / "hooks.json", Path(".mcp.json")
SERVER = "mem"
# Seconds that a call by the model may take. Agents wait for minutes by themselves; the first search in thousands of sessions takes ten.
TOOL_SECONDS = 30
# What Claude Code fills into the input of a call, by field.
_SESSION = ("session_id", "transcript_path", "cwd", "agent_id")
# Only these shapes can be replaced; see mcp/hook_results.py.
_TOOLS = "Bash|Read|Grep|Glob|mcp__.*"
# Removes the claim of a process that had the same id.
_FRESH = f"rm -f {SHELL_PATH}; "
# Leaves the command of a prompt to the server, if that is asked within 0.3 s. See disk/prompt_claim.py.
_UNLESS_ASKED = f"for i in 1 2 3 4 5 6; do [ -h {SHELL_PATH} ] && exit 0; sleep 0.05; done; {CLIENT}=$PPID "
# How the names of the files begin that hold what the plugin replaced (mcp/hook_results.py).
SPILLED = "lamina-"


def folder(environ: Mapping[str, str]) -> Path:
    home = agent_homes(environ).get("claude-code")
    if home is None:
        raise UsageError("No home directory found. Set HOME or CLAUDE_CONFIG_DIR.")
    return home / "skills" / "lamina"


def install(environ: Mapping[str, str], *, dry_run: bool = False) -> AgentReport:
    """Write the plugin's folder. Files that are up to date stay untouched."""
    top = folder(environ)
    _refuse_foreign(top)
    plans = {
        PLUGIN: ("describes the plugin", lambda _: write_object(_manifest())),
        HOOKS: ("recall, large results, compaction, extraction", lambda old: with_entries(old, hook_groups(), str(top / HOOKS))),
        SERVERS: ("the MCP server, which also answers hooks", lambda old: _with_server(old, str(top / SERVERS))),
    }
    changes = change_files({top / file: plan for file, plan in plans.items()}, dry_run=dry_run, environ=environ)
    notes = ("Claude Code loads the plugin at its next start. Remove it with: lamina uninstall claude-code",)
    return AgentReport(NAME, changes, notes, dry_run)


def uninstall(environ: Mapping[str, str], *, dry_run: bool = False) -> AgentReport:
    """Remove the plugin's entries, its folder if nothing else is in it, and its data folder."""
    top = folder(environ)
    home = top.parents[1]
    data = home / "plugins" / "data" / "lamina-skills-dir"
    _refuse_foreign(top)
    installed = os.path.isfile(top / PLUGIN)
    plans = {
        HOOKS: lambda old: without_entries(old, str(top / HOOKS)),
        SERVERS: lambda old: _without_server(old, str(top / SERVERS)),
        # Last: without it, the folder would no longer count as Lamina's if this is interrupted.
        PLUGIN: lambda _: None,
    }
    files = {top / file: ("", plan) for file, plan in plans.items() if installed}
    changes = change_files(files, dry_run=dry_run, environ=environ)
    changes += tuple(left for directory in (top, data) for left in _remove_folder(directory, changes, dry_run=dry_run))
    if any(change.action == "removed" for change in changes):
        remove_empty([top.parent, *data.parents[:2], home], dry_run=dry_run)
    notes = () if installed else ("The plugin is not installed.",)
    return AgentReport(NAME, changes, (*notes, *_spills(home)), dry_run)


def _remove_folder(top: Path, changes: Iterable[InstallChange], *, dry_run: bool) -> list[InstallChange]:
    """Remove a folder, or what is empty in it; report the files that are not among the changes."""
    if not os.path.isdir(top):
        return []
    told = {change.path for change in changes}
    gone = {change.path for change in changes if change.action == "removed"}
    files = [str(file) for file in _files(top) if str(file) not in gone]
    remove_empty([Path(directory) for directory, _, _ in os.walk(top, topdown=False)], dry_run=dry_run)
    kept = [InstallChange(file, "kept", "yours") for file in files if file not in told]
    return kept if files else [InstallChange(str(top), "removed")]


def state(environ: Mapping[str, str]) -> str:
    """Return the state of the plugin: not installed, installed, out of date, or not Lamina's."""
    top = folder(environ)
    try:
        _refuse_foreign(top)
        if not is_installed(environ):
            return "not installed"
        changes = install(environ, dry_run=True).changes
    except (InputError, DiskError):
        return "not Lamina's"
    return "installed" if all(change.action == "unchanged" for change in changes) else "out of date"


def is_installed(environ: Mapping[str, str]) -> bool:
    return "claude-code" in agent_homes(environ) and os.path.isfile(folder(environ) / PLUGIN)


def _refuse_foreign(top: Path) -> None:
    if os.path.islink(top) or (os.path.exists(top) and not os.path.isdir(top)):
        raise InputError(str(top), "is not a folder", "move it away, then try again")
    data = read_file(top / PLUGIN)
    if data is None and not os.path.lexists(top / "SKILL.md"):
        return  # files that stayed after an uninstallation
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

    def command(event: str, first: str = "") -> dict[str, Any]:
        words = lamina_command("hook", event)
        return {"type": "command", "command": guarded_command(words, first), "timeout": COMMAND_SECONDS}

    def call(tool: str, *fields: str) -> dict[str, Any]:
        given = {name: f"${{{name}}}" for name in (*_SESSION, *fields)}
        return {"type": "mcp_tool", "server": f"plugin:lamina:{SERVER}", "tool": tool, "input": given, "timeout": CALL_SECONDS}

    return {
        "SessionStart": [{"matcher": "startup|clear|compact", "hooks": [command("SessionStart", _FRESH)]}],
        "UserPromptSubmit": [{"hooks": [call("hook_prompt", "prompt"), command("UserPromptSubmit", _UNLESS_ASKED)]}],
        "PostToolUse": [{"matcher": _TOOLS, "hooks": [call("hook_result", "tool_name", "tool_use_id", "tool_response")]}],
        "PreCompact": [{"hooks": [command("PreCompact")]}],
        "Stop": [{"hooks": [call("hook_stop")]}],
        "SessionEnd": [{"hooks": [command("SessionEnd")]}],
    }


def _with_server(old: bytes | None, path: str) -> bytes:
    document = read_object(old, path)
    program, *arguments = lamina_command("mcp", "--hooks", "claude-code")
    servers = document.get("mcpServers")
    before = servers if isinstance(servers, dict) else {}
    if SERVER in before and not _is_ours(before[SERVER]):
        raise InputError(path, f"has another server named {SERVER}, so nothing was changed", "rename it, then try again")
    entry = {"command": program, "args": arguments, "timeout": TOOL_SECONDS * 1000}
    return write_object({**document, "mcpServers": {**before, SERVER: entry}}, old)


def _without_server(old: bytes | None, path: str) -> bytes | None:
    document = read_object(old, path)
    servers = document.get("mcpServers")
    if not isinstance(servers, dict) or not _is_ours(servers.get(SERVER)):
        return old
    others = {name: entry for name, entry in servers.items() if name != SERVER}
    left = {**document, "mcpServers": others}
    return write_object(left, old) if others or left.keys() - {"mcpServers"} else None


def _is_ours(entry: object) -> bool:
    arguments = entry.get("args") if isinstance(entry, dict) else None
    return isinstance(arguments, list) and arguments[1:4] == lamina_command("mcp")[2:]


# What stays


def _files(top: Path) -> Iterator[Path]:
    """Yield all files below, and links to directories."""
    for directory, inner, names in os.walk(top):
        links = [name for name in inner if os.path.islink(os.path.join(directory, name))]
        yield from (Path(directory) / name for name in sorted((*names, *links)))


def _spills(home: Path) -> Iterator[str]:
    """Yield a sentence about the tool results that stay, because conversations point to them."""
    found = [file for file in home.glob(f"projects/*/*/tool-results/{SPILLED}*") if file.is_file()]
    if found:
        size = sum(file.stat().st_size for file in found)
        yield (
            f"{counted(len(found), 'tool result')} ({size / 1e6:,.1f} MB) stay in {home / 'projects'}: "
            f"conversations point to them. Their names begin with {SPILLED}."
        )
