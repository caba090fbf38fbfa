"""Connections to our servers: a request that never arrives whole is not waited for."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn

from lamina.disk import loopback


async def echo(scope: dict[str, Any], receive: Any, send: Any) -> None:
    body = b""
    while (message := await receive())["type"] == "http.request":
        body += message["body"]
        if not message.get("more_body"):
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", str(len(body)).encode())]})
            await send({"type": "http.response.body", "body": body})
            return


@contextmanager
def serving(**options: Any) -> Iterator[int]:
    listener = loopback.listen(0)
    server = uvicorn.Server(loopback.http_config(echo, lifespan="off", **options))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(60)
        listener.close()


@pytest.mark.spec("V6", "Z7")
@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: x\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTT",
    ],
    ids=["nothing", "half a head", "half a body", "half of a second request"],
)
def test_a_request_that_stays_incomplete_is_given_up(sent: bytes) -> None:
    with serving(request_seconds=0.2) as port, socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(sent)
        answer = b"".join(iter(lambda: connection.recv(4_096), b""))
    assert answer.count(b"HTTP/1.1 200") == sent.count(b"\r\n\r\nGET")


@pytest.mark.spec("Z7")
def test_connections_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback, "MOST_CONNECTIONS", 3)
    with serving() as port:
        waiting = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(3)]
        for connection in waiting:
            connection.sendall(b"GET / HTTP/1.1\r\n")
        with socket.create_connection(("127.0.0.1", port), timeout=60) as late:
            late.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert late.recv(4_096).startswith(b"HTTP/1.1 503")
        for connection in waiting:
            connection.close()
