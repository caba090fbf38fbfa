"""Every request the Messages API refuses, through the SDK's own error classes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anthropic
import msgspec
import pytest

from lamina.core.cache import MAX_MARKS
from lamina.testing import Limits, MessagesServer

pytest_plugins = ["lamina.testing.plugin"]

MODEL = "claude-sonnet-5"
MARK = {"type": "ephemeral"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
TOOL = {"name": "Read", "input_schema": {"type": "object"}}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def said(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


HI = user(text("hi"))


def body(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"model": MODEL, "max_tokens": 100, "messages": list(messages) or [HI], **more}


REFUSED: list[tuple[str, Any, str]] = [
    ("no object", [], "not a JSON object"),
    ("no model", {"max_tokens": 1, "messages": [HI]}, "model: Field required"),
    ("no max_tokens", {"model": MODEL, "messages": [HI]}, "max_tokens: Field required"),
    ("no messages", {"model": MODEL, "max_tokens": 1}, "messages: Field required"),
    ("max_tokens is text", body(max_tokens="1"), "max_tokens: Input should be a valid integer"),
    ("max_tokens below zero", body(max_tokens=-1), "max_tokens: Input should be greater than or equal to 0"),
    ("model is a number", body(model=5), "model: Input should be a valid string"),
    ("messages is text", body(messages="hi"), "messages: Input should be a valid list"),
    ("messages is empty", body(messages=[]), "messages: at least one message is required"),
    ("unknown setting", body(flavour="mint"), "flavour: Extra inputs are not permitted"),
    ("edits without their beta", body(context_management={"edits": []}), "context_management: Extra inputs are not permitted"),
    ("cache edits without their beta", body(cache_edits={"delete": []}), "cache_edits: Extra inputs are not permitted"),
    ("the assistant begins", body(said(text("hi"))), 'first message must use the "user" role'),
    ("unknown role", body({"role": "robot", "content": "hi"}), "messages.0.role: Input should be 'user' or 'assistant'"),
    (
        "system role on a model without it",
        body({"role": "system", "content": "hi"}, model="claude-opus-4-1"),
        'Unexpected role "system"',
    ),
    ("system role first", body({"role": "system", "content": "hi"}), "messages.0: a system message must follow a user message"),
    (
        "system role before a user",
        body(HI, {"role": "system", "content": "hi"}, HI),
        "messages.1: a system message must be the last",
    ),
    (
        "settings of another kind in a system message",
        body(HI, {"role": "system", "content": "hi", "output_config": {"format": {}}}),
        "messages.1.output_config.format: Extra inputs are not permitted",
    ),
    (
        "an unknown effort in a system message",
        body(HI, {"role": "system", "content": "hi", "output_config": {"effort": "most"}}),
        "messages.1.output_config.effort: Input should be 'low'",
    ),
    (
        "settings in a user message",
        body({**HI, "output_config": {"effort": "low"}}),
        "messages.0.output_config: Extra inputs are not permitted",
    ),
    (
        "a system message that clears at another time",
        body(HI, {"role": "system", "content": "hi", "clear_at": "noon"}),
        "messages.1.clear_at: Input should be",
    ),
    (
        "a system message without anything",
        body(HI, {"role": "system", "output_config": {}}),
        "messages.1: all messages must have",
    ),
    ("no message", body("hi"), "messages.0.role: Input should be 'user' or 'assistant'"),
    ("unknown field of a message", body({**HI, "name": "x"}), "messages.0.name: Extra inputs are not permitted"),
    ("empty content", body(user()), "messages.0: all messages must have non-empty content"),
    ("empty string", body({"role": "user", "content": ""}), "messages.0: all messages must have non-empty content"),
    ("blank string", body({"role": "user", "content": " \n"}), "text content blocks must contain non-whitespace text"),
    ("content is a number", body({"role": "user", "content": 5}), "messages.0.content: Input should be a valid list"),
    ("empty text", body(user(text(""))), "messages: text content blocks must be non-empty"),
    (
        "empty marked text",
        body(user(text("", cache_control=MARK))),
        "messages.0.content.0.text: cache_control cannot be set for empty",
    ),
    ("blank text", body(user(text(" \n"))), "messages: text content blocks must contain non-whitespace text"),
    (
        "text is a number",
        body(user({"type": "text", "text": 5})),
        "messages.0.content.0.text.text: Input should be a valid string",
    ),
    ("empty system", body(system=[text("")]), "system: text content blocks must be non-empty"),
    ("system is an image", body(system=[{"type": "image"}]), "system.0.type: Input should be 'text'"),
    ("unknown type", body(user({"type": "poem"})), "messages.0.content.0: Input tag 'poem'"),
    (
        "unknown field of a block",
        body(user(text("hi", parsed=1))),
        "messages.0.content.0.text.parsed: Extra inputs are not permitted",
    ),
    ("missing field of a block", body(HI, said({**CALL, "id": None})), "messages.1.content.0.tool_use.id: Field required"),
    ("input is text", body(HI, said({**CALL, "input": "{}"})), "messages.1.content.0.tool_use.input: Input should be an object"),
    ("a call by the user", body(user(CALL)), "messages.0.content.0: `tool_use` blocks are not allowed in user messages"),
    (
        "a result by the assistant",
        body(HI, said(RESULT)),
        "messages.1.content.0: `tool_result` blocks are not allowed in assistant",
    ),
    ("blank end", body(HI, said(text("so: "))), "final assistant content cannot end with trailing whitespace"),
    (
        "blank end of a string",
        body(HI, {"role": "assistant", "content": "so: "}),
        "final assistant content cannot end with trailing",
    ),
    (
        "call at the end",
        body(HI, said(CALL)),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
    ),
    (
        "call not answered",
        body(HI, said(CALL), HI),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately",
    ),
    (
        "answered behind text",
        body(HI, said(CALL), user(text("so"), RESULT)),
        "`tool_use` ids were found without `tool_result` blocks",
    ),
    ("one of two answered", body(HI, said(CALL, {**CALL, "id": "toolu_2"}), user(RESULT)), "immediately after: toolu_2."),
    (
        "answered too late",
        body(HI, said(CALL), HI, said(text("so")), user(RESULT)),
        "messages.1: `tool_use` ids were found without",
    ),
    (
        "orphan result",
        body(user(RESULT)),
        "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1",
    ),
    (
        "result of an older call",
        body(HI, said(CALL), user(RESULT), said(text("so")), user(RESULT)),
        "messages.4.content.0: unexpected",
    ),
    ("two results", body(HI, said(CALL), user(RESULT, RESULT)), "each tool_use must have a single result"),
    (
        "id used twice",
        body(HI, said(CALL), user(RESULT), said(CALL), user(RESULT)),
        "messages.3.content.0: `tool_use` ids must be unique",
    ),
    (
        "empty error",
        body(HI, said(CALL), user({**RESULT, "is_error": True, "content": ""})),
        "content cannot be empty if `is_error`",
    ),
    (
        "empty text in a result",
        body(HI, said(CALL), user({**RESULT, "content": [text("")]})),
        "text content blocks must be non-empty",
    ),
    (
        "mark inside a result",
        body(HI, said(CALL), user({**RESULT, "content": [text("a", cache_control=MARK), text("b")]})),
        "only the last part of a result can carry a cache mark",
    ),
    (
        "five marks",
        body(user(*[text("x", cache_control=MARK)] * 5)),
        f"A maximum of {MAX_MARKS} blocks with cache_control may be provided. Found 5.",
    ),
    ("four and the request's own", body(user(*[text("x", cache_control=MARK)] * 4), cache_control=MARK), "Found 5."),
    (
        "an hour behind five minutes",
        body(user(text("a", cache_control=MARK), text("b", cache_control={**MARK, "ttl": "1h"}))),
        "messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m'",
    ),
    ("unknown mark", body(user(text("a", cache_control={"type": "forever"}))), "cache_control.type: Input should be 'ephemeral'"),
    (
        "unknown lifetime",
        body(user(text("a", cache_control={**MARK, "ttl": "2h"}))),
        "cache_control.ttl: Input should be '5m' or '1h'",
    ),
    ("tool without a schema", body(tools=[{"name": "Read"}]), "tools.0.custom.input_schema: Field required"),
    (
        "tool with a bad schema",
        body(tools=[{"name": "Read", "input_schema": {"type": "array"}}]),
        "input_schema.type: Input should be 'object'",
    ),
    ("tool with a bad name", body(tools=[{**TOOL, "name": "read it"}]), "tools.0.custom.name: String should match"),
    ("tool that is no object", body(tools=["Read"]), "tools.0: Input should be an object"),
    ("tool twice", body(tools=[TOOL, TOOL]), "Tool names must be unique"),
    ("choice without tools", body(tool_choice={"type": "auto"}), "tool_choice may only be specified while providing tools"),
    ("choice of no tool", body(tools=[TOOL], tool_choice={"type": "tool", "name": "Write"}), "Tool 'Write' not found"),
    (
        "little thinking",
        body(thinking={"type": "enabled", "budget_tokens": 100}),
        "budget_tokens: Input should be greater than or equal to 1024",
    ),
    ("more thinking than words", body(thinking={"type": "enabled", "budget_tokens": 2_000}), "`max_tokens` must be greater than"),
    (
        "forced tool while thinking",
        body(max_tokens=5_000, tools=[TOOL], tool_choice={"type": "any"}, thinking={"type": "enabled", "budget_tokens": 2_000}),
        "Thinking may not be enabled when tool_choice forces tool use",
    ),
    (
        "unsigned thinking",
        body(HI, said({"type": "thinking", "thinking": "x"}, text("a")), HI),
        "messages.1.content.0.thinking.signature: Field",
    ),
    (
        "forged thinking",
        body(HI, said({"type": "thinking", "thinking": "x", "signature": "bm90IG91cnM="}, text("a")), HI),
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
    (
        "nonsense for a signature",
        body(HI, said({"type": "thinking", "thinking": "x", "signature": "???"}, text("a")), HI),
        "messages.1.content.0: Invalid `signature`",
    ),
    (
        "a round that lost its thinking",
        body(HI, said(CALL), user(RESULT), max_tokens=5_000, thinking={"type": "enabled", "budget_tokens": 2_000}),
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`",
    ),
]


@pytest.mark.parametrize(("sent", "words"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_what_the_api_refuses_is_refused_with_the_place_named(
    sent: Any, words: str, messages_server: MessagesServer, client: anthropic.Anthropic
) -> None:
    with pytest.raises(anthropic.BadRequestError) as caught:
        client.post("/v1/messages", cast_to=object, body=sent)
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["type"] == "error"
    assert caught.value.body["error"]["type"] == "invalid_request_error"
    assert words in caught.value.body["error"]["message"]
    assert caught.value.request_id == caught.value.body["request_id"]
    assert (messages_server.requests[-1].status, messages_server.requests[-1].refused) == (400, True)


TAKEN: list[tuple[str, Any]] = [
    ("roles need not alternate", body(HI, HI, said(text("a")), said(text("b")), HI)),
    (
        "results in several user messages",
        body(HI, said(CALL, {**CALL, "id": "toolu_2"}), user(RESULT), user({**RESULT, "tool_use_id": "toolu_2"})),
    ),
    ("text behind the results", body(HI, said(CALL), user(RESULT, text("and this")))),
    ("an empty last assistant message", body(HI, said())),
    ("a system message behind a user's", body(HI, {"role": "system", "content": "be brief"})),
    (
        "a system message with settings for its turn",
        body(HI, {"role": "system", "content": "be brief", "output_config": {"effort": "low"}, "clear_at": "next_user_message"}),
    ),
    (
        "a system message with settings only",
        body(HI, {"role": "system", "output_config": {"effort": "low"}}, said(text("ok")), HI),
    ),
    (
        "four marks, hours first",
        body(user(*[text("x", cache_control={**MARK, "ttl": "1h"})] * 2, *[text("y", cache_control=MARK)] * 2)),
    ),
    ("server tools", body(HI, said({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}), HI)),
    ("other settings", body(temperature=0.5, stop_sequences=["x"], service_tier="auto", metadata={"user_id": "u"})),
]


@pytest.mark.parametrize("sent", [case[1] for case in TAKEN], ids=[case[0] for case in TAKEN])
def test_what_the_api_takes_is_taken(sent: Any, client: anthropic.Anthropic) -> None:
    client.post("/v1/messages", cast_to=object, body=sent)


def test_thinking_with_other_words_under_its_signature_is_refused(
    messages_server: MessagesServer, client: anthropic.Anthropic
) -> None:
    messages_server.reply(thinking="the truth", text="ok")
    answer = client.post("/v1/messages", cast_to=object, body=body())
    thought, words = json.loads(json.dumps(answer))["content"]
    with pytest.raises(anthropic.BadRequestError, match="Invalid `signature`"):
        client.post("/v1/messages", cast_to=object, body=body(HI, said({**thought, "thinking": "a lie"}, words), HI))
    client.post("/v1/messages", cast_to=object, body=body(HI, said(thought, words), HI))


def test_foreign_signatures_can_be_let_through(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    messages_server.limits = Limits(check_signatures=False)
    client.post(
        "/v1/messages", cast_to=object, body=body(HI, said({"type": "thinking", "thinking": "x", "signature": "theirs"}), HI)
    )


@pytest.mark.prefix_free("the history before a thought is changed on purpose")
def test_thinking_can_be_bound_to_the_conversation_before_it(
    messages_server: MessagesServer, client: anthropic.Anthropic
) -> None:
    messages_server.limits = Limits(bind_thinking=True)
    messages_server.reply(thinking="first", text="one")
    messages_server.reply(thinking="second", text="two")
    messages: list[Any] = [HI]
    for _ in range(2):
        answer: Any = client.post("/v1/messages", cast_to=object, body=body(*messages))
        messages += [said(*answer["content"]), HI]
    client.post("/v1/messages", cast_to=object, body=body(*messages))
    changed = [user(text("hello")), *messages[1:]]
    with pytest.raises(anthropic.BadRequestError, match=r"messages.1.content.0: .* bound to a different conversation"):
        client.post("/v1/messages", cast_to=object, body=body(*changed))
    dropped: Any = client.post(
        "/v1/messages",
        cast_to=object,
        body=body(*changed, thinking={"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}),
        options={"headers": {"anthropic-beta": "thinking-binding-controls-2026-08-01"}},
    )
    assert [entry["path"] for entry in dropped["input_transformations"]] == ["messages.1.content.0", "messages.3.content.0"]
    without: list[Any] = [
        {**message, "content": [block for block in message["content"] if block["type"] == "text"]} for message in changed
    ]
    assert dropped["usage"]["input_tokens"] == client.messages.count_tokens(model=MODEL, messages=without).input_tokens


@pytest.mark.parametrize("streamed", [False, True])
def test_a_prompt_beyond_the_window_is_refused_with_both_numbers(
    streamed: bool, messages_server: MessagesServer, client: anthropic.Anthropic
) -> None:
    messages_server.window = 10
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long: 11 tokens > 10 maximum"):
        client.post("/v1/messages", cast_to=object, body=body(user(text("x" * 44)), stream=streamed))
    client.post("/v1/messages", cast_to=object, body=body(user(text("x" * 40))))


def test_older_models_refuse_a_prompt_that_leaves_no_room_for_the_answer(
    messages_server: MessagesServer, client: anthropic.Anthropic
) -> None:
    messages_server.limits = Limits(window=100, limit_output=True)
    with pytest.raises(anthropic.BadRequestError, match=r"exceed context limit: 1 \+ 100 > 100"):
        client.post("/v1/messages", cast_to=object, body=body())


def test_a_body_beyond_the_limit_is_refused_and_the_connection_lives_on(
    messages_server: MessagesServer, client: anthropic.Anthropic
) -> None:
    messages_server.body_limit = 5_000
    with pytest.raises(anthropic.RequestTooLargeError):
        client.post("/v1/messages", cast_to=object, body=body(user(text("x" * 3_000_000))))
    client.post("/v1/messages", cast_to=object, body=body())


def test_a_wrong_key_and_no_key_are_refused(make_messages_server: Callable[..., MessagesServer]) -> None:
    server = make_messages_server(key="right")
    for key in ("wrong", "right"):
        with anthropic.Anthropic(api_key=key, base_url=server.url, max_retries=0) as client:
            if key == "right":
                client.post("/v1/messages", cast_to=object, body=body())
                continue
            with pytest.raises(anthropic.AuthenticationError) as caught:
                client.post("/v1/messages", cast_to=object, body=body())
            assert caught.value.status_code == 401
    with anthropic.Anthropic(auth_token="right", api_key=None, base_url=server.url, max_retries=0) as client:
        client.post("/v1/messages", cast_to=object, body=body())
    assert len(server.requests) == 2


def test_an_unknown_model_or_route_is_not_found(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    messages_server.limits = msgspec.structs.replace(messages_server.limits, models=frozenset({"claude-opus-5"}))
    with pytest.raises(anthropic.NotFoundError, match="model: claude-sonnet-5"):
        client.post("/v1/messages", cast_to=object, body=body())
    with pytest.raises(anthropic.NotFoundError, match="Not found: POST /v1/poems"):
        client.post("/v1/poems", cast_to=object, body=body())
    assert [model.id for model in client.models.list()] == ["claude-opus-5"]


def test_a_body_that_is_no_json_is_refused(messages_server: MessagesServer, client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match="not valid JSON"):
        client.post(
            "/v1/messages", cast_to=object, content=b'{"model": ', options={"headers": {"content-type": "application/json"}}
        )


def test_cache_edits_can_be_a_thing_the_provider_does_not_have(
    messages_server: MessagesServer, client: anthropic.Anthropic
) -> None:
    messages_server.limits = Limits(cache_edits=False)
    with pytest.raises(anthropic.BadRequestError, match="cache_edits: Extra inputs are not permitted"):
        client.post(
            "/v1/messages",
            cast_to=object,
            body=body(cache_edits={"delete": []}),
            options={"headers": {"anthropic-beta": "lamina-cache-edits-1"}},
        )
