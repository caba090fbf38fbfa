"""/memory, /remember, /remove, /forget and /search: the project's memories from inside the chat.

None of them calls a model, except that /remember lets the model choose the name and type of the memory.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from ...core.records import Event, Record
from ...session.base import working

if TYPE_CHECKING:
    from .loop import Chat

# Results of /search: what a screen of 24 lines shows.
MOST_FOUND = 5


def remember(chat: Chat, rest: str) -> None:
    """Ask the model to save a text. It chooses name and type, and the turn reports what was saved."""
    if not rest:
        chat.screen.note("Usage: /remember TEXT", "red")
        return
    chat.turn(lambda: chat.agent.run(f"Remember: {rest}"))


def remove(chat: Chat, rest: str) -> None:
    """Move one memory to the trash."""
    with chat.memory_source.open() as memory:
        topic = memory.get(rest) if rest else None
        if topic is None:
            what = f"Memory {rest!r} not found." if rest else "Usage: /remove NAME."
            chat.screen.note(f"{what} Use /memory to list them.", "red")
            return
        memory.remove(topic.file)
    chat.screen.note(f"Moved {topic.name!r} to the trash. `lamina memory restore {topic.name}` brings it back.", "dim")


def forget(chat: Chat, rest: str) -> None:
    """Delete a subject for good, after a question. This session is open, so its own file is left for `lamina forget --resume`."""
    from ...maintenance.forget.job import ForgetJob, job_path, plan_job, run_job
    from ..forget import describe_report

    if not rest or chat.home is None:
        chat.screen.note("Usage: /forget SUBJECT" if not rest else "No home directory found. Set LAMINA_HOME.", "red")
        return
    job = ForgetJob(rest, str(chat.options.cwd), everywhere=False, anywhere=False)
    path = job_path(chat.home, job)
    with _waiting(chat, "searching the stored files"):
        job, planned = plan_job(chat.home, path, job, os.environ)
    chat.screen.line(describe_report(planned, "would be removed"))
    if not planned.done or not chat.questions.yes_or_no("Remove it permanently?"):
        return
    with _waiting(chat, "removing it"):
        done = run_job(chat.home, path, job, planned, os.environ)
    chat.screen.line(describe_report(done, "removed"))


@contextmanager
def _waiting(chat: Chat, what: str) -> Iterator[None]:
    chat.screen.wait(what)
    try:
        yield
    finally:
        chat.screen.calm()


def search(chat: Chat, rest: str) -> None:
    from ...sources.query import query_words
    from ...sources.query import search as search_all
    from ..search import result_lines

    if not rest:
        chat.screen.note("Usage: /search QUERY", "red")
        return
    told: list[str] = []
    with _waiting(chat, "searching"):
        found = search_all(rest, chat.options.cwd, MOST_FOUND, notices=told)
    chat.warn(dict.fromkeys(told))
    words = query_words(rest)
    for number, one in enumerate(found, 1):
        for line in result_lines(number, one, words, context=False):
            chat.screen.fold(line, "plain", "", "   ")
    if not found:
        chat.screen.note("Nothing found.", "dim")


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
            chat.screen.line(topic.body if topic is not None else f"Memory {rest!r} not found. Use /memory to list them.")
            return
        found = memory.headers()
        for header in found:
            kind = f"[{header.type}] " if header.type else ""
            chat.screen.note(f"{header.name}: {kind}{header.description}", indent="  ")
        _brought(chat)
        words = "" if found else "No memories here yet. "
        chat.screen.note(f"{words}Use `lamina memory` to edit the memories in {memory.path}.", "dim")


def _brought(chat: Chat) -> None:
    from ...disk.transcripts.store import read_transcript

    path = chat.agent.session.path
    if path is None or not path.exists():
        return
    with working(chat.agent.session) as c:
        branch, view = set(c.log.tree.members), {item.uuid for item in c.log.view.items}
    brought = find_recalled(read_transcript(path), branch, view)
    if brought:
        chat.screen.note("Recalled in this conversation:", "dim")
    for one in brought:
        gone = "" if one.in_view else "; no longer in view"
        chat.screen.note(f"{one.file.removesuffix('.md')} ({one.why}{gone})", indent="  ")
