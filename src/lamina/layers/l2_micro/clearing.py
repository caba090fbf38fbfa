"""Carry out a clearing: save the originals to disk, then append one record with its receipt.

The originals are on disk before the record is written. A crash at any line therefore leaves the new view, or the old view and
some files that no record refers to yet. A result whose original cannot be saved is not cleared. The layer's state (`MicroState`)
is updated incrementally from new messages and rebuilt from the log after a resume.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...conversation.state import Conversation
from ...conversation.window.features import measure_all
from ...core.blocks import Block, Wire, tool_result
from ...core.errors import DiskError
from ...core.policy import MicroPolicy
from ...core.prefix import Reason
from ...core.reach import OWN_NAMES
from ...core.receipts import Told, write_receipt
from ...core.records import Clear, Event, Spill, new_id
from ...disk.session_files.spills import DIRECTORY, Spills, open_spills
from .old_answers import ShortenedAnswer
from .registry import Clearable, Registry, Rules, Surfaced, marker, original

# An id of the usual length, to estimate the size of a marker before the real id is known.
USUAL_ID = "toolu_" + "0" * 24
EDITS_EVENT = "cache_edits"


class MicroState:
    def __init__(self) -> None:
        self.begun = False
        self.registry = Registry()
        self.spared: frozenset[str] = frozenset()
        self.revoked: frozenset[str] = frozenset()  # the undone decisions that `spared` already includes
        self.applied = 0  # tokens that the provider last reported as cleared
        self.trouble = ""  # the last reported reason why originals could not be saved
        self.marker_tokens = 0
        self.unsupported: set[str] = set()  # settings that the user knows this provider does not support


def updated_state(c: Conversation) -> MicroState:
    state = c.layer_state(MicroState)
    if not state.begun:
        _begin(c, state)
    if c.log.revoked != state.revoked:
        _note_revoked(c, state)
    cold = c.policy.cold
    rules = Rules(clearable_in(c), state.spared, state.marker_tokens, cold.clear or cold.repeated)
    if state.registry.follow(c.log.view, rules, lambda block: tokens_of(c, block)):
        c.cache_edits.prune(state.registry)
    return state


def clearable_in(c: Conversation) -> frozenset[str]:
    """Return the tools whose results may be cleared: those of the policy and, under a loop of the host's own, all that it declares."""
    return clearable_tools(c.policy.micro, c.prompt.tool_names if c.host.tool_runner is None else frozenset())


def clearable_tools(policy: MicroPolicy, declared: frozenset[str]) -> frozenset[str]:
    return (policy.clearable | declared) - OWN_NAMES - policy.kept_tools


def _begin(c: Conversation, state: MicroState) -> None:
    """Restore the state of a resumed session: the cache edits of its last event, or of the checkpoint."""
    state.begun = True
    known = c.resumed.get("micro")
    known = known if isinstance(known, dict) else {}
    event = c.log.events.get(EDITS_EVENT)
    marked = _names(event.data.get("ids") if event is not None else known.get("edits"))
    answer = next((item for item in reversed(c.log.view.items) if item.role == "assistant"), None)
    # An answer newer than the marks belongs to a request that contained them.
    c.cache_edits.resume(
        marked,
        confirmed=event is None or (answer is not None and answer.time > event.time),
        off=bool(event is not None and event.data.get("ignored")),
    )
    state.spared = frozenset(_names(known.get("spared")))
    path = str((c.directory or Path()) / DIRECTORY / f"{USUAL_ID}.txt")
    state.marker_tokens = tokens_of(c, tool_result(USUAL_ID, marker(USUAL_ID, c.name_for_model(path), c.prompt.reach)))
    c.checkpoint_with("micro", lambda: {"spared": sorted(state.spared), "edits": list(c.cache_edits.marked)})


def _note_revoked(c: Conversation, state: MicroState) -> None:
    """Spare the results of every undone clearing: the user wanted them back, so they are never cleared again.

    They are read from the log, like the undo itself, so that a resumed session spares them too."""
    state.revoked = frozenset(c.log.revoked)
    undone = (one for one in c.store.read(c.start) if isinstance(one, Clear) and one.uuid in c.log.revoked)
    state.spared |= {name for one in undone for name in (*one.markers, *one.shortened)}


