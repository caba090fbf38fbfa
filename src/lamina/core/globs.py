"""Glob matching for the Glob and Grep tools, permission rules, instruction rules and shell wildcards.

A name pattern uses the syntax of `fnmatch`: `*`, `?`, `[…]`, `[!…]`. Each dialect translates its own syntax (backslashes, `[^…]`,
quotes) into that one. A path pattern is a sequence of name patterns, in which `**` matches any number of components.

Patterns come from models and repositories, so the time of a match must be bounded by the pattern's length times the path's length.
For this reason a name pattern becomes a regular expression of atomic groups, and a path match backtracks only to the last `**`.
This module uses only the standard library, because the process that searches without ripgrep loads it.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

# `{a,b}{c,d}…` doubles with every pair of braces; no real pattern needs more alternatives.
MAX_ALTERNATIVES = 64
# The two readings of braces: `{a}` is a group in the first, and literal text in the second, as in bash.
ANY_BRACES = re.compile(r"\{([^{}]*)\}")
BRACES_WITH_COMMA = re.compile(r"\{([^{,]*,[^{}]*)\}")

# One name pattern for each component; None matches any number of components.
PathGlob: TypeAlias = Sequence[re.Pattern[str] | None]


@lru_cache(maxsize=1_024)
def compile_name(pattern: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """Return the regular expression for one name; use its `match`."""
    return re.compile(fnmatch.translate(pattern), re.IGNORECASE if ignore_case else 0)


def compile_path(components: Sequence[str]) -> PathGlob:
    return tuple(None if component == "**" else compile_name(component) for component in components)


def match_path(glob: PathGlob, path: Sequence[str]) -> bool:
    """Whether the glob matches all components. On a mismatch only the last `**` takes one more component; earlier ones never help."""
    position = matched = 0
    star, resume = -1, 0
    while matched < len(path):
        name = glob[position] if position < len(glob) else _NEVER
        if name is None:
            star, resume = position, matched
            position += 1
        elif name.match(path[matched]):
            position, matched = position + 1, matched + 1
        elif star >= 0:
            resume += 1
            position, matched = star + 1, resume
        else:
            return False
    return all(component is None for component in glob[position:])


_NEVER = re.compile(r"(?!)")


def quote_name(text: str) -> str:
    """Return the pattern that matches only this text."""
    return re.sub(r"([*?\[])", r"[\1]", text)


def split_path(pattern: str) -> tuple[str, ...]:
    """Return the components of a path or pattern, without empty ones and `.`."""
    return tuple(part for part in pattern.split("/") if part not in ("", "."))


def expand_braces(pattern: str, braces: re.Pattern[str] = ANY_BRACES) -> list[str]:
    """Expand the braces of a pattern. If there are too many alternatives, return only the first MAX_ALTERNATIVES."""
    patterns, waiting = list[str](), [pattern]
    while waiting and len(patterns) < MAX_ALTERNATIVES:
        text = waiting.pop(0)
        pair = braces.search(text)
        if pair is None:
            patterns.append(text)
        else:
            waiting += [text[: pair.start()] + choice + text[pair.end() :] for choice in pair[1].split(",")]
            del waiting[MAX_ALTERNATIVES:]
    return list(dict.fromkeys(patterns))
