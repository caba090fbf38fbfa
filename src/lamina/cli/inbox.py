"""`lamina inbox`: proposals that wait for a yes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import completion, options
from .console import notice, print_result
from .group import CommandGroup
from .memory_access import agent_option, open_memory, with_memory
from .options import Reported

if TYPE_CHECKING:
    from ..memory.memory import Memory


@click.group("inbox", cls=CommandGroup, invoke_without_command=True)
@agent_option
@options.cwd()
@options.as_json
@click.pass_context
def inbox_command(ctx: click.Context, cwd: Path, as_json: bool) -> None:
    """Proposals that wait for a yes, as diffs."""
    if ctx.invoked_subcommand is not None:
        # What stands before the command holds for it too.
        ctx.default_map = {name: {"cwd": cwd, "as_json": as_json} for name in ("accept", "reject")}
        return
    with open_memory(cwd) as memory:
        waiting = memory.waiting()
        rows = [{"id": one.id, "name": one.name, "diff": one.diff} for one in waiting]
        lines = (f"{one.id}  {one.name}\n{one.diff}" for one in waiting)
        print_result(rows, lines, as_json=as_json, none="Nothing waits for a yes.")


@inbox_command.command("accept")
@click.argument("proposal", shell_complete=completion.proposals)
@with_memory
def accept_command(memory: Memory, proposal: str) -> Reported:
    """Say yes to a proposal."""
    done = memory.accept(proposal)
    if not isinstance(done, bool) and done.unfinished:
        notice(done.unfinished)
    return {"accepted": proposal}, f"Done: {proposal}"


@inbox_command.command("reject")
@click.argument("proposal", shell_complete=completion.proposals)
@with_memory
def reject_command(memory: Memory, proposal: str) -> Reported:
    """Say no to a proposal; nothing changes."""
    if not memory.reject(proposal):
        raise click.UsageError(f"no proposal {proposal!r} waits: lamina inbox shows those that do.")
    return {"rejected": proposal}, f"Dropped: {proposal}"
