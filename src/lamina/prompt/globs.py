"""Glob patterns of instruction files, over paths with `/`: `*`, `?`, `[a-z]`, `[^a-z]` and `\\` within a name, `**` over any number of
directories, `{a,b}`. Matching is the engine's (`core.globs`); this module knows the spelling."""

from __future__ import annotations

import re
from functools import lru_cache

from ..core.globs import BRACES_WITH_COMMA, PathGlob, compile_path, expand_braces, match_path, quote_name

# Longer than any path that is matched.
LONGEST = 1_024

# A set ends at the first `]` behind its first character; a backslash protects what follows, a set aside.
_PIECE = re.compile(r"\[(?P<set>.[^\]]*)\]|(?P<wild>[*?])|\\?(?P<letter>.)", re.DOTALL)


def matches(pattern: str, path: str) -> bool:
    """Whether the whole path fits. Both are relative to the same directory, or both absolute."""
    parts = path.strip("/").split("/")
    return any(match_path(glob, parts) for glob in _compiled(pattern))


@lru_cache(maxsize=512)
def _compiled(pattern: str) -> tuple[PathGlob, ...]:
    if len(pattern) > LONGEST:
        return ()
    return tuple(compile_path(_components(alternative)) for alternative in expand_braces(pattern, BRACES_WITH_COMMA))


def _components(pattern: str) -> list[str]:
    names = [name for name in pattern.removeprefix("./").split("/") if name]
    # A directory means what is in it.
    return [*(name if name == "**" else _PIECE.sub(_spelled, name) for name in names), *(["**"] if pattern.endswith("/") else [])]


def _spelled(piece: re.Match[str]) -> str:
    """One piece of a name as the engine spells it. A set that excludes nothing is any character."""
    if (inside := piece["set"]) is not None:
        if inside[0] in "!^":
            return f"[!{inside[1:]}]" if inside[1:] else "?"
        # A reversed range is empty. Without it the set may begin with `!`, which is no sign here; no name holds a NUL.
        while re.match(r".-.", inside, re.DOTALL) and inside[0] > inside[2]:
            inside = inside[3:]
        return f"[\0{inside}]" if inside[:1] in ("", "!") else f"[{inside}]"
    return piece["wild"] or quote_name(piece["letter"])
