"""The official SDKs and their clients: imported at first use, opened at first use.

Importing one takes a second or two, so nothing here does it before a call is made; `preload` does it in a thread while a person
types. A client the user hands over is taken as it is, apart from its own retries, which are off for our calls (a copy that shares
its connections): the rules for retries are ours.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from ..core.errors import MissingExtra, SettingError, UsageError

# Sent to servers that ask for no key: the SDKs refuse to send nothing.
NO_KEY = "none"


def load(package: str) -> ModuleType:
    """The SDK, or one sentence that says how to install it."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingExtra(package, package) from error


def preload(package: str) -> threading.Thread:
    """Import an SDK in the background; a missing one is reported by the first call, not here."""

    def run() -> None:
        try:
            load(package)
        except MissingExtra:
            return

    thread = threading.Thread(target=run, name=f"import {package}", daemon=True)
    thread.start()
    return thread


def host_of(base_url: str | None, *, default: str) -> str:
    """The host a provider speaks to; a base URL that is none is an error before the first call."""
    if base_url is None:
        return default
    try:
        parts = urlsplit(base_url)
        host = parts.hostname if parts.scheme in ("http", "https") else None
    except ValueError:
        host = None
    if host is None:
        raise SettingError("base_url", repr(base_url), "is no web address", "write http://HOST:PORT or https://HOST")
    return host


def is_async(client: object) -> bool:
    return any(kind.__name__ in ("AsyncAPIClient", "AsyncAnthropic", "AsyncOpenAI") for kind in type(client).__mro__)


class Clients:
    """The sync and the async client of one provider. A given client is used as it is, an opened one is ours to close."""

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
        """Where the given client sends its requests, if it says so."""
        found = getattr(self._given or self._given_async, "base_url", None)
        return str(found) if found is not None else None

    @property
    def only_sync(self) -> bool:
        return self._given is not None and self._given_async is None

    @property
    def only_async(self) -> bool:
        return self._given is None and self._given_async is not None

    def sync(self) -> Any:
        if self.only_async:
            raise UsageError("This provider was given an async client only: use the async session or hand over a sync client.")
        with self._lock:
            if self._sync is None:
                self._sync = self._quiet(self._given) if self._given is not None else self._open_sync()
            return self._sync

    def asynchronous(self, loop: object) -> Any:
        """The client for this event loop: pooled connections belong to the loop they were opened in."""
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
