"""The summary as it enters the log: the model's sections, the person's words, the files, the way back (C3). Pure.

One text, so that it is written whole or not at all. Its parts can be found again: the next compaction carries the person's words and
the files over from it.

The files a conversation worked with, named from its tool calls (C3, K4): no model decides which are forgotten.

The list stands in the summary, newest first and grouped by directory so that more of them fit. An earlier summary's list is read
back, so a file used at the very beginning is still named after ten compactions while there is room.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from ...core.blocks import Text, ToolUse
from ...core.prompt_files import prompt_sections
from ...core.view import Item
from .user_messages import Tokens, Users, rendered, select

# Names under which tools take a path.
PATH_KEYS = ("file_path", "path", "notebook_path", "filename", "file", "old_path", "new_path", "target_file")
COMMAND_KEYS = ("command", "cmd", "script")
# In a command, what looks like a file: a name with an ending, with or without directories before it.
_IN_COMMAND = re.compile(
    r"(?<![\w./~@%+:-])(?:~/|\.{1,2}/|/)?(?:[\w.@%+-]+/)*[\w@%+-][\w.@%+-]*\.[A-Za-z][A-Za-z0-9]{0,7}(?![\w/(])"
)
# Endings that are rather a method call, a host or an abbreviation.
_NO_ENDING = {"com", "org", "net", "io", "dev", "e.g", "i.e"}
LONGEST = 400

HEADING = "Files used so far, newest first (from the tool calls):"
_LINE = re.compile(r"^- (.*?/|)\t(.+)$", re.MULTILINE)


def used_in(items: Iterable[Item], cwd: str = "") -> list[str]:
    """Paths in the calls of these items and in the lists of earlier summaries, newest first, each once. Those below `cwd` are
    relative to it."""
    oldest_first: list[str] = []
    for item in items:
        for block in item.blocks:
            if isinstance(block, Text) and item.kind in ("summary", "partial"):
                oldest_first += reversed(listed_in(block.text))
            elif isinstance(block, ToolUse):
                oldest_first += _paths(block.input, cwd)
    return list(dict.fromkeys(reversed(oldest_first)))


def _paths(given: object, cwd: str) -> Iterator[str]:
    if not isinstance(given, dict):
        return
    for key, value in given.items():
        values = value if isinstance(value, list) else [value]
        for one in values:
            if isinstance(one, dict):
                yield from _paths(one, cwd)
            elif isinstance(one, str) and key in COMMAND_KEYS:
                yield from (_plain(found, cwd) for found in _IN_COMMAND.findall(one[:100_000]) if _is_file(found))
            elif isinstance(one, str) and key in PATH_KEYS and _is_path(one):
                yield _plain(one, cwd)


def _is_path(value: str) -> bool:
    return 0 < len(value) <= LONGEST and not any(char in value for char in "\n\t\0*?")


def _is_file(found: str) -> bool:
    return len(found) <= LONGEST and found.rsplit(".", 1)[-1].lower() not in _NO_ENDING


def _plain(path: str, cwd: str) -> str:
    plain = os.path.normpath(path)
    below = cwd.rstrip("/") + "/"
    return plain[len(below) :] if cwd and plain.startswith(below) else plain


def listed(paths: Sequence[str], budget: int, tokens: Tokens) -> str:
    """As many as fit, newest first, by directory; a directory stands where its newest file would. Empty where there are none."""
    low, high = 0, len(paths)
    # Grouping makes each further file cost little; halving finds how many fit.
    while low < high:
        middle = (low + high + 1) // 2
        if tokens(_list(paths[:middle])) <= budget:
            low = middle
        else:
            high = middle - 1
    if not low:
        return ""
    rest = len(paths) - low
    return _list(paths[:low]) + (f"\n({rest:,} older files are not named here.)" if rest else "")


def _list(paths: Sequence[str]) -> str:
    groups: dict[str, list[str]] = {}
    for path in paths:
        directory, name = os.path.split(path)
        groups.setdefault(f"{directory.rstrip('/')}/" if directory else "", []).append(name)
    return "\n".join([HEADING, *(f"- {directory}\t{', '.join(names)}" for directory, names in groups.items())])


def listed_in(summary: str) -> list[str]:
    """The files an earlier summary names, as they stand there."""
    _, found, text = summary.rpartition(HEADING)
    if not found:
        return []
    return [directory + name for directory, names in _LINE.findall(text) for name in names.split(", ")]


USERS_HEADING = "## 6. All user messages"
# The section behind the user's messages; where a summary has none, they come at its end.
_SEVENTH = re.compile(r"^#{1,4}\s*7\.", re.MULTILINE)


class WayBack(NamedTuple):
    """Where what was compacted can be found again."""

    node: str  # id of the decision
    transcript: str = ""  # empty: a session in memory
    results: str = ""  # the directory of spilled results, where there are any


class SummaryBudget(msgspec.Struct, frozen=True):
    """Tokens for what is put in beside the model's words."""

    users: int
    files: int


class SummaryOrigin(msgspec.Struct, frozen=True):
    """Where the words come from, besides what the model said."""

    partial: bool = False
    mechanical: bool = False
    dropped: int = 0  # rounds the model did not see
    go_on: bool = False  # nobody is there to say so


def compose(
    summary: str,
    *,
    said: Sequence[str],
    files: Sequence[str],
    way: WayBack,
    budget: SummaryBudget,
    tokens: Tokens,
    made: SummaryOrigin,
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


def _way_back(way: WayBack) -> list[str]:
    texts = prompt_sections(__file__, "framed")
    if not way.transcript:
        return [texts["back in memory"].format(node=way.node)]
    back = texts["back"].format(transcript=way.transcript, node=way.node)
    return [back + (" " + texts["spilled"].format(directory=way.results) if way.results else "")]
