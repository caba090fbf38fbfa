"""Write docs/commands.md: every command with its help text, its usage and its options.

    python scripts/generate_commands.py            write the page
    python scripts/generate_commands.py --check    fail if the page is out of date

Reads the commands themselves, not the text of --help, so the page is the same with every version of click.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator

import click
from generated_page import ROOT, write_or_check

sys.path.insert(0, str(ROOT / "src"))

from lamina.cli.main import lamina_command

INTRO = """\
# Commands

With no command, `lamina` starts a [chat](chat.md): `lamina -p PROMPT` is short for `lamina chat -p PROMPT`. In a shell,
`lamina COMMAND --help` prints the text of this page.

<!-- Generated from the commands: python scripts/generate_commands.py -->
"""


def walk(command: click.Command, path: str, parent: click.Context | None = None) -> Iterator[tuple[str, click.Context]]:
    """Each command with the words that call it, a group before its members."""
    context = click.Context(command, info_name=path.rpartition(" ")[2], parent=parent)
    yield path, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if (inner := command.get_command(context, name)) is not None and not inner.hidden:
                yield from walk(inner, f"{path} {name}", context)


def section(path: str, context: click.Context) -> str:
    """The part of the page on one command."""
    command = context.command
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    table = "".join(f"| {_names(each)} | {_cell(each.help or '')} |\n" for each in options)
    parts = [f"{'##' if path.count(' ') < 2 else '###'} {path}", _help(command), f"```\n{usage}\n```"]
    return "\n" + "\n\n".join([*parts, *([f"| option | meaning |\n|---|---|\n{table.rstrip()}"] if table else [])]) + "\n"


def _help(command: click.Command) -> str:
    """The help text as markdown: what follows \\b keeps its lines."""
    text = inspect.cleandoc(command.help or "").partition("\f")[0]
    paragraphs = re.split(r"\n\s*\n", text.strip())
    kept = [f"```\n{each.lstrip(chr(8)).strip()}\n```" if each.startswith("\b") else _escaped(each) for each in paragraphs]
    return "\n\n".join(kept)


def _names(option: click.Option) -> str:
    value = "" if option.is_flag or option.count else f" {_value(option)}"
    return ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts)) + (f" `{value.strip()}`" if value else "")


def _value(option: click.Option) -> str:
    if option.metavar:
        return option.metavar
    return (
        " \\| ".join(map(str, option.type.choices))
        if isinstance(option.type, click.Choice)
        else option.type.name.upper().removesuffix(" RANGE")
    )


def _escaped(text: str) -> str:
    return text.replace("<", "\\<").replace("*", "\\*")


def _cell(text: str) -> str:
    return _escaped(" ".join(text.split())).replace("|", "\\|")


def page() -> str:
    found = [*walk(lamina_command, "lamina")][1:]
    return INTRO + "".join(section(path, context) for path, context in found)


if __name__ == "__main__":
    sys.exit(write_or_check("docs/commands.md", page(), "scripts/generate_commands.py", sys.argv[1:]))
