"""The server on standard input and output: one JSON message a line. It ends when the client closes the input or interrupts it.

A request that opens memory runs in a thread of its own, so that a ping or a cancellation behind it is read at once. When the input ends,
requests that are running are finished. Nothing else may write to the client: standard output of the process is turned to standard error,
and its standard input is empty, for whatever a tool starts.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from threading import Event, Lock, Semaphore, Thread, current_thread
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from ..disk.prompt_claim import release
from .server import PARSE_ERROR, SLOW, ConnectedClient, LaminaServer, encode, error_reply

if TYPE_CHECKING:
    from .project import HookAgent, ServedProject

# A longer line is not read. The largest message that can be of use is far smaller, and its tool answers it with a sentence.
MOST_LINE = 256 << 20
# Requests that run at the same time; the next one waits unread.
MOST_RUNNING = 32
# Seconds. A client that has closed its end waits about this long before it kills the server.
LAST_SECONDS = 5.0


class StdioConnection:
    """The connection to one client: `reader` has its messages, `write` takes whole replies."""

    def __init__(
        self, server: LaminaServer, reader: BinaryIO, write: Callable[[bytes], object], *, most_line: int = MOST_LINE
    ) -> None:
        self._server = server
        self._reader, self._write = reader, write
        self._most_line = most_line
        self._client = ConnectedClient()
        self._running: dict[Thread, tuple[object, Event]] = {}
        self._slots = Semaphore(MOST_RUNNING)
        self._writing = Lock()

    def serve(self) -> None:
        """Answer until the input ends or SIGINT arrives, then finish what is running."""
        try:
            for line in self._lines():
                self._take(line)
        except KeyboardInterrupt:
            pass
        until = time.monotonic() + LAST_SECONDS
        for thread in tuple(self._running):
            thread.join(max(0.0, until - time.monotonic()))

    def _lines(self) -> Iterator[bytes]:
        """Yield the lines of the input. Of a line that is too long, its beginning is yielded, which is no JSON."""
        while line := self._reader.readline(self._most_line):
            rest = line
            while not rest.endswith(b"\n") and (rest := self._reader.readline(1 << 20)):
                pass
            if line.strip():
                yield line

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._send(error_reply(None, PARSE_ERROR, "A line is not one JSON message in UTF-8, or it is too long."))
            return
        method = message.get("method") if isinstance(message, dict) else None
        if method == "notifications/cancelled":
            self._cancel(message.get("params"))
        elif isinstance(method, str) and method in SLOW:
            self._start(message)
        else:
            self._send(self._server.answer(message, self._client))

    def _start(self, message: dict[str, Any]) -> None:
        self._slots.acquire()
        abort = Event()
        thread = Thread(target=self._run, args=(message, abort), daemon=True)
        self._running[thread] = (message.get("id"), abort)
        thread.start()

    def _run(self, message: dict[str, Any], abort: Event) -> None:
        try:
            reply = self._server.answer(message, self._client, abort)
            if not abort.is_set():
                self._send(reply)
        finally:
            self._running.pop(current_thread(), None)
            self._slots.release()

    def _cancel(self, params: object) -> None:
        """Stop a request. It gets no reply, as the protocol demands."""
        request = params.get("requestId") if isinstance(params, dict) else None
        for known, abort in tuple(self._running.values()):
            if request is not None and known == request:
                abort.set()

    def _send(self, reply: dict[str, Any] | None) -> None:
        if reply is None:
            return
        data = encode(reply) + b"\n"
        with self._writing, suppress(OSError):  # if the client is gone, the end of its input follows
            self._write(data)


def serve_stdio(cwd: str, *, agent: HookAgent | None = None) -> NoReturn:
    """Serve the project of `cwd` until the client closes the input, then leave the process. `agent` may call the tools of hooks."""

    def open_project() -> ServedProject:
        from pathlib import Path

        from .project import ServedProject

        return ServedProject(Path(cwd), agent=agent)

    reader, output = os.fdopen(os.dup(0), "rb"), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)

    def write(data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(output, rest) :]

    server, client = LaminaServer(open_project, answers_hooks=agent is not None), os.getppid()
    StdioConnection(server, reader, write).serve()
    if agent is not None:
        release(client)
    sys.stderr.flush()
    # Memory is closed after each request; the interpreter's own cleanup would only cost time.
    os._exit(0)


def plain_call(argv: Sequence[str]) -> Callable[[], NoReturn] | None:
    """Return the call for `lamina mcp` as coding agents start it, which needs no parser: loading one would double the time."""
    if [*argv] not in (["mcp"], ["mcp", "--hooks", "claude-code"]):
        return None
    cwd = os.path.abspath(os.environ.get("CLAUDE_PROJECT_DIR") or ".")
    if not os.path.isdir(cwd) or sys.stdin is None or sys.stdout is None:
        return None  # the command line has a sentence for it
    return lambda: serve_stdio(cwd, agent="claude-code" if len(argv) == 3 else None)
