"""`lamina sessions search`: what was said in earlier conversations, where memory does not know it (S10).

Reads transcripts, newest first, and stops at the limit; a file that cannot be read is one line on stderr and passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import click

from .progress import waiting
from .safe_text import document, printable

# What is shown on each side of a hit.
AROUND = 80


class Hit(NamedTuple):
    session_id: str
    time: str
    role: str
    text: str


@click.command("search")
@click.argument("term")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many, newest first.")
@click.option("--cwd", type=click.Path(file_okay=False, exists=True), default=".", help="Whose sessions.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def search_command(term: str, limit: int, cwd: str, as_json: bool) -> None:
    """Messages and results of earlier sessions that hold TERM. Memory comes first: lamina memory search."""
    if not term.strip():
        raise click.UsageError("give a word or a phrase to look for.")
    unread: list[str] = []
    with waiting("Looking through the sessions"):
        found = list(islice(_hits(term, Path(cwd).resolve(), unread), limit))
    for problem in unread:
        click.echo(f"lamina: {printable(problem)}", err=True)
    if as_json:
        click.echo(document([hit._asdict() for hit in found]))
    for hit in () if as_json else found:
        click.echo(printable(f"{hit.session_id}  {hit.time[:16].replace('T', ' ')}  {hit.role}: {hit.text}"))
    if not found and not as_json:
        click.echo(f"Nobody said {term!r} in a session of {Path(cwd).resolve()}.", err=True)


def _hits(term: str, cwd: Path, unread: list[str]) -> Iterator[Hit]:
    """What cannot be read is added to `unread`, a sentence each."""
    from ..core.errors import LaminaError
    from ..core.records import Message
    from ..disk.paths.project import slug
    from ..disk.settings_files import lamina_home
    from ..disk.transcripts.search import list_transcripts
    from ..disk.transcripts.store import read_transcript

    home = lamina_home(os.environ)
    directory = (home or Path()) / "projects" / slug(cwd)
    if home is None or not directory.is_dir():
        return
    for path in sorted(list_transcripts(directory), key=lambda each: -each.stat().st_mtime):
        try:
            said = [record for record in read_transcript(path) if isinstance(record, Message)]
        except (LaminaError, OSError) as error:
            unread.append(str(error))
            continue
        for record in reversed(said):
            for text in _texts(record):
                if (around := _around(text, term)) is not None:
                    yield Hit(path.stem, record.time, record.role, around)
                    break


def _texts(record: object) -> Iterator[str]:
    """The words of a message, and of the results in it."""
    from ..core.records import Message

    assert isinstance(record, Message)
    for block in record.blocks:
        wire = block.wire
        content = wire.get("text") if wire.get("type") == "text" else wire.get("content")
        if isinstance(content, str):
            yield content
        elif isinstance(content, list):
            yield from (part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))


def _around(text: str, term: str) -> str | None:
    at = text.casefold().find(term.casefold())
    if at < 0:
        return None
    start, end = max(0, at - AROUND), at + len(term) + AROUND
    line = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{line}{'…' if end < len(text) else ''}"
