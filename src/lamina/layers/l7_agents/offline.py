"""What an agent is doing, without a model (O1): told from its newest call. Pure."""

from __future__ import annotations

import posixpath
import re

from ...core.blocks import Wire
from .summary import find_calls

# What each tool's call is in a person's words, and the argument that names what it is about.
_DOING = {
    "Read": ("Reading the file", "file_path"),
    "Write": ("Writing the file", "file_path"),
    "Edit": ("Changing the file", "file_path"),
    "Grep": ("Searching files for", "pattern"),
    "Glob": ("Looking for files", "pattern"),
    "Bash": ("Running the command", "command"),
}
LONGEST = 40
NOTHING = "Nothing yet"


def answer(request: Wire) -> list[Wire]:
    """The first call, from the newest back, that names something; where there is none it says so, which nobody shows."""
    for tool, given in find_calls(request.get("messages", ())):
        doing, argument = _DOING.get(tool, ("", ""))
        about = _named(given.get(argument)) if doing else ""
        if about:
            return [{"type": "text", "text": f"{doing} {about}"}]
    return [{"type": "text", "text": NOTHING}]


def _named(value: object) -> str:
    """The last part of a path, or of a command the first word that is a file's name, else the program's."""
    if not isinstance(value, str) or not value.strip():
        return ""
    words = value.split()
    word = next((each for each in words[1:] if re.search(r"\w\.\w", each)), words[0])
    return posixpath.basename(word.rstrip("/").strip("\"'"))[:LONGEST]
