"""One turn of a session: its messages, calls and results, in the order of the file.

A long turn shows its beginning and its end, and the part that was asked for; the others are read when they are unfolded. Parts begin at
fixed records, so they stay the same while the turn grows. Records of unknown kinds are counted, and shown as JSON when they are unfolded.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ..core.blocks import ToolResult, ToolUse
from ..core.records import Attachment, Foreign, Message, Newer, Record
from ..history.window_series import TurnRow
from .html import Html, cut, join, tag
from .page import fragment, json_response, later_part, number_of, problem, wants_json
from .session_data import OpenSession, text_of
from .session_list import address
from .site import Site
from .turn_events import MOST_CHARS, ShownTurn, events_of, part_or_page
from .words import Words, words_for

# Records that are shown together, and parts of so many at the end of a turn, and with a word of the filter, that are shown at once.
PART = 60
LAST_PARTS = 2
MOST_FOUND = 3
# Records of unknown kinds that one click shows.
MOST_OTHERS = 50


def turn(site: Site, request: Request, opened: OpenSession) -> Response:
    """Return one turn, or a part of it."""
    words, number, asked = words_for(request), request.path_params["number"], request.query_params
    shown = read_turn(words, opened, number)
    if shown is None:
        return _missing(site, request, opened, number)
    if wants_json(request):
        return json_response(_plain(shown))
    if (start := number_of(request, "from")) is not None:
        events = tag("ol", {"class": "ev"}, _part(shown, min(start, len(shown.records)) // PART))
    else:
        events = turn_events(shown, find=asked.get("find", ""))
    return part_or_page(site, request, opened, events)


def others(site: Site, request: Request, opened: OpenSession) -> Response:
    """Return the records of a turn that are of unknown kinds, as they are in the file, from one on."""
    words, number, start = words_for(request), request.path_params["number"], number_of(request, "from") or 0
    found = opened.others(number)
    if wants_json(request):
        return json_response(found)
    texts = [msgspec.json.format(msgspec.json.encode(one), indent=2).decode() for one in found[start : start + MOST_OTHERS]]
    shown = [tag("pre", {"dir": "auto"}, text[:MOST_CHARS]) for text in texts]
    end = start + MOST_OTHERS
    url = f"{address(opened.session)}/turns/{number}/others?from={end}"
    more = later_part(f"o{number}-{end}", url, words("{n} more", n=len(found) - end)) if end < len(found) else None
    return part_or_page(site, request, opened, join((*shown, more)))


def _missing(site: Site, request: Request, opened: OpenSession, number: int) -> Response:
    words = words_for(request)
    sentence = words(
        "Turn {number} does not exist. The session has {n} turn.|Turn {number} does not exist. The session has {n} turns.",
        number=f"{number:,}",
        n=len(opened.series.turns),
    )
    if request.headers.get("x-lamina-part"):
        return fragment(tag("p", None, sentence), 404)
    return problem(site, request, words("Not found"), sentence, status=404, back=address(opened.session))


def read_turn(words: Words, opened: OpenSession, number: int) -> ShownTurn | None:
    """Read a turn; None if there is none with this number."""
    records = opened.turn(number)
    row = next((one for one in opened.series.turns if one.number == number), None)
    return _shown(words, opened, number, row, records) if row is not None or records else None


def _shown(words: Words, opened: OpenSession, number: int, row: TurnRow | None, records: list[Record]) -> ShownTurn:
    blocks = [(record, at, block) for record in records if isinstance(record, Message) for at, block in enumerate(record.blocks)]
    calls = {block.id for _, _, block in blocks if isinstance(block, ToolUse)}
    results = {block.tool_use_id: (record, at, block) for record, at, block in blocks if isinstance(block, ToolResult)}
    answers, before = set[str](), row.first_request - 1 if row is not None else 0
    requests = [*accumulate((_is_new_answer(record, answers) for record in records), initial=before)]
    return ShownTurn(words, opened, number, records, requests, calls, results, row.record if row is not None else "")


def turn_events(shown: ShownTurn, *, find: str = "", show: str = "") -> Html:
    """Return a turn. Of a long one: the first part, the last ones, those with a word of `find`, and the one with the record `show`.

    `show` may also be the words of a record. The page scrolls to it.
    """
    count, here = -(-len(shown.records) // PART), _place_of(shown, show)
    if count <= 1 + LAST_PARTS:
        return tag("ol", {"class": "ev"}, [_part(shown, part, here) for part in range(count)], _others(shown))
    unfolded = {*range(count - LAST_PARTS, count), *_found(shown, find.casefold().split()), here // PART}
    later = [_later(shown, part, here, unfolded=part in unfolded) for part in range(1, count)]
    return tag("ol", {"class": "ev"}, _part(shown, 0, here), later, _others(shown))


def _place_of(shown: ShownTurn, wanted: str) -> int:
    """Return the place of a record, by its id or by its words; -1 if it is not here. A result stands with its call."""
    terms, best, place = wanted.casefold().split(), 0, -1
    result = next((block for record, _, block in shown.results.values() if record.uuid == wanted), None)
    for at, record in enumerate(shown.records if wanted else ()):
        calls = [one.id for one in record.blocks if isinstance(one, ToolUse)] if isinstance(record, Message) else []
        if record.uuid == wanted if result is None or result.tool_use_id not in shown.calls else result.tool_use_id in calls:
            return at
        text = _seen(shown, record)
        if (count := sum(term in text for term in terms)) > best:
            best, place = count, at
    return place


def _found(shown: ShownTurn, terms: list[str]) -> list[int]:
    """Return the first parts that show one of these words."""
    found = list[int]()
    for at, record in enumerate(shown.records if terms else ()):
        if at // PART not in found:
            text = _seen(shown, record)
            found += [at // PART] if any(term in text for term in terms) else []
        if len(found) == MOST_FOUND:
            break
    return found


def _seen(shown: ShownTurn, record: Record) -> str:
    """Return the text that is shown with a record: a result stands with its call."""
    blocks = record.blocks if isinstance(record, Message) else ()
    own = [block for block in blocks if not (isinstance(block, ToolResult) and block.tool_use_id in shown.calls)]
    results = [shown.results[block.id][2] for block in own if isinstance(block, ToolUse) and block.id in shown.results]
    return "\n".join(text_of(block) for block in (*own, *results))


def _later(shown: ShownTurn, part: int, here: int, *, unfolded: bool) -> Html:
    """Return a part of a long turn. One that is shown at once is unfolded, so that the script keeps it while the turn grows."""
    start, end = part * PART, min((part + 1) * PART, len(shown.records))
    first, last = shown.requests[start] + 1, shown.requests[end]
    label = shown.words(
        "Requests {first} to {last}, {n} records" if first <= last else "{n} records", n=end - start, first=first, last=last
    )
    content = tag("ol", {"class": "ev"}, _part(shown, part, here)) if unfolded else None
    url = f"{shown.base}/turns/{shown.number}?from={start}"
    return tag("li", None, later_part(f"d{shown.number}-{start}", url, label, content))


def _part(shown: ShownTurn, part: int, here: int = -1) -> list[Html | None]:
    made = list[Html | None]()
    for at in range(part * PART, min((part + 1) * PART, len(shown.records))):
        if at == here:
            made.append(tag("li", {"data-here": True}))
        if (number := shown.requests[at + 1]) > shown.requests[at]:
            made.append(_request_line(shown, number))
        made += events_of(shown, shown.records[at])
    return made


def _others(shown: ShownTurn) -> Html | None:
    """Return how many records are of unknown kinds, and what unfolds them."""
    found = [record for record in shown.records if isinstance(record, Foreign | Newer)]
    kinds = Counter(record.kind if isinstance(record, Foreign) else f"format {record.found}" for record in found)
    label = f"{shown.words('Other records:')} {', '.join(f'{cut(kind, 60)} {count}' for kind, count in kinds.most_common())}"
    url = f"{shown.base}/turns/{shown.number}/others"
    return tag("li", None, later_part(f"o{shown.number}", url, label)) if found else None


def _request_line(shown: ShownTurn, number: int) -> Html | None:
    points = shown.opened.series.requests
    if not 1 <= number <= len(points):
        return None
    text = shown.words("request {number}, {tokens} tokens", number=number, tokens=f"{points[number - 1].tokens:,}")
    link = tag("a", {"href": f"{shown.base}?r={number}", "data-select": number}, text)
    return tag("li", {"class": "rq", "data-r": number}, link)


def _is_new_answer(record: Record, answers: set[str]) -> bool:
    """Whether a record is the first of an answer, and so the first after a request."""
    if not isinstance(record, Message) or not record.from_model or record.sidechain:
        return False
    key = record.message_id or record.uuid
    new = key not in answers
    answers.add(key)
    return new


def _plain(shown: ShownTurn) -> list[dict[str, Any]]:
    """Return the records for a program. Those without content of their own are as they are in the file."""
    rows, made = iter(shown.opened.others(shown.number)), list[dict[str, Any]]()
    for record in shown.records:
        one: dict[str, Any] = {"kind": type(record).__name__.lower(), "id": record.uuid, "time": record.time}
        match record:
            case Message(role=role, blocks=blocks):
                one |= {"role": role, "content": [block.wire for block in blocks]}
            case Attachment(kind=kind, blocks=blocks):
                one |= {"attachment": kind, "content": [block.wire for block in blocks]}
            case Foreign() | Newer():
                one["record"] = next(rows, None)
            case _:
                pass
        made.append(one)
    return made
