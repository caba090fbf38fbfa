"""Decides which changes wait for the user although the mode would let them pass, whoever makes them. Pure.

- A client of the MCP server changes and removes only what it wrote itself. A new `project` or `reference` memory of a client is live unless
  it is about what a memory of somebody else says, or comes back after a removal. A memory about the user always waits.
- What is not worth keeping waits with a question, unless the memory was of that kind before.
- An imported memory about the user waits: the user ran the import, but did not write the file.

The user's own saves never wait here. The type of the memory that would be replaced counts like that of the new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from ...language.excluded_kinds import INSTRUCTIONS, find_excluded
from ...language.terms import normal
from ...language.text import Text
from ..store.contract import ChangeReason, WriteRules
from ..store.journal import JournalLine
from ..store.topic import PERSONAL, Topic
from .copies import is_copied, visible_texts
from .sources import Runs, word_runs
from .support import PREFIX, Statement, content, covers, negated, statements

ALL_WAIT = "lamina.mcp.writes is wait"
ABOUT_USER = "it is about you, and a client's call does not show that you said it"
NOT_ITS_OWN = Text("{client} did not write this memory")
CAME_BACK = "a memory of this name was removed"
OPPOSED = Text("{client} did not write {name}, which is about the same")
FROM_FILE = "it is about you, and it comes from a file"
NOT_WORTH = Text("this looks like {kind}. What about it is worth keeping?")


class ClientKnowledge(NamedTuple):
    """What the journal and the store tell about a client: whether it alone wrote the memory in question, whether such a memory was
    removed by somebody else, and the memories that it did not write."""

    owns: bool
    removed: bool
    others: Sequence[Topic]


def why_it_waits(
    why: ChangeReason, new: Topic | None, old: Topic | None, rules: WriteRules, client: ClientKnowledge | None = None
) -> str:
    """Return the reason for an approval, or an empty string. `new` is None for a removal."""
    personal = any(topic is not None and topic.type in PERSONAL for topic in (new, old))
    if why.who == "user":
        return FROM_FILE if why.origin and personal else ""
    if client is not None and (reason := _client_reason(why.client, new, old, rules, client, personal)):
        return reason
    if new is None:
        return ""
    kind = find_excluded(new.description, new.body, architecture=not rules.keep_architecture)
    if kind is None and not rules.keep_architecture:
        before = Runs().union(*map(word_runs, visible_texts(old))) if old is not None else Runs()
        kind = INSTRUCTIONS if is_copied(new, rules.instructions(), Runs(), before) else None
    known = old is not None and find_excluded(old.description, old.body) is not None
    return Text(NOT_WORTH, kind=Text.whole(kind)) if kind is not None and not known else ""


def _client_reason(
    name: str, new: Topic | None, old: Topic | None, rules: WriteRules, known: ClientKnowledge, personal: bool
) -> str:
    if rules.clients_wait:
        return ALL_WAIT
    if old is not None and not known.owns:
        return Text(NOT_ITS_OWN, client=name)
    if personal:
        return ABOUT_USER
    if known.removed:
        return CAME_BACK
    other = _find_opposed(new, known.others) if new is not None else None
    return Text(OPPOSED, client=name, name=other.name) if other is not None else ""


def _find_opposed(new: Topic, others: Sequence[Topic]) -> Topic | None:
    """Return a memory whose name is the same but for its marks, which the new one contradicts, or about whose subject it speaks if it is
    about the user."""
    if (namesake := next((other for other in others if _letters(other.name) == _letters(new.name)), None)) is not None:
        return namesake
    told = _stated(new)
    # Most memories share no word with the new one, and comparing all of them takes a second in a large memory.
    starts = {term[:PREFIX] for each in told for term in each.content}
    plain = ((other, normal(f"{other.description}\n{other.body}")) for other in others)
    others = [other for other, text in plain if any(start in text for start in starts)]
    for other in others:
        for said in _stated(other):
            about = (each for each in told if covers(said.content, each.content))
            if any(other.type in PERSONAL or negated(each.text) != negated(said.text) for each in about):
                return other
    from .contradictions import find_contradictions  # it compiles the patterns of dates in all languages

    # Memories of all types are compared, so they are given one. The new memory is the newest.
    alike = [msgspec.structs.replace(topic, type=None, problems=()) for topic in (*others, new)]
    clash = next((pair for pair in find_contradictions(alike) if new.file in (pair.old.topic.file, pair.new.topic.file)), None)
    if clash is None:
        return None
    return clash.old.topic if clash.new.topic.file == new.file else clash.new.topic


def _letters(name: str) -> str:
    return "".join(char for char in normal(name) if char.isalnum())


def _stated(topic: Topic) -> list[Statement]:
    return [Statement(topic.description, content(topic.description)), *statements(topic.body)]


def files_of_client(lines: Iterable[JournalLine], client: str) -> dict[str, str]:
    """Return the files that a client alone has written since they were created, each with the digest that it left there."""
    own = dict[str, str]()
    for line in lines:
        written_by = line.why.client if line.why is not None else ""
        alone = written_by == client and own.get(line.file, "") == line.before
        own.pop(line.file, None)
        if alone and line.digest:
            own[line.file] = line.digest
    return own
