"""A command that has commands of its own: its help lists each with a whole sentence, on a terminal of any width."""

from __future__ import annotations

import click


class Group(click.Group):
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, _first_sentence(command.help or "")) for name, command in found if command is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _first_sentence(text: str) -> str:
    first, stop, _ = " ".join(text.split()).partition(". ")
    return f"{first}." if stop else first
