"""Access to the page: the token of the link, the cookie it becomes, the secret of a change, Host, Origin, and response headers.

Threats, and the measure against each of them:
- another program or site that guesses the address: without the cookie, nothing is served (401)
- a site whose name resolves to 127.0.0.1: the Host must be this server (403)
- a site that sends requests from its own pages: the Origin must be this server (403), and the cookie is SameSite=Strict
- another server on this machine, which gets the same cookies, since those ignore ports: a change also needs a secret that only
  the page's own HTML holds (403)
- a script in a memory or transcript: everything is escaped (html.py), and the policy runs no script but our files
- a link that was seen by others: it works once. Each use makes a new one, printed where the server was started
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, quote, urlencode

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..language.text import Text
from .words import words_for

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
SECRET_HEADER = b"x-lamina-secret"
# The parameter with the digest of a script or style. An address with one never changes its content.
VERSION = "v"
FOREVER = "public, max-age=31536000, immutable"
READING = frozenset({"GET", "HEAD"})
# The largest body of a change: a memory is at most 1 MB, and JSON may write a character as six.
MOST_BODY = 8 << 20
TOKEN_PARAMETER = "token"


class Keys:
    """The secrets of one run of the server."""

    def __init__(self, port: int, tell: Callable[[str], None] = lambda link: None) -> None:
        self.port = port
        self.cookie_name = f"lamina-{port}"
        self.cookie = secrets.token_urlsafe(32)
        self.secret = secrets.token_urlsafe(32)
        self.token = secrets.token_urlsafe(32)
        self._tell = tell

    @property
    def link(self) -> str:
        return f"http://127.0.0.1:{self.port}/?{TOKEN_PARAMETER}={self.token}"

    def exchange(self, token: str) -> bool:
        """Use up the token: whether it was the right one. `tell` gets the next link."""
        if not _equal(token, self.token):
            return False
        self.token = secrets.token_urlsafe(32)
        self._tell(self.link)
        return True

    def names_us(self, host: str) -> bool:
        return host in (f"127.0.0.1:{self.port}", f"localhost:{self.port}")


class Guard:
    """Lets a request pass if it comes for this server, from its own pages, with the cookie, and for a change with the secret."""

    def __init__(self, app: ASGIApp, keys: Keys, public: frozenset[str]) -> None:
        """`public` are the addresses of scripts and styles: the page that says "the link has expired" needs them."""
        self._app = app
        self._keys = keys
        self._public = public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = self._answer(scope)
        await (answer if answer is not None else self._app)(scope, receive, _with_headers(send, self._caching(scope)))

    def _answer(self, scope: Scope) -> Response | None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if not self._keys.names_us(headers.get(b"host", b"").decode("latin-1")):
            return _sentence(scope, Text("Only requests to this machine are answered."), 403)
        origin = headers.get(b"origin")
        if origin is not None and not self._keys.names_us(origin.decode("latin-1").removeprefix("http://")):
            return _sentence(scope, Text("Requests of other sites are refused."), 403)
        if self._is_public(scope):
            return None
        inside = self._has_cookie(headers.get(b"cookie", b"").decode("latin-1"))
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        token = next((value for key, value in query if key == TOKEN_PARAMETER), None)
        if token is not None and scope["method"] in READING:
            return self._enter(scope, token, inside, [pair for pair in query if pair[0] != TOKEN_PARAMETER])
        if not inside:
            return _expired(scope)
        return None if scope["method"] in READING else self._refuse_change(scope, headers)

    def _enter(self, scope: Scope, token: str, inside: bool, query: list[tuple[str, str]]) -> Response:
        """Exchange the token for the cookie, and take it out of the address bar."""
        used = self._keys.exchange(token)
        if not used and not inside:
            return _expired(scope)
        # A browser takes what follows a second slash or backslash for a host.
        path = "/" + quote(scope["path"].lstrip("/\\"))
        answer = RedirectResponse(path + (f"?{urlencode(query)}" if query else ""), 303)
        if used:
            answer.set_cookie(self._keys.cookie_name, self._keys.cookie, httponly=True, samesite="strict", path="/")
        return answer

    def _is_public(self, scope: Scope) -> bool:
        """Whether a file of the page is asked for. Everything else below its directory is a view, which holds the secret."""
        return scope["path"] in self._public and scope["method"] in READING

    def _caching(self, scope: Scope) -> str:
        """Files of a release change with it; everything else is what the disk holds now."""
        if not self._is_public(scope):
            return "no-store"
        return FOREVER if scope["query_string"].startswith(f"{VERSION}=".encode()) else "no-cache"

    def _has_cookie(self, header: str) -> bool:
        try:
            found = SimpleCookie(header).get(self._keys.cookie_name)
        except CookieError:
            return False
        return found is not None and _equal(found.value, self._keys.cookie)

    def _refuse_change(self, scope: Scope, headers: dict[bytes, bytes]) -> Response | None:
        if not _equal(headers.get(SECRET_HEADER, b"").decode("latin-1"), self._keys.secret):
            return _sentence(scope, Text("A change must come from the page itself. Reload it and try again."), 403)
        length = headers.get(b"content-length", b"")
        if not length.isdigit() or int(length) > MOST_BODY:
            return _sentence(scope, Text("The change is too large."), 413)
        return None


def _equal(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


def _sentence(scope: Scope, key: str, status: int) -> Response:
    from starlette.requests import Request

    return PlainTextResponse(words_for(Request(scope))(key), status)


def _expired(scope: Scope) -> Response:
    from starlette.requests import Request

    from .page import json_response, plain_page

    words = words_for(Request(scope))
    if scope["method"] not in READING:  # a page left open over a new start; its script shows the sentence
        return json_response({"message": words("The server was started again. Open the new link from its terminal.")}, 401)
    return plain_page(
        words,
        words("A new link is needed"),
        words("This link has expired. Copy the new one from the terminal. An address you kept works again after that."),
        status=401,
    )


def _with_headers(send: Send, caching: str) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers[name] = value
            headers["Cache-Control"] = caching
        await send(message)

    return sending
