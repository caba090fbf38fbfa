"""Daily logs become memories without a model (W2, O1): each bullet that no memory says yet. Pure.

It understands nothing. A bullet that reads like a rule, a preference or a date becomes a memory of its own, in the words it was noted
in, by the rules that also serve "Remember: …"; what is plainly none to keep (code, a path, the task of the moment) is passed over, and
so is what a memory says already. One that says otherwise what can have but one value takes the place of the old sentence, with the reason
that was given for it; all else the memory says stays. The same logs and memories give the same files, and logs that were dealt with give
none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple

from msgspec.structs import replace

from ...core.terms import terms
from ...memory.store.topic import Topic, read_topic, write_topic
from ...providers.offline.memory_note import Note, named, no_memory, noted
from ...providers.offline.remember_command import alike
from ...providers.offline.replacement import says_instead
from .facts import facts_of, is_said
from .tidy import Page

# What one day's log adds at most: a day of more is a day of chatter.
NEW_A_LOG = 10
_BULLET = re.compile(r"^- \d\d:\d\d (?P<words>\S.*)$", re.MULTILINE)
# A sentence of its own: up to its full stop, or to the end of its line.
_SENTENCE = re.compile(r"[^\s.!?。！？][^\n]*?(?:[.!?](?=\s|$)|[。！？]|(?=\n|$))")
_OF_THE_OLD = re.compile(r"^(?:\*\*Why:\*\*|Said on \d).*\n*", re.MULTILINE)


class Log(NamedTuple):
    day: date
    text: str


class _Known(NamedTuple):
    """A memory, its text, and the day on which it said so."""

    topic: Topic
    text: str
    day: date


def distilled(logs: Sequence[Log], pages: Sequence[Page]) -> dict[str, str]:
    """File → its text, new or changed. `pages` are all memories; of the logs the oldest speaks first, so the newest wins."""
    known = {page.file: _known(page.file, page.text, page.day) for page in pages}
    made = dict[str, str]()
    for day, note in _notes(logs):
        if len(made) >= NEW_A_LOG * len(logs) or any(_says(each.topic, note) for each in known.values()):
            continue
        old = next((each for each in known.values() if says_instead(note.rule, each.topic.description)), None)
        text = _replaced(note, old, day) if old is not None else None
        if old is not None and old.day > day:
            continue  # it was said otherwise since
        file = old.topic.file if old is not None and text is not None else _free(note.name, known)
        made[file] = text or note.file(name=file.removesuffix(".md"))
        known[file] = _known(file, made[file], day)
    return made


def _known(file: str, text: str, day: date) -> _Known:
    return _Known(read_topic(file, text, 0), text, day)


def _notes(logs: Sequence[Log]) -> Iterator[tuple[date, Note]]:
    for log in sorted(logs):
        for bullet in _BULLET.finditer(log.text):
            note = noted(bullet["words"], log.day.isoformat())
            if no_memory(bullet["words"]) is None and note.rule:
                yield log.day, note


def _says(topic: Topic, note: Note) -> bool:
    """Whether a memory says it: as it is, or in nearly the same words and with all that it names."""
    if all(is_said(fact, topic.body) for fact in facts_of(note.rule).each):
        return True
    same = alike(note.rule, topic.description) and not says_instead(note.rule, topic.description)
    return same and set(terms(note.rule)) <= set(terms(f"{topic.description} {topic.body}"))


def _replaced(note: Note, old: _Known, day: date) -> str | None:
    """The memory with the note in the place of the sentence it takes back; None where that is not to be found, or not to be read."""
    topic = old.topic
    there = next((found for found in _SENTENCE.finditer(topic.body) if says_instead(note.rule, found[0])), None)
    if topic.problems or old.day > day or there is None:
        return None
    fresh = read_topic(topic.file, note.file(), 0)
    rest = f"{topic.body[: there.start()]}{fresh.body.strip()}\n\n{_OF_THE_OLD.sub('', topic.body[there.end() :]).strip()}"
    body = f"{rest.strip()}\n"
    return write_topic(replace(topic, name=_name(note, topic), description=fresh.description, body=body), before=old.text)


def _name(note: Note, old: Topic) -> str:
    """A name that was made of the old sentence would contradict the new one."""
    return note.name if old.name == named(old.description) else old.name


def _free(name: str, known: Mapping[str, object]) -> str:
    taken = {file.casefold() for file in known}
    names = (f"{name}{suffix}.md" for suffix in ("", *(f"-{number}" for number in range(2, len(taken) + 3))))
    return next(file for file in names if file.casefold() not in taken)
