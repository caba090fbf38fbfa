"""Gathers the context shown again after a compaction: instructions, pins, files, and texts of the host. restore.py selects what
fits.

Each restored text is an attachment record that belongs to the compaction, so an undo removes it again. Files are read afresh from
disk. Files that cannot be read or do not fit are reported and left out; neither stops a compaction.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from ...core.blocks import Block, Text, ToolResult, ToolUse, Wire, text
from ...core.errors import DiskError
from ...core.fence import Fenced, escape, reminder
from ...core.reach import path_in
from ...core.receipts import Told
from ...core.records import Attachment
from ...core.view import Item
from ...disk.faults import reporting
from ...disk.regular_file import open_regular
from ...fork.host import Restorable
from ...tools.hooks.protocol import HookOutcome
from ...tools.read_state import ReadFile
from .. import pins
from ..isolate import call_host
from ..state import Conversation
from ..window.estimate import estimate
from ..window.features import measure_all
from .restore import FoundFile, RestoredText, files_back, is_ours, reserve_whole, texts_back
from .user_messages import LEAST_CHARACTERS, shortened, words_of

# Larger than any budget for one file.
MAX_FILE = 1 << 20
INSTRUCTIONS = "instructions"
NESTED = "nested_memory"
PIN = "pin:"
PINNED = "The user pinned this text. It applies word for word:"
PINNED_CUT = "The user pinned this text. It is shortened to fit the window:"
PINNED_EXPAND = "The user pinned this text. It is shortened to fit the window; expand {pin} to see all of it:"
NOBODY = Item("", "user", (), "said")
HOOK = "hook"
TODOS = "The current to-do list:"
# The order in which the host's texts are restored; kinds that are not listed come last.
# How the text of a skill begins in Claude Code, and in a message that restored it.
_SKILL_DIRECTORY = re.compile(r"Base directory for this skill: (?:[^\n]*[/\\])?(?P<key>[^\n/\\]+)")
_RESTORED_SKILL = re.compile(
    r"<system-reminder>\nRestored after the compaction \(skill (?P<key>[^\n]*)\):\n\n(?P<text>.*)\n</system-reminder>", re.DOTALL
)
ORDER = ("skill", "plan", "todos", "background", "tools", "agents", "mcp")


class Restoration(NamedTuple):
    """The restored records in order, where the records they replace went, and what to report."""

    records: tuple[Attachment, ...]
    elsewhere: dict[str, Told]
    files: tuple[str, ...]
    skipped: tuple[NotRestored, ...]
    cut: tuple[str, ...]  # pins that are shown shortened


class NotRestored(NamedTuple):
    key: str
    why: str


def tokens_of(c: Conversation, words: str) -> int:
    """Estimate the tokens of a candidate text, without caching the result."""
    return estimate(measure_all((text(words),)), c.count.calibration) if words else 0


def size_of(c: Conversation, blocks: Sequence[Block]) -> int:
    return estimate(measure_all(blocks, c.memo), c.count.calibration)


def tell_restored(c: Conversation, put: Restoration) -> None:
    """Record what was restored and what was not. Notify the user once of pins that had to be shortened."""
    pins.tell_cut(c, put.cut)
    if put.files or put.skipped:
        c.record_event("restored", {"files": list(put.files), "not": [{"key": key, "why": why} for key, why in put.skipped]})


def put_back(
    c: Conversation,
    items: Sequence[Item],
    *,
    by: str,
    parent: str | None,
    kept: Sequence[Item],
    room: int | None,
    fresh: bool = True,
) -> Restoration:
    """Return the context to restore after a compaction. Instructions and pins are restored even if the room is too small.

    With `fresh`, instruction files are read again.
    """
    chain = _Chain(c, by, parent)
    held = {item.uuid for item in kept}
    gone = [item for item in items if item.uuid not in held]
    _instructions(c, chain, gone, kept, fresh=fresh)
    cut = _pins(c, chain, gone, held)
    left = (c.limits.effective if room is None else room) - sum(size_of(c, record.blocks) for record in chain.records)
    if most := c.limits.scaled(c.policy.compact.restored_tokens):
        left = min(left, most)
    texts = _by_kind(c)
    # Skills that the host registers come first, since it knows them best.
    texts["skill"] += [skill for skill in invoked_skills(gone) if skill.key not in {one.key for one in texts["skill"]}]
    _files(c, chain, kept, max(0, left - _reserved(c, texts)))
    _from_host(c, chain, kept, max(0, left - sum(size_of(c, record.blocks) for record in chain.restored)), texts)
    return Restoration(tuple(chain.records), chain.elsewhere, tuple(chain.files), tuple(chain.skipped), cut)


class _Chain:
    """A chain of new attachments, each the parent of the next."""

    def __init__(self, c: Conversation, by: str, parent: str | None) -> None:
        self._by = by or None
        self._parent = parent
        self._time = c.clock()
        self.records: list[Attachment] = []
        self.restored: list[Attachment] = []
        self.elsewhere: dict[str, Told] = {}
        self.files: list[str] = []
        self.skipped: list[NotRestored] = []

    def add(self, kind: str, blocks: Sequence[Block], instead_of: str | None = None, *, facts: Wire | None = None) -> Attachment:
        record = Attachment(str(uuid4()), self._parent, self._time, kind, tuple(blocks), by=self._by, facts=facts or {})
        self._parent = record.uuid
        self.records.append(record)
        if instead_of is not None:
            self.elsewhere[instead_of] = Told("folded", record.uuid)
        return record


def _instructions(c: Conversation, chain: _Chain, gone: Sequence[Item], kept: Sequence[Item], *, fresh: bool) -> None:
    """Restore instruction files in full: their current content if the host can read them, else the recorded one."""
    old = [item for item in gone if item.kind == f"attachment:{INSTRUCTIONS}"]
    if not any(item.kind == f"attachment:{INSTRUCTIONS}" for item in kept):
        now = call_host(c, "reminder", c.host.reminder, None) if fresh and c.host.reminder is not None else None
        blocks = (text(now),) if now else old[-1].blocks if old else ()
        if blocks:
            made = chain.add(INSTRUCTIONS, blocks)
            chain.elsewhere |= {item.uuid: Told("folded", made.uuid) for item in old}
    for item in gone:
        if item.kind == f"attachment:{NESTED}":
            chain.add(NESTED, item.blocks, item.uuid)


def _pins(c: Conversation, chain: _Chain, gone: Sequence[Item], held: set[str]) -> tuple[str, ...]:
    """Restore pins. Returns those that are shortened because they are too large for the window.

    A pinned message that leaves the view is copied to an attachment, which the next compaction carries on.
    """
    by_uuid = {item.uuid: item for item in gone}
    carried = {item.kind.removeprefix(f"attachment:{PIN}"): item for item in gone if item.kind.startswith(f"attachment:{PIN}")}
    cut = pins.budgets(c)
    for pin in c.log.view.pins.values():
        if pin.target in held:
            continue
        earlier, item = carried.get(pin.uuid), by_uuid.get(pin.target or "")
        replaces = earlier.uuid if earlier is not None else item.uuid if item is not None else None
        if pin.uuid in cut:
            words = pin.text or words_of((item or earlier or NOBODY).blocks)
            chain.add(f"{PIN}{pin.uuid}", (text(_shortened(c, pin.uuid, words, cut[pin.uuid])),), replaces)
        elif pin.text:
            chain.add(f"{PIN}{pin.uuid}", (text(_pinned(pin.text)),), replaces)
        elif earlier is not None:
            chain.add(f"{PIN}{pin.uuid}", earlier.blocks, replaces)
        elif item is not None:
            others = [block for block in item.blocks if not isinstance(block, Text)] if item.role == "user" else []
            chain.add(f"{PIN}{pin.uuid}", (text(_pinned(words_of(item.blocks))), *others), replaces)
    return tuple(pin.uuid for pin in c.log.view.pins.values() if pin.uuid in cut and pin.target not in held)


def _pinned(words: str, head: str = PINNED) -> str:
    return reminder([Fenced(head), escape(words)])


def _shortened(c: Conversation, pin: str, words: str, budget: int) -> str:
    shown = shortened(words, budget, lambda one: tokens_of(c, one), least=LEAST_CHARACTERS)
    return _pinned(shown, PINNED_EXPAND.format(pin=pin) if c.prompt.reach.expand else PINNED_CUT)


def _files(c: Conversation, chain: _Chain, kept: Sequence[Item], room: int) -> None:
    policy, limits = c.policy.compact, c.limits
    if c.host.reads is None:
        return
    own = [str(path) for path in (c.store.path, c.directory) if path is not None]
    # A plan that is a file is restored as the plan.
    own += [os.path.realpath(key) for kind, key in c.restorables if kind == "plan" and os.path.isabs(key)]
    still = _read_in(kept, ("Read", c.host.read_tool), c.cwd)
    # Fetch more files than needed, because some are restored in another way.
    recent = [one for one in c.host.reads.recent(policy.files * 4) if not is_ours(one.path, own) and one.path not in still]
    found = {one.path: _found(one) for one in recent[: policy.files]}
    made = files_back(
        found.values(),
        each=limits.scaled(policy.file_tokens),
        total=min(limits.scaled(policy.files_tokens), room),
        tokens=lambda words: tokens_of(c, words),
    )
    for one in made.back:
        chain.restored.append(chain.add("file", (text(one.text),), facts=_facts(found[one.key], len(one.text))))
    chain.files += [one.key for one in made.back]
    chain.skipped += [NotRestored(*one) for one in made.skipped]


def _facts(one: FoundFile, most: int) -> Wire:
    """Return the fields without which Claude Code leaves out a restored file. `most` is the number of characters that are shown."""
    content = (one.text or "")[:most]
    count = len(content.splitlines())
    file = {"filePath": one.path, "content": content, "numLines": count, "startLine": one.first, "totalLines": count}
    return {"filename": one.path, "displayPath": os.path.basename(one.path), "content": {"type": "text", "file": file}}


def _read_in(kept: Sequence[Item], names: Sequence[str], cwd: Path) -> set[str]:
    """Return the files whose text is still in view, in results of kept calls."""
    calls = (block for item in kept for block in item.blocks if isinstance(block, ToolUse) and block.name in names)
    return {os.path.realpath(cwd / path) for call in calls if (path := path_in(call.input)) is not None}


def _found(one: ReadFile) -> FoundFile:
    if one.seen.media_type:
        return FoundFile(one.path, None, why="it is an image")
    try:
        with reporting(one.path), open_regular(one.path) as file:
            data = file.read(MAX_FILE)
    except DiskError as error:
        missing = isinstance(error.__cause__, FileNotFoundError)
        return FoundFile(one.path, None, why="it no longer exists" if missing else str(error))
    if b"\0" in data:
        return FoundFile(one.path, None, why="it is no longer a text file")
    first = max(1, one.seen.offset)
    lines = data.decode("utf-8", "replace").splitlines()[first - 1 :]
    return FoundFile(one.path, "\n".join(lines[: one.seen.limit] if one.seen.limit else lines), first)


def _reserved(c: Conversation, texts: Mapping[str, Sequence[RestoredText]]) -> int:
    return reserve_whole((one for group in texts.values() for one in group), lambda words: tokens_of(c, words))


def _from_host(c: Conversation, chain: _Chain, kept: Sequence[Item], room: int, texts: dict[str, list[RestoredText]]) -> None:
    """Restore the host's texts, kind by kind in a fixed order. Texts that are still in view are skipped."""
    policy, limits, left = c.policy.compact, c.limits, room
    still = {block.text for item in kept for block in item.blocks if isinstance(block, Text)}
    while texts:
        kind = next(iter(texts))
        group = texts.pop(kind)
        most = left - _reserved(c, texts)
        most = min(most, limits.scaled(policy.skills_tokens)) if kind == "skill" else most
        made = texts_back(group, each=limits.scaled(policy.skill_tokens), total=most, tokens=lambda words: tokens_of(c, words))
        for one in made.back:
            if one.text not in still:
                left -= size_of(c, chain.add(one.kind, (text(one.text),)).blocks)
        chain.skipped += [NotRestored(*one) for one in made.skipped]


