"""The official SDKs and their clients, imported and opened on first use.

Importing an SDK takes a second or two, so it happens only when a call is made; `preload` does it in a thread while the user types.
A client passed in by the caller is used unchanged, except that its retries are disabled on a copy that shares its connections:
Lamina retries as often as the client would have, by its own rules.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from ..core.errors import MissingExtra, SettingError, UsageError

# Sent to servers that need no key, because the SDKs require one.
NO_KEY = "none"


def load(package: str) -> ModuleType:
    """Import an SDK, or raise MissingExtra, which explains how to install it."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingExtra(package, package) from error


def preload(package: str) -> threading.Thread:
    """Import an SDK in the background. If it is missing, the first call reports it."""

    def run() -> None:
        try:
            load(package)
        except MissingExtra:
            return

    thread = threading.Thread(target=run, name=f"import {package}", daemon=True)
    thread.start()
    return thread


def host_of(base_url: str | None, *, default: str) -> str:
    """Return the host of a provider. An invalid base URL raises an error before the first call."""
    if base_url is None:
        return default
    try:
        parts = urlsplit(base_url)
        host = parts.hostname if parts.scheme in ("http", "https") else None
    except ValueError:
        host = None
    if host is None:
        raise SettingError("base_url", repr(base_url), "is not a valid URL", "use http://HOST:PORT or https://HOST")
    return host


def is_async(client: object) -> bool:
    return any(kind.__name__ in ("AsyncAPIClient", "AsyncAnthropic", "AsyncOpenAI") for kind in type(client).__mro__)


class Clients:
    """The sync and the async client of one provider. Only clients that Lamina opened are closed by it."""

    def __init__(
        self,
        *,
        client: Any,
        async_client: Any,
        timeout: float | None,
        open_sync: Callable[[], Any],
        open_async: Callable[[], Any],
    ) -> None:
        if client is not None and async_client is None and is_async(client):
            client, async_client = None, client
        self._given = client
        self._given_async = async_client
        self._options: dict[str, Any] = {"max_retries": 0} | ({} if timeout is None else {"timeout": timeout})
        self._open_sync = open_sync
        self._open_async = open_async
        self._lock = threading.Lock()
        self._sync: Any = None
        self._async: Any = None
        self._loop: object = None

    @property
    def base_url(self) -> str | None:
        """The base URL of the client that was passed in, if it has one."""
        found = getattr(self._given or self._given_async, "base_url", None)
        return str(found) if found is not None else None

    @property
    def max_retries(self) -> int | None:
        """The number of retries set on the client that was passed in, if it has one."""
        found = getattr(self._given or self._given_async, "max_retries", None)
        return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None

    @property
    def only_sync(self) -> bool:
        return self._given is not None and self._given_async is None

    @property
    def only_async(self) -> bool:
        return self._given is None and self._given_async is not None

    def sync(self) -> Any:
        if self.only_async:
            raise UsageError("This provider has only an async client. Use AsyncSession, or pass a sync client.")
        with self._lock:
            if self._sync is None:
                self._sync = self._quiet(self._given) if self._given is not None else self._open_sync()
            return self._sync

    def asynchronous(self, loop: object) -> Any:
        """Return the client for this event loop. Pooled connections belong to the loop in which they were opened."""
        with self._lock:
            if self._given_async is not None:
                self._async = self._async or self._quiet(self._given_async)
            elif self._async is None or self._loop is not loop:
                self._async, self._loop = self._open_async(), loop
            return self._async

    def close(self) -> None:
        with self._lock:
            if self._given is None and self._sync is not None:
                self._sync.close()
                self._sync = None

    async def aclose(self) -> None:
        if self._given_async is None and self._async is not None:
            client, self._async = self._async, None
            await client.close()
        self.close()

    def _quiet(self, client: Any) -> Any:
        with_options = getattr(client, "with_options", None)
        return with_options(**self._options) if callable(with_options) else client
