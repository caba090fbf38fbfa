"""The MCP server over HTTP on loopback: token, Host, Origin, size."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import httpx2
import pytest
import uvicorn
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation

from lamina.disk.loopback import listen
from lamina.mcp.http import LoopbackOnly, application
from lamina.mcp.project import MOST_CHANGES, ServedProject
from mcp import Client

TOKEN = "a-token-for-this-test"
# Seconds: a busy machine may take long.
PATIENCE = 90
post = partial(httpx2.post, timeout=PATIENCE)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    listener = listen(0)
    server = uvicorn.Server(uvicorn.Config(application(ServedProject(tmp_path), TOKEN), log_level="error", lifespan="on"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    server.should_exit = True
    thread.join(60)
    listener.close()


@pytest.mark.spec("U4")
def test_a_client_with_the_token_is_served(address: str) -> None:
    async def main() -> None:
        async with (
            httpx2.AsyncClient(timeout=PATIENCE, headers={"Authorization": f"Bearer {TOKEN}"}) as http,
            Client(streamable_http_client(address, http_client=http)) as client,
        ):
            done = await client.call_tool("memory_list", {})
            assert getattr(done.content[0], "text", "") == "No memories yet."
            said = {"name": "deploys", "type": "project", "description": "Deploys", "body": "On Tuesdays: 周二."}
            await client.call_tool("memory_save", said)
            read = await client.call_tool("memory_read", {"name": "deploys"})
            assert "mcp over MCP" in getattr(read.content[0], "text", ""), (
                "the name of the client, without a session in the server"
            )
            assert "周二" in getattr(read.content[0], "text", "")

    anyio.run(main)


@pytest.mark.spec("U4")
def test_clients_at_once_are_served_and_each_named(address: str) -> None:
    async def save(name: str) -> None:
        info = Implementation(name=name, version="1")
        async with (
            httpx2.AsyncClient(timeout=PATIENCE, headers={"Authorization": f"Bearer {TOKEN}"}) as http,
            Client(streamable_http_client(address, http_client=http), client_info=info) as client,
        ):
            said = {"name": name, "type": "project", "description": f"Of {name}", "body": f"Text of {name}."}
            await client.call_tool("memory_save", said)
            read = await client.call_tool("memory_read", {"name": name})
            assert f"{name} over MCP" in getattr(read.content[0], "text", "")

    async def main() -> None:
        async with anyio.create_task_group() as group:
            for name in ("first client", "第二"):
                group.start_soon(save, name)

    anyio.run(main)


@pytest.mark.spec("U4")
def test_without_the_token_from_another_site_or_too_large_it_is_refused(address: str) -> None:
    body, token = {"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"Authorization": f"Bearer {TOKEN}"}
    accept = {"Accept": "application/json, text/event-stream"}
    assert post(address, json=body).status_code == 401
    assert post(address, json=body, headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert post(address, json=body, headers={**token, "Origin": "https://example.org"}).status_code == 403
    assert post(address, json=body, headers={**token, "Host": "example.org"}).status_code == 403
    accepted = {**token, **accept}
    assert post(address, json={**body, "method": "notifications/initialized", "id": None}, headers=accepted).status_code == 200
    assert post(address, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=accepted).status_code == 202
    assert post(address, json=body, headers={**accepted, "MCP-Protocol-Version": "1999-01-01"}).status_code == 400
    assert post(address, content=b"{", headers=accepted).json()["error"]["code"] == -32700
    assert post(address, json=body, headers=accepted).json() == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert httpx2.get(address, headers=accepted, timeout=PATIENCE).status_code == 405
    assert httpx2.delete(address, headers=accepted, timeout=PATIENCE).status_code == 204
    large = post(address, content=b"x" * (5 << 20), headers={**token, **accept, "Content-Type": "application/json"})
    assert large.status_code == 413


def test_a_port_that_is_taken_is_replaced_by_a_free_one() -> None:
    first = listen(0)
    taken = first.getsockname()[1]
    second = listen(taken)
    assert second.getsockname()[1] != taken
    first.close()
    second.close()


def test_hosts_are_compared_without_their_port() -> None:
    guard = LoopbackOnly(app=None, token=TOKEN)  # type: ignore[arg-type]
    headers = {b"authorization": f"Bearer {TOKEN}".encode()}
    for host in (b"127.0.0.1:80", b"localhost", b"[::1]:7411"):
        assert guard._refusal({**headers, b"host": host}) is None
    for host in (b"", b"127.0.0.1.example.org", b"127.0.0.1@example.org", b"localhost.:80x"):
        assert guard._refusal({**headers, b"host": host}) is not None


def test_changes_are_counted_per_minute(tmp_path: Path) -> None:
    now = [0.0]
    project = ServedProject(tmp_path, clock=lambda: now[0])
    for _ in range(MOST_CHANGES):
        project.count_change()
    with pytest.raises(Exception, match="60 changes per minute"):
        project.count_change()
    now[0] = 60.0
    project.count_change()
