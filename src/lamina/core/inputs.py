"""What callers hand in, as private plain values: nothing they do to their own objects later reaches what was sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import msgspec

from .blocks import Wire, scrub, text, unmarked
from .errors import InputError

# A session's own to fill: an option of that name would overrule what it keeps account of.
RESERVED = frozenset({"model", "max_tokens", "messages", "system", "tools"})
TTLS = ("5m", "1h")
# What a result may be made of; any other list is data of the tool's own that happens to have a field `type`.
PARTS = ("text", "image", "document", "search_result", "tool_reference")


@runtime_checkable
class Readable(Protocol):
    """An open file, pipe or response. Whoever opened it closes it."""

    def read(self, size: int, /) -> Any: ...


# A tool's output before it is decided whether it may stay in the conversation: content, or bytes and streams as they are.
Output: TypeAlias = str | list[Wire] | memoryview | Readable


class Given(NamedTuple):
    """What a caller said a request should carry; None: nothing."""

    system: list[Wire] | None
    tools: list[Wire] | None
    options: Wire | None
    max_tokens: int | None
    cache_ttl: str | None


def read_given(
    *,
    system: object,
    tools: object,
    options: object,
    max_tokens: object,
    cache_ttl: object,
) -> Given:
    """The types are those of Session's arguments; whoever has no type checker is told here."""
    if max_tokens is not None and (not isinstance(max_tokens, int) or max_tokens < 1):
        raise InputError("max_tokens", f"{max_tokens!r} is no number of tokens", "give a whole number of at least 1")
    if not (cache_ttl is None or (isinstance(cache_ttl, str) and cache_ttl in TTLS)):
        raise InputError("cache_ttl", f"{cache_ttl!r} is no lifetime of a cache", f"use one of {', '.join(TTLS)} or None")
    return Given(
        system_blocks(system) if system is not None else None,
        plain_rows(tools, "tools") if tools is not None else None,
        plain_options(options) if options is not None else None,
        max_tokens,
        cache_ttl,
    )


def plain_options(options: object) -> Wire:
    if not isinstance(options, Mapping):
        raise InputError("options", "must be an object")
    if taken := sorted(RESERVED & set(options)):
        raise InputError("options", f"{', '.join(taken)} belongs to the session", "hand it over by its own name")
    return plain_rows([options], "options")[0]


def system_blocks(system: object) -> list[Wire]:
    if isinstance(system, str):
        return [text(system).wire] if system else []
    return plain_rows(system, "system")


def plain_rows(rows: object, where: str) -> list[Wire]:
    """Tools or system blocks, copied, without cache marks."""
    if isinstance(rows, str) or not isinstance(rows, Sequence) or not all(isinstance(row, Mapping) for row in rows):
        raise InputError(where, "must be a list of objects")
    try:
        plain: list[Wire] = msgspec.json.decode(msgspec.json.encode(scrub([dict(row) for row in rows])))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(where, f"is no plain JSON ({error})") from error
    return [dict(unmarked(row)) for row in plain]


def result_output(output: object) -> Output:
    """A tool's output, not copied: text, content blocks, bytes, or an open file, pipe or response that is read in pieces.

    A path is text like any other value: a tool that returns one means its name. Open the file to hand over what is in it.
    """
    match output:
        case str():
            return output
        case None:
            return ""
        case bytes() | bytearray() | memoryview():
            view = memoryview(output)
            return view.cast("B") if view.contiguous else memoryview(view.tobytes())
        case Readable():
            return output
        case _:
            return _content(output)


def _content(output: object) -> str | list[Wire]:
    if isinstance(output, Sequence) and output and all(_is_part(part) for part in output):
        return [dict(part) for part in output]
    try:
        return msgspec.json.encode(scrub(output)).decode()
    except (TypeError, ValueError, RecursionError):
        return str(output)


def _is_part(part: object) -> bool:
    if not isinstance(part, Mapping) or part.get("type") not in PARTS:
        return False
    return part["type"] != "text" or isinstance(part.get("text"), str)
