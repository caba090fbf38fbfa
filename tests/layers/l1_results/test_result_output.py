"""The output of a tool before it enters the conversation: no unnecessary copies."""

from __future__ import annotations

from array import array
from io import BytesIO, StringIO
from pathlib import Path

import pytest

from lamina.layers.l1_results.source import result_output


def viewed(output: object) -> memoryview:
    read = result_output(output)
    assert isinstance(read, memoryview)
    return read


def test_bytes_are_looked_at_and_not_copied() -> None:
    data = bytearray(b"abc")
    assert viewed(data).obj is data
    assert viewed(memoryview(b"abcdef")[::2]).tobytes() == b"ace"
    numbers = array("i", [1, 2])
    assert viewed(memoryview(numbers)).tobytes() == numbers.tobytes()


def test_a_stream_is_handed_on_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"in the file")
    with (tmp_path / "f").open("rb") as stream:
        assert result_output(stream) is stream
    for held in (StringIO("text"), BytesIO(b"")):
        assert result_output(held) is held


def test_a_path_is_its_name_and_not_what_is_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("secret")
    assert result_output(tmp_path / "f") == str(tmp_path / "f")


@pytest.mark.parametrize(
    ("output", "content"), [(None, ""), ("text", "text"), ({"a": 1}, '{"a":1}'), ([1, 2], "[1,2]"), (7, "7")]
)
def test_values_are_text_and_json(output: object, content: str) -> None:
    assert result_output(output) == content
