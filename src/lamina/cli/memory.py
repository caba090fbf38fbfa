"""`lamina memory`: list, search, save, edit and restore memories, and see their history."""

from __future__ import annotations

import re
import shlex
import sys
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..core.errors import InputError, LaminaError
from ..language.wording import counted, plural, shorten
from . import completion, options
from .console import minute, notice, print_result, print_table, printable, sentence, utc_time, waiting
from .options import (
    CommandGroup,
    Reported,
    agent_option,
    did_you_mean,
    model_author,
    only_for_user,
    open_memory,
    reading_memory,
    with_memory,
)

if TYPE_CHECKING:
    from ..memory.memory import Memory
    from ..memory.store.contract import MemoryVersion
    from ..memory.store.topic import Topic
    from ..memory.store.topic_files import TopicHeader
    from .editor import EditedCopy

_DREAM = re.compile(r"\d{8}T\d{4}-[0-9a-f]{4}")
_WORDS = {"today": 0, "yesterday": 1}
NONE_YET = 'No memories here yet. Save one with `lamina -p "Remember: …"` or `lamina memory save`.'
HEADER = ("name", "type", "modified", "description")
# A description is one line of the index.
DESCRIPTION_CHARS = 150
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])|\n")
TYPES = ("user", "feedback", "project", "reference")


@click.group("memory", cls=CommandGroup)
@agent_option
def memory_command() -> None:
    """List, search, save, edit and restore memories, and see their history."""


@memory_command.command("list")
@options.cwd()
@options.as_json
def list_command(cwd: Path, as_json: bool) -> None:
    """List all memories, newest first."""
    with open_memory(cwd, read_only=True) as memory, waiting("Reading the memories"):
        found = memory.headers()
        rows = [_row(header, memory) for header in found] if as_json else []
    if as_json or not found:
        print_result(rows, (), as_json=as_json, none=NONE_YET)
    else:
        print_table(HEADER, [_cells(header) for header in found])


@memory_command.command("show")
@click.argument("name", shell_complete=completion.memories)
@reading_memory
def show_command(memory: Memory, name: str) -> Reported:
    """Show the memory NAME, given by name or file."""
    topic = _known(memory, name)
    from ..memory.store.topic import evidence_of, origin_of

    kind = f" [{topic.type}]" if topic.type else ""
    origin, checked = origin_of(topic), memory.evidence(topic)
    facts = [f"Origin: {origin}"] if origin else []
    facts += [f"Evidence: {checked.state} ({checked.why})", *(f"  {entry}" for entry in evidence_of(topic))] if checked else []
    text = "\n".join(
        [f"{topic.name}{kind}", topic.description, str(memory.where(topic.file)), *map(printable, facts), "", topic.body]
    )
    row = _row(topic, memory) | {"body": topic.body, "origin": origin}
    found = {"state": checked.state, "why": checked.why, "entries": list(evidence_of(topic))} if checked else None
    return row | {"evidence": found}, text


@memory_command.command("search")
@options.words("query")
@click.option("-k", "most", type=click.IntRange(1, 1_000), default=5, show_default=True, help="Maximum number of results.")
@click.option("--explain", is_flag=True, help="Also show the score, the matching words and the evidence.")
@reading_memory
def search_command(memory: Memory, query: str, most: int, explain: bool) -> Reported:
    """List the memories that match QUERY, best first. Needs no model."""
    if not query.strip():
        raise click.UsageError("QUERY is empty: pass a question or a few words.")
    with waiting("Searching the memories"):
        found = memory.recall(query, most)
    rows = [_row(each.topic, memory) | {"score": round(each.score, 4), "why": each.why} for each in found]
    lines = [
        _line(each.topic)
        + (f"\n    {each.score:.2f}  {each.why}\n    {each.evidence.state}: {each.evidence.why}" if explain else "")
        for each in found
    ]
    return rows, lines, "No memory matches the query."


