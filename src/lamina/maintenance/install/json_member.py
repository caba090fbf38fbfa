"""One entry of Lamina's in a JSON file of the user's, which may have comments and trailing commas. Pure: text in, text out.

Only Lamina's part of the text comes and goes; every other character stays. Taking the entry out gives back the text as it was: a group or
a file that Lamina made has no space after its opening brace, and an entry in a group of the user's has one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from ...core.errors import InputError

_TOKEN = re.compile(r'(?P<skip>[\s\ufeff]+|//[^\n]*|/\*.*?\*/)|"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s"{}\[\],:/]+|.', re.DOTALL)
_SPACE = re.compile(r"\s*")


class _Member(NamedTuple):
    """The positions of a member of an object."""

    name: str
    start: int
    value: int
    end: int


def with_member(old: str | None, group: str, name: str, value: dict[str, Any], path: str) -> str:
    """Return the text with `value` under `group` and `name`, in place of an earlier value."""
    written = json.dumps(value, ensure_ascii=False)
    if old is None or not old.strip():
        return f'{{"{group}": {{"{name}": {written}}}}}\n'
    before = read_text(old, path)
    if not isinstance(before.get(group, {}), dict):
        raise InputError(path, f"its {group} is not an object, so nothing was changed", "correct it, then try again")
    top = old.index("{", _first(old))
    outer = _members(old, top).get(group)
    if outer is None:
        new = _inserted(old, top, f'"{group}": {{"{name}": {written}}}')
    elif (inner := _members(old, outer.value).get(name)) is None:
        new = _inserted(old, outer.value, f'"{name}": {written}')
    else:
        new = old[: inner.value] + written + old[inner.end :]
    expected = {**before, group: {**before.get(group, {}), name: value}}
    return _checked(new, expected, path)


def without_member(old: str, group: str, name: str, path: str) -> str | None:
    """Return the text without the entry, or None if the file was Lamina's and holds nothing else."""
    before = read_text(old, path)
    if not isinstance(before.get(group), dict) or name not in before[group]:
        return old
    top = old.index("{", _first(old))
    outer = _members(old, top)[group]
    inner = _members(old, outer.value)[name]
    others = {other: value for other, value in before[group].items() if other != name}
    is_ours = not others and old[outer.value + 1] == '"' and old[inner.end] == "}"
    if not is_ours:
        return _checked(_removed(old, outer.value, inner), {**before, group: others}, path)
    if len(before) == 1 and old[top + 1] == '"' and old[outer.end :].strip() == "}":
        return None
    return _checked(_removed(old, top, outer), {key: value for key, value in before.items() if key != group}, path)


def read_text(text: str, path: str) -> dict[str, Any]:
    """Read a JSON object with comments and trailing commas, or refuse the file with one sentence."""
    words = [found[0] for found in _TOKEN.finditer(text) if not found["skip"]]
    kept = [word for word, after in zip(words, [*words[1:], ""], strict=True) if not (word == "," and after in ("}", "]"))]
    try:
        document: Any = json.loads(" ".join(kept))
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"is not valid JSON ({error}), so nothing was changed", "correct it, then try again") from None
    if not isinstance(document, dict):
        raise InputError(path, "does not hold a JSON object, so nothing was changed", "correct it, then try again")
    return document


def _checked(new: str, expected: dict[str, Any], path: str) -> str:
    if read_text(new, path) != expected:
        raise InputError(path, "could not be changed safely, so nothing was changed", "change its entry `lamina` by hand")
    return new


def _first(text: str) -> int:
    """Return the position of the first character that is neither space nor comment."""
    return next(found.start() for found in _TOKEN.finditer(text) if not found["skip"])


def _members(text: str, start: int) -> dict[str, _Member]:
    """Return the members of the object whose brace is at `start`. Of a repeated name the last one counts, as for readers."""
    return {member.name: member for member in _spans(text, start)}


def _spans(text: str, start: int) -> Iterator[_Member]:
    depth, key, value, end = 0, None, -1, -1
    for found in _TOKEN.finditer(text, start):
        word = found[0]
        if found["skip"]:
            continue
        if depth == 1 and word in (",", "}"):
            if key is not None:
                yield _Member(json.loads(key[0]), key.start(), value, end)
            key, value = None, -1
            if word == "}":
                return
            continue
        if depth == 1 and key is None:
            key = found
        elif depth == 1 and word != ":" and value < 0:
            value = found.start()
        depth += (word in ("{", "[")) - (word in ("}", "]"))
        end = found.end()


def _inserted(text: str, brace: int, member: str) -> str:
    """Insert a member behind a brace, with the space that the next one has, or one blank."""
    space = _SPACE.match(text, brace + 1)
    gap = (space[0] if space else "") or " "
    comma = "," if _members(text, brace) else ""
    return f"{text[: brace + 1]}{gap}{member}{comma}{text[brace + 1 :]}"


def _removed(text: str, brace: int, member: _Member) -> str:
    """Remove a member, the space between it and the brace, and one comma: the one behind it, or else the one before."""
    start = member.start if text[brace + 1 : member.start].strip() else brace + 1
    words = [found for found in _TOKEN.finditer(text, brace) if not found["skip"]]
    behind = next(found for found in words if found.start() >= member.end)
    before = next(found for found in reversed(words) if found.end() <= member.start)
    commas = [found for found in (behind, before) if found[0] == ","][:1]
    gone = sorted([(start, member.end), *((found.start(), found.end()) for found in commas)], reverse=True)
    for first, end in gone:
        text = text[:first] + text[end:]
    return text
