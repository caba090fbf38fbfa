"""`lamina hook EVENT` for the command line's own parser, which prints its help. Agents reach `hook_run` without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .hook_run import run_hook

if TYPE_CHECKING:
    from .project import HookAgent


@click.command("hook")
@click.argument("event")
@click.option(
    "--agent",
    type=click.Choice(("claude-code", "codex")),
    default="claude-code",
    show_default=True,
    help="The agent that calls.",
)
def hook_command(event: str, agent: HookAgent) -> None:
    """Answer a hook of a coding agent; `lamina install` sets the hooks up.

    Reads the hook's JSON from standard input. It always succeeds: an event or input it does not know gets no answer.
    """
    run_hook(event, agent)