@memory_command.command("save")
@click.argument("name", shell_complete=completion.memories)
@click.option("--type", "kind", type=click.Choice(TYPES), help="Kind of memory.")
@click.option("--description", help="One-line summary used for recall; the first sentence of BODY if not given.")
@click.option("--scope", type=click.Choice(("private", "team")), default="private", show_default=True, help="Who shares it.")
@click.option(
    "--evidence",
    multiple=True,
    metavar="FILE[#SYMBOL]",
    help="File of the project that the memory relies on. May be given again.",
)
@click.argument("body", required=False)
@with_memory
def save_command(
    memory: Memory, name: str, kind: Any, description: str | None, scope: Any, evidence: tuple[str, ...], body: str | None
) -> Reported:
    """Save a memory, or update the given parts of one. BODY is its text; '-' reads it from standard input."""
    from ..language.invisible import has_invisible
    from ..memory.store.contract import Saved
    from ..memory.store.draft import MOST_BYTES

    if body == "-":
        body = sys.stdin.buffer.read(MOST_BYTES + 1).decode("utf-8", "replace")
    old = memory.get(f"team/{name}" if scope == "team" else name)
    if old is None and not (description or body or "").strip():
        raise click.UsageError("A new memory needs a text: pass BODY or --description.")
    body = body if body is not None else old.body if old is not None else ""
    if description is None:
        description = (old.description if old is not None else "") or _first_sentence(body)
    missing = [entry for entry, pinned in zip(evidence, memory.pin(evidence), strict=True) if "@" not in pinned]
    notice(*(f"The evidence {printable(entry)} is not a file of this project, so it cannot be checked." for entry in missing))
    done = memory.save(name, type=kind, description=description, body=body, evidence=evidence, scope=scope, why=model_author())
    if not isinstance(done, Saved):
        return {"proposed": done.id}, f"Pending approval. Run `lamina inbox accept {done.id}` to save it."
    notice(*(f"A secret was removed from the text ({removed})." for removed in done.redacted))
    if has_invisible(f"{name}{description}{body}"):
        notice("Invisible characters were removed from the text.")
    if done.unfinished:
        notice(done.unfinished)
    row = _row(done.topic, memory) | {"created": done.created}
    return row, f"{'Saved' if done.created else 'Updated'} {row['path']}"


def _first_sentence(text: str) -> str:
    """Return the first sentence of a text, without the marks of a heading, as a description."""
    first = _SENTENCE_END.split(text.strip().lstrip("# "), maxsplit=1)[0]
    return shorten(sentence(first), DESCRIPTION_CHARS)


@memory_command.command("edit")
@click.argument("name", shell_complete=completion.memories)
@with_memory
@only_for_user
def edit_command(memory: Memory, name: str) -> Reported:
    """Edit a memory in your editor (VISUAL or EDITOR). Another `name` in its first lines renames it. The change is in the log, and
    `lamina memory restore` undoes it."""
    from .editor import EditedCopy, read_memory

    topic = _known(memory, name)
    before = read_memory(memory.where(topic.file))
    copy, same = EditedCopy(before, topic.file), _row(topic, memory) | {"changed": False}
    while True:
        data = copy.edit()
        if data == before:
            copy.remove()
            return same, "Nothing changed."
        if not data.strip():
            copy.remove()
            back = f"lamina memory remove {shlex.quote(topic.name)}"
            return same, f"The text is empty, so nothing was changed. Run `{back}` to move the memory to the trash."
        try:
            done = _put_edited(memory, topic, data, before)
        except LaminaError as error:
            _ask_again(error, copy)
        else:
            copy.remove()
            return done


def _hint_at_labels(before: Topic, after: Topic) -> None:
    """Point out a name and a description with a word that the edit took out of the text."""
    from ..language.terms import terms

    gone = set(terms(before.body)) - set(terms(after.body))
    labels = {"name": after.name, "description": after.description}
    stale = [f"{label} is still {text!r}" for label, text in labels.items() if gone & set(terms(text))]
    if stale:
        notice(f"Its {' and its '.join(stale)}. Run `lamina memory edit {shlex.quote(after.name)}` to change that.")


