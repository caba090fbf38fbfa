"""A provider that a test controls: it answers by rules, and waits and fails on command."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Callable, Mapping
from typing import Any

from lamina.core.reply import Reply, read_response
from lamina.layers.l3_notes import offline as notes
from lamina.layers.l4_compact import offline as summary
from lamina.providers import Capabilities, OnEvent

from .words import Wire, answer

Fault = Callable[[str], BaseException | None]


class InHand:
    """`fault` says for each purpose what a call raises; `gate` holds summaries back while it is set to an asyncio.Event."""

    name = "in-hand"
    can_call = True

    def __init__(self, model: str = "model-1", *, fault: Fault | None = None) -> None:
        self.model = model
        self.capabilities = Capabilities("messages", cache_marks=True, thinking=True)
        self.asked: list[str] = []
        self.requests: list[Wire] = []
        self.threads: set[int] = set()
        self.fault = fault
        self.gate: asyncio.Event | None = None
        self.came = asyncio.Event()
        self._numbers = itertools.count()

    def render(self, request: Wire) -> Wire:
        return request

    def read(self, response: object) -> Reply:
        return read_response(response)

    def ask(
        self, request: Wire, *, purpose: str = "chat", on_event: OnEvent | None = None, abort: threading.Event | None = None
    ) -> Reply:
        self.asked.append(purpose)
        self.requests.append(request)
        self.threads.add(threading.get_ident())
        if self.fault is not None and (raised := self.fault(purpose)) is not None:
            raise raised
        return read_response(self._answer(request, purpose))

    async def ask_async(self, request: Wire, *, purpose: str = "chat", on_event: OnEvent | None = None) -> Reply:
        if purpose == "summary" and self.gate is not None:
            self.came.set()
            await self.gate.wait()
        return self.ask(request, purpose=purpose, on_event=on_event)

    def _answer(self, request: Wire, purpose: str) -> Wire:
        local: Mapping[str, Callable[[Wire], list[Wire]]] = {"notes": notes.answer, "summary": summary.answer}
        blocks: list[Any] = local[purpose](request) if purpose in local else ["ok"]
        usage = {"input_tokens": len(str(request["messages"])) // 4, "output_tokens": 20}
        return answer(f"by-{self.model}-{next(self._numbers)}", *blocks, usage=usage) | {"model": self.model}