def _by_kind(c: Conversation) -> dict[str, list[RestoredText]]:
    found: dict[str, list[RestoredText]] = {kind: [] for kind in ORDER}
    if c.host.todos is not None and (todos := call_host(c, "todos", c.host.todos, None)):
        found["todos"].append(RestoredText("todos", "", todos, TODOS))
    for one in _given(c):
        found.setdefault(one.kind, []).append(one)
    # The host registers skills newest last, but they are selected newest first.
    found["skill"].reverse()
    return found


def invoked_skills(items: Sequence[Item]) -> list[RestoredText]:
    """Return the skills that were invoked in these items, newest first, each once.

    The text of a skill is the result of its call, or, in Claude Code, the message that a program inserted after the result. Skills that an
    earlier compaction restored come last, in their order."""
    found: dict[str, str] = {}
    carried: dict[str, str] = {}
    names: dict[str, str] = {}
    latest = ""  # the skill whose result came last
    for item in items:
        for block in item.blocks:
            match block:
                case ToolUse(name="Skill", input=Mapping() as given):
                    names[block.id] = str(given.get("skill") or given.get("command") or "")
                    continue
                case ToolResult():
                    latest = "" if block.is_error else names.get(block.tool_use_id, "")
                    key, words = latest, block.text
                case Text() if (restored := _RESTORED_SKILL.fullmatch(block.text)) is not None:
                    carried[restored["key"]] = restored["text"]
                    continue
                case Text():
                    key, words = _skill_in(block.text, item.kind, latest)
                case _:
                    continue
            if key and words:
                found.pop(key, None)
                found[key] = words
    newest_first = {**dict(reversed(found.items())), **{key: words for key, words in carried.items() if key not in found}}
    return [RestoredText("skill", key, words) for key, words in newest_first.items()]