def _put_edited(memory: Memory, topic: Topic, data: bytes, before: bytes) -> Reported:
    """Save the edited file, unless somebody else changed it in the meantime."""
    from ..memory.store.contract import ChangeReason, Saved
    from .editor import read_memory

    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(topic.name, "the text is not UTF-8", "save it as UTF-8") from None
    text = text if b"\r\n" in before else text.replace("\r\n", "\n")
    done = memory.put(topic.file, text, expected=before, why=ChangeReason("user", "edited by hand"))
    if not isinstance(done, Saved):
        return {"proposed": done.id}, f"Pending approval. Run `lamina inbox accept {done.id}` to save it."
    notice(*(f"A secret was removed from the text ({removed})." for removed in done.redacted))
    _hint_at_labels(topic, done.topic)
    row = _row(done.topic, memory)
    changed = read_memory(memory.where(done.topic.file)) != before or done.topic.file != topic.file
    renamed = f" (it was {topic.name!r})" if done.topic.name != topic.name else ""
    return row | {"changed": changed}, f"Updated {row['path']}{renamed}" if changed else "Nothing changed."


def _ask_again(error: LaminaError, copy: EditedCopy) -> None:
    """Ask whether to edit the text again; raise the error if not, or if another text would not help."""
    curable = isinstance(error, InputError)
    if curable and sys.stdin.isatty() and click.confirm(f"Not saved: {error} Edit it again?", default=True, err=True):
        return
    raise (click.UsageError if curable else click.ClickException)(f"Not saved: {error}{copy.kept()}")


@memory_command.command("remove")
@click.argument("name", shell_complete=completion.memories)
@with_memory
def remove_command(memory: Memory, name: str) -> Reported:
    """Move a memory to the trash. `lamina memory restore` brings it back; `lamina forget` deletes for good."""
    from ..memory.store.topic import restore_command

    topic = _known(memory, name)
    removed = memory.remove(topic.file, why=(author := model_author()))
    if author is not None and not removed:
        return {"removed": False, "file": topic.file}, "Pending approval. Run `lamina inbox` to see the change."
    back = f"Removed {topic.name!r}. Run `{restore_command(topic)}` to bring it back."
    return {"removed": removed, "file": topic.file}, back


# The name of the command in 0.1.0.
memory_command.add_command(
    click.Command("rm", callback=remove_command.callback, params=remove_command.params, help=remove_command.help, hidden=True)
)


@memory_command.command("log")
@click.argument("name", required=False, shell_complete=completion.memories)
@click.option("--removed", is_flag=True, help="List only memories in the trash.")
@reading_memory
def log_command(memory: Memory, name: str | None, removed: bool) -> Reported:
    """List changes with their author, reason and time, newest first."""
    from ..memory.store.journal import find_trash

    versions = find_trash(_log(memory, name)) if removed else _log(memory, name)
    lines = (f"{one.id}  {minute(one.time)}  {one.action} {one.name}{_from(one)}{_by(one)}" for one in versions)
    return [_change(version) for version in versions], lines, "The trash is empty." if removed else "No changes are recorded yet."


def _log(memory: Memory, name: str | None) -> list[MemoryVersion]:
    with waiting("Reading the log"):
        versions = memory.log(name)
    if name is not None and not versions:
        shown = printable(name)
        raise click.UsageError(f"No changes of a memory {shown!r} are recorded. Run `lamina memory log` to list all changes.")
    return versions


