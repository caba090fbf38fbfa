"""Gathers the context shown again after a compaction: instructions, pins, files, and texts of the host.

Each restored text is an attachment record that belongs to the compaction, so an undo removes it again. Files are read afresh from
disk. Files that cannot be read or do not fit are reported and left out; neither stops a compaction.

`files_back` and `texts_back` select what fits; they are pure. Each restored text is a separate reminder. Everything that is not
restored, or only in part, gets a reason, which is recorded as an event. A text is cut at a line end, or inside a line that alone
exceeds the budget.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
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
from .user_messages import LEAST_CHARACTERS, Tokens, most_fitting, shortened, words_of

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


def size_of(c: Conversation, blocks: Iterable[Block]) -> int:
    return estimate(measure_all(blocks, c.memo), c.count.calibration)


def size_of_items(c: Conversation, items: Iterable[Item | Attachment]) -> int:
    return size_of(c, (block for item in items for block in item.blocks))


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
    room: int,
    fresh: bool = True,
) -> Restoration:
    """Return the context to restore after a compaction. Instructions and pins are restored even if the room is too small.

    With `fresh`, instruction files are read again.
    """
    chain = _Chain(c, by, parent)
    kept_ids = {item.uuid for item in kept}
    gone = [item for item in items if item.uuid not in kept_ids]
    _instructions(c, chain, gone, kept, fresh=fresh)
    cut = _pins(c, chain, gone, kept_ids)
    room -= size_of_items(c, chain.records)
    if most := c.limits.scaled(c.policy.compact.restored_tokens):
        room = min(room, most)
    texts = _by_kind(c)
    # Skills that the host registers come first, since it knows them best.
    registered = {skill.key for skill in texts["skill"]}
    texts["skill"] += [skill for skill in invoked_skills(gone) if skill.key not in registered]
    _files(c, chain, kept, max(0, room - _reserved(c, texts)))
    _from_host(c, chain, kept, max(0, room - size_of_items(c, chain.restored)), texts)
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
            record = chain.add(INSTRUCTIONS, blocks)
            chain.elsewhere |= {item.uuid: Told("folded", record.uuid) for item in old}
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
            excerpt = shortened(words, cut[pin.uuid], partial(tokens_of, c), least=LEAST_CHARACTERS)
            head = PINNED_EXPAND.format(pin=pin.uuid) if c.prompt.reach.expand else PINNED_CUT
            chain.add(f"{PIN}{pin.uuid}", (text(_pinned(excerpt, head)),), replaces)
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


def _files(c: Conversation, chain: _Chain, kept: Sequence[Item], room: int) -> None:
    policy, limits = c.policy.compact, c.limits
    if c.host.reads is None:
        return
    own = [str(path) for path in (c.store.path, c.directory) if path is not None]
    # A plan that is a file is restored as the plan.
    own += [os.path.realpath(key) for kind, key in c.restorables if kind == "plan" and os.path.isabs(key)]
    # The text of a file is still in view if the call that read it is kept.
    blocks = (block for item in kept for block in item.blocks)
    calls = (block for block in blocks if isinstance(block, ToolUse) and block.name in ("Read", c.host.read_tool))
    still = {os.path.realpath(c.cwd / path) for call in calls if (path := path_in(call.input)) is not None}
    # Fetch more files than needed, because some are restored in another way.
    recent = [file for file in c.host.reads.recent(policy.files * 4) if not is_ours(file.path, own) and file.path not in still]
    contents = {file.path: _found(file) for file in recent[: policy.files]}
    restored = files_back(
        contents.values(),
        each=limits.scaled(policy.file_tokens),
        total=min(limits.scaled(policy.files_tokens), room),
        tokens=partial(tokens_of, c),
    )
    for file in restored.back:
        chain.restored.append(chain.add("file", (text(file.text),), facts=_facts(contents[file.key], len(file.text))))
    chain.files += [file.key for file in restored.back]
    chain.skipped += [NotRestored(*file) for file in restored.skipped]


def _facts(source: FoundFile, most: int) -> Wire:
    """Return the fields without which Claude Code leaves out a restored file. `most` is the number of characters that are shown."""
    content = (source.text or "")[:most]
    count = len(content.splitlines())
    file = {
        "filePath": source.path,
        "content": content,
        "numLines": count,
        "startLine": source.first,
        "totalLines": count,
    }
    return {
        "filename": source.path,
        "displayPath": os.path.basename(source.path),
        "content": {"type": "text", "file": file},
    }


def _found(source: ReadFile) -> FoundFile:
    if source.seen.media_type:
        return FoundFile(source.path, None, why="it is an image")
    try:
        with reporting(source.path), open_regular(source.path) as file:
            data = file.read(MAX_FILE)
    except DiskError as error:
        missing = isinstance(error.__cause__, FileNotFoundError)
        return FoundFile(source.path, None, why="it no longer exists" if missing else str(error))
    if b"\0" in data:
        return FoundFile(source.path, None, why="it is no longer a text file")
    first = max(1, source.seen.offset)
    lines = data.decode("utf-8", "replace").splitlines()[first - 1 :]
    return FoundFile(source.path, "\n".join(lines[: source.seen.limit] if source.seen.limit else lines), first)


def _reserved(c: Conversation, texts: Mapping[str, Sequence[RestoredText]]) -> int:
    return reserve_whole((item for group in texts.values() for item in group), partial(tokens_of, c))


def _from_host(c: Conversation, chain: _Chain, kept: Sequence[Item], room: int, texts: dict[str, list[RestoredText]]) -> None:
    """Restore the host's texts, kind by kind in a fixed order. Texts that are still in view are skipped."""
    policy, limits = c.policy.compact, c.limits
    still = {block.text for item in kept for block in item.blocks if isinstance(block, Text)}
    while texts:
        kind = next(iter(texts))
        group = texts.pop(kind)
        most = room - _reserved(c, texts)
        most = min(most, limits.scaled(policy.skills_tokens)) if kind == "skill" else most
        restored = texts_back(group, each=limits.scaled(policy.skill_tokens), total=most, tokens=partial(tokens_of, c))
        for restorable in restored.back:
            if restorable.text not in still:
                room -= size_of(c, chain.add(restorable.kind, (text(restorable.text),)).blocks)
        chain.skipped += [NotRestored(*restorable) for restorable in restored.skipped]


