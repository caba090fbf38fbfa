"""File kinds, detected from the first bytes."""

from __future__ import annotations

import codecs
import random

import pytest

from lamina.tools.file_kinds import BinaryKind, FileKind, ImageKind, TextKind, detect_kind


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"", TextKind("utf-8")),
        (b"print('x')\n", TextKind("utf-8")),
        ("schön 漢字\n".encode(), TextKind("utf-8")),
        (b"caf\xe9 au lait, s'il vous pla\xeet\n", TextKind("utf-8")),
        (b"\x1b[31mred\x1b[0m\n", TextKind("utf-8")),
        (codecs.BOM_UTF8 + b"x", TextKind("utf-8", codecs.BOM_UTF8)),
        (codecs.BOM_UTF16_LE + "x".encode("utf-16-le"), TextKind("utf-16-le", codecs.BOM_UTF16_LE)),
        (codecs.BOM_UTF16_BE + "x".encode("utf-16-be"), TextKind("utf-16-be", codecs.BOM_UTF16_BE)),
        (codecs.BOM_UTF32_LE + "x".encode("utf-32-le"), BinaryKind("UTF-32 text")),
        (b"\x89PNG\r\n\x1a\n\0\0", ImageKind("image/png")),
        (b"\xff\xd8\xff\xe0", ImageKind("image/jpeg")),
        (b"GIF89a", ImageKind("image/gif")),
        (b"RIFF\x01\x02\x03\x04WEBPVP8 ", ImageKind("image/webp")),
        (b"%PDF-1.7\n", BinaryKind("a PDF document")),
        (b"SQLite format 3\x00", BinaryKind("an SQLite database")),
        (b"\x7fELF\x02\x01", BinaryKind("an ELF program or library")),
        (b"MZ\x90\0\x03", BinaryKind("a Windows program or library")),
        (b"MZ is a prefix of words too\n", TextKind("utf-8")),
        (b"BM25 ranks documents\n", TextKind("utf-8")),
        (b"x" * 257 + b"ustar", BinaryKind("a tar archive")),
        (b"\0\0\0\x18ftypmp42", BinaryKind("MP4 or HEIF media")),
        (b"some\0text", BinaryKind("binary data")),
    ],
)
def test_the_first_bytes_decide(head: bytes, kind: FileKind) -> None:
    assert detect_kind(head) == kind


def test_noise_without_a_nul_byte_is_no_text() -> None:
    noise = bytes(random.Random(1).choices(range(1, 256), k=8_192))
    assert isinstance(detect_kind(noise), BinaryKind)