@memory_command.command("diff")
@click.argument("name", required=False, shell_complete=completion.memories)
@click.option("--version", "version_id", help="Id of a change from the log. Default: the newest.")
@reading_memory
def diff_command(memory: Memory, name: str | None, version_id: str | None) -> Reported:
    """Show the diff of a change."""
    versions = [version for version in _log(memory, name) if version_id in (None, version.id)]
    if not versions and version_id is None:
        raise click.UsageError("No changes are recorded yet.")
    if not versions:
        raise click.UsageError(f"Change {printable(version_id or '')!r} not found. Run `lamina memory log` to see the ids.")
    diff = memory.diff(versions[0].id)
    return _change(versions[0]) | {"diff": diff}, diff.removesuffix("\n") if diff else ()


@memory_command.command("blame")
@click.argument("name", shell_complete=completion.memories)
@reading_memory
def blame_command(memory: Memory, name: str) -> Reported:
    """Show which change each line of a memory comes from."""
    _known(memory, name)
    blamed = memory.blame(name)
    rows = [{"line": line.text, "change": _change(line.version) if line.version is not None else None} for line in blamed]
    return rows, (f"{_changed_by(line.version):<44}  {line.text}" for line in blamed)


@memory_command.command("restore")
@click.argument("name", shell_complete=completion.removed)
@click.option("--version", "version_id", help="Id of a change from the log. Default: the one before the last.")
@with_memory
@only_for_user
def restore_command(memory: Memory, name: str, version_id: str | None) -> Reported:
    """Restore a memory from the trash, or an older version of it, byte for byte."""
    topic = memory.restore(name, version_id)
    for other in _saved_instead(memory, topic):
        remedy = f"If it replaced {topic.name!r}, run `lamina memory remove {shlex.quote(other)}`."
        notice(f"The turn that removed this memory also saved {other!r}, which is still there. {remedy}")
    row = _row(topic, memory)
    return row, f"Restored {row['path']}"


def _saved_instead(memory: Memory, topic: Topic) -> list[str]:
    """Return the memories that came with the turn that removed this one, before it was restored."""
    log = memory.log(topic.file)
    why = next((version.why for version in log[1:2] if version.action == "remove"), None)
    if why is None or why.message is None:
        return []
    new = [one for one in memory.log() if one.action == "save" and not one.before and one.memory != log[0].memory]
    names = [one.name for one in new if one.why is not None and (one.why.session, one.why.message) == (why.session, why.message)]
    return [name for name in dict.fromkeys(names) if memory.get(name) is not None]


@memory_command.command("undo")
@click.argument("act")
@with_memory
@only_for_user
def undo_command(memory: Memory, act: str) -> Reported:
    """Undo a change set by its id: a version, an accepted proposal, a merge, an import or another undo."""
    if _DREAM.fullmatch(act):
        raise click.UsageError(f"Use `lamina dream --undo {act}` to undo a dream.")
    done = memory.undo(act)
    if not (done.act or done.left):
        raise click.UsageError(f"Nothing to undo for {printable(act)!r}. Run `lamina memory log` to see the ids.")
    notice(*done.sentences)
    row = {"act": done.act, "back": [change.file for change in done.back], "left": [change.file for change in done.left]}
    changed = counted(len(done.back), "memory")
    waits = f" {counted(done.waiting, 'proposal')} {plural(done.waiting, 'waits', 'wait')} again." if done.waiting else ""
    return row, f"Undone: {changed}.{waits}" + (f" To redo it, run `lamina memory undo {done.act}`." if done.back else "")


@memory_command.command("index")
@with_memory
def index_command(memory: Memory) -> Reported:
    """Print the memory index as sessions receive it."""
    found = memory.indexes()
    rows = [{"path": str(index.path), "text": index.text} for index in found]
    return rows, (index.text for index in found), "The index is empty: there are no memories yet."


@memory_command.command("path")
@reading_memory
def path_command(memory: Memory) -> Reported:
    """Print the memory directory."""
    return {"path": str(memory.path)}, str(memory.path)


