"""Carrying out a clearing: originals to disk, then one record with its receipt.

The originals are on disk before the record is written, so a crash at any line leaves the old view (and files nobody points to yet)
or the new one. A result whose original cannot be saved is not cleared.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...conversation.state import Conversation
from ...core.blocks import Wire, tool_result
from ...core.errors import DiskError
from ...core.receipts import Told, write_receipt
from ...core.records import Clear, Event, Spill, new_id
from ...disk.session_files.spills import Spills, open_spills
from .registry import Clearable, Surfaced, marker, original
from .state import MicroState, tokens_of


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
