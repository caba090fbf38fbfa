"""`lamina inbox`: review pending memory changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import completion, options
from .console import minute, notice, print_result, sentence, terminal_width, utc_time, wrapped
from .options import CommandGroup, Reported, agent_option, only_for_user, open_memory, with_memory

if TYPE_CHECKING:
    from ..memory.memory import Memory
    from ..memory.store.modes import Proposal


@click.group("inbox", cls=CommandGroup, invoke_without_command=True)
@agent_option
@options.cwd()
@options.as_json
@click.pass_context
def inbox_command(ctx: click.Context, cwd: Path, as_json: bool) -> None:
    """Review pending memory changes, shown as diffs."""
    if ctx.invoked_subcommand is not None:
        # Options given before the subcommand apply to it too.
        ctx.default_map = {name: {"cwd": cwd, "as_json": as_json} for name in ("accept", "reject")}
        return
    with open_memory(cwd, read_only=True) as memory:
        waiting = memory.waiting()
        rows = [_row(one) for one in waiting]
        agent = options.agent_of(ctx)
        call = f"lamina inbox --agent {agent}" if agent else "lamina inbox"
        print_result(rows, (_shown(one, call) for one in waiting), as_json=as_json, none="No pending changes.")


def _row(one: Proposal) -> dict[str, Any]:
    """Return a proposal for --json: `who` proposed it, `why`, and in which session or dream."""
    part = {"who": one.why.who, "why": one.why.why, "session_id": one.why.session, "dream": one.why.dream}
    return {"id": one.id, "name": one.name, "action": one.action, "time": utc_time(one.time), **part, "diff": one.diff}


def _shown(one: Proposal, call: str) -> str:
    verb = "Remove" if one.action == "remove" else "Save" if not one.base else "Change"
    return "\n".join(
        [
            f"{one.id}  {verb} {one.name}",
            wrapped(_part_of(one), "  ", width=terminal_width()),
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
    return f"Proposed {minute(one.time)} by {said.who}{dream}{session}" + (f": {sentence(said.why)}" if said.why else ".")


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
