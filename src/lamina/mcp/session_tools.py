"""The session tools of the server: search past sessions, read one, and show what fills its window.

A client sees the sessions of its own project only, without secrets, between fences.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from ..core.blocks import Block, Text, ToolResult, ToolUse, Wire, canonical
from ..core.errors import InputError
from ..core.fence import escape, fence
from ..core.records import Message
from ..history.for_model import search_for_model
from ..history.sessions import SourceSession, read
from ..history.turns import numbered
from ..history.window_report import list_kinds, report_on_transcript
from ..memory.recall.render import cut_text, readable_text
from ..memory.store.secrets import redact
from .project import ServedProject

# Read at once, and shown of each message: a client that wants more asks for the next turns.
MOST_TURNS = 10
MOST_LINES = 60
MOST_BYTES = 4_000


class SessionTools:
    def __init__(self, project: ServedProject) -> None:
        self._project = project

    def functions(self) -> dict[str, Callable[[Wire], str]]:
        """Return the functions of the tools by name. They get arguments that fit the table of tools."""
        return {"sessions_search": self._search, "session_read": self.read, "context_report": self._context}

    def _search(self, given: Wire) -> str:
        return search_for_model(
            str(given["query"]),
            cwd=self._project.cwd,
            count=int(given.get("k", 5)),
            exact=False,
            settings=self._project.settings,
            environ=os.environ,
        )

    def read(self, given: Wire) -> str:
        """Return some turns of a session as text."""
        session, first = self._session(str(given["session_id"])), int(given.get("turn", 1))
        turns: dict[int, list[str]] = {}
        last = 0
        for number, record in numbered(read(session)):
            last = number
            if not record.summary and first <= number < first + MOST_TURNS:
                turns.setdefault(number, []).extend(_said(record))
        if not turns:
            raise InputError("turn", f"turn {first} does not exist, the session has {last:,}", "choose an earlier one")
        head = f"Session {session.id} of {session.origin}: {session.title}"
        texts = [f"Turn {number}\n{fence('past-session', chr(10).join(said))}" for number, said in turns.items()]
        more = f"\n\n(Turns {first + MOST_TURNS} to {last} follow.)" if last >= first + MOST_TURNS else ""
        return f"{escape(redact(head).text)}\n\n" + "\n\n".join(texts) + more

    def _context(self, given: Wire) -> str:
        session = self._session(str(given.get("session_id", "")))
        report = report_on_transcript(lambda: read(session), self._project.settings, session.origin)
        rows = [f"{tokens:>9,}  {escape(name)}" for name, tokens in list_kinds(report)]
        head = f"{report.model or 'unknown model'}: about {report.tokens:,} of {report.limits.effective:,} tokens"
        return "\n".join([escape(head), *rows])

    def _session(self, asked: str) -> SourceSession:
        """Return the project's session with this id or its beginning, also a subagent's; without one, the newest.

        Of several files with the same id, the one with the newest message is returned.
        """
        listed = self._project.list_sessions()
        main = [one for one in listed if not one.parent]
        fitting = [one for one in listed if one.id == asked]
        fitting = (
            fitting or [one for one in main if one.id.startswith(asked)] or [one for one in listed if one.id.startswith(asked)]
        )
        if not fitting or (asked and len({one.id for one in fitting}) > 1):
            problem = f"{len(fitting)} sessions begin with {asked[:60]!r}" if fitting else f"no session {asked[:60]!r} here"
            raise InputError("session_id", problem, "find it with sessions_search")
        return fitting[0]


def _said(record: Message) -> Iterator[str]:
    for block in record.blocks:
        if text := _text(block):
            clean = cut_text(readable_text(redact(text).text), lines=MOST_LINES, size=MOST_BYTES)
            yield f"[{record.role}] {clean.text}{'' if clean.whole else ' …'}"


def _text(block: Block) -> str:
    match block:
        case Text(text=text):
            return text
        case ToolUse(name=name, input=given):
            return f"{name} {canonical(given).decode('utf-8', 'replace')}"
        case ToolResult():
            return f"result: {block.text}"
        case _:
            return ""
