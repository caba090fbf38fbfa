"""`lamina search`: memories and sessions of all agents, ranked in one list (S10).

Each result is a line that says who said it and when, the part of the text with the matching words, and the command that opens it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..language.terms import excerpt_range, matches
from ..language.wording import shorten
from . import options
from .console import (
    GAP,
    LEAST,
    color,
    fit,
    join_cells,
    local_minute,
    notice_unread,
    print_result,
    sentence,
    terminal_width,
    waiting,
    wrapped,
)

if TYPE_CHECKING:
    from ..history.query import SearchResult

# Characters shown of each result, and of the messages around it with --context.
SHOWN_CHARS = 280
CONTEXT_CHARS = 160
MARGIN = "   "


@click.command("search")
@options.words("query")
@click.option("-k", "count", type=click.IntRange(min=1), default=5, show_default=True, help="Maximum number of results.")
@click.option("--exact", is_flag=True, help="Find the literal text, also in tool output, newest first.")
@click.option("--all", "everywhere", is_flag=True, help="Search the memories and sessions of all directories.")
@click.option("--context", is_flag=True, help="Also show the messages before and after.")
@options.cwd("Search the memories and sessions of this directory.")
@options.as_json
def search_command(query: str, count: int, exact: bool, everywhere: bool, context: bool, cwd: Path, as_json: bool) -> None:
    """Search memories and sessions of Lamina, Claude Code, Codex and pi for QUERY, best match first."""
    if not query.strip():
        raise click.UsageError("QUERY is empty: pass a question or a few words.")
    from ..history.query import search

    told: list[str] = []
    with waiting("Searching"):
        found = search(query, cwd, count, exact=exact, everywhere=everywhere, notices=told)
    notice_unread(told)
    if as_json or not found:
        hints = {"--all to search all directories": everywhere, "--exact to search tool output too": exact}
        left = " or ".join(hint for hint, used in hints.items() if not (used or told))
        none = f"Nothing found.{f' Use {left}.' if left else ''}"
        print_result([to_json(one) for one in found], (), none, as_json=as_json)
        return
    width = terminal_width()
    for head, one in zip(heads(found, width), found, strict=True):
        click.echo(head)
        for line in body(one, query, width, exact=exact, context=context):
            click.echo(line, color=color())


def to_json(found: SearchResult) -> dict[str, Any]:
    return {name: getattr(found, name) for name in found.__struct_fields__}


def heads(found: list[SearchResult], width: int | None) -> list[str]:
    """Return the head of each result, in columns: its number, agent, speaker, local time and title. A narrow terminal wraps it."""
    rows = [[f"{at}.", one.origin, sentence(one.speaker), local_minute(one.time)] for at, one in enumerate(found, 1)]
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    titles = [f"“{sentence(one.title)}”" if one.title else "" for one in found]
    if width is not None:
        beside = width - 1 - sum(wide) - len(GAP) * len(wide)
        titles = [fit(title, beside if beside >= LEAST else width - 1 - len(MARGIN)) for title in titles]
    cells = [[cell.ljust(size) for cell, size in zip(row, wide, strict=True)] for row in rows]
    return [join_cells([*row, title], MARGIN, width=width) for row, title in zip(cells, titles, strict=True)]


def body(found: SearchResult, query: str, width: int | None, *, exact: bool, context: bool) -> Iterator[str]:
    """Yield the lines below the first one. Matching words are bold on a terminal, and long lines are wrapped there."""
    if context and found.before:
        yield from _wrapped(f"before: {shorten(sentence(found.before), CONTEXT_CHARS)}", width)
    for line in _wrapped(excerpt(_text(found), query, exact=exact), width):
        yield _marked(line, query, exact=exact)
    if context and found.after:
        yield from _wrapped(f"after: {shorten(sentence(found.after), CONTEXT_CHARS)}", width)
    yield click.style(f"{MARGIN}{sentence(found.link)}", dim=True)


def _text(found: SearchResult) -> str:
    """Return the text to show. That of a memory begins with its name, which stands in the first line already."""
    if found.kind != "memory":
        return found.text
    description, _, rest = found.text.removeprefix(found.title).strip().partition("\n")
    return f"{description} – {rest}" if description and rest.strip() else description


def excerpt(text: str, query: str, *, exact: bool = False) -> str:
    """Return the part of a text that has the most of the query's words, on one line."""
    line = sentence(text)
    begin, end = excerpt_range(line, sentence(query), SHOWN_CHARS, exact=exact)
    return f"{'…' if begin else ''}{line[begin:end]}{'…' if end < len(line) else ''}"


def _marked(line: str, query: str, *, exact: bool) -> str:
    shown, at = "", 0
    for start, end in matches(line, sentence(query), exact=exact):
        shown += line[at:start] + click.style(line[start:end], bold=True)
        at = end
    return shown + line[at:]


def _wrapped(text: str, width: int | None) -> list[str]:
    return wrapped(text, MARGIN, width=width).split("\n")
