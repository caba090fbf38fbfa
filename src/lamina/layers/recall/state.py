"""The recall state of one conversation, and the cheap checks made before the rest of recall is loaded.

Nothing here has to survive a resume: the view shows which memories were surfaced.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...conversation.state import Conversation
from ...core.blocks import ToolResult
from ...core.errors import DiskError
from ...core.view import Item
from ...disk.settings_files import user_home
from ...language.text import Text

if TYPE_CHECKING:  # a conversation without memories loads none of these
    from ...memory.recall.library import MemoryLibrary
    from ...memory.recall.plan import SeenMemoriesTracker
    from ...memory.store.scopes import MemoryLocation
    from .model_selector import ModelSelection

SELECT = "select"  # the background job, and the purpose of its call
EVENT = "recall"
TOO_LATE = "the turn ended before the model had chosen"
_NO_TOPICS = frozenset({"logs"})


class RecallState:
    def __init__(self) -> None:
        self.message = ""  # id of the last user message that recall handled
        self.held: ModelSelection | None = None  # a model's choice, until there are tool results to append it to
        self.looked: MemoryLibrary | None = None  # the previous library, closed; the next one reuses what it has loaded
        self.noticed: SeenMemoriesTracker | None = None
        self.place: MemoryLocation | None = None
        self.project = Path()
        self.placed = False
        self.counted: frozenset[str] = frozenset()  # files that the model read, and whose use was counted
        self.refused: set[str] = set()  # small models that the server does not have


def selector_model(c: Conversation, state: RecallState) -> str | None:
    """Return the model that selects memories: `lamina.smallModel`, or the cheapest known model of the same maker. None if no
    cheap one is known, or the server does not have it."""
    from ...providers.models import costs_more, known, small_model

    model = c.prompt.model
    small = (
        c.settings.small_model or small_model(model) or (model if known(model) is not None and not costs_more(model) else None)
    )
    return small if small not in state.refused else None


def bring_memories(c: Conversation) -> None:
    """Recall memories before a call. The recall code is loaded only if there are memories."""
    if may_bring(c):
        from .step import bring

        bring(c)


def may_bring(c: Conversation) -> bool:
    """Return whether there may be memories to recall. Costs one directory listing per user message."""
    if not c.settings.recall or c.home is None or c.directory is None or c.host.subagent:
        return False
    state = c.layer_state(RecallState)
    return state.held is not None or (unanswered(c.log.view.items) and _holds_any(memory_scopes_of(c, state)))


def unanswered(items: Sequence[Item]) -> bool:
    """Return whether there is a user message after the last answer."""
    for item in reversed(items):
        if item.role == "assistant" or item.kind in ("summary", "partial"):
            return False
        if item.kind == "said":
            return any(not isinstance(block, ToolResult) for block in item.blocks)
    return False


def memory_scopes_of(c: Conversation, state: RecallState) -> MemoryLocation | None:
    """Return the location of the memories, found once. If it cannot be used, the user is notified."""
    if not state.placed and c.home is not None:
        from ...memory.store.scopes import locate_memory, project_root

        state.placed = True
        try:
            state.place = locate_memory(cwd=c.cwd, home=c.home, settings=c.settings, user_home=user_home(os.environ) or c.home)
            state.project = project_root(c.cwd)
        except DiskError as error:
            c.notify_once(Text("{error} This session goes on without memory.", error=error))
    return state.place


def _holds_any(place: MemoryLocation | None) -> bool:
    return place is not None and (_has_topics(place.path) or (place.team is not None and _has_topics(place.team)))


def _has_topics(path: Path) -> bool:
    try:
        with os.scandir(path) as entries:
            return any(_may_be_topic(entry) for entry in entries)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # reading the memories will report the error


def _may_be_topic(entry: os.DirEntry[str]) -> bool:
    name = entry.name
    if name.startswith(".") or name in _NO_TOPICS:
        return False
    return (name.endswith(".md") and name.lower() != "memory.md") or entry.is_dir(follow_symlinks=False)


def leave_selection(c: Conversation) -> None:
    """Drop the selection when the turn is over: a choice that comes later does not count as surfaced."""
    state = c.layer_state(RecallState)
    if state.held is not None:
        c.record_event(EVENT, {"message": state.held.message, "files": [], "by": state.held.choice.by, "skipped": TOO_LATE})
        state.held = None
    if state.message and c.background.running(SELECT) is not None:
        c.background.abort(SELECT)
    state.message = ""
