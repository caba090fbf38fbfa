"""Opening a provider by name: which names are recognised or rejected, and that SDKs are imported only when needed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import anthropic
import pytest

import lamina
from lamina.core.errors import MissingExtra, SettingError, UsageError
from lamina.providers import DEFAULT_ANTHROPIC_MODEL, Named, configured, open_provider, read_spec
from lamina.providers.anthropic import AnthropicProvider
from lamina.providers.models import known
from lamina.providers.offline import OfflineProvider
from lamina.providers.openai import OpenAIProvider
from lamina.providers.sdk import load, preload


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("anthropic:claude-sonnet-5-5", ("anthropic", "claude-sonnet-5-5")),
        ("anthropic", ("anthropic", DEFAULT_ANTHROPIC_MODEL)),
        ("claude-opus-5-5", ("anthropic", "claude-opus-5-5")),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", ("anthropic", "us.anthropic.claude-sonnet-4-5-20250929-v1:0")),
        ("openai:gpt-5", ("openai", "gpt-5")),
        ("openai:qwen3:8b", ("openai", "qwen3:8b")),
        ("gpt-5-mini", ("openai", "gpt-5-mini")),
        ("o3", ("openai", "o3")),
        ("offline", ("offline", "offline")),
    ],
)
def test_a_name_says_who_answers(spec: str, expected: tuple[str, str]) -> None:
    assert read_spec(spec) == Named(*expected)


@pytest.mark.parametrize("spec", ["qwen3:8b", "llama", "", "mystery-7b"])
def test_a_name_that_could_be_anybodys_is_an_error_that_says_how_to_write_it(spec: str) -> None:
    with pytest.raises(SettingError, match="anthropic:MODEL"):
        read_spec(spec)


def test_with_a_base_url_any_other_model_is_that_servers() -> None:
    assert read_spec("qwen3:8b", base_url="http://localhost:11434/v1") == Named("openai", "qwen3:8b")


def test_the_default_model_is_one_we_know() -> None:
    assert known(DEFAULT_ANTHROPIC_MODEL) is not None


@pytest.mark.parametrize(("spec", "variable"), [("anthropic:claude-x", "ANTHROPIC_API_KEY"), ("openai:gpt-x", "OPENAI_API_KEY")])
def test_a_provider_by_name_without_a_key_is_an_error_and_no_silent_change(spec: str, variable: str) -> None:
    with pytest.raises(SettingError, match=variable):
        open_provider(spec, environ={})


@pytest.mark.spec("O2")
@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({}, "offline"),
        ({"ANTHROPIC_API_KEY": ""}, "offline"),
        ({"ANTHROPIC_API_KEY": "x", "OPENAI_API_KEY": "y"}, "anthropic"),
        ({"ANTHROPIC_AUTH_TOKEN": "x"}, "anthropic"),
        ({"OPENAI_API_KEY": "y"}, "openai"),
        ({"OPENAI_BASE_URL": "http://localhost:11434/v1"}, "openai"),
    ],
)
def test_the_environment_chooses_and_nothing_means_offline(environ: dict[str, str], name: str) -> None:
    assert configured(environ) == name


@pytest.mark.spec("O2")
def test_offline_needs_nothing() -> None:
    assert isinstance(open_provider("offline", environ={}), OfflineProvider)


def test_the_environment_is_read_from_the_mapping_handed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from the process")
    environ = {"ANTHROPIC_API_KEY": "from the mapping", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    provider = open_provider("anthropic:claude-x", environ=environ)
    assert isinstance(provider, AnthropicProvider)
    client = provider._clients.sync()
    assert (client.api_key, str(client.base_url), client.max_retries) == ("from the mapping", "http://127.0.0.1:9", 0)
    provider.close()


def test_a_token_is_sent_where_there_is_no_key() -> None:
    provider = open_provider("anthropic:claude-x", environ={"ANTHROPIC_AUTH_TOKEN": "t"})
    assert isinstance(provider, AnthropicProvider)
    client = provider._clients.sync()
    assert (client.api_key, client.auth_token) == (None, "t")
    provider.close()


@pytest.mark.parametrize("kind", [AnthropicProvider, OpenAIProvider])
def test_whoever_only_prepares_requests_needs_no_key_and_a_call_says_what_is_missing(
    kind: type[AnthropicProvider | OpenAIProvider],
) -> None:
    request = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]}
    provider = kind("m")
    assert provider.render(request)["model"] == "m"
    with pytest.raises(SettingError, match="neither an API key, a client nor a base URL"):
        provider.ask(request)


@pytest.mark.parametrize("url", ["nonsense://[", "127.0.0.1:80", "", "http://", "ftp://example.org"])
@pytest.mark.parametrize("provider", [AnthropicProvider, OpenAIProvider])
def test_a_base_url_that_is_none_is_an_error_before_the_first_call(provider: type, url: str) -> None:
    with pytest.raises(SettingError, match="base_url"):
        provider("m", base_url=url)


@pytest.mark.parametrize(("name", "url"), [("anthropic", "https://api.anthropic.com"), ("openai", "https://api.openai.com/v1/")])
def test_an_empty_base_url_in_the_environment_is_not_set(monkeypatch: pytest.MonkeyPatch, name: str, url: str) -> None:
    """The SDKs read the variable themselves, and take an empty one for an address."""
    monkeypatch.setenv(f"{name.upper()}_BASE_URL", "")
    provider = open_provider(f"{name}:m", environ={**os.environ, f"{name.upper()}_API_KEY": "k"})
    assert isinstance(provider, AnthropicProvider | OpenAIProvider)
    assert str(provider._clients.sync().base_url) == url
    provider.close()


def test_a_server_of_ones_own_needs_no_key() -> None:
    provider = open_provider("openai:qwen3:8b", environ={"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"})
    assert isinstance(provider, OpenAIProvider)
    assert str(provider._clients.sync().base_url) == "http://127.0.0.1:9/v1/"
    provider.close()


def test_a_client_is_taken_as_it_is_and_stays_open() -> None:
    with anthropic.Anthropic(api_key="mine", base_url="http://127.0.0.1:9", max_retries=7) as client:
        provider = open_provider("anthropic:claude-x", client=client, environ={})
        assert isinstance(provider, AnthropicProvider)
        ours = provider._clients.sync()
        assert (ours.api_key, ours.max_retries, client.max_retries) == ("mine", 0, 7)
        assert ours._client is client._client
        provider.close()
        assert not client.is_closed()


def test_an_async_client_alone_can_not_answer_a_sync_call() -> None:
    client = anthropic.AsyncAnthropic(api_key="mine", base_url="http://127.0.0.1:9")
    provider = open_provider("anthropic:claude-x", client=client, environ={})
    with pytest.raises(UsageError, match="async"):
        provider.ask({"model": "claude-x", "max_tokens": 1, "messages": []})


def test_a_missing_sdk_is_one_sentence_that_says_how_to_get_it() -> None:
    with pytest.raises(MissingExtra, match=r"\.\[no_such_sdk\]"):
        load("no_such_sdk")


def test_preloading_happens_in_a_thread_and_keeps_quiet_about_what_is_missing() -> None:
    for package in ("anthropic", "no_such_sdk"):
        thread = preload(package)
        assert thread is not threading.current_thread()
        thread.join(timeout=120)
        assert not thread.is_alive()


def test_opening_a_provider_imports_no_sdk() -> None:
    source = Path(lamina.__file__).parent.parent
    program = (
        "import sys; from lamina.providers import open_provider\n"
        "for spec in ('anthropic:claude-x', 'openai:gpt-x', 'offline'):\n"
        "    provider = open_provider(spec, environ={'ANTHROPIC_API_KEY': 'a', 'OPENAI_API_KEY': 'b'})\n"
        "    if spec != 'offline':\n"
        "        provider.render({'model': 'm', 'max_tokens': 1, 'messages': []})\n"
        "print([name for name in ('anthropic', 'openai', 'httpx2', 'asyncio') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(source)}, capture_output=True, text=True, timeout=240
    )
    assert done.stdout.strip() == "[]", done.stderr
