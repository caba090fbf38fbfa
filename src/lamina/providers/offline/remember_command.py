"""Saves memories without a model: each item that a message asks to remember becomes a file, through the calls a model would make.

A memory with the same content is read and updated, a memory that the new one contradicts is replaced, and an unrelated file stays
unchanged. The calls after the prompt in the conversation tell which step is next, so this module keeps no state.
"""

from __future__ import annotations

import re

from ...core.blocks import Wire
from ...core.claude_home import new_memory_file
from ...core.reach import MEMORY_SAVE
from ...language.detection import ON, WHY
from ...language.excluded_kinds import JUDGEMENT, KINDS
from ...language.memory_requests import to_remember
from ...language.terms import normal, terms
from ...language.wording import plural
from .memory_answers import cannot_change
from .memory_note import MOST_NOTES, Note, items, named, no_memory, notes, with_dates
from .replies import ENGLISH, replies_to
from .reply_texts import Replies
from .sentence_rules import says_instead
from .turn_context import FRONT, Done, KnownMemory, TurnContext, body, call, content, field, say, title, to_user

# Two sentences that share this part of their words have the same meaning.
SAME = 0.6

# How the store refuses a memory of which nothing is left without its secret.
_ONLY_SECRET = "would consist only of a secret"
_LEFT_OUT = re.compile(r"A secret was (?:removed|left out) \((?P<what>[^)\n]*)\)\.")


def remember(asked: TurnContext) -> list[Wire]:
    """Return the next step of "Remember: …": each item is written to a separate file, one after the other."""
    text = to_remember(asked.prompt)
    if not any(map(str.isalnum, text)):  # nothing, or only emoji
        return say(replies_to(asked.prompt).remember_what)
    if all(no_memory(item) is not None for item in items(text)):
        return say(_ask_back(asked, str(no_memory(items(text)[0]))))
    if asked.directory is None or "Write" not in asked.tools:
        return _without_files(asked)
    if asked.log:
        return _into_log(asked)
    every, left, outcomes = notes(asked.prompt, asked.today), list(asked.done), list[str]()
    taken = set[str]()
    for note in every[:MOST_NOTES]:
        if (what := no_memory(note.rule)) is not None and (not note.why or what == JUDGEMENT):
            outcomes.append(f"{_ask_back(asked, what)} ({note.description})")
            continue
        there = next((known for known in asked.known if known.path not in taken and _same(note, known)), None)
        step = _keep(asked, note, there, left)
        if not isinstance(step, str):
            return step
        taken.add(there.path if there is not None else _path_for(asked, note))
        outcomes.append(step)
    if len(every) > MOST_NOTES:
        rest = len(every) - MOST_NOTES
        last = plural(rest, "The last item was not saved. Send it", f"The last {rest} items were not saved. Send them")
        outcomes.append(f"{last} in a separate message.")
    return say("\n".join(outcomes))


def _without_files(asked: TurnContext) -> list[Wire]:
    """Save with MemorySave, or leave it to the review after the turn."""
    replies = replies_to(asked.prompt)
    every = [note for note in notes(asked.prompt, asked.today)[:MOST_NOTES] if no_memory(note.rule) is None]
    if MEMORY_SAVE not in asked.tools:
        saved = "\n".join(replies.saved.format(what=note.description) for note in every)
        return say(saved) if asked.reviewed else cannot_change(asked)
    if len(asked.done) < len(every):
        note = every[len(asked.done)]
        given = {"name": note.name, "type": note.type, "description": note.description, "body": body(note.file())}
        return call(asked, MEMORY_SAVE, given)
    return say("\n".join(_outcome(note, None, done, replies) for note, done in zip(every, asked.done, strict=False)))


def _into_log(asked: TurnContext) -> list[Wire]:
    """Write all items to the daily log in one call, as assistant mode requires."""
    kept = [item for item in items(to_remember(asked.prompt))[:MOST_NOTES] if no_memory(item) is None]
    if not asked.done:
        bullets = "".join(f"- {' '.join(with_dates(item, asked.today).split())}\n" for item in kept)
        return call(asked, "Write", {"file_path": asked.log, "content": bullets})
    if asked.done[0].failed:
        return say(replies_to(asked.prompt).not_saved.format(why=asked.done[0].said))
    left_out = _LEFT_OUT.search(asked.done[0].said)
    if left_out is not None:
        return say(replies_to(asked.prompt).without_secret.format(name=title(asked.log), what=left_out["what"]))
    return say("\n".join(replies_to(asked.prompt).logged.format(what=item) for item in kept))


