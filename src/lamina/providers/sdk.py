"""The common base of the two providers that call a model through an official SDK, and the SDKs' clients.

A provider defines how to write a request (`render`), which method of its client to call (`_create`) and how to read the chunks
(`_translator`). The base class opens, reads, retries and closes the call, sync and async.

Importing an SDK takes a second or two, so it happens only when a call is made; `preload` does it in a thread while the user types.
A client passed in by the caller is used unchanged, except that its retries are disabled on a copy that shares its connections:
Lamina retries as often as the client would have, by its own rules.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable
from copy import copy
from functools import partial
from operator import attrgetter
from threading import Event
from types import ModuleType
from typing import Any, Self
from urllib.parse import urlsplit

from ..core.blocks import Wire, scrub
from ..core.effects import Ask
from ..core.errors import BadRequest, InputError, MissingExtra, SettingError, UsageError
from ..core.reply import Reply
from . import Capabilities, OnEvent
from .retry import RetryPolicy, Waits, ask_retrying, ask_retrying_async
from .stream import Translator, Untranslated, read_stream, read_stream_async


class SdkProvider:
    name: str
    sync_class: str
    async_class: str
    method: str  # of the client, by its path
    own_url: str  # of the provider's own server

    def __init__(
        self,
        model: str,
        *,
        client: Any = None,
        async_client: Any = None,
        api_key: str | None = None,
        auth_token: str | None = None,
        base_url: str | None = None,
        max_retries: int | None = None,
        retry_partial: bool = False,
        timeout: float | None = None,
        capabilities: Capabilities | None = None,
        waits: Waits | None = None,
    ) -> None:
        """`capabilities` overrides the known ones; `retry_partial` allows a retry after a listener received a part. Without
        `max_retries` the setting of a client that is passed in counts."""
        self.model = model
        # A key is needed only for calls, not for preparing requests and reading responses.
        self.can_call = any(access is not None for access in (client, async_client, api_key, auth_token, base_url))
        self._check_client(client)
        self._check_client(async_client)
        self._waits = waits or Waits()
        # The SDKs take an empty variable for an address.
        url = base_url or os.environ.get(f"{self.name.upper()}_BASE_URL") or self.own_url
        options: dict[str, Any] = {"base_url": url, "max_retries": 0}
        # Pass exactly one credential: with two the SDK raises an error, with none it searches for others.
        options |= {"auth_token": auth_token} if api_key is None and auth_token is not None else {"api_key": api_key or NO_KEY}
        if timeout is not None:
            options["timeout"] = timeout
        self._clients = Clients(
            client=client,
            async_client=async_client,
            timeout=timeout,
            open_sync=lambda: getattr(load(self.name), self.sync_class)(**options),
            open_async=lambda: getattr(load(self.name), self.async_class)(**options),
        )
        own = self._clients.max_retries if max_retries is None else max_retries
        self._policy = RetryPolicy(max_retries=RetryPolicy().max_retries if own is None else own, after_partial=retry_partial)
        self._address = self._clients.base_url or base_url
        self._key = api_key or auth_token
        self.capabilities = capabilities or self._default_capabilities()

    def _check_client(self, client: object) -> None:
        """Raise if this is not a client of the provider's SDK, nor an object with the same method."""
        first = self.method.partition(".")[0]
        # The attributes of an SDK's client are loaded on first use, which takes a while; its class tells enough.
        if client is None or hasattr(type(client), first):
            return
        try:
            attrgetter(self.method)(client)
        except AttributeError:
            problem = f"{type(client).__module__}.{type(client).__qualname__} has no method {self.method}()"
            raise InputError("client", problem, f"pass {self.name}.{self.sync_class}(…) to the provider {self.name!r}") from None

    def stated_window(self) -> int | None:
        """Return the window that a server of the user's own states for this model; None where it states none."""
        if self._address is None:
            return None
        from .served import served_model

        served = served_model(self._address, model=self.model, key=self._key)
        return served.window if served is not None else None

    def with_model(self, model: str) -> Self:
        """Return a provider for another model with the same server, key and client. Only the original closes the client."""
        other = copy(self)
        other.model = model
        return other

    def _default_capabilities(self) -> Capabilities:
        raise NotImplementedError

    def render(self, request: Wire) -> Wire:
        raise NotImplementedError

    def _create(self, client: Any) -> Callable[..., Any]:
        create: Callable[..., Any] = attrgetter(self.method)(client)
        return create

    def _streamed(self, request: Wire) -> Wire:
        return {**self.render(request), "stream": True}

    def _translator(self) -> Translator:
        return Untranslated()

    def _adapt(self, error: BadRequest) -> bool:
        """Change how the next request is written after this rejection. Return False if there is nothing left to change."""
        return False

    @property
    def only_async(self) -> bool:
        """True if the provider works only in an event loop, because it was given an async client."""
        return self._clients.only_async

    def _need_credentials(self) -> None:
        if not self.can_call:
            raise SettingError("provider", self.name, "has neither an API key, a client nor a base URL", "pass one of them")

    def prepare(self) -> None:
        """Open the client now, so that no call has to wait for the import of the SDK."""
        if self.can_call and not self.only_async:
            self._clients.sync()

    def ask(self, request: Wire, *, purpose: str = "chat", on_event: OnEvent | None = None, abort: Event | None = None) -> Reply:
        self._need_credentials()
        ask = Ask(request, purpose, on_event)
        once = partial(self._once, abort=abort)
        return ask_retrying(once, ask, policy=self._policy, waits=self._waits, adapt=self._adapt, abort=abort)

    async def ask_async(self, request: Wire, *, purpose: str = "chat", on_event: OnEvent | None = None) -> Reply:
        """Send the request. If there is only a sync client, the call and its listener run in a thread."""
        self._need_credentials()
        ask = Ask(request, purpose, on_event)
        return await ask_retrying_async(self._once_async, ask, policy=self._policy, waits=self._waits, adapt=self._adapt)

    def _once(self, ask: Ask, abort: Event | None = None) -> Reply:
        kwargs = self._streamed(ask.request)

        def open_stream() -> Any:
            create = self._create(self._clients.sync())
            try:
                return create(**kwargs)
            except UnicodeEncodeError:  # a lone surrogate in the system prompt or the description of a tool
                return create(**scrub(kwargs))

        return read_stream(open_stream, translator=self._translator(), who=self.name, on_event=ask.on_event, abort=abort)

    async def _once_async(self, ask: Ask) -> Reply:
        import asyncio

        if self._clients.only_sync:
            return await asyncio.to_thread(self._once, ask)
        kwargs = self._streamed(ask.request)

        async def open_stream() -> Any:
            create = self._create(self._clients.asynchronous(asyncio.get_running_loop()))
            try:
                return await create(**kwargs)
            except UnicodeEncodeError:
                return await create(**scrub(kwargs))

        return await read_stream_async(open_stream, translator=self._translator(), who=self.name, on_event=ask.on_event)

    def close(self) -> None:
        """Close the client if this provider opened it; a client that was passed in stays open."""
        self._clients.close()

    async def aclose(self) -> None:
        await self._clients.aclose()


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
        url = getattr(self._given or self._given_async, "base_url", None)
        return str(url) if url is not None else None

    @property
    def max_retries(self) -> int | None:
        """The number of retries set on the client that was passed in, if it has one."""
        retries = getattr(self._given or self._given_async, "max_retries", None)
        return retries if isinstance(retries, int) and not isinstance(retries, bool) and retries >= 0 else None

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
