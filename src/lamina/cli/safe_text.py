"""What reaches a person's terminal: everything that was said somewhere is data, and no control sequence of it is obeyed."""

from __future__ import annotations

import os
import sys
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
