"""Decides whether a memory may be saved at once, based on who said it and not on the model's own claim. Pure.

There is one rule: what is not the user's own sentence, with the same numbers, negation and subject, waits for the user's approval and
names its origin. It holds for every type of memory, for its description and for each sentence of its text. An approval ("perfect") backs
what the assistant proposed of its own, with the same numbers and negation: an answer in whose turn nothing was read, pasted or received.
What a later message takes back counts no more. What the model concludes behind "How to apply", and the names it chooses, may be its own
words, but not those of another text; a conclusion adds no option, path or address, and a name no "not".

A line `**Said:** "…"`, in which a model quotes the user, is removed: the user's messages are searched in any case. The words that back a
memory go into the journal as the reason.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from ...language.invisible import remove_invisible
from ...providers.offline.judge.cues import CUES, TAKEN_BACK
from ..store.topic import PERSONAL, Topic, read_topic
from .approval import accepts
from .copies import is_copied, visible_texts
from .facts import exact_words
from .own_sentence import find_sentence, is_proposed, read_sense
from .sources import ASSISTANT, ForeignText, Runs, Sources, UserWords, strings_in, word_runs
from .support import NEGATION, Statement, closest, content, covers, is_taken, negated, shared, statements, without_idioms
from .word_forms import missing

# Limit for the user's words in the journal.
QUOTED_CHARS = 160
# A model may quote the user in a line of this form. It is not part of the memory.
_SAID = re.compile(r"^[ \t]*+(?:\*\*)?Said:[^\n]*\n?", re.MULTILINE)
# Words of a name that are neither the user's nor the memory's.
MOST_NEW_IN_NAME = 2


class WantedMemory(NamedTuple):
    """The content a tool call would leave in a file. `before` is the current text, or None if the file does not exist."""

    file: str
    text: str
    before: str | None = None


class AcceptedMemory(NamedTuple):
    """A memory that may be saved. With an origin, it waits for the user's approval."""

    topic: Topic
    text: str  # the file's content without the quotation
    why: str
    message: str | None = None
    origin: str = ""


class RefusedMemory(NamedTuple):
    why: str


class BackedQuote(NamedTuple):
    """The user's words that back a text, and the message that contains them."""

    quote: str
    said: UserWords


class Claim(NamedTuple):
    """The new parts of a memory."""

    statements: tuple[Statement, ...]  # its description and its sentences
    advice: tuple[Statement, ...]
    labels: tuple[str, ...]  # its names and other fields
    memory: str  # its whole text


def judge(wanted: WantedMemory, heard: Sources) -> AcceptedMemory:
    """Accept a memory, with the user's words as the reason or with its origin."""
    text = without_quotation(remove_invisible(wanted.text))
    topic = read_topic(wanted.file, text, 0)
    old = read_topic(wanted.file, wanted.before, 0) if wanted.before is not None else None
    if old is not None and old.type != topic.type and {old.type, topic.type} & set(PERSONAL):
        # A fact would become the user's own statement, or the other way round: all of it counts as new, and none of it as theirs.
        heard, old = heard._replace(data=(*heard.data, ForeignText(wanted.before or ""))), None
    claim = _read_claim(topic, old)
    if (
        old is not None
        and (old.description, old.body) == (topic.description, topic.body)
        and not _has_foreign_label(claim, heard)
    ):
        return AcceptedMemory(topic, text, "its text is unchanged")
    backed = None if _is_mixed(claim, heard) else _find_support(claim.statements, claim.memory, heard, topic.type == "user")
    if backed is not None:
        return AcceptedMemory(topic, text, f"the user said: {backed.quote[:QUOTED_CHARS]}", backed.said.message)
    origin = find_origin("\n".join(each.text for each in claim.statements), heard)
    return AcceptedMemory(topic, text, f"found in the conversation ({origin})", origin=origin)


def without_quotation(text: str) -> str:
    return _SAID.sub("", text).rstrip() + "\n"


def repeats_known(wanted: WantedMemory, heard: Sources) -> bool:
    """Whether the new text of a memory came into this conversation from memory or from instruction files."""
    said = Runs().union(*(word_runs(one.own) for one in heard.said))
    old = read_topic(wanted.file, wanted.before, 0) if wanted.before is not None else None
    before = Runs().union(*map(word_runs, visible_texts(old))) if old is not None else frozenset()
    return is_copied(read_topic(wanted.file, without_quotation(wanted.text), 0), heard.known, said, before)


def backs(text: str, heard: Sources) -> BackedQuote | None:
    """Return the user's words that back a text, such as a line of a log; None if no words do."""
    return _find_support([Statement(text, content(text))], "", heard)


