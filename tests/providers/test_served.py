"""A server of the user's own names its models and their windows."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import lamina
from lamina.providers import DEFAULT_OPENAI_MODEL, open_provider
from lamina.providers.models import known
from lamina.providers.served import ServedModel, served_model
from lamina.session.base import conversation_of

LLAMA_CPP = {"object": "list", "data": [{"id": "smol.gguf", "object": "model", "meta": {"n_ctx_train": 131_072}}]}


class Server:
    """Answers GET requests with the JSON that is put here, by path."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[tuple[str, str | None]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.path, self.headers.get("Authorization")))
                known = self.path in outer.answers
                body = outer.answers[self.path] if known else {"error": "not found"}
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(200 if known else 404)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                return

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.close()


def test_llama_cpp_states_the_window_it_was_started_with(server: Server) -> None:
    server.answers = {"/v1/models": LLAMA_CPP, "/props": {"default_generation_settings": {"n_ctx": 16_384}}}
    assert served_model(server.url) == ServedModel("smol.gguf", 16_384)


@pytest.mark.parametrize("key", ["max_model_len", "context_length", "context_window", "loaded_context_length"])
def test_other_servers_state_it_in_their_list(server: Server, key: str) -> None:
    server.answers = {"/v1/models": {"data": [{"id": "a", key: 8_192}, {"id": "b", key: 32_768}]}}
    assert served_model(server.url, model="b", key="secret") == ServedModel("b", 32_768)
    assert server.asked == [("/v1/models", "Bearer secret")]


@pytest.mark.parametrize(
    "answer",
    [b"<html>", [], {"data": None}, {"data": [{"id": 7}]}, {"data": [{"id": "a"}, {"id": "b"}]}],
)
def test_an_answer_that_says_nothing_is_no_error(server: Server, answer: object) -> None:
    server.answers = {"/v1/models": answer}
    assert served_model(server.url, model="mine") is None


@pytest.mark.parametrize("window", [0, -1, True, "many", None, 2.5])
def test_a_window_that_is_none_is_left_out(server: Server, window: object) -> None:
    server.answers = {"/v1/models": {"data": [{"id": "a", "max_model_len": window}]}}
    assert served_model(server.url, model="a") == ServedModel("a", None)


def test_a_server_that_is_away_is_no_error() -> None:
    assert served_model("http://127.0.0.1:9/v1") is None


@pytest.mark.spec("T4")
def test_a_session_believes_the_window_that_the_server_states(server: Server, tmp_path: Path) -> None:
    server.answers = {"/v1/models": LLAMA_CPP, "/props": {"default_generation_settings": {"n_ctx": 16_384}}}
    provider = open_provider("openai:smol.gguf", base_url=server.url)
    with lamina.Session(provider, home=tmp_path, cwd=tmp_path) as session:
        assert conversation_of(session).limits.window == 16_384
        assert not [one for one in session.notices if "LAMINA_CONTEXT_WINDOW" in one]
    with lamina.Session(provider, home=tmp_path, cwd=tmp_path, window=64_000) as session:
        assert conversation_of(session).limits.window == 64_000


@pytest.mark.parametrize("environ", [{"OPENAI_API_KEY": "any"}])
def test_a_key_alone_is_enough(environ: Mapping[str, str]) -> None:
    provider = open_provider("openai", environ=environ)
    assert provider.model == DEFAULT_OPENAI_MODEL
    assert known(DEFAULT_OPENAI_MODEL) is not None


def test_a_base_url_alone_takes_the_model_that_is_served(server: Server) -> None:
    server.answers = {"/v1/models": LLAMA_CPP}
    assert open_provider("openai", environ={"OPENAI_BASE_URL": server.url}).model == "smol.gguf"


@pytest.mark.spec("T4")
def test_a_model_whose_long_window_needs_a_header_has_200_000_tokens_unless_more_is_asked_for(tmp_path: Path) -> None:
    def window(model: str, **options: Any) -> int:
        with lamina.Session(f"anthropic:{model}", home=tmp_path, cwd=tmp_path, **options) as session:
            return conversation_of(session).limits.window

    assert window("claude-sonnet-4-5") == 200_000
    assert window("claude-sonnet-4-5[1m]") == 1_000_000
    assert window("claude-sonnet-4-5", options={"betas": ["context-1m-2025-08-07"]}) == 1_000_000
    header = {"Anthropic-Beta": "some-other-beta,context-1m-2025-08-07"}
    assert window("claude-sonnet-4-5", options={"extra_headers": header}) == 1_000_000
    assert window("claude-sonnet-4-5", options={"extra_headers": {"Anthropic-Beta": "some-other-beta"}}) == 200_000
    assert window("claude-opus-4-6") == 1_000_000
