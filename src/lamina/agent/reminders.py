"""Context for an agent's model besides messages: the first reminder, nested instruction files, output of hooks.

The first reminder comes once, before everything else, and stays unchanged. After a compaction it is rebuilt from the current files. All
later context is appended after everything already sent. That includes the date: the view shows which date the model knows, so a change
is announced once, also after a resume, an undo or a compaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import turn
from ..core.blocks import Block, Text
from ..core.view import Item
from ..disk.settings_files import user_home
from ..fork.tool_runner import CompletedCall
from ..hooks.answers import HookOutcome
from ..prompt.git_status import git_status
from ..prompt.instruction_files import Approved, Instructions
from ..prompt.instructions import load_instructions, nested_for
from ..prompt.reminder import LaterKind, date_change, date_said, first_reminder, in_view, later_context, nested_context
from ..session.base import working
from ..session.session import Session
from .memory_binding import MemoryBinding

# The kinds of context that contain the date.
_DATED = ("attachment:instructions", "attachment:date")


class Reminders:
    def __init__(self, session: Session, memory: MemoryBinding, environ: Mapping[str, str]) -> None:
        self.instructions = Instructions()
        self._session = session
        self._memory = memory
        self._environ = environ
        self.approved: Approved | None = None
        self._known: tuple[int, str | None] | None = None  # the view's generation, and the date in it

    def start(self, hook: Callable[..., HookOutcome], *, resumed: bool, approved: Approved | None) -> None:
        source = "resume" if resumed else "startup"
        started = hook("SessionStart", source=source, matching=source)
        refusal = [f"A SessionStart hook blocked: {started.block}"] if started.block is not None else []
        self._session._notify(*started.messages, *started.faults, *refusal)
        self.approved = approved
        self._load()
        if not any(item.kind == "attachment:instructions" for item, _ in self._view()):
            text = self._first()
            if text is not None:
                self._enter("instructions", text)
        for said in started.context:
            self.add("hook", said)

    def first_reminder(self) -> str | None:
        """Rebuild the reminder from the current files."""
        self._load()
        return self._first()

    def _load(self) -> None:
        self.instructions = load_instructions(cwd=self._session.cwd, home=self._session.home, **self._sources())
        self._session._notify_once(*self.instructions.findings)

    def _first(self) -> str | None:
        return first_reminder(
            instructions=self.instructions,
            memory_index=self._memory.indexes(),
            git_status=git_status(self._session.cwd, environ=self._environ),
            date=self._today(),
        )

    def _today(self) -> str:
        return self._session._local_time().date().isoformat()

    def new_day(self) -> None:
        """Announce the date if it has changed since the model last saw one. A model that was never given a date gets none."""
        today, known = self._today(), self._date_in_view()
        if known is not None and known != today:
            self._enter("date", date_change(known, today))
            self._known = None

    def _date_in_view(self) -> str | None:
        """Return the date in view. It is searched again only if the view was changed, not if it grew, since only this class adds dates."""
        with working(self._session) as conversation:
            view = conversation.log.view
            if self._known is None or self._known[0] != view.generation:
                said = (date_said(block.text) for item, block in view.blocks() if item.kind in _DATED and isinstance(block, Text))
                dates = [each for each in said if each is not None]
                self._known = (view.generation, dates[-1] if dates else None)
            return self._known[1]

    def _sources(self) -> dict[str, Any]:
        return {
            "person": user_home(self._environ),
            "excludes": self._session.settings.instruction_excludes,
            "approved": self.approved or (),
        }

    def add_nested(self, reads: Sequence[CompletedCall]) -> None:
        """Add instruction files next to a file that was read after its result, each once."""
        for one in reads:
            if (path := one.output.facts.get("path")) is None:
                continue  # a Read tool that is not ours
            seen = in_view(
                block.text for item, block in self._view() if item.kind.startswith("attachment:") and isinstance(block, Text)
            )
            rules = self.instructions.scoped
            nested = nested_for(Path(str(path)), cwd=self._session.cwd, rules=rules, already=seen, **self._sources())
            self._session._notify_once(*nested.findings)
            if (text := nested_context(nested)) is not None:
                self._enter("nested_memory", text)

    def add(self, kind: LaterKind, text: str) -> None:
        """Add context that is not a message, as data."""
        self._enter(kind, later_context(kind, text))

    def add_texts(self, kind: str, texts: Iterable[str]) -> None:
        """Add context that is already fenced."""
        for text in texts:
            self._enter(kind, text)

    def _enter(self, kind: str, text: str) -> None:
        with working(self._session) as conversation:
            turn.add_context(conversation, kind, text)

    def _view(self) -> list[tuple[Item, Block]]:
        with working(self._session) as conversation:
            return list(conversation.log.view.blocks())
