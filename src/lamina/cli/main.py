"""`lamina`: the top of the command line.

Without a command's name, `chat` is meant: `lamina -p "…"`. Errors go to stderr in one line; exit code 2 for misuse, 1 for
failure.
"""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from .. import __version__
from ..core.errors import InputError, LaminaError, SettingError
from .console import mend_streams, sentence
from .options import CommandGroup

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Name → the first line of its help, repeated here so that `--help` imports none of them.
COMMANDS = {
    "agents": "List the agent types that the Agent tool can start here, and what is wrong with files that are none.",
    "chat": "Talk, on a terminal or with -p PROMPT for one answer.",
    "config": "Show every setting, its value and where it came from, or one of them.",
    "context": "Show what fills the window of a session, by kind; with --turn, what one request was made of.",
    "doctor": "Find what is wrong with memory, instruction files, settings and sessions, and mend it.",
    "dream": "Put memory in order now: merge what says the same, date what was relative, mend the index.",
    "export": "Write all memories to TARGET: a directory for claude-code and codex, a file for the other formats.",
    "forget": "Remove a subject from memories, history, transcripts and all else that is kept; nothing brings it back.",
    "import": "Take over memories from SOURCE, a file or directory of another program.",
    "inbox": "Proposals that wait for a yes, as diffs.",
    "memory": "See, save, trace and take back what is remembered.",
    "migrate": "Let a project that moved keep its memory and sessions.",
    "replay": "Run recorded sessions through the layers again: tokens, cache and money, against other policies and with layers off.",
    "sessions": "List, show and clean up recorded conversations; undo, open again and keep what is in them.",
    "stats": "Show what sessions cost and what the layers saved.",
}
# Where a command is not in the module of its name.
MODULES = {"export": "portable", "import": "portable", "inbox": "memory"}


class ReaderGone(Exception):
    """Whoever read our output has seen enough. It is no OSError: of those click makes a failure."""


class LaminaGroup(CommandGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f".{MODULES.get(cmd_name, cmd_name)}", __package__), f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items()])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing and not args:
            # A shell completes the first word: it may become a command as well as an option of `chat`.
            return super().parse_args(ctx, args)
        if not args or (args[0].startswith("-") and args[0] not in ("--help", "-h", "--version")):
            args = ["chat", *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGone from error

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = super().shell_complete(ctx, incomplete)
        chat = self.get_command(ctx, "chat")
        if chat is None or not incomplete.startswith("-"):
            return found
        known = {item.value for item in found}
        more = chat.shell_complete(click.Context(chat, parent=ctx, info_name="chat"), incomplete)
        return [*found, *(item for item in more if item.value not in known)]


@click.group(cls=LaminaGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", prog_name="lamina")
def lamina_command() -> None:
    """A seven-layer memory for LLM agents.

    \b
    lamina -p "Remember: tests run against a real database"
    lamina --continue -p "What do tests run against?"

    Without a command's name, chat is meant; lamina chat --help lists its options.
    """


def main(argv: list[str] | None = None) -> None:
    """The console script."""
    mend_streams()
    try:
        code = _run(argv)
        sys.stdout.flush()
    except (ReaderGone, BrokenPipeError):
        _silence()
        code = 0
    except OSError as error:
        _silence()
        code = _say(_reason(error), 1)
    sys.exit(code)


def _silence() -> None:
    """What is still to be written goes nowhere: the interpreter must not complain when it flushes."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(argv: list[str] | None) -> int:
    try:
        result: Any = lamina_command.main(args=argv, prog_name="lamina", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _say("stopped", 130)
    except click.exceptions.NoArgsIsHelpError as error:
        # Whoever names a group only wants to know what is in it.
        print(error.format_message(), file=sys.stderr)
        return error.exit_code
    except click.MissingParameter as error:
        path = error.ctx.command_path if error.ctx is not None else "lamina"
        return _say(f"{error.format_message().rstrip('.')}: {path} --help explains it.", error.exit_code)
    except click.ClickException as error:
        return _say(error.format_message(), error.exit_code)
    except (InputError, SettingError) as error:
        return _say(str(error), 2)
    except LaminaError as error:
        return _say(str(error), 1)
    except OSError as error:
        return _say(_reason(error), 1)
    return result if isinstance(result, int) else 0


def _reason(error: OSError) -> str:
    """Without a file's name it is where we stand that is gone, or where we write to that takes no more."""
    unnamed = "the current directory" if error.errno == errno.ENOENT else "standard output"
    return f"{error.filename or unnamed}: {os.strerror(error.errno or 0).lower()}"


def _say(text: str, code: int) -> int:
    print(f"lamina: {sentence(text)}", file=sys.stderr)
    return code
