"""A session's memory: its location, its part of the prompt, and how the tools' writes to it are handled.

Owns what a session needs from memory between opening and closing; it holds no file open. Invariants: an unusable memory costs one sentence
and never keeps a session from starting; every Write and Edit in the memory directory goes through the store, with the requester, the
session and the message.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..conversation.isolate import isolate
from ..conversation.state import Conversation
from ..core.errors import DiskError
from ..core.reach import RUN_BY_MODEL
from ..core.settings import Mode
from ..disk.settings_files import user_home
from ..fork.host import MemoryAccess
from ..language.text import Text
from ..layers.l5_extract.trigger import may_extract
from ..prompt.reminder import IndexText

if TYPE_CHECKING:  # a session without memories loads none of these
    from ..memory.guard.sources import Sources
    from ..memory.memory import Memory
    from ..memory.store.change_sets import SetChange, UndoneSet
    from ..memory.store.contract import ChangeReason
    from ..memory.store.scopes import MemoryLocation
    from ..memory.tool_writes import WriteOutcome
    from ..tools.tool import FileChange, KeeperVerdict
    from .base import SessionBase

# Reasons in the journal for writes of the main conversation.
ASKED = "the user asked for it"
JUDGED = "found worth keeping"


def local_time(c: Conversation) -> datetime:
    """Return the conversation's current time in the local time zone."""
    return datetime.fromisoformat(c.clock()).astimezone()


