"""The dream without a model: rules tidy memories and distil daily logs, through the tool calls a model would make.

A pure function of the request. It reads the index, the memories and the pending daily logs, writes the output of `tidy_pages` and
`distil_logs`, then the index, and then reports. The calls after the directive show how far it has come. A file that was not shown
completely is left alone.

A log line that looks like a rule, a preference or a date becomes its own memory in its original words, by the same rules as
"Remember: …". Lines not worth keeping (code, a path, the current task) and lines that a memory already covers are skipped. A line with
a new value for something that has only one value replaces the old sentence, together with its reason; the rest of the memory stays. The
same logs and memories give the same files, and logs that were already processed give none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from msgspec.structs import replace

from ...core.blocks import Wire
from ...core.claude_home import new_memory_file
from ...fork.offline_run import run_so_far, tool_call
from ...language.detection import ON, WHY
from ...language.excluded_kinds import no_memory
from ...language.terms import terms
from ...language.wording import counted, plural
from ...memory.guard.facts import facts_of, is_said
from ...memory.store.daily_logs import log_day
from ...memory.store.topic import INDEX, Topic, read_topic, write_topic
from ...providers.offline.memory_note import Note, named, noted
from ...providers.offline.remember_command import alike
from ...providers.offline.sentence_rules import says_instead
from ...providers.offline.turn_context import Done, title
from .bounds import MOST_FILES
from .directive import DreamDirective, read_directive
from .plan import NEW_A_LOG
from .tidy import MemoryPage, Tidied, tidy_pages
from .trigger import DREAM

# Index lines in a report: enough to see where to look.
MOST_QUOTED = 3
# Reads in one answer: enough for all memories of most projects.
READS = 60
NOTHING = "Memory is in order; nothing was changed. (These are rules, not a language model.)"
_LOG_FILE = re.compile(r"logs/\d{4}/\d\d/[\d-]{10}\.md$")
_ROW = re.compile(r"^\s*\d+\t", re.MULTILINE)
_BULLET = re.compile(r"^- \d\d:\d\d (?P<words>\S.*)$", re.MULTILINE)
# A sentence: up to its full stop, or to the end of its line.
_SENTENCE = re.compile(r"[^\s.!?。！？][^\n]*?(?:[.!?](?=\s|$)|[。！？]|(?=\n|$))")
_OF_THE_OLD = re.compile(rf"(?:{WHY.pattern}|{ON.pattern}).*\n*", re.MULTILINE)


class DailyLog(NamedTuple):
    day: date
    text: str


class _DatedTopic(NamedTuple):
    """A memory, its text, and the day it was written."""

    topic: Topic
    text: str
    day: date


def distil_logs(logs: Sequence[DailyLog], pages: Sequence[MemoryPage], directory: str = "") -> dict[str, str]:
    """Return the new or changed files of `directory` with their texts. `pages` are all memories. Logs apply oldest first:
    the newest wins."""
    memories = {page.file: _date_topic(page.file, page.text, page.day) for page in pages}
    texts = dict[str, str]()
    for day, note in _read_notes(logs):
        if len(texts) >= NEW_A_LOG * len(logs) or any(_covers(memory.topic, note) for memory in memories.values()):
            continue
        old = next((memory for memory in memories.values() if says_instead(note.rule, memory.topic.description)), None)
        text = _replace_sentence(note, old, day) if old is not None else None
        if old is not None and old.day > day:
            continue  # superseded since
        file = old.topic.file if old is not None and text is not None else _free_file(note, memories, directory)
        texts[file] = text or note.file(name=title(file))
        memories[file] = _date_topic(file, texts[file], day)
    return texts


def _date_topic(file: str, text: str, day: date) -> _DatedTopic:
    return _DatedTopic(read_topic(file, text, 0), text, day)


def _read_notes(logs: Sequence[DailyLog]) -> Iterator[tuple[date, Note]]:
    for log in sorted(logs):
        for bullet in _BULLET.finditer(log.text):
            note = noted(bullet["words"], log.day.isoformat())
            if no_memory(bullet["words"]) is None and note.rule:
                yield log.day, note


def _covers(topic: Topic, note: Note) -> bool:
    """Whether a memory already covers the note: literally, or in nearly the same words and with every name in it."""
    if all(is_said(fact, topic.body) for fact in facts_of(note.rule).each):
        return True
    same = alike(note.rule, topic.description) and not says_instead(note.rule, topic.description)
    return same and set(terms(note.rule)) <= set(terms(f"{topic.description} {topic.body}"))


def _replace_sentence(note: Note, old: _DatedTopic, day: date) -> str | None:
    """Return the memory with the note in place of the sentence it replaces. None if there is no such sentence or it cannot be parsed."""
    topic = old.topic
    sentence = next((match for match in _SENTENCE.finditer(topic.body) if says_instead(note.rule, match[0])), None)
    if topic.problems or old.day > day or sentence is None:
        return None
    fresh = read_topic(topic.file, note.file(), 0)
    before, after = topic.body[: sentence.start()], _OF_THE_OLD.sub("", topic.body[sentence.end() :])
    body = f"{before}{fresh.body.strip()}\n\n{after.strip()}".strip() + "\n"
    # A name derived from the old sentence would contradict the new one.
    name = note.name if topic.name == named(topic.description) else topic.name
    return write_topic(replace(topic, name=name, description=fresh.description, body=body), before=old.text)


def _free_file(note: Note, memories: Mapping[str, object], directory: str) -> str:
    existing = {file.casefold() for file in memories}
    names = (f"{note.name}{suffix}.md" for suffix in ("", *(f"-{number}" for number in range(2, len(existing) + 3))))
    files = (new_memory_file(directory, name, note.type) for name in names)
    return next(file for file in files if file.casefold() not in existing)


def answer(request: Wire) -> list[Wire]:
    run = run_so_far(request)
    directive = read_directive(run.directive)
    wanted = [f"{directive.work}/{file}" for file in (INDEX, *directive.listed)] if directive.work else []
    wanted += directive.logs
    if unread := [path for path in wanted if path not in run.read]:
        return [tool_call(DREAM, "Read", number + len(run.read), file_path=path) for number, path in enumerate(unread[:READS])]
    texts = {file: _complete_text(run.read.get(f"{directive.work}/{file}")) for file in directive.listed}
    pages = [
        MemoryPage(file, text, date.fromisoformat(directive.listed[file])) for file, text in texts.items() if text is not None
    ]
    index_read = run.read.get(f"{directive.work}/{INDEX}")
    index = _complete_text(index_read)
    # Unlisted files may exist too: only a complete list shows that a file is gone.
    change = tidy_pages(pages, index or "", lambda file: file in directive.listed or directive.more)
    new = _distil(directive, pages, run.read, change)
    writes = {f"{directive.work}/{file}": text for file, text in {**change.texts, **new}.items()}
    if change.index is not None and (index is not None or index_read is None or index_read.failed):
        writes[f"{directive.work}/{INDEX}"] = change.index
    if unwritten := [path for path in writes if path not in run.wrote][: MOST_FILES - len(run.wrote)]:
        return [tool_call(DREAM, "Write", number, file_path=path, content=writes[path]) for number, path in enumerate(unwritten)]
    return [{"type": "text", "text": _describe(change, len(new)) if run.wrote else NOTHING}]


def _distil(directive: DreamDirective, pages: Sequence[MemoryPage], read: Mapping[str, Done], change: Tidied) -> dict[str, str]:
    """Return memories for what the daily logs say and no memory does; nothing if some memories were not read. The memories are the
    tidied ones: a log is processed once, so what it says about one of them must not be postponed."""
    if directive.more or len(pages) < len(directive.listed):
        return {}
    texts = {path: _complete_text(read.get(path)) for path in directive.logs}
    now = [page._replace(text=change.texts.get(page.file, page.text)) for page in pages]
    logs = [
        DailyLog(day, text)
        for path, text in texts.items()
        if text and (file := _LOG_FILE.search(path)) and (day := log_day(file[0]))
    ]
    return distil_logs(logs, [page for page in now if page.text], directive.work)


def _complete_text(read: Done | None) -> str | None:
    """Return a file as Read showed it, or None if it showed only a part."""
    if read is None or read.failed:
        return None
    lines = read.said.split("\n")
    if not all(_ROW.match(line) for line in lines):
        return None
    return "".join(f"{_ROW.sub('', line, count=1)}\n" for line in lines)


def _describe(change: Tidied, new: int) -> str:
    parts = (
        (new, "memory", "made from daily logs"),
        (change.merged, "memory", "merged"),
        (change.dated, "relative date", "made absolute"),
        (change.lines, "index line", "repaired"),
    )
    changes = ", ".join(f"{count:,} {plural(count, noun)} {verb}" for count, noun, verb in parts if count)
    quoted = ", ".join(repr(line) for line in change.faulty[:MOST_QUOTED])
    faulty = f" {counted(len(change.faulty), 'index line')} could not be repaired: {quoted}." if quoted else ""
    return f"Memory was tidied by rules ({changes or 'its index'}).{faulty}"
