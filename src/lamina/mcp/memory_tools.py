"""The memory tools of the server: search, read, save, update, remove and list.

Each call opens the memory, does one thing and closes it. Memories are shown between fences, since their text is data. The journal
names the client as the author of a change. An error is one sentence that names the field. tool_table.py describes the tools to clients.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ..core.blocks import Wire
from ..core.errors import InputError
from ..core.fence import escape, fence
from ..language.wording import counted
from ..memory.memory import Memory
from ..memory.recall.library import ScopeName
from ..memory.recall.render import age_text, cut_text, readable_text
from ..memory.store.contract import ChangeReason, Proposed, Saved
from ..memory.store.modes import client_origin
from ..memory.store.scopes import TEAM
from ..memory.store.topic import Topic, evidence_of, restore_command
from .project import ServedProject

TEAM_PREFIX = f"{TEAM}/"
# How much of each memory a search shows: a memory is a paragraph or two, and `memory_read` shows the rest.
MOST_LINES = 40
MOST_SHOWN = 2_000
# A client's name comes from the client and is written to the journal.
LONGEST_NAME = 60


class MemoryTools:
    """The tools of one client."""

    def __init__(self, project: ServedProject, client: str) -> None:
        self._project = project
        self._client = printable_name(client)

    def functions(self) -> dict[str, Callable[[Wire], str]]:
        """Return the functions of the tools by name. They get arguments that fit the table of tools."""
        return {
            "memory_search": self.search,
            "memory_read": self.read,
            "memory_save": self._save,
            "memory_update": self._update,
            "memory_remove": self._remove,
            "memory_list": self._list,
        }

    def search(self, given: Wire) -> str:
        with self._project.open_memory() as memory:
            found = memory.recall(str(given["query"]), k=int(given.get("k", 5)))
        return "\n\n".join(shown(one.topic, one.age) for one in found) or "No memory matches. Try other words."

    def read(self, given: Wire) -> str:
        with self._project.open_memory() as memory:
            topic = known(memory, str(given["name"]))
            author = next((version.why for version in memory.log(topic.file) if version.why is not None), None)
        relied = evidence_of(topic)
        evidence = f"\nEvidence: {', '.join(relied)}" if relied else ""
        by = f"\nLast changed by: {author.who}{f' ({author.why})' if author.why else ''}" if author is not None else ""
        return shown(topic, _age(topic), whole=True) + escape(evidence + by)

    def _save(self, given: Wire) -> str:
        with self._project.open_memory() as memory:
            return self._write(memory, memory.get(str(given["name"])), given)

    def _update(self, given: Wire) -> str:
        if not given.keys() & {"type", "description", "body"}:
            raise InputError("memory_update", "nothing to change", "give type, description or body")
        with self._project.open_memory() as memory:
            topic = known(memory, str(given["name"]))
            old = {"type": topic.type, "description": topic.description, "body": topic.body}
            return self._write(memory, topic, {**old, **given}, evidence=evidence_of(topic))

    def _write(self, memory: Memory, topic: Topic | None, given: Wire, evidence: tuple[str, ...] = ()) -> str:
        """Save a memory, in place of `topic` and in its scope if there is one."""
        self._project.count_change()
        fields: dict[str, Any] = {field: given[field] for field in ("type", "description", "body")}
        scope: ScopeName = "team" if topic is not None and topic.file.startswith(TEAM_PREFIX) else "private"
        name = topic.name if topic is not None else str(given["name"])
        done = memory.save(name, **fields, evidence=evidence, scope=scope, why=self._why())
        if isinstance(done, Proposed):
            return f"The change waits for the user's approval. Tell them: lamina inbox accept {done.id}"
        return _outcome(done)

    def _remove(self, given: Wire) -> str:
        with self._project.open_memory() as memory:
            topic = known(memory, str(given["name"]))
            self._project.count_change()
            removed = memory.remove(topic.file, why=self._why())
        if not removed:
            return f"The removal of {topic.name} waits for the user's approval: lamina inbox"
        return f"Removed {topic.name}. The user can bring it back: {restore_command(topic)}"

    def _list(self, given: Wire) -> str:
        kind, most = given.get("type"), int(given.get("k", 50))
        with self._project.open_memory() as memory:
            found = [header for header in memory.headers() if kind in (None, header.type)]
        lines = [escape(f"{header.name} ({header.type or 'no type'}): {header.description}") for header in found[:most]]
        rest = len(found) - len(lines)
        return (
            "\n".join([*lines, *([f"… and {counted(rest, 'more memory', 'more memories')}"] if rest else [])])
            or "No memories yet."
        )

    def _why(self) -> ChangeReason:
        return ChangeReason("agent", f"saved by {client_origin(self._client)}", client=self._client)


def known(memory: Memory, name: str) -> Topic:
    topic = memory.get(name)
    if topic is None:
        raise InputError("name", f"no memory is called {name[:LONGEST_NAME]!r}", "find it with memory_search or memory_list")
    return topic


def shown(topic: Topic, age: float, *, whole: bool = False) -> str:
    """Return a memory as text: a heading, and its body between fences."""
    body = readable_text(topic.body)
    part = body if whole else cut_text(body, lines=MOST_LINES, size=MOST_SHOWN).text
    more = "" if len(part) == len(body) else "\n(Cut here. memory_read shows the rest.)"
    head = f"{topic.name} ({topic.type or 'no type'}, saved {age_text(age)}): {topic.description}"
    return f"{escape(head)}\n{fence('recalled-memory', part)}{more}"


def printable_name(client: str) -> str:
    return "".join(char for char in client if char.isprintable())[:LONGEST_NAME].strip() or "an MCP client"


def _age(topic: Topic) -> float:
    return max(0.0, time.time() - topic.modified)


def _outcome(done: Saved) -> str:
    secret = f" A secret was left out ({', '.join(done.redacted)})." if done.redacted else ""
    return (
        f"{'Saved' if done.created else 'Updated'} {done.topic.name}.{secret}{f' {done.unfinished}' if done.unfinished else ''}"
    )
