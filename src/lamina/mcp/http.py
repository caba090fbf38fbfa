"""The server over HTTP, on loopback only, for clients that cannot start a process.

Three checks come before the SDK: the Host must be this machine (a page of another site that resolves its name to 127.0.0.1 is refused),
a foreign Origin is refused, and the token must be given as a bearer. The SDK refuses bodies over 4 MiB.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from pathlib import Path

import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from ..disk import loopback
from .project import ServedProject
from .server import LaminaServer

PATH = "/mcp"
DEFAULT_PORT = 7_411


class LoopbackOnly:
    """Lets a request pass if it comes for this machine, from no other site, with the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refusal := self._refusal(dict(scope["headers"]))) is not None:
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refusal(self, headers: dict[bytes, bytes]) -> PlainTextResponse | None:
        if not loopback.is_local_host(headers.get(b"host", b"")):
            return PlainTextResponse("Only requests to this machine are answered.", 403)
        origin = headers.get(b"origin")
        if origin is not None and not loopback.is_local_origin(origin):
            return PlainTextResponse("Requests of other sites are refused.", 403)
        given = headers.get(b"authorization", b"").decode("latin-1")
        if not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
            return PlainTextResponse("The token is missing or wrong. Send it as: Authorization: Bearer TOKEN", 401)
        return None


def application(project: ServedProject, token: str) -> ASGIApp:
    server = LaminaServer(project).build()
    return LoopbackOnly(server.streamable_http_app(streamable_http_path=PATH, host="127.0.0.1"), token)


def serve_http(cwd: Path, *, port: int, token: str | None, tell: Callable[[str], None]) -> None:
    """Serve on 127.0.0.1 until interrupted. `tell` gets the address and, if it was made here, the token."""
    secret = token or secrets.token_urlsafe(32)
    listener = loopback.listen(port)
    tell(f"http://127.0.0.1:{listener.getsockname()[1]}{PATH}")
    if token is None:
        tell(f"Authorization: Bearer {secret}")
    config = uvicorn.Config(application(ServedProject(cwd), secret), log_level="warning", lifespan="on")
    uvicorn.Server(config).run(sockets=[listener])