def mentions(text: str, heard: Sources) -> bool:
    """Whether a message of the user is about a text."""
    return any(covers(content(text), content(one.own)) for one in heard.said)


def find_origin(text: str, heard: Sources) -> str:
    """Return where a text comes from: the origin of the data that shares most with it, else the assistant."""
    place = closest(content(text), [each.text for each in heard.data])
    return heard.data[place].origin if place is not None else ASSISTANT


def _read_claim(topic: Topic, old: Topic | None) -> Claim:
    stem = topic.file.rsplit("/", 1)[-1].removesuffix(".md")
    fields = {key: value for key, value in topic.fields.items() if key not in ("evidence", "metadata", "origin")}
    body = statements(topic.body)
    known = {each.text.strip() for each in statements(f"{old.description}\n\n{old.body}")} if old is not None else set[str]()
    new = [each for each in (*statements(topic.description), *body) if each.text.strip() not in known]
    if not new and old is not None:  # the change removes something, and is about what it removes
        left = {each.text.strip() for each in body}
        new = [each for each in statements(old.body) if each.text.strip() not in left]
    return Claim(
        tuple(each for each in new if not each.advice),
        tuple(each for each in new if each.advice),
        (stem, topic.name, *strings_in(fields, keys=True)),
        f"{topic.description}\n{topic.body}",
    )


def _is_mixed(claim: Claim, heard: Sources) -> bool:
    """Whether the advice or a name of a memory comes from another text, or the advice has an option, a path or an address of its own."""
    texts, own = [each.text for each in heard.data], frozenset().union(*(content(one.own) for one in heard.said))
    exact = exact_words("\n".join((*(each.text for each in claim.statements), *(one.own for one in heard.said))))
    return _has_foreign_label(claim, heard) or any(
        is_taken(each, texts, own) or not exact_words(each.text) <= exact for each in claim.advice
    )


def _has_foreign_label(claim: Claim, heard: Sources) -> bool:
    """Whether a name says more than the user and the memory do: many words, a few that stand in another text, or a "not"."""
    memory = re.sub(r"[./@:#_-]", " ", claim.memory)  # a name is made from the parts of an address
    known = read_sense("\n".join((memory, *(one.own for one in heard.said)))).words
    may_negate = any(NEGATION.search(text) for text in (claim.memory, *(one.own for one in heard.said)))
    for label in claim.labels:
        new = missing(read_sense(label.replace("-", " ").replace("_", " ")).words, known)
        if not may_negate and NEGATION.search(label.replace("_", "-")):
            return True
        if len(new) > MOST_NEW_IN_NAME or (
            len(new) > 1 and any(not missing(new, read_sense(each.text).words) for each in heard.data)
        ):
            return True
    return False


def _find_support(claims: Sequence[Statement], memory: str, heard: Sources, about_user: bool = False) -> BackedQuote | None:
    """Return the user's words that back all statements: their own sentences in one message, or an approval of an answer."""
    claims = [each for each in claims if each.content or negated(each.text)]  # "Keep doing that." says nothing by itself
    wanted = frozenset().union(*(each.content for each in claims))
    for place, said in reversed([*enumerate(heard.said)]):
        own = said.own
        if _is_taken_back(wanted, heard.said[place + 1 :]):
            continue
        if about_user and CUES["you"].search(own) and not CUES["i"].search(own):
            continue
        quotes = [find_sentence(each.text, own, memory) for each in claims]
        found = list(dict.fromkeys(quote for quote in quotes if quote is not None))
        if claims and len(quotes) == sum(quote is not None for quote in quotes):
            return BackedQuote(" ".join(found), said)
        others = [each for each, quote in zip(claims, quotes, strict=True) if quote is None]
        if not about_user and not said.read and accepts(own, own) and _proposes(said, others, heard):
            return BackedQuote(own, said)
    return None


def _is_taken_back(wanted: Collection[str], later: Sequence[UserWords]) -> bool:
    """Whether a later message takes this back: the next one, or another that names it."""
    return any(
        TAKEN_BACK.search(without_idioms(one.own)) is not None and (place == 0 or shared(wanted, content(one.own)))
        for place, one in enumerate(later)
    )


def _proposes(approval: UserWords, claims: Sequence[Statement], heard: Sources) -> bool:
    """Whether the answer that a message approves of says all of this, and no other text does."""
    own = "\n".join(one.own for one in heard.said)
    taken = any(is_taken(each, [data.text for data in heard.data], content(own)) for each in claims)
    return not taken and is_proposed([each.text for each in claims], approval.before, own)
