"""`lamina chat`: one prompt and one answer with -p, a conversation on a terminal without it.

With -p nobody is there to be asked: what would need a yes is denied with a sentence for the model, and the turn goes on. Exit codes:
0 for an answer, 1 for a failure, 2 for misuse, 130 for Ctrl-C, 143 and 129 where the system or the terminal's end stopped it.
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
# A prompt this long fills every window there is.
MOST_INPUT = 32 << 20
# A pipe that somebody forgot to close says nothing for ever; a program that has something to say begins sooner.
PIPE_SECONDS = 3.0
NOTHING = 'there is nothing to answer: give a prompt, as in lamina -p "What do our tests run against?".'


def split_rules(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    """`Read,Edit` and `"Bash(git log:*) Edit"` are two rules each: what stands in brackets is not split."""
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
@click.option("-p", "--print", "prompt", metavar="PROMPT", help="Answer PROMPT and exit; '-' reads it from standard input.")
@click.option("--model", metavar="M", help="Who answers: anthropic:MODEL, openai:MODEL or offline.")
@click.option("-c", "--continue", "go_on", is_flag=True, help="Go on with the newest session of this directory.")
@click.option(
    "-r",
    "--resume",
    metavar="[ID]",
    is_flag=False,
    flag_value="",
    shell_complete=completion.sessions,
    help="Go on with the session ID (its beginning is enough) or a transcript file; without ID, choose from a list.",
)
@click.option("--output-format", type=click.Choice(FORMATS), default="text", show_default=True, help="What -p prints.")
@click.option(
    "--include-partial-messages", "partial", is_flag=True, help="With stream-json: the pieces of an answer as they come."
)
@click.option("--permission-mode", "mode", type=click.Choice(MODES), help="What tools may do without a question.")
@click.option(
    "--allowed-tools",
    "allow",
    metavar="RULES",
    multiple=True,
    callback=split_rules,
    help="Rules for what needs no question, as in 'Bash(git log:*) Edit'.",
)
@click.option(
    "--disallowed-tools", "deny", metavar="RULES", multiple=True, callback=split_rules, help="Rules for what is denied."
)
@click.option("--max-turns", "rounds", type=click.IntRange(min=1), help="At most so many calls of the model for one prompt.")
@click.option("--bare", is_flag=True, help="Without all that is optional: memory, notes, hooks, agents' summaries.")
@options.cwd("The directory the session belongs to.")
def chat_command(prompt: str | None, output_format: str, partial: bool, cwd: Path, **given: Any) -> int:
    """Talk, on a terminal or with -p PROMPT for one answer."""
    from .start import ChatOptions, check_rules

    chosen = ChatOptions(cwd, **given)
    if chosen.go_on and chosen.resume is not None:
        raise click.UsageError("--continue takes the newest session and --resume a named one: use one of the two.")
    check_rules(chosen)
    if prompt is None and sys.stdin.isatty():
        if not sys.stdout.isatty() or output_format != "text" or partial:
            raise click.UsageError(NOTHING)
        from .terminal.loop import chat

        return chat(chosen)
    if chosen.resume == "":
        raise click.UsageError("--resume needs the session's id where nobody can choose one; lamina sessions list shows them.")
    from .print_mode import answer

    return answer(whole_prompt(prompt), chosen, form=output_format, partial=partial)


def whole_prompt(prompt: str | None) -> str:
    """What is piped in is the prompt, or stands behind the one that is given."""
    if prompt is None or prompt == "-":
        whole = _read_input()
    elif (piped := _piped_input()) and piped.strip():
        whole = f"{prompt}\n\n{piped}"
    else:
        whole = prompt
    if not whole.strip():
        raise click.UsageError(NOTHING)
    return whole


def _read_input() -> str:
    data = sys.stdin.buffer.read(MOST_INPUT + 1)
    if len(data) > MOST_INPUT:
        raise click.UsageError(
            f"standard input holds more than {MOST_INPUT >> 20} MiB: name a file for the model to read instead."
        )
    return data.decode("utf-8", "replace")


def _piped_input() -> str | None:
    """A terminal and the null device are no input; neither is a pipe on which nothing comes."""
    import select

    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
        if stat.S_ISREG(mode):
            return _read_input()
        if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            return None
        if os.name != "nt" and not select.select([sys.stdin], [], [], PIPE_SECONDS)[0]:
            notice(
                f"nothing came through the pipe for {PIPE_SECONDS:.0f} seconds, so it is left out; < /dev/null spares the wait"
            )
            return None
    except (OSError, ValueError):  # no real stream: nobody pipes anything
        return None
    return _read_input()
