"""Results as pieces of bytes, whatever they were given as."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from lamina.core.errors import InputError
from lamina.layers.l1_results.source import CHUNK, is_json, read_small, tape_of


class Pipe:
    """A stream that returns its data once, in chunks of a fixed size, and remembers the largest size requested."""

    def __init__(self, data: bytes, size: int) -> None:
        self.left = data
        self.size = size
        self.most = 0

    def read(self, size: int) -> bytes:
        self.most = max(self.most, size)
        part, self.left = self.left[: self.size], self.left[self.size :]
        return part


TEXT = "é€𝄞\n" * 700_000


@pytest.mark.parametrize(
    "source",
    [TEXT, memoryview(TEXT.encode()), io.BytesIO(TEXT.encode()), io.StringIO(TEXT), Pipe(TEXT.encode(), 7_001)],
    ids=["str", "bytes", "binary file", "text file", "pipe"],
)
def test_the_pieces_together_are_the_result_and_the_beginning_is_remembered(source: str | memoryview | Pipe) -> None:
    tape = tape_of(source, keep=1_000)
    assert b"".join(tape) == TEXT.encode()
    assert tape.ended
    assert tape.size == len(TEXT.encode())
    assert tape.head == TEXT.encode()[:1_000]


def test_a_tape_goes_on_where_it_was_left_and_no_further_than_it_remembers() -> None:
    pipe = Pipe(b"x" * 10_000_000, 1_000)
    tape = tape_of(pipe, keep=5_000)
    next(iter(tape))
    assert tape.wind() == "x" * 5_000
    assert len(pipe.left) == 10_000_000 - 5_000
    assert not tape.ended


def test_a_short_tape_is_wound_to_its_end() -> None:
    tape = tape_of(memoryview(b"abc"), keep=5_000)
    assert tape.wind() == "abc"
    assert tape.whole


def test_a_text_is_wound_whole_however_little_is_kept() -> None:
    tape = tape_of("abc" * 5_000, keep=5)
    assert tape.wind() == "abc" * 5_000
    assert tape.whole


@pytest.mark.parametrize("limit", [10, 12])
@pytest.mark.parametrize("kind", ["str", "bytes", "stream"])
def test_a_result_counts_in_characters_and_not_in_bytes(limit: int, kind: str) -> None:
    text = "€" * 11
    sources: dict[str, str | memoryview | io.BytesIO] = {
        "str": text,
        "bytes": memoryview(text.encode()),
        "stream": io.BytesIO(text.encode()),
    }
    source = sources[kind]
    read = read_small(source, limit)
    assert isinstance(read, str) == (limit == 12)
    assert read in (text, b"", text.encode())


def test_of_a_long_stream_only_what_is_needed_is_read_to_know_that_it_is_long() -> None:
    pipe = Pipe(b"x" * 10_000_000, 100_000)
    read = read_small(pipe, 50_000)
    assert isinstance(read, bytes)
    assert len(read) == 300_000
    assert b"".join(tape_of(pipe, keep=10, before=read)) == b"x" * 10_000_000
    assert pipe.most <= CHUNK


def test_without_a_limit_everything_is_read() -> None:
    assert read_small(Pipe(b"x" * 3_000_000, 1_000), None) == "x" * 3_000_000


def test_half_a_surrogate_pair_becomes_a_replacement_character() -> None:
    assert b"".join(tape_of("a\ud800b", keep=10)) == "a\ufffdb".encode()


@pytest.mark.parametrize("given", [None, 7, ["x"]])
def test_a_stream_that_gives_no_bytes_is_refused_by_name(given: object) -> None:
    class Odd:
        def read(self, size: int) -> object:
            return given

    with pytest.raises(InputError, match="its stream returned"):
        read_small(Odd(), 10)


def test_a_stream_that_is_closed_is_an_error_of_the_callers(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    with (tmp_path / "f").open("rb") as stream:
        pass
    with pytest.raises(InputError, match="reading its stream failed"):
        read_small(stream, 10)


@pytest.mark.spec("R2")
@pytest.mark.parametrize(
    ("text", "json"),
    [
        ('{"a": [1, 2]}', True),
        (' [1, "é"]\n', True),
        ("[INFO] started [done]", False),
        ('{"a": 1}\n{"a": 2}', False),
        ("plain", False),
        ('"a string"', False),
        ("[" * 100_000 + "]" * 100_000, False),
        ("", False),
    ],
    ids=["object", "list", "log lines", "lines of objects", "text", "a string", "too deep", "nothing"],
)
def test_json_is_an_object_or_a_list_that_parses(text: str, json: bool) -> None:
    assert is_json(text) == json
    assert is_json(memoryview(text.encode())) == json


def test_a_stream_is_json_by_its_name(tmp_path: Path) -> None:
    for name, json in (("a.json", True), ("a.txt", False)):
        (tmp_path / name).write_text("{}")
        with (tmp_path / name).open("rb") as stream:
            assert is_json(stream) == json
