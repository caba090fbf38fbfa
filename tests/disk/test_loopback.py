"""The socket of the surfaces that serve HTTP: what a server writes is sent at once."""

from __future__ import annotations

import asyncio
import socket

from lamina.disk import loopback


def test_a_connection_sends_each_write_at_once() -> None:
    async def accepted() -> int:
        found = asyncio.get_running_loop().create_future()

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            made = writer.get_extra_info("socket")
            found.set_result(made.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listener = loopback.listen(0)
        server = await asyncio.start_server(connected, sock=listener)
        async with server:
            _, writer = await asyncio.open_connection(loopback.ADDRESS, listener.getsockname()[1])
            value: int = await found
            writer.close()
        return value

    assert asyncio.run(accepted()), "else the second part of an answer waits 40 ms for an acknowledgement of the first"
