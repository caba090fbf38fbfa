"""Every fault becomes one typed error; the messages are those of real servers."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx2
import openai
import pytest

from lamina.core.errors import (
    AuthFailed,
    BadRequest,
    ConnectionLost,
    Overloaded,
    PromptTooLong,
    ProviderError,
    RateLimited,
    Refused,
    ServerFault,
    StreamBroken,
)
from lamina.providers.faults import Fault, is_outside, read_fault, retry_after, too_long, typed_error

NOW = 1_700_000_000.0
REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1/messages")


def typed(fault: Fault) -> ProviderError:
    return typed_error(fault, who="the server", now=NOW)


def anthropic_error(status: int, body: Any, headers: dict[str, str] | None = None) -> anthropic.APIStatusError:
    client = anthropic.Anthropic(api_key="x", base_url="http://127.0.0.1:9")
    response = httpx2.Response(status, json=body, request=REQUEST, headers=headers or {})
    with client:
        return client._make_status_error(str(body), body=body, response=response)


def openai_error(status: int, error: Any, headers: dict[str, str] | None = None) -> openai.APIStatusError:
    response = httpx2.Response(status, json={"error": error}, request=REQUEST, headers=headers or {})
    kind = {400: openai.BadRequestError, 429: openai.RateLimitError}.get(status, openai.APIStatusError)
    return kind(str(error), response=response, body=error)


@pytest.mark.parametrize(
    ("status", "expected", "retryable"),
    [
        (400, BadRequest, False),
        (401, AuthFailed, False),
        (402, AuthFailed, False),
        (403, AuthFailed, False),
        (404, BadRequest, False),
        (408, ConnectionLost, True),
        (409, BadRequest, True),
        (413, PromptTooLong, False),
        (422, BadRequest, False),
        (429, RateLimited, True),
        (500, ServerFault, True),
        (502, ServerFault, True),
        (503, Overloaded, True),
        (504, ServerFault, True),
        (529, Overloaded, True),
        (None, ServerFault, True),
    ],
)
def test_a_status_names_the_error_and_whether_time_helps(
    status: int | None, expected: type[ProviderError], retryable: bool
) -> None:
    error = typed(Fault("something", status, request_id="req_7"))
    assert type(error) is expected
    assert error.retryable is retryable
    assert error.status == status
    assert "something" in str(error)


@pytest.mark.parametrize(
    ("message", "actual", "limit"),
    [
        ("prompt is too long: 208310 tokens > 200000 maximum", 208_310, 200_000),
        ("input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease one", 242_959, 200_000),
        ("This model's maximum context length is 4097 tokens. However, your messages resulted in 13393 tokens.", 13_393, 4_097),
        ("This model's maximum context length is 8,191 tokens, however you requested 8,238 tokens (8,238 in it)", 8_238, 8_191),
        ("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300012 tokens.", 300_012, 272_000),
        (
            "maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the messages)",
            122_946,
            16_384,
        ),
        (
            "'max_tokens' is too large: 4096. This model's maximum context length is 8192 tokens and your request has 5000 input"
            " tokens (4096 > 8192 - 5000).",
            9_096,
            8_192,
        ),
        (
            "You passed 5000 input tokens and requested 100 output tokens. However, the context length is only 4096 tokens",
            5_100,
            4_096,
        ),
        ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", 5_000, 4_096),
        ("request (1407 tokens) exceeds the available context size (256 tokens), try increasing it", 1_407, 256),
        ("Requested tokens (2285) exceed context window of 2048", 2_285, 2_048),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", 1_200_000, 1_048_576),
        (
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            40_000,
            32_768,
        ),
    ],
)
def test_a_prompt_too_long_carries_the_servers_two_counts(message: str, actual: int, limit: int) -> None:
    error = typed(Fault(message, 400))
    assert isinstance(error, PromptTooLong)
    assert (error.actual, error.limit, error.gap) == (actual, limit, actual - limit)


@pytest.mark.parametrize(
    "fault",
    [
        Fault("prompt is too long", 400),
        Fault("Request exceeds the maximum size", 413, kind="request_too_large"),
        Fault("Your input exceeds the context window of this model.", 400, kind="context_length_exceeded"),
        Fault("the input length exceeds the context length", 400),
        Fault("Input is too long for requested model.", 400),
        Fault("the request exceeds the available context size. try increasing it", 500),
    ],
)
def test_a_prompt_too_long_without_counts_is_still_one(fault: Fault) -> None:
    error = typed(fault)
    assert isinstance(error, PromptTooLong)
    assert (error.actual, error.limit, error.gap) == (None, None, None)


@pytest.mark.parametrize(
    "fault",
    [Fault("tool name is too long", 400), Fault("max_tokens: 9000000 > 64000", 400), Fault("prompt is too long", 429)],
)
def test_other_faults_with_numbers_are_no_prompt_too_long(fault: Fault) -> None:
    assert too_long(fault) is None


def test_the_counts_llama_cpp_sends_beside_its_message_are_taken() -> None:
    raw = {"code": 400, "message": "too big", "type": "exceed_context_size_error", "n_prompt_tokens": 1_407, "n_ctx": 256}
    error = typed(read_fault(openai_error(400, raw)))
    assert isinstance(error, PromptTooLong)
    assert (error.actual, error.limit) == (1_407, 256)


def test_anthropics_error_is_read_with_its_request_id_and_wish() -> None:
    body = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}
    error = typed(read_fault(anthropic_error(429, body, {"request-id": "req_1", "retry-after": "12"})))
    assert isinstance(error, RateLimited)
    assert (error.status, error.request_id, error.retry_after) == (429, "req_1", 12.0)
    assert "slow down" in str(error)


def test_an_error_event_inside_a_stream_that_began_well_is_named_by_its_type() -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    error = typed(read_fault(anthropic_error(200, body)))
    assert type(error) is Overloaded
    assert error.status == 529


def test_the_openai_sdks_error_in_a_stream_has_no_response_and_is_named_by_its_code() -> None:
    body: dict[str, Any] = {"message": "The server had an error", "type": "server_error", "code": None}
    assert type(typed(read_fault(openai.APIError("x", REQUEST, body=body)))) is ServerFault
    body = {"message": "busy", "code": 503, "type": "unavailable_error"}
    assert type(typed(read_fault(openai.APIError("x", REQUEST, body=body)))) is Overloaded


def test_a_quota_that_is_used_up_is_not_waited_for() -> None:
    error = typed(
        read_fault(openai_error(429, {"message": "no money", "type": "insufficient_quota", "code": "insufficient_quota"}))
    )
    assert isinstance(error, RateLimited)
    assert not error.retryable


def test_a_request_the_server_declines_is_refused() -> None:
    raw = {"message": "filtered", "type": None, "code": "content_filter"}
    assert isinstance(typed(read_fault(openai_error(400, raw))), Refused)


@pytest.mark.parametrize(("wish", "status", "expected"), [("false", 500, False), ("true", 400, True)])
def test_the_servers_should_retry_overrules_the_status(wish: str, status: int, expected: bool) -> None:
    assert typed(Fault("x", status, headers={"x-should-retry": wish})).retryable is expected


@pytest.mark.parametrize(
    "error",
    [
        anthropic.APIConnectionError(request=REQUEST),
        anthropic.APITimeoutError(request=REQUEST),
        openai.APITimeoutError(request=REQUEST),
        httpx2.ReadError("reset"),
        httpx2.ReadTimeout("slow"),
        ConnectionResetError("reset"),
        OSError("no route"),
    ],
)
def test_a_lost_connection_is_one_error_whoever_reports_it(error: Exception) -> None:
    assert is_outside(error)
    found = typed(read_fault(error))
    assert type(found) is ConnectionLost
    assert found.retryable


def garbled() -> list[Exception]:
    found: list[Exception] = [httpx2.DecodingError("bad gzip")]
    for text in ("{", "<html>"):
        try:
            json.loads(text)
        except json.JSONDecodeError as error:
            found.append(error)
    try:
        b"\xff".decode()
    except UnicodeDecodeError as error:
        found.append(error)
    return found


@pytest.mark.parametrize("error", garbled(), ids=lambda error: type(error).__name__)
def test_an_answer_nobody_can_read_is_a_broken_stream(error: Exception) -> None:
    assert is_outside(error)
    found = typed(read_fault(error))
    assert type(found) is StreamBroken
    assert found.retryable


@pytest.mark.parametrize("error", [KeyError("x"), TypeError("x"), KeyboardInterrupt(), ValueError("x"), AssertionError()])
def test_a_mistake_in_a_program_is_none_of_ours(error: BaseException) -> None:
    assert not is_outside(error)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_wish_to_wait_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds


def test_a_page_of_html_becomes_one_short_line() -> None:
    error = typed(read_fault(anthropic_error(502, "<html>\n" + "x" * 9_000)))
    assert type(error) is ServerFault
    assert len(str(error)) < 700
    assert "\n" not in str(error)
