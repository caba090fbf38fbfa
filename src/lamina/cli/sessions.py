"""`lamina sessions`: recorded conversations, Lamina's own and Claude Code's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import completion, options
from .console import notice, print_result, print_table
from .group import CommandGroup
from .safe_text import local_time, minute, printable, sentence
from .session_edits import expand_command, pin_command, snip_command, undo_command
from .session_search import search_command

if TYPE_CHECKING:
    from ..core.blocks import Block
    from ..disk.session_list import SessionInfo

SOURCES = ("all", "lamina", "claude-code")
# One line of a conversation in the short form.
SHOWN_CHARS = 400


@click.group("sessions", cls=CommandGroup)
def sessions_command() -> None:
    """List, show and clean up recorded conversations; undo, open again and keep what is in them."""


for _command in (undo_command, expand_command, pin_command, search_command, snip_command):
    sessions_command.add_command(_command)


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
        _print_sessions(found, everywhere)
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
    from ..conversation.window.recount import recount
    from ..core.log import Log
    from ..disk.jsonl import Health
    from ..disk.transcript import read_transcript
    from .transcripts import locate

    path = locate(session, cwd)
    health = Health()
    records = 0

    def read() -> Any:
        nonlocal records, health
        records, health = 0, Health()
        for record in read_transcript(path, health=health):
            records += 1
            yield record

    log = Log.load(read)
    notes, tokens = _notes(log, health, path), recount(log.view).tokens
    shown = {
        "session_id": path.stem,
        "path": str(path),
        "records": records,
        "skipped": health.skipped,
        "tokens": tokens,
        "notes": notes,
        "decisions": [{"id": uuid, "kind": type(decision).__name__.lower()} for uuid, decision in log.decisions.items()],
        "messages": log.view.messages(),
    }
    print_result(shown, f"{path.stem}  {records} records, about {tokens:,} tokens in view\n{path}", as_json=as_json)
    if not as_json:
        for note in notes:
            notice(note)
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
    from .session_clean import clean

    return clean(length, cwd, everywhere=everywhere, dry_run=dry_run, yes=yes)


def _info(info: SessionInfo) -> dict[str, Any]:
    named = {"session_id" if name == "id" else name: getattr(info, name) for name in info.__struct_fields__}
    return named | {"modified": local_time(info.modified).isoformat(timespec="seconds")}


def _print_sessions(found: list[SessionInfo], everywhere: bool) -> None:
    header = ["id", "when", "size", "from", *(["directory"] if everywhere else []), "about"]
    rows = [
        [info.id[:8], minute(info.modified), _size(info.size), info.source, *([info.cwd] if everywhere else []), info.title]
        for info in found
    ]
    print_table(header, rows, right=("size",))


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
