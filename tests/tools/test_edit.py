"""Edit changes one place, keeps everything else, and never overwrites someone else's change."""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path

import pytest

from lamina.disk import crash_points as crash
from lamina.tools.edit import MAX_EDITED
from lamina.tools.tool import Context

from .doing import call, context, done, refused


@pytest.fixture
def here(tmp_path: Path) -> Context:
    return context(tmp_path)


@pytest.fixture
def file(here: Context) -> Path:
    path = here.cwd / "f.py"
    path.write_text("".join(f"line {number}\n" for number in range(1, 21)))
    done("Read", here, file_path="f.py")
    return path


def test_the_result_shows_the_changed_lines_with_their_numbers(here: Context, file: Path) -> None:
    output = call("Edit", here, file_path="f.py", old_string="line 10\n", new_string="ten\nand a half\n")
    shown = ["7\tline 7", "8\tline 8", "9\tline 9", "10\tten", "11\tand a half", "12\tline 11", "13\tline 12", "14\tline 13"]
    assert output.content == "\n".join([f"Changed {file}:", *shown])
    assert output.facts == {
        "path": str(file),
        "bytes": file.stat().st_size,
        "replacements": 1,
        "line": 10,
        "added": 1,
        "removed": 0,
    }
    assert file.read_text().count("ten\nand a half\nline 11") == 1


@pytest.mark.spec("X8")
def test_a_file_that_was_not_read_is_not_edited(here: Context) -> None:
    (here.cwd / "g").write_text("x\n")
    assert "Read it first" in refused("Edit", here, file_path="g", old_string="x", new_string="y")
    assert (here.cwd / "g").read_text() == "x\n"


@pytest.mark.spec("X8")
def test_a_file_that_changed_since_is_not_edited_until_it_is_read_again(here: Context, file: Path) -> None:
    file.write_text(file.read_text() + "mine\n")
    assert "Read it again" in refused("Edit", here, file_path="f.py", old_string="line 1\n", new_string="")
    assert file.read_text().endswith("mine\n")
    done("Read", here, file_path="f.py")
    done("Edit", here, file_path="f.py", old_string="line 1\n", new_string="")
    assert file.read_text().endswith("mine\n")


@pytest.mark.spec("X8")
def test_a_change_at_the_very_moment_of_writing_wins(here: Context, file: Path) -> None:
    def change(name: str, _: int) -> None:
        if name == "user.fsync":
            file.write_text("theirs\n")

    with crash.watched(change):
        sentence = refused("Edit", here, file_path="f.py", old_string="line 2\n", new_string="")
    assert "was changed by another program in the meantime" in sentence
    assert file.read_text() == "theirs\n"
    assert os.listdir(here.cwd) == ["f.py"]


def test_one_edit_after_another_needs_no_read_between(here: Context, file: Path) -> None:
    for number in (3, 4, 5):
        done("Edit", here, file_path="f.py", old_string=f"line {number}\n", new_string="")
    assert file.read_text().startswith("line 1\nline 2\nline 6\n")


@pytest.mark.spec("X8")
def test_a_part_that_was_read_is_enough_to_edit(here: Context) -> None:
    (here.cwd / "g").write_text("a\nb\nc\n")
    done("Read", here, file_path="g", limit=1)
    done("Edit", here, file_path="g", old_string="c", new_string="d")
    assert (here.cwd / "g").read_text() == "a\nb\nd\n"


def test_a_text_that_stands_there_twice_is_not_changed_unless_all_are_meant(here: Context, file: Path) -> None:
    assert "appears 11 times" in refused("Edit", here, file_path="f.py", old_string="line 1", new_string="x")
    output = call("Edit", here, file_path="f.py", old_string="line 1", new_string="x", replace_all="true")
    assert output.facts["replacements"] == 11
    assert "in 11 places; the first" in str(output.content)
    assert "line 1" not in file.read_text()


def test_a_text_that_is_not_there_is_answered_with_what_is_like_it(here: Context, file: Path) -> None:
    assert "The most similar line is 7: line 7" in refused("Edit", here, file_path="f.py", old_string="lime 7", new_string="x")


