"""What recall keeps of one conversation, and the cheap looks that come before it is loaded.

Nothing here is needed after a resume: what was surfaced stands in the view.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ...conversation.isolate import isolate
from ...conversation.state import Conversation
from ...core.blocks import ToolResult
from ...core.errors import DiskError
from ...core.view import Item
from ...disk.settings_files import user_home

if TYPE_CHECKING:  # a conversation without memories loads nothing of this
    from ...memory.recall.library import Look
    from ...memory.recall.plan import Noticed
    from ...memory.store.scopes import Place
    from .model_selector import ModelSelection

SELECT = "select"  # the background job, and the purpose of its call
EVENT = "recall"
TOO_LATE = "the turn ended before a model had chosen"
_NO_TOPICS = frozenset({"logs"})


class RecallState:
    def __init__(self) -> None:
        self.message = ""  # the person's message that was looked at last
        self.held: ModelSelection | None = None  # what a model chose, until results stand that it can follow
        self.looked: Look | None = None  # the look before, closed: what it prepared serves the next one
        self.noticed: Noticed | None = None
        self.place: Place | None = None
        self.project = Path()
        self.placed = False


def bring_memories(c: Conversation) -> None:
    """Before a call; what it takes is loaded where there are memories."""
    with isolate(c, "recall"):
        if may_bring(c):
            from .step import bring

            bring(c)


def may_bring(c: Conversation) -> bool:
    """Whether there can be anything to bring now; costs the listing of a directory for each message of the person."""
    if not c.settings.recall or c.home is None or c.directory is None or c.host.subagent:
        return False
    state = c.layer_state(RecallState)
    return state.held is not None or (unanswered(c.log.view.items) and _holds_any(memory_scopes_of(c, state)))


def unanswered(items: Sequence[Item]) -> bool:
    """Whether something was said that no answer has seen."""
    for item in reversed(items):
        if item.role == "assistant" or item.kind in ("summary", "partial"):
            return False
        if item.kind == "said":
            return any(not isinstance(block, ToolResult) for block in item.blocks)
    return False


def memory_scopes_of(c: Conversation, state: RecallState) -> Place | None:
    """Where memory lies, found once; a place that may not be used is one sentence."""
    if not state.placed and c.home is not None:
        from ...memory.store.scopes import memory_place, project_root

        state.placed = True
        try:
            state.place = memory_place(cwd=c.cwd, home=c.home, settings=c.settings, user_home=user_home(os.environ) or c.home)
            state.project = project_root(c.cwd)
        except DiskError as error:
            c.notify_once(f"{error} This session goes on without memory.")
    return state.place


def _holds_any(place: Place | None) -> bool:
    return place is not None and (_has_topics(place.path) or (place.team is not None and _has_topics(place.team)))


def _has_topics(path: Path) -> bool:
    try:
        with os.scandir(path) as entries:
            return any(_may_be_topic(entry) for entry in entries)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # what is wrong with it is said by who reads it


def _may_be_topic(entry: os.DirEntry[str]) -> bool:
    name = entry.name
    if name.startswith(".") or name in _NO_TOPICS:
        return False
    return (name.endswith(".md") and name.lower() != "memory.md") or entry.is_dir(follow_symlinks=False)


def leave_selection(c: Conversation) -> None:
    """The turn is over: what a model would still choose comes too late, and counts as never surfaced (Q7)."""
    state = c.layer_state(RecallState)
    if state.held is not None:
        c.record_event(EVENT, {"message": state.held.message, "files": [], "by": state.held.choice.by, "skipped": TOO_LATE})
        state.held = None
    if state.message and c.background.running(SELECT) is not None:
        c.background.abort(SELECT)
    state.message = ""
