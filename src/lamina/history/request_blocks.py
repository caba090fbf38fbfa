"""One request of a session block by block: kind, size, cache state, since when it is there, and what carrying it has cost.

The blocks are those of `lamina context --turn` (explanation.py); their sizes add up to the reported total, and the tokens without a
record are those of the window over time. The difference to the request before matches blocks by record and content, so a block that was
removed in the middle is the only one that went. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec

from ..conversation.window.breakdown import PATH_KEYS, READ_TOOL
from ..conversation.window.estimate import estimate
from ..conversation.window.features import measure
from ..core.blocks import Block, Wire
from ..core.errors import InputError
from ..core.message_list import SERVER_CALL, SERVER_RESULT
from ..core.records import Message, Record
from ..core.settings import Settings
from ..core.usage import Usage
from ..language.wording import counted
from ..providers.amounts import unit_parts
from .explanation import HEAD_PATH, UNRECORDED, Cached, Explained, Explainer, Piece, Unrecorded, unmatched
from .places import Origin
from .scan import is_injected
from .window_decisions import RequestPoint, token_price, units_of_write
from .window_kinds import AT, SUMMARY_KINDS, group_of, kind_of_attachment
from .window_series import Series, window_series

# States of a session that are kept for requests near them, and the fewest requests between two of them.
MOST_STATES = 8
LEAST_STEP = 64

# The arguments that say what a call is about, the most telling first, and those of them that are files.
TELLING = ("file_path", "notebook_path", "command", "pattern", "url", "query", "path", "description", "prompt", "skill")
PATHS = ("file_path", "notebook_path", "path")

_PLAIN = {
    "tool": "tools",
    "system": "system",
    "memory": "memory",
    "answer": "assistant",
    "thinking": "thinking",
    "redacted_thinking": "thinking",
    "image": "user",
    "document": "user",
    **dict.fromkeys(SUMMARY_KINDS, "summary"),
}


class CallArgument(NamedTuple):
    """The argument of a tool call that says what the call is about: a file, a command, a pattern."""

    text: str
    is_path: bool = False


NOTHING_TOLD = CallArgument("")


def argument_of(given: Any) -> CallArgument:
    """Return the most telling argument of a call, or all of them if none is known to tell more than others."""
    if not isinstance(given, dict):
        return CallArgument(str(given))
    key = next((key for key in TELLING if given.get(key)), None)
    if key is None:
        return CallArgument(", ".join(f"{name}: {value}" for name, value in given.items()))
    return CallArgument(str(given[key]), key in PATHS and isinstance(given[key], str))


class RequestBlock(msgspec.Struct, frozen=True):
    path: str  # tools[0], system[1], messages[4].content[2]
    kind: str  # one of KINDS
    label: str  # more exactly: message, call of Read, result of Bash, …
    why: str
    tokens: int
    cached: Cached
    record: str | None  # the record it comes from
    digest: str
    words: str  # the beginning of its text
    entered_at: int  # the first request that had its record
    carried_usd: float | None  # what sending it has cost so far; None: a price is unknown
    carried_units: float  # the same in units
    file: str = ""  # the file that it shows, or that a call names
    about: str = ""  # what a call is about: the most telling of its arguments
    older_copy: bool = False  # a later block of this request shows the same file
    tool: str = ""  # the tool of a call or a result


class RequestBlocks(msgspec.Struct, frozen=True):
    number: int
    model: str
    tokens: int
    usage: Usage | None
    breaks: tuple[str, ...]  # cache breaks announced before it
    blocks: tuple[RequestBlock, ...]
    against: int | None  # the request before, if there is one
    came: tuple[RequestBlock, ...]  # in this request and not in the one before
    went: tuple[RequestBlock, ...]
    request: Wire  # as sent, as far as the transcript holds it


def request_blocks(
    records: Iterable[Record],
    number: int,
    settings: Settings,
    *,
    origin: Origin = "lamina",
    series: Series | None = None,
    against: int | None = None,
) -> RequestBlocks:
    """Return a request and what changed since `against`, which is the request before unless another one is given.

    `series` is that of the same records, if it is known already.
    """
    held = list(records)
    return SessionRequests(held, series or window_series(held, settings, origin=origin)).blocks(number, against)


class SessionRequests:
    """The requests of a session, block by block. The first one costs the records before it, later ones only their own blocks."""

    def __init__(self, records: Sequence[Record], series: Series, pause: Callable[[], None] = lambda: None) -> None:
        """`pause` is called now and then while records are read."""
        self.series = series
        self._explainer = Explainer(records, step=max(LEAST_STEP, -(-len(series.requests) // MOST_STATES)), pause=pause)
        self._entered, self._files = _entered(records), _files(records)
        self._prices, self._units = CarriedPrices(series.requests), CarriedUnits(series.requests)
        self._last: tuple[tuple[int, int], RequestBlocks] | None = None

    def blocks(self, number: int, against: int | None = None) -> RequestBlocks:
        """Return a request and what changed since `against`, which is the request before unless another one is given.

        The last one is kept: a page that is shown again asks for the same.
        """
        points = self.series.requests
        if not 1 <= number <= len(points):
            made = counted(len(points), "request")
            raise InputError("request", f"request {number} does not exist (the session has {made})", "choose an existing one")
        other = against if against is not None and 1 <= against <= len(points) else number - 1
        last = self._last
        if last is None or last[0] != (number, other):
            last = self._last = ((number, other), self._compared(number, other))
        return last[1]

    def _compared(self, number: int, other: int) -> RequestBlocks:
        points = self.series.requests
        wanted = {at: unrecorded_in(points[at - 1]) for at in {number, other} if at}
        found = {one.turn: one for one in self._explainer.explain_each(wanted, tokens_of)}
        new, old = self._blocks(found[number]), self._blocks(found[other]) if other else ()
        explained = found[number]
        return RequestBlocks(
            number=number,
            model=explained.model,
            tokens=sum(block.tokens for block in new),
            usage=explained.usage,
            breaks=explained.breaks,
            blocks=new,
            against=other or None,
            came=unmatched(new, old) if other else (),
            went=unmatched(old, new),
            request=explained.request,
        )

    def _blocks(self, explained: Explained) -> tuple[RequestBlock, ...]:
        wires = [_wire_at(explained.request, piece.path) for piece in explained.pieces]
        shown = [self._files.get(str(wire.get("tool_use_id") or ""), "") for wire in wires]
        last = {file: at for at, file in enumerate(shown) if file}
        found = []
        for at, (piece, wire) in enumerate(zip(explained.pieces, wires, strict=True)):
            about = argument_of(wire.get("input")) if wire.get("type") == "tool_use" else NOTHING_TOLD
            start = min(self._entered.get(piece.record or "", 1), explained.turn)
            price = self._prices.between(start, explained.turn)
            found.append(
                RequestBlock(
                    path=piece.path,
                    kind=kind_of_piece(piece),
                    label=piece.label,
                    why=piece.why,
                    tokens=piece.tokens,
                    cached=piece.cached,
                    record=piece.record,
                    digest=piece.digest.hex(),
                    words=piece.words,
                    entered_at=start,
                    carried_usd=piece.tokens * price if price is not None else None,
                    carried_units=piece.tokens * (self._units.between(start, explained.turn) or 0.0),
                    file=shown[at] or (about.text if about.is_path else ""),
                    about=about.text,
                    older_copy=bool(shown[at]) and last[shown[at]] != at,
                    tool=piece.tool,
                )
            )
        return tuple(found)


def tokens_of(block: Block) -> int:
    return estimate(measure(block))


def unrecorded_in(point: RequestPoint) -> Unrecorded:
    return Unrecorded(point.kinds[AT["unrecorded_head"]], point.kinds[AT["unrecorded"]])


def _entered(records: Iterable[Record]) -> dict[str, int]:
    """Return, for each record, the number of the first request after it."""
    answers: set[str] = set()
    entered: dict[str, int] = {}
    main: bool | None = None
    for record in records:
        if isinstance(record, Message):
            main = record.sidechain if main is None else main
            if record.from_model and record.sidechain == main:
                answers.add(record.message_id or record.uuid)
        if record.uuid is not None:
            entered.setdefault(record.uuid, len(answers) + 1)
    return entered


def _files(records: Iterable[Record]) -> dict[str, str]:
    """Return the file of each call of Read."""
    return {
        str(block.wire.get("id")): path
        for record in records
        if isinstance(record, Message)
        for block in record.blocks
        if (path := _read_path(block.wire))
    }


def _read_path(wire: Wire) -> str:
    given = wire.get("input")
    if str(wire.get("name", "")).lower() != READ_TOOL.lower() or not isinstance(given, dict):
        return ""
    return next((given[key] for key in PATH_KEYS if isinstance(given.get(key), str)), "")


def _wire_at(request: Wire, path: str) -> Wire:
    """Return a block of the messages of a request by its path; empty for what stands before them."""
    if not path.startswith("messages["):
        return {}
    message, content = (int(part.split("]")[0]) for part in path.split("[")[1:])
    block: Any = request["messages"][message]["content"][content]
    return block if isinstance(block, dict) else {}


class CarriedPrices:
    """The price of carrying a token through the requests of a session.

    New content pays the price of writing, but not more than the request cost. The rest shares what the request cost beyond that: mostly
    reading, and after a break of the cache writing again. All of the first request shares its cost: others may have written the system
    prompt before.
    """

    def __init__(self, points: Sequence[RequestPoint]) -> None:
        prices = [self._price(point) for point in points]
        pairs = [*zip(points, prices, strict=True)]
        self._old = [
            *accumulate((0.0 if write is None else self._price_of_old(point, write) for point, write in pairs), initial=0.0)
        ]
        self._unknown = [*accumulate((write is None for write in prices), initial=0)]
        self._new = [
            None if write is None else self._price_of_new(point, write, at == 0) for at, (point, write) in enumerate(pairs)
        ]

    def between(self, first: int, last: int) -> float | None:
        """Return what a token that entered with one request has cost up to another one; None: a price is unknown."""
        new = self._new[first - 1]
        if new is None or self._unknown[last] > self._unknown[first]:
            return None
        return new + self._old[last] - self._old[first]

    def _price_of_new(self, point: RequestPoint, write: float, is_first: bool) -> float:
        paid, new = self._paid(point), point.tokens if is_first else min(point.added, point.tokens)
        return min(write, paid / max(1, new)) if paid else write

    def _price_of_old(self, point: RequestPoint, write: float) -> float:
        new = min(point.added, point.tokens)
        return max(0.0, self._paid(point) - new * write) / max(1, point.tokens - new)

    def _price(self, point: RequestPoint) -> float | None:
        """Return what writing a token costs."""
        return token_price(point.model, point.tokens, "hour" if point.written_1h else "write")

    def _paid(self, point: RequestPoint) -> float:
        """Return what the input of a request cost."""
        return (point.usd_read or 0.0) + (point.usd_written or 0.0)


class CarriedUnits(CarriedPrices):
    """The same in units."""

    def _price(self, point: RequestPoint) -> float | None:
        return units_of_write(point)

    def _paid(self, point: RequestPoint) -> float:
        return sum(unit_parts(point.usage)[:2])


def kind_of_piece(piece: Piece) -> str:
    """Return which of KINDS a block of a request is."""
    if piece.kind == UNRECORDED:
        return "unrecorded_head" if piece.path == HEAD_PATH else "unrecorded"
    if piece.kind == "call" or piece.kind.endswith(SERVER_CALL):
        return "call"
    if piece.kind == "result":
        return group_of(piece.tool)
    if piece.kind.startswith("attachment:"):
        return kind_of_attachment(piece.kind.removeprefix("attachment:"))
    if piece.kind == "message":
        return "other" if is_injected(piece.words) else "user"
    return _PLAIN.get(piece.kind, "web" if piece.kind.endswith(SERVER_RESULT) else "other")
