"""File kinds, detected from the first bytes: text in some encoding, an image, or binary data of a known kind. Names don't
matter.

This module also owns the form of a text: encoding, byte order mark and line ends, removed on reading and restored on
writing. Invariant: `encode(form, decode(data).text)` gives back `data`, even with invalid UTF-8 and mixed line ends. Pure:
bytes in, a value out.
"""

from __future__ import annotations

import codecs
from typing import NamedTuple, TypeAlias

from ..core.errors import DiskError

# Enough for every signature (tar's is at 257) and for a fair sample of text.
HEAD_BYTES = 8_192
# A text with a few odd bytes is still worth reading; in random data about a third is outside the printable range.
_MOST_ODD = 0.3

_IMAGES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_SIGNATURES = (
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive (or an office document, jar or wheel)"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\x00", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"\x7fELF", "an ELF program or library"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program or library"),
    (b"\xca\xfe\xba\xbe", "a Java class or a Mach-O program"),
    (b"MZ", "a Windows program or library"),
    (b"\x00asm", "WebAssembly"),
    (b"SQLite format 3\x00", "an SQLite database"),
    (b"PAR1", "Parquet data"),
    (b"OggS", "Ogg audio or video"),
    (b"ID3", "MP3 audio"),
    (b"fLaC", "FLAC audio"),
    (b"wOFF", "a font"),
    (b"wOF2", "a font"),
    (b"BM", "a BMP image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"\x93NUMPY", "a NumPy array"),
)
# These signatures also begin ordinary words, so they count only if something else indicates binary data.
_WEAK = frozenset({b"MZ", b"BM", b"BZh", b"ID3", b"PAR1", b"OggS"})
_ALLOWED = frozenset(b"\t\n\x0b\x0c\r\x1b\x08") | frozenset(range(0x20, 0x7F)) | frozenset(range(0x80, 0x100))
_ODD = bytes(range(256)).translate(None, bytes(_ALLOWED))


class TextKind(NamedTuple):
    codec: str  # utf-8 | utf-16-le | utf-16-be
    bom: bytes = b""


class ImageKind(NamedTuple):
    media_type: str


class BinaryKind(NamedTuple):
    kind: str


FileKind: TypeAlias = TextKind | ImageKind | BinaryKind


def detect_kind(head: bytes) -> FileKind:
    """Detect the kind of a file. `head` is its beginning, up to HEAD_BYTES."""
    if (media_type := _picture(head)) is not None:
        return ImageKind(media_type)
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return BinaryKind("UTF-32 text")
    for bom, codec in ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")):
        if head.startswith(bom):
            return TextKind(codec, bom)
    controls = len(head) - len(head.translate(None, _ODD))
    # The end of the head may cut the last character.
    broken = max(0, head.decode("utf-8", "replace").count("\ufffd") - head.count(b"\xef\xbf\xbd") - 1)
    # Latin-1 text has few letters beyond ASCII; in random data half of the bytes are.
    odd = b"\0" in head or controls + broken > _MOST_ODD * len(head)
    for signature, kind in _SIGNATURES:
        if head.startswith(signature) and (odd or signature not in _WEAK):
            return BinaryKind(kind)
    if head[257:262] == b"ustar":
        return BinaryKind("a tar archive")
    if head[4:8] == b"ftyp":
        return BinaryKind("MP4 or HEIF media")
    if b"\0" in head:
        return BinaryKind("binary data")
    return BinaryKind("binary data, or text in an encoding that is neither UTF-8 nor UTF-16") if odd else TextKind("utf-8")


def _picture(head: bytes) -> str | None:
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return next((media_type for signature, media_type in _IMAGES if head.startswith(signature)), None)


class TextForm(NamedTuple):
    codec: str = "utf-8"
    bom: bytes = b""
    line_end: str = "\n"  # used by most lines


class DecodedText(NamedTuple):
    text: str  # with the line ends of the file
    form: TextForm


def decode(data: bytes, path: str) -> DecodedText:
    """Decode a text file and detect its form. Raises DiskError if the file is not text."""
    kind = detect_kind(data[:HEAD_BYTES])
    if not isinstance(kind, TextKind):
        raise DiskError(path, f"is {kind[0]}, not text", "use a command that understands it")
    codec, bom = kind
    try:
        # Invalid UTF-8 bytes survive as lone surrogates; UTF-16 has no such escape, so it must be valid.
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
    """Split into lines without their ends; nothing follows the last line end."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines
