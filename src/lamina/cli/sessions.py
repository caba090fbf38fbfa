"""`lamina sessions`: recorded conversations, Lamina's own and Claude Code's: listed, shown, searched, changed and cleaned up.

A session that is open elsewhere, and one that another program wrote, is changed as a new one, which is said; the original stays.
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

from . import completion, options
from .console import capped, local_time, minute, notice, print_result, print_table, printable, sentence, waiting

if TYPE_CHECKING:
    from ..core.blocks import Block
    from ..disk.transcripts.session_list import SessionInfo
    from ..maintenance.retention import RetentionPlan
    from ..session.session import Session

SOURCES = ("all", "lamina", "claude-code")
# One line of a conversation in the short form.
SHOWN_CHARS = 400
# More lines than a person reads before they answer.
MOST_LISTED = 40


@click.group("sessions", cls=options.CommandGroup)
def sessions_command() -> None:
    """List, show and clean up recorded conversations; undo, open again and keep what is in them."""


@sessions_command.command("list")
@click.option("--all", "everywhere", is_flag=True, help="Sessions of every directory, not only of this one.")
@click.option("--source", type=click.Choice(SOURCES), default="all", show_default=True, help="Whose sessions.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many, newest first.")
@options.cwd("Whose sessions.")
@options.as_json
def list_command(everywhere: bool, source: str, limit: int, cwd: Path, as_json: bool) -> None:
    """List sessions, newest first."""
    from .transcripts import find_sessions

    in_homes = find_sessions(None if everywhere else cwd, source)
    found = [info for info in in_homes if source in ("all", info.source)][:limit]
    if found and not as_json:
        header = ["id", "when", "size", "from", *(["directory"] if everywhere else []), "about"]
        rows = [
            [info.id[:8], minute(info.modified), _size(info.size), info.source, *([info.cwd] if everywhere else []), info.title]
            for info in found
        ]
        print_table(header, rows, right=("size",))
        return
    where = "anywhere." if everywhere else f"for {cwd}. --all lists those of other directories."
    print_result([_info(info) for info in found], (), as_json=as_json, none=f"No sessions {where}")


@sessions_command.command("show")
@click.argument("session", shell_complete=completion.sessions)
@click.option("--full", is_flag=True, help="Whole texts, not only their beginning.")
@options.cwd("Whose sessions.")
@options.as_json
def show_command(session: str, full: bool, cwd: Path, as_json: bool) -> None:
    """Show the session SESSION: an id, the beginning of one, or a transcript file."""
    from ..conversation.window.count import recount
    from ..core.log import Log
    from .transcripts import CountedTranscript, locate

    path = locate(session, cwd)
    read = CountedTranscript(path)
    log = Log.load(read)
    notes, tokens = _notes(log, read.health, path), recount(log.view).tokens
    shown = {
        "session_id": path.stem,
        "path": str(path),
        "records": read.records,
        "skipped": read.health.skipped,
        "tokens": tokens,
        "notes": notes,
        "decisions": [{"id": uuid, "kind": type(decision).__name__.lower()} for uuid, decision in log.decisions.items()],
        "messages": log.view.messages(),
    }
    print_result(shown, f"{path.stem}  {read.records} records, about {tokens:,} tokens in view\n{path}", as_json=as_json)
    if not as_json:
        notice(*notes)
        _print_conversation(log, full)


@sessions_command.command("clean")
@click.option("--older-than", "length", metavar="AGE", help="30d, 12w, 6m, 1y; without it what cleanupPeriodDays says.")
@click.option("--all", "everywhere", is_flag=True, help="Sessions of every directory, not only of this project.")
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@options.yes
@options.cwd("Whose sessions.")
@options.reports
def clean_command(length: str | None, everywhere: bool, dry_run: bool, yes: bool, cwd: Path) -> options.Reported:
    """Remove old sessions with all that lies beside them; open ones, and those a memory refers to, stay."""
    from ..disk.transcripts.search import project_directories
    from ..maintenance import retention
    from ..maintenance.kept_files import directories_of_project

    home, now = options.need_home(), time.time()
    seconds = retention.parse_age(length) if length is not None else _kept_seconds(cwd, home)
    directories = project_directories(home / "projects") if everywhere else directories_of_project(home, cwd)
    planned = retention.plan_removal(directories, home, now=now, older_than=seconds)
    if not dry_run and planned.remove and not yes:
        click.echo(_shown_plan(planned, "would go"), err=True)
        options.confirm("Remove them for good?")
    if not dry_run:
        retention.finish_removals(home)
        done = retention.remove_sessions(planned, home, now=now, days=seconds / retention.DAY)
        # The person has just been told.
        retention.announce(home)
        names = {line.session for line in done}
        planned = planned._replace(remove=tuple(one for one in planned.remove if one.files.id in names))
    return _plan_rows(planned) | {"dry_run": dry_run}, _shown_plan(planned, "would go" if dry_run else "went")


def _kept_seconds(cwd: Path, home: Path) -> float:
    from ..disk.home.loading import settings_in_force
    from ..maintenance.retention import DAY

    days = settings_in_force(cwd, home=home).retention_days
    if days is None:
        raise click.UsageError("sessions are kept for ever: say --older-than 30d, or set cleanupPeriodDays.")
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
    rows = capped(sizes, MOST_LISTED, "… and {} more")
    rows.append(f"{len(planned.remove)} sessions {verb}.")
    rows += [f"Kept {one.files.id}: {one.why}." for one in planned.keep]
    return printable("\n".join(rows))


@sessions_command.command("search")
@click.argument("term")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=20, show_default=True, help="At most so many, newest first.")
@options.cwd("Whose sessions.")
@options.reports
def search_command(term: str, limit: int, cwd: Path) -> options.Reported:
    """Messages and results of earlier sessions that hold TERM. Memory comes first: lamina memory search."""
    if not term.strip():
        raise click.UsageError("give a word or a phrase to look for.")
    from .transcripts import search_sessions

    unread: list[str] = []
    with waiting("Looking through the sessions"):
        found = list(islice(search_sessions(term, cwd, unread), limit))
    notice(*unread)
    lines = (f"{hit['session_id']}  {hit['time'][:16].replace('T', ' ')}  {hit['role']}: {hit['text']}" for hit in found)
    none = f"Nobody said {term!r} in a session of {cwd}."
    return found, lines, none


@contextmanager
def _open_session(session: str, cwd: Path) -> Iterator[Session]:
    """The session, to be changed; what there is to say about opening it goes to stderr."""
    from ..session.session import Session
    from .transcripts import locate

    with Session("offline", cwd=cwd, resume=locate(session, cwd)) as found:
        notice(*found.notices)
        yield found


@sessions_command.command("undo")
@click.argument("session", shell_complete=completion.sessions)
@click.argument("decision", required=False)
@options.cwd("Whose session.")
@options.reports
def undo_command(session: str, decision: str | None, cwd: Path) -> options.Reported:
    """Take back a compaction, clearing, snip or pin of SESSION: the last one, or the one DECISION names."""
    with _open_session(session, cwd) as found:
        before = found.tokens
        undone = found.undo(decision)
        told = {"session_id": found.id, "undone": undone.id, "kind": undone.kind, "tokens_before": before, "tokens": found.tokens}
    said = f"Undone: {undone.kind} {undone.id[:8]}. The model sees about {told['tokens']:,} tokens again, it was {before:,}."
    return told, said


@sessions_command.command("expand")
@click.argument("session", shell_complete=completion.sessions)
@click.argument("node")
@click.option("--page", type=click.IntRange(min=1), default=1, show_default=True, help="Long ones come in pages.")
@options.cwd("Whose session.")
@options.as_json
def expand_command(session: str, node: str, page: int, cwd: Path, as_json: bool) -> None:
    """Show what NODE stands for in SESSION: a summary, a snip, a folded turn, a clearing, or a spilled result."""
    from ..core.log import Log
    from ..disk.transcripts.store import TranscriptReader, read_transcript
    from ..layers.l1_results.reopen import spilled_text
    from ..layers.l4_compact.expand import page_of, stands_for, text_of
    from ..session.expand import spill_in
    from .transcripts import locate

    path = locate(session, cwd)
    spill = spill_in(Log.load(lambda: read_transcript(path)), node)
    text = spilled_text(spill, path.with_suffix("")) if spill is not None else text_of(stands_for(TranscriptReader(path), node))
    shown = page_of(text, page)
    told = {"session_id": path.stem, "node": node, "page": shown.number, "pages": shown.pages, "text": shown.text}
    print_result(told, shown.text, as_json=as_json)
    if shown.pages > 1 and not as_json:
        click.echo(f"Page {shown.number} of {shown.pages}; --page {shown.number % shown.pages + 1} shows another.", err=True)


@sessions_command.command("snip")
@click.argument("session", shell_complete=completion.sessions)
@click.argument("turns", required=False)
@options.cwd("Whose session.")
@options.reports
def snip_command(session: str, turns: str | None, cwd: Path) -> options.Reported:
    """Take TURNS (2, or 2-4) of SESSION out of what the model sees; without TURNS, list them."""
    with _open_session(session, cwd) as found:
        if turns is None:
            listed = [{"number": number, **turn._asdict()} for number, turn in enumerate(found.turns, 1)]
            lines = (f"{row['number']:>3}  {str(row['words'])[:100]}" for row in listed)
            return {"session_id": found.id, "turns": listed}, lines
        before = found.tokens
        node = found.hide_messages(turns=turns)
        told = {"session_id": found.id, "snipped": node, "tokens_before": before, "tokens": found.tokens}
    said = f"Taken out ({node[:8]}): the model sees about {told['tokens']:,} tokens, it was {before:,}."
    return told, said


@sessions_command.command("pin")
@click.argument("session", shell_complete=completion.sessions)
@click.argument("text", required=False)
@click.option("--message", metavar="ID", help="Pin a message in view instead of a text.")
@options.cwd("Whose session.")
@options.reports
def pin_command(session: str, text: str | None, message: str | None, cwd: Path) -> options.Reported:
    """Keep TEXT through every compaction of SESSION; without TEXT, list what is pinned."""
    with _open_session(session, cwd) as found:
        pinned = found.pin(text, message=message) if text is not None or message is not None else None
        pins = found.pins
    lines = [f"{uuid[:8]}  {json.dumps(printable(kept), ensure_ascii=False)}" for uuid, kept in pins.items()]
    if pinned is not None:
        lines = [f"Pinned ({pinned[:8]}): it will stand word for word after every compaction."]
    return {"session_id": found.id, "pinned": pinned, "pins": pins}, lines, "Nothing is pinned."


def _info(info: SessionInfo) -> dict[str, Any]:
    named = {"session_id" if name == "id" else name: getattr(info, name) for name in info.__struct_fields__}
    return named | {"modified": local_time(info.modified).isoformat(timespec="seconds")}


def _size(size: int) -> str:
    shown = float(size)
    for unit in ("B", "KB", "MB"):
        if shown < 1000:
            return f"{shown:.0f} {unit}"
        shown /= 1000
    return f"{shown:.1f} GB"


def _notes(log: Any, health: Any, path: Path) -> list[str]:
    notes = [health.sentence(str(path))]
    if log.tree.bridged:
        notes.append(
            f"{path}: {log.tree.bridged} records name a parent that is not in the file; each stands behind the one before."
        )
    if log.tree.duplicates:
        notes.append(f"{path}: {log.tree.duplicates} records stand in the file twice; the later one counts.")
    if log.newer is not None:
        notes.append(f"{path}: some records are in format {log.newer}, which a newer Lamina wrote; they are left out here.")
    return [note for note in notes if note]


def _print_conversation(log: Any, full: bool) -> None:
    for item in log.view.items:
        for block in item.blocks:
            label, body = _shown(block, item.role, item.kind)
            body = printable(body)
            if not full and len(body) > SHOWN_CHARS:
                body = f"{body[:SHOWN_CHARS]}… ({len(body):,} characters)"
            click.echo(f"\n{click.style(sentence(label), bold=True)}  {sentence(item.time)}\n{body}")


def _shown(block: Block, role: str, kind: str) -> tuple[str, str]:
    from ..core.blocks import Document, Image, RedactedThinking, Text, Thinking, ToolResult, ToolUse

    who = role if kind == "said" else f"{role} ({kind})"
    match block:
        case Text():
            return who, block.text
        case Thinking():
            return f"{role} thinks", block.thinking
        case RedactedThinking():
            return f"{role} thinks", "(redacted)"
        case ToolUse():
            return f"calls {block.name}", json.dumps(block.input, ensure_ascii=False)
        case ToolResult():
            return "result (error)" if block.is_error else "result", block.text or "(no text)"
        case Image() | Document():
            return who, f"[{block.wire['type']}]"
        case _:
            return who, f"[{block.kind}]"
