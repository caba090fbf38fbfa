"""The loopback address for the surfaces that serve HTTP: opens the socket, and tells whether a request came for this machine.

A web page of another site can send requests to 127.0.0.1, and can make its own name resolve to it. The Host and Origin headers
show both.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..core.errors import UsageError

if TYPE_CHECKING:
    import asyncio

    from uvicorn import Config

ADDRESS = "127.0.0.1"
NAMES = frozenset({ADDRESS, "localhost", "::1"})
# A program on this machine sends a request within milliseconds. A connection whose request is not complete by then is closed.
REQUEST_SECONDS = 30.0
# A browser keeps six connections to a server, and each tab one more for its events.
MOST_CONNECTIONS = 256


def listen(port: int) -> socket.socket:
    """Listen on loopback. If the port is taken, the socket has another one."""
    # asyncio sends at once only on a socket that names its protocol. Else the second part of an answer waits 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    for wanted in (port, 0):
        try:
            listener.bind((ADDRESS, wanted))
        except OSError:
            continue
        listener.listen(128)
        return listener
    listener.close()
    raise UsageError(f"No port on {ADDRESS} could be opened.")


def http_config(app: Any, *, request_seconds: float = REQUEST_SECONDS, **options: Any) -> Config:
    """Return the configuration of a server for `app`, with limits for connections: how many, and how long a request may arrive."""
    import h11
    from uvicorn import Config
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class TimedRequests(H11Protocol):
        """Closes a connection that sends no request, or only a part of one. uvicorn limits only the time between two requests."""

        _closing: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._stop()

        def _watch(self) -> None:
            if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
                self._stop()
            elif self._closing is None:
                self._closing = self.loop.call_later(request_seconds, self.transport.close)

        def _stop(self) -> None:
            if self._closing is not None:
                self._closing.cancel()
                self._closing = None

    return Config(
        app,
        http=TimedRequests,
        limit_concurrency=MOST_CONNECTIONS,
        log_level="warning",
        server_header=False,
        date_header=False,
        **options,
    )


def is_local(address: bytes) -> bool:
    """Whether an Origin header names a page of this machine, or, after two slashes, a Host header this machine."""
    try:
        return urlsplit(address.decode("latin-1")).hostname in NAMES
    except ValueError:
        return False
