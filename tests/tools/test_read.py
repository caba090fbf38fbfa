"""Read: numbered pages of any file that is text, images as images, and a sentence for everything else."""

from __future__ import annotations

import base64
import codecs
import os
import tracemalloc
from pathlib import Path

import pytest

from lamina.tools.read import IMAGE_BYTES, PAGE_BYTES
from lamina.tools.tool import Context

from .doing import call, context, done, refused

GIGABYTE = 1 << 30


@pytest.fixture
def here(tmp_path: Path) -> Context:
    return context(tmp_path)


def test_lines_have_numbers_and_a_tab(here: Context) -> None:
    (here.cwd / "f").write_text("one\n\n  three\n")
    assert done("Read", here, file_path="f") == "1\tone\n2\t\n3\t  three"


def test_a_page_can_be_asked_for(here: Context) -> None:
    (here.cwd / "f").write_text("".join(f"line {number}\n" for number in range(1, 11)))
    text = done("Read", here, file_path=str(here.cwd / "f"), offset="4", limit=2)
    assert text == "4\tline 4\n5\tline 5\n[Lines 4 to 5 of 10. Continue with offset=6.]"


def test_a_long_file_comes_in_pages_that_say_how_to_go_on(here: Context) -> None:
    (here.cwd / "f").write_text("".join(f"{number}\n" for number in range(1, 4_501)))
    text, offset = "", 1
    for page in range(3):
        output = call("Read", here, file_path="f", offset=offset)
        assert isinstance(output.content, str)
        offset += output.facts["lines"]
        text += output.content.split("\n[")[0] + "\n"
        assert output.facts["more"] == (page < 2)
        assert (f"Continue with offset={offset}." in output.content) == (page < 2)
    assert text == "".join(f"{number}\t{number}\n" for number in range(1, 4_501))


def test_a_page_is_bounded_in_bytes_whatever_limit_is_asked_for(here: Context) -> None:
    (here.cwd / "f").write_text(("x" * 999 + "\n") * 5_000)
    output = call("Read", here, file_path="f", limit=5_000)
    assert len(output.content) <= PAGE_BYTES + 500
    assert output.facts["more"]
    assert output.facts["total"] == 5_000


def test_an_empty_file_is_said_to_be_empty(here: Context) -> None:
    (here.cwd / "f").touch()
    assert done("Read", here, file_path="f") == "[The file is empty.]"


def test_an_offset_behind_the_end_says_how_many_lines_there_are(here: Context) -> None:
    (here.cwd / "f").write_text("one\ntwo\n")
    assert "has 2 lines, so line 9 does not exist" in refused("Read", here, file_path="f", offset=9)


def test_a_gigabyte_is_read_in_bounded_memory_and_without_reading_it_all(here: Context) -> None:
    with open(here.cwd / "f", "wb") as file:
        file.write(b"".join(b"line %d\n" % number for number in range(1, 5_001)))
        file.truncate(GIGABYTE)
    tracemalloc.start()
    try:
        first = call("Read", here, file_path="f")
        later = call("Read", here, file_path="f", offset=4_990, limit=5)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(first.content, str)
    assert first.content.endswith("[Lines 1 to 2,000 of a file of 1,073,741,824 bytes. Continue with offset=2001.]")
    assert isinstance(later.content, str)
    assert later.content.startswith("4990\tline 4990\n")
    assert later.content.endswith("Continue with offset=4995.]")
    assert peak < 20 << 20


def test_a_line_of_many_megabytes_is_cut_with_a_note(here: Context) -> None:
    (here.cwd / "f").write_bytes(b"x" * (25 << 20) + b"\nend\n")
    text = done("Read", here, file_path="f")
    assert len(text) < 3_000
    assert "more bytes in this line]\n2\tend\n[1 line longer than 2,000 characters cut." in text


@pytest.mark.parametrize(
    ("bom", "codec"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
    ],
)
def test_encodings_with_a_mark_are_understood_and_the_mark_is_not_shown(here: Context, bom: bytes, codec: str) -> None:
    (here.cwd / "f").write_bytes(bom + "naïve\r\n漢字\r\n".encode(codec))
    assert done("Read", here, file_path="f") == "1\tnaïve\n2\t漢字"


