"""The loopback address for the surfaces that serve HTTP: opens the socket, and tells whether a request came for this machine.

A web page of another site can send requests to 127.0.0.1, and can make its own name resolve to it. The Host and Origin headers
show both.
"""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from ..core.errors import UsageError

ADDRESS = "127.0.0.1"
NAMES = frozenset({ADDRESS, "localhost", "::1"})


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


def is_local_host(header: bytes) -> bool:
    """Whether a Host header names this machine."""
    try:
        return urlsplit(f"//{header.decode('latin-1')}").hostname in NAMES
    except ValueError:
        return False


def is_local_origin(header: bytes) -> bool:
    """Whether an Origin header names a page of this machine."""
    try:
        return urlsplit(header.decode("latin-1")).hostname in NAMES
    except ValueError:
        return False
