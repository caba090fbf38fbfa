"""Reading JSONL that anything may have happened to: every whole record is found, forwards and backwards, and the rest is counted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lamina.core.errors import DiskError
from lamina.disk.transcripts import jsonl as lines
from lamina.disk.transcripts.jsonl import BOM, Health, JsonLine, parse_line, raw_lines_back, read_lines


def record(number: int, **more: Any) -> dict[str, Any]:
    return {"parentUuid": None, "sessionId": "s", "type": "user", "uuid": f"u{number}", "message": {"content": [more]}}


def encoded(number: int, **more: Any) -> bytes:
    return json.dumps(record(number, **more), separators=(",", ":")).encode()


ONE, TWO, THREE = encoded(1, type="text", text="first"), encoded(2, type="text", text='é {"uuid":1}'), encoded(3)
TORN = ONE[: len(ONE) // 2]
DEEP = b'{"parentUuid":null,"sessionId":"s","type":"x","a":' + b'{"b":' * 300
WIDE = b'{"parentUuid":null,"sessionId":"s","type":"x","a":[' + b'{"b":{"c":1}},' * 300
# A record of a side conversation inside a record that was torn.
NESTED = b'{"parentUuid":null,"type":"progress","data":{"message":{"type":"user","uuid":"u9","message":{"role":"user"}},"x'


def found(path: Path, health: Health | None = None) -> list[str]:
    return [line.value["uuid"] for line in read_lines(path, health=health) if "uuid" in line.value]


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "log.jsonl"
    path.write_bytes(data)
    return path


DAMAGED: dict[str, tuple[bytes, list[str], int]] = {
    "nothing": (b"", [], 0),
    "a whole file": (ONE + b"\n" + TWO + b"\n", ["u1", "u2"], 0),
    "no newline at the end": (ONE + b"\n" + TWO, ["u1", "u2"], 0),
    "a torn last line": (ONE + b"\n" + TORN, ["u1"], 1),
    "a torn line in the middle": (TORN + b"\n" + TWO + b"\n", ["u2"], 1),
    "glued records": (ONE + TWO + b"\n" + THREE + b"\n", ["u1", "u2", "u3"], 0),
    "three glued records": (ONE + TWO + THREE, ["u1", "u2", "u3"], 0),
    "a stub with a record glued to it": (TORN + TWO + b"\n" + THREE + b"\n", ["u2", "u3"], 1),
    "a record with a stub glued to it": (ONE + TORN + b"\n" + TWO, ["u1", "u2"], 1),
    "a stub cut after a colon": (b'{"parentUuid":null,"message":' + TWO + b"\n", ["u2"], 1),
    "a stub cut inside a text": (b'{"parentUuid":null,"message":"abc' + TWO + b"\n", ["u2"], 1),
    "a stub cut inside an escape": (b'{"parentUuid":null,"message":"abc\\' + TWO + b"\n", ["u2"], 1),
    "a stub of many levels": (DEEP + TWO + b"\n", ["u2"], 1),
    "a stub of many parts": (WIDE + TWO + b"\n", ["u2"], 1),
    "a record of another conversation inside a stub": (NESTED + b"\n" + TWO, ["u2"], 1),
    "a block of NUL": (ONE + b"\n" + b"\0" * 4096 + b"\n" + TWO + b"\n", ["u1", "u2"], 1),
    "a block of NUL before a record": (b"\0" * 4096 + ONE + b"\n" + TWO + b"\n", ["u1", "u2"], 0),
    "a block of NUL at the end": (ONE + b"\n" + b"\0" * 4096, ["u1"], 1),
    "NUL in place of a part of a record": (ONE[:-30] + b"\0" * 20 + ONE[-10:] + b"\n" + TWO, ["u2"], 1),
    "NUL inside a text": (ONE.replace(b"first", b"fi\0\0\0") + b"\n" + TWO, ["u2"], 1),
    "a byte-order mark": (BOM + ONE + b"\n" + TWO, ["u1", "u2"], 0),
    "a byte-order mark in the middle": (ONE + b"\n" + BOM + TWO, ["u1", "u2"], 0),
    "CRLF": (ONE + b"\r\n" + TWO + b"\r\n", ["u1", "u2"], 0),
    "blank lines": (b"\n \n" + ONE + b"\n\n\t\n" + TWO + b"\n\n", ["u1", "u2"], 0),
    "bytes that are no UTF-8": (ONE.replace(b"first", b"f\xff\xfe") + b"\n" + TWO, ["u1", "u2"], 0),
    "half a surrogate pair": (ONE.replace(b"first", b"\\ud83d") + b"\n" + TWO, ["u1", "u2"], 0),
    "not JSON": (b"hello\n" + ONE + b"\n", ["u1"], 1),
    "not an object": (b"[1]\n5\nnull\n" + ONE + b"\n", ["u1"], 3),
    "too deep": (b"[" * 100_000 + b"\n" + b'{"a":' * 100_000 + b"\n" + ONE + b"\n", ["u1"], 2),
    "a number beyond all numbers": (b'{"sessionId":"s","type":"x","uuid":"n","x":1e999}\n' + ONE, ["n", "u1"], 0),
}


def read_lines_back(path: Path, health: Health | None = None) -> Iterator[JsonLine]:
    """Every object from the end of the file to its beginning."""
    for offset, raw in raw_lines_back(path):
        yield from reversed(list(parse_line(offset, raw, health or Health())))


@pytest.mark.spec("Z4")
@pytest.mark.parametrize(("data", "expected", "skipped"), DAMAGED.values(), ids=DAMAGED.keys())
def test_every_whole_record_is_found_and_what_is_lost_is_counted(
    tmp_path: Path, data: bytes, expected: list[str], skipped: int
) -> None:
    path = written(tmp_path, data)
    forwards, backwards = Health(), Health()
    there = list(read_lines(path, health=forwards))
    back = list(read_lines_back(path, backwards))
    assert [line.value["uuid"] for line in there] == expected
    assert back == there[::-1]
    assert forwards.skipped == backwards.skipped == skipped
    assert forwards.kinds == backwards.kinds
    assert path.read_bytes() == data


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (ONE, None),
        (TORN + b"\n", "1 line could not be read and was skipped (1 torn). All other records are loaded."),
        (
            b"x\n[]\n" + TORN,
            "3 lines could not be read and were skipped (1 no object, 1 not JSON, 1 torn). All other records are loaded.",
        ),
    ],
)
def test_the_damage_is_one_sentence(tmp_path: Path, data: bytes, sentence: str | None) -> None:
    path, health = written(tmp_path, data), Health()
    list(read_lines(path, health=health))
    assert health.sentence("F") == (f"F: {sentence}" if sentence else None)


def test_a_line_is_found_at_its_offset(tmp_path: Path) -> None:
    path = written(tmp_path, b"\n" + ONE + b"\r\n" + TWO + THREE + b"\n" + ONE)
    second = len(ONE) + 3
    last = second + len(TWO) + len(THREE) + 1
    assert [line.offset for line in read_lines(path)] == [1, second, second, last]
    assert [line.offset for line in read_lines_back(path)] == [last, second, second, 1]
    assert [line.value["uuid"] for line in read_lines(path, start=second)] == ["u2", "u3", "u1"]


GOOD = st.builds(encoded, st.integers(0, 99), text=st.text(max_size=8))
PIECES = st.one_of(
    GOOD,
    st.builds(lambda line, part: line[: len(line) * part // 10], GOOD, st.integers(1, 9)),
    st.builds(lambda line, part: line[len(line) * part // 10 :], GOOD, st.integers(1, 9)),
    st.sampled_from([b"\0" * 40, BOM, b"\r", b" ", b"\n", b"[]", b"{}", b'"', b"\\", b"\xff", b"{", b"}", b"null", b'{"a":']),
    st.binary(max_size=6),
)
FILES = st.lists(st.tuples(PIECES, st.booleans()), max_size=12).map(
    lambda parts: b"".join(piece + (b"\n" if ends else b"") for piece, ends in parts)
)


@pytest.mark.spec("Z4")
@given(data=FILES, chunk=st.sampled_from([1, 3, 7, 64, 1 << 20]), longest=st.sampled_from([16, 90, 200, 64 << 20]))
@example(data=ONE, chunk=7, longest=len(ONE))
@example(data=ONE, chunk=7, longest=len(ONE) - 1)
@example(data=ONE + b"\n" + TWO + b"\n", chunk=7, longest=len(ONE))
@example(data=b"\n" * 3 + ONE, chunk=64, longest=90)
def test_both_directions_find_the_same_records_whatever_happened(
    data: bytes, chunk: int, longest: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = written(tmp_path_factory.mktemp("lines"), data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "CHUNK", chunk)
        patch.setattr(lines, "MAX_LINE", longest)
        there = list(read_lines(path))
        back = list(read_lines_back(path))
    assert back == there[::-1]
    assert path.read_bytes() == data


@given(goods=st.lists(GOOD, max_size=6), junk=st.lists(st.binary(max_size=30), max_size=6))
def test_lines_between_which_anything_stands_are_all_found(
    goods: list[bytes], junk: list[bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    parts = [part for pair in zip(goods, junk, strict=False) for part in pair] + goods[len(junk) :]
    path = written(tmp_path_factory.mktemp("lines"), b"\n".join(parts))
    values = [line.value for line in read_lines(path)]
    assert [value for value in values if value.get("sessionId") == "s"] == [json.loads(good) for good in goods]


def test_a_line_beyond_all_measure_is_passed_over_without_being_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 1_000)
    monkeypatch.setattr(lines, "CHUNK", 64)
    path = written(tmp_path, ONE + b"\n" + encoded(9, text="x" * 5_000) + b"\n" + TWO + b"\n" + encoded(8, text="y" * 5_000))
    health = Health()
    assert [line.value["uuid"] for line in read_lines(path, health=health)] == ["u1", "u2"]
    assert health.kinds == {"too long": 2}
    assert [line.value["uuid"] for line in read_lines_back(path)] == ["u2", "u1"]


def test_a_file_larger_than_a_chunk_is_read_from_both_ends(tmp_path: Path) -> None:
    rows = [encoded(number, text="x" * (number * 997 % 50_000)) for number in range(120)]
    path = written(tmp_path, b"\n".join(rows))
    assert path.stat().st_size > 2 * lines.CHUNK
    assert found(path) == [f"u{number}" for number in range(120)]
    assert [line for _, line in raw_lines_back(path)] == rows[::-1]


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    for read in (read_lines, read_lines_back):
        with pytest.raises(DiskError, match=r"none\.jsonl: no such file or directory\."):
            list(read(tmp_path / "none.jsonl"))


def test_a_reader_that_stops_early_is_fine(tmp_path: Path) -> None:
    path = written(tmp_path, ONE + b"\n" + TWO)
    assert next(read_lines(path)) == JsonLine(0, json.loads(ONE))
    assert next(read_lines_back(path)).value["uuid"] == "u2"
