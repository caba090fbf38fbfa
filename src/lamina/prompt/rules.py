"""Rules: `.claude/rules/**/*.md`. A rule with `paths:` in its front matter waits until a matching file is read.

    ---
    paths: ["src/api/**/*.ts", "*.{json,yaml}"]
    ---

The globs are relative to the directory that contains `.claude` (for the user's own rules: the working directory). Within a
name they support `*`, `?`, `[a-z]`, `[^a-z]` and `\\`; `**` spans any number of directories, and `{a,b}` gives alternatives.
`core.globs` does the matching. Matching is pure; listing looks at names only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from ..core.front_matter import read_front_matter, split_front_matter
from ..core.globs import BRACES_WITH_COMMA, PathGlob, compile_path, expand_braces, match_path, quote_name

InstructionKind: TypeAlias = Literal["managed", "user", "project", "local"]

# Rules are written by hand; more entries or levels than this are a mistake or an attack.
MOST_ENTRIES = 1_000
DEEPEST = 8
MOST_GLOBS = 100

# YAML gives these first characters another meaning, and most people write globs without quotes.
_BARE_GLOB = r"[ \t]*(?:paths[ \t]*:|-)[ \t]+(?=[*{!])"


class ScopedRule(msgspec.Struct, frozen=True):
    path: Path
    kind: InstructionKind
    base: Path  # what the globs are relative to
    globs: tuple[str, ...]


class RuleScope(msgspec.Struct, frozen=True):
    """A file's text without its front matter. `globs` is empty for a rule that always applies."""

    text: str
    globs: tuple[str, ...] = ()
    problem: str | None = None


def read_scope(text: str) -> RuleScope:
    split = split_front_matter(text)
    head, body, problem = split.head, split.body, split.problem
    if head is None:
        return RuleScope(text, (), problem)
    lines = list[str]()
    for line in head.splitlines():
        if (lead := re.match(_BARE_GLOB, line)) is not None:
            glob = line[lead.end() :].split(" #", 1)[0].strip().replace("'", "''")
            line = f"{lead[0]}'{glob}'"
        lines.append(f"{line}\n")
    front = read_front_matter(f"---\n{''.join(lines)}---\n")
    if front.problem is not None:
        return RuleScope(text, (), front.problem)
    value = front.fields.get("paths", "")
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
        return RuleScope(body, (), "has a `paths` value that is neither a string nor a list of strings")
    globs = [glob for item in listed for part in _parts(str(item)) if (glob := part.strip().strip("'\""))]
    return RuleScope(body, tuple(globs[:MOST_GLOBS]))


def _parts(text: str) -> list[str]:
    """Split at commas outside braces."""
    parts = [""]
    depth = 0
    for char in text:
        depth += (char == "{") - (char == "}")
        if char == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def rules_for(rules: Iterable[ScopedRule], path: Path) -> tuple[ScopedRule, ...]:
    """Return the rules that apply to a file, given by its resolved path."""
    below = ((rule, path.relative_to(rule.base).as_posix()) for rule in rules if path.is_relative_to(rule.base))
    return tuple(rule for rule, relative in below if any(matches(glob, relative) for glob in rule.globs))


def rule_files(directory: Path) -> list[Path]:
    """List the markdown files below a directory, sorted by path, so that the order is the same on every file system."""
    rules: list[str] = []
    visited: set[str] = set()
    waiting = [("", 0)]
    entries = 0
    while waiting and entries < MOST_ENTRIES:
        below, depth = waiting.pop()
        place = os.path.join(directory, below)
        real = os.path.realpath(place)
        if real in visited or depth > DEEPEST:
            continue
        visited.add(real)
        try:
            names = sorted(os.listdir(place))[: MOST_ENTRIES - entries]
        except OSError:
            continue
        entries += len(names)
        rules += [f"{below}{name}" for name in names if name.endswith(".md")]
        others = [name for name in names if not name.endswith(".md") and not name.startswith(".")]
        waiting += [(f"{below}{name}/", depth + 1) for name in others if os.path.isdir(os.path.join(place, name))]
    return [directory / relative for relative in sorted(rules)]


# Longer than any path to be matched.
LONGEST = 1_024

# A set ends at the first `]` after its first character. A backslash escapes the next character, except inside a set.
_PIECE = r"(?s)\[(?P<set>.[^\]]*)\]|(?P<wild>[*?])|\\?(?P<letter>.)"


def matches(pattern: str, path: str) -> bool:
    """Tell whether the whole path matches. Both arguments are relative to the same directory, or both are absolute."""
    parts = path.strip("/").split("/")
    return any(match_path(glob, parts) for glob in _compiled(pattern))


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> tuple[PathGlob, ...]:
    globs = list[PathGlob]()
    for alternative in expand_braces(pattern, BRACES_WITH_COMMA) if len(pattern) <= LONGEST else ():
        names = [name for name in alternative.removeprefix("./").split("/") if name]
        spelled = [name if name == "**" else re.sub(_PIECE, _spelled, name) for name in names]
        # A pattern that ends in a slash matches everything inside the directory.
        globs.append(compile_path([*spelled, "**"] if alternative.endswith("/") else spelled))
    return tuple(globs)


def _spelled(piece: re.Match[str]) -> str:
    """Translate one piece of a name to the engine's syntax. A set that excludes nothing matches any character."""
    if (inside := piece["set"]) is not None:
        if inside[0] in "!^":
            return f"[!{inside[1:]}]" if inside[1:] else "?"
        # A reversed range is empty. Without it the set may begin with `!`, which has no special meaning here; names never hold
        # a NUL.
        while re.match(r".-.", inside, re.DOTALL) and inside[0] > inside[2]:
            inside = inside[3:]
        return f"[\0{inside}]" if inside[:1] in ("", "!") else f"[{inside}]"
    return piece["wild"] or quote_name(piece["letter"])
