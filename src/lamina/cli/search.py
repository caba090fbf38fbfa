"""`lamina search`: memories and sessions of all agents, ranked in one list (S10)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import options
from .console import notice_unread, sentence, waiting

if TYPE_CHECKING:
    from ..sources.query import SearchResult

# Characters shown of each result, and of the messages around it with --context.
SHOWN_CHARS = 280
CONTEXT_CHARS = 160


@click.command("search")
@click.argument("query")
@click.option("-k", "count", type=click.IntRange(min=1), default=5, show_default=True, help="Maximum number of results.")
@click.option("--exact", is_flag=True, help="Find the literal text, also in tool output, newest first.")
@click.option("--all", "everywhere", is_flag=True, help="Search the memories and sessions of all directories.")
@click.option("--context", is_flag=True, help="Also show the messages before and after.")
@options.cwd("Search the memories and sessions of this directory.")
@options.reports
def search_command(query: str, count: int, exact: bool, everywhere: bool, context: bool, cwd: Path) -> options.Reported:
    """Search memories and sessions of Lamina, Claude Code, Codex and pi for QUERY, best match first."""
    if not query.strip():
        raise click.UsageError("QUERY is empty: pass a question or a few words.")
    from ..sources.query import query_words, search

    told: list[str] = []
    with waiting("Searching"):
        found = search(query, cwd, count, exact=exact, everywhere=everywhere, notices=told)
    notice_unread(told)
    words = [query] if exact else query_words(query)
    lines = (line for number, one in enumerate(found, 1) for line in result_lines(number, one, words, context=context))
    hints = {"--all to search all directories": everywhere, "--exact to search tool output too": exact}
    left = " or ".join(hint for hint, used in hints.items() if not (used or told))
    return [to_json(one) for one in found], lines, f"Nothing found.{f' Use {left}.' if left else ''}"


def to_json(found: SearchResult) -> dict[str, Any]:
    return {name: getattr(found, name) for name in found.__struct_fields__}


def result_lines(number: int, found: SearchResult, words: list[str], *, context: bool) -> list[str]:
    about = f"“{found.title}”" if found.title else ""
    parts = [f"{number}.", found.origin, found.speaker, found.time[:16].replace("T", " "), about]
    shown = ["  ".join(sentence(part) for part in parts if part)]
    if context and found.before:
        shown.append(f"   before: {_cut(found.before, CONTEXT_CHARS)}")
    shown.append(f"   {sentence(excerpt(found.text, words))}")
    if context and found.after:
        shown.append(f"   after: {_cut(found.after, CONTEXT_CHARS)}")
    return [*shown, f"   {sentence(found.link)}"]


def excerpt(text: str, words: list[str]) -> str:
    """Return the part of a text that has the most of the words, on one line."""
    line = " ".join(text.split())
    if len(line) <= SHOWN_CHARS:
        return line
    folded = line.casefold()
    starts = [at for word in words if (at := folded.find(word.casefold())) >= 0]
    best = max(starts, key=lambda start: (sum(start <= at < start + SHOWN_CHARS for at in starts), -start), default=0)
    begin = max(0, min(best - 20, len(line) - SHOWN_CHARS))
    return f"{'…' if begin else ''}{line[begin : begin + SHOWN_CHARS]}{'…' if begin + SHOWN_CHARS < len(line) else ''}"


def _cut(text: str, most: int) -> str:
    line = sentence(" ".join(text.split()))
    return line if len(line) <= most else f"{line[: most - 1]}…"
