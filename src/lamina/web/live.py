"""The event stream: tells a page that something it shows has changed.

A page asks for `/live?watch=session:claude-code/ID&watch=inbox:`. Each watch is asked for its state every POLL seconds, in a thread,
and only while the page listens: without a page that is open, nothing runs. An event holds the watch and its state; the page
fetches what it needs. With `seen`, one for each watch, the page tells the state it shows (Site.look): the first look already
tells what changed while the page was on its way.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import zip_longest

import anyio
import msgspec
from anyio import to_thread
from sse_starlette.sse import AppStatus, EventSourceResponse
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .site import Site, stamp_of_state

# Seconds between two looks. A change is shown within a second: half of it to be seen, half of it to be fetched and drawn.
POLL = 0.5
# Seconds between comments that keep the connection, and notice that the page is gone.
PING = 15
MOST_WATCHES = 16
# An open page keeps its event stream; the stream ends itself when the server stops.
AppStatus.enable_automatic_graceful_drain = False


def routes(site: Site) -> list[Route]:
    async def live(request: Request) -> Response:
        asked, seen = (request.query_params.getlist(name)[:MOST_WATCHES] for name in ("watch", "seen"))
        known = dict(zip_longest(asked, seen[: len(asked)], fillvalue=""))
        return EventSourceResponse(
            _events(site, {watch: state for watch, state in known.items() if site.can_watch(watch)}), ping=PING
        )

    return [Route("/live", live)]


async def _events(site: Site, seen: dict[str, str]) -> AsyncIterator[dict[str, str]]:
    """Look at each watch, and tell those whose state is not the one seen last. A state that was not seen before is only kept."""
    yield {"event": "ready", "data": "{}"}
    while seen and not site.stopping():
        states = await to_thread.run_sync(lambda: {watch: site.state(watch) for watch in seen})
        for watch, state in states.items():
            before, seen[watch] = seen[watch], stamp_of_state(state)
            if before and before != seen[watch]:
                yield {"event": "change", "data": msgspec.json.encode({"watch": watch, "state": state}).decode()}
        await anyio.sleep(POLL)
