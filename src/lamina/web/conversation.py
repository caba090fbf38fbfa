"""The conversation of a session: one row a turn, and the messages, calls and results of a turn when it is opened.

Nothing is hidden: records of unknown kinds are counted and can be shown as JSON. A long text shows its beginning, and the rest on
a click. Pictures are named and not shown.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ..core.blocks import Block, Document, Image, RedactedThinking, Text, Thinking, ToolResult, ToolUse, Unknown
from ..core.records import Attachment, Boundary, Clear, Foreign, Message, Newer, Record
from ..core.usage import Usage
from ..providers.amounts import Amount
from ..session.window_kinds import group_of
from ..session.window_series import TurnRow
from ..sources.content_kinds import MEMORY_KINDS
from .html import Html, bdi, cut, file_name, join, tag
from .markdown import markdown
from .numbers import amount, clock, size
from .page import fragment, json_response, page, problem, search_box, wants_json
from .pictures import pictures_of
from .session_data import OpenSession, matching_turns, raw_record
from .session_list import TITLE_CHARS, address, title_of
from .site import Site
from .words import Words, words_for

# Turns on one page, and characters and lines of a text before the rest waits for a click.
PAGE = 60
MOST_CHARS = 20_000
MOST_LINES = 200
# Characters that one click adds: a browser lays out a line of megabytes for seconds.
CHUNK = 200_000
ROW_CHARS = 400
TYPE_CHARS = 40
LINE_CHARS = 160
# Arguments that say what a call is about, the most telling first.
PATHS = ("file_path", "path", "notebook_path")
TELLING = ("file_path", "notebook_path", "command", "pattern", "url", "query", "path", "description", "prompt", "skill")


def panel(words: Words, request: Request, opened: OpenSession) -> Html:
    """Return the list of turns, filtered and paged by the address."""
    series, asked = opened.series, request.query_params
    wanted, errors = asked.get("find", ""), asked.get("errors") == "1"
    found = matching_turns(opened, wanted, errors=errors)
    number = int(asked["turns"]) if asked.get("turns", "").isdigit() and len(asked["turns"]) < 6 else 1
    first = (max(1, number) - 1) * PAGE
    shown = found[first : first + PAGE]
    count = words(
        "conversation.count",
        turns=words("session.turns", n=len(series.turns)),
        requests=words("session.requests_n", n=len(series.requests)),
    )
    match = words("conversation.match", n=len(found)) if wanted or errors else count
    failed = sum(turn.errors for turn in series.turns)
    only = tag(
        "label",
        {"class": "check"},
        tag("input", {"type": "checkbox", "name": "errors", "value": "1", "checked": errors}),
        words("conversation.errors", n=failed),
    )
    form = tag(
        "form",
        {"class": "filter", "id": "filter", "data-find": "conv-count conv-turns", "data-keep": True},
        tag("input", {"type": "hidden", "name": "r", "value": asked.get("r")}),
        only if failed else None,
        search_box(words, name="find", value=wanted, label=words("conversation.filter")),
    )
    header = tag(
        "header",
        None,
        tag("h2", {"id": "hc"}, words("conversation.title")),
        tag("span", {"class": "soft small", "role": "status", "id": "conv-count"}, match),
        tag("span", {"class": "sp"}),
        form,
    )
    base = address(opened.session)
    empty = tag("p", {"class": "body soft"}, words("conversation.none")) if not shown else None
    rows = tag("ol", {"class": "turns", "id": "turns"}, [_row(words, base, opened, turn, wanted) for turn in shown])
    return tag(
        "section",
        {"class": "panel conv", "aria-labelledby": "hc", "id": "conv"},
        header,
        tag("div", {"id": "conv-turns"}, empty, rows, _pages(words, request, number, len(found))),
    )


def _row(words: Words, base: str, opened: OpenSession, turn: TurnRow, wanted: str) -> Html:
    requests = turn.last_request - turn.first_request + 1 if turn.first_request else 0
    tools = ", ".join(f"{count} {name}" for name, count in sorted(turn.tools.items(), key=lambda pair: -pair[1])[:4])
    failed = tag("span", {"class": "bad"}, words("conversation.failed", n=turn.errors)) if turn.errors else None
    count = words("session.requests_n", n=requests) if requests else words("conversation.interrupted")
    summary = tag(
        "summary",
        None,
        tag("span", {"class": "soft small t"}, clock(words, turn.time)),
        tag(
            "span",
            None,
            tag("span", {"class": "txt"}, bdi(cut(turn.words, ROW_CHARS) or words("conversation.no_words"))),
            tag("span", {"class": "sub"}, tag("span", None, bdi(tools) if tools else words("conversation.no_calls")), failed),
        ),
        tag(
            "span",
            {"class": "amt"},
            count,
            tag("br"),
            amount(words, Amount(_usage(words, opened, turn), turn.usd)) if requests and not opened.series.estimated else None,
        ),
    )
    find = f"?{urlencode({'find': wanted})}" if wanted else ""
    noscript = tag(
        "noscript", None, tag("p", {"class": "ev"}, tag("a", {"href": f"{base}/turns/{turn.number}"}, words("conversation.open")))
    )
    details = tag("details", {"id": f"d{turn.number}", "data-load": f"{base}/turns/{turn.number}{find}"}, summary, noscript)
    return tag("li", {"id": f"t{turn.number}", "data-first": turn.first_request, "data-last": turn.last_request}, details)


def _usage(words: Words, opened: OpenSession, turn: TurnRow) -> Usage:
    """Return the tokens of a turn's requests, if its amount is counted in tokens."""
    found = opened.series.requests[turn.first_request - 1 : turn.last_request] if words.billing == "subscription" else ()
    return sum((point.usage for point in found), Usage())


