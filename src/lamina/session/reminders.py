"""Context for the model besides messages: the first reminder, nested instruction files, output of hooks.

The first reminder comes once, before everything else, and stays unchanged. After a compaction it is rebuilt from the current files. All
later context is appended after everything already sent. That includes the date: the view shows which date the model knows, so a change
is announced once, also after a resume, an undo or a compaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import turn
from ..core.blocks import Block, Text
from ..core.view import Item
from ..disk.settings_files import user_home
from ..prompt.instruction_files import Approved, Instructions
from ..prompt.instructions import load_instructions, nested_for
from ..prompt.reminder import LaterKind, date_change, date_said, first_reminder, in_view, later_context, nested_context
from .memory_binding import MemoryBinding, local_time

if TYPE_CHECKING:
    from ..tools.hooks.protocol import HookOutcome
    from .base import SessionBase

# The kinds of context that contain the date.
_DATED = ("attachment:instructions", "attachment:date")
# Length of a time up to its minute, as records have it.
MINUTE = len("2026-11-16T15:00")


class Reminders:
    def __init__(
        self, session: SessionBase, memory: MemoryBinding, environ: Mapping[str, str], selection: str | None = None
    ) -> None:
        self.instructions = Instructions()
        self._open = session._open
        self._c = session._c
        self._memory = memory
        self._environ = environ
        self._selection = selection
        self.approved: Approved | None = None
        self._date: tuple[int, str | None] | None = None  # the view's generation, and the date in it
        self._looked: tuple[str, int] | None = None  # when the date was last compared, and the view's generation then

    def start(self, *, resumed: bool, approved: Approved | None, hook: Callable[..., HookOutcome] | None = None) -> None:
        """Add the first reminder, unless it is in view, and what the user's hooks add to the start of a session."""
        started = self._run_hook(hook, "resume" if resumed else "startup") if hook is not None else ()
        self.approved = approved
        self._load()
        if not any(item.kind == "attachment:instructions" for item, _ in self._view()):
            text = self._first()
            if text is not None:
                self._enter("instructions", text)
        for output in started:
            self.add("hook", output)

    def _run_hook(self, hook: Callable[..., HookOutcome], source: str) -> Sequence[str]:
        started = hook("SessionStart", source=source, matching=source)
        refusal = [f"A SessionStart hook blocked: {started.block}"] if started.block is not None else []
        self._c.notify(*started.messages, *started.faults, *refusal)
        return started.context

    def first_reminder(self) -> str | None:
        """Rebuild the reminder from the current files."""
        self._load()
        return self._first()

    def _load(self) -> None:
        if not self._c.settings.instructions:
            self.instructions = Instructions()
            return
        self.instructions = load_instructions(cwd=self._c.cwd, home=self._c.home, **self._sources())
        self._c.notify_once(*self.instructions.findings)

    def _first(self) -> str | None:
        own = self._c.settings.instructions
        return first_reminder(
            instructions=self.instructions,
            memory_index=self._memory.indexes(),
            git_status=self._git_status() if own else None,
            date=self._today() if own else None,
            editor_selection=self._selection,
        )

    def _git_status(self) -> str | None:
        cwd = self._c.cwd
        if not any((directory / ".git").exists() for directory in (cwd, *cwd.parents)):
            return None  # nothing of git is loaded
        from ..prompt.git_status import git_status

        return git_status(cwd, environ=self._environ)

    def _today(self) -> str:
        return local_time(self._c).date().isoformat()

    def new_day(self) -> None:
        """Announce the date if it has changed since the model last saw one. A model that was never given a date gets none."""
        c = self._c
        # A local midnight is on a full minute, so one look a minute is enough.
        moment = (c.clock()[:MINUTE], c.log.view.generation)
        if moment == self._looked:
            return
        self._looked = moment
        today, before = self._today(), self._date_in_view()
        if before is not None and before != today:
            self._enter("date", date_change(before, today))
            self._date = None

    def _date_in_view(self) -> str | None:
        """Return the date in view. It is searched again only if the view was changed, not if it grew, since only this class adds dates."""
        with self._open():
            view = self._c.log.view
            if self._date is None or self._date[0] != view.generation:
                texts = [block.text for item, block in view.blocks() if item.kind in _DATED and isinstance(block, Text)]
                dates = [date for date in map(date_said, texts) if date is not None]
                self._date = (view.generation, dates[-1] if dates else None)
            return self._date[1]

    def _sources(self) -> dict[str, Any]:
        return {
            "person": user_home(self._environ),
            "excludes": self._c.settings.instruction_excludes,
            "approved": self.approved or (),
        }

    def add_nested(self, paths: Sequence[str | Path]) -> None:
        """Add instruction files next to the files that were read, each once, after the results."""
        for path in paths if self._c.settings.instructions else ():
            attached = (block for item, block in self._view() if item.kind.startswith("attachment:"))
            texts = in_view(block.text for block in attached if isinstance(block, Text))
            rules = self.instructions.scoped
            nested = nested_for(Path(path), cwd=self._c.cwd, rules=rules, already=texts, **self._sources())
            self._c.notify_once(*nested.findings)
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
        with self._open():
            turn.add_context(self._c, kind, text)

    def _view(self) -> list[tuple[Item, Block]]:
        with self._open():
            return list(self._c.log.view.blocks())
