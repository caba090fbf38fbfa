"""Remembering without a model: each thing a message asks to remember becomes a file, by the same calls a model would make.

A memory that says the same is read and updated, one that says otherwise is replaced, and a file that holds something else stays as it
is. How far the row of calls has come is read from the conversation behind the prompt. Pure.
"""

from __future__ import annotations

import re

from ...core.blocks import Wire
from ...core.memory_requests import to_remember
from ...core.terms import normal, terms
from .memory_note import ASK_BACK, MOST_NOTES, Note, items, named, no_memory, notes, with_dates
from .sentence_rules import says_instead
from .turn_context import FRONT, ONLY_HERE, Done, KnownMemory, TurnContext, body, call, content, field, say, title

# Two sentences that share this much of their words say the same thing.
SAME = 0.6

_LEFT_OUT = re.compile(r"A secret was (?:removed|left out) \([^)\n]*\)\.")
_WHY = re.compile(r"^\*\*Why:\*\*\s*(?P<why>.+)$", re.MULTILINE)


def remember(asked: TurnContext) -> list[Wire]:
    """The next step of "Remember: …": each thing it names is written to a file of its own, one after the other."""
    text = to_remember(asked.prompt)
    if not text:
        return say('What shall I remember? Say "Remember: …".')
    if all(no_memory(item) is not None for item in items(text)):
        return say(ASK_BACK.format(what=no_memory(items(text)[0])))
    if asked.directory is None or "Write" not in asked.tools:
        return say(
            ONLY_HERE.format(why="there is no memory to save it in" if asked.directory is None else "I have no Write tool")
        )
    if asked.log:
        return _into_log(asked)
    every, left, said = notes(asked.prompt, asked.today), list(asked.done), list[str]()
    taken = set[str]()
    for note in every[:MOST_NOTES]:
        if (what := no_memory(note.rule)) is not None and not note.why:
            said.append(f"{ASK_BACK.format(what=what)} ({note.description})")
            continue
        there = next((known for known in asked.known if known.path not in taken and _same(note, known)), None)
        step = _keep(asked, note, there, left)
        if not isinstance(step, str):
            return step
        taken.add(there.path if there is not None else f"{asked.directory}/{note.name}.md")
        said.append(step)
    if len(every) > MOST_NOTES:
        said.append(f"The other {len(every) - MOST_NOTES} are not saved: say them in a message of their own.")
    return say("\n".join(said))


def _into_log(asked: TurnContext) -> list[Wire]:
    """In assistant mode all of it goes into the log of the day, in one call."""
    kept = [item for item in items(to_remember(asked.prompt))[:MOST_NOTES] if no_memory(item) is None]
    if not asked.done:
        bullets = "".join(f"- {' '.join(with_dates(item, asked.today).split())}\n" for item in kept)
        return call(asked, "Write", {"file_path": asked.log, "content": bullets})
    if asked.done[0].failed:
        return say(f"That is not saved: {asked.done[0].said}")
    left_out = _LEFT_OUT.search(asked.done[0].said)
    if left_out is not None:
        return say(f"I noted what I may of that in today's log. {left_out[0]}")
    return say("\n".join(f"I noted that in today's log: {item}" for item in kept))


def _keep(asked: TurnContext, note: Note, there: KnownMemory | None, left: list[Done]) -> list[Wire] | str:
    """The next call for one note, or what came of it; `left` are the calls behind the prompt that are not accounted for.

    A file that turns out to hold something else stays as it is: the note gets the next name."""
    first = [there.path] if there is not None else []
    own = [f"{asked.directory}/{note.name}{suffix}.md" for suffix in ("", "-2", "-3", "-4")]
    listed = {known.path for known in asked.known}
    for path in dict.fromkeys(first + own):
        unread = path in listed
        for _ in range(2):
            read: Done | None = None
            if unread and "Read" in asked.tools:
                if not left:
                    return call(asked, "Read", {"file_path": path})
                read = left.pop(0)
                if not (read.failed or _says_so(note, there, path) or _about_the_same(note, content(read.said))):
                    break  # another memory's
            if not left:
                return call(asked, "Write", {"file_path": path, "content": text_of(note, path, read)})
            wrote = left.pop(0)
            unread = wrote.failed and "Read it" in wrote.said and read is None and "Read" in asked.tools
            if not unread:
                return _outcome(note, there, wrote)
    return f"That is not saved: there are memories by that name already ({note.name})."


def _says_so(note: Note, there: KnownMemory | None, path: str) -> bool:
    """Whether the line of the index is enough to see it: one that was cut is not."""
    return there is not None and path == there.path and not there.hook.endswith("…") and alike(note.rule, there.hook)


def _about_the_same(note: Note, old: str) -> bool:
    found = FRONT.match(f"{old.strip()}\n")
    described = field(found["head"], "description") if found else ""
    return alike(note.rule, described) or alike(note.rule, _paragraphs(old)[0])


def _paragraphs(old: str) -> list[str]:
    """The parts of a memory's text; the first says the rule."""
    return body(old).split("\n\n") or [""]


def text_of(note: Note, path: str, read: Done | None) -> str:
    """The file to write. What an old one says besides the rule stays; a reason goes with the rule it was given for."""
    if read is None or read.failed:
        return note.file(name=title(path))
    old = content(read.said)
    why = _WHY.search(old)
    described, name = field(old, "description"), field(old, "name") or title(path)
    replaced = says_instead(note.rule, described)
    # A name that was made of the old sentence would contradict the new one.
    name = note.name if replaced and name == named(described) else name
    rest = [part for part in _paragraphs(old)[1:] if not part.startswith(("**Why:**", "Said on "))]
    return note.file(why["why"] if why and not replaced else "", name, rest)


def _outcome(note: Note, there: KnownMemory | None, wrote: Done) -> str:
    if wrote.failed:
        return f"That is not saved: {wrote.said}"
    if not wrote.said.startswith(("Saved", "Updated")) and "already has this content" not in wrote.said:
        return wrote.said
    changed = (
        wrote.said.startswith("Updated") and there is not None and there.hook and normal(there.hook) != normal(note.description)
    )
    instead = f" (instead of: {there.hook})" if changed and there is not None else ""
    left_out = _LEFT_OUT.search(wrote.said)
    if left_out is not None:
        return f"I will remember what I may of that, by the name {title(str(wrote.given.get('file_path', '')))}. {left_out[0]}"
    return f"I will remember that: {note.description}{instead}"


def _same(note: Note, known: KnownMemory) -> bool:
    """Whether a memory says the same, or what the note now says otherwise. A hook that was cut speaks for its beginning."""
    hook = known.hook.removesuffix("…").rsplit(" ", 1)[0] if known.hook.endswith("…") else known.hook
    if normal(note.name) in (normal(title(known.path)), normal(known.title)):
        return True
    return alike(note.rule, hook)


def alike(rule: str, old: str) -> bool:
    """Nearly the same words and nothing exchanged for another, or one value exchanged that can have but one."""
    one, other = set(terms(rule)), set(terms(old))
    if not one or not other:
        return False
    same = len(one & other) / len(one | other) >= SAME and (one <= other or other <= one)
    return same or says_instead(rule, old)