def _read_day(_: click.Context, __: click.Parameter, text: str | None) -> date | None:
    """Parse a date in the local calendar."""
    if text is None or text in _WORDS:
        return date.today() - timedelta(days=_WORDS[text]) if text is not None else None
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"Invalid date {printable(text)!r}. Use a date like 2026-03-31, today or yesterday.") from None


@memory_command.command("daily")
@click.argument("wanted", required=False, metavar="[DATE]", shell_complete=completion.days, callback=_read_day)
@reading_memory
def daily_command(memory: Memory, wanted: date | None) -> Reported:
    """List the daily logs of assistant mode, or show the one of DATE (2026-03-31, today, yesterday)."""
    rows = _days(memory, wanted)
    if wanted is None:
        lines = (f"{row['date']}  {row['bullets']:>4,} {plural(row['bullets'], 'entry')}" for row in rows)
        shown = [{name: value for name, value in row.items() if name != "text"} for row in rows]
        return shown, lines, "No daily logs. They are written in assistant mode (setting lamina.assistant)."
    if not rows:
        raise click.UsageError(f"No daily log for {wanted.isoformat()}. Run `lamina memory daily` to list them.")
    return rows[0], rows[0]["text"].removesuffix("\n")


def _days(memory: Memory, wanted: date | None) -> list[dict[str, Any]]:
    from ..memory.store.daily_logs import list_logs, read_log

    gated, rows = memory.store("private"), list[dict[str, Any]]()
    for each in list_logs(gated.store.root) if gated.readable else ():
        if wanted not in (None, each.day):
            continue
        text = read_log(gated.store.root, each.day) or ""
        bullets = sum(line.startswith("- ") for line in text.splitlines())
        named = {"date": each.day.isoformat(), "path": str(memory.path / each.file)}
        rows.append(named | {"bullets": bullets, "bytes": each.size, "text": text})
    return rows


def _known(memory: Memory, name: str) -> Topic:
    topic = memory.get(name)
    if topic is None:
        hint = did_you_mean(name, [header.name for header in memory.headers()], "Run `lamina memory list` to see the names.")
        raise click.UsageError(f"Memory {name!r} not found. {hint}")
    return topic


def _row(topic: Topic | TopicHeader, memory: Memory) -> dict[str, Any]:
    return {
        "name": topic.name,
        "type": topic.type,
        "description": topic.description,
        "path": str(memory.where(topic.file)),
        "modified": utc_time(topic.modified),
    }


def _cells(topic: TopicHeader) -> tuple[str, ...]:
    return topic.name, topic.type or "", minute(topic.modified)[:10], topic.description


def _line(topic: Topic | TopicHeader) -> str:
    kind = f"[{topic.type}] " if topic.type else ""
    return f"{minute(topic.modified)[:10]}  {topic.name}  {kind}{topic.description}"


def _change(version: MemoryVersion) -> dict[str, Any]:
    said = version.why
    why = {"who": said.who, "why": said.why, "session_id": said.session, "message": said.message} if said is not None else {}
    if said is not None and said.dream is not None:
        why["dream"] = said.dream
    return {
        "id": version.id,
        "time": utc_time(version.time),
        "name": version.name,
        "file": version.file,
        "action": version.action,
        "memory": version.memory,
        **why,
    }


def _from(version: MemoryVersion) -> str:
    return f" (file {version.was} to {version.file})" if version.was else ""


def _by(version: MemoryVersion) -> str:
    if version.why is None:
        return ", changed outside Lamina"
    dream = f" {version.why.dream}" if version.why.who == "dream" and version.why.dream else ""
    said = f" by {version.why.who}{dream}" + (f" in {version.why.session}" if version.why.session else "")
    return said + (f": {version.why.why}" if version.why.why else "")


def _changed_by(version: MemoryVersion | None) -> str:
    if version is None:
        return "not recorded yet"
    return f"{version.id}  {minute(version.time)}  {version.why.who if version.why else 'outside'}"
