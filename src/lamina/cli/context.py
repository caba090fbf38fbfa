"""`lamina context`: show what fills a session's context window, by kind (T8), or the exact request of any call.

Read-only, so it also works on a session that is open elsewhere.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from . import completion, options
from .console import color, document, notice, terminal_width, waiting


@click.command("context")
@click.argument("session", metavar="[SESSION|FILE]", required=False, shell_complete=completion.sessions)
@click.option(
    "--turn", "number", metavar="N", type=click.IntRange(min=1), help="Show the exact request of the N-th call, block by block."
)
@click.option("--against", metavar="M", type=click.IntRange(min=1), help="With --turn: show what changed since the M-th call.")
@options.cwd("Look for the session in this directory.")
@options.as_json
def context_command(session: str | None, number: int | None, against: int | None, cwd: Path, as_json: bool) -> None:
    """Show what fills the context window of a session, or with --turn the content of one request.

    Without SESSION, show the newest session of this directory.
    """
    if against is not None and number is None:
        raise click.UsageError("--against compares two calls: use it together with --turn.")
    from ..history.sessions import name_of
    from ..history.window_report import report_on_transcript, to_json
    from .context_report import format_context, print_request
    from .transcripts import CountedTranscript, locate, locate_newest

    path = locate(session, cwd) if session is not None else locate_newest(cwd)
    read, name, settings = CountedTranscript(path), name_of(path), options.load_settings(cwd)
    if number is not None:
        columns = shutil.get_terminal_size().columns
        print_request(read, name.id, number, against, settings, as_json=as_json, width=columns)
        return
    with waiting("Reading the session"):
        report = report_on_transcript(read, settings, name.origin)
    if as_json:
        click.echo(document({"session_id": name.id, "source": name.origin, "path": str(path), **to_json(report)}))
    else:
        for text, style in format_context(report, shutil.get_terminal_size().columns, picture=terminal_width() is not None):
            click.echo(click.style(text, fg=style) if style else text, color=color())
    if (damage := read.health.sentence(str(path))) is not None:
        notice(damage)
