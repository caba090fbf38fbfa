"""A canonical request as keyword arguments of the SDK's create()."""

from __future__ import annotations

import copy
import inspect
import logging
from typing import Any

import anthropic
import openai
import pytest

from lamina.core.cache import CACHE_EDITS_BETA
from lamina.providers import Capabilities
from lamina.providers.anthropic import AnthropicProvider, _warn_left_out, capabilities_at, render
from lamina.providers.openai import Dialect, OpenAIProvider, adapted, chat_tool_choice, dialect_at

Wire = dict[str, Any]

EVERYTHING = Capabilities(
    "messages", cache_marks=True, cache_ttl_1h=True, cache_edits=True, context_management=True, diagnostics=True, thinking=True
)
USER = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
REQUEST: Wire = {
    "model": "claude-sonnet-5-5",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "be kind"}],
    "tools": [{"name": "Read", "description": "reads", "input_schema": {"type": "object"}}],
    "messages": [USER],
}
M5 = {"edits": [{"type": "clear_tool_uses_20250919", "trigger": {"type": "input_tokens", "value": 180_000}}]}


def chat_provider(**options: Any) -> OpenAIProvider:
    return OpenAIProvider("m", base_url="http://127.0.0.1:9/v1", **options)


def test_a_plain_request_is_left_as_it_is_and_shared() -> None:
    rendered = render(REQUEST, EVERYTHING)
    assert rendered == REQUEST
    assert rendered["messages"] is REQUEST["messages"]


def test_every_key_is_one_the_sdks_create_takes() -> None:
    request = {**REQUEST, "temperature": 0, "betas": ["a"], "context_management": M5, "output_config": {"effort": "low"}}
    known = inspect.signature(anthropic.resources.messages.Messages.create).parameters
    assert set(render(request, EVERYTHING)) <= set(known)
    known = inspect.signature(openai.resources.chat.completions.Completions.create).parameters
    assert set(chat_provider().render(request)) <= set(known)


def test_context_management_rides_in_the_body_with_its_beta_in_the_header() -> None:
    rendered = render(
        {**REQUEST, "context_management": M5, "betas": ["mine-1"], "extra_headers": {"Anthropic-Beta": "theirs-1"}}, EVERYTHING
    )
    assert rendered["extra_body"] == {"context_management": M5}
    assert rendered["extra_headers"] == {"anthropic-beta": "theirs-1,mine-1,context-management-2025-06-27"}


def test_a_server_not_known_to_have_it_is_not_sent_it_and_that_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    _warn_left_out.cache_clear()
    with caplog.at_level(logging.WARNING, logger="lamina.providers"):
        for _ in range(2):
            assert render({**REQUEST, "context_management": M5}, Capabilities("messages")) == REQUEST
    assert len(caplog.records) == 1


def test_other_server_side_keys_bring_their_betas() -> None:
    request = {**REQUEST, "diagnostics": {"previous_message_id": "msg_1"}, "cache_edits": {"delete": []}}
    rendered = render({**request, "context_management": {"edits": [{"type": "compact_20260112"}]}}, EVERYTHING)
    betas = rendered["extra_headers"]["anthropic-beta"].split(",")
    assert set(betas) == {"cache-diagnosis-2026-04-07", CACHE_EDITS_BETA, "context-management-2025-06-27", "compact-2026-01-12"}
    assert set(rendered["extra_body"]) == {"diagnostics", "cache_edits", "context_management"}


def test_sampling_options_ride_in_the_body_whatever_the_sdks_version() -> None:
    rendered = render(
        {**REQUEST, "temperature": 0.5, "top_k": 3, "extra_body": {"mine": 1}, "stop_sequences": ["x"], "tools": []}, EVERYTHING
    )
    assert rendered["extra_body"] == {"mine": 1, "temperature": 0.5, "top_k": 3}
    assert rendered["stop_sequences"] == ["x"]
    assert "tools" not in rendered


@pytest.mark.spec("T4")
@pytest.mark.parametrize(
    ("model", "sent", "beta"),
    [
        ("claude-sonnet-4-5[1m]", "claude-sonnet-4-5", "context-1m-2025-08-07"),
        ("claude-sonnet-5-5[1m]", "claude-sonnet-5-5", None),
        ("claude-sonnet-5-5", "claude-sonnet-5-5", None),
    ],
)
def test_the_long_window_is_asked_for_by_header_where_it_needs_one(model: str, sent: str, beta: str | None) -> None:
    rendered = render({**REQUEST, "model": model}, EVERYTHING)
    assert rendered["model"] == sent
    assert rendered.get("extra_headers") == ({"anthropic-beta": beta} if beta else None)


