"""Answering from memory without a model: the files behind the lines that fit, or a search through all of them.

Whatever is told from memory names the memory it comes from. Pure.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from ...core.blocks import Wire
from ...core.terms import sought
from .turn_context import Done, KnownMemory, TurnContext, body, call, grep, say, share, title

# A memory shares at least this part of a question's terms.
ENOUGH = 0.34
# Below this it may be about something else, and that is said.
SURE = 0.5
UNSURE = "I am not sure that this answers it:\n"
# Memories that fit nearly as well as the best are read too.
NEARLY = 0.85
MOST_READ = 3
# What is shown of a memory; the whole of it stands in the conversation above.
SHOWN = 1_200

_WITHOUT = re.compile(
    r"\b(?:ignore|without|don't use|do not use)\b.{0,20}\bmemor(?:y|ies)\b|(?:忽略|不要用|不用|别用).{0,6}记忆", re.IGNORECASE
)
_OVERVIEW = re.compile(
    r"^\s*(?:what (?:do|can) you (?:remember|know)(?: about (?:me|us|this project|the project))?"
    r"|你(?:还)?(?:记得|记住了)(?:些)?什么|何を覚えて)"
    r"[^\w]*$",
    re.IGNORECASE,
)


def without_memory(prompt: str) -> bool:
    """Told to ignore memory, it is as if there were none."""
    return bool(_WITHOUT.search(prompt))


def overview(asked: TurnContext) -> list[Wire] | None:
    """The answer to "What do you remember?"; None for any other question."""
    if not _OVERVIEW.match(asked.prompt):
        return None
    lines = [f"- {known.title}: {known.hook}" if known.hook else f"- {known.title}" for known in asked.known]
    return say("I remember:\n" + "\n".join(lines) if lines else "Nothing is remembered here yet.")


def recall(asked: TurnContext, fitting: Sequence[KnownMemory], score: float = 1.0) -> list[Wire] | None:
    """The next step of answering a question from these memories, or by a search through all; None where memory has no answer.

    `score` says how well the best of them fits."""
    if asked.directory is None:
        return None
    if fitting:
        return _from_files(asked, fitting, UNSURE if score < SURE else "")
    if "Grep" not in asked.tools or not (asked.known or asked.cut or asked.log):
        return None
    if not asked.done:
        return grep(asked, asked.prompt) if sought(asked.prompt) else None
    return _from_lines(asked, asked.done[-1])


def from_recalled(asked: TurnContext, fitting: Sequence[int], score: float) -> list[Wire]:
    """The answer from memories that stand in the conversation: nothing need be read."""
    told = [_told(asked.recalled[at].text, asked.recalled[at].title) for at in fitting[:MOST_READ]]
    return say((UNSURE if score < SURE else "") + "\n\n".join(told))


def _told(text: str, name: str) -> str:
    return f"{text[:SHOWN].rstrip()}{'…' if len(text) > SHOWN else ''}\n(memory: {name})"


def _from_files(asked: TurnContext, fitting: Sequence[KnownMemory], doubt: str) -> list[Wire]:
    files = fitting[:MOST_READ] if "Read" in asked.tools else ()
    if len(asked.done) < len(files):
        return call(asked, "Read", {"file_path": files[len(asked.done)].path})
    told = []
    for known, done in zip(files, asked.done, strict=False):
        text = known.hook if done.failed else body(done.said) or known.hook
        told.append(_told(text, known.title))
    lines = "\n".join(f"{known.hook or known.title}\n(memory: {known.title})" for known in fitting)
    return say(doubt + ("\n\n".join(told) or lines))


def _from_lines(asked: TurnContext, done: Done) -> list[Wire] | None:
    """Of the lines a search brought, the one that shares most with the question."""
    rows = [] if done.failed else [row for row in (_row(line) for line in done.said.splitlines()) if row is not None]
    best = max(rows, key=lambda row: share(asked.prompt, row[1]), default=None)
    if best is None or share(asked.prompt, best[1]) < ENOUGH:
        return None
    doubt = UNSURE if share(asked.prompt, best[1]) < SURE else ""
    return say(f"{doubt}{best[1]}\n(memory: {title(best[0])})")


def _row(line: str) -> tuple[str, str] | None:
    found = re.match(r"(?P<path>.+?\.md)[:-]\d+[:-](?P<text>.*)$", line)
    if found is None or posixpath.basename(found["path"]) == "MEMORY.md":
        return None
    text = found["text"].strip()
    # The other keys of the front matter are no answer to anything.
    return None if re.match(r"(?:name|type|metadata|evidence):", text) else (found["path"], re.sub(r"^description: *", "", text))
