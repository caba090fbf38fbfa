"""The server over HTTP, on loopback only, for clients that cannot start a process.

Three checks come first: the Host must be this machine (a page of another site that resolves its name to 127.0.0.1 is refused), a foreign
Origin is refused, and the token must be given as a bearer. Each request gets one JSON document as its answer. The server keeps nothing
between requests: the id of a session is the name of its client, so a session that nobody ends costs nothing.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, unquote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ..disk import loopback
from .project import ServedProject
from .server import INVALID_REQUEST, PARSE_ERROR, VERSIONS, ConnectedClient, LaminaServer, Wire, encode, error_reply

PATH = "/mcp"
DEFAULT_PORT = 7_411
# A tool takes at most 256 KiB of text.
MOST_BYTES = 4 << 20
SESSION = "Mcp-Session-Id"


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
        if not loopback.is_local(b"//" + headers.get(b"host", b"")):
            return PlainTextResponse("Only requests to this machine are answered.", 403)
        origin = headers.get(b"origin")
        if origin is not None and not loopback.is_local(origin):
            return PlainTextResponse("Requests of other sites are refused.", 403)
        given = headers.get(b"authorization", b"").decode("latin-1")
        if not hmac.compare_digest(given.encode(), f"Bearer {self._token}".encode()):
            return PlainTextResponse("The token is missing or wrong. Send it as: Authorization: Bearer TOKEN", 401)
        return None


def application(project: ServedProject, token: str) -> ASGIApp:
    server = LaminaServer(lambda: project)

    async def answer(request: Request) -> Response:
        if request.method == "DELETE":  # the end of a session
            return Response(status_code=204)
        version = request.headers.get("mcp-protocol-version", VERSIONS[-1])
        if version not in VERSIONS:
            sentence = f"Unsupported protocol version {version[:40]!r}. Supported: {', '.join(VERSIONS)}."
            return _document(error_reply(None, INVALID_REQUEST, sentence), 400)
        body = await _body(request)
        if body is None:
            return PlainTextResponse(f"A message has at most {MOST_BYTES >> 20} MiB.", 413)
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            return _document(error_reply(None, PARSE_ERROR, "The body is not JSON in UTF-8."), 400)
        client = ConnectedClient(unquote(request.headers.get(SESSION, "")))
        reply = await run_in_threadpool(server.answer, message, client)
        if reply is None:
            return Response(status_code=202)
        begins = isinstance(message, dict) and message.get("method") == "initialize"
        return _document(reply, headers={SESSION: quote(client.name or "client", safe="")} if begins else None)

    return LoopbackOnly(Starlette(routes=[Route(PATH, answer, methods=["POST", "DELETE"])]), token)


def _document(reply: Wire, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(encode(reply), status, headers, "application/json")


async def _body(request: Request) -> bytes | None:
    """Return the body, or None if it is too large."""
    data = bytearray()
    try:
        async for chunk in request.stream():
            data += chunk
            if len(data) > MOST_BYTES:
                return None
    except ClientDisconnect:
        return b""
    return bytes(data)


def serve_http(cwd: Path, *, port: int, token: str | None, tell: Callable[[str], None]) -> None:
    """Serve on 127.0.0.1 until interrupted. `tell` gets the address and, if it was made here, the token."""
    import uvicorn

    secret = token or secrets.token_urlsafe(32)
    listener = loopback.listen(port)
    tell(f"http://127.0.0.1:{listener.getsockname()[1]}{PATH}")
    if token is None:
        tell(f"Authorization: Bearer {secret}")
    config = loopback.http_config(application(ServedProject(cwd), secret), lifespan="off")
    uvicorn.Server(config).run(sockets=[listener])
