"""What reaches a person's terminal: everything that was said somewhere is data, and no control sequence of it is obeyed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from io import TextIOWrapper
from typing import Any


def printable(text: str) -> str:
    """Text without control characters; lines and tabs stay."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in text)


def sentence(text: str) -> str:
    """A text as one line."""
    return printable(" ".join(text.split()))


def shorten(text: str, length: int) -> str:
    """At most so many characters."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def capped(lines: Sequence[str], most: int, more: str = "… and {:,} more") -> list[str]:
    """The first of them, and how many more there are."""
    return [*lines[:most], more.format(len(lines) - most)] if len(lines) > most else [*lines]


def counted(number: int, thing: str) -> str:
    """`1 call`, `2 calls`, `1,000 memories`."""
    more = f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}s"
    return f"{number:,} {thing if number == 1 else more}"


def local_time(seconds: float) -> datetime:
    """A file's time; one beyond all calendars becomes the nearest that is in them."""
    try:
        return datetime.fromtimestamp(seconds).astimezone()
    except (ValueError, OverflowError, OSError):
        return (datetime.max if seconds > 0 else datetime.min).replace(tzinfo=UTC)


def minute(seconds: float) -> str:
    return local_time(seconds).strftime("%Y-%m-%d %H:%M")


def utc_time(seconds: float) -> str:
    """For programs."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def document(value: Any) -> str:
    """One JSON document in one line: what the terminal must not obey, or the stream cannot carry, is escaped."""
    import json

    encoding = (sys.stdout.encoding or "").lower()
    text = json.dumps(value, ensure_ascii=not encoding.startswith("utf"))
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def mend_streams() -> None:
    """A stream that was closed before we started, or that cannot show every character, is no reason to fail."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # it lives as long as the process
        elif mode == "w" and isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
