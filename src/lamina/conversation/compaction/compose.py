"""Composes the text of a summary: the model's sections, the user's messages, the files used, and where to find the originals.
Pure.

It is one text, so it is written whole or not at all. The next compaction reads the user's messages and the files back from it.

The list of files comes from the tool calls, so no model decides which files are forgotten. It is ordered newest first and grouped
by directory, so that more names fit. The list of an earlier summary is included: a file used at the very beginning is still named
after ten compactions, as long as there is room.
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
from ...disk.session_files.spills import named_by
from ...language.wording import counted, plural
from .user_messages import Tokens, Users, most_fitting, rendered, select

# Argument names that hold a path.
PATH_KEYS = ("file_path", "path", "notebook_path", "filename", "file", "old_path", "new_path", "target_file")
COMMAND_KEYS = ("command", "cmd", "script")
# A file name in a command: a name with an extension, with or without directories before it.
_IN_COMMAND = re.compile(
    r"(?<![\w./~@%+:-])(?:~/|\.{1,2}/|/)?(?:[\w.@%+-]+/)*[\w@%+-][\w.@%+-]*\.[A-Za-z][A-Za-z0-9]{0,7}(?![\w/(])"
)
# A path in a command: a word with a slash. It stands for itself: no pattern, no variable, no URL.
_WITH_SLASH = re.compile(r"(?<![\w./~@%+:$*\\-])(?:~/|\.{1,2}/|/)?(?:[\w.@%+-]+/)*[\w.@%+-]+/?(?![\w/(*?$\[{\\])")
# Quoted text with blanks is a message or a program rather than a path.
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_HERE_DOCUMENT = re.compile(r"<<-?\s*['\"]?(\w+)")
_SUBSTITUTION = re.compile(r"[sy]/.*/[a-z]*$")
# Files of the system that every command may name.
_SYSTEM = ("/dev/", "/proc/", "/bin/", "/usr/bin/")
# Extensions that rather belong to a host name or an abbreviation.
_NO_ENDING = {"com", "org", "net", "io", "dev", "e.g", "i.e"}
LONGEST = 400
LONGEST_COMMAND = 100_000

HEADING = "Files used so far, newest first (from the tool calls):"
_LINE = re.compile(r"^- (.*?/|)\t(.+)$", re.MULTILINE)


def used_in(items: Iterable[Item], cwd: str = "") -> list[str]:
    """Return the paths in the items' tool calls and in earlier summaries, newest first, without duplicates.

    Paths below `cwd` are relative to it.
    """
    oldest_first: list[str] = []
    for item in items:
        for block in item.blocks:
            if isinstance(block, Text) and item.kind in ("summary", "partial"):
                oldest_first += reversed(listed_in(block.text))
            elif isinstance(block, ToolUse):
                oldest_first += _paths(block.input, cwd)
    return list(dict.fromkeys(reversed(oldest_first)))


def _paths(arguments: object, cwd: str) -> Iterator[str]:
    if not isinstance(arguments, dict):
        return
    for key, value in arguments.items():
        values = value if isinstance(value, list) else [value]
        for item in values:
            if isinstance(item, dict):
                yield from _paths(item, cwd)
            elif isinstance(item, str) and key in COMMAND_KEYS:
                yield from (_plain(path, cwd) for path in _in_command(item[:LONGEST_COMMAND]))
            elif isinstance(item, str) and key in PATH_KEYS and _is_path(item):
                yield _plain(item, cwd)


def _in_command(command: str) -> Iterator[str]:
    """Yield the files and directories that a shell command names, in order."""
    own_lines = _without_here_documents(command)
    bare = _QUOTED.sub(lambda quoted: " " * len(quoted[0]) if " " in quoted[0] else quoted[0], own_lines)
    words = {match.start(): match[0].removesuffix("/...") for match in _WITH_SLASH.finditer(bare)}
    paths = {start: word for start, word in words.items() if _is_directory(word)}
    paths |= {match.start(): match[0] for match in _IN_COMMAND.finditer(own_lines) if _is_file(match[0])}
    yield from (path for _, path in sorted(paths.items()))


def _without_here_documents(command: str) -> str:
    """Leave out the lines of here-documents: they are the content of a file, and what they name was not used."""
    lines: list[str] = []
    end = ""
    for line in command.split("\n"):
        if end:
            end = "" if line.strip() == end else end
            continue
        lines.append(line)
        opening = _HERE_DOCUMENT.search(line)
        end = opening[1] if opening is not None else ""
    return "\n".join(lines)


def _is_directory(word: str) -> bool:
    if "/" not in word or len(word) > LONGEST or word.startswith(_SYSTEM) or _SUBSTITUTION.match(word):
        return False
    return any(char.isalpha() for char in word) and "..." not in word


def _is_path(value: str) -> bool:
    result = named_by(value) is not None  # a cleared result that was read again; the summary removes its marker too
    return 0 < len(value) <= LONGEST and not result and not any(char in value for char in "\n\t\0*?")


def _is_file(word: str) -> bool:
    return len(word) <= LONGEST and word.rsplit(".", 1)[-1].lower() not in _NO_ENDING


def _plain(path: str, cwd: str) -> str:
    plain = os.path.normpath(path)
    below = cwd.rstrip("/") + "/"
    return plain[len(below) :] if cwd and plain.startswith(below) else plain


def listed(paths: Sequence[str], budget: int, tokens: Tokens) -> str:
    """Return a list of as many files as fit, newest first, grouped by directory. Each directory is placed by its newest file."""
    # The cost of one more file depends on its group, so a binary search finds how many fit.
    count = most_fitting(len(paths), lambda count: tokens(_list(paths[:count])) <= budget)
    if not count:
        return ""
    omitted = len(paths) - count
    return _list(paths[:count]) + (f"\n({counted(omitted, 'older file')} not listed.)" if omitted else "")


def _list(paths: Sequence[str]) -> str:
    groups: dict[str, list[str]] = {}
    for path in paths:
        directory, name = os.path.split(path)
        groups.setdefault(f"{directory.rstrip('/')}/" if directory else "", []).append(name)
    return "\n".join([HEADING, *(f"- {directory}\t{', '.join(names)}" for directory, names in groups.items())])


def listed_in(summary: str) -> list[str]:
    """Return the files that an earlier summary lists, in the same order."""
    _, heading, text = summary.rpartition(HEADING)
    if not heading:
        return []
    return [directory + name for directory, names in _LINE.findall(text) for name in names.split(", ")]


USERS_HEADING = "## 6. All user messages"
# The user's messages go before this section, or at the end if a summary lacks it.
_SEVENTH = re.compile(r"^(?:#{1,4}\s*(?:\*\*)?|\*\*)[7７]\s?[.．、:：)]", re.MULTILINE)


class WayBack(NamedTuple):
    """The location of the original messages."""

    node: str  # id of the decision
    transcript: str = ""  # empty for a session in memory, and if the model cannot open files
    results: str = ""  # the directory of spilled results, if there are any
    expand: bool = False  # the model has the tool that shows the originals


class SummaryBudget(msgspec.Struct, frozen=True):
    """Token budgets for the parts that are added to the model's summary."""

    users: int
    files: int