class MemoryBinding:
    def __init__(self, session: SessionBase) -> None:
        self.c = session._c
        self.session_id = session.id
        self._asked: str | None = None  # the current user message
        self._reason = JUDGED
        self._notices: list[str] = []
        self.place: MemoryLocation | None = None
        if self.mode != "off" and (home := self.c.home) is not None:
            self.place = isolate(self.c, "memory", lambda _: self._own_place(home), None)

    def _own_place(self, home: Path) -> MemoryLocation | None:
        try:
            return self._find(**self._base(home))
        except DiskError as error:
            self._disable(error)
            return None

    def _base(self, home: Path) -> dict[str, Any]:
        """Return the arguments by which every memory directory is found."""
        return {
            "cwd": self.c.cwd,
            "home": home,
            "settings": self.c.settings,
            "user_home": user_home(os.environ) or home,
        }

    @property
    def mode(self) -> Mode:
        """The mode in force now: a switch may be turned while the session runs."""
        settings = self.c.settings
        return settings.memory_mode["private"] if settings.memory else "off"

    def _find(self, **base: Any) -> MemoryLocation | None:
        from ..memory.store.scopes import locate_memory

        place = locate_memory(**base)
        return place._replace(team=None) if self.c.settings.memory_mode["team"] == "off" else place

    def _disable(self, error: DiskError) -> None:
        self.c.notify(Text("{error} This session continues without memory.", error=error))

    def open(self) -> Memory:
        from ..memory.memory import Memory

        return Memory.open(self.c.cwd, home=self.c.home, settings=self.c.settings)

    # For the prompt and the permissions

    def section(self, tools: Sequence[str], *, interactive: bool) -> str:
        """Return the memory section of the system prompt, empty without memory."""
        if self.place is None:
            return ""
        from ..memory.instructions import memory_instructions

        settings = self.c.settings
        return memory_instructions(
            place=self.place,
            mode=self.mode,
            tools=tools,
            index=settings.index_in_prompt,
            past=settings.past_search,
            transcripts=self.transcripts,
            extra=settings.extra_guidelines,
            assistant=settings.assistant,
            recall=settings.recall,
            extracts=may_extract(settings, interactive=interactive),
        )

    def indexes(self) -> list[IndexText]:
        """Return the memory indexes, the last part of the instructions. An unreadable memory is reported and left out."""
        if not (self._exists() and self.c.settings.index_in_prompt):
            return []
        try:
            with self.open() as memory:
                self.c.notify(*memory.notices)
                return [IndexText(str(index.path), index.text) for index in memory.indexes()]
        except DiskError as error:
            self._disable(error)
            return []

    def _exists(self) -> bool:
        """Whether there is a memory directory yet. A session that never saves anything makes none."""
        return any(os.path.lexists(path) for path in self.directories)

    @property
    def directories(self) -> tuple[Path, ...]:
        """The memory directory and the team's."""
        return tuple(path for path in (self.place.path, self.place.team) if path is not None) if self.place is not None else ()

    @property
    def directory(self) -> Path | None:
        return self.place.path if self.place is not None else None

    @property
    def transcripts(self) -> Path | None:
        """The directory with this project's transcripts, which are searched as the last resort."""
        path = self.c.store.path
        return path.parent if path is not None and self.place is not None and self.c.settings.past_search else None

    @property
    def readable(self) -> tuple[Path, ...]:
        """Directories besides the memory directory that may be read without asking."""
        return tuple(path for path in (self.transcripts, self._team_elsewhere) if path is not None)

    @property
    def rules(self) -> tuple[str, ...]:
        """Rules that allow writing to a team directory outside the memory directory, since the keeper checks every change there."""
        team = self._team_elsewhere
        return () if team is None else tuple(f"{tool}(/{team.as_posix()}/**/*.md)" for tool in ("Write", "Edit"))

    @property
    def _team_elsewhere(self) -> Path | None:
        if self.place is None or self.place.team is None or self.place.team.is_relative_to(self.place.path):
            return None
        return self.place.team

    # Writes

    @property
    def inbox(self) -> str:
        """The command that lists the proposals of this memory."""
        return "lamina inbox"

    def note_message(self, message: str, words: str) -> None:
        """Note the user message that the following changes are made for."""
        from ..language.memory_requests import asks_for_memory

        self._asked = message
        self._reason = ASKED if asks_for_memory(words) else JUDGED

    def keep(self, change: FileChange) -> KeeperVerdict | None:
        """Decide about a file that Write or Edit is about to change."""
        from ..memory.store.contract import ChangeReason
        from ..tools.tool import KeeperVerdict

        outcome = self.write(change, ChangeReason("agent", self._reason, self.session_id, self._asked), self.sources())
        if outcome is None:
            return None
        if outcome.notice is not None:
            self._notices.append(outcome.notice)
        return KeeperVerdict(outcome.said, outcome.data, outcome.is_error, outcome.beside, outcome.facts)

    def sources(self) -> Sources:
        """Return what this conversation has heard, from the user and from others."""
        from ..memory.guard.sources import by_agent, read_sources

        heard = read_sources(tuple(self.c.log.view.items), 0)
        # A session that a model started with its Bash tool has that model's words as its prompts.
        return by_agent(heard) if RUN_BY_MODEL in os.environ else heard

    def write(self, change: FileChange, why: ChangeReason, heard: Sources | None = None) -> WriteOutcome | None:
        """Write through the store; callable from any thread. None if it is not a memory file. `heard` is for changes that no guard has
        seen yet."""
        from ..memory.tool_writes import RequestedWrite, WriteOutcome, find_memory_file, write_memory_file

        file = find_memory_file(self.place, change.path) if self.place is not None else None
        if file is None:
            return None
        wish = RequestedWrite(change.path, change.data.decode("utf-8", "replace"), change.before, change.unread, self.inbox)
        try:
            with self.open() as memory:
                return write_memory_file(memory, file, wish, why=why, now=self._log_time(), heard=heard)
        except DiskError as error:
            return WriteOutcome(str(error), is_error=True)

    def changes_for(self, messages: Sequence[str]) -> tuple[SetChange, ...]:
        """Return what was changed in memory for these messages. An unreadable memory is reported."""
        if self.mode == "off" or not self._exists():
            return ()
        try:
            with self.open() as memory:
                return tuple(memory.changes_for(self.session_id, messages))
        except DiskError as error:
            self.c.notify(f"{error} The memories of this turn could not be looked up.")
            return ()

    def undo_changes(self, messages: Sequence[str]) -> UndoneSet:
        from ..memory.store.change_sets import turn_act
        from ..memory.store.contract import ChangeReason

        acts = [turn_act(self.session_id, message) for message in messages]
        with self.open() as memory:
            return memory.undo(*acts, why=ChangeReason("user", "undid the turn", self.session_id))

    def _log_time(self) -> datetime | None:
        """Return the local time if daily logs are kept."""
        return local_time(self.c) if self.c.settings.assistant else None

    def access(self, *, interactive: bool) -> MemoryAccess | None:
        """Return the access for background work that writes memories, or None without memory."""
        if self.place is None:
            return None
        from ..memory.store.scopes import project_root

        return MemoryAccess(self.place, project_root(self.c.cwd), self.session_id, self.write, interactive)

    def take_notices(self) -> list[str]:
        """Return and clear the notices about saved and removed memories, one sentence each."""
        notices, self._notices = self._notices, []
        return notices
