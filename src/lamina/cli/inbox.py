"""`lamina inbox`: review pending memory changes, and recent ones that MCP clients made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import completion, options
from .console import minute, notice, print_result, sentence, terminal_width, utc_time, wrapped
from .options import CommandGroup, Reported, agent_option, only_for_user, open_memory, with_memory

if TYPE_CHECKING:
    from ..memory.memory import Memory
    from ..memory.store.change_sets import ClientChange
    from ..memory.store.modes import Proposal


@click.group("inbox", cls=CommandGroup, invoke_without_command=True)
@agent_option
@options.cwd()
@options.as_json
@click.pass_context
def inbox_command(ctx: click.Context, cwd: Path, as_json: bool) -> None:
    """Review pending memory changes, shown as diffs, and recent changes by MCP clients."""
    if ctx.invoked_subcommand is not None:
        # Options given before the subcommand apply to it too.
        ctx.default_map = {name: {"cwd": cwd, "as_json": as_json} for name in ("accept", "reject", "undo")}
        return
    with open_memory(cwd, read_only=True) as memory:
        waiting, recent = memory.waiting(), memory.recent_client_changes()
        rows = [*map(_row, waiting), *(_recent_row(memory, one) for one in recent)]
        agent = options.agent_of(ctx)
        call = f"lamina inbox --agent {agent}" if agent else "lamina inbox"
        lines = [*(_shown(one, call) for one in waiting), *(_recent_lines(one, call) for one in recent)]
        print_result(rows, lines, as_json=as_json, none="No pending changes.")


def _row(one: Proposal) -> dict[str, Any]:
    """Return a proposal for --json: `who` proposed it, `why`, in which session or dream, and why it `waits`."""
    part = {"who": one.why.who, "client": one.why.client or None, "why": one.why.why, "waits": one.waits or None}
    part |= {"session_id": one.why.session, "dream": one.why.dream, "diff": one.diff}
    return {"state": "waiting", "id": one.id, "name": one.name, "action": one.action, "time": utc_time(one.time), **part}


def _recent_row(memory: Memory, one: ClientChange) -> dict[str, Any]:
    """Return a change that is in use already, for --json, with the keys of a proposal."""
    part = {"who": "agent", "client": one.client, "why": None, "waits": None, "session_id": None, "dream": None}
    known = {"state": "recent", "id": one.id, "name": one.change.name, "action": "save", "time": utc_time(one.time)}
    return known | part | {"diff": memory.diff(one.id)}


def _recent_lines(one: ClientChange, call: str) -> str:
    verb = "Changed" if one.change.did == "changed" else "New"
    about = f"Saved {minute(one.time)} by {one.client} over MCP. It is in use."
    return "\n".join([f"{one.id}  {verb}: {one.change.name}", f"  {about}", f"  Undo: {call} undo {one.id}", ""])


def _shown(one: Proposal, call: str) -> str:
    verb = "Remove" if one.action == "remove" else "Save" if not one.base else "Change"
    return "\n".join(
        [
            f"{one.id}  {verb} {one.name}",
            wrapped(_part_of(one), "  ", width=terminal_width()),
            *([wrapped(f"Waits: {sentence(one.waits)}", "  ", width=terminal_width())] if one.waits else []),
            f"  Accept: {call} accept {one.id}",
            f"  Reject: {call} reject {one.id}",
            "",
            one.diff.rstrip("\n"),
            "",
        ]
    )


def _part_of(one: Proposal) -> str:
    """Describe who proposed the change, when, as part of what, and why."""
    said = one.why
    dream = f" {said.dream}" if said.who == "dream" and said.dream else ""
    session = f" in session {said.session[:8]}" if said.session else ""
    who = f"{said.client} over MCP" if said.client else said.who
    return f"Proposed {minute(one.time)} by {who}{dream}{session}" + (
        f": {sentence(said.why)}" if said.why and not said.client else "."
    )


@inbox_command.command("accept")
@click.argument("proposal", shell_complete=completion.proposals)
@with_memory
@only_for_user
def accept_command(memory: Memory, proposal: str) -> Reported:
    """Accept a pending change."""
    done = memory.accept(proposal)
    if not isinstance(done, bool) and done.unfinished:
        notice(done.unfinished)
    return {"accepted": proposal}, f"Accepted {proposal}."


@inbox_command.command("reject")
@click.argument("proposal", shell_complete=completion.proposals)
@with_memory
@only_for_user
def reject_command(memory: Memory, proposal: str) -> Reported:
    """Reject a pending change; memory stays as it is."""
    if not memory.reject(proposal):
        raise click.UsageError(f"Pending change {proposal!r} not found. Run `lamina inbox` to see the ids.")
    return {"rejected": proposal}, f"Rejected {proposal}."


@inbox_command.command("undo")
@click.argument("change")
@with_memory
@only_for_user
def undo_command(memory: Memory, change: str) -> Reported:
    """Take back a recent change by an MCP client."""
    found = next((one for one in memory.recent_client_changes() if one.id == change), None)
    if found is None:
        raise click.UsageError(f"Recent change {change!r} not found. Run `lamina inbox` to see the ids.")
    done = memory.undo(*found.acts)
    if done.left:
        raise click.ClickException(done.sentences[0])
    return {"undone": change}, f"Took back the change of {found.change.name} by {found.client}."
