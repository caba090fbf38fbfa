"""The application of the page, and the socket it listens on. While no page is open, the process waits for a connection and does nothing."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable
from importlib import import_module
from pathlib import Path
from types import FrameType

import uvicorn
from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route, Router
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from ..core.errors import LaminaError
from ..disk import loopback
from ..replay.html import style
from .dream_jobs import load_needed
from .page import REPORT, STATIC, list_of, problem
from .safety import Guard, Keys
from .site import Site
from .tuning import Garbage, tune_process
from .views_made import CountedViews, Stopped, Work
from .words import words_for

# Each has `routes(site)`. The first view of the page loads only the modules of FIRST. The order decides which route answers an address
# that two of them match.
FIRST = ("overview", "session_list")
LATER = (
    "live",
    "session_view",
    "memory_changes",
    "inbox_view",
    "duplicates_view",
    "forget_view",
    "memory_trash",
    "memory_forms",
    "evidence_view",
    "memory_view",
    "dream_list",
    "dream_view",
    "dream_changes",
    "search_view",
    "settings_view",
    "replay_view",
)
# What dreams need is loaded when nobody has clicked for PAUSE seconds, each module after MOST seconds at the latest, so that the first
# dream starts as fast as the next.
PAUSE = 1.0
MOST = 4.0


def application(site: Site, keys: Keys) -> ASGIApp:
    """Return the whole page behind its guard."""

    def not_found(request: Request, error: Exception) -> Response:
        words = words_for(request)
        status = error.status_code if isinstance(error, HTTPException) else 404
        title, sentence = words("Not found"), words("This address does not exist.")
        return problem(site, request, title, sentence, status=status, back=list_of(request.url.path))

    def failed(request: Request, error: Exception) -> Response:
        words = words_for(request)
        sentence = words("The page could not be made: {reason}", reason=words(error) or type(error).__name__)
        return problem(site, request, words("Something went wrong"), sentence, status=500, back=list_of(request.url.path))

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        threading.Thread(target=later.load_ahead, name="lamina-views", daemon=True).start()
        yield
        site.close()

    later = LaterViews(site)
    app = Starlette(
        routes=[
            *(route for name in FIRST for route in _routes(site, name)),
            Route(f"/static/{REPORT}", _report_sheet),
            Mount("/static", StaticFiles(directory=STATIC)),
            Mount("/", later),
        ],
        exception_handlers={HTTPException: not_found, LaminaError: failed, OSError: failed, Exception: failed},
        lifespan=lifespan,
        middleware=[Middleware(GZipMiddleware, minimum_size=4_000, compresslevel=3)],
    )
    app.state.billing = lambda: site.settings.billing
    public = frozenset(f"/static/{name}" for name in (REPORT, *(file.name for file in STATIC.iterdir())))
    return Guard(CountedViews(app, site.views, Garbage(site.views).look), keys, public)


def _routes(site: Site, view: str) -> list[Route]:
    found: list[Route] = import_module(f"{__package__}.{view}").routes(site)
    return found


def _report_sheet(request: Request) -> Response:
    return Response(style(), media_type="text/css")


class LaterViews:
    """The views behind the first one. Their modules are loaded after it, in a thread; an address that needs them earlier waits."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._lock = threading.Lock()
        self._router: Router | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (router := self._router) is None:
            with self._site.views.waiting(Work.INDEX):
                router = await to_thread.run_sync(self.load)
        await router(scope, receive, send)

    def load_ahead(self) -> None:
        """Load the views, and later what they start. A stopping server ends it."""
        with contextlib.suppress(Stopped):
            self.load()
            load_needed(lambda: self._site.views.wait_for_quiet(PAUSE, MOST))

    def load(self) -> Router:
        with self._lock:
            if self._router is None:
                self._router = Router(
                    [route for name in self._site.views.after(LATER, Work.INDEX, 1) for route in _routes(self._site, name)]
                )
            return self._router


def serve(
    *, cwd: Path, port: int, read_only: bool, tell: Callable[[str], None], opened: Callable[[str], None] = lambda link: None
) -> None:
    """Serve until interrupted. `opened` gets the first link, `tell` each one that replaces a used link."""
    tune_process()
    listener = loopback.listen(port)
    keys = Keys(listener.getsockname()[1], tell)
    site = Site(cwd=cwd, read_only=read_only, secret=keys.secret)
    opened(keys.link)
    server_of(site, keys).run(sockets=[listener])


class QuietServer(uvicorn.Server):
    """Waits until it is told to stop, instead of looking ten times a second: a page that nobody uses costs no CPU."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._told: tuple[asyncio.AbstractEventLoop, asyncio.Event] | None = None

    async def main_loop(self) -> None:
        self._told = (asyncio.get_running_loop(), asyncio.Event())
        if not self.should_exit:
            await self._told[1].wait()

    def stop(self) -> None:
        """Stop serving. It may be called by a signal or by another thread."""
        self.should_exit = True
        if self._told is not None:
            loop, event = self._told
            with contextlib.suppress(RuntimeError):  # it has stopped already
                loop.call_soon_threadsafe(event.set)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self.stop()


def server_of(site: Site, keys: Keys) -> QuietServer:
    server = QuietServer(loopback.http_config(application(site, keys), lifespan="on", timeout_graceful_shutdown=3))
    site.stopping = site.views.stopping = lambda: server.should_exit
    return server
