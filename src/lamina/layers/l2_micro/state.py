"""What layer 2 knows of one conversation, kept up to date by what is new in it. All of it is found again in the log after a resume."""

from __future__ import annotations

from pathlib import Path

from ...conversation.state import Conversation
from ...conversation.window.features import measure_all
from ...core.blocks import Block, tool_result
from ...core.records import Clear
from ...disk.session_files.spills import DIRECTORY
from .registry import Registry, Rules, marker

# An id as long as the providers make them, to know how long a marker is before there is one.
USUAL_ID = "toolu_" + "0" * 24
EDITS_EVENT = "cache_edits"


class MicroState:
    """The room's own state; see the module."""

    def __init__(self) -> None:
        self.begun = False
        self.registry = Registry()
        self.spared: frozenset[str] = frozenset()
        self.revoked: frozenset[str] = frozenset()  # the decisions taken back that `spared` accounts for
        self.applied = 0  # tokens the provider itself reported as cleared, last told
        self.trouble = ""  # why originals could not be saved, last told
        self.marker_tokens = 0


def followed(c: Conversation) -> MicroState:
    state = c.layer_state(MicroState)
    if not state.begun:
        _begin(c, state)
    if c.log.revoked != state.revoked:
        _note_revoked(c, state)
    rules = Rules(c.policy.micro.clearable, state.spared, state.marker_tokens)
    if state.registry.follow(c.log.view, rules, lambda block: tokens_of(c, block)):
        c.cache_edits.prune(state.registry)
    return state


def _begin(c: Conversation, state: MicroState) -> None:
    """What a resumed session knew: the marks of its last event, or of the checkpoint."""
    state.begun = True
    known = c.resumed.get("micro")
    known = known if isinstance(known, dict) else {}
    event = c.log.events.get(EDITS_EVENT)
    marked = _names(event.data.get("ids") if event is not None else known.get("edits"))
    answer = next((item for item in reversed(c.log.view.items) if item.role == "assistant"), None)
    # An answer that is younger than the marks answered a request that carried them.
    c.cache_edits.resume(
        marked,
        confirmed=event is None or (answer is not None and answer.time > event.time),
        off=bool(event is not None and event.data.get("ignored")),
    )
    state.spared = frozenset(_names(known.get("spared")))
    path = str((c.directory or Path()) / DIRECTORY / f"{USUAL_ID}.txt")
    state.marker_tokens = tokens_of(c, tool_result(USUAL_ID, marker(path)))
    c.checkpoint_with("micro", lambda: {"spared": sorted(state.spared), "edits": list(c.cache_edits.marked)})


def _note_revoked(c: Conversation, state: MicroState) -> None:
    """A clearing that was taken back was looked at by a person: none of its results is cleared again. Read from the log, as the
    undo itself is, so that a resumed session knows it too."""
    state.revoked = frozenset(c.log.revoked)
    undone = (one for one in c.store.read(c.start) if isinstance(one, Clear) and one.uuid in c.log.revoked)
    state.spared |= {call for one in undone for call in one.markers}


def _names(value: object) -> list[str]:
    return [str(name) for name in value] if isinstance(value, list | tuple) else []


def tokens_of(c: Conversation, block: Block) -> int:
    return measure_all((block,), c.memo).plain
