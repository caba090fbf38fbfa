"""Replies: SDK objects and their JSON in one format, and which calls may be executed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.core.histories import thought, use, words

from lamina.core.blocks import ToolUse, text
from lamina.core.errors import InputError
from lamina.core.reply import Reply, plain, read_response
from lamina.core.usage import Usage

RESPONSE: dict[str, Any] = {
    "id": "m1",
    "type": "message",
    "role": "assistant",
    "model": "a-model",
    "content": [thought("hm"), words("two "), words("parts"), use("t1"), use("t2")],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 9, "output_tokens": 4},
    "context_management": {"applied_edits": []},
}


def test_a_response_is_read() -> None:
    reply = read_response(RESPONSE)
    assert (reply.id, reply.model, reply.stop_reason) == ("m1", "a-model", "tool_use")
    assert reply.usage == Usage(9, output_tokens=4)
    assert reply.text == "two parts"
    assert [call.id for call in reply.tool_uses] == ["t1", "t2"]
    assert reply.notes == {"context_management": {"applied_edits": []}}
    assert reply.complete


class Dumped:
    """An object that behaves like those of the SDKs."""

    _request_id = "req_1"

    def model_dump(self, *, mode: str, exclude_none: bool) -> dict[str, Any]:
        assert (mode, exclude_none) == ("json", True)
        return RESPONSE


class Older:
    def to_dict(self) -> dict[str, Any]:
        return RESPONSE


@pytest.mark.parametrize("response", [Dumped(), Older()], ids=["model_dump", "to_dict"])
def test_an_sdks_object_is_read_like_its_json(response: object) -> None:
    assert read_response(response).blocks == read_response(RESPONSE).blocks


def test_the_request_id_of_an_sdks_object_is_kept() -> None:
    assert read_response(Dumped()).request_id == "req_1"
    assert read_response(RESPONSE).request_id is None


@pytest.mark.parametrize("reason", [None, "max_tokens", "refusal", "end_turn", "pause_turn", "model_context_window_exceeded"])
def test_the_calls_of_an_answer_that_did_not_stop_for_them_are_not_executed(reason: str | None) -> None:
    reply = read_response({**RESPONSE, "stop_reason": reason})
    assert reply.tool_uses == ()
    assert reply.complete is (reason is not None)
    assert any(isinstance(block, ToolUse) for block in reply.blocks)


@pytest.mark.parametrize(
    "response",
    [
        5,
        None,
        "text",
        [],
        {},
        {"type": "error", "error": {"message": "overloaded"}, "content": []},
        {"content": 5},
        {"content": [5]},
        {"content": [{"type": "text"}]},
    ],
)
def test_what_is_no_message_is_refused(response: object) -> None:
    with pytest.raises(InputError, match="response"):
        read_response(response)


def test_an_object_that_dumps_to_no_object_is_refused() -> None:
    class Odd:
        def to_dict(self) -> list[int]:
            return [1]

    with pytest.raises(InputError, match="Odd"):
        plain(Odd())


def test_a_bare_answer_is_enough() -> None:
    reply = read_response({"content": "said"})
    assert reply == Reply("", "", (text("said"),), None)
    assert not reply.complete
