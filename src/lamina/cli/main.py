"""`lamina`: the top-level command.

With no command, it runs `chat`: `lamina -p "…"`. Errors go to standard error on one line; the exit code is 2 for misuse and 1
for a failure.
"""

from __future__ import annotations

import errno
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from .. import __version__
from ..core.errors import InputError, LaminaError, NoSuchSession, SettingError
from .console import mend_streams, notice, terminal_width
from .options import CommandGroup

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Characters of a text that an error message shows.
SHOWN = 80
# click makes no help page narrower than 50 columns and keeps two free.
CLICK_NARROWEST = 52

# The commands by what a user wants, with the first line of their help, repeated here so that `--help` does not import them.
GROUPS = {
    "Talk": {
        "chat": "Start an interactive chat, or answer one prompt with -p.",
    },
    "Look": {
        "ui": "Show memories, sessions, what filled the window and what it cost, in the browser.",
        "search": "Search memories and sessions of Lamina, Claude Code, Codex and pi for QUERY, best match first.",
        "sessions": "List, show, search, edit and clean up recorded sessions.",
        "context": "Show what fills the context window of a session, or with --turn the content of one request.",
        "stats": "Show what sessions cost and what the layers saved.",
        "replay": "Replay recorded sessions to compare tokens, cache hits and cost under different policies.",
    },
    "Steer": {
        "memory": "List, search, save, edit and restore memories, and see their history.",
        "inbox": "Review pending memory changes, shown as diffs.",
        "dream": "Tidy up memory now: merge duplicates, replace relative dates, repair the index.",
        "forget": "Permanently remove a subject from memories, history, transcripts and all other stored files.",
    },
    "Keep": {
        "export": "Write all memories to TARGET in the format of another program.",
        "import": "Import memories from SOURCE, a file or directory of another program.",
        "migrate": "Move the memory and sessions of a project to its new directory.",
    },
    "Agents": {
        "agents": "List the agent types the Agent tool can start here, and report invalid agent files.",
        "team": "Run agents that work together, each in its own process, and list the teams.",
        "mcp": "Serve memory and past sessions to other agents over the Model Context Protocol.",
        "install": "Plug Lamina into a coding agent: memory, recall and hooks.",
        "uninstall": "Take Lamina out of a coding agent. Memories and sessions stay.",
        "hook": "Answer a hook of a coding agent; `lamina install` sets the hooks up.",
    },
    "Set up": {
        "config": "Show the settings that differ from their defaults, or one setting, and where the values come from.",
        "doctor": "Check memory, instruction files, settings and sessions for problems.",
    },
}
COMMANDS = {name: about for group in GROUPS.values() for name, about in group.items()}
# Commands that are not in a module of their own name, or belong to another surface.
MODULES = {
    "export": "portable",
    "hook": ".mcp.hook_command",
    "import": "portable",
    "mcp": ".mcp.command",
    "ui": ".web.command",
    "uninstall": "install",
}


# Names that a user of the chat may try.
INSTEAD = {
    "remember": 'lamina -p "Remember: …"',
    "help": "lamina --help",
    "cost": "lamina stats",
    "resume": "lamina --resume",
    "continue": "lamina --continue",
}


class ReaderGone(Exception):
    """The reader of our output closed the pipe. Not an OSError, because click reports those as failures."""


class LaminaGroup(CommandGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = getattr(import_module(f".{MODULES.get(cmd_name, cmd_name)}", __package__), f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # One column for all groups, so that the page reads as one table.
        widest = max(map(len, COMMANDS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), about) for name, about in group.items()])

    def _deeper(self, ctx: click.Context, name: str) -> str:
        return f"Did you mean `{INSTEAD[name]}`?" if name in INSTEAD else super()._deeper(ctx, name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing and not args:
            # Shell completion of the first word: it may be a command or an option of `chat`.
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

    With no command, starts a chat. See lamina chat --help for its options.
    """


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
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
    """Discard buffered output, so that the interpreter's final flush does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(argv: list[str] | None) -> int:
    try:
        result: Any = lamina_command.main(args=argv, prog_name="lamina", standalone_mode=False, **_narrow())
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _say("Stopped.", 130)
    except click.exceptions.NoArgsIsHelpError as error:
        # A group without a command prints its help.
        print(error.format_message(), file=sys.stderr)
        return error.exit_code
    except click.ClickException as error:
        from .wrong_call import reword

        return _say(reword(error).format_message(), error.exit_code)
    except (InputError, SettingError, NoSuchSession) as error:
        return _say(str(error), 2)
    except LaminaError as error:
        return _say(str(error), 1)
    except OSError as error:
        return _say(_reason(error), 1)
    except UnicodeEncodeError as error:
        return _say(_unencodable(error), 1)
    return result if isinstance(result, int) else 0


def _narrow() -> dict[str, Any]:
    """Return the width of help pages on a narrow terminal; click alone would use 50 columns there."""
    width = terminal_width()
    return {"terminal_width": width - 1} if width is not None and width <= CLICK_NARROWEST else {}


def _reason(error: OSError) -> str:
    """Describe the error. Without a file name, the current directory was deleted or standard output cannot be written."""
    unnamed = "The current directory" if error.errno == errno.ENOENT else "Standard output"
    return f"{error.filename or unnamed}: {os.strerror(error.errno or 0).lower()}"


def _unencodable(error: UnicodeEncodeError) -> str:
    """Describe a name or text that the locale, or a file in UTF-8, cannot hold."""
    shown = error.object[:SHOWN].encode("utf-8", "replace").decode()
    return f"{shown!r} cannot be encoded as {error.encoding}. Use names in UTF-8 and a UTF-8 locale, such as LC_ALL=C.UTF-8."


def _say(text: str, code: int) -> int:
    notice(text)
    return code
