"""`lamina dream`: put memory in order now; see, watch, end and take back dreams (D5).

Without an option a dream runs here, to its end: what it says goes to standard error as it says it, what it came to goes to standard
output. Ctrl-C ends it, and memory is as it was; Ctrl-C while another process's dream is watched only ends the watching.
"""

from __future__ import annotations

from pathlib import Path

import click

from . import completion, options

# What `--undo` without an id stands for.
NEWEST = "newest"


@click.command("dream")
@click.option("--status", is_flag=True, help="When the last one was, what stands in the way of the next, and what they did.")
@click.option("--watch", is_flag=True, help="Follow the one that runs until it ends.")
@click.option("--kill", is_flag=True, help="End the one that runs; memory is as it was before it.")
@click.option(
    "--undo",
    metavar="[ID]",
    is_flag=False,
    flag_value=NEWEST,
    shell_complete=completion.dreams,
    help="Take back the last one, or this one, as a whole.",
)
@click.option("--model", help="Who dreams: anthropic:MODEL, openai:MODEL, offline; else as a conversation here would have it.")
@options.cwd()
@options.as_json
def dream_command(status: bool, watch: bool, kill: bool, undo: str | None, model: str | None, cwd: Path, as_json: bool) -> int:
    """Put memory in order now: merge what says the same, date what was relative, mend the index."""
    if sum((status, watch, kill, undo is not None)) > 1:
        raise click.UsageError("--status, --watch, --kill and --undo exclude each other.")
    if model is not None and (status or watch or kill or undo is not None):
        raise click.UsageError("--model is for a dream that begins now.")
    from . import dream_actions as actions
    from .start import ChatOptions, MemorySource, load_chat_settings

    home = options.find_home()
    source = MemorySource(cwd, home, load_chat_settings(ChatOptions(cwd)))
    if status:
        return actions.show_status(source, as_json=as_json)
    if watch:
        return actions.watch(source, as_json=as_json)
    if kill:
        return actions.kill(source, as_json=as_json)
    if undo is not None:
        return actions.undo(source, None if undo == NEWEST else undo, as_json=as_json)
    return actions.run_now(source, model, as_json=as_json)