def _by_kind(c: Conversation) -> dict[str, list[RestoredText]]:
    texts: dict[str, list[RestoredText]] = {kind: [] for kind in ORDER}
    if c.host.todos is not None and (todos := call_host(c, "todos", c.host.todos, None)):
        texts["todos"].append(RestoredText("todos", "", todos, TODOS))
    for item in _given(c):
        texts.setdefault(item.kind, []).append(item)
    # The host registers skills newest last, but they are selected newest first.
    texts["skill"].reverse()
    return texts


def invoked_skills(items: Sequence[Item]) -> list[RestoredText]:
    """Return the skills that were invoked in these items, newest first, each once.

    The text of a skill is the result of its call, or, in Claude Code, the message that a program inserted after the result. Skills that an
    earlier compaction restored come last, in their order."""
    skills: dict[str, str] = {}
    carried: dict[str, str] = {}
    names: dict[str, str] = {}
    latest = ""  # the skill whose result came last
    for item in items:
        for block in item.blocks:
            match block:
                case ToolUse(name="Skill", input=Mapping() as arguments):
                    names[block.id] = str(arguments.get("skill") or arguments.get("command") or "")
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
                skills.pop(key, None)
                skills[key] = words
    newest_first = {**dict(reversed(skills.items())), **{key: words for key, words in carried.items() if key not in skills}}
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
        yield from (RestoredText(*item) for item in call_host(c, "restorable", c.host.restorable, nothing))


def said_by(c: Conversation, name: str, hook: Callable[[], HookOutcome]) -> Iterator[str]:
    """Run the user's hooks of this name. Their messages to the user become notices; their context for the model is yielded."""
    outcome = call_host(c, name, hook, HookOutcome())
    c.notify(*outcome.messages, *outcome.faults)
    for words in outcome.context:
        yield reminder([Fenced("From a hook that the user configured:"), escape(words)])


# Instruction files are restored with their reminder, not as files.
INSTRUCTION_FILES = ("CLAUDE.md", "AGENTS.md", "CLAUDE.local.md", "AGENTS.local.md", "MEMORY.md")
CUT = "[Cut after line {last:,}. The rest is in the file, from line {next} on.]"
CUT_IN_LINE = "[Cut inside line {line:,}. The rest is in the file.]"
CUT_TEXT = "[Cut here: {shown:,} of {whole:,} characters are shown.]"
# Kinds that are cut only if they alone exceed all the room: half a plan is worse than none of the files.
WHOLE_KINDS = ("plan", "todos")
# No text has more characters per token than this; only runs of spaces come close.
MOST_PER_TOKEN = 16
# Tokens of the frame around a restored text, with a key of ordinary length.
FRAME = 60


class FoundFile(NamedTuple):
    """The current content of a file that was read before. If it cannot be restored, `text` is None and `why` gives the reason."""

    path: str
    text: str | None
    first: int = 1  # number of the first line of `text`
    why: str = ""


class RestoredText(NamedTuple):
    kind: str
    key: str
    text: str
    head: str = ""  # the heading; if empty, one that names the kind and the key