def test_broken_utf_8_is_shown_with_a_note(here: Context) -> None:
    (here.cwd / "f").write_bytes(b"caf\xe9\n")
    assert done("Read", here, file_path="f").startswith("1\tcaf\ufffd\n[Invalid UTF-8 bytes are shown as \ufffd")


def test_binary_data_is_refused_by_its_kind_whatever_its_name(here: Context) -> None:
    (here.cwd / "notes.txt").write_bytes(b"\x7fELF\x02\x01\x01\0\0\0")
    assert "notes.txt is an ELF program or library and can't be shown" in refused("Read", here, file_path="notes.txt")


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF1234WEBP", "image/webp"),
    ],
)
def test_an_image_comes_back_as_an_image_block(here: Context, head: bytes, media_type: str) -> None:
    (here.cwd / "data.bin").write_bytes(head + b"\0" * 10)
    output = call("Read", here, file_path="data.bin")
    source = {"type": "base64", "media_type": media_type, "data": base64.b64encode(head + b"\0" * 10).decode()}
    assert output.content == [{"type": "image", "source": source}]
    assert here.reads.recent(1)[0].seen.media_type == media_type


def test_an_image_too_large_for_the_api_is_refused(here: Context) -> None:
    with open(here.cwd / "x.png", "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        file.truncate(IMAGE_BYTES + 1)
    assert "Make a smaller copy" in refused("Read", here, file_path="x.png")


def test_a_directory_a_pipe_and_a_device_are_refused_at_once(here: Context) -> None:
    (here.cwd / "d").mkdir()
    os.mkfifo(here.cwd / "fifo")
    assert "is a directory. List its files with Glob" in refused("Read", here, file_path="d")
    assert "is a named pipe" in refused("Read", here, file_path="fifo")
    assert "is a device" in refused("Read", here, file_path="/dev/zero")


def test_a_missing_file_names_what_may_have_been_meant(here: Context) -> None:
    (here.cwd / "sub").mkdir()
    for name in ("settings.py", "config.yaml", "sub/other.py"):
        (here.cwd / name).touch()
    assert f"Similar: {here.cwd / 'settings.py'}." in refused("Read", here, file_path="setings.py")
    assert f"Similar: {here.cwd / 'config.yaml'}." in refused("Read", here, file_path="config.yml")
    assert f"Similar: {here.cwd / 'settings.py'}." in refused("Read", here, file_path="Settings.py")
    assert f"Similar: {here.cwd / 'settings.py'}." in refused("Read", here, file_path="sub/settings.py")
    assert f"nearest existing directory: {here.cwd}" in refused("Read", here, file_path="no/such/x.txt")


@pytest.mark.parametrize("path", ["~/x", "a\0b", "x" * 5_000, " "])
def test_a_path_that_names_no_file_is_refused(here: Context, path: str) -> None:
    assert "give the full path" in refused("Read", here, file_path=path)


def test_an_abort_stops_a_read_that_is_under_way(here: Context) -> None:
    (here.cwd / "f").write_text("x\n")
    here.abort.set()
    assert refused("Read", here, file_path="f") == "The call was stopped before it finished."
    assert here.reads.recent(1) == []


def test_what_was_read_is_remembered_newest_first(here: Context) -> None:
    for name in ("a", "b", "c"):
        (here.cwd / name).write_text("1\n2\n3\n")
        done("Read", here, file_path=name)
    done("Read", here, file_path="a", offset=2, limit=1)
    recent = here.reads.recent(2)
    assert [os.path.basename(file.path) for file in recent] == ["a", "c"]
    assert [(file.seen.offset, file.seen.limit) for file in recent] == [(2, 1), (0, None)]


def test_a_file_that_could_not_be_shown_does_not_count_as_read(here: Context) -> None:
    (here.cwd / "f").write_bytes(b"\0\1\2")
    refused("Read", here, file_path="f")
    assert here.reads.recent(1) == []
