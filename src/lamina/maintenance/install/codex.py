"""Lamina in Codex: a table for the MCP server in config.toml, a section in AGENTS.md, and entries in hooks.json.

All lie in `~/.codex`, or CODEX_HOME. Each is marked, so that only Lamina's part is changed and removed; the rest of a file keeps its bytes.
Codex runs a hook only once its user has trusted it. Lamina never writes that trust.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.errors import DiskError, InputError, UsageError
from ...core.prompt_files import prompt_text
from ...disk.home.agent_homes import agent_homes
from .claude_code import TOOL_SECONDS, lamina_command
from .file_change import AgentReport, change_files, read_file, remove_empty
from .hook_entries import COMMAND_SECONDS, guarded_command, holds_entries, with_entries, without_entries
from .marked_section import MARKDOWN, TOML, MarkStyle, holds_section, with_section, without_section

NAME = "codex"
CONFIG, INSTRUCTIONS, HOOKS = "config.toml", "AGENTS.md", "hooks.json"
OVERRIDE = "AGENTS.override.md"
EVENTS = ("SessionStart", "UserPromptSubmit", "Stop")
TRUST = "Codex runs hooks only once you trust them: start codex and confirm them with /hooks. Lamina does not do that for you."


def folder(environ: Mapping[str, str]) -> Path:
    home = agent_homes(environ).get("codex")
    if home is None:
        raise UsageError("No home directory found. Set HOME or CODEX_HOME.")
    return home


def install(environ: Mapping[str, str], *, dry_run: bool = False) -> AgentReport:
    home = folder(environ)
    paths = {name: home / name for name in (CONFIG, INSTRUCTIONS, HOOKS)}
    plans = {
        CONFIG: ("the MCP server", lambda old: _with_table(old, str(paths[CONFIG]))),
        INSTRUCTIONS: (
            "when to search and save",
            lambda old: with_section(
                _text(old, str(paths[INSTRUCTIONS])), _section(), MARKDOWN, str(paths[INSTRUCTIONS])
            ).encode(),
        ),
        HOOKS: ("recall and extraction", lambda old: with_entries(old, hook_groups(), str(paths[HOOKS]))),
    }
    changes = change_files({paths[name]: plan for name, plan in plans.items()}, dry_run=dry_run, environ=environ)
    hidden = (f"{home / OVERRIDE} exists, so Codex does not read {INSTRUCTIONS}.",) if (home / OVERRIDE).is_file() else ()
    return AgentReport(NAME, changes, (TRUST, *hidden, "Remove it with: lamina uninstall codex"), dry_run)


def uninstall(environ: Mapping[str, str], *, dry_run: bool = False) -> AgentReport:
    home = folder(environ)
    plans = {
        CONFIG: lambda old: _without(old, TOML, str(home / CONFIG)),
        INSTRUCTIONS: lambda old: _without(old, MARKDOWN, str(home / INSTRUCTIONS)),
        HOOKS: lambda old: without_entries(old, str(home / HOOKS)),
    }
    changes = change_files({home / name: ("", plan) for name, plan in plans.items()}, dry_run=dry_run, environ=environ)
    found = tuple(change for change in changes if change.action != "unchanged")
    remove_empty([home] if found else [], dry_run=dry_run)
    return AgentReport(NAME, found, () if found else ("Lamina is not installed in Codex.",), dry_run)


def state(environ: Mapping[str, str]) -> str:
    home = folder(environ)
    try:
        config = _text(read_file(home / CONFIG), CONFIG)
        parts = [
            config is not None and holds_section(config, TOML),
            holds_section(_text(read_file(home / INSTRUCTIONS), INSTRUCTIONS) or "", MARKDOWN),
            holds_entries(read_file(home / HOOKS), HOOKS),
        ]
        if not any(parts):
            return "not installed"
        changes = install(environ, dry_run=True).changes
    except (InputError, DiskError) as error:
        return f"broken: {error}"
    return "installed" if all(change.action == "unchanged" for change in changes) else "out of date"


def _text(data: bytes | None, path: str) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        raise InputError(path, "is not UTF-8, so nothing was changed", "correct it, then try again") from None


def _section() -> str:
    return prompt_text(__file__, "agents_md")


def hook_groups() -> dict[str, list[dict[str, Any]]]:
    def command(event: str) -> dict[str, Any]:
        words = guarded_command(lamina_command("hook", event, "--agent", NAME))
        return {"hooks": [{"type": "command", "command": words, "timeout": COMMAND_SECONDS}]}

    return {event: [command(event)] for event in EVENTS}


# The table


def _with_table(old: bytes | None, path: str) -> bytes:
    text = _text(old, path)
    before = _parsed(text or "", path)
    if text is None or not holds_section(text, TOML):
        _refuse_other(before, path)
    new = with_section(text, _table(), TOML, path)
    if _rest(_parsed(new, path)) != _rest(before) or not _has_ours(_parsed(new, path)):
        raise InputError(path, "the table could not be added safely, so nothing was changed", "add [mcp_servers.lamina] by hand")
    return new.encode()


def _without(old: bytes | None, style: MarkStyle, path: str) -> bytes | None:
    text = _text(old, path)
    if text is None:
        return None
    new = without_section(text, style, path)
    if style is TOML and new is not None and new != text:
        after = _parsed(new, path)
        if _rest(after) != _rest(_parsed(text, path)) or _has_ours(after):
            raise InputError(path, "other lines set mcp_servers.lamina too, so nothing was changed", "remove them by hand")
    return new.encode() if new is not None else None


def _table() -> str:
    program, *arguments = lamina_command("mcp")
    listed = ", ".join(map(_quoted, arguments))
    lines = (
        "[mcp_servers.lamina]",
        f"command = {_quoted(program)}",
        f"args = [{listed}]",
        f"tool_timeout_sec = {TOOL_SECONDS}",
        "# `lamina.memoryMode` decides whether a change of memory waits for you in `lamina inbox`.",
        'default_tools_approval_mode = "approve"',
    )
    return "\n".join(lines)


def _quoted(text: str) -> str:
    """Return a TOML string."""
    return '"' + "".join(f"\\u{ord(char):04x}" if char in '"\\' or ord(char) < 32 else char for char in text) + '"'


def _parsed(text: str, path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(path, f"is not valid TOML ({error}), so nothing was changed", "correct it, then try again") from None


def _servers(document: dict[str, Any]) -> dict[str, Any]:
    servers = document.get("mcp_servers")
    return servers if isinstance(servers, dict) else {}


def _has_ours(document: dict[str, Any]) -> bool:
    return "lamina" in _servers(document)


def _refuse_other(document: dict[str, Any], path: str) -> None:
    if _has_ours(document):
        raise InputError(
            path, "already has a server called lamina, so nothing was changed", "remove it with `codex mcp remove lamina`"
        )


def _rest(document: dict[str, Any]) -> dict[str, Any]:
    """Return everything but Lamina's table."""
    others = {name: entry for name, entry in _servers(document).items() if name != "lamina"}
    rest = {name: value for name, value in document.items() if name != "mcp_servers"}
    return {**rest, "mcp_servers": others} if others else rest
