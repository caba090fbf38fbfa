"""The figures and texts of a session for lists and searches: a fold over the lines of its file that can be continued.

Invariants: scanning a file in two parts gives the same as scanning it at once, so an index follows a file by its appended bytes;
the state is small, whatever the size of the file. The usage of an answer is counted once, although each record of it repeats it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal, NamedTuple, TypeAlias

import msgspec
from msgspec.structs import astuple

from ..core.usage import Usage
from ..memory.store.secrets import redact
from ..providers.models import UNITS_OUTPUT, UNITS_READ, UNITS_WRITE, CostParts, cost, cost_parts
from .content_kinds import group_of
from .session_stats import written_again
from .trail import Trail, short_digest

Speaker: TypeAlias = Literal["user", "assistant", "subagent", "memory"]

TITLE_CHARS = 120
# A longer message is a paste; its beginning and end say what it is about.
MOST_CHARS = 12_000
# Of each end of a long message, so many characters are searched for secrets: those that are kept, and what may stand around a secret.
LOOKED_AT = 12_000
# What tells that a value is a secret stands in fewer characters before it.
AROUND_SECRET = 2_000
# Of the message before: enough for what "it" and "that" refer to.
BEFORE_CHARS = 1_500
# Answers whose last record may still come. Records of one answer are close together, also with parallel subagents.
OPEN_ANSWERS = 16
# Answers remembered as counted: some 300 kB in the index for a session of that length.
MOST_COUNTED = 20_000
# The model's place in the costs of calls beside the conversation, whose records name none.
SIDE = ""
# Calls whose results may still come; parallel calls are far fewer.
MOST_CALLS = 200
# A rough measure for shares of the window: code and JSON have fewer characters in a token than prose.
CHARS_PER_TOKEN = 3
# What an image counts for: about 1,500 tokens.
IMAGE_CHARS = 4_500
# The id and the name of a call and its result, in characters.
CALL_CHARS = 150
# Memories counted in one session; far more than a session recalls.
MOST_RECALLS = 1_000

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

# A character that ends every secret but a private key, which has lines.
_NOT_IN_SECRETS = re.compile(r"[^A-Za-z0-9!#$%&*+./:=?@\\^_|~-]")
_KEY_BEGINS = "-----BEGIN "
_KEY_NAME = 70  # characters of that line
_KEY_ENDS = "-----END "


class Paid(msgspec.Struct, frozen=True, array_like=True):
    """The costs of one model in one half hour. The dollars are those of calls with a known price."""

    usage: Usage = Usage()
    read: float = 0.0
    written: float = 0.0  # what was not read: written and fresh
    output: float = 0.0
    calls: int = 0
    unpriced: int = 0  # calls of unknown price
    breaks: int = 0  # calls that did not find in the cache what the one before had left there
    again: int = 0  # the tokens of these breaks

    def __add__(self, other: Paid) -> Paid:
        return Paid(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


# The costs of a session by half hour and model.
Costs: TypeAlias = Mapping[str, Mapping[str, Paid]]


class Open(msgspec.Struct, frozen=True, array_like=True):
    """An answer that may go on: its usage and cost so far."""

    usage: Usage
    usd: float | None
    model: str
    half: str
    beside: bool = False  # to a subagent whose messages are in the same file; it has its own window and cache entries
    chars: int = 0  # of its text
    explained: bool = False  # a decision before its request explains what the request wrote again

    @property
    def short_output(self) -> bool:
        return is_short_output(self.usage, self.chars)


class SessionFigures(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The figures of a session for lists, computed once for each version of its file."""

    id: str
    cwd: str
    title: str
    started: str
    ended: str
    parent: str
    ours: bool
    messages: int
    compactions: int
    skipped: int
    usage: Usage
    cost_usd: float | None
    fullest: int
    newest: tuple[int, str]
    short_outputs: int
    first: str
    window: int
    clearings: int
    breaks: int
    full: dict[str, int]
    head: int
    costs: dict[str, dict[str, Paid]]


