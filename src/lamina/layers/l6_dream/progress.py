"""A dream as it goes on (D4, D5): its record after each answer, and a person's word to stop it.

Owns the record while a dream runs; only the thread of the dream writes it. `Watch` looks from a thread of its own whether somebody asked
the dream to stop, or whether it has held the lock for too long, and then sets the one Event that ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Event, Thread
from typing import Literal, Self, TypeAlias

from msgspec.structs import replace

from ...core.errors import DiskError
from ...core.reply import Reply
from ...core.usage import Usage
from ...disk.locks.dream_lock import HeldDreamLock
from ...disk.trees.rootdir import RootDir
from ...fork.budget import LOCAL
from ...providers.models import cost
from .record import Record, kill_requested, with_file, with_turn, write_record

# A person who stops it waits this long at most; a look is one stat.
LOOK_SECONDS = 0.5

Heard: TypeAlias = Callable[[Record], None]


def unheard(_: Record) -> None:
    pass


class Progress:
    def __init__(self, root: RootDir, record: Record, heard: Heard = unheard) -> None:
        self._root = root
        self.heard = heard
        self._usage = Usage()
        self.record = record

    def said(self, reply: Reply, model: str) -> None:
        """The model gave an answer."""
        self._usage += reply.usage if reply.usage is not None and reply.model != LOCAL else Usage()
        spent = cost(reply.model or model, self._usage)
        record = with_turn(self.record, reply.text, len(reply.tool_uses))
        tokens = self._usage.prompt + self._usage.output_tokens
        self._keep(replace(record, tokens=tokens, cost=spent.usd or 0.0))

    def touched(self, files: Iterable[str]) -> None:
        """Its calls were carried out; these files of the copy it has changed until now."""
        record = self.record
        for file in files:
            record = with_file(record, file)
        if record != self.record:
            self._keep(record)

    def _keep(self, record: Record) -> None:
        self.record = record
        write_record(self._root, record)
        self.heard(record)


class Watch:
    """While the block runs, `abort` is set where the dream must end; `why` says which it was."""

    def __init__(self, root: RootDir, dream: str, hold: HeldDreamLock, abort: Event) -> None:
        self._root = root
        self._dream = dream
        self._hold = hold
        self._abort = abort
        self._over = Event()
        self._thread = Thread(target=self._look, name="lamina-dream-watch", daemon=True)
        self.why: Literal["", "killed", "overdue"] = ""

    def _look(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self.why = self._asked()
            if self.why:
                self._abort.set()
                return

    def _asked(self) -> Literal["", "killed", "overdue"]:
        try:
            if kill_requested(self._root, self._dream):
                return "killed"
        except DiskError:
            return ""  # who put something else there did not ask for anything
        return "overdue" if self._hold.overdue() else ""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
