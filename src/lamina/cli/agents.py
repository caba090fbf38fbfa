"""`lamina agents`: list the agent types available here and the running agents, and send a message to a session."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import InputError
from ..language.wording import shorten
from . import options
from .console import document, notice, print_result, print_table, printable
from .options import CommandGroup, find_home

if TYPE_CHECKING:
    from ..layers.l7_agents.types import Catalog


# The sender name of messages sent from the command line.
SENDER = "command-line"
NOBODY = ("No agents are running here. Use --all to include all directories.", "No agents are running.")
FIELDS = ("id", "name", "type", "description", "background", "status", "since", "doing", "summary", "calls")
SHOWN = ("session_id", "type", "status", "description")


def load_types(where: Path, home: Path | None) -> Catalog:
    from ..disk.home.trust import while_trusted
    from ..layers.l7_agents.types import load_agent_types

    if home is None:
        return load_agent_types(where, None)
    return while_trusted(home, where, lambda trusted: load_agent_types(where, home, trusted=trusted))


@click.group("agents", cls=CommandGroup, invoke_without_command=True)
@options.cwd("List the agent types of this directory.")
@click.option(
    "--running", is_flag=True, help="List only the agents at work in open sessions: what each is doing, and since when."
)
@click.option("--all", "everywhere", is_flag=True, help="With --running, include the sessions of all directories.")
@options.as_json
@click.pass_context
def agents_command(ctx: click.Context, cwd: Path, running: bool, everywhere: bool, as_json: bool) -> None:
    """List the agent types the Agent tool can start here, and report invalid agent files."""
    if ctx.invoked_subcommand is not None:
        ctx.default_map = {"send": {"as_json": as_json}}
        return
    if everywhere and not running:
        raise click.UsageError("--all needs --running: types belong to one directory.")
    found = find_running_agents(None if everywhere else cwd, find_home()) if running or not as_json else []
    if not running:
        _list_types(cwd, as_json)
        if found:
            click.echo("\nRunning:")
            print_running_agents(found)
    elif found and not as_json:
        print_running_agents(found)
    else:
        print_result(found, (), as_json=as_json, none=NOBODY[everywhere])


def _list_types(where: Path, as_json: bool) -> None:
    catalog = load_types(where, find_home())
    notice(*catalog.notices)
    if as_json:
        names = ("name", "description", "tools", "model", "memory", "source", "path")
        rows = [{name: getattr(kind, name) for name in names} | {"path": kind.path or None} for kind in catalog.kinds]
        click.echo(document(rows))
        return
    print_table(
        ("name", "from", "model", "tools", "memory", "description"),
        [
            (
                kind.name,
                kind.source,
                kind.model or "inherited",
                "all but Agent" if kind.tools is None else ", ".join(kind.tools) or "none",
                kind.memory or "none",
                kind.description,
            )
            for kind in catalog.kinds
        ],
    )


def find_running_agents(cwd: Path | None, home: Path | None) -> list[dict[str, Any]]:
    """Return the running agents of a project's open sessions, or of all. Entries left by crashed sessions are ignored."""
    from ..disk.locks.lock_file import live_holder
    from ..disk.paths.project import slug
    from ..disk.session_files.agent_states import FILE, read_states
    from ..disk.transcripts.store import lock_path

    found: list[dict[str, Any]] = []
    projects = home / "projects" if home is not None else Path()
    sessions = projects.glob("*/*/") if cwd is None else (projects / slug(cwd)).glob("*/")
    for session in sorted(sessions) if home is not None else ():
        files = [*session.glob(FILE), *session.glob(f"subagents/*/{FILE}")]  # the second: agents of agents
        running = [state for file in files for state in read_states(file.parent) if state.get("status") == "running"]
        if running and live_holder(lock_path(session.with_suffix(".jsonl"))) is not None:
            told = {"session_id": session.name, "project": session.parent.name}
            found += [{**told, **{name: state.get(name) for name in FIELDS}} for state in running]
    return [*found, *_running_members(cwd, home)] if home is not None else found


def _running_members(cwd: Path | None, home: Path) -> list[dict[str, Any]]:
    """Return the members of teams that run in this directory, or in all."""
    from ..core.errors import DiskError
    from ..disk.home.mailbox import MailboxAddress
    from ..disk.home.team_files import list_teams, read_team, see_member
    from ..disk.paths.project import slug

    found: list[dict[str, Any]] = []
    for name in list_teams(home):
        with suppress(DiskError):  # `lamina team` reports a damaged team
            team = read_team(home, name)
            for plan in team.members if cwd is None or str(cwd) == team.cwd else ():
                seen = see_member(home, MailboxAddress(plan.name, name))
                told = {"session_id": Path(seen.state.transcript).stem, "project": slug(Path(team.cwd)), "id": str(seen.owner)}
                told |= {"name": f"{plan.name}@{name}", "type": plan.type or "member", "description": plan.prompt}
                told |= {"status": seen.state.status, "since": seen.state.since, "doing": seen.state.doing}
                found += [dict.fromkeys(FIELDS) | {"background": True} | told] if seen.running else []
    return found


def print_running_agents(found: list[dict[str, Any]]) -> None:
    rows = []
    for one in found:
        session, kind, status, task = (str(one[name] or "") for name in SHOWN)
        doing = one["doing"] or one["summary"] or "starting"
        rows.append(
            (str(one["name"] or one["id"]), session[:8], kind, status, since_text(one["since"]), shorten(task, 60), str(doing))
        )
    print_table(("agent", "session", "type", "state", "since", "task", "doing"), rows)


def since_text(since: object) -> str:
    """Format a recorded time for a table; a time of today without its date."""
    try:
        then = datetime.fromisoformat(str(since)).astimezone()
    except ValueError:
        return "?"
    return then.strftime("%H:%M:%S" if then.date() == datetime.now().astimezone().date() else "%Y-%m-%d %H:%M")


@agents_command.command("send")
@click.argument("name")
@click.argument("text")
@options.reports
def send_command(name: str, text: str) -> options.Reported:
    """Send TEXT to the mailbox NAME or NAME@TEAM. Its session reads the message after its next tool calls."""
    from ..disk.home.mailbox import DEFAULT_TEAM, deliver, members, read_address
    from ..disk.settings_files import settings_in_force
    from ..layers.l7_agents.messages import MOST_TEXT, AgentMessage, encode_message

    home = find_home()
    if home is None:
        raise click.UsageError("No home directory found, so there are no mailboxes. Set LAMINA_HOME.")
    if not text.strip() or len(text) > MOST_TEXT:
        raise click.UsageError(f"TEXT must not be empty and may have at most {MOST_TEXT:,} characters.")
    own = settings_in_force(Path.cwd()).mailbox
    try:
        team = read_address(own).team if own is not None else DEFAULT_TEAM
        to = read_address(name if "@" in name else f"{name}@{team}")
    except InputError as error:
        raise click.UsageError(str(error)) from error
    known = members(home, to.team)
    if to.name not in known:
        there = (
            f"Available: {', '.join(known)}"
            if known
            else "The team has no mailboxes yet. Set lamina.mailbox to give a session one, or use NAME@TEAM for another team"
        )
        raise click.UsageError(f"No mailbox {printable(to.name)!r} in team {to.team}. {there}.")
    letter = AgentMessage.new(SENDER, text.strip())
    deliver(home, to, encode_message(letter))
    told = {"message": letter.id, "to": to.name, "team": to.team}
    return told, f"Sent to {to.name}@{to.team} ({letter.id})."