def _keep(asked: TurnContext, note: Note, there: KnownMemory | None, left: list[Done]) -> list[Wire] | str:
    """Return the next call for one note, or its outcome. `left` are the calls after the prompt that are not yet assigned.

    A file with unrelated content stays unchanged, and the note gets the next free name.
    """
    first = [there.path] if there is not None else []
    own = [_path_for(asked, note, suffix) for suffix in ("", "-2", "-3", "-4")]
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
                    break  # the file belongs to another memory
            if not left:
                return call(asked, "Write", {"file_path": path, "content": text_of(note, path, read)})
            wrote = left.pop(0)
            unread = wrote.failed and "Read it" in wrote.said and read is None and "Read" in asked.tools
            if not unread:
                return _outcome(note, there, wrote, replies_to(asked.prompt))
    return replies_to(asked.prompt).taken.format(name=note.name)


def _path_for(asked: TurnContext, note: Note, suffix: str = "") -> str:
    directory = str(asked.directory)
    return f"{directory}/{new_memory_file(directory, f'{note.name}{suffix}.md', note.type)}"


def _says_so(note: Note, there: KnownMemory | None, path: str) -> bool:
    """Whether the index line alone shows that the memory has the same content; a truncated line does not."""
    return there is not None and path == there.path and not there.hook.endswith("…") and alike(note.rule, there.hook)


def _about_the_same(note: Note, old: str) -> bool:
    found = FRONT.match(f"{old.strip()}\n")
    described = field(found["head"], "description") if found else ""
    return alike(note.rule, described) or alike(note.rule, _paragraphs(old)[0])


def _paragraphs(old: str) -> list[str]:
    """Return the paragraphs of a memory; the first one is the rule."""
    return body(old).split("\n\n") or [""]


def text_of(note: Note, path: str, read: Done | None) -> str:
    """Return the text of the file to write. Other paragraphs of an old file stay, but its reason only if the rule is the same."""
    if read is None or read.failed:
        return note.file(name=title(path))
    old = content(read.said)
    why = WHY.search(old)
    described, name = field(old, "description"), field(old, "name") or title(path)
    replaced = says_instead(note.rule, described)
    # A name derived from the old sentence would contradict the new one.
    name = note.name if replaced and name == named(described) else name
    rest = [part for part in _paragraphs(old)[1:] if not (WHY.match(part) or ON.match(part))]
    return note.file(why["why"] if why and not replaced else "", name, rest)


def _ask_back(asked: TurnContext, kind: str) -> str:
    replies = replies_to(asked.prompt)
    if kind == JUDGEMENT:
        return replies.judgement
    return replies.ask_back.format(what=kind if replies is ENGLISH else replies.kinds[KINDS.index(kind)])


def _outcome(note: Note, there: KnownMemory | None, wrote: Done, replies: Replies) -> str:
    if wrote.failed:
        return replies.only_secret if _ONLY_SECRET in wrote.said else replies.not_saved.format(why=wrote.said)
    if not wrote.said.startswith(("Saved", "Updated")) and "already has this content" not in wrote.said:
        return to_user(wrote.said, replies)
    changed = (
        wrote.said.startswith("Updated") and there is not None and there.hook and normal(there.hook) != normal(note.description)
    )
    instead = replies.instead.format(old=there.hook) if changed and there is not None else ""
    left_out = _LEFT_OUT.search(wrote.said)
    if left_out is not None:
        return replies.without_secret.format(
            name=title(str(wrote.given.get("file_path") or wrote.given.get("name", ""))), what=left_out["what"]
        )
    return f"{replies.saved.format(what=note.description)}{instead}"


def _same(note: Note, known: KnownMemory) -> bool:
    """Whether the note repeats or replaces a memory. A truncated hook is compared by its beginning."""
    hook = known.hook.removesuffix("…").rsplit(" ", 1)[0] if known.hook.endswith("…") else known.hook
    if normal(note.name) in (normal(title(known.path)), normal(known.title)):
        return True
    return alike(note.rule, hook)


def alike(rule: str, old: str) -> bool:
    """Whether two sentences have nearly the same words and no exchanged word, or differ in one value that replaces the other."""
    one, other = set(terms(rule)), set(terms(old))
    if not one or not other:
        return False
    same = len(one & other) / len(one | other) >= SAME and (one <= other or other <= one)
    return same or says_instead(rule, old)
