"""A session's memory: where it lies, what the prompt says of it, and how the tools' writes there are taken.

Owns what an agent needs of memory between opening and closing; it holds no file open. Invariants: a memory that cannot be used is one
sentence and never keeps a session from starting; whatever Write and Edit leave in the memory directory went through the store, with
who asked for it, in which session, at which message.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from ..core.errors import DiskError
from ..core.memory_requests import asks_for_memory
from ..core.settings import Mode
from ..disk.settings_files import user_home
from ..fork.host import MemoryAccess
from ..memory.instructions import memory_instructions
from ..memory.memory import Memory
from ..memory.store.contract import ChangeReason
from ..memory.store.scopes import MemoryLocation, locate_memory, project_root
from ..memory.tool_writes import RequestedWrite, WriteOutcome, find_memory_file, write_memory_file
from ..prompt.reminder import IndexText
from ..session.session import Session
from ..tools.tool import FileChange, KeeperVerdict

# The reasons in the journal for what the main conversation writes.
ASKED = "asked for"
JUDGED = "found worth keeping"


class MemoryBinding:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._asked: str | None = None  # the message under way
        self._reason = JUDGED
        self._notices: list[str] = []
        self.place: MemoryLocation | None = None
        if self.mode != "off" and session.home is not None:
            try:
                self.place = self._find(**self._base(session.home))
            except DiskError as error:
                self._without(error)

    def _base(self, home: Path) -> dict[str, Any]:
        """What every memory directory is found by."""
        session = self._session
        return {"cwd": session.cwd, "home": home, "settings": session.settings, "user_home": user_home(os.environ) or home}

    @property
    def mode(self) -> Mode:
        """The mode in force now: a switch may be turned while the session runs."""
        settings = self._session.settings
        return settings.memory_mode["private"] if settings.memory else "off"

    def _find(self, **base: Any) -> MemoryLocation | None:
        place = locate_memory(**base)
        return place._replace(team=None) if self._session.settings.memory_mode["team"] == "off" else place

    def _without(self, error: DiskError) -> None:
        self._session._notify(f"{error} This session goes on without memory.")

    def _open(self) -> Memory:
        return Memory.open(self._session.cwd, home=self._session.home, settings=self._session.settings)

    # What the prompt and the permissions need

    def section(self, tools: Sequence[str]) -> str:
        """Of the system prompt; empty without memory."""
        if self.place is None:
            return ""
        settings = self._session.settings
        return memory_instructions(
            place=self.place,
            mode=self.mode,
            tools=tools,
            index=settings.index_in_prompt,
            past=settings.past_search,
            transcripts=self.transcripts,
            extra=settings.extra_guidelines,
            assistant=settings.assistant,
        )

    def indexes(self) -> list[IndexText]:
        """What is remembered, as the last part of the instructions (I1). A memory that cannot be read is said and left out."""
        if self.place is None or not self._session.settings.index_in_prompt:
            return []
        try:
            with self._open() as memory:
                self._session._notify(*memory.notices)
                return [IndexText(str(index.path), index.text) for index in memory.indexes()]
        except DiskError as error:
            self._without(error)
            return []

    @property
    def directory(self) -> Path | None:
        return self.place.path if self.place is not None else None

    @property
    def transcripts(self) -> Path | None:
        """Where those of this project lie: searched as the last resort (S10)."""
        path = self._session.path
        return path.parent if path is not None and self.place is not None and self._session.settings.past_search else None

    @property
    def readable(self) -> tuple[Path, ...]:
        """Places besides the memory directory that may be read unasked."""
        return tuple(path for path in (self.transcripts, self._team_elsewhere) if path is not None)

    @property
    def rules(self) -> tuple[str, ...]:
        """A team's directory that lies elsewhere is written to like the memory directory: its keeper looks at every change."""
        team = self._team_elsewhere
        return () if team is None else tuple(f"{tool}(/{team.as_posix()}/**/*.md)" for tool in ("Write", "Edit"))

    @property
    def _team_elsewhere(self) -> Path | None:
        if self.place is None or self.place.team is None or self.place.team.is_relative_to(self.place.path):
            return None
        return self.place.team

    # What is written

    def note_message(self, message: str, words: str) -> None:
        """The person's message that what follows is done for."""
        self._asked = message
        self._reason = ASKED if asks_for_memory(words) else JUDGED

    def keep(self, change: FileChange) -> KeeperVerdict | None:
        """What Write and Edit ask about every file."""
        done = self.write(change, ChangeReason("agent", self._reason, self._session.id, self._asked))
        if done is None:
            return None
        if done.notice is not None:
            self._notices.append(done.notice)
        return KeeperVerdict(done.said, done.data, done.is_error, done.beside)

    def write(self, change: FileChange, why: ChangeReason) -> WriteOutcome | None:
        """Through the store, from any thread; None where the file is none of memory's."""
        found = find_memory_file(self.place, change.path) if self.place is not None else None
        if found is None:
            return None
        wish = RequestedWrite(change.path, change.data.decode("utf-8", "replace"), change.before, change.unread)
        try:
            with self._open() as memory:
                return write_memory_file(memory, found, wish, why=why, now=self._logged())
        except DiskError as error:
            return WriteOutcome(str(error), is_error=True)

    def _logged(self) -> datetime | None:
        """The local time, where daily logs are kept."""
        return self._session._local_time() if self._session.settings.assistant else None

    def access(self, *, interactive: bool) -> MemoryAccess | None:
        """For what writes memories beside the conversation; None without memory."""
        if self.place is None:
            return None
        session = self._session
        return MemoryAccess(self.place, project_root(session.cwd), session.id, self.write, interactive)

    def take_notices(self) -> list[str]:
        """What was saved and removed since the last time this was asked, a sentence each, for the person."""
        told, self._notices = self._notices, []
        return told