def _skill_in(words: str, kind: str, latest: str) -> tuple[str, str]:
    """Return the name and the text of the skill in a message; both are empty if there is none. `latest` was invoked last."""
    if kind == "attachment:invoked_skills":
        return "invoked earlier", words
    named = _SKILL_DIRECTORY.match(words) if kind == "meta" else None
    if named is None:
        return "", ""
    return latest if latest.endswith(named["key"]) else named["key"], words


def _given(c: Conversation) -> Iterator[RestoredText]:
    nothing: Sequence[Restorable] = ()
    for (kind, key), source in c.restorables.items():
        words = source if isinstance(source, str) else call_host(c, f"restorable {kind} {key}", source, None)
        if words:
            yield RestoredText(kind, key, words)
    if c.host.restorable is not None:
        yield from (RestoredText(*one) for one in call_host(c, "restorable", c.host.restorable, nothing))


def said_by(c: Conversation, name: str, hook: Callable[[], HookOutcome]) -> Iterator[str]:
    """Run the user's hooks of this name. Their messages to the user become notices; their context for the model is yielded."""
    outcome = call_host(c, name, hook, HookOutcome())
    c.notify(*outcome.messages, *outcome.faults)
    for words in outcome.context:
        yield reminder([Fenced("From a hook that the user configured:"), escape(words)])