def test_changing_a_text_into_itself_is_refused(here: Context, file: Path) -> None:
    before = file.stat()
    assert "nothing would change" in refused("Edit", here, file_path="f.py", old_string="line 3", new_string="line 3")
    assert "nothing would change" in refused(
        "Edit", here, file_path="f.py", old_string="line", new_string="line", replace_all=True
    )
    assert file.stat().st_ino == before.st_ino


def test_an_empty_old_string_is_refused(here: Context, file: Path) -> None:
    assert "old_string must not be empty" in refused("Edit", here, file_path="f.py", old_string="", new_string="x")


@pytest.mark.parametrize("bom", [b"", codecs.BOM_UTF8])
def test_windows_line_ends_and_the_mark_stay(here: Context, bom: bytes) -> None:
    path = here.cwd / "w.txt"
    path.write_bytes(bom + b"one\r\ntwo\r\nthree\r\n")
    done("Read", here, file_path="w.txt")
    done("Edit", here, file_path="w.txt", old_string="one\ntwo\n", new_string="1\n2\n2b\n")
    assert path.read_bytes() == bom + b"1\r\n2\r\n2b\r\nthree\r\n"


def test_mixed_line_ends_outside_the_change_stay_as_they_are(here: Context) -> None:
    path = here.cwd / "m.txt"
    path.write_bytes(b"a\r\nb\nc\r\nd\r\ne\n")
    done("Read", here, file_path="m.txt")
    done("Edit", here, file_path="m.txt", old_string="c\nd", new_string="x\ny")
    assert path.read_bytes() == b"a\r\nb\nx\r\ny\r\ne\n"


def test_utf_16_stays_utf_16(here: Context) -> None:
    path = here.cwd / "u.txt"
    path.write_bytes(codecs.BOM_UTF16_LE + "naïve\r\n".encode("utf-16-le"))
    done("Read", here, file_path="u.txt")
    done("Edit", here, file_path="u.txt", old_string="naïve", new_string="漢字")
    assert path.read_bytes() == codecs.BOM_UTF16_LE + "漢字\r\n".encode("utf-16-le")


def test_bytes_that_are_no_utf_8_stay(here: Context) -> None:
    path = here.cwd / "l.txt"
    path.write_bytes(b"caf\xe9\nplain\n")
    done("Read", here, file_path="l.txt")
    done("Edit", here, file_path="l.txt", old_string="plain", new_string="thé")
    assert path.read_bytes() == b"caf\xe9\n" + "thé\n".encode()


def test_the_mode_stays(here: Context, file: Path) -> None:
    file.chmod(0o751)
    done("Edit", here, file_path="f.py", old_string="line 3", new_string="x")
    assert stat.S_IMODE(file.stat().st_mode) == 0o751


def test_a_read_only_file_is_left_alone(here: Context, file: Path) -> None:
    file.chmod(0o444)
    told = refused("Edit", here, file_path="f.py", old_string="line 3", new_string="x")
    assert told.endswith("is read-only; check its permissions. Ask the user before changing them.")
    assert "line 3" in file.read_text()


def test_a_missing_file_a_directory_and_a_pipe_are_refused(here: Context, file: Path) -> None:
    (here.cwd / "d").mkdir()
    os.mkfifo(here.cwd / "p")
    assert "Similar:" in refused("Edit", here, file_path="f.pi", old_string="x", new_string="y")
    assert "is a directory" in refused("Edit", here, file_path="d", old_string="x", new_string="y")
    assert "is a named pipe" in refused("Edit", here, file_path="p", old_string="x", new_string="y")


def test_a_file_too_large_to_edit_is_refused_without_reading_it(here: Context) -> None:
    with open(here.cwd / "big", "wb") as file:
        file.truncate(MAX_EDITED + 1)
    assert "is larger than 16 MB" in refused("Edit", here, file_path="big", old_string="x", new_string="y")


def test_a_large_change_is_shown_by_its_ends(here: Context, file: Path) -> None:
    text = done("Edit", here, file_path="f.py", old_string="line 3\n", new_string="new\n" * 500)
    assert "[465 more lines]" in text
    assert len(text.splitlines()) == 42


def test_emptying_a_file_says_so(here: Context) -> None:
    (here.cwd / "g").write_text("x\n")
    done("Read", here, file_path="g")
    assert done("Edit", here, file_path="g", old_string="x\n", new_string="").endswith("[The file is now empty.]")
    assert (here.cwd / "g").read_bytes() == b""