def _pages(words: Words, request: Request, number: int, count: int) -> Html | None:
    if count <= PAGE:
        return None
    kept = {key: value for key, value in request.query_params.items() if key in ("r", "find", "errors")}

    def link(to: int, key: str) -> Html:
        return tag("a", {"class": "btn sm", "href": f"?{urlencode({**kept, 'turns': to})}#conv"}, words(key))

    return tag(
        "nav",
        {"class": "pages", "aria-label": words("sessions.pages")},
        link(number - 1, "conversation.earlier") if number > 1 else None,
        tag("span", {"class": "soft"}, f"{number} / {-(-count // PAGE)}"),
        link(number + 1, "conversation.later") if number * PAGE < count else None,
    )


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
    return _part(site, request, opened, _events(words, opened, row, records))


def _part(site: Site, request: Request, opened: OpenSession, body: Html, status: int = 200) -> Response:
    """Return a part of the conversation: for the script that asked for it, or without scripts as a page with a way back."""
    if request.headers.get("x-lamina-part"):
        return fragment(body, status)
    title = title_of(words_for(request), opened.session)
    back = tag("p", {"class": "crumb"}, tag("a", {"href": address(opened.session)}, bdi(cut(title, TITLE_CHARS))))
    return page(site, request, title=cut(title, 80), active="sessions", body=join((back, body)), status=status)


class _Shown(NamedTuple):
    """The turn that is shown, and the results of its calls."""

    words: Words
    opened: OpenSession
    results: dict[str, tuple[Message, int, ToolResult]]
    asked: str  # the record of the user's message

    @property
    def base(self) -> str:
        return address(self.opened.session)


def _events(words: Words, opened: OpenSession, row: TurnRow | None, records: list[Record]) -> Html:
    results = {
        block.tool_use_id: (record, at, block)
        for record in records
        if isinstance(record, Message)
        for at, block in enumerate(record.blocks)
        if isinstance(block, ToolResult)
    }
    shown = _Shown(words, opened, results, row.record if row is not None else "")
    made, other = list[Html | None](), Counter[str]()
    number, answers = (row.first_request if row is not None else 1) - 1, set[str]()
    for record in records:
        if _is_new_answer(record, answers):
            number += 1
            made.append(_request_line(words, opened, number))
        if isinstance(record, Foreign | Newer):
            other[record.kind if isinstance(record, Foreign) else f"format {record.found}"] += 1
        made += _record(shown, record)
    if other:
        counts = ", ".join(f"{kind} {count}" for kind, count in other.most_common())
        made.append(tag("li", {"class": "soft small"}, words("conversation.others"), " ", bdi(counts)))
    return tag("ol", {"class": "ev"}, made)


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
        return _part(site, request, opened, tag("p", None, words_for(request)("frame.not_found")), 404)
    if "bytes" in request.query_params:
        return Response(data, media_type=found[0].type)
    alt = f"{found[0].type}, {size(found[0].size)}"
    return _part(site, request, opened, tag("p", None, tag("img", {"src": f"{request.url.path}?bytes=1", "alt": alt})))


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
    asked = request.query_params.get("from", "0")
    start = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 12 else 0
    block = _find_block(opened, wanted, at)
    if block is None:
        return _part(site, request, opened, tag("p", None, words("frame.not_found")), 404)
    whole = _block_text(block)
    part = tag("pre", {"dir": "auto"}, whole[start : start + CHUNK])
    more = _rest(words, request.url.path, start + CHUNK, len(whole)) if start + CHUNK < len(whole) else None
    return _part(site, request, opened, join((part, more)))


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
        return _part(site, request, opened, tag("p", None, words("frame.not_found")), 404)
    if wants_json(request):
        return json_response(found)
    text = msgspec.json.format(msgspec.json.encode(found), indent=2).decode()
    return _part(site, request, opened, tag("pre", {"dir": "auto"}, text))


def _plain(record: Record) -> dict[str, Any]:
    made: dict[str, Any] = {"kind": type(record).__name__.lower(), "id": record.uuid, "time": record.time}
    if isinstance(record, Message):
        made |= {"role": record.role, "content": [block.wire for block in record.blocks]}
    return made
