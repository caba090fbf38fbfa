"""A command that has commands of its own: its help lists each with a whole sentence, on a terminal of any width.

A name that is none of them is answered with the one that was likely meant, or with the place where all are listed.
"""

from __future__ import annotations

import click


class CommandGroup(click.Group):
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            first, stop, _ = " ".join((command.help or "" if command is not None else "").split()).partition(". ")
            rows.append((name, f"{first}." if stop else first))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            near = get_close_matches(name, known, 1)
            meant = f"did you mean {near[0]!r}?" if near else f"{ctx.command_path} --help lists those there are."
            raise click.UsageError(f"No such command {name!r}: {meant}", ctx)
        return super().resolve_command(ctx, args)
