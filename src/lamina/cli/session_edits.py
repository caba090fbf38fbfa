"""`lamina sessions undo | expand | pin`: what a person takes back, opens again and keeps, in a recorded session.

A session that is open elsewhere, and one that another program wrote, is continued as a new one, which is said; the original stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import completion as offering
from .safe_text import document, printable, sentence

if TYPE_CHECKING:
    from ..session.session import Session

_CWD = click.option("--cwd", type=click.Path(file_okay=False, exists=True), default=".", help="Whose session.")
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document.")


@contextmanager
def opened(session: str, cwd: str) -> Iterator[Session]:
    """The session, to be changed; what there is to say about opening it goes to stderr."""
    from ..session.session import Session
    from .sessions import locate

    where = Path(cwd).resolve()
    with Session("offline", cwd=where, resume=locate(session, where)) as found:
        for notice in found.notices:
            click.echo(f"lamina: {sentence(notice)}", err=True)
        yield found


@click.command("undo")
@click.argument("session", shell_complete=offering.sessions)
@click.argument("decision", required=False)
@_CWD
@_JSON
def undo_command(session: str, decision: str | None, cwd: str, as_json: bool) -> None:
    """Take back a compaction, clearing, snip or pin of SESSION: the last one, or the one DECISION names."""
    with opened(session, cwd) as found:
        before = found.tokens
        undone = found.undo(decision)
        told = {"session_id": found.id, "undone": undone.id, "kind": undone.kind, "tokens_before": before, "tokens": found.tokens}
    if as_json:
        click.echo(document(told))
    else:
        click.echo(
            f"Undone: {undone.kind} {undone.id[:8]}. The model sees about {told['tokens']:,} tokens again, it was {before:,}."
        )


@click.command("expand")
@click.argument("session", shell_complete=offering.sessions)
@click.argument("node")
@click.option("--page", type=click.IntRange(min=1), default=1, show_default=True, help="Long ones come in pages.")
@_CWD
@_JSON
def expand_command(session: str, node: str, page: int, cwd: str, as_json: bool) -> None:
    """Show what NODE stands for in SESSION: a summary, a snip, a folded turn, a clearing, or a spilled result."""
    from ..core.log import Log
    from ..disk.transcripts.store import TranscriptReader, read_transcript
    from ..layers.l1_results.reopen import spilled_text
    from ..layers.l4_compact.expand import page_of, stands_for, text_of
    from ..session.expand import spill_in
    from .sessions import locate

    path = locate(session, Path(cwd).resolve())
    spill = spill_in(Log.load(lambda: read_transcript(path)), node)
    text = spilled_text(spill, path.with_suffix("")) if spill is not None else text_of(stands_for(TranscriptReader(path), node))
    shown = page_of(text, page)
    if as_json:
        click.echo(
            document({"session_id": path.stem, "node": node, "page": shown.number, "pages": shown.pages, "text": shown.text})
        )
        return
    click.echo(printable(shown.text))
    if shown.pages > 1:
        click.echo(f"Page {shown.number} of {shown.pages}; --page {shown.number % shown.pages + 1} shows another.", err=True)


@click.command("snip")
@click.argument("session", shell_complete=offering.sessions)
@click.argument("turns", required=False)
@_CWD
@_JSON
def snip_command(session: str, turns: str | None, cwd: str, as_json: bool) -> None:
    """Take TURNS (2, or 2-4) of SESSION out of what the model sees; without TURNS, list them."""
    with opened(session, cwd) as found:
        if turns is None:
            listed = [{"number": number, **turn._asdict()} for number, turn in enumerate(found.turns, 1)]
            if as_json:
                click.echo(document({"session_id": found.id, "turns": listed}))
                return
            for row in listed:
                click.echo(printable(f"{row['number']:>3}  {str(row['words'])[:100]}"))
            return
        before = found.tokens
        node = found.hide_messages(turns=turns)
        told = {"session_id": found.id, "snipped": node, "tokens_before": before, "tokens": found.tokens}
    if as_json:
        click.echo(document(told))
    else:
        click.echo(f"Taken out ({node[:8]}): the model sees about {told['tokens']:,} tokens, it was {before:,}.")


@click.command("pin")
@click.argument("session", shell_complete=offering.sessions)
@click.argument("text", required=False)
@click.option("--message", metavar="ID", help="Pin a message in view instead of a text.")
@_CWD
@_JSON
def pin_command(session: str, text: str | None, message: str | None, cwd: str, as_json: bool) -> None:
    """Keep TEXT through every compaction of SESSION; without TEXT, list what is pinned."""
    with opened(session, cwd) as found:
        pinned = found.pin(text, message=message) if text is not None or message is not None else None
        pins = found.pins
    if as_json:
        click.echo(document({"session_id": found.id, "pinned": pinned, "pins": pins}))
    elif pinned is not None:
        click.echo(f"Pinned ({pinned[:8]}): it will stand word for word after every compaction.")
    else:
        for uuid, kept in pins.items():
            click.echo(f"{uuid[:8]}  {json.dumps(printable(kept), ensure_ascii=False)}")
        if not pins:
            click.echo("Nothing is pinned.", err=True)
