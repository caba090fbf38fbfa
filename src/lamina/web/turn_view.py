"""The messages, calls and results of one turn.

Nothing is hidden: records of unknown kinds are counted and can be shown as JSON. A long text shows its beginning, and the rest on a
click. A long turn shows its beginning, its end and what the filter found; the parts between are read when they are unfolded. The records of
a part stay the same while the turn grows. Pictures are named and not shown.
"""

from __future__ import annotations

from collections import Counter
from itertools import accumulate
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ..core.blocks import Block, Document, Image, RedactedThinking, Text, Thinking, ToolResult, ToolUse, Unknown
from ..core.records import Attachment, Boundary, Clear, Foreign, Message, Newer, Record
from ..session.window_kinds import group_of
from ..session.window_series import TurnRow
from ..sources.content_kinds import MEMORY_KINDS
from .html import Html, bdi, cut, file_name, join, tag
from .markdown import markdown
from .numbers import size
from .page import fragment, json_response, later_part, number_of, page, problem, wants_json
from .pictures import pictures_of
from .session_data import OpenSession, raw_record, text_of
from .session_list import TITLE_CHARS, address, title_of
from .site import Site
from .words import Words, words_for

# Records that are shown together, and parts of so many at the end of a turn, and with a word of the filter, that are shown at once.
PART = 60
LAST_PARTS = 2
MOST_FOUND = 3
# Characters and lines of a text before the rest waits for a click.
MOST_CHARS = 20_000
MOST_LINES = 200
# Characters that one click adds: a browser lays out a line of megabytes for seconds.
CHUNK = 200_000
TYPE_CHARS = 40
LINE_CHARS = 160
# Arguments that say what a call is about, the most telling first.
PATHS = ("file_path", "path", "notebook_path")
TELLING = ("file_path", "notebook_path", "command", "pattern", "url", "query", "path", "description", "prompt", "skill")


