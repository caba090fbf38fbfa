"""Records survive a round trip unchanged, and any line can be read."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.histories import ENVELOPE, PICTURE, examples, histories, result, thought, use, words, written

from lamina.core.blocks import read_content, text
from lamina.core.record_lines import FORMAT, UNRECORDED_MARKER, Envelope, read_record, write_record
from lamina.core.records import (
    Attachment,
    Boundary,
    Break,
    Checkpoint,
    Clear,
    Event,
    Foreign,
    Forked,
    Message,
    Newer,
    Pin,
    Record,
    Revoke,
    Rewind,
    Snapshot,
    Span,
    Spill,
)
from lamina.core.usage import Usage

TIME = "2026-03-01T10:00:00.000Z"
HEAD = ("id", "up", TIME)

EVERY_KIND: list[Record] = [
    Message(*HEAD, "user", read_content("said")),
    Message(*HEAD, "user", read_content([result("t1", [words("a"), PICTURE], is_error=True)]), synthetic=True),
    Message(*HEAD, "user", read_content("in short"), summary=True, by="boundary"),
    Message(*HEAD, "user", read_content("told by a program"), meta=True),
    Message(
        *HEAD,
        "assistant",
        read_content([thought("hm"), words("said"), use("t1")]),
        message_id="m1",
        usage=Usage(1, 2, 3, 1, 5),
        stop_reason="tool_use",
        model="a-model",
    ),
    Message(*HEAD, "assistant", (), silent=True),
    Message("id", None, TIME, "user", read_content("side"), sidechain=True),
    Attachment(*HEAD, "reminder", read_content([words("one"), words("two")])),
    Attachment(*HEAD, "file", (), by="boundary"),
    Boundary(*HEAD, "manual", 5_000, ("a", "b"), {"ranges": [["kept", "", "a", "b"]]}),
    Boundary("id", None, TIME, "auto"),
    Spill(*HEAD, "t1", "preview", "/a/t1.txt", 9, "0" * 64),
    Clear(*HEAD, {"t1": "gone"}, ("a",), "idle", 20_000, {"ranges": []}),
    Clear(*HEAD, {}),
    Clear(*HEAD, {}, shortened={"a": [{"type": "text", "text": "short"}]}),
    Span(*HEAD, "snip", ("a", "b"), "two messages", 9, {"ranges": []}),
    Pin(*HEAD, target="a"),
    Pin(*HEAD, text="remember"),
    Revoke(*HEAD, "a"),
    Rewind(*HEAD, "a"),
    Rewind(*HEAD, None),
    Break(*HEAD, "clearing", 3, 9_000),
    Snapshot(*HEAD, [words("be brief")], [{"name": "Read"}], {"thinking": {"type": "enabled"}}),
    Checkpoint(*HEAD, "boundary", 4_096, {"count": {"measured": 7}}),
    Forked(*HEAD, "other", "/other.jsonl", "it is open"),
    Event(*HEAD, "cache_break", {"lost": 5}),
]


@pytest.mark.parametrize("record", EVERY_KIND, ids=lambda record: type(record).__name__)
def test_a_record_of_each_kind_comes_back_equal(record: Record) -> None:
    line = written(record)
    assert b"\n" not in line
    assert read_record(msgspec.json.decode(line)) == record


def test_every_kind_that_can_be_written_is_in_the_table() -> None:
    assert {type(record) for record in EVERY_KIND} == set(Record.__args__) - {Foreign, Newer}


@examples(200)
@given(histories())
def test_records_of_any_history_come_back_equal(records: list[Record]) -> None:
    for record in records:
        if not isinstance(record, Foreign | Newer):
            assert read_record(msgspec.json.decode(written(record))) == record


# Any line

scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
anything: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=6
)


@examples(300)
@given(st.sampled_from(EVERY_KIND), anything, st.integers(0, 1_000), st.booleans())
def test_a_line_with_anything_in_any_place_is_read_as_something(record: Record, value: Any, place: int, drop: bool) -> None:
    raw = msgspec.json.decode(written(record))
    spots = list(_spots(raw))
    parent, key = spots[place % len(spots)]
    if drop:
        del parent[key]
    else:
        parent[key] = value
    assert read_record(raw) is not None


def _spots(value: Any) -> Any:
    for key, inner in list(value.items()) if isinstance(value, dict) else list(enumerate(value)):
        yield value, key
        if isinstance(inner, dict | list):
            yield from _spots(inner)


@examples(100)
@given(st.dictionaries(st.sampled_from(["type", "subtype", "uuid", "message", "lamina", "parentUuid"]), anything))
def test_any_object_is_read_as_something(raw: dict[str, Any]) -> None:
    assert read_record(raw) is not None


@pytest.mark.parametrize(
    "raw",
    [
        {"type": "user", "uuid": "a", "message": "said"},
        {"type": "user", "uuid": "a", "message": None},
        {"type": "user", "uuid": "a", "message": {"content": [["no block"]]}},
        {"type": "attachment", "uuid": "a", "attachment": "text"},
        {"type": "system", "subtype": "compact_boundary", "uuid": "a", "compactMetadata": ["auto"]},
        {"type": "system", "subtype": "compact_boundary", "uuid": "a", "compactMetadata": {"preservedMessages": ["b"]}},
        {"type": "system", "subtype": "compact_boundary", "uuid": "a", "compactMetadata": {"preTokens": float("inf")}},
        {"type": "system", "subtype": "microcompact_boundary", "uuid": "a", "microcompactMetadata": "x"},
        {"type": "system", "subtype": "lamina", "uuid": "a", "lamina": {"kind": "spill", "data": ["x"]}},
        {"type": "system", "subtype": "lamina", "uuid": "a", "lamina": {"kind": "novelty", "data": {}}},
    ],
)
def test_a_record_that_makes_no_sense_is_foreign_and_keeps_its_place(raw: dict[str, Any]) -> None:
    assert read_record({**raw, "parentUuid": "up", "timestamp": TIME}) == Foreign(raw["type"], "a", "up", TIME)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"type": "summary", "leafUuid": "a", "summary": "s"}, Foreign("summary")),
        ({"type": "progress", "uuid": "a", "parentUuid": "up"}, Foreign("progress", "a", "up")),
        ({"type": "user", "message": {"content": "no id"}}, Foreign("user")),
        ({}, Foreign("unknown")),
    ],
)
def test_what_is_not_known_is_foreign(raw: dict[str, Any], expected: Foreign) -> None:
    assert read_record(raw) == expected


@pytest.mark.parametrize("record", EVERY_KIND[:1] + EVERY_KIND[-1:], ids=["message", "ours"])
def test_a_newer_format_is_seen_and_not_guessed_at(record: Record) -> None:
    raw = msgspec.json.decode(written(record))
    assert raw["lamina"]["v"] == FORMAT
    raw["lamina"]["v"] = FORMAT + 1
    assert read_record(raw) == Newer(FORMAT + 1, "id", "up", TIME)


def test_a_foreign_record_is_never_written() -> None:
    with pytest.raises(TypeError, match="foreign"):
        write_record(Foreign("progress", "a"), ENVELOPE)


# The format of other programs


def test_an_answer_of_another_program_is_read() -> None:
    record = read_record(
        {
            "type": "assistant",
            "uuid": "a",
            "parentUuid": "up",
            "timestamp": TIME,
            "isSidechain": False,
            "requestId": "req",
            "message": {
                "id": "m1",
                "model": "a-model",
                "role": "assistant",
                "content": [words("said")],
                "stop_reason": None,
                "usage": {
                    "input_tokens": 3,
                    "cache_read_input_tokens": 40,
                    "cache_creation_input_tokens": 7,
                    "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 5},
                    "output_tokens": 1,
                },
            },
        }
    )
    assert record == Message(
        "a", "up", TIME, "assistant", (text("said"),), message_id="m1", usage=Usage(3, 40, 7, 5, 1), model="a-model"
    )


def test_an_api_error_shown_as_the_assistants_words_is_silent() -> None:
    raw = {"type": "assistant", "uuid": "a", "isApiErrorMessage": True, "message": {"content": [words("API Error: 529")]}}
    record = read_record(raw)
    assert isinstance(record, Message)
    assert record.silent


def test_a_boundary_of_another_program_is_read_with_what_it_kept() -> None:
    raw = {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "b",
        "parentUuid": None,
        "logicalParentUuid": "leaf",
        "compactMetadata": {"trigger": "manual", "preTokens": 9, "preservedMessages": {"anchorUuid": "b", "uuids": ["x", "y"]}},
    }
    assert read_record(raw) == Boundary("b", "leaf", "", "manual", 9, ("x", "y"))


def test_a_clearing_of_another_program_gets_a_marker_of_ours() -> None:
    cleared = {"trigger": "auto", "tokensSaved": 9, "compactedToolIds": ["t1"], "clearedAttachmentUUIDs": ["x"]}
    raw = {"type": "system", "subtype": "microcompact_boundary", "uuid": "c", "microcompactMetadata": cleared}
    assert read_record(raw) == Clear("c", None, "", {"t1": UNRECORDED_MARKER}, ("x",), "auto", 9)


@pytest.mark.parametrize("rendered", [["one"], [words("one")], "one"])
def test_an_attachment_is_read_as_it_was_rendered(rendered: Any) -> None:
    raw = {"type": "attachment", "uuid": "a", "attachment": {"type": "file", "rendered": rendered, "renderedRole": "user"}}
    record = read_record(raw)
    assert isinstance(record, Attachment)
    assert record.blocks == (text("one"),)


def test_an_attachment_that_was_not_rendered_shows_nothing() -> None:
    record = read_record({"type": "attachment", "uuid": "a", "attachment": {"type": "hook_success", "content": "x"}})
    assert record == Attachment("a", None, "", "hook_success", ())


def test_other_readers_find_the_fields_they_know() -> None:
    raw = json.loads(write_record(EVERY_KIND[4], Envelope("s1", "/work", "1.2", "main", sidechain=True, agent_id="a7")))
    common = {"parentUuid": "up", "isSidechain": True, "userType": "external", "cwd": "/work", "sessionId": "s1"}
    assert common.items() <= raw.items()
    assert {"version": "1.2", "gitBranch": "main", "agentId": "a7", "uuid": "id", "timestamp": TIME}.items() <= raw.items()
    assert raw["type"] == raw["message"]["role"] == "assistant"
    boundary = json.loads(written(EVERY_KIND[9]))
    assert (boundary["parentUuid"], boundary["logicalParentUuid"]) == (None, "up")
    assert boundary["compactMetadata"]["preservedSegment"] == {"headUuid": "a", "anchorUuid": "id", "tailUuid": "b"}
    summary = json.loads(written(EVERY_KIND[2]))
    assert summary["isCompactSummary"]
    assert summary["isVisibleInTranscriptOnly"]


RESTORED = {
    "type": "attachment",
    "uuid": "f",
    "parentUuid": "s",
    "attachment": {
        "type": "file",
        "filename": "/w/a.py",
        "content": {"type": "text", "file": {"filePath": "/w/a.py", "content": "one\ntwo\n", "numLines": 3, "startLine": 4}},
    },
}


@pytest.mark.spec("U7")
def test_a_file_that_another_program_restored_is_read_as_it_was_sent() -> None:
    sent = ["<system-reminder>\nCalled Read\n</system-reminder>", "<system-reminder>\n4\tone\n</system-reminder>"]
    record = read_record({**RESTORED, "rendered": [{"content": part} for part in sent], "renderedRole": "user"})
    assert isinstance(record, Attachment)
    assert [block.wire["text"] for block in record.blocks] == sent


@pytest.mark.spec("U7")
def test_a_file_that_another_program_restored_without_its_rendering_is_read_from_its_content() -> None:
    record = read_record(RESTORED)
    assert isinstance(record, Attachment)
    [block] = record.blocks
    assert "/w/a.py was read before the compaction" in block.wire["text"]
    assert "4\tone\n5\ttwo" in block.wire["text"]


def test_what_another_program_says_of_itself_is_left_out() -> None:
    raw = {**RESTORED, "attachment": {"type": "skill_listing"}, "rendered": [{"content": "skills you do not have"}]}
    record = read_record(raw)
    assert isinstance(record, Attachment)
    assert record.blocks == ()


@pytest.mark.parametrize("content", [None, "text", {"type": "image"}, {"file": {"content": 5}}, {"file": None}])
def test_an_odd_restored_file_is_no_reason_to_fail(content: object) -> None:
    record = read_record({**RESTORED, "attachment": {"type": "file", "content": content}, "rendered": [{}]})
    assert isinstance(record, Attachment | Foreign)
