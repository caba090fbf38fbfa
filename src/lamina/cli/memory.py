"""`lamina memory`: see, save, trace and take back what is remembered."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import completion as offering
from .daily import daily_command
from .group import Group
from .safe_text import document, printable

if TYPE_CHECKING:
    from ..memory.memory import Memory
    from ..memory.store.contract import MemoryVersion
    from ..memory.store.topic import Topic
    from ..memory.store.topic_files import TopicHeader

TYPES = ("user", "feedback", "project", "reference")
# Where an option before the command leaves it for the command.
_AGENT = "lamina.agent"

_cwd = click.option("--cwd", type=click.Path(file_okay=False, exists=True), default=".", help="Whose memory.")
_json = click.option("--json", "as_json", is_flag=True, help="One JSON document.")


of_agent = click.option(
    "--agent",
    metavar="TYPE",
    expose_value=False,
    callback=lambda ctx, _, agent: ctx.meta.__setitem__(_AGENT, agent),
    help="The memory of an agent type, not the project's.",
)


@click.group("memory", cls=Group)
@of_agent
def command() -> None:
    """See, save, trace and take back what is remembered."""


command.add_command(daily_command)


@contextmanager
def opened(cwd: str) -> Iterator[Memory]:
    from ..memory.memory import Memory
    from .agents import memory_of

    agent, where = click.get_current_context().meta.get(_AGENT), Path(cwd).resolve()
    with Memory.open(where) if agent is None else memory_of(agent, where) as memory:
        for notice in memory.notices:
            click.echo(f"lamina: {printable(notice)}", err=True)
        yield memory


@command.command("list")
@_cwd
@_json
def list_command(cwd: str, as_json: bool) -> None:
    """All memories, newest first."""
    with opened(cwd) as memory:
        found = memory.headers()
        if as_json:
            click.echo(document([_row(header, memory) for header in found]))
        for header in () if as_json else found:
            kind = f"[{header.type}] " if header.type else ""
            click.echo(printable(f"{_day(header.modified)}  {header.name}  {kind}{header.description}"))
        if not found and not as_json:
            click.echo("Nothing is remembered here yet.", err=True)


@command.command("show")
@click.argument("name", shell_complete=offering.memories)
@_cwd
@_json
def show_command(name: str, cwd: str, as_json: bool) -> None:
    """One memory, by its name or file."""
    with opened(cwd) as memory:
        topic = _known(memory, name)
        if as_json:
            click.echo(document(_row(topic, memory) | {"body": topic.body}))
        else:
            kind = f" [{topic.type}]" if topic.type else ""
            click.echo(printable(f"{topic.name}{kind}\n{topic.description}\n{memory.where(topic.file)}\n\n{topic.body}"))


@command.command("search")
@click.argument("query")
@click.option("-k", "most", type=click.IntRange(1, 1_000), default=5, show_default=True, help="How many at most.")
@click.option("--explain", is_flag=True, help="With the score, the words that fit, and the evidence.")
@_cwd
@_json
def search_command(query: str, most: int, explain: bool, cwd: str, as_json: bool) -> None:
    """The memories that fit QUERY, best first. No model is asked."""
    with opened(cwd) as memory:
        found = memory.recall(query, most)
        if as_json:
            extra = [{"score": round(each.score, 4), "why": each.why} for each in found]
            click.echo(document([_row(each.topic, memory) | more for each, more in zip(found, extra, strict=True)]))
        for each in () if as_json else found:
            topic = each.topic
            kind = f"[{topic.type}] " if topic.type else ""
            click.echo(printable(f"{_day(topic.modified)}  {topic.name}  {kind}{topic.description}"))
            if explain:
                click.echo(printable(f"    {each.score:.2f}  {each.why}\n    {each.evidence.state}: {each.evidence.why}"))
        if not found and not as_json:
            click.echo("No memory fits that.", err=True)


@command.command("save")
@click.argument("name", shell_complete=offering.memories)
@click.option("--type", "kind", type=click.Choice(TYPES), help="What it is about.")
@click.option("--description", default="", help="One line: all that is looked at when memories are chosen.")
@click.option("--scope", type=click.Choice(("private", "team")), default="private", show_default=True, help="Whose it is.")
@click.argument("body", required=False)
@_cwd
@_json
def save_command(name: str, kind: Any, description: str, scope: Any, body: str | None, cwd: str, as_json: bool) -> None:
    """Save or update a memory. BODY is its text; '-' reads it from standard input."""
    from ..memory.store.contract import Saved
    from ..memory.store.draft import MOST_BYTES

    if body == "-":
        body = sys.stdin.buffer.read(MOST_BYTES + 1).decode("utf-8", "replace")
    with opened(cwd) as memory:
        done = memory.save(name, type=kind, description=description, body=body or "", scope=scope)
        if not isinstance(done, Saved):
            click.echo(document({"proposed": done.id}) if as_json else f"Waiting for a yes: lamina inbox accept {done.id}")
            return
        for removed in done.redacted:
            click.echo(f"lamina: a secret was left out ({removed})", err=True)
        if done.unfinished:
            click.echo(f"lamina: {printable(done.unfinished)}", err=True)
        row = _row(done.topic, memory)
        click.echo(
            document(row | {"created": done.created}) if as_json else f"{'Saved' if done.created else 'Updated'} {row['path']}"
        )


@command.command("rm")
@click.argument("name", shell_complete=offering.memories)
@_cwd
@_json
def rm_command(name: str, cwd: str, as_json: bool) -> None:
    """Move a memory to the trash; restore brings it back."""
    with opened(cwd) as memory:
        topic = _known(memory, name)
        removed = memory.forget(topic.file)
        # By its name: another memory may get the file.
        known = f"team/{topic.name}" if topic.file.startswith("team/") else topic.name
        back = f"Removed {topic.name!r}; lamina memory restore {shlex.quote(known)} brings it back."
        click.echo(document({"removed": removed, "file": topic.file}) if as_json else printable(back))


@command.command("log")
@click.argument("name", required=False, shell_complete=offering.memories)
@click.option("--removed", is_flag=True, help="Only what lies in the trash.")
@_cwd
@_json
def log_command(name: str | None, removed: bool, cwd: str, as_json: bool) -> None:
    """Every change with who, why and when, newest first."""
    with opened(cwd) as memory:
        versions = trash(memory.log(name)) if removed else memory.log(name)
        if as_json:
            click.echo(document([_change(version) for version in versions]))
        for version in () if as_json else versions:
            click.echo(printable(f"{version.id}  {_minute(version.time)}  {version.action} {version.name}{_by(version)}"))


@command.command("diff")
@click.argument("name", required=False, shell_complete=offering.memories)
@click.option("--version", "version_id", help="A change of the log; without it the newest.")
@_cwd
@_json
def diff_command(name: str | None, version_id: str | None, cwd: str, as_json: bool) -> None:
    """What a change did."""
    with opened(cwd) as memory:
        versions = [version for version in memory.log(name) if version_id in (None, version.id)]
        if not versions:
            raise click.UsageError("there is no such change: lamina memory log shows them.")
        diff = memory.diff(versions[0].id)
        if as_json:
            click.echo(document(_change(versions[0]) | {"diff": diff}))
        else:
            click.echo(printable(diff), nl=False)


@command.command("blame")
@click.argument("name", shell_complete=offering.memories)
@_cwd
@_json
def blame_command(name: str, cwd: str, as_json: bool) -> None:
    """Which change each line of a memory comes from: who, when and why."""
    with opened(cwd) as memory:
        _known(memory, name)
        lines = memory.blame(name)
        if as_json:
            rows = [(line.text, _change(line.version) if line.version is not None else None) for line in lines]
            click.echo(document([{"line": text, "change": change} for text, change in rows]))
        for line in () if as_json else lines:
            by = line.version
            who = "not recorded yet" if by is None else f"{by.id}  {_minute(by.time)}  {by.why.who if by.why else 'outside'}"
            click.echo(printable(f"{who:<44}  {line.text}"))


@command.command("restore")
@click.argument("name", shell_complete=offering.removed)
@click.option("--version", "version_id", help="A change of the log; without it the state before the last one.")
@_cwd
@_json
def restore_command(name: str, version_id: str | None, cwd: str, as_json: bool) -> None:
    """Bring back a memory from the trash or an older version, byte for byte."""
    with opened(cwd) as memory:
        topic = memory.restore(name, version_id)
        row = _row(topic, memory)
        click.echo(document(row) if as_json else f"Restored {row['path']}")


@command.command("index")
@_cwd
@_json
def index_command(cwd: str, as_json: bool) -> None:
    """The index as a session is sent it."""
    with opened(cwd) as memory:
        found = memory.indexes()
        if as_json:
            click.echo(document([{"path": str(index.path), "text": index.text} for index in found]))
        for index in () if as_json else found:
            click.echo(printable(index.text))


@command.command("path")
@_cwd
@_json
def path_command(cwd: str, as_json: bool) -> None:
    """Where memory lies."""
    with opened(cwd) as memory:
        click.echo(document({"path": str(memory.path)}) if as_json else str(memory.path))


def _known(memory: Memory, name: str) -> Topic:
    topic = memory.get(name)
    if topic is None:
        raise click.UsageError(f"there is no memory {name!r}: lamina memory list shows those there are.")
    return topic


def _row(topic: Topic | TopicHeader, memory: Memory) -> dict[str, Any]:
    return {
        "name": topic.name,
        "type": topic.type,
        "description": topic.description,
        "path": str(memory.where(topic.file)),
        "modified": datetime.fromtimestamp(topic.modified, UTC).isoformat(timespec="seconds"),
    }


def _change(version: MemoryVersion) -> dict[str, Any]:
    time = datetime.fromtimestamp(version.time, UTC).isoformat(timespec="seconds")
    said = version.why
    why = {"who": said.who, "why": said.why, "session_id": said.session, "message": said.message} if said is not None else {}
    if said is not None and said.dream is not None:
        why["dream"] = said.dream
    return {"id": version.id, "time": time, "name": version.name, "file": version.file, "action": version.action, **why}


def trash(versions: list[MemoryVersion]) -> list[MemoryVersion]:
    """Of the changes, newest first, the removals of what has not come back."""
    from ..memory.store.topic import name_key

    last: dict[str, MemoryVersion] = {}
    for version in versions:
        last.setdefault(f"{version.file.startswith('team/')} {name_key(version.name)}", version)
    return [version for version in last.values() if version.action == "remove"]


def _by(version: MemoryVersion) -> str:
    if version.why is None:
        return ", found as it was"
    dream = f" {version.why.dream}" if version.why.who == "dream" and version.why.dream else ""
    said = f" by {version.why.who}{dream}" + (f" in {version.why.session}" if version.why.session else "")
    return said + (f": {version.why.why}" if version.why.why else "")


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d")


def _minute(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")
