"""HTTP details no SDK of ours uses but others do: chunked requests, keep-alive, expectations, rubbish."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from lamina.testing import MessagesServer

pytest_plugins = ["lamina.testing.plugin"]

BODY = json.dumps({"model": "claude-sonnet-5", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}).encode()
HEADERS = {"x-api-key": "any"}


@pytest.fixture
def connection(messages_server: MessagesServer) -> Iterator[http.client.HTTPConnection]:
    made = http.client.HTTPConnection("127.0.0.1", int(messages_server.url.rsplit(":", 1)[1]), timeout=120)
    yield made
    made.close()


def answer(connection: http.client.HTTPConnection) -> tuple[int, Any]:
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def test_a_connection_serves_many_requests(connection: http.client.HTTPConnection) -> None:
    used = set()
    for _ in range(3):
        connection.request("POST", "/v1/messages", BODY, HEADERS)
        assert answer(connection)[0] == 200
        used.add(id(connection.sock))
    assert len(used) == 1


def test_a_request_may_come_in_chunks(connection: http.client.HTTPConnection, messages_server: MessagesServer) -> None:
    parts = [BODY[:10], BODY[10:]]
    connection.request("POST", "/v1/messages", iter(parts), HEADERS, encode_chunked=True)
    assert answer(connection)[0] == 200
    messages_server.body_limit = 20
    connection.request("POST", "/v1/messages", iter(parts), HEADERS, encode_chunked=True)
    assert answer(connection)[0] == 413
    messages_server.body_limit = 2_000
    connection.request("POST", "/v1/messages", BODY, HEADERS)
    assert answer(connection)[0] == 200


def test_a_client_that_waits_to_be_asked_is_asked(messages_server: MessagesServer) -> None:
    port = int(messages_server.url.rsplit(":", 1)[1])
    with socket.create_connection(("127.0.0.1", port), timeout=120) as sock, sock.makefile("rb") as reader:
        lines = [
            "POST /v1/messages HTTP/1.1",
            "x-api-key: any",
            "Expect: 100-continue",
            f"Content-Length: {len(BODY)}",
            "Connection: close",
        ]
        sock.sendall("\r\n".join([*lines, "", ""]).encode())
        assert reader.readline() == b"HTTP/1.1 100 Continue\r\n"
        reader.readline()
        sock.sendall(BODY)
        assert reader.readline() == b"HTTP/1.1 200 OK\r\n"
        assert reader.read().endswith(b"}")


@pytest.mark.parametrize("rubbish", [b"\r\n", b"hello\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 300 + b"\r\n"])
def test_rubbish_is_met_with_silence_and_the_server_lives_on(
    rubbish: bytes, messages_server: MessagesServer, connection: http.client.HTTPConnection
) -> None:
    with socket.create_connection(("127.0.0.1", int(messages_server.url.rsplit(":", 1)[1])), timeout=120) as sock:
        sock.sendall(rubbish)
        assert rest(sock) == b""
    connection.request("POST", "/v1/messages", BODY, HEADERS)
    assert answer(connection)[0] == 200


def rest(sock: socket.socket) -> bytes:
    try:
        return sock.recv(100)
    except ConnectionResetError:
        # What was sent and not read makes the close a reset.
        return b""


def test_it_listens_on_loopback_only_and_not_at_all_once_closed() -> None:
    with MessagesServer() as server:
        assert server.url.startswith("http://127.0.0.1:")
        port = int(server.url.rsplit(":", 1)[1])
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=120)


def test_closing_twice_or_before_the_start_does_no_harm() -> None:
    MessagesServer().close()
    server = MessagesServer().start()
    server.close()
    server.close()


def test_only_so_many_requests_are_kept(
    messages_server: MessagesServer, connection: http.client.HTTPConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lamina.testing.server_state.KEEP_REQUESTS", 3)
    for _ in range(5):
        connection.request("POST", "/v1/messages", BODY, HEADERS)
        answer(connection)
    assert [received.index for received in messages_server.requests] == [2, 3, 4]


def test_a_script_has_an_end(messages_server: MessagesServer) -> None:
    with pytest.raises(ValueError, match="would exceed"):
        messages_server.reply(text="x", times=20_000)
    messages_server.reply(text="x", times=2)
    messages_server.script.clear()
    assert len(messages_server.script) == 0
