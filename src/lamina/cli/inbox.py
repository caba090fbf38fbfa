"""`lamina inbox`: proposals that wait for a yes."""

from __future__ import annotations

from pathlib import Path

import click

from . import completion, options
from .console import notice, print_result
from .group import Group
from .memory import of_agent, opened


@click.group("inbox", cls=Group, invoke_without_command=True)
@of_agent
@options.cwd()
@options.as_json
@click.pass_context
def inbox_command(ctx: click.Context, cwd: Path, as_json: bool) -> None:
    """Proposals that wait for a yes, as diffs."""
    if ctx.invoked_subcommand is not None:
        # What stands before the command holds for it too.
        ctx.default_map = {name: {"cwd": cwd, "as_json": as_json} for name in ("accept", "reject")}
        return
    with opened(cwd) as memory:
        waiting = memory.waiting()
        rows = [{"id": one.id, "name": one.name, "diff": one.diff} for one in waiting]
        lines = (f"{one.id}  {one.name}\n{one.diff}" for one in waiting)
        print_result(rows, lines, as_json=as_json, none="Nothing waits for a yes.")


@inbox_command.command("accept")
@click.argument("proposal", shell_complete=completion.proposals)
@options.cwd()
@options.as_json
def accept_command(proposal: str, cwd: Path, as_json: bool) -> None:
    """Say yes to a proposal."""
    with opened(cwd) as memory:
        done = memory.accept(proposal)
        if not isinstance(done, bool) and done.unfinished:
            notice(done.unfinished)
        print_result({"accepted": proposal}, f"Done: {proposal}", as_json=as_json)


@inbox_command.command("reject")
@click.argument("proposal", shell_complete=completion.proposals)
@options.cwd()
@options.as_json
def reject_command(proposal: str, cwd: Path, as_json: bool) -> None:
    """Say no to a proposal; nothing changes."""
    with opened(cwd) as memory:
        if not memory.reject(proposal):
            raise click.UsageError(f"no proposal {proposal!r} waits: lamina inbox shows those that do.")
        print_result({"rejected": proposal}, f"Dropped: {proposal}", as_json=as_json)
