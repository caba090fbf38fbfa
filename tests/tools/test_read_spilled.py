"""Read of a result that was too large to show: pages reach all of it, however long its lines are."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.tools.read import LINE_CHARACTERS, PAGE_BYTES, FoldedLines
from lamina.tools.tool import MAX_RESULT, Context

from .doing import call, context, done


@pytest.fixture
def spilled(tmp_path: Path) -> tuple[Context, Path]:
    here = context(tmp_path / "cwd", scratch=tmp_path / "session" / "tool-results")
    here.cwd.mkdir()
    assert here.scratch is not None
    here.scratch.mkdir(parents=True)
    return here, here.scratch / "toolu_1.txt"


def pages(here: Context, path: Path) -> list[list[str]]:
    found, offset = list[list[str]](), 1
    while True:
        output = call("Read", here, file_path=str(path), offset=offset)
        assert isinstance(output.content, str)
        assert len(output.content) <= MAX_RESULT
        lines = output.content.split("\n")[: output.facts["lines"]]
        found.append([line.partition("\t")[2] for line in lines])
        offset += len(lines)
        if not output.facts["more"]:
            return found
        assert f"Continue with offset={offset}." in output.content


@pytest.mark.spec("R5")
@pytest.mark.parametrize("text", ["x" * 250_000, "é" * 100_000, "𝄞€é" * 30_000, "a" * 3_999 + "\n" + "b" * 100_000 + "\nend"])
def test_the_pages_of_a_spilled_file_are_all_of_it_even_if_it_is_one_line(spilled: tuple[Context, Path], text: str) -> None:
    here, path = spilled
    path.write_text(text)
    found = pages(here, path)
    assert len(found) > 2
    assert "".join(line for page in found for line in page) == text.replace("\n", "")
    assert "are folded, and each piece counts as a line" in done("Read", here, file_path=str(path))


def test_a_file_of_short_lines_is_not_folded_and_says_nothing_of_it(spilled: tuple[Context, Path]) -> None:
    here, path = spilled
    path.write_text("".join(f"line {number}\n" for number in range(10)))
    assert done("Read", here, file_path=str(path)).splitlines()[-1] == "10\tline 9"


def test_a_file_elsewhere_keeps_its_line_numbers(spilled: tuple[Context, Path]) -> None:
    here, _ = spilled
    (here.cwd / "f").write_text("x" * 10_000 + "\nsecond\n")
    assert "\n2\tsecond" in done("Read", here, file_path="f")


@pytest.mark.spec("R1", "R5")
def test_a_page_with_all_its_notes_stays_in_the_conversation(spilled: tuple[Context, Path]) -> None:
    here, path = spilled
    path.write_bytes((b"x" * 1_500 + b"\xff\n") * 5_000)
    output = call("Read", here, file_path=str(path))
    assert PAGE_BYTES - 2_000 < len(output.content) <= MAX_RESULT


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@given(
    st.lists(st.tuples(st.sampled_from(["a", "é", "€", "𝄞", "\n", "\r\n", "\r"]), st.integers(1, 5_000)), max_size=8),
    st.sampled_from([1, 7, 1_999, 2_000, 2_001, 65_536]),
)
def test_folding_only_adds_line_ends_and_cuts_no_character(runs: list[tuple[str, int]], size: int) -> None:
    text = "".join(char * count for char, count in runs)
    parts = pieces(text.encode(), max(size, len(text) // 2_000 or 1))
    folded = b"".join(FoldedLines(parts))
    assert folded.replace(b"\n", b"") == text.encode().replace(b"\n", b"")
    folded.decode()
    assert all(len(line.removesuffix(b"\r")) <= LINE_CHARACTERS for line in folded.split(b"\n"))
    assert folded == b"".join(FoldedLines([text.encode()]))


def test_bytes_that_are_no_text_are_folded_too() -> None:
    folded = b"".join(FoldedLines(pieces(b"\x80" * 1_000_000, 65_536)))
    assert max(map(len, folded.split(b"\n"))) == LINE_CHARACTERS
    assert folded.replace(b"\n", b"") == b"\x80" * 1_000_000
