"""`lamina inbox`: proposals that wait for a yes."""

from __future__ import annotations

import click

from . import completion as offering
from .group import Group
from .memory import of_agent, opened
from .safe_text import document, printable

_cwd = click.option("--cwd", type=click.Path(file_okay=False, exists=True), default=".", help="Whose memory.")
_json = click.option("--json", "as_json", is_flag=True, help="One JSON document.")


@click.group("inbox", cls=Group, invoke_without_command=True)
@of_agent
@_cwd
@_json
@click.pass_context
def command(ctx: click.Context, cwd: str, as_json: bool) -> None:
    """Proposals that wait for a yes, as diffs."""
    if ctx.invoked_subcommand is not None:
        # What stands before the command holds for it too.
        ctx.default_map = {name: {"cwd": cwd, "as_json": as_json} for name in ("accept", "reject")}
        return
    with opened(cwd) as memory:
        waiting = memory.waiting()
        if as_json:
            click.echo(document([{"id": one.id, "name": one.name, "diff": one.diff} for one in waiting]))
        for one in () if as_json else waiting:
            click.echo(printable(f"{one.id}  {one.name}\n{one.diff}"))
        if not waiting and not as_json:
            click.echo("Nothing waits for a yes.", err=True)


@command.command("accept")
@click.argument("proposal", shell_complete=offering.proposals)
@_cwd
@_json
def accept_command(proposal: str, cwd: str, as_json: bool) -> None:
    """Say yes to a proposal."""
    with opened(cwd) as memory:
        done = memory.accept(proposal)
        if not isinstance(done, bool) and done.unfinished:
            click.echo(f"lamina: {printable(done.unfinished)}", err=True)
        click.echo(document({"accepted": proposal}) if as_json else f"Done: {printable(proposal)}")


@command.command("reject")
@click.argument("proposal", shell_complete=offering.proposals)
@_cwd
@_json
def reject_command(proposal: str, cwd: str, as_json: bool) -> None:
    """Say no to a proposal; nothing changes."""
    with opened(cwd) as memory:
        if not memory.reject(proposal):
            raise click.UsageError(f"no proposal {proposal!r} waits: lamina inbox shows those that do.")
        click.echo(document({"rejected": proposal}) if as_json else f"Dropped: {printable(proposal)}")