def _names(value: object) -> list[str]:
    return [str(name) for name in value] if isinstance(value, list | tuple) else []


def tokens_of(c: Conversation, block: Block) -> int:
    return measure_all((block,), c.memo).plain


def carry_out(
    c: Conversation,
    state: MicroState,
    rows: Sequence[Clearable],
    *,
    trigger: str,
    at_least: int,
    answers: Sequence[ShortenedAnswer] = (),
    uuid: str = "",
) -> bool:
    """Save the originals of the results, then append the decision. Return False if it would free too few tokens.

    The log keeps the originals of answers, so no file is written for them. `uuid` is the id of the decision if a marker names
    it."""
    paths = _save(c, state, rows) if rows else {}
    calls = [row.block.tool_use_id for row in rows if row.block.tool_use_id in paths]
    markers = {call: marker(call, c.name_for_model(paths[call]), c.prompt.reach) for call in calls}
    done = [row for row in rows if row.block.tool_use_id in markers]
    left = sum(tokens_of(c, tool_result(call, words)) for call, words in markers.items())
    saved = sum(row.tokens for row in done) - left + sum(one.saved for one in answers)
    if not (done or answers) or saved < at_least:
        return False
    memories = state.registry.old_memories(c.policy.micro.attachments_older_than) if done else []
    saved += sum(one.tokens for one in memories)
    new, parent, time = c.head()
    uuid = uuid or new
    shortened = {one.record: [block.wire for block in one.blocks] for one in answers}
    fates = {**_fates(c, done, paths, memories), **dict.fromkeys(shortened, Told("cleared"))}
    receipt = write_receipt(uuid, [item.uuid for item in c.log.view.items], fates).to_json()
    gone = tuple(one.record for one in memories)
    data: Wire = {"ids": list(markers), "attachments": list(gone), "answers": list(shortened), "tokens_saved": saved}
    # The calibrated token count is stored with the decision in one write: the usages it came from measured the view before it
    # (T10).
    data |= {"trigger": trigger, "decision": uuid, "count": c.count.to_json()}
    event = Event(new_id(), parent, time, "clearing", data)
    reason: Reason = "compaction" if "compaction" in c.last.announced else "clearing"
    c.append([Clear(uuid, parent, time, markers, gone, trigger, saved, receipt, shortened), event], reason=reason)
    return True


def _fates(c: Conversation, done: Sequence[Clearable], paths: dict[str, str], memories: Sequence[Surfaced]) -> dict[str, Told]:
    """Return the fate of every record in view: kept or cleared. A record with several cleared results names the first one's
    file."""
    fates = {item.uuid: Told("kept") for item in c.log.view.items}
    fates |= {row.record: Told("cleared", paths[row.block.tool_use_id]) for row in reversed(done)}
    return fates | {one.record: Told("cleared") for one in memories}


def _save(c: Conversation, state: MicroState, rows: Sequence[Clearable]) -> dict[str, str]:
    """Save the original of each result and return the paths by call id, without the results that could not be saved.

    The first failure ends the loop: whatever blocked one file will block the others too. The rest is tried before the next
    call."""
    if c.directory is None:
        return {}
    # A transcript may have been copied without its files. Then only the preview of a spilled result is left, and it is kept.
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
            c.notify(f"Old tool results were not cleared, because their originals could not be saved: {error}")
        return paths
    state.trouble = ""
    return paths


def _is_file(path: str | None) -> bool:
    return path is not None and Path(path).is_file()


def _saved(spills: Spills, row: Clearable, *, whole: bool) -> str | None:
    """Return the path of a result's file, writing it if there is none.

    A file exists if the result was spilled, or if a clearing was undone or interrupted. `whole` means that the view shows the
    complete result; a preview is never saved as the original."""
    suffix, data = original(row.block)
    for there in spills.there(row.block.tool_use_id):
        if not whole or there.size == len(data):
            return there.path
    # Written without fsync: the transcript holds the complete result, so a power loss costs the model this file but no data.
    return str(spills.write(row.block.tool_use_id, [data], suffix=suffix).path) if whole else None