class ScannedTurn(NamedTuple):
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
    ended: str = ""  # the time of the newest line
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
    open: dict[str, Open] = {}
    running: Usage | None = None  # a running total, which includes calls that have no answer in the file
    itemised: bool = False  # whether the file has a record of usage per call, so that the running total tells nothing more
    trail: Trail = Trail()
    answering: str = ""  # the key of the answer whose parts are being read, in files that do not name it
    resulted: bool = False  # whether a result of its calls was read
    last: str = ""
    half: str = ""  # the half hour of the newest line
    paid_on: dict[str, dict[str, Paid]] = {}  # by half hour and model, without the open answers
    left: Usage = Usage()  # of the last closed answer
    left_model: str = ""
    peak: int = 0  # tokens of the fullest request, without the open answers
    short: int = 0  # answers whose reported output is far less than their text, without the open ones
    newest: tuple[int, str] = (0, "")  # tokens of the last request, and its model
    first: str = ""  # digest of the first answer: a copy of a transcript begins with the same one
    window: int = 0  # tokens that fit into the window, as the newest line that names it states
    clearings: int = 0
    breaks: int = 0  # cache breaks that no other decision explains, without the open answers
    due: set[str] = set()  # the kinds of decisions since the last request; those of one kind count once, as in the session's view
    asked_key: str = ""  # the key of the answer to the last request
    held: dict[str, int] = {}  # characters in the window by kind, since the last compaction
    calls: dict[str, str] = {}  # the kinds of the results that calls still wait for, by the ids of the calls
    asked: dict[str, int] = {}  # `held` as of the request whose answer is being read
    full: tuple[int, dict[str, int]] = (0, {})  # tokens of the fullest request, and characters in it by kind
    head: int | None = None  # tokens of the first request that no record explains: the system prompt and the tools
    counted: set[str] = set()  # digests of the closed answers: some files hold the same answers twice
    elsewhere: set[str] = set()  # digests of answers in an older file, which count there
    ran_before: Usage = Usage()  # the running total up to the last of them
    recalls: dict[str, tuple[int, str]] = {}  # file of a memory → how often it was recalled, and when last

    @property
    def usage(self) -> Usage:
        return self._closed().total

    @property
    def cost_usd(self) -> float | None:
        """The cost so far; None if a model's price is unknown."""
        rest = self._closed()
        return None if rest.unpriced else rest.usd

    def figures(self) -> SessionFigures:
        rest, waiting = self._closed(), self.due if self.asked_key else ()
        return SessionFigures(
            id=self.id,
            cwd=self.cwd,
            title=self.title or self.prompt,
            started=self.started,
            ended=self.ended,
            parent=self.parent,
            ours=self.ours,
            messages=self.messages,
            compactions=self.compactions + ("compact" in waiting),
            skipped=self.skipped,
            usage=rest.total,
            cost_usd=None if rest.unpriced else rest.usd,
            fullest=rest.peak,
            newest=self.newest,
            short_outputs=rest.short,
            first=self.first,
            window=self.window,
            clearings=self.clearings + ("clear" in waiting),
            breaks=rest.breaks + ("break" in waiting),
            full=self.full[1],
            head=self.head or 0,
            costs=rest.paid_on,
        )

    def money(self) -> dict[str, dict[str, Paid]]:
        """Return the costs by half hour and model."""
        return self._closed().paid_on

    def _closed(self) -> Scan:
        """Return the state as if all answers were complete."""
        rest = msgspec.structs.replace(self, open={}, paid_on={half: dict(by) for half, by in self.paid_on.items()})
        for one in self.open.values():
            rest._close(one)
        if self.running is not None and not self.itemised:
            more = self.running - rest.total
            rest._pay(Open(more, price_of(self.model, more), self.model, self.half), 0)
        return rest

    @property
    def answers(self) -> set[str]:
        """The digests of all answers."""
        return self.counted | {short_digest(key) for key in self.open}

    def noted(self, *, time: str = "", cwd: str = "", id: str = "") -> None:
        self.started = self.started or time
        if time:
            self.ended, self.half = max(self.ended, time), half_hour(time)
        self.cwd = self.cwd or cwd
        self.id = self.id or id

    def answered(
        self,
        key: str,
        model: str,
        usage: Usage | None,
        *,
        usd: float | None = None,
        beside: bool = False,
        chars: int = 0,
        own: str = "",
    ) -> None:
        """Count an answer; another record of the same answer replaces its usage, and a later copy is not counted.

        `usd` is the recorded cost; without one the price list decides. `own` tells an answer from all others in the world, as far as the
        record does.
        """
        if key not in self.open and self._is_copy(key):
            return
        self.first = self.first or short_digest(f"{key} {own} {self.prompt}")
        before = self.open.get(key)
        if before is None:
            before = Open(Usage(), 0.0, model, self.half, beside, explained=not beside and self._requested(key))
        used = usage if usage is not None else before.usage
        price = before.usd if usage is None else usd if usd is not None else price_of(model, usage)
        said = before.chars + (chars if key == self.asked_key else 0)  # later records of an older answer are copies
        self.open[key] = Open(used, price, model, self.half, beside, said, before.explained)
        if used.prompt and key == self.asked_key:
            self._asked(used.prompt, model)
        if len(self.open) > OPEN_ANSWERS:
            first = next(iter(self.open))
            self._count(first)
            self._close(self.open.pop(first))

    def paid_without_answer(self, usage: Usage) -> None:
        """Count a call of the current model that has no answer in the file, such as one that writes a summary."""
        self.trail = self.trail.used(usage)
        if not self._is_copy(self.trail.digest):
            self._count(self.trail.digest)
            self._pay(Open(usage, price_of(self.model, usage), self.model, self.half), 0)

    def follow(self, trail: Trail, *, answered: bool) -> None:
        """Follow the trail. The first answer tells which sessions begin alike, also if its usage is not in the file yet."""
        if answered and trail != self.trail:
            self.first = self.first or short_digest(f"{trail.digest} {self.prompt}")
        self.trail = trail

    def ran_to(self, total: Usage) -> None:
        """Note the running total. It may be repeated."""
        key = f"{self.trail.digest} in all"
        if short_digest(key) in self.elsewhere:
            self.ran_before = total
        self.running = total - self.ran_before
        if self.trail.digest:
            self._count(key)

    def _is_copy(self, key: str) -> bool:
        """Whether an answer was counted before, here or in an older file."""
        digest = short_digest(key)
        return bool(key) and (digest in self.counted or digest in self.elsewhere)

    def _count(self, key: str) -> None:
        self.first = self.first or short_digest(f"{key} {self.prompt}")
        if len(self.counted) < MOST_COUNTED:
            self.counted.add(short_digest(key))

    def _requested(self, key: str) -> bool:
        """Note a request. Return whether a decision since the one before explains a cache break."""
        self.asked, self.asked_key = dict(self.held), key
        due, self.due = self.due, set()
        self.compactions += "compact" in due
        self.clearings += "clear" in due
        self.breaks += "break" in due
        return bool(due)

    def _asked(self, prompt: int, model: str) -> None:
        self.newest, held = (prompt, model), self.asked
        if self.head is None:
            self.head = 0 if "system" in held or "tools" in held else max(0, prompt - sum(held.values()) // CHARS_PER_TOKEN)
        if prompt > self.full[0]:
            self.full = (prompt, held)

    def holds(self, kind: str, chars: int) -> None:
        """Count content that came into the window."""
        if chars:
            self.held[kind] = self.held.get(kind, 0) + chars

    def called(self, id: str, tool: str) -> None:
        """Note a tool call, whose result will be of the tool's kind."""
        self.calls[id] = group_of(tool)
        self.holds("call", CALL_CHARS)
        if len(self.calls) > MOST_CALLS:
            del self.calls[next(iter(self.calls))]

    def returned(self, id: str, chars: int) -> None:
        self.holds(self.calls.pop(id, "other"), chars)

    def compacted(self) -> None:
        self.due.add("compact")
        self.held = {kind: self.held[kind] for kind in ("system", "tools") if kind in self.held}

    def paid_aside(self, usage: Usage, usd: float | None) -> None:
        """Count a call beside the conversation, which does not touch its cache entries."""
        self._pay(Open(usage, usd, SIDE, self.half), 0)

    def _close(self, one: Open) -> None:
        if one.beside:
            self._pay(one, 0)
            return
        again = written_again(self.left, one.usage)
        self.short += one.short_output
        self.breaks += again > 0 and not (one.explained or is_other_model(self.left_model, one.model))
        self._pay(one, again)
        self.peak = max(self.peak, one.usage.prompt)
        self.left, self.left_model = one.usage, one.model

    def _pay(self, one: Open, again: int) -> None:
        self.total += one.usage
        self.usd += one.usd or 0.0
        self.unpriced += one.usd is None
        if not one.usage.total:
            return
        by = self.paid_on.setdefault(one.half, {})
        parts = split_cost(one.model, one.usage, one.usd or 0.0)
        found = Paid(one.usage, *parts, 1, int(one.usd is None), int(again > 0), again)
        by[one.model] = by.get(one.model, Paid()) + found

    def recalled(self, path: str, time: str) -> None:
        count, last = self.recalls.get(path, (0, ""))
        if path in self.recalls or len(self.recalls) < MOST_RECALLS:
            self.recalls[path] = (count + 1, max(last, time))

    def said(self, turns: list[ScannedTurn], speaker: Speaker, text: str, time: str) -> None:
        text = shorten(text.strip())
        if not text:
            return
        if speaker == "user":
            self.number += 1
            # A command such as `/model` does not say what a session is about.
            self.prompt = one_line(text) if not self.prompt or self.prompt.startswith("/") else self.prompt
        self.messages += 1
        turns.append(ScannedTurn(max(1, self.number), speaker, time, text, self.last))
        self.last = cut_words(text, BEFORE_CHARS)


def is_other_model(before: str, model: str) -> bool:
    """Return whether the model changed between two requests, as far as both are known. Each model has its own cache entries."""
    return bool(before and model) and before != model


def price_of(model: str, usage: Usage) -> float | None:
    return 0.0 if not usage.total else cost(model, usage).usd


# An answer is this many times longer than its reported output if only the beginning of the output was noted. Shorter answers tell nothing.
SHORT_FACTOR = 4
SHORT_TOKENS = 64


def is_short_output(usage: Usage | None, chars: int) -> bool:
    """Return True if an answer reports far too few tokens of output for its text: its agent noted only the beginning."""
    said = chars // 4
    return usage is not None and usage.total > 0 and said >= SHORT_TOKENS and usage.output_tokens * SHORT_FACTOR < said


def half_hour(time: str) -> str:
    """Return the half hour of a time in UTC, such as `2026-03-01T10:30`; days begin with one in nearly all time zones."""
    if not time.endswith("Z"):
        try:
            at = datetime.fromisoformat(time)
        except ValueError:
            return ""
        time = at.astimezone(UTC).isoformat() if at.tzinfo is not None else time
    return f"{time[:14]}{'30' if time[14:16] >= '30' else '00'}"


def split_cost(model: str, usage: Usage, usd: float) -> CostParts:
    """Divide a cost among reading, other input and output: as the model's prices do, or as prices usually do."""
    parts = cost_parts(model, usage) or CostParts(
        usage.cache_read * UNITS_READ,
        usage.input_tokens + usage.cache_write * UNITS_WRITE,
        usage.output_tokens * UNITS_OUTPUT,
    )
    whole = sum(parts)
    return CostParts(*(part * usd / whole for part in parts)) if whole else CostParts(0.0, usd, 0.0)


def is_injected(text: str) -> bool:
    return text.lstrip().startswith(INJECTED)


def shorten(text: str) -> str:
    """Return the text, or the beginning and end of a long one. Secrets go first: half of one would no longer be recognised.

    The work is bounded, whatever the length of the text: nothing else can run while an expression is searched for.
    """
    if len(text) <= MOST_CHARS:
        return text
    half = MOST_CHARS // 2
    if len(text) <= 2 * LOOKED_AT:
        clean = redact(text).text
        return clean if len(clean) <= MOST_CHARS else f"{cut_words(clean, half)}\n…\n{clean[-half:]}"
    return f"{cut_words(redact(text[:LOOKED_AT], part_of=text).text, half)}\n…\n{_end_of(text, half)}"


def _end_of(text: str, most: int) -> str:
    """Return the end of a long text, from its last LOOKED_AT characters. The rest of a secret that began before is left out."""
    start = len(text) - LOOKED_AT
    key = text.rfind(_KEY_BEGINS, 0, start)
    if key >= 0 and "PRIVATE KEY" in text[key : key + _KEY_NAME] and text.find(_KEY_ENDS, key, start) < 0:
        end = text.find(_KEY_ENDS, start)
        return redact(text[end:], part_of=text).text[-most:] if end >= 0 else ""
    clean = redact(text[start:], part_of=text).text
    start = max(AROUND_SECRET, len(clean) - most)
    if _NOT_IN_SECRETS.search(clean, AROUND_SECRET, start) is not None:
        return clean[start:]
    found = _NOT_IN_SECRETS.search(clean, start)
    return clean[found.start() :] if found is not None else ""


def cut_words(text: str, most: int) -> str:
    """Cut a text between two words. A longer word is cut without the secret that it may be: half of one would not be recognised."""
    if len(text) <= most:
        return text
    cut = text[: most + 1].rsplit(None, 1)
    return cut[0] if len(cut) == 2 else redact(text).text[:most]


def one_line(text: str) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text[:MOST_CHARS].split())
    return line if len(line) <= TITLE_CHARS else f"{cut_words(line, TITLE_CHARS - 1)}…"
