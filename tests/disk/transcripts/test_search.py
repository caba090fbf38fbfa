"""Listing sessions: two bounded reads of each file say who, where, when and about what, and nothing in a file can spoil the list."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.session.foreign import SESSION, TEXTS, foreign_transcript

from lamina.disk.regular_file import subdirectories
from lamina.disk.transcripts.search import (
    HEAD_BYTES,
    TAIL_BYTES,
    TITLE_CHARS,
    list_sessions,
    read_session_info,
)


def transcript(directory: Path, *rows: Any, name: str = "s") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows), encoding="utf-8")
    return path


def said(words: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": "user",
        "cwd": "/here",
        "timestamp": "2026-01-02T03:04:05Z",
        "message": {"role": "user", "content": words},
        **more,
    }


def title(directory: Path, *rows: Any) -> str:
    info = read_session_info(transcript(directory, *rows))
    assert info is not None
    return info.title


def test_another_programs_session_is_listed_with_what_its_file_says(tmp_path: Path) -> None:
    path = foreign_transcript(tmp_path / "p", cwd="/somewhere")
    os.utime(path, (1_000, 1_000))
    (info,) = list_sessions([tmp_path / "p"])
    assert (info.id, info.path, info.source, info.cwd) == (SESSION, str(path), "claude-code", "/somewhere")
    assert (info.title, info.modified, info.size) == ("Ports of the service", 1_000, path.stat().st_size)
    assert info.started == "2026-02-03T04:05:00.000Z"


def test_one_record_of_ours_makes_it_ours(tmp_path: Path) -> None:
    info = read_session_info(transcript(tmp_path, said("a"), said("b", lamina={"v": 1})))
    assert info is not None
    assert info.source == "lamina"


def test_the_title_is_the_last_one_given_or_the_first_thing_a_person_said(tmp_path: Path) -> None:
    assert title(tmp_path, said("hello  there\nyou")) == "hello there you"
    assert title(tmp_path, said([{"type": "text", "text": "in a block"}])) == "in a block"
    assert title(tmp_path, said("x", isMeta=True), said("y", isCompactSummary=True), said("z")) == "z"
    injected = ["<system-reminder>x", "<command-name>x", "Caveat: x", "[Request interrupted by user]"]
    assert title(tmp_path, *map(said, injected), said("the question")) == "the question"
    assert (
        title(tmp_path, said("hello"), {"type": "summary", "summary": "older"}, {"type": "ai-title", "aiTitle": "newer"})
        == "newer"
    )
    assert title(tmp_path, said([{"type": "tool_result", "tool_use_id": "c", "content": "x"}])) == ""
    assert len(title(tmp_path, said("x" * 10_000))) == TITLE_CHARS
    assert title(tmp_path, said("x" * 10_000)).endswith("…")


STRANGE: list[Any] = [
    "",
    "garbage",
    "[]",
    "5",
    '{"type":"user","message":{"content":[5,null,{"text":7}]}}',
    said(5),
    said(None),
    said({"a": 1}),
    {"type": "user", "message": 5},
    {"type": "user", "message": {"content": [["nested"]]}},
    {"type": 5, "cwd": 5, "timestamp": {}, "summary": 5},
    {"type": "summary", "summary": ["x"]},
    {"type": "custom-title"},
    '{"deep":' * 5_000,
    '{"type":"user","message":{"content":"\\ud83d"}}',
]


@pytest.mark.parametrize("row", STRANGE, ids=str)
def test_a_strange_record_does_not_hide_the_session(tmp_path: Path, row: Any) -> None:
    info = read_session_info(transcript(tmp_path, row, said("the question")))
    assert info is not None
    assert info.cwd == "/here"
    assert info.title in ("the question", "\ufffd")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["type", "message", "content", "text", "summary", "cwd"]), inner)
    ),
    max_leaves=8,
)


@given(rows=st.lists(VALUES, max_size=4), junk=st.binary(max_size=20))
def test_no_file_can_spoil_the_list(rows: list[Any], junk: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("p")
    good = transcript(directory, said("good"), name="good")
    bad = transcript(directory, *rows, name="bad")
    bad.write_bytes(bad.read_bytes() + junk)
    titles = {info.id: info.title for info in list_sessions([directory])}
    assert titles["good"] == "good"
    assert set(titles) <= {good.stem, bad.stem}


def test_the_newest_is_first_and_what_is_no_session_is_left_out(tmp_path: Path) -> None:
    for seconds, name in enumerate(("old", "newer", "newest")):
        os.utime(transcript(tmp_path / "p", said(name), name=name), (1_000 + seconds, 1_000 + seconds))
    (tmp_path / "p" / "never-began.jsonl").touch()
    (tmp_path / "p" / "directory.jsonl").mkdir()
    (tmp_path / "p" / "notes.txt").write_text("x")
    (tmp_path / "p" / "link.jsonl").symlink_to("old.jsonl")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "p" / "pipe.jsonl")
    assert [info.id for info in list_sessions([tmp_path / "p", tmp_path / "none"])] == ["newest", "newer", "old"]


def test_a_file_of_gigabytes_costs_two_bounded_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = transcript(tmp_path, said("the question"))
    with path.open("ab") as file:
        file.truncate(3 << 30)
        file.seek(0, os.SEEK_END)
        file.write(b'\n{"type":"custom-title","customTitle":"at the end"}\n')
    taken: list[int] = []
    decode = msgspec.json.decode

    def counted(data: bytes) -> Any:
        taken.append(len(data))
        return decode(data)

    monkeypatch.setattr(msgspec.json, "decode", counted)
    info = read_session_info(path)
    assert info is not None
    assert info.title == "at the end"
    assert info.size > 3 << 30
    assert sum(taken) <= HEAD_BYTES + TAIL_BYTES


def test_a_title_in_the_last_lines_is_found_between_head_and_tail(tmp_path: Path) -> None:
    filler = [{"type": "x", "pad": "y" * 1_000} for _ in range(400)]
    assert title(tmp_path, said("first"), *filler, {"type": "summary", "summary": "last"}) == "last"
    assert title(tmp_path, said("first"), *filler) == "first"


def test_a_file_that_goes_away_is_left_out(tmp_path: Path) -> None:
    assert read_session_info(tmp_path / "none.jsonl") is None


def test_projects_are_directories_and_no_links(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("a")
    assert [path.name for path in subdirectories(tmp_path)] == ["a", "b"]
    assert subdirectories(tmp_path / "none") == []


def test_the_foreign_fixture_says_what_it_claims(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in foreign_transcript(tmp_path).read_text().splitlines()]
    prompts = [row for row in rows if row["type"] == "user" and row["message"]["content"] in TEXTS]
    assert len(prompts) == 1
