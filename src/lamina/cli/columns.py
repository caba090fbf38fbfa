"""Rows in columns, by hand: whole in a pipe, and on a terminal never wider than it is, so that a row stays one line."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Collection, Sequence

import click

from .safe_text import sentence

GAP = "  "
# Less of the last column says nothing.
LEAST = 8


def show(header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[str] = ()) -> None:
    """Prints them; the last column takes what room there is, those named in `right` are numbers."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    first, *rest = columns(header, rows, right=right, width=width)
    color = False if os.environ.get("NO_COLOR") else None  # None: only on a terminal
    click.echo(click.style(first, bold=True), color=color)
    for line in rest:
        click.echo(line)


def columns(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[str] = (), width: int | None = None
) -> list[str]:
    from rich.cells import cell_len

    cells = [[sentence(cell) for cell in row] for row in (header, *rows)]
    wide = [max(map(cell_len, column)) for column in zip(*cells, strict=True)][:-1]
    used = sum(wide) + len(GAP) * len(wide)
    room = None if width is None else max(LEAST, width - used)

    def padded(text: str, at: int) -> str:
        blanks = " " * (wide[at] - cell_len(text))
        return blanks + text if header[at] in right else text + blanks

    lines = [GAP.join([*(padded(cell, at) for at, cell in enumerate(row[:-1])), _cut(row[-1], room)]) for row in cells]
    return [line.rstrip() for line in lines]


def _cut(text: str, room: int | None) -> str:
    from rich.cells import cell_len, set_cell_size

    return text if room is None or cell_len(text) <= room else f"{set_cell_size(text, room - 1).rstrip()}…"
