"""`lamina sessions`: list, show, search, edit and clean up recorded sessions. Those of Claude Code, Codex and pi are read, never changed.

A session that is open elsewhere, or that another program wrote, is not edited in place: the change goes into a new session,
with a notice, and the original stays.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ..language.text import Text
from ..language.wording import counted, shorten
from . import completion, options
from .console import (
    capped,
    join_cells,
    local_minute,
    local_time,
    minute,
    notice,
    notice_unread,
    print_result,
    print_table,
    printable,
    terminal_width,
    waiting,
    wrapped,
)
from .conversation import find_problems, print_conversation, show_turn

if TYPE_CHECKING:
    from ..history.sessions import SourceSession
    from ..maintenance.retention import RetentionPlan
    from ..session.session import Session

SOURCES = ("all", "lamina", "claude-code", "codex", "pi")
# Number of sessions listed before the confirmation.
MOST_LISTED = 40
# Characters of a term that a message repeats.
MOST_SHOWN = 80


@click.group("sessions", cls=options.CommandGroup)
def sessions_command() -> None:
    """List, show, search, edit and clean up recorded sessions."""


@sessions_command.command("list")
@click.option("--all", "everywhere", is_flag=True, help="List the sessions of all directories.")
@click.option("--source", type=click.Choice(SOURCES), default="all", show_default=True, help="Program that wrote the sessions.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Maximum number of sessions.")
@options.cwd("List the sessions of this directory.")
@options.as_json
def list_command(everywhere: bool, source: str, limit: int, cwd: Path, as_json: bool) -> None:
    """List sessions, newest first."""
    from .transcripts import find_sessions, name_rows

    unread: list[str] = []
    every = find_sessions(None if everywhere else cwd, source, unread)
    found = every[:limit]
    cut = [f"Listed {len(found):,} of {len(every):,} sessions. Use --limit to list more."] if len(found) < len(every) else []
    notice_unread(unread)
    notice(*cut)
    if found and not as_json:
        from ..providers.amounts import Amount
        from .amounts import HEADS, cell

        billing = options.load_settings(cwd).billing
        names, shared = name_rows(found)
        header = ["id", "when", "size", HEADS[billing], "from", *(["directory"] if everywhere else []), "about"]
        rows = [
            [short, minute(info.last_active), _size(info.size), cell(Amount(info.usage, info.cost_usd), billing, 2), info.origin]
            + ([info.project] if everywhere else [])
            + [info.title]
            for short, info in zip(names, found, strict=True)
        ]
        print_table(header, rows, right=("size", HEADS[billing]))
        notice(*shared)
        return
    where = "." if everywhere else f" in {cwd}. Use --all to list the sessions of all directories."
    print_result([_info(info) for info in found], (), as_json=as_json, none=f"No sessions found{where}")


@sessions_command.command("show")
@click.argument("session", shell_complete=completion.sessions)
@click.option("--full", is_flag=True, help="Show messages in full.")
@click.option("--turn", metavar="N", type=click.IntRange(min=1), help="Show only the N-th message of the user and its answer.")
@options.cwd("Look for the session in this directory.")
@options.as_json
def show_command(session: str, full: bool, turn: int | None, cwd: Path, as_json: bool) -> None:
    """Show the session SESSION, given by id, id prefix or transcript file."""
    from ..conversation.window.count import count_log
    from ..core.log import Log
    from ..history.sessions import name_of
    from .transcripts import CountedTranscript, locate

    path = locate(session, cwd)
    read = CountedTranscript(path)
    if turn is not None:
        show_turn(path, list(read()), turn, full=full, as_json=as_json)
        return
    with waiting("Reading the session"):
        log = Log.load(read)
    notes, tokens, name = find_problems(log, read.health, path), count_log(log).tokens, name_of(path)
    shown = {
        "session_id": name.id,
        "source": name.origin,
        "path": str(path),
        "records": read.records,
        "skipped": read.health.skipped,
        "tokens": tokens,
        "notes": notes,
        "decisions": [{"id": uuid, "kind": type(decision).__name__.lower()} for uuid, decision in log.decisions.items()],
        "messages": log.view.messages(),
    }
    head = f"{name.id}  {name.origin}  {counted(read.records, 'record')}, about {tokens:,} tokens in view"
    print_result(shown, f"{head}\n{path}", as_json=as_json)
    if not as_json:
        notice(*notes)
        print_conversation(log, full)


@sessions_command.command("clean")
@click.option("--older-than", "length", metavar="AGE", help="Minimum age: 30d, 12w, 6m or 1y. Default: cleanupPeriodDays.")
@click.option("--all", "everywhere", is_flag=True, help="Clean up the sessions of all projects.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@options.yes
@options.cwd("Clean up the sessions of this directory.")
@options.reports
def clean_command(length: str | None, everywhere: bool, dry_run: bool, yes: bool, cwd: Path) -> options.Reported:
    """Remove old sessions and their files. Open sessions, and those a memory refers to, are kept."""
    from ..disk.regular_file import subdirectories
    from ..maintenance import retention
    from ..maintenance.kept_files import directories_of_project

    home, now = options.need_home(), time.time()
    seconds = retention.parse_age(length) if length is not None else _kept_seconds(cwd, home)
    directories = subdirectories(home / "projects") if everywhere else directories_of_project(home, cwd)
    planned = retention.plan_removal(directories, home, now=now, older_than=seconds)
    if not dry_run and planned.remove and not yes:
        click.echo(_shown_plan(planned, "would be removed"), err=True)
        options.confirm("Remove them permanently?")
    if not dry_run:
        retention.finish_removals(home)
        with waiting("Removing the sessions"):
            done = retention.remove_sessions(planned, home, now=now, days=seconds / retention.DAY)
        # Mark the removals as announced: the user sees them right here.
        retention.announce(home)
        names = {line.session for line in done}
        planned = planned._replace(remove=tuple(one for one in planned.remove if one.files.id in names))
    return _plan_rows(planned) | {"dry_run": dry_run}, _shown_plan(planned, "would be removed" if dry_run else "removed")


def _kept_seconds(cwd: Path, home: Path) -> float:
    from ..maintenance.retention import DAY

    days = options.load_settings(cwd, home).retention_days
    if days is None:
        raise click.UsageError("Sessions are kept forever. Use --older-than 30d, or set cleanupPeriodDays.")
    return days * DAY


def _plan_rows(planned: RetentionPlan) -> dict[str, Any]:
    def named(path: Path) -> dict[str, Any]:
        return {"session_id": path.stem, "path": str(path)}

    return {
        "removed": [named(one.files.transcript) | {"bytes": one.size} for one in planned.remove],
        "kept": [named(one.files.transcript) | {"why": one.why} for one in planned.keep],
    }


def _shown_plan(planned: RetentionPlan, verb: str) -> str:
    sizes = [f"{one.files.id}  {one.size:,} bytes" for one in planned.remove]
    rows = capped(sizes, MOST_LISTED, Text("… and {count} more"))
    rows.append(f"{counted(len(planned.remove), 'session')} {verb}.")
    rows += [f"Kept {one.files.id}: {one.why}." for one in planned.keep]
    return printable("\n".join(rows))


@sessions_command.command("search")
@options.words("term")
@click.option("--all", "everywhere", is_flag=True, help="Search the sessions of all directories.")
@click.option("--source", type=click.Choice(SOURCES), default="all", show_default=True, help="Program that wrote the sessions.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Maximum number of results.")
@options.cwd("Search the sessions of this directory.")
@options.reports
def search_command(term: str, everywhere: bool, source: str, limit: int, cwd: Path) -> options.Reported:
    """Search messages and tool results of earlier sessions for TERM, word for word. To ask a question, use lamina search."""
    if not term.strip():
        raise click.UsageError("TERM is empty: pass a word or a phrase to search for.")
    from ..history.exact import search_exact
    from .transcripts import find_sessions, name_rows

    unread: list[str] = []
    with waiting("Searching the sessions"):
        sessions = find_sessions(None if everywhere else cwd, source, unread)
        every = [one for session in sessions for one in (session, *session.subagents)]
        found = list(islice(search_exact(term, every, unread), limit))
    notice_unread(unread)
    names, shared = name_rows([hit.session for hit in found])
    notice(*shared)
    rows = [
        {"session_id": hit.session.id, "source": hit.session.origin, "turn": hit.turn, "path": hit.session.path}
        | {"time": hit.time, "role": hit.role, "text": hit.text}
        for hit in found
    ]
    width = terminal_width()
    heads = (
        (name, local_minute(hit.time), hit.session.origin, f"turn {hit.turn}", _speaker(hit.role))
        for name, hit in zip(names, found, strict=True)
    )
    lines = (
        join_cells(head, "   ", width=width) + "\n" + wrapped(hit.text, "   ", width=width)
        for head, hit in zip(heads, found, strict=True)
    )
    shown = shorten(term, MOST_SHOWN)
    none = (
        f"No message with {shown!r} in the sessions of {cwd}." if not everywhere else f"No message with {shown!r} in any session."
    )
    return rows, lines, none


def _speaker(role: str) -> str:
    return {"tool": "tool result", "call": "tool call"}.get(role, role)


@contextmanager
def _open_session(session: str, cwd: Path) -> Iterator[tuple[Session, str]]:
    """Open the session for editing, with the id that it was opened by, and print its notices to standard error.

    A copy is written with its first change. Until then there is no other session, and none is announced.
    """
    from ..history.sessions import name_of
    from ..session.session import Session
    from .transcripts import locate

    path = locate(session, cwd, edit=True)
    with Session("offline", cwd=cwd, resume=path) as found:
        try:
            yield found, name_of(path).id
        finally:
            written = found.path is not None and found.path.exists()
            notice(*(text for text in found.notices if written or found.id not in text))


@sessions_command.command("undo")
@click.argument("session", shell_complete=completion.sessions)
@click.argument("decision", required=False)
@options.cwd("Look for the session in this directory.")
@options.reports
def undo_command(session: str, decision: str | None, cwd: Path) -> options.Reported:
    """Undo the last compaction, clearing, snip or pin of SESSION, or the one with the id DECISION."""
    with _open_session(session, cwd) as (found, _):
        before = found.window_state.tokens
        undone, after = found.undo(decision), found.window_state.tokens
        told = {"session_id": found.id, "undone": undone.id, "kind": undone.kind, "tokens_before": before, "tokens": after}
    return told, f"Undid {undone.kind} {undone.id[:8]}. {_describe_view(after, before)}"


@sessions_command.command("expand")
@click.argument("session", shell_complete=completion.sessions)
@click.argument("node")
@click.option("--page", type=click.IntRange(min=1), default=1, show_default=True, help="Page of a long text.")
@options.cwd("Look for the session in this directory.")
@options.as_json
def expand_command(session: str, node: str, page: int, cwd: Path, as_json: bool) -> None:
    """Show the original text behind NODE: a summary, snip, folded turn, cleared or stored result."""
    from ..core.log import Log
    from ..disk.transcripts.store import TranscriptReader
    from ..history import sessions as sources
    from ..history.sessions import name_of
    from ..layers.l1_results.reopen import spilled_text
    from ..layers.l4_compact.expand import page_of, stands_for, text_of
    from ..session.expand import spill_in
    from .transcripts import locate

    path = locate(session, cwd)
    spill = spill_in(Log.load(lambda: sources.read(path)), node)
    text = spilled_text(spill, path.with_suffix("")) if spill is not None else text_of(stands_for(TranscriptReader(path), node))
    shown = page_of(text, page)
    told = {"session_id": name_of(path).id, "node": node, "page": shown.number, "pages": shown.pages, "text": shown.text}
    print_result(told, shown.text, as_json=as_json)
    if shown.pages > 1 and not as_json:
        click.echo(
            f"Page {shown.number} of {shown.pages}. Use --page {shown.number % shown.pages + 1} for another page.", err=True
        )


@sessions_command.command("snip")
@click.argument("session", shell_complete=completion.sessions)
@click.argument("turns", required=False)
@options.cwd("Look for the session in this directory.")
@options.reports
def snip_command(session: str, turns: str | None, cwd: Path) -> options.Reported:
    """Hide TURNS (such as 2 or 2-4) of SESSION from the model; without TURNS, list them."""
    with _open_session(session, cwd) as (found, known):
        if turns is None:
            listed = [{"number": number, **msgspec.structs.asdict(turn)} for number, turn in enumerate(found.turns, 1)]
            lines = (f"{row['number']:>3}  {str(row['words'])[:100]}" for row in listed)
            return {"session_id": known, "turns": listed}, lines
        before = found.window_state.tokens
        node, after = found.hide_messages(turns=turns), found.window_state.tokens
        told = {"session_id": found.id, "snipped": node, "tokens_before": before, "tokens": after}
    return told, f"Hidden from the model ({node[:8]}). {_describe_view(after, before)}"


@sessions_command.command("pin")
@click.argument("session", shell_complete=completion.sessions)
@click.argument("text", required=False)
@click.option("--message", metavar="ID", help="Pin the message with this id instead of a text.")
@options.cwd("Look for the session in this directory.")
@options.reports
def pin_command(session: str, text: str | None, message: str | None, cwd: Path) -> options.Reported:
    """Pin TEXT so that it survives every compaction of SESSION; without TEXT, list the pins."""
    with _open_session(session, cwd) as (found, known):
        pinned = found.pin(text, message=message) if text is not None or message is not None else None
        pins = {one.id: one.text for one in found.decisions() if one.kind == "pin"}
    lines = [f"{uuid[:8]}  {json.dumps(printable(kept), ensure_ascii=False)}" for uuid, kept in pins.items()]
    if pinned is not None:
        lines = [f"Pinned ({pinned[:8]}). The text is kept word for word through every compaction."]
    return {"session_id": known if pinned is None else found.id, "pinned": pinned, "pins": pins}, lines, "No pins."


def _describe_view(tokens: int, before: int) -> str:
    return f"The model now sees about {tokens:,} tokens (before: {before:,})."


def _info(info: SourceSession) -> dict[str, Any]:
    return {
        "session_id": info.id,
        "path": info.path,
        "source": info.origin,
        "cwd": info.project,
        "title": info.title,
        "started": info.started,
        "last_active": local_time(info.last_active).isoformat(timespec="seconds"),
        "modified": local_time(info.modified).isoformat(timespec="seconds"),
        "size": info.size,
        "messages": info.messages,
        "tokens": info.tokens,
        "cost_usd": info.known_cost,
        "compactions": info.compactions,
        "parent": info.parent or None,
    }


def _size(size: int) -> str:
    shown = float(size)
    for unit in ("B", "KB", "MB"):
        if shown < 1000:
            return f"{shown:.0f} {unit}"
        shown /= 1000
    return f"{shown:.1f} GB"
