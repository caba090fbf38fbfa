"""`lamina dream`: tidy up memory now; show, watch, stop and undo dreams (D5).

Without an option a dream runs to its end in this process: progress goes to standard error, the result to standard output.
Ctrl-C stops it and leaves memory unchanged; with --watch, Ctrl-C only stops watching.
"""

from __future__ import annotations

from pathlib import Path

import click

from . import completion, options
from .console import notice

# The value of `--undo` and `--redo` without an id.
NEWEST = "newest"


@click.command("dream")
@click.option("--status", is_flag=True, help="Show the last dream, when the next one is due, and the history.")
@click.option("--watch", is_flag=True, help="Follow the running dream until it ends.")
@click.option("--kill", is_flag=True, help="Stop the running dream; memory stays as it was before it.")
@click.option(
    "--undo",
    metavar="[ID]",
    is_flag=False,
    flag_value=NEWEST,
    shell_complete=completion.dreams,
    help="Undo all changes of the last dream, or of the dream ID.",
)
@click.option(
    "--redo",
    metavar="[ID]",
    is_flag=False,
    flag_value=NEWEST,
    shell_complete=completion.dreams,
    help="Apply an undone dream again: the one undone last, or the dream ID.",
)
@click.option("--model", help="Model to use: anthropic:MODEL, openai:MODEL or offline. Default: the model of a chat here.")
@options.cwd()
@options.as_json
def dream_command(
    status: bool, watch: bool, kill: bool, undo: str | None, redo: str | None, model: str | None, cwd: Path, as_json: bool
) -> int:
    """Tidy up memory now: merge duplicates, replace relative dates, repair the index."""
    chosen = sum((status, watch, kill, undo is not None, redo is not None))
    if chosen > 1:
        raise click.UsageError("--status, --watch, --kill, --undo and --redo cannot be combined.")
    if model is not None and chosen:
        raise click.UsageError("--model only applies when a dream is started: drop the other options.")
    from . import dream_actions as actions
    from .start import ChatOptions, MemorySource, load_chat_settings

    home = options.find_home()
    source = MemorySource(cwd, home, load_chat_settings(ChatOptions(cwd)))
    notice(*(finding.text for finding in source.settings.findings))
    if status:
        return actions.show_status(source, as_json=as_json)
    if watch:
        return actions.watch(source, as_json=as_json)
    if kill:
        return actions.kill(source, as_json=as_json)
    if undo is not None:
        return actions.undo(source, None if undo == NEWEST else undo, as_json=as_json)
    if redo is not None:
        return actions.undo(source, None if redo == NEWEST else redo, again=True, as_json=as_json)
    return actions.run_now(source, model, as_json=as_json)
