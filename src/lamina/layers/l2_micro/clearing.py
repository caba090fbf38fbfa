"""Carrying out a clearing: originals to disk, then one record with its receipt.

The originals are on disk before the record is written, so a crash at any line leaves the old view (and files nobody points to yet)
or the new one. A result whose original cannot be saved is not cleared. What the layer knows of a conversation (`MicroState`) is kept up
to date by what is new in it, and found again in the log after a resume.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...conversation.state import Conversation
from ...conversation.window.features import measure_all
from ...core.blocks import Block, Wire, tool_result
from ...core.errors import DiskError
from ...core.receipts import Told, write_receipt
from ...core.records import Clear, Event, Spill, new_id
from ...disk.session_files.spills import DIRECTORY, Spills, open_spills
from .registry import Clearable, Registry, Rules, Surfaced, marker, original

# An id as long as the providers make them, to know how long a marker is before there is one.
USUAL_ID = "toolu_" + "0" * 24
EDITS_EVENT = "cache_edits"


class MicroState:
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


def carry_out(c: Conversation, state: MicroState, rows: Sequence[Clearable], *, trigger: str, at_least: int) -> bool:
    """Save, then enter. False: too little could be saved to be worth it."""
    paths = _save(c, state, rows)
    markers = {row.block.tool_use_id: marker(paths[row.block.tool_use_id]) for row in rows if row.block.tool_use_id in paths}
    done = [row for row in rows if row.block.tool_use_id in markers]
    left = sum(tokens_of(c, tool_result(call, words)) for call, words in markers.items())
    saved = sum(row.tokens for row in done) - left
    if not done or saved < at_least:
        return False
    memories = state.registry.old_memories(c.policy.micro.attachments_older_than)
    saved += sum(one.tokens for one in memories)
    uuid, parent, time = c.head()
    receipt = write_receipt(uuid, [item.uuid for item in c.log.view.items], _fates(c, done, paths, memories)).to_json()
    gone = tuple(one.record for one in memories)
    told: Wire = {"ids": list(markers), "attachments": list(gone), "tokens_saved": saved, "trigger": trigger}
    # What was learnt of the tokens goes with the decision, in one write: the usages it was learnt from measured another view (T10).
    told |= {"decision": uuid, "count": c.count.to_json()}
    event = Event(new_id(), parent, time, "clearing", told)
    c.append([Clear(uuid, parent, time, markers, gone, trigger, saved, receipt), event], reason="clearing")
    return True


def _fates(c: Conversation, done: Sequence[Clearable], paths: dict[str, str], memories: Sequence[Surfaced]) -> dict[str, Told]:
    """B1: every record in view is kept or cleared. One that holds several cleared results names the first one's file."""
    fates = {item.uuid: Told("kept") for item in c.log.view.items}
    fates |= {row.record: Told("cleared", paths[row.block.tool_use_id]) for row in reversed(done)}
    return fates | {one.record: Told("cleared") for one in memories}


def _save(c: Conversation, state: MicroState, rows: Sequence[Clearable]) -> dict[str, str]:
    """Where the original of each result lies; without those that could not be saved. The first failure ends it: what keeps one
    file from being written keeps the others too, and what is left is tried again before the next call."""
    if c.directory is None:
        return {}
    # A transcript may come without its files: then what is left of a spilled result is its preview, and that stays.
    spilled = {one.tool_use_id: one.path for one in c.log.decisions.values() if isinstance(one, Spill) and _is_file(one.path)}
    paths: dict[str, str] = {}
    try:
        with open_spills(c.directory) as spills:
            for row in rows:
                call = row.block.tool_use_id
                if (path := spilled.get(call) or _saved(spills, row, whole=call not in c.log.view.replaced)) is not None:
                    paths[call] = path
    except DiskError as error:
        if str(error) != state.trouble:
            state.trouble = str(error)
            c.record_event("clearing_failed", {"why": str(error)})
            c.notify(f"Old results could not be cleared, because their originals could not be saved: {error}")
        return paths
    state.trouble = ""
    return paths


def _is_file(path: str | None) -> bool:
    return path is not None and Path(path).is_file()


def _saved(spills: Spills, row: Clearable, *, whole: bool) -> str | None:
    """The file of a result: the one that is there (spilled, or saved by a clearing that was taken back or cut short), else a new
    one. `whole`: the view shows all of it; a preview is never saved as the original."""
    suffix, data = original(row.block)
    for there in spills.there(row.block.tool_use_id):
        if not whole or there.size == len(data):
            return there.path
    # Not waiting for the disk: the transcript holds the whole result, so a power loss costs the model a file and nobody a word.
    return str(spills.write(row.block.tool_use_id, [data], suffix=suffix).path) if whole else None
