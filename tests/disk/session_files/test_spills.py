"""Files of results: private, complete before they have a name, never changed after."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from lamina.core.errors import DiskError, PathRefused
from lamina.disk.session_files.spills import (
    DIRECTORY,
    ExistingResult,
    WrittenResult,
    open_result,
    open_spills,
    stem_of,
    sweep_results,
    take_over,
)
from lamina.disk.session_files.spool import Spool
from lamina.disk.temp_files import is_temp

from ..processes import needs_fork as needs_unix


def write_spill(session: Path, tool_use_id: str, parts: Iterable[bytes | memoryview], *, suffix: str = ".txt") -> WrittenResult:
    with open_spills(session) as spills:
        return spills.write(tool_use_id, parts, suffix=suffix)


@pytest.mark.spec("R2")
def test_a_result_lies_in_a_private_file_named_by_its_call(tmp_path: Path) -> None:
    made = write_spill(tmp_path / "session", "toolu_01A", [b"one ", memoryview(b"two")])
    assert made.path == tmp_path / "session" / DIRECTORY / "toolu_01A.txt"
    assert made.path.read_bytes() == b"one two"
    assert (made.size, made.sha256) == (7, hashlib.sha256(b"one two").hexdigest())
    assert write_spill(tmp_path / "session", "toolu_02B", [b"{}"], suffix=".json").path.name == "toolu_02B.json"


@needs_unix
def test_file_and_directories_are_the_owners_alone(tmp_path: Path) -> None:
    made = write_spill(tmp_path / "session", "a", [b"x"])
    assert stat.S_IMODE(made.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(made.path.parent.stat().st_mode) == 0o700


@pytest.mark.spec("R2")
@pytest.mark.parametrize(
    "tool_use_id",
    [
        *("../../etc/passwd", "a/b", "a\\b", ".", "..", ".hidden", "-rf", "", "é", "日本", "a b", "x" * 300, "a\0b"),
        *("NUL", "con.x", "a.", "b0123abcd", "a:b", "\ud800", "~1", "x~1"),
    ],
)
def test_an_id_that_is_no_plain_file_name_is_hashed(tmp_path: Path, tool_use_id: str) -> None:
    made = write_spill(tmp_path / "s", tool_use_id, [b"x"])
    assert made.path.parent == tmp_path / "s" / DIRECTORY
    assert made.path.name == stem_of(tool_use_id) + ".txt"
    assert made.path.name.startswith("id-")
    assert made.path.name.isascii()
    assert list(tmp_path.rglob("*.txt")) == [made.path]


@pytest.mark.parametrize("tool_use_id", ["toolu_01ABC", "call-1", "functions.Read", "a.b.c", "0"])
def test_a_plain_id_is_the_name(tool_use_id: str) -> None:
    assert stem_of(tool_use_id) == tool_use_id


def test_two_ids_that_are_hashed_get_two_names() -> None:
    assert len({stem_of(f"a/{number}") for number in range(1_000)}) == 1_000


def test_a_name_that_is_taken_is_never_written_over(tmp_path: Path) -> None:
    made = [write_spill(tmp_path, "a", [text]) for text in (b"one", b"two", b"three")]
    assert [one.path.name for one in made] == ["a.txt", "a-2.txt", "a-3.txt"]
    assert [one.path.read_bytes() for one in made] == [b"one", b"two", b"three"]
    assert write_spill(tmp_path, "a", [b"{}"], suffix=".json").path.name == "a-4.json"


def test_a_directory_that_was_deleted_is_made_again(tmp_path: Path) -> None:
    first = write_spill(tmp_path / "s", "a", [b"one"])
    first.path.unlink()
    first.path.parent.rmdir()
    first.path.parent.parent.rmdir()
    assert write_spill(tmp_path / "s", "a", [b"two"]).path.read_bytes() == b"two"


@needs_unix
def test_a_link_in_the_place_of_the_directory_or_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / DIRECTORY).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PathRefused):
        write_spill(tmp_path / "s", "a", [b"x"])
    assert list((tmp_path / "elsewhere").iterdir()) == []
    (tmp_path / "t" / DIRECTORY).mkdir(parents=True)
    (tmp_path / "t" / DIRECTORY / "a.txt").symlink_to(tmp_path / "elsewhere" / "planted")
    assert write_spill(tmp_path / "t", "a", [b"x"]).path.name == "a-2.txt"


def test_what_fails_half_way_leaves_nothing(tmp_path: Path) -> None:
    def parts() -> Iterator[bytes]:
        yield b"x" * 1_000_000
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_spill(tmp_path, "a", parts())
    assert list((tmp_path / DIRECTORY).iterdir()) == []


def test_a_spool_of_the_session_gets_the_results_name_and_is_not_copied(tmp_path: Path) -> None:
    with Spool.create(tmp_path / DIRECTORY, limit=100) as spool:
        spool.write(b"printed")
        path = spool.keep()
    inode = path.stat().st_ino
    made = take_over(tmp_path, "toolu_1", path)
    assert made.path == tmp_path / DIRECTORY / "toolu_1.txt"
    assert made.path.stat().st_ino == inode
    assert (made.size, made.sha256) == (7, hashlib.sha256(b"printed").hexdigest())
    assert not path.exists()


def test_only_a_spool_of_the_session_is_taken_over(tmp_path: Path) -> None:
    for place in ("b0123abcd.txt", f"{DIRECTORY}/toolu_1.txt", f"{DIRECTORY}/../b0123abcd.txt"):
        (tmp_path / DIRECTORY).mkdir(exist_ok=True)
        (tmp_path / place).write_text("mine")
        with pytest.raises(DiskError, match="is not an output file in"):
            take_over(tmp_path, "toolu_2", tmp_path / place)
        assert (tmp_path / place).exists()
    with pytest.raises(DiskError):
        take_over(tmp_path, "toolu_2", tmp_path / DIRECTORY / "b99999999.txt")


def test_a_result_that_is_gone_is_a_disk_error(tmp_path: Path) -> None:
    with pytest.raises(DiskError):
        open_result(tmp_path / "no" / "such")
    made = write_spill(tmp_path, "a", [b"x"])
    fd = open_result(made.path)
    assert os.read(fd, 10) == b"x"
    os.close(fd)


def test_a_sweep_removes_what_a_dead_writer_left_and_nothing_else(tmp_path: Path) -> None:
    assert sweep_results(tmp_path / "nothing") == 0
    made = write_spill(tmp_path, "a", [b"x"])
    left = made.path.parent / ".lamina-0123456789abcdef.tmp"
    left.write_bytes(b"half")
    assert is_temp(left.name)
    assert sweep_results(tmp_path) == 1
    assert list(made.path.parent.iterdir()) == [made.path]


def test_many_are_written_for_one_look_at_the_directory(tmp_path: Path) -> None:
    first = write_spill(tmp_path / "session", "a", [b"there already"])
    with open_spills(tmp_path / "session") as spills:
        assert list(spills.there("a")) == [ExistingResult(str(first.path), 13)]
        assert list(spills.there("b")) == []
        assert spills.write("b", [b"{}"], suffix=".json").path.name == "b.json"
        assert list(spills.there("b")) == [ExistingResult(str(tmp_path / "session" / DIRECTORY / "b.json"), 2)]
        assert spills.write("b", [b"again"]).path.name == "b-2.txt"
        assert spills.write("a", [b"again"]).path.name == "a-2.txt"
    assert first.path.read_bytes() == b"there already"