class RestoredTexts(NamedTuple):
    back: tuple[RestoredText, ...]
    skipped: tuple[tuple[str, str], ...]  # key, why


def is_ours(path: str, own: Sequence[str]) -> bool:
    """Return whether a file must not be restored as a file: instruction files and the session's own files."""
    inside = any(path == place or path.startswith(place.rstrip("/") + os.sep) for place in own)
    return inside or os.path.basename(path) in INSTRUCTION_FILES


def files_back(files: Iterable[FoundFile], *, each: int, total: int, tokens: Tokens) -> RestoredTexts:
    """Return the files that fit, newest first. The first one that exceeds the total budget ends the list."""
    back: list[RestoredText] = []
    skipped: list[tuple[str, str]] = []
    room = total
    full = False
    for file in files:
        if file.text is None:
            skipped.append((file.path, file.why))
            continue
        excerpt, why = _file(file, each, tokens)
        if full or tokens(excerpt) > room:
            full = True
            skipped.append((file.path, "the budget for restored files is used up"))
            continue
        room -= tokens(excerpt)
        back.append(RestoredText("file", file.path, excerpt))
        if why:
            skipped.append((file.path, why))
    return RestoredTexts(tuple(back), tuple(skipped))


def _file(file: FoundFile, each: int, tokens: Tokens) -> tuple[str, str]:
    """Return the reminder of a file, and what to report about it: a line too long to be shown in full."""
    head = Fenced(f"{escape(file.path)} was read before the compaction. This is its current content:")
    lines = [f"{number}\t{line}" for number, line in enumerate((file.text or "").splitlines(), file.first)]
    budget = each - tokens(head)
    count, why = _fitting(lines, budget, tokens), ""
    if count < len(lines):
        last = file.first + count - 1
        note = CUT.format(last=last, next=last + 1)
        if not count:
            whole, lines = len(lines[0]), [_beginning(lines[0], budget, tokens)]
            count, note = 1, CUT_IN_LINE.format(line=file.first)
            why = f"cut inside line {file.first:,}, which has {whole:,} characters"
        lines = [*lines[:count], note]
    return reminder([head, escape("\n".join(lines) or "(The file is empty.)")]), why


def _beginning(text: str, budget: int, tokens: Tokens) -> str:
    """Return as much of the beginning of a text as fits."""
    most = min(len(text), max(0, budget) * MOST_PER_TOKEN)
    return text[: most_fitting(most, lambda length: tokens(text[:length]) <= budget)]


def _fitting(lines: Sequence[str], budget: int, tokens: Tokens) -> int:
    return most_fitting(len(lines), lambda count: tokens("\n".join(lines[:count])) <= budget)


def texts_back(given: Iterable[RestoredText], *, each: int, total: int, tokens: Tokens) -> RestoredTexts:
    """Return the host's texts that fit: skills, a plan, listings. A text longer than `each` is cut and marked.

    A plan and a to-do list are cut only to fit `total`."""
    back: list[RestoredText] = []
    skipped: list[tuple[str, str]] = []
    room = total
    for item in given:
        key = item.key or item.kind
        head = item.head or f"Restored after the compaction ({escape(item.kind)} {escape(item.key)}):"
        body, why = _cut(item.text, room - tokens(head) - FRAME if item.kind in WHOLE_KINDS else each, tokens)
        excerpt = reminder([Fenced(head), escape(body)])
        if tokens(excerpt) > room:
            skipped.append((key, f"the budget for {item.kind} is used up"))
            continue
        room -= tokens(excerpt)
        back.append(RestoredText(item.kind, item.key, excerpt))
        if why:
            skipped.append((key, why))
    return RestoredTexts(tuple(back), tuple(skipped))


def reserve_whole(given: Iterable[RestoredText], tokens: Tokens) -> int:
    """Return the tokens that the plan and the to-do list need, so that nothing else takes their room."""
    return sum(tokens(item.text) + tokens(item.key) + 2 * FRAME for item in given if item.kind in WHOLE_KINDS)


def _cut(text: str, budget: int, tokens: Tokens) -> tuple[str, str]:
    """Return a text within a budget, and what to report if it was cut."""
    if tokens(text) <= budget:
        return text, ""
    lines = text.splitlines(keepends=True)
    beginning = "".join(lines[: _fitting([line.rstrip("\n") for line in lines], budget, tokens)])
    # A line that alone takes most of the budget is cut inside, or too little would be shown.
    if tokens(beginning) * 2 < budget:
        beginning = _beginning(text, budget, tokens)
    mark = CUT_TEXT.format(shown=len(beginning), whole=len(text))
    return (
        f"{beginning}{'' if beginning.endswith(chr(10)) else chr(10)}{mark}",
        f"cut: {len(beginning):,} of {len(text):,} characters are shown",
    )