def turn(site: Site, request: Request, opened: OpenSession) -> Response:
    """Return the messages, calls and results of one turn, as part of the page."""
    words, number = words_for(request), request.path_params["number"]
    records = opened.turn(number)
    row = next((one for one in opened.series.turns if one.number == number), None)
    if row is None and not records:
        sentence = words("conversation.missing", number=f"{number:,}", n=len(opened.series.turns))
        if request.headers.get("x-lamina-part"):
            return fragment(tag("p", None, sentence), 404)
        return problem(site, request, words("frame.not_found_title"), sentence, status=404, back=address(opened.session))
    if wants_json(request):
        return json_response([_plain(record) for record in records])
    shown, start = _shown(words, opened, number, row, records), number_of(request, "from")
    find = request.query_params.get("find", "")
    events = _parts(shown, find) if start is None else _part(shown, min(start, len(records)) // PART)
    return part_or_page(site, request, opened, tag("ol", {"class": "ev"}, events))


def part_or_page(site: Site, request: Request, opened: OpenSession, body: Html, status: int = 200) -> Response:
    """Return a part of the conversation: for the script that asked for it, or without scripts as a page with a way back."""
    if request.headers.get("x-lamina-part"):
        return fragment(body, status)
    title = title_of(words_for(request), opened.session)
    back = tag("p", {"class": "crumb"}, tag("a", {"href": address(opened.session)}, bdi(cut(title, TITLE_CHARS))))
    return page(site, request, title=cut(title, 80), active="sessions", body=join((back, body)), status=status)


class _Shown(NamedTuple):
    """The turn that is shown."""

    words: Words
    opened: OpenSession
    number: int
    records: list[Record]
    requests: list[int]  # before each record, and after the last, the number of the last request so far
    results: dict[str, tuple[Message, int, ToolResult]]  # of its calls
    asked: str  # the record of the user's message

    @property
    def base(self) -> str:
        return address(self.opened.session)


def _shown(words: Words, opened: OpenSession, number: int, row: TurnRow | None, records: list[Record]) -> _Shown:
    results = {
        block.tool_use_id: (record, at, block)
        for record in records
        if isinstance(record, Message)
        for at, block in enumerate(record.blocks)
        if isinstance(block, ToolResult)
    }
    answers, before = set[str](), row.first_request - 1 if row is not None else 0
    requests = [*accumulate((_is_new_answer(record, answers) for record in records), initial=before)]
    return _Shown(words, opened, number, records, requests, results, row.record if row is not None else "")


def _parts(shown: _Shown, wanted: str) -> list[Html | None]:
    """Return the first part of a turn, the last ones, and the first ones with a word of the filter; and what unfolds the others."""
    count = -(-len(shown.records) // PART)
    folded = [part for part in range(1, count - LAST_PARTS) if part not in _found(shown, wanted.casefold().split())]
    return [one for part in range(count) for one in ([_folded_part(shown, part)] if part in folded else _part(shown, part))]


def _found(shown: _Shown, terms: list[str]) -> list[int]:
    """Return the first parts that show one of these words."""
    found = list[int]()
    for at, record in enumerate(shown.records if terms else ()):
        if len(found) < MOST_FOUND and at // PART not in found and any(term in _seen(shown, record) for term in terms):
            found.append(at // PART)
    return found


def _seen(shown: _Shown, record: Record) -> str:
    """Return the text that is shown with a record: a result stands with its call."""
    blocks = record.blocks if isinstance(record, Message) else ()
    own = [block for block in blocks if not isinstance(block, ToolResult)]
    results = [shown.results[block.id][2] for block in own if isinstance(block, ToolUse) and block.id in shown.results]
    return "\n".join(text_of(block) for block in (*own, *results))


def _folded_part(shown: _Shown, part: int) -> Html:
    start = part * PART
    first, last = shown.requests[start] + 1, shown.requests[start + PART]
    label = (
        shown.words("conversation.part", n=PART, first=first, last=last)
        if first <= last
        else shown.words("conversation.part_only", n=PART)
    )
    return tag("li", None, later_part(f"d{shown.number}-{start}", f"{shown.base}/turns/{shown.number}?from={start}", label))


def _part(shown: _Shown, part: int) -> list[Html | None]:
    made, other, words = list[Html | None](), Counter[str](), shown.words
    for at in range(part * PART, min((part + 1) * PART, len(shown.records))):
        record, number = shown.records[at], shown.requests[at + 1]
        if number > shown.requests[at]:
            made.append(_request_line(words, shown.opened, number))
        if isinstance(record, Foreign | Newer):
            other[record.kind if isinstance(record, Foreign) else f"format {record.found}"] += 1
        made += _record(shown, record)
    if other:
        counts = ", ".join(f"{kind} {count}" for kind, count in other.most_common())
        made.append(tag("li", {"class": "soft small"}, words("conversation.others"), " ", bdi(counts)))
    return made


def _is_new_answer(record: Record, answers: set[str]) -> bool:
    """Whether a record is the first of an answer, and so the first after a request."""
    if not isinstance(record, Message) or not record.from_model or record.sidechain:
        return False
    key = record.message_id or record.uuid
    new = key not in answers
    answers.add(key)
    return new


def _request_line(words: Words, opened: OpenSession, number: int) -> Html | None:
    points = opened.series.requests
    if not 1 <= number <= len(points):
        return None
    text = words("conversation.request", number=number, tokens=f"{points[number - 1].tokens:,}")
    link = tag("a", {"href": f"{address(opened.session)}?r={number}", "data-select": number}, text)
    return tag("li", {"class": "rq", "data-r": number}, link)


def _record(shown: _Shown, record: Record) -> list[Html | None]:
    words = shown.words
    match record:
        case Message():
            return [_block(shown, record, at, block) for at, block in enumerate(record.blocks)]
        case Attachment(kind=kind):
            text = "\n\n".join(block.text for block in record.blocks if isinstance(block, Text))
            return [_folded(shown, record, 0, "k-memory" if kind in MEMORY_KINDS else "k-other", kind, text)]
        case Boundary():
            return [tag("li", {"class": "cutline"}, words("decision.compact"))]
        case Clear():
            return [tag("li", {"class": "cutline"}, words("conversation.cleared", n=len(record.markers)))]
        case _:
            return []


def _block(shown: _Shown, record: Message, at: int, block: Block) -> Html | None:
    words = shown.words
    match block:
        case Text(text=text) if record.role == "assistant":
            whole = len(text) <= MOST_CHARS  # a part of a text may begin within a list or a piece of code
            said = tag("section", {"class": "text"}, markdown(text)) if whole else _text(shown, record, at, text)
            return tag("li", {"class": "say k-assistant"}, said)
        case Text(text=text) if record.uuid == shown.asked:
            return tag("li", {"class": "mine k-user"}, _text(shown, record, at, text))
        case Text(text=text) if record.summary:
            return _folded(shown, record, at, "k-summary", words("conversation.summary"), text)
        case Text(text=text):
            return _folded(shown, record, at, "k-user", words("conversation.inserted"), text)
        case Thinking(thinking=text):
            return _folded(shown, record, at, "k-thinking", words("kind.thinking"), text)
        case RedactedThinking():
            return tag("li", {"class": "call soft"}, words("conversation.redacted"))
        case ToolUse():
            return _call(shown, record, at, block)
        case ToolResult():
            return None  # shown with its call
        case Image():
            return tag("li", {"class": "soft small"}, _pictures(shown, record, at, block), _raw_link(shown, record))
        case Document():
            return tag("li", {"class": "soft small"}, words("conversation.document"), " ", _raw_link(shown, record))
        case Unknown(kind=kind):
            return tag("li", {"class": "soft small"}, bdi(kind), " ", _raw_link(shown, record))


def _call(shown: _Shown, record: Message, at: int, block: ToolUse) -> Html:
    words, found = shown.words, shown.results.get(block.id)
    failed = found is not None and found[2].is_error
    amount = words("conversation.no_result") if found is None else size(_size(found[2]))
    summary = tag(
        "summary",
        {"class": "call"},
        tag("span", {"class": f"sw k-{group_of(block.name)}"}),
        tag("span", None, bdi(block.name)),
        tag("span", {"class": "mono"}, _telling(block.input, shown.opened.session.project)),
        tag("span", {"class": "small bad" if failed else "small soft"}, words("conversation.failed_one") if failed else amount),
    )
    text = _text(shown, *found[:2], found[2].text) if found is not None and (found[2].text or not _size(found[2])) else None
    result = (text, _pictures(shown, *found)) if found is not None else None
    more = tag("div", {"class": "more"}, _text(shown, record, at, _block_text(block)), result, _raw_link(shown, record))
    return tag("li", None, tag("details", None, summary, more))


def _size(result: ToolResult) -> int:
    return len(result.text) + sum(one.size for one in pictures_of(result))


def _pictures(shown: _Shown, record: Message, at: int, block: Block) -> list[Html]:
    """Return a line for each picture in a block. A click loads it; one of an unsafe type is only named."""
    words, made = shown.words, list[Html]()
    for number, one in enumerate(pictures_of(block)):
        about = f"({one.type or cut(one.claimed, TYPE_CHARS)}, {size(one.size)})"
        url = f"{shown.base}/pictures/{quote(record.uuid, safe='')}/{at}/{number}"
        link = tag("a", {"class": "btn sm", "href": url, "data-load": url}, f"{words('conversation.picture')} {about}")
        made.append(tag("p", None, link if one.type else (words("conversation.no_picture"), " ", bdi(about))))
    return made


def picture(site: Site, request: Request, opened: OpenSession) -> Response:
    """One picture: for a click as a part of the page, and with `bytes` itself."""
    wanted, at, number = (request.path_params[name] for name in ("record", "index", "number"))
    block = _find_block(opened, wanted, at)
    found = pictures_of(block)[number : number + 1] if block is not None else []
    data = found[0].bytes() if found else None
    if data is None:
        return part_or_page(site, request, opened, tag("p", None, words_for(request)("frame.not_found")), 404)
    if "bytes" in request.query_params:
        return Response(data, media_type=found[0].type)
    alt = f"{found[0].type}, {size(found[0].size)}"
    return part_or_page(site, request, opened, tag("p", None, tag("img", {"src": f"{request.url.path}?bytes=1", "alt": alt})))


def _telling(given: Any, project: str) -> Html:
    """Return the argument that says what a call is about."""
    if not isinstance(given, dict):
        return bdi(cut(str(given), LINE_CHARS))
    key = next((key for key in TELLING if given.get(key)), None)
    if key in PATHS and isinstance(given[key], str):
        return file_name(given[key], project)
    text = str(given[key]) if key is not None else ", ".join(f"{name}: {value}" for name, value in given.items())
    return bdi(cut(text, LINE_CHARS))


def _folded(shown: _Shown, record: Message | Attachment, at: int, kind: str, label: str, text: str) -> Html:
    summary = tag(
        "summary",
        {"class": "call"},
        tag("span", {"class": f"sw {kind}"}),
        tag("span", {"class": "soft"}, bdi(label)),
        tag("span", {"class": "mono"}, bdi(cut(text, LINE_CHARS))),
        tag("span", {"class": "small soft"}, size(len(text))),
    )
    return tag("li", None, tag("details", None, summary, tag("div", {"class": "more"}, _text(shown, record, at, text))))


def _text(shown: _Shown, record: Message | Attachment, at: int, text: str) -> Html:
    """Return a text, or the beginning of a long one with the rest behind a click."""
    begun = _beginning(text)
    part = tag("pre", {"dir": "auto"}, begun)
    if len(begun) == len(text):
        return part
    return tag(
        "div", None, part, _rest(shown.words, f"{shown.base}/texts/{quote(record.uuid, safe='')}/{at}", len(begun), len(text))
    )


def _rest(words: Words, url: str, start: int, end: int) -> Html:
    more = f"{url}?from={start}"
    label = words("conversation.rest" if end - start <= CHUNK else "conversation.more", size=size(end - start), part=size(CHUNK))
    return tag("div", None, tag("a", {"href": more, "class": "btn sm", "data-load": more}, label))


def _beginning(text: str) -> str:
    if len(text) <= MOST_CHARS:
        return text
    return "\n".join(text[:MOST_CHARS].split("\n")[:MOST_LINES])


def text(site: Site, request: Request, opened: OpenSession) -> Response:
    """The next part of a long text."""
    words, wanted, at = words_for(request), request.path_params["record"], request.path_params["index"]
    start = number_of(request, "from") or 0
    block = _find_block(opened, wanted, at)
    if block is None:
        return part_or_page(site, request, opened, tag("p", None, words("frame.not_found")), 404)
    whole = _block_text(block)
    part = tag("pre", {"dir": "auto"}, whole[start : start + CHUNK])
    more = _rest(words, request.url.path, start + CHUNK, len(whole)) if start + CHUNK < len(whole) else None
    return part_or_page(site, request, opened, join((part, more)))


def _find_block(opened: OpenSession, wanted: str, at: int) -> Block | None:
    for record in opened.records:
        if record.uuid == wanted and isinstance(record, Message | Attachment) and at < len(record.blocks):
            return record.blocks[at]
    return None


def _block_text(block: Block) -> str:
    match block:
        case Text(text=text) | Thinking(thinking=text):
            return text
        case ToolResult():
            return block.text
        case ToolUse():
            return msgspec.json.format(msgspec.json.encode(block.input, enc_hook=str), indent=2).decode()
        case _:
            return ""


def _raw_link(shown: _Shown, record: Message) -> Html:
    url = f"{shown.base}/records/{quote(record.uuid, safe='')}"
    return tag("p", None, tag("a", {"class": "small", "href": url, "data-load": url}, shown.words("conversation.raw")))


def record(site: Site, request: Request, opened: OpenSession) -> Response:
    """One record as it is in the file."""
    found = raw_record(opened.session.path, request.path_params["record"])
    words = words_for(request)
    if found is None:
        return part_or_page(site, request, opened, tag("p", None, words("frame.not_found")), 404)
    if wants_json(request):
        return json_response(found)
    text = msgspec.json.format(msgspec.json.encode(found), indent=2).decode()
    return part_or_page(site, request, opened, tag("pre", {"dir": "auto"}, text))


def _plain(record: Record) -> dict[str, Any]:
    made: dict[str, Any] = {"kind": type(record).__name__.lower(), "id": record.uuid, "time": record.time}
    if isinstance(record, Message):
        made |= {"role": record.role, "content": [block.wire for block in record.blocks]}
    return made
