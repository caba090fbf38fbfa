"""Display of a running turn: the answer as it streams in, one line per tool call, and a progress line.

Calls may run in parallel; each gets its line when it finishes, so lines are never interleaved.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from ...conversation.window.thresholds import WindowState
from ...core.settings import Billing
from ...core.usage import Usage
from ...language.text import Text, Words, joined
from ...language.wording import counted, short_count
from ...layers.l7_agents.report import AgentState
from ...layers.l7_agents.summary import PURPOSE as SUMMARIES
from ..amounts import token_counts
from ..console import fit
from ..output import describe_retry
from .calls import describe_call, describe_result
from .markdown import MarkdownStream
from .screen import MOST_BELOW, Screen, Style, clean, fold_text

THINKING = Text("thinking")
WAITING = Text("waiting for the model")
ANSWERING = Text("answering")
RETRYING = Text("waiting to try again")
# Characters kept of a running command's output: more than its last lines can hold on a wide screen.
TAIL = 4_000
NO_WORK = Text("none")
ENGLISH = Words()
# Why background work is paused, by the limit that is used up.
PAUSED = {
    "calls": Text("paused until tomorrow (number of calls)"),
    "tokens": Text("paused until tomorrow (tokens)"),
    "dollars": Text("paused until tomorrow (cost)"),
}
# Tools whose results are described by the chat; the result of another one is what the tool returned.
COUNTED = frozenset({"Read", "Write", "Edit", "Grep", "Glob", "Agent"})
_MARKS = re.compile(r"(`+|\*\*)")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_HEADING = re.compile(r"#{1,6}\Z")


def describe_event(name: str, data: Mapping[str, Any], words: Words = ENGLISH) -> str | None:
    match name:
        case "compaction" if data.get("trigger") == "auto":
            text = Text("Compacted ({by}): {before} to {after} tokens. Use /undo to revert it.")
            return words(text, by=data.get("by"), **_sizes(data))
        case "collapse":
            turns = counted(data.get("turns") or 0, "old turn")
            return words("Folded {turns}: {before} to {after} tokens.", turns=turns, **_sizes(data))
        case "clearing" if data.get("answers"):
            answers = counted(len(data["answers"]), "old answer")
            return words("Shortened {answers}, about {saved:,} tokens.", answers=answers, saved=data.get("tokens_saved"))
        case "clearing":
            results = counted(len(data.get("ids") or ()), "old result")
            return words("Cleared {results}, about {saved:,} tokens.", results=results, saved=data.get("tokens_saved"))
        case "recall" if data.get("files"):
            return words(
                "Recalled from memory: {names}.", names=", ".join(str(file).removesuffix(".md") for file in data["files"])
            )
        case "extraction" if data.get("names"):
            return words("Remembered: {names}.", names=", ".join(map(str, data["names"])))
        case "agent_ended" if data.get("background"):
            status = Text.whole(str(data.get("status")))
            if data.get("why"):
                status = Text("{status}: {why}", status=status, why=Text.whole(str(data["why"])))
            return words("Background agent ({description}): {status}.", description=data.get("description"), status=status)
        case "compaction_failed" if data.get("trigger") == "auto":
            return words("Not compacted: {why}.", why=Text.whole(str(data.get("why")).rstrip(".")))
        case _:
            return None


def _sizes(data: Mapping[str, Any]) -> dict[str, str]:
    return {"before": f"{data.get('tokens_before'):,}", "after": f"{data.get('tokens_after'):,}"}


class TurnDisplay:
    """Listens to an agent (`on_event`)."""

    def __init__(self, screen: Screen, cwd: Path, home: Path | None = None) -> None:
        self._screen = screen
        self._cwd = cwd
        self._home = home
        self._lock = threading.Lock()
        self._running: dict[str, tuple[str, object]] = {}
        self._tails: dict[str, str] = {}  # last output of running commands
        self._progress: dict[str, int] = {}  # number of calls made by running agents
        self._spoke = False  # whether the current answer has text yet
        self._held: list[str] = []  # messages held back while the answer streams in
        self._flow: MarkdownStream | TextStream = TextStream(screen.styled)
        if screen.moves:
            self._flow = MarkdownStream(screen.styled, colours=screen.colours, encoding=screen.encoding)

    def begin(self) -> None:
        self._close()
        self._running.clear()
        self._tails.clear()
        self._progress.clear()
        self._screen.wait(self._screen.words(WAITING))

    def end(self) -> None:
        self._close()
        self._screen.calm()
        self._screen.left()

    def _close(self) -> None:
        """Write the last word of the answer, then the messages held back while it streamed in."""
        if self._spoke:
            self._screen.below(())
            self._screen.raw(self._flow.end(self._screen.width))
            self._spoke = False
        while self._held:
            self._screen.note(self._held.pop(0), "dim")

    def event(self, event: dict[str, Any]) -> None:
        match event.get("type"):
            case "message_start":
                self._close()
            case "content_block_start" if event["content_block"].get("type") == "thinking":
                self._screen.wait(self._screen.words(THINKING))
            case "content_block_delta":
                self._delta(event["delta"])
            case "answer":
                # The answer is complete or was cut off; its tool calls run next.
                self._close()
                self._screen.wait(self._screen.words(WAITING))
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
            case "retry":
                self._close()
                self._screen.report(describe_retry(event), "yellow")
                self._screen.wait(self._screen.words(RETRYING))
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
            self._screen.left()
            self._spoke = True
        self._screen.raw(self._flow.feed(clean(text), self._screen.width))
        if isinstance(self._flow, MarkdownStream):
            self._screen.below(self._unfinished(self._flow.unfinished))
            self._screen.wait(self._screen.words(ANSWERING))

    def _unfinished(self, text: str) -> list[str]:
        """Return the last lines of a block that is still arriving."""
        room = self._screen.width - 3
        return [line for one in text[-room * MOST_BELOW :].split("\n") for line in fold_text(one, room) if line.strip()]

    def _output(self, event: dict[str, Any]) -> None:
        """Show the last lines of the command that printed most recently."""
        with self._lock:
            if event["id"] not in self._running:
                return
            tail = self._tails[event["id"]] = (self._tails.get(event["id"], "") + event["text"])[-TAIL:]
        self._screen.below([line for line in tail.splitlines() if line.strip()])

    def _agent(self, event: dict[str, Any]) -> None:
        """Show the progress of a call's agent; background agents are in the status line instead."""
        with self._lock:
            if event["background"] or event["call"] not in self._running:
                return
            self._progress[event["call"]] = event["calls"]
        self._screen.wait(self._what_runs())

    def _layer(self, name: str, data: Mapping[str, Any]) -> None:
        """Show layer events that changed the conversation; bookkeeping events are not shown."""
        if (line := describe_event(name, data, self._screen.words)) is not None:
            if self._spoke:
                self._held.append(line)
                return
            self._screen.note(line, "dim")

    def _what_runs(self) -> str:
        with self._lock:
            running = list(self._running.values())
            calls = self._progress.get(next(iter(self._running), ""), 0)
        if not running:
            return self._screen.words(WAITING)
        call = describe_call(*running[0], self._cwd, self._home)
        if calls:
            call = self._screen.words(joined((call, counted(calls, "call"))))
        return self._screen.words("{call} and {n} more", call=call, n=len(running) - 1) if len(running) > 1 else call

    def _result(self, event: dict[str, Any]) -> None:
        with self._lock:
            name, given = self._running.pop(event["id"], ("?", {}))
            self._tails.pop(event["id"], None)
            self._progress.pop(event["id"], None)
        self._screen.below(())
        outcome = describe_result(name, given, event["content"], event["facts"], is_error=event["is_error"])
        if event["is_error"] or name in COUNTED:
            outcome = self._screen.words(outcome)
        self.line(describe_call(name, given, self._cwd, self._home), outcome, is_error=event["is_error"])
        self._screen.wait(self._what_runs())

    def line(self, what: str, outcome: str, *, is_error: bool) -> None:
        """Show a call and its result on one line, with at least a third of it for the result."""
        screen, marks = self._screen, self._screen.marks
        room = screen.width - 4
        result = " ".join(clean(outcome).split())
        shown = fit(clean(what), max(room - cell_len(result) - 3, room * 2 // 3) if result else room, marks.cut)
        result = fit(result, max(0, room - cell_len(shown) - 3), marks.cut)
        screen.painted(
            (f"{marks.failed if is_error else marks.done} ", "red" if is_error else "green"),
            (shown, "plain"),
            (f" {marks.dash} {result}" if result else "", "red" if is_error else "dim"),
        )


def describe_work(jobs: Sequence[str], agents: Sequence[AgentState]) -> list[str]:
    """Describe each background job; an agent is shown by its current activity, or else by its task."""
    doing = {agent.name: Text("agent: {summary}", summary=agent.summary or agent.description) for agent in agents}
    return [doing.get(job, job) for job in jobs if job != SUMMARIES]


def describe_status(
    window: WindowState,
    last: Usage | None,
    dollars: float | None,
    usage: Usage,
    mode: str,
    work: str = NO_WORK,
    words: Words = ENGLISH,
    billing: Billing = "list",
) -> list[str]:
    """Return the parts of the status line, most important first: remaining context, cache hits, cost, mode, background work.

    `last` is the usage of the last call; `dollars` is None if the model's prices are unknown.
    """
    warning = Text(" (nearly full)") if window.above_error else Text(" (filling up)") if window.above_warning else ""
    if window.at_blocking:
        warning = Text(" (full: /compact, /clear or /undo)")
    cost = words(counted(usage.total, "token"))
    if billing == "subscription":
        cost = ", ".join(words(text, tokens=short_count(count)) for text, count in token_counts(usage).items())
    elif dollars is not None:
        cost = f"${dollars:.4f}" if dollars < 1 else f"${dollars:,.2f}"
    return [
        words("context {percent:.0f}% left", percent=window.percent_left) + words(warning),
        *([words("cache {rate:.0%}", rate=last.cache_read / last.prompt)] if last is not None and last.prompt else ()),
        cost,
        words("mode {mode}", mode=mode),
        words("background: {work}", work=work),
    ]


def fit_parts(found: list[str], width: int, dash: str = "·") -> str:
    """Join as many parts as fit; the first always stays."""
    line = found[0]
    for part in found[1:]:
        longer = f"{line} {dash} {part}"
        if cell_len(longer) > width:
            break
        line = longer
    return fit(line, width, "")


class TextStream:
    """Wraps a streamed answer between words and colours headings, code and bold text.

    It adds only line breaks and colours, and drops only the blank at the end of a line, so text copied from the terminal is the
    original. A word is held back until it is complete. Lines inside a fenced block are left unchanged.
    """

    def __init__(self, styled: Callable[[str, Style], str]) -> None:
        self._styled = styled
        self._column = 0
        self._line = ""  # the current line so far, without our line breaks
        self._word = ""
        self._fenced = False
        self._heading = self._code = self._bold = False

    def feed(self, text: str, width: int) -> str:
        """Add text and return what can be written now."""
        out: list[str] = []
        for char in text:
            if char == "\n":
                out += [self._flush(width), "\n"]
                self._newline()
            elif char == " ":
                out.append(self._flush(width))
                out.append(self._blank(width))
            elif not self._fenced and not char.isascii() and cell_len(char) > 1:
                # Scripts without blanks can be broken between any two characters.
                out.append(self._flush(width))
                self._word = char
                out.append(self._flush(width))
            else:
                self._word += char
        return "".join(out)

    def end(self, width: int) -> str:
        """Finish the answer: return the last word and, if needed, a newline."""
        rest = self._flush(width)
        at_left = not self._column
        self._newline()
        self._fenced = False
        return rest if at_left else f"{rest}\n"

    def _blank(self, width: int) -> str:
        self._line += " "
        self._column += 1
        return " " if self._fenced or self._column < width else ""

    def _flush(self, width: int) -> str:
        word, self._word = self._word, ""
        if not word:
            return ""
        if not self._line and _HEADING.match(word):
            self._heading = True
        self._line += word
        wide = cell_len(word)
        broken = "\n" if not self._fenced and self._column and self._column + wide > width else ""
        self._column = wide if broken else self._column + wide
        return broken + self._coloured(word)

    def _coloured(self, word: str) -> str:
        if self._fenced or _FENCE.match(self._line):
            return self._styled(word, "cyan")
        out: list[str] = []
        for part in _MARKS.split(word):
            if part.startswith("`"):
                out.append(self._styled(part, "cyan"))
                self._code = not self._code
            elif part == "**" and not self._code:
                out.append(self._styled(part, "bold"))
                self._bold = not self._bold
            elif part:
                out.append(self._styled(part, "cyan" if self._code else "bold" if self._bold or self._heading else "plain"))
        return "".join(out)

    def _newline(self) -> None:
        """Reset the styles: an unclosed mark ends with its line."""
        if _FENCE.match(self._line):
            self._fenced = not self._fenced
        self._line, self._column = "", 0
        self._heading = self._code = self._bold = False
