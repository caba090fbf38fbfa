"""`lamina chat`: an interactive chat on a terminal, or with -p one prompt and one answer.

With -p no permission can be asked for: such calls are denied with a message to the model, and the turn goes on. Exit codes:
0 for an answer, 1 for a failure, 2 for misuse, 130 for Ctrl-C, 143 for SIGTERM, 129 when the terminal was closed.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

import click

from . import completion, options
from .console import notice

FORMATS = ("text", "json", "stream-json")
MODES = ("ask", "accept-edits", "read-only", "all")
# Larger than any model's context window.
MOST_INPUT = 32 << 20
# An open pipe without a writer's data would block forever; a program that has output starts sooner than this.
PIPE_SECONDS = 3.0
NOTHING = 'No prompt given. Pass one, for example: lamina -p "What do our tests run against?"'


def split_rules(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """Split at commas and blanks outside parentheses: `Read,Edit` and `Bash(git log:*) Edit` are two rules each."""
    found: list[str] = []
    for text in given:
        depth, start = 0, 0
        for at, char in enumerate(text):
            depth += (char == "(") - (char == ")")
            if depth <= 0 and (char == "," or char.isspace()):
                found.append(text[start:at].strip())
                start = at + 1
        found.append(text[start:].strip())
    return tuple(rule for rule in found if rule)


@click.command("chat")
@click.option(
    "-p",
    "--print",
    "prompt",
    metavar="[PROMPT]",
    is_flag=False,
    flag_value="",
    help="Answer PROMPT and exit. Without it, or with '-', read it from standard input.",
)
@click.option("--model", metavar="M", help="Model to use: anthropic:MODEL, openai:MODEL or offline.")
@click.option("-c", "--continue", "go_on", is_flag=True, help="Continue the newest session of this directory.")
@click.option(
    "-r",
    "--resume",
    metavar="[ID]",
    is_flag=False,
    flag_value="",
    shell_complete=completion.sessions,
    help="Continue a session, given by id, id prefix or transcript file. Without ID, choose from a list.",
)
@click.option("--output-format", type=click.Choice(FORMATS), default="text", show_default=True, help="Output format of -p.")
@click.option(
    "--include-partial-messages", "partial", is_flag=True, help="With stream-json, also print partial answers as they stream in."
)
@click.option(
    "--permission-mode", "mode", type=click.Choice(MODES), help="Permission mode: which tool calls run without asking you."
)
@click.option(
    "--allowed-tools",
    "allow",
    metavar="RULES",
    multiple=True,
    callback=split_rules,
    help="Tools to allow without asking, e.g. 'Bash(git log:*) Edit'.",
)
@click.option("--disallowed-tools", "deny", metavar="RULES", multiple=True, callback=split_rules, help="Tools to deny.")
@click.option("--max-turns", "rounds", type=click.IntRange(min=1), help="Maximum number of model calls per prompt.")
@click.option("--bare", is_flag=True, help="Disable optional features: memory, notes, hooks and agent summaries.")
@options.cwd("Working directory of the session.")
def chat_command(prompt: str | None, output_format: str, partial: bool, cwd: Path, **given: Any) -> int:
    """Start an interactive chat, or answer one prompt with -p."""
    from .start import ChatOptions, check_rules, find_named

    chosen = ChatOptions(cwd, **given)
    if chosen.go_on and chosen.resume is not None:
        raise click.UsageError("--continue and --resume cannot be combined. Use --resume ID to continue a specific session.")
    check_rules(chosen)
    chosen = chosen._replace(resume=find_named(chosen))
    if prompt is None and sys.stdin.isatty():
        if not sys.stdout.isatty() or output_format != "text" or partial:
            raise click.UsageError(NOTHING)
        from .terminal.loop import chat

        return chat(chosen)
    if chosen.resume == "":
        raise click.UsageError("--resume needs a session id outside a terminal. Run `lamina sessions list` to see the ids.")
    from .print_mode import answer

    return answer(whole_prompt(prompt), chosen, form=output_format, partial=partial)


def whole_prompt(prompt: str | None) -> str:
    """Return the prompt. Piped input is appended to `prompt`, or replaces it if it is missing or `-`."""
    if prompt is None or prompt == "-":
        whole = _read_input()
    elif (piped := _piped_input()) and piped.strip():
        whole = f"{prompt}\n\n{piped}" if prompt else piped
    else:
        whole = prompt
    if not whole.strip():
        raise click.UsageError(NOTHING)
    return whole


def _read_input() -> str:
    data = sys.stdin.buffer.read(MOST_INPUT + 1)
    if len(data) > MOST_INPUT:
        raise click.UsageError(
            f"Standard input is larger than {MOST_INPUT >> 20} MiB. Save it to a file and ask the model to read that file."
        )
    return data.decode("utf-8", "replace")


def _piped_input() -> str | None:
    """Return what was piped in; None for a terminal, the null device, or a pipe that stays silent."""
    import select

    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
        if stat.S_ISREG(mode):
            return _read_input()
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            return None
        if os.name != "nt" and not select.select([sys.stdin], [], [], PIPE_SECONDS)[0]:
            notice(
                f"No input from the pipe after {PIPE_SECONDS:.0f} seconds; continuing without it. "
                "Add `< /dev/null` to skip the wait."
            )
            return None
    except (OSError, ValueError):  # not a real stream, so nothing is piped
        return None
    return _read_input()
