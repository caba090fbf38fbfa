"""The figures and texts of a session for lists and searches: a fold over the lines of its file that can be continued.

Invariants: scanning a file in two parts gives the same as scanning it at once, so an index follows a file by its appended bytes;
the state is small, whatever the size of the file. The usage of an answer is counted once, although each record of it repeats it.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import msgspec

from ..core.usage import Usage
from ..memory.store.secrets import redact
from ..providers.models import cost

Speaker: TypeAlias = Literal["user", "assistant", "subagent", "memory"]

TITLE_CHARS = 120
# A longer message is a paste; its beginning and end say what it is about.
MOST_CHARS = 12_000
# Of the message before: enough for what "it" and "that" refer to.
BEFORE_CHARS = 1_500
# Answers whose last record may still come. Records of one answer stand close together, also with parallel subagents.
OPEN_ANSWERS = 16
FREE = "offline"

# How programs begin the texts that they insert as user messages.
INJECTED = (
    "<system-reminder>",
    "<command-",
    "<local-command",
    "<task-notification>",
    "<environment_context>",
    "<user_instructions>",
    "<permissions instructions>",
    "<turn_aborted>",
    "<ide_",
    "<INSTRUCTIONS>",
    "# AGENTS.md instructions",
    "Caveat:",
    "[Request interrupted",
)


class Turn(NamedTuple):
    """One message as a search finds it. `number` counts the user's messages, `before` is the message before it."""

    number: int
    speaker: Speaker
    time: str
    text: str
    before: str


class Scan(msgspec.Struct):
    """The state of a scan. A session's figures are its fields; texts wait in `turns` until they are taken."""

    id: str = ""
    cwd: str = ""
    title: str = ""
    prompt: str = ""
    started: str = ""
    model: str = ""
    parent: str = ""
    ours: bool = False
    messages: int = 0
    number: int = 0
    compactions: int = 0
    skipped: int = 0
    total: Usage = Usage()
    usd: float = 0.0
    unpriced: int = 0
    open: dict[str, tuple[Usage, float | None]] = {}  # answers that may go on: usage and cost so far
    running: Usage | None = None  # a running total that replaces the sum, in files without a record per answer
    last: str = ""

    @property
    def usage(self) -> Usage:
        found = sum((usage for usage, _ in self.open.values()), self.total)
        return self.running if self.running is not None and not found.total else found

    @property
    def cost_usd(self) -> float | None:
        """The cost so far; None if a model's price is unknown."""
        prices = [usd for _, usd in self.open.values()]
        if self.running is not None and not (self.total.total or self.open):
            prices.append(price_of(self.model, self.running))
        if self.unpriced or None in prices:
            return None
        return self.usd + sum(price or 0.0 for price in prices)

    def noted(self, *, time: str = "", cwd: str = "", id: str = "") -> None:
        self.started = self.started or time
        self.cwd = self.cwd or cwd
        self.id = self.id or id

    def answered(self, key: str, model: str, usage: Usage | None) -> None:
        """Count an answer; another record of the same answer replaces its usage."""
        if usage is not None or key not in self.open:
            self.open.pop(key, None)
            self.open[key] = (usage or Usage(), price_of(model, usage or Usage()))
        if len(self.open) > OPEN_ANSWERS:
            self.paid(*self.open.pop(next(iter(self.open))))

    def answered_usage(self, usage: Usage | None) -> None:
        """Count the usage of an answer that the current model gave."""
        if usage is not None:
            self.paid(usage, price_of(self.model, usage))

    def paid(self, usage: Usage, usd: float | None) -> None:
        """Count usage with a known cost, or None."""
        self.total += usage
        self.usd += usd or 0.0
        self.unpriced += usd is None

    def said(self, turns: list[Turn], speaker: Speaker, text: str, time: str) -> None:
        text = shorten(text.strip())
        if not text:
            return
        if speaker == "user":
            self.number += 1
            # A command such as `/model` does not say what a session is about.
            self.prompt = one_line(text) if not self.prompt or self.prompt.startswith("/") else self.prompt
        self.messages += 1
        turns.append(Turn(max(1, self.number), speaker, time, text, self.last))
        self.last = cut_words(text, BEFORE_CHARS)


def price_of(model: str, usage: Usage) -> float | None:
    return 0.0 if model == FREE or not usage.total else cost(model, usage).usd


def is_injected(text: str) -> bool:
    return text.lstrip().startswith(INJECTED)


def shorten(text: str) -> str:
    """Return the text, or the beginning and end of a long one. Secrets go first: half of one would no longer be recognised."""
    if len(text) <= MOST_CHARS:
        return text
    half, clean = MOST_CHARS // 2, redact(text).text
    return clean if len(clean) <= MOST_CHARS else f"{cut_words(clean, half)}\n…\n{clean[-half:]}"


def cut_words(text: str, most: int) -> str:
    """Cut a text between two words."""
    if len(text) <= most:
        return text
    cut = text[: most + 1].rsplit(None, 1)
    return cut[0] if len(cut) == 2 else text[:most]


def one_line(text: str) -> str:
    line = " ".join(text[: 8 * TITLE_CHARS].split())
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1] + "…"