class SummaryOrigin(msgspec.Struct, frozen=True):
    """The circumstances in which a summary was made."""

    partial: bool = False  # it replaces only a part of the conversation
    mechanical: bool = False  # by rules instead of a model
    dropped: int = 0  # rounds that the model did not see
    go_on: bool = False  # tell the model to continue, because no user is present to do so


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
        head.append(texts["dropped"].format(rounds=plural(made.dropped, "round", f"{made.dropped:,} rounds")))
    if made.go_on:
        head.append(texts["go on"])
    tail = [listed(files, budget.files, tokens), *_way_back(way)]
    body = with_users(summary, select(said, budget.users, tokens))
    return "\n\n".join([" ".join(head), body, *(part for part in tail if part)])


def with_users(summary: str, users: Users) -> str:
    """Insert the user's messages as section 6."""
    section = users_section(users)
    seventh = _SEVENTH.search(summary)
    if seventh is None:
        return f"{summary.rstrip()}\n\n{section}"
    return f"{summary[: seventh.start()].rstrip()}\n\n{section}\n\n{summary[seventh.start() :].strip()}"


def users_section(users: Users) -> str:
    return f"{USERS_HEADING}\n{rendered(users)}"


def _way_back(way: WayBack) -> list[str]:
    texts = prompt_sections(__file__, "framed")
    if not way.transcript and way.expand:
        return [texts["back expand"].format(node=way.node)]
    if not way.transcript:
        return [texts["back in memory"].format(node=way.node)]
    back = texts["back"].format(transcript=way.transcript, node=way.node)
    return [back + (" " + texts["spilled"].format(directory=way.results) if way.results else "")]
