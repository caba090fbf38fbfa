"""What the agent does, as a person sees it: the answer as it is written, one line for each call, and what is being waited for.

Calls may run at the same time; each gets its line when it is done, so that no two lines are ever mixed.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..console import fit
from ..safe_text import counted
from .calls import describe_call, describe_result
from .screen import Screen, clean
from .text_stream import TextStream

THINKING = "thinking"
ANSWERING = "waiting for the model"
# Characters of a running command's output that are kept to show its last lines: more than those lines can hold on a wide screen.
TAIL = 4_000


def describe_event(name: str, data: Mapping[str, Any]) -> str | None:
    match name:
        case "compaction" if data.get("trigger") == "auto":
            before, after = data.get("tokens_before"), data.get("tokens_after")
            return f"Compacted ({data.get('by')}): {before:,} to {after:,} tokens. /undo takes it back."
        case "collapse":
            return f"Folded {data.get('turns')} old turns: {data.get('tokens_before'):,} to {data.get('tokens_after'):,} tokens."
        case "clearing":
            return f"Cleared {len(data.get('ids') or ())} old results, about {data.get('tokens_saved'):,} tokens."
        case "recall" if data.get("files"):
            return f"From memory: {', '.join(str(file).removesuffix('.md') for file in data['files'])}."
        case "extraction" if data.get("names"):
            return f"Remembered: {', '.join(map(str, data['names']))}."
        case "agent_ended" if data.get("background"):
            why = f": {data['why']}" if data.get("why") else ""
            return f"Agent in the background, {data.get('description')}: {data.get('status')}{why}."
        case "compaction_failed" if data.get("trigger") == "auto":
            return f"Not compacted: {str(data.get('why')).rstrip('.')}."
        case _:
            return None


class TurnDisplay:
    """Listens to an agent (`on_event`)."""

    def __init__(self, screen: Screen, cwd: Path, home: Path | None = None) -> None:
        self._screen = screen
        self._cwd = cwd
        self._home = home
        self._lock = threading.Lock()
        self._running: dict[str, tuple[str, object]] = {}
        self._tails: dict[str, str] = {}  # what running commands printed last
        self._progress: dict[str, int] = {}  # calls that running agents have made
        self._spoke = False  # the answer under way has words in it
        self._held: list[str] = []  # what happened beside the answer while it was written
        self._flow = TextStream(screen.styled)

    def begin(self) -> None:
        self._close()
        self._running.clear()
        self._tails.clear()
        self._progress.clear()
        self._screen.wait(ANSWERING)

    def end(self) -> None:
        self._close()
        self._screen.calm()
        self._screen.left()

    def _close(self) -> None:
        """The last word of an answer, which nothing followed; then what may not stand in the middle of it."""
        if self._spoke:
            self._screen.raw(self._flow.end(self._screen.width))
            self._spoke = False
        while self._held:
            self._screen.note(self._held.pop(0), "dim")

    def event(self, event: dict[str, Any]) -> None:
        match event.get("type"):
            case "message_start":
                self._close()
            case "content_block_start" if event["content_block"].get("type") == "thinking":
                self._screen.wait(THINKING)
            case "content_block_delta":
                self._delta(event["delta"])
            case "answer":
                # Whole, or all there will be of it; what it calls for runs next.
                self._close()
                self._screen.wait(ANSWERING)
            case "tool_call":
                with self._lock:
                    self._running[event["id"]] = (event["name"], event["input"])
                self._screen.wait(self._what_runs())
            case "tool_output":
                self._output(event)
            case "tool_result":
                self._result(event)
            case "agent":
                self._agent(event)
            case "layer":
                self._layer(str(event["name"]), event["data"])
            case _:
                pass

    def _delta(self, delta: Mapping[str, Any]) -> None:
        if delta.get("type") != "text_delta":
            return
        text = str(delta["text"])
        if not self._spoke:
            text = text.lstrip("\n")
            if not text:
                return
            self._screen.calm()
            self._screen.left()
            self._spoke = True
        self._screen.raw(self._flow.feed(clean(text), self._screen.width))

    def _output(self, event: dict[str, Any]) -> None:
        """The last lines of the command that printed last."""
        with self._lock:
            if event["id"] not in self._running:
                return
            tail = self._tails[event["id"]] = (self._tails.get(event["id"], "") + event["text"])[-TAIL:]
        self._screen.below([line for line in tail.splitlines() if line.strip()])

    def _agent(self, event: dict[str, Any]) -> None:
        """How far the agent of a call has come; one in the background stands in the status line."""
        with self._lock:
            if event["background"] or event["call"] not in self._running:
                return
            self._progress[event["call"]] = event["calls"]
        self._screen.wait(self._what_runs())

    def _layer(self, name: str, data: Mapping[str, Any]) -> None:
        """What changed the conversation itself, in half a line; what only keeps books is not worth one."""
        if (words := describe_event(name, data)) is not None:
            if self._spoke:
                self._held.append(words)
                return
            self._screen.calm()
            self._screen.note(words, "dim")
            self._screen.wait(self._what_runs())

    def _what_runs(self) -> str:
        with self._lock:
            running = list(self._running.values())
            calls = self._progress.get(next(iter(self._running), ""), 0)
        if not running:
            return ANSWERING
        far = f", {counted(calls, 'call')}" if calls else ""
        more = f" and {len(running) - 1} more" if len(running) > 1 else ""
        return describe_call(*running[0], self._cwd, self._home) + far + more

    def _result(self, event: dict[str, Any]) -> None:
        with self._lock:
            name, given = self._running.pop(event["id"], ("?", {}))
            self._tails.pop(event["id"], None)
            self._progress.pop(event["id"], None)
        self._screen.below(())
        said = describe_result(name, given, event["content"], event["facts"], is_error=event["is_error"])
        self.line(describe_call(name, given, self._cwd, self._home), said, is_error=event["is_error"])
        self._screen.wait(self._what_runs())

    def line(self, what: str, said: str, *, is_error: bool) -> None:
        """A call and what came of it, in one line: a third of it at least is the result's."""
        screen, marks = self._screen, self._screen.marks
        room = screen.width - 4
        result = " ".join(clean(said).split())
        shown = fit(clean(what), max(room - len(result) - 3, room * 2 // 3) if result else room, marks.cut)
        result = fit(result, max(0, room - len(shown) - 3), marks.cut)
        screen.painted(
            (f"{marks.failed if is_error else marks.done} ", "red" if is_error else "green"),
            (shown, "plain"),
            (f" {marks.dash} {result}" if result else "", "red" if is_error else "dim"),
        )
