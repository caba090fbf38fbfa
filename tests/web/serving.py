"""The page served in a thread, for tests and for the pictures of the documentation."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from lamina.disk import loopback
from lamina.web.safety import Keys
from lamina.web.server import server_of
from lamina.web.site import Site


class Served(NamedTuple):
    base: str
    keys: Keys
    site: Site

    @property
    def link(self) -> str:
        """A link that lets a browser in. Each works once."""
        return self.keys.link

    def cookies(self) -> dict[str, str]:
        return {self.keys.cookie_name: self.keys.cookie}


def environ_of(root: Path) -> dict[str, str]:
    return {"HOME": str(root), "LAMINA_HOME": str(root / ".lamina")}


@contextmanager
def serving(root: Path, *, read_only: bool = False, environ: Mapping[str, str] | None = None) -> Iterator[Served]:
    """Serve the home in `root` on a free port."""
    listener = loopback.listen(0)
    keys = Keys(listener.getsockname()[1])
    site = Site(cwd=root, environ=environ or environ_of(root), read_only=read_only, secret=keys.secret)
    server = server_of(site, keys)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), name="page")
    thread.start()
    try:
        yield Served(f"http://127.0.0.1:{keys.port}", keys, site)
    finally:
        server.stop()
        thread.join(30)
        listener.close()
