"""The form of a text file: encoding, byte order mark and line ends, taken off when it is read and put back when it is written.

Owns the round trip. Invariant: `encode(form, decode(data).text)` gives back `data`, also where bytes are no UTF-8 and where line
ends are mixed.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.errors import DiskError
from .file_kinds import HEAD_BYTES, TextKind, detect_kind


class TextForm(NamedTuple):
    codec: str = "utf-8"
    bom: bytes = b""
    line_end: str = "\n"  # what most lines end with


class DecodedText(NamedTuple):
    text: str  # with the line ends of the file
    form: TextForm


def decode(data: bytes, path: str) -> DecodedText:
    """DiskError for what is no text."""
    kind = detect_kind(data[:HEAD_BYTES])
    if not isinstance(kind, TextKind):
        raise DiskError(path, f"is {kind[0]}, not text", "write it with a command that understands it")
    codec, bom = kind
    try:
        # Bytes that are no UTF-8 survive as lone surrogates; UTF-16 has no such bytes, only faults.
        text = data[len(bom) :].decode(codec, "surrogateescape" if codec == "utf-8" else "strict")
    except UnicodeDecodeError as error:
        raise DiskError(path, f"is not valid {codec.upper()} (byte {error.start + len(bom):,})", "repair it first") from error
    windows = text.count("\r\n")
    return DecodedText(text, TextForm(codec, bom, "\r\n" if windows * 2 > text.count("\n") else "\n"))


def encode(form: TextForm, text: str) -> bytes:
    return form.bom + text.encode(form.codec, "surrogateescape" if form.codec == "utf-8" else "strict")


def with_line_ends(text: str, line_end: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", line_end)


def split_lines(text: str) -> list[str]:
    """Without their ends; behind the last line end there is no line."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines
