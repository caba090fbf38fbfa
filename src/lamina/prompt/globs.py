"""Glob patterns over paths with `/`: `*` and `?` within a name, `**` over any number of directories, `[a-z]`, `{a,b}`.

Patterns come from repositories, so matching is bounded: no regular expression is built, and the cost of one match is at most the
product of the two lengths, whatever the pattern holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

# Longer than any path that is matched.
LONGEST = 1_024
# `{a,b}{c,d}…` doubles with every pair; past this many the rest is left out.
MOST_ALTERNATIVES = 64

T = TypeVar("T")
Fits = Callable[[T], bool]
# What takes up one item: a character of a name, a name of a path. None takes up any number: `*` in a name, `**` in a path.
Tokens = Sequence[Fits[T] | None]


def matches(pattern: str, path: str) -> bool:
    """Whether the whole path fits. Both are relative to the same directory, or both absolute."""
    parts = path.strip("/").split("/")
    return any(_fits(names, parts) for names in _compiled(pattern))


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> tuple[Tokens[str], ...]:
    if len(pattern) > LONGEST:
        return ()
    return tuple(_path(alternative) for alternative in _alternatives(pattern))


def _path(pattern: str) -> Tokens[str]:
    names = [name for name in pattern.removeprefix("./").split("/") if name]
    # A directory means what is in it.
    if pattern.endswith("/"):
        names.append("**")
    return tuple(None if name == "**" else _named(name) for name in names)


def _named(pattern: str) -> Fits[str]:
    tokens = _tokens(pattern)
    return lambda name: _fits(tokens, name)


def _tokens(pattern: str) -> Tokens[str]:
    tokens: list[Fits[str] | None] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        close = pattern.find("]", at + 2) if char == "[" else -1
        if char == "*":
            tokens.append(None)
        elif char == "?":
            tokens.append(lambda _: True)
        elif close > 0:
            tokens.append(_one_of(pattern[at + 1 : close]))
            at = close
        else:
            at += char == "\\" and at + 1 < len(pattern)
            tokens.append(pattern[at].__eq__)
        at += 1
    return tuple(tokens)


def _one_of(inside: str) -> Fits[str]:
    wanted = inside[0] not in "!^"
    chars = inside if wanted else inside[1:]
    ranges: list[tuple[str, str]] = []
    at = 0
    while at < len(chars):
        is_range = chars[at + 1 : at + 2] == "-" and at + 2 < len(chars)
        ranges.append((chars[at], chars[at + 2] if is_range else chars[at]))
        at += 3 if is_range else 1
    return lambda char: any(low <= char <= high for low, high in ranges) is wanted


def _fits(tokens: Tokens[T], items: Sequence[T]) -> bool:
    """Whether the tokens take up all items. On a mismatch only the last star has to take one more: an earlier one never helps."""
    token = item = 0
    star, resume = -1, 0
    while item < len(items):
        fit = tokens[token] if token < len(tokens) else _never
        if fit is None:
            star, resume = token, item
            token += 1
        elif fit(items[item]):
            token, item = token + 1, item + 1
        elif star >= 0:
            resume += 1
            token, item = star + 1, resume
        else:
            return False
    return all(left is None for left in tokens[token:])


def _never(_: object) -> bool:
    return False


def _alternatives(pattern: str) -> list[str]:
    """Braces spelled out, left to right; braces inside braces are taken apart in later rounds."""
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        one = waiting.pop(0)
        inner = _innermost(one)
        if inner is None or len(done) + len(waiting) >= MOST_ALTERNATIVES:
            done.append(one)
            continue
        start, end = inner
        waiting += [one[:start] + choice + one[end + 1 :] for choice in one[start + 1 : end].split(",")]
    return done[:MOST_ALTERNATIVES]


def _innermost(pattern: str) -> tuple[int, int] | None:
    """The first pair of braces with a comma and no brace inside."""
    end = pattern.find("}")
    while end >= 0:
        start = pattern.rfind("{", 0, end)
        if start >= 0 and "," in pattern[start:end]:
            return start, end
        end = pattern.find("}", end + 1)
    return None
