"""Reads grammar that is data: regular expressions under headings, in a file `NAME.txt` next to this module.

Each line is one alternative. A heading is `## name`, or `## name i` for an expression that ignores case (`m`: one that matches in every
line). `{name}` stands for the expression under an earlier heading, and a line that begins with `# ` is a comment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_HEADING = re.compile(r"## (?P<name>\w+)(?: (?P<flags>[im]+))?")
_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE}


@cache
def read_patterns(name: str) -> Mapping[str, re.Pattern[str]]:
    """Return the expressions of a file by the names of their headings."""
    expressions: dict[str, str] = {}
    patterns: dict[str, re.Pattern[str]] = {}
    for part in (Path(__file__).with_name(f"{name}.txt")).read_text("utf-8").split("\n\n"):
        heading, *lines = [line for line in part.splitlines() if not line.startswith("# ")]
        match = _HEADING.fullmatch(heading)
        assert match is not None, heading
        joined = re.sub(r"\{([a-z_]+)\}", lambda place: expressions[place[1]], "|".join(lines))
        expressions[match["name"]] = joined
        patterns[match["name"]] = re.compile(joined, sum(_FLAGS[flag] for flag in match["flags"] or ""))
    return patterns
