"""A command that has commands of its own: its help lists each with a whole sentence, on a terminal of any width.

A name that is none of them is answered with the one that was likely meant, or with the place where all are listed.
"""

from __future__ import annotations

import click


class Group(click.Group):
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, _first_sentence(command.help or "")) for name, command in found if command is not None]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(_unknown(name, known, ctx.command_path), ctx)
        return super().resolve_command(ctx, args)


def _unknown(name: str, known: list[str], path: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1)
    return f"No such command {name!r}: " + (f"did you mean {near[0]!r}?" if near else f"{path} --help lists those there are.")


def _first_sentence(text: str) -> str:
    first, stop, _ = " ".join(text.split()).partition(". ")
    return f"{first}." if stop else first
