"""Patterns for paths: `*`, `?`, `[…]` inside a component, `**` for any number of components, `{a,b}` for either.

Owns what a pattern means, for Glob, for Grep without ripgrep and for .gitignore. Pure, and standard library only: the search
worker loads it. Invariant: matching takes time in proportion to pattern times path, whatever the pattern: each component is
matched by itself with atomic groups, and `**` by remembering where it has been.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from functools import lru_cache

# `{a,b}{c,d}…` doubles with every brace; nobody means more.
MAX_ALTERNATIVES = 64


def expand(pattern: str) -> list[str]:
    """The patterns without braces that a pattern stands for; a brace that is never closed is a letter."""
    done, open_ones = list[str](), [pattern]
    while open_ones and len(done) < MAX_ALTERNATIVES:
        text = open_ones.pop(0)
        found = re.search(r"\{([^{}]*)\}", text)
        if found is None:
            done.append(text)
        else:
            open_ones += [text[: found.start()] + part + text[found.end() :] for part in found[1].split(",")]
            del open_ones[MAX_ALTERNATIVES:]
    return list(dict.fromkeys(done))


def components(pattern: str) -> tuple[str, ...]:
    return tuple(part for part in pattern.split("/") if part not in ("", "."))


def matches(pattern: Sequence[str], path: Sequence[str]) -> bool:
    """Whether all of `path` is matched by all of `pattern`, both as components."""
    # reached[i]: the first i components of the pattern match the path so far; one pass over the path.
    reached = _skip_stars(pattern, {0})
    for name in path:
        step = {
            place + 1 for place in reached if place < len(pattern) and pattern[place] != "**" and one(pattern[place]).match(name)
        }
        stay = {place for place in reached if place < len(pattern) and pattern[place] == "**"}
        reached = _skip_stars(pattern, step | stay)
        if not reached:
            return False
    return len(pattern) in reached


def _skip_stars(pattern: Sequence[str], places: set[int]) -> set[int]:
    """`**` also matches no component at all."""
    todo = list(places)
    while todo:
        place = todo.pop()
        if place < len(pattern) and pattern[place] == "**" and place + 1 not in places:
            places.add(place + 1)
            todo.append(place + 1)
    return places


@lru_cache(maxsize=512)
def one(pattern: str) -> re.Pattern[str]:
    """A pattern for one component."""
    return re.compile(fnmatch.translate(pattern))
