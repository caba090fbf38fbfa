"""JSON from outside: one document, or a document a line; what is wrong is said with its line.

Owns how foreign JSON is read. Invariant: any text ends in values, sentences or InputError; depth and size do not matter. Pure.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import msgspec

from ...core.errors import InputError

_BYTE = re.compile(r"\(byte (\d+)\)")


class JsonRow(NamedTuple):
    line: int
    value: Any


def document(text: str, where: str, *, strict: bool = True) -> Any:
    """The one document a text holds; InputError with the line otherwise, or None when not `strict`."""
    data = text.encode("utf-8", "replace")
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        problem = "is nested too deeply"
    except msgspec.DecodeError as error:
        # msgspec counts bytes; without a number the text ended too early.
        place = _BYTE.search(str(error))
        line = data.count(b"\n", 0, int(place[1]) if place else len(data)) + 1
        problem = f"is no JSON at line {line}"
    if not strict:
        return None
    raise InputError(where, problem, "mend it there or export it again")


def rows(text: str) -> tuple[list[JsonRow], list[str]]:
    """The documents of a text that has one on each line; blank lines count, and hold none."""
    found, problems = list[JsonRow](), list[str]()
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            found.append(JsonRow(number, msgspec.json.decode(line.encode("utf-8", "replace"))))
        except (msgspec.DecodeError, RecursionError):
            problems.append(f"line {number}: is no JSON and is left out")
    return found, problems