def test_what_a_server_can_do_is_known_by_its_address() -> None:
    assert capabilities_at(None).context_management
    assert capabilities_at("https://api.anthropic.com/").diagnostics
    assert not capabilities_at("https://anthropic.com.example.org").context_management
    assert capabilities_at("http://127.0.0.1:8080").cache_marks
    client = anthropic.Anthropic(api_key="x", base_url="http://127.0.0.1:9")
    with client:
        assert not AnthropicProvider("m", client=client).capabilities.context_management
        assert AnthropicProvider("m", client=client, capabilities=EVERYTHING).capabilities == EVERYTHING


def test_a_chat_request_has_system_tools_and_limits_in_chat_form() -> None:
    request = {
        **REQUEST,
        "stop_sequences": ["END"],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "thinking": {"type": "adaptive"},
    }
    assert chat_provider().render(request) == {
        "model": "claude-sonnet-5-5",
        "messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}],
        "max_tokens": 100,
        "tools": [{"type": "function", "function": {"name": "Read", "description": "reads", "parameters": {"type": "object"}}}],
        "tool_choice": "required",
        "parallel_tool_calls": False,
        "stop": ["END"],
    }


def test_options_of_other_servers_ride_in_the_body_and_anthropics_own_stay_out() -> None:
    request = {
        **REQUEST,
        "temperature": 0,
        "top_k": 5,
        "extra_body": {"seed": 7},
        "betas": ["x"],
        "context_management": M5,
        "tools": None,
    }
    rendered = chat_provider().render(request)
    assert rendered["extra_body"] == {"seed": 7, "top_k": 5}
    assert rendered["temperature"] == 0
    assert not {"betas", "context_management", "tools", "extra_headers"} & set(rendered)


def test_a_json_schema_asked_for_is_a_response_format() -> None:
    request = {**REQUEST, "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}}
    assert chat_provider().render(request)["response_format"]["json_schema"]["schema"] == {"type": "object"}


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, {}),
        ({"type": "auto"}, {"tool_choice": "auto"}),
        ({"type": "none"}, {"tool_choice": "none"}),
        ({"type": "tool", "name": "f"}, {"tool_choice": {"type": "function", "function": {"name": "f"}}}),
    ],
)
def test_a_tool_choice_is_converted(choice: Wire | None, expected: Wire) -> None:
    assert chat_tool_choice(choice) == expected


def test_a_growing_conversation_converts_only_what_is_new_and_shares_the_rest() -> None:
    provider = chat_provider()
    messages = [{"role": ("user", "assistant")[n % 2], "content": [{"type": "text", "text": f"m{n}"}]} for n in range(20)]
    before = copy.deepcopy(messages)
    first = provider.render({**REQUEST, "messages": messages[:19]})["messages"]
    second = provider.render({**REQUEST, "messages": messages})["messages"]
    assert len(second) == len(first) + 1
    assert all(one is other for one, other in zip(first[1:], second[1:], strict=False))
    assert provider.render(REQUEST)["tools"] is provider.render(REQUEST)["tools"]
    assert messages == before


def test_converted_messages_of_conversations_long_gone_are_dropped() -> None:
    provider = chat_provider()
    for _ in range(40):
        messages = [{"role": "user", "content": [{"type": "text", "text": "x"}]} for _ in range(100)]
        provider.render({**REQUEST, "messages": messages})
    assert len(provider._converted) <= 2 * 100 + 1_000 + 100


def test_the_name_of_the_output_limit_follows_the_address_and_the_first_rejection() -> None:
    assert dialect_at(None).max_tokens == dialect_at("https://api.openai.com/v1").max_tokens == "max_completion_tokens"
    assert dialect_at("https://me.openai.azure.com/").max_tokens == "max_completion_tokens"
    assert dialect_at("http://localhost:11434/v1").max_tokens == "max_tokens"
    rejected = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    changed = adapted(Dialect(), rejected)
    assert changed == Dialect(max_tokens="max_completion_tokens")
    assert adapted(changed, rejected) == changed
    assert adapted(Dialect(), "unknown field: stream_options") == Dialect(usage_in_stream=False)
    assert adapted(Dialect(), "messages: too many") == Dialect()
