"""The summary as it enters the log: the model's sections, the person's words, the files, the way back (C3). Pure.

One text, so that it is written whole or not at all. Its parts can be found again: the next compaction carries the person's words and
the files over from it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ...core.prompt_files import prompt_sections
from .files import listed
from .user_messages import Tokens, Users, rendered, select

USERS_HEADING = "## 6. All user messages"
# The section behind the user's messages; where a summary has none, they come at its end.
_SEVENTH = re.compile(r"^#{1,4}\s*7\.", re.MULTILINE)


class Way(NamedTuple):
    """Where what was compacted can be found again."""

    node: str  # id of the decision
    transcript: str = ""  # empty: a session in memory
    results: str = ""  # the directory of spilled results, where there are any


class Budget(msgspec.Struct, frozen=True):
    """Tokens for what is put in beside the model's words."""

    users: int
    files: int


class Made(msgspec.Struct, frozen=True):
    """Where the words come from, besides what the model said."""

    partial: bool = False
    mechanical: bool = False
    dropped: int = 0  # rounds the model did not see
    go_on: bool = False  # nobody is there to say so


def compose(
    summary: str, *, said: Sequence[str], files: Sequence[str], way: Way, budget: Budget, tokens: Tokens, made: Made
) -> str:
    texts = prompt_sections(__file__, "framed")
    head = [texts["opening partial" if made.partial else "opening"]]
    if made.mechanical:
        head.append(texts["mechanical"])
    if made.dropped:
        head.append(texts["dropped"].format(count=made.dropped))
    if made.go_on:
        head.append(texts["go on"])
    tail = [listed(files, budget.files, tokens), *_way_back(way)]
    body = with_users(summary, select(said, budget.users, tokens))
    return "\n\n".join([" ".join(head), body, *(part for part in tail if part)])


def with_users(summary: str, users: Users) -> str:
    """Section 6 in its place."""
    section = users_section(users)
    found = _SEVENTH.search(summary)
    if found is None:
        return f"{summary.rstrip()}\n\n{section}"
    return f"{summary[: found.start()].rstrip()}\n\n{section}\n\n{summary[found.start() :].strip()}"


def users_section(users: Users) -> str:
    return f"{USERS_HEADING}\n{rendered(users)}"


def _way_back(way: Way) -> list[str]:
    texts = prompt_sections(__file__, "framed")
    if not way.transcript:
        return [texts["back in memory"].format(node=way.node)]
    back = texts["back"].format(transcript=way.transcript, node=way.node)
    return [back + (" " + texts["spilled"].format(directory=way.results) if way.results else "")]
