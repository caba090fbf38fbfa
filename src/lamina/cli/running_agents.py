"""Agents that work in the background of open sessions, as `lamina agents` shows them; and a message from the command line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import click

from .safe_text import document, printable
from .start import home_of

# How the command line is called where a message tells who sent it.
SENDER = "command-line"


class AtWork(NamedTuple):
    session: str
    state: dict[str, Any]


def at_work(cwd: Path, home: Path | None) -> list[AtWork]:
    """Of the sessions of this project that are open now; what a session that crashed wrote counts for nothing."""
    if home is None:
        return []
    from ..disk.locks.lock_file import live_holder
    from ..disk.paths.project import slug
    from ..disk.session_files.agent_states import FILE, read_states
    from ..disk.transcripts.store import lock_path

    found: list[AtWork] = []
    for file in sorted((home / "projects" / slug(cwd)).glob(f"*/{FILE}")):
        running = [state for state in read_states(file.parent) if state.get("status") == "running"]
        if running and live_holder(lock_path(file.parent.with_suffix(".jsonl"))) is not None:
            found += [AtWork(file.parent.name, state) for state in running]
    return found


def show_at_work(found: list[AtWork]) -> None:
    from .columns import show

    rows = [
        (
            _text(one, "id"),
            one.session[:8],
            _text(one, "type"),
            _text(one, "description"),
            _text(one, "summary") or "not known yet",
        )
        for one in found
    ]
    show(("agent", "session", "type", "task", "doing"), rows)


def rows_of(found: list[AtWork]) -> list[dict[str, Any]]:
    names = ("id", "type", "description", "status", "summary", "seconds", "calls")
    return [{"session_id": one.session, **{name: one.state.get(name) for name in names}} for one in found]


def _text(one: AtWork, name: str) -> str:
    return printable(str(one.state.get(name) or ""))


@click.command("send")
@click.argument("name")
@click.argument("text")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def send_command(name: str, text: str, as_json: bool) -> None:
    """Put TEXT into the mailbox NAME or NAME@TEAM; its session reads it at its next round of tools."""
    from ..core.errors import InputError
    from ..disk.home.mailbox import DEFAULT_TEAM, deliver, members, read_address
    from ..disk.settings_files import load_settings
    from ..layers.l7_agents.messages import MOST_TEXT, AgentMessage, encode_message

    home = home_of()
    if home is None:
        raise click.UsageError("there is no home directory, so there are no mailboxes: set LAMINA_HOME.")
    if not text.strip() or len(text) > MOST_TEXT:
        raise click.UsageError(f"a message has words, and at most {MOST_TEXT:,} characters.")
    own = load_settings(cwd=Path.cwd(), environ=os.environ).mailbox
    try:
        team = read_address(own).team if own is not None else DEFAULT_TEAM
        to = read_address(name if "@" in name else f"{name}@{team}")
    except InputError as error:
        raise click.UsageError(str(error)) from error
    known = members(home, to.team)
    if to.name not in known:
        there = (
            f"there are: {', '.join(known)}"
            if known
            else "there is none yet: a session that lamina.mailbox names makes its own, and NAME@TEAM is one of another team"
        )
        raise click.UsageError(f"no mailbox is called {printable(to.name)!r} in the team {to.team}; {there}.")
    letter = AgentMessage.new(SENDER, text.strip())
    deliver(home, to, encode_message(letter))
    click.echo(
        document({"message": letter.id, "to": to.name, "team": to.team})
        if as_json
        else f"Sent to {to.name}@{to.team} ({letter.id})."
    )
