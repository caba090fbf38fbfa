"""What a file is, by its first bytes."""

from __future__ import annotations

import codecs
import random

import pytest

from lamina.tools.kinds import Binary, Kind, Picture, Text, kind_of


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"", Text("utf-8")),
        (b"print('x')\n", Text("utf-8")),
        ("schön 漢字\n".encode(), Text("utf-8")),
        (b"caf\xe9 au lait, s'il vous pla\xeet\n", Text("utf-8")),
        (b"\x1b[31mred\x1b[0m\n", Text("utf-8")),
        (codecs.BOM_UTF8 + b"x", Text("utf-8", codecs.BOM_UTF8)),
        (codecs.BOM_UTF16_LE + "x".encode("utf-16-le"), Text("utf-16-le", codecs.BOM_UTF16_LE)),
        (codecs.BOM_UTF16_BE + "x".encode("utf-16-be"), Text("utf-16-be", codecs.BOM_UTF16_BE)),
        (codecs.BOM_UTF32_LE + "x".encode("utf-32-le"), Binary("UTF-32 text")),
        (b"\x89PNG\r\n\x1a\n\0\0", Picture("image/png")),
        (b"\xff\xd8\xff\xe0", Picture("image/jpeg")),
        (b"GIF89a", Picture("image/gif")),
        (b"RIFF\x01\x02\x03\x04WEBPVP8 ", Picture("image/webp")),
        (b"%PDF-1.7\n", Binary("a PDF document")),
        (b"SQLite format 3\x00", Binary("an SQLite database")),
        (b"\x7fELF\x02\x01", Binary("an ELF program or library")),
        (b"MZ\x90\0\x03", Binary("a Windows program or library")),
        (b"MZ is a prefix of words too\n", Text("utf-8")),
        (b"BM25 ranks documents\n", Text("utf-8")),
        (b"x" * 257 + b"ustar", Binary("a tar archive")),
        (b"\0\0\0\x18ftypmp42", Binary("MP4 or HEIF media")),
        (b"some\0text", Binary("binary data")),
    ],
)
def test_the_first_bytes_decide(head: bytes, kind: Kind) -> None:
    assert kind_of(head) == kind


def test_noise_without_a_nul_byte_is_no_text() -> None:
    noise = bytes(random.Random(1).choices(range(1, 256), k=8_192))
    assert isinstance(kind_of(noise), Binary)
