"""`lamina sessions`: recorded conversations, Lamina's own and Claude Code's."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import completion as offering
from .columns import show
from .group import Group
from .safe_text import document, printable, sentence
from .session_edits import expand_command, pin_command, snip_command, undo_command
from .session_search import search_command

if TYPE_CHECKING:
    from ..core.blocks import Block
    from ..disk.transcripts.session_list import SessionInfo

SOURCES = ("all", "lamina", "claude-code")
# One line of a conversation in the short form.
SHOWN_CHARS = 400


@click.group("sessions", cls=Group)
def command() -> None:
    """List, show and clean up recorded conversations; undo, open again and keep what is in them."""


for _command in (undo_command, expand_command, pin_command, search_command, snip_command):
    command.add_command(_command)


@command.command("list")
@click.option("--all", "everywhere", is_flag=True, help="Sessions of every directory, not only of this one.")
@click.option("--source", type=click.Choice(SOURCES), default="all", show_default=True, help="Whose sessions.")
@click.option("-n", "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many, newest first.")
@click.option("--cwd", type=click.Path(file_okay=False, exists=True), default=".", help="Whose sessions.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def list_command(everywhere: bool, source: str, limit: int, cwd: str, as_json: bool) -> None:
    """List sessions, newest first."""
    from ..disk.transcripts.session_list import list_sessions

    project = None if everywhere else Path(cwd).resolve()
    directories = [directory for home in homes(source) for directory in _projects(home, project)]
    found = [info for info in list_sessions(directories) if source in ("all", info.source)][:limit]
    if as_json:
        click.echo(document([_info(info) for info in found]))
    elif not found:
        where = "anywhere" if everywhere else f"for {Path(cwd).resolve()}"
        click.echo(f"No sessions {where}." + ("" if everywhere else " --all lists those of other directories."), err=True)
    else:
        _table(found, everywhere)


@command.command("show")
@click.argument("session", shell_complete=offering.sessions)
@click.option("--full", is_flag=True, help="Whole texts, not only their beginning.")
@click.option("--cwd", type=click.Path(file_okay=False, exists=True), default=".", help="Whose sessions.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def show_command(session: str, full: bool, cwd: str, as_json: bool) -> None:
    """Show the session SESSION: an id, the beginning of one, or a transcript file."""
    from ..core.log import Log
    from ..disk.transcripts.jsonl import Health
    from ..disk.transcripts.store import read_transcript

    path = locate(session, Path(cwd).resolve())
    health = Health()
    records = 0

    def read() -> Any:
        nonlocal records, health
        records, health = 0, Health()
        for record in read_transcript(path, health=health):
            records += 1
            yield record

    log = Log.load(read)
    notes = _notes(log, health, path)
    if as_json:
        shown = {
            "session_id": path.stem,
            "path": str(path),
            "records": records,
            "skipped": health.skipped,
            "tokens": _tokens(log),
            "notes": notes,
            "decisions": [{"id": uuid, "kind": type(decision).__name__.lower()} for uuid, decision in log.decisions.items()],
            "messages": log.view.messages(),
        }
        click.echo(document(shown))
        return
    click.echo(printable(f"{path.stem}  {records} records, about {_tokens(log):,} tokens in view\n{path}"))
    for note in notes:
        click.echo(f"lamina: {sentence(note)}", err=True)
    _conversation(log, full)


@command.command("clean")
@click.option("--older-than", "length", metavar="AGE", help="30d, 12w, 6m, 1y; without it what cleanupPeriodDays says.")
@click.option("--all", "everywhere", is_flag=True, help="Sessions of every directory, not only of this project.")
@click.option("--dry-run", is_flag=True, help="Only show what would go.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--cwd", type=click.Path(file_okay=False, exists=True), default=".", help="Whose sessions.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
def clean_command(length: str | None, everywhere: bool, dry_run: bool, yes: bool, cwd: str, as_json: bool) -> None:
    """Remove old sessions with all that lies beside them; open ones, and those a memory refers to, stay."""
    from .session_clean import clean

    clean(length, Path(cwd).resolve(), everywhere=everywhere, dry_run=dry_run, yes=yes, as_json=as_json)


def homes(source: str) -> list[Path]:
    """The directories that hold `projects/`, each once."""
    from ..disk.settings_files import lamina_home, user_home

    person = user_home(os.environ)
    named = os.environ.get("CLAUDE_CONFIG_DIR")
    claude = Path(named) if named else person / ".claude" if person is not None else None
    own = lamina_home(os.environ)
    wanted = [own] if source == "lamina" else [own, claude]
    return list(dict.fromkeys(path.absolute() for path in wanted if path is not None))


def locate(session: str, cwd: Path) -> Path:
    """The transcript that is meant: a session's id, the beginning of one, or a file; it holds a conversation."""
    from . import transcript_check as recorded

    path = recorded.file_named(session) or _by_id(session, cwd)
    recorded.check(path)
    return path


def _by_id(session: str, cwd: Path) -> Path:
    from ..core.errors import NoSuchSession
    from ..disk.paths.project import slug
    from ..disk.transcripts.search import find_transcript
    from ..session.open import checked_id

    error: NoSuchSession | None = None
    for home in homes("all"):
        try:
            return find_transcript(home / "projects", slug(cwd), checked_id(session))
        except NoSuchSession as missing:
            error = error or missing
    if Path(session).is_file():
        return Path(session).absolute()
    raise error or NoSuchSession(session, "any home directory")


def _projects(home: Path, cwd: Path | None) -> list[Path]:
    from ..disk.paths.project import slug
    from ..disk.transcripts.search import project_directories

    return project_directories(home / "projects") if cwd is None else [home / "projects" / slug(cwd)]


def _info(info: SessionInfo) -> dict[str, Any]:
    named = {"session_id" if name == "id" else name: getattr(info, name) for name in info.__struct_fields__}
    return named | {"modified": _time(info.modified).isoformat(timespec="seconds")}


def _time(seconds: float) -> datetime:
    """A file's time as a person's; one beyond all calendars becomes the nearest that is in them."""
    try:
        return datetime.fromtimestamp(seconds).astimezone()
    except (ValueError, OverflowError, OSError):
        return (datetime.max if seconds > 0 else datetime.min).replace(tzinfo=UTC)


def _table(found: list[SessionInfo], everywhere: bool) -> None:
    header = ["id", "when", "size", "from", *(["directory"] if everywhere else []), "about"]
    rows = []
    for info in found:
        when = _time(info.modified).strftime("%Y-%m-%d %H:%M")
        rows.append([info.id[:8], when, _size(info.size), info.source, *([info.cwd] if everywhere else []), info.title])
    show(header, rows, right=("size",))


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


def _tokens(log: Any) -> int:
    from ..conversation.window.recount import recount

    return recount(log.view).tokens


def _conversation(log: Any, full: bool) -> None:
    for item in log.view.items:
        for block in item.blocks:
            label, body = _shown(block, item.role, item.kind)
            body = printable(body) if full else _short(printable(body))
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


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[:SHOWN_CHARS]}… ({len(text):,} characters)"
