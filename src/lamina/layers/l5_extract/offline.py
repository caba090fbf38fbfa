"""The review without a model: obvious sentences become memories, through the tool calls a model would make.

A pure function of the request. It reads first, then writes everything, then answers; the calls after the directive show how far it has
come. A user's sentence counts if it holds beyond the current task (signals.py). In doubt nothing is kept, and what memory excludes in
general is excluded here too. A memory with the same meaning is left alone, also if its wording differs; one that contradicts or says less
is read and replaced.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ...core.blocks import Wire
from ...core.claude_home import new_memory_file
from ...core.fence import escape
from ...core.settings.kinds import printable
from ...fork.offline_run import run_so_far, texts_of, tool_call
from ...language.dates import COMPUTED
from ...language.detection import labels_for
from ...language.memory_requests import asks_to_remember, to_remember
from ...language.terms import terms
from ...providers.offline.back_references import says_nothing
from ...providers.offline.memory_note import Note, items, named, no_memory, note_of, noted, with_dates
from ...providers.offline.remember_command import alike, text_of
from ...providers.offline.sentence_rules import says_instead
from ...providers.offline.turn_context import Done, title
from .answer import CLOSING, OPENING
from .phrases import APPROVED, DID, FRAME, NEGATIVE, SAME
from .plan import FIRST_CHARS, ExtractDirective, read_directive
from .signals import FoundSignal, find_signals
from .trigger import EXTRACTION

# The private directory of a review that names no directories, and how its directive names the team's.
HERE = "memory"
TEAM_FILES = "begin with `team/`"

# A turn contains one or two things worth keeping. To save more at once, users write "Remember: …".
MOST = 4
# The first sentence of an approved answer tells what was done. Shorter ones are empty, longer ones say too much.
ANSWER_CHARS = (15, 300)

_LINE = re.compile(r"^- \[(?P<type>\w+)\] (?P<file>.+?\.md) \(\d{4}-[\d:TZ.+-]+\): (?P<about>.*)$", re.MULTILINE)
_SHOWN = re.compile(r"^(?P<file>\S.*\.md):\n<recalled-memory>\n(?P<text>.*?)\n</recalled-memory>$", re.MULTILINE | re.DOTALL)
_NOT_SAID = ("<system-reminder>", "<fork ")
_BEGINS = re.compile(r'^- New since .*? begins with "(?P<first>.*)", and what was answered to', re.MULTILINE)
_ISO = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_FIRST = re.compile(r"^[^\n]*?(?:[.!?](?=\s|$)|[。！？]|$)", re.MULTILINE)


class UserText(NamedTuple):
    words: str
    before: str  # the answer it replies to


class ListedMemory(NamedTuple):
    type: str
    about: str


class PlannedMemory(NamedTuple):
    """A memory to write: its path, and whether it replaces a file."""

    path: str
    note: Note
    there: bool = False


def answer(request: Wire) -> list[Wire]:
    run = run_so_far(request)
    asked, begins = read_directive(run.directive), _BEGINS.search(run.directive)
    alone = OPENING in run.directive  # one answer, without file tools
    if alone:
        asked = asked._replace(memory=HERE, team="team" if TEAM_FILES in run.directive else "")
    texts = user_texts(request["messages"][: run.at + 1], asked.messages, begins["first"] if begins else "")
    plans = plan_memories(asked, texts, requests=alone)
    if alone:
        shown = {found["file"]: found["text"] for found in _SHOWN.finditer(run.directive)}
        return [{"type": "text", "text": _listed(plans, shown)}]
    if reads := [plan for plan in plans if plan.there and plan.path not in run.read]:
        return [tool_call(EXTRACTION, "Read", number, file_path=plan.path) for number, plan in enumerate(reads)]
    if writes := [plan for plan in plans if plan.path not in run.wrote]:
        return [
            tool_call(
                EXTRACTION, "Write", number, file_path=plan.path, content=text_of(plan.note, plan.path, run.read.get(plan.path))
            )
            for number, plan in enumerate(writes)
        ]
    return [{"type": "text", "text": "Saved." if run.wrote else "There is nothing to keep."}]


def _listed(plans: Sequence[PlannedMemory], shown: Mapping[str, str]) -> str:
    rows: list[Wire] = []
    for plan in plans:
        file = plan.path.removeprefix(f"{HERE}/")
        if plan.there and file not in shown:
            continue  # what cannot be seen is not replaced
        read = Done("Read", {}, shown[file], False) if plan.there else None
        body = text_of(plan.note, plan.path, read).partition("\n---\n")[2].strip()
        about = plan.note.description
        rows.append({"file": file, "type": plan.note.type, "description": about, "body": body})
    return f"{OPENING}\n{json.dumps(rows, ensure_ascii=False)}\n{CLOSING}"


def user_texts(messages: Sequence[Wire], count: int, first: str = "") -> list[UserText]:
    """Return the user's texts in the range, each with the answer before it.

    A message may contain several texts, and messages with no answer between them arrive as one. The range starts at the text that begins
    with `first`. If no text does, it consists of the last `count` messages."""
    found: list[list[UserText]] = []
    before = ""
    for message in messages:
        texts = list(texts_of(message))
        if message["role"] == "assistant":
            before = "\n".join(texts) or before
        elif own := [UserText(text, before) for text in texts if not text.startswith(_NOT_SAID)]:
            found.append(own)
    if not count:
        return []
    tails = [(number, own[at:]) for number, own in enumerate(found) for at in range(len(own))]
    for number, tail in reversed(tails):
        rest = [*tail, *(text for own in found[number + 1 :] for text in own)]
        if first and len(rest) >= count and _begins_with(tail, first):
            return rest
    return [text for own in found[-count:] for text in own]


def _begins_with(texts: Sequence[UserText], first: str) -> bool:
    words = "\n".join(text.words for text in texts).strip()
    return escape(printable(words, FIRST_CHARS)).startswith(first.removesuffix("…"))


def plan_memories(asked: ExtractDirective, texts: Sequence[UserText], *, requests: bool = False) -> list[PlannedMemory]:
    """Plan what to write. `requests`: also what the user asked to remember, if the model could not save it in the turn."""
    known = {_path(asked, row["file"]): ListedMemory(row["type"], row["about"]) for row in _LINE.finditer(asked.listed)}
    plans: dict[str, PlannedMemory] = {}
    for text in texts:
        for note in (*_find_notes(text, asked.today), *(_find_requests(text, asked.today) if requests else ())):
            plan = _place(asked, note, known, plans)
            if plan is not None and (len(plans) < MOST or plan.path in plans):
                plans[plan.path] = plan
    return list(plans.values())


def _find_notes(text: UserText, today: str) -> Iterator[Note]:
    for found in find_signals(text.words):
        if (note := _make_note(found, text.before, today)) is not None and not says_nothing(note.rule):
            yield note


def _find_requests(text: UserText, today: str) -> Iterator[Note]:
    words = text.words.strip()
    wanted = items(to_remember(words)) if asks_to_remember(words) else []
    yield from (noted(item, today) for item in wanted if item and no_memory(item) is None)


def _make_note(found: FoundSignal, before: str, today: str) -> Note | None:
    if found.signal == "confirmation":
        note = _approved_note(found.parts.rule, before, today)
        return note._replace(why=with_dates(found.parts.why, today)) if note is not None else None
    plan = found.signal == "project"
    if plan and (days := _ISO.findall(found.parts.rule)) and max(days) < today:
        return None  # the deadline has passed
    return note_of(found.parts, today, plan=plan)._replace(type=found.signal)


def _approved_note(sentence: str, before: str, today: str) -> Note | None:
    if (right := APPROVED.search(sentence)) is not None:  # it names what was right
        return noted(right["what"], today)._replace(type="feedback", rule=right["what"])
    first = _FIRST.match(before.strip())
    what = first[0].strip() if first else ""
    if not ANSWER_CHARS[0] <= len(what) <= ANSWER_CHARS[1] or DID.search(what) is None:
        return None  # approved, but it is unclear what
    return Note(named(what), "feedback", labels_for(what).keep.format(what=what))


def _place(
    asked: ExtractDirective, note: Note, known: Mapping[str, ListedMemory], plans: Mapping[str, PlannedMemory]
) -> PlannedMemory | None:
    """Decide where the note goes. None if a memory has the same meaning already, or if no name is free."""
    for path, plan in plans.items():
        there = ListedMemory(plan.note.type, plan.note.rule)
        if _replaces(note, there):
            return plan._replace(note=note._replace(name=title(path)))
        if _is_covered(note, there):
            return None
    for path, there in known.items():
        if _replaces(note, there):
            return PlannedMemory(path, note, there=True)
        if _is_covered(note, there):
            return None
    directory = asked.team if asked.team and note.type in ("project", "reference") else asked.memory
    if not directory:
        return None
    names = (new_memory_file(directory, f"{note.name}{suffix}.md", note.type) for suffix in ("", "-2", "-3"))
    free = next((path for name in names if (path := f"{directory}/{name}") not in known and path not in plans), None)
    return PlannedMemory(free, note._replace(name=title(free))) if free is not None else None


def _replaces(note: Note, there: ListedMemory) -> bool:
    """Whether the note replaces the memory: it has another value, or the same wish in more detail."""
    note = _like(note, there)
    if says_instead(note.rule, there.about):
        return True
    mine, theirs = _wish_terms(note, there)
    return len(theirs) > 1 and theirs < mine


def _is_covered(note: Note, there: ListedMemory) -> bool:
    note = _like(note, there)
    mine, theirs = _wish_terms(note, there)
    return alike(note.rule, there.about) or (bool(mine) and mine == theirs) or (len(mine) > 1 and mine < theirs)


def _like(note: Note, there: ListedMemory) -> Note:
    """Return the note without computed dates if the memory has none, so that both are compared by their words."""
    return note if _ISO.search(there.about) else note._replace(rule=COMPUTED.sub("", note.rule))


def _wish_terms(note: Note, there: ListedMemory) -> tuple[frozenset[str], frozenset[str]]:
    """Return what the two wishes ask for, without the phrasing; empty if one is not a wish, or if only one of them is negative."""
    both = note.type == there.type == "feedback"
    if not both or bool(NEGATIVE.search(note.rule)) != bool(NEGATIVE.search(there.about)):
        return frozenset(), frozenset()
    return _core_terms(note.rule), _core_terms(there.about)


def _core_terms(rule: str) -> frozenset[str]:
    for pattern, word in SAME:
        rule = pattern.sub(word, rule)
    return frozenset(terms(rule)) - FRAME


def _path(asked: ExtractDirective, file: str) -> str:
    return f"{asked.team}/{file.removeprefix('team/')}" if asked.team and file.startswith("team/") else f"{asked.memory}/{file}"
