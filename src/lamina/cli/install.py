"""`lamina install` and `lamina uninstall`: plug Lamina into another coding agent, and take it out again."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from . import options
from .console import print_result

if TYPE_CHECKING:
    from ..maintenance.install.file_change import AgentReport

AGENTS = ("claude-code", "codex", "cursor", "gemini", "opencode", "vscode")
_agent = click.Choice(AGENTS)
_dry_run = click.option("--dry-run", is_flag=True, help="Show what would be done and change nothing.")
WORDS = {"written": "write", "removed": "remove", "unchanged": "leave unchanged", "kept": "keep"}


@click.command("install")
@click.argument("agent", metavar="AGENT", type=_agent, required=False)
@click.option("--list", "listing", is_flag=True, help="List the agents and whether Lamina is installed in them.")
@_dry_run
@options.as_json
@options.only_for_user
def install_command(agent: str | None, listing: bool, dry_run: bool, as_json: bool) -> None:
    """Plug Lamina into AGENT: claude-code or codex (memory, recall and hooks), cursor, gemini, opencode or vscode (memory).

    The agent's own configuration is kept, and lamina uninstall restores it. Run this again after an upgrade.
    """
    if listing:
        _list(as_json)
        return
    if agent is None:
        raise click.UsageError(f"Name an agent: {', '.join(AGENTS)}. --list shows where Lamina is installed.")
    _report(_functions(agent).install(os.environ, dry_run=dry_run), as_json)


@click.command("uninstall")
@click.argument("agent", metavar="AGENT", type=_agent)
@_dry_run
@options.as_json
@options.only_for_user
def uninstall_command(agent: str, dry_run: bool, as_json: bool) -> None:
    """Take Lamina out of AGENT. Memories and sessions stay.

    Only Lamina's own entries and files are removed. Your additions are kept and listed.
    """
    _report(_functions(agent).uninstall(os.environ, dry_run=dry_run), as_json)


class _Functions(NamedTuple):
    install: Callable[..., AgentReport]
    uninstall: Callable[..., AgentReport]
    state: Callable[..., str]
    folder: Callable[..., Path]


def _functions(agent: str) -> _Functions:
    from ..maintenance.install import claude_code, codex, mcp_agents

    own = {"claude-code": claude_code, "codex": codex}.get(agent)
    if own is not None:
        return _Functions(own.install, own.uninstall, own.state, own.folder)
    return _Functions(
        partial(mcp_agents.install, agent),
        partial(mcp_agents.uninstall, agent),
        partial(mcp_agents.state, agent),
        partial(mcp_agents.folder, agent),
    )


def _list(as_json: bool) -> None:
    rows = [
        {"agent": agent, "state": found.state(os.environ), "path": str(found.folder(os.environ))}
        for agent, found in ((name, _functions(name)) for name in AGENTS)
    ]
    print_result(rows, [f"{row['agent']:<12} {row['state']:<14} {row['path']}" for row in rows], as_json=as_json)


def _report(done: AgentReport, as_json: bool) -> None:
    value: dict[str, Any] = {**done._asdict(), "changes": [change._asdict() for change in done.changes]}
    lines = []
    for change in done.changes:
        word = f"would {WORDS[change.action]}" if done.dry_run else change.action
        lines.append(f"{word:<10} {change.path}" + (f"  ({change.about})" if change.about else ""))
    print_result(value, [*lines, *done.notes], as_json=as_json)
