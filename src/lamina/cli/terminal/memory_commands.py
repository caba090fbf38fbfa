"""/memory, /remember, /remove, /forget and /search: the project's memories from inside the chat.

None of them calls a model, except that /remember lets the model choose the name and type of the memory.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ...core.records import Event, Record
from ...language.text import Text
from ...language.wording import counted
from ...session.base import working

if TYPE_CHECKING:
    from .loop import Chat

# Results of /search: what a screen of 24 lines shows.
MOST_FOUND = 5


def remember(chat: Chat, rest: str) -> None:
    """Ask the model to save a text. It chooses name and type, and the turn reports what was saved."""
    if not rest:
        chat.screen.say("Usage: {usage}", "red", usage="/remember TEXT")
        return
    chat.speak(rest)
    chat.turn(lambda: chat.agent.run(f"Remember: {rest}"))


def remove(chat: Chat, rest: str) -> None:
    """Move one memory to the trash."""
    from ...memory.store.topic import restore_command

    with chat.memory_source.open() as memory:
        topic = memory.get(rest) if rest else None
        if topic is None:
            asked = (
                Text("Memory {name!r} not found. Use /memory to list them.")
                if rest
                else Text("Usage: /remove NAME. Use /memory to list them.")
            )
            chat.screen.say(asked, "red", name=rest)
            return
        memory.remove(topic.file)
    chat.screen.say("Moved {name!r} to the trash. `{command}` brings it back.", name=topic.name, command=restore_command(topic))


def forget(chat: Chat, rest: str) -> None:
    """Delete a subject for good, after a question. This session is open, so its own file is left for `lamina forget --resume`."""
    from ...maintenance.forget.job import ForgetJob, job_path, plan_job, run_job
    from ..forget import describe_report

    if not rest or chat.home is None:
        words = chat.screen.words
        no_home = words("No home directory found. Set LAMINA_HOME.")
        chat.screen.note(words("Usage: {usage}", usage="/forget SUBJECT") if not rest else no_home, "red")
        return
    job = ForgetJob(rest, str(chat.options.cwd), everywhere=False, anywhere=False)
    path = job_path(chat.home, job)
    with _waiting(chat, Text("searching the stored files")):
        job, planned = plan_job(chat.home, path, job, os.environ)
    chat.screen.reports(describe_report(planned, done=False))
    if not planned.done:
        return
    summary = Text("{subject!r} would be deleted for good: {places} in {files}.")
    n, m = sum(planned.counts().values()), len(planned.done)
    chat.screen.say(summary, "yellow", subject=rest, places=counted(n, "place"), files=counted(m, "file"))
    if not chat.questions.yes_or_no(chat.screen.words("Remove it permanently?")):
        return
    with _waiting(chat, Text("removing it")):
        done = run_job(chat.home, path, job, planned, os.environ)
    chat.screen.reports(describe_report(done, done=True))


@contextmanager
def _waiting(chat: Chat, what: str) -> Iterator[None]:
    chat.screen.wait(chat.screen.words(what))
    try:
        yield
    finally:
        chat.screen.calm()


def search(chat: Chat, rest: str) -> None:
    import click

    from ...history.query import search as search_all
    from ..search import body, heads

    if not rest:
        chat.screen.say("Usage: {usage}", "red", usage="/search QUERY")
        return
    told: list[str] = []
    with _waiting(chat, Text("searching")):
        found = search_all(rest, chat.options.cwd, MOST_FOUND, notices=told)
    chat.warn(dict.fromkeys(told))
    for head, one in zip(heads(found, None), found, strict=True):
        for line in (head, *map(click.unstyle, body(one, rest, None, exact=False, context=False))):
            chat.screen.fold(chat.screen.words(line), "plain", "", "   ")
    if not found:
        chat.screen.say("Nothing found.")


class RecalledMemory(NamedTuple):
    """A memory that was recalled in this conversation."""

    file: str
    why: str
    in_view: bool


def find_recalled(records: Iterable[Record], branch: Collection[str], view: Collection[str]) -> list[RecalledMemory]:
    """Return the recalled memories in order, without those of undone turns (other branches)."""
    found: list[RecalledMemory] = []
    for record in records:
        if not isinstance(record, Event) or record.name != "recall":
            continue
        attachment, files, why = (record.data.get(key) for key in ("attachment", "files", "why"))
        if attachment in branch and isinstance(files, list) and isinstance(why, list):
            found += [
                RecalledMemory(str(file), str(reason), attachment in view) for file, reason in zip(files, why, strict=False)
            ]
    return found


def show_memory(chat: Chat, rest: str) -> None:
    with chat.memory_source.open() as memory:
        if rest:
            topic = memory.get(rest)
            missing = Text("Memory {name!r} not found. Use /memory to list them.")
            chat.screen.line(topic.body if topic is not None else chat.screen.words(missing, name=rest))
            return
        found = memory.headers()
        for header in found:
            kind = f"[{header.type}] " if header.type else ""
            chat.screen.note(f"{header.name}: {kind}{header.description}", indent="  ")
        _brought(chat)
        if not found:
            chat.screen.say("No memories here yet.")
        chat.screen.say("Use `lamina memory` to edit the memories in {path}.", path=memory.path)


def _brought(chat: Chat) -> None:
    from ...disk.transcripts.store import read_transcript

    path = chat.agent.session.path
    if path is None or not path.exists():
        return
    with working(chat.agent.session) as c:
        branch, view = set(c.log.tree.members), {item.uuid for item in c.log.view.items}
    brought = find_recalled(read_transcript(path), branch, view)
    if brought:
        chat.screen.say("Recalled in this conversation:")
    for one in brought:
        gone = "" if one.in_view else f"; {chat.screen.words('no longer in view')}"
        chat.screen.note(f"{one.file.removesuffix('.md')} ({one.why}{gone})", indent="  ")
