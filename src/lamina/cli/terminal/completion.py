"""Completion: commands after a slash, their arguments, and file names after an @.

Looks at one directory at a time and at a bounded number of names, so a keystroke never waits for a large tree. A name that holds
control characters or blanks is not offered: it could not be typed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

# Names looked at in one directory, and offered of them.
MOST_SEEN = 5_000
MOST_OFFERED = 50

_COMMAND = re.compile(r"/[a-z]*")
_ARGUMENT = re.compile(r"/(?P<name>[a-z]+) +(?P<word>\S*)")
_FILE = re.compile(r"(?:^|(?<=\s))@(?P<path>\S*)\Z")


# A word, and what is said of it.
Choice: TypeAlias = tuple[str, str]
# Command → what may stand behind it; asked when it is needed.
Arguments: TypeAlias = Mapping[str, Callable[[], Iterable[Choice]]]


class ChatCompleter(Completer):
    def __init__(self, cwd: Path, commands: Mapping[str, str], arguments: Arguments) -> None:
        self._cwd = cwd
        self._commands = commands
        self._arguments = arguments

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if _COMMAND.fullmatch(text):
            return _offers(text, [(f"/{name}", about) for name, about in self._commands.items()])
        if (found := _ARGUMENT.fullmatch(text)) and (choices := self._arguments.get(found["name"])):
            return _offers(found["word"], choices())
        if found := _FILE.search(text):
            return _offers(found["path"], files(self._cwd, found["path"]))
        return ()


def _offers(begun: str, choices: Iterable[Choice]) -> Iterator[Completion]:
    for word, about in choices:
        if word.startswith(begun):
            yield Completion(word, start_position=-len(begun), display_meta=about)


def files(cwd: Path, begun: str) -> list[Choice]:
    """The names in the directory that `begun` leads to, directories with a slash behind."""
    directory, _, start = begun.rpartition("/")
    lead = f"{directory}/" if begun.startswith("/") or directory else ""
    try:
        with os.scandir(os.path.join(cwd, os.path.expanduser(lead))) as entries:
            names = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in islice(entries, MOST_SEEN)]
    except OSError:
        return []
    wanted = [name for name in names if name.startswith(start) and (start.startswith(".") or not name.startswith("."))]
    fit = sorted(name for name in wanted if name.isprintable() and not any(map(str.isspace, name)))
    return [(f"{lead}{name}", "") for name in fit[:MOST_OFFERED]]
