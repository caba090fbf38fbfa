"""The records of a turn as items of a list: messages, calls with their results, thinking, pictures; and the rest of a long text.

Nothing is dropped. A long text shows its beginning, and the rest on a click. Pictures are named and appear on a click.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ..core.blocks import Block, Document, Image, RedactedThinking, Text, Thinking, ToolResult, ToolUse, Unknown
from ..core.records import Attachment, Boundary, Clear, Message, Record
from ..history.content_kinds import MEMORY_KINDS
from ..history.request_blocks import argument_of
from ..history.window_kinds import group_of
from .html import Html, bdi, cut, file_name, join, tag
from .markdown import markdown
from .numbers import size
from .page import fragment, json_response, number_of, page, wants_json
from .pictures import pictures_of
from .session_data import OpenSession, raw_record
from .session_list import TITLE_CHARS, address, title_of
from .site import Site
from .words import Words, words_for

# Characters and lines of a text before the rest waits for a click.
MOST_CHARS = 20_000
MOST_LINES = 200
# Characters that one click adds: a browser lays out a line of megabytes for seconds.
CHUNK = 200_000
TYPE_CHARS = 40
LINE_CHARS = 160


class ShownTurn(NamedTuple):
    """The turn that is shown."""

    words: Words
    opened: OpenSession
    number: int
    records: list[Record]
    requests: list[int]  # before each record, and after the last, the number of the last request so far
    calls: set[str]  # ids
    results: dict[str, tuple[Message, int, ToolResult]]  # by the id of their call
    asked: str  # the record of the user's message

    @property
    def base(self) -> str:
        return address(self.opened.session)


def part_or_page(site: Site, request: Request, opened: OpenSession, body: Html, status: int = 200) -> Response:
    """Return a part of the conversation: for the script that asked for it, or without scripts as a page with a way back."""
    if request.headers.get("x-lamina-part"):
        return fragment(body, status)
    title = title_of(words_for(request), opened.session)
    back = tag("p", {"class": "crumb"}, tag("a", {"href": address(opened.session)}, bdi(cut(title, TITLE_CHARS))))
    return page(site, request, title=cut(title, 80), active="sessions", body=join((back, body)), status=status)


def events_of(shown: ShownTurn, record: Record) -> list[Html | None]:
    """Return the items that show a record."""
    words = shown.words
    match record:
        case Message():
            return [_block(shown, record, at, block) for at, block in enumerate(record.blocks)]
        case Attachment(kind=kind):
            text = "\n\n".join(block.text for block in record.blocks if isinstance(block, Text))
            return [_folded(shown, record, 0, "k-memory" if kind in MEMORY_KINDS else "k-other", kind, text)]
        case Boundary():
            return [tag("li", {"class": "cutline"}, words("Compacted"))]
        case Clear():
            return [tag("li", {"class": "cutline"}, words("{n} result cleared|{n} results cleared", n=len(record.markers)))]
        case _:
            return []


def _block(shown: ShownTurn, record: Message, at: int, block: Block) -> Html | None:
    words = shown.words
    match block:
        case Text(text=text) if record.role == "assistant":
            whole = len(text) <= MOST_CHARS  # a part of a text may begin within a list or a piece of code
            said = tag("section", {"class": "text"}, markdown(text)) if whole else _text(shown, record, at, text)
            return tag("li", {"class": "say k-assistant"}, said)
        case Text(text=text) if record.uuid == shown.asked:
            return tag("li", {"class": "mine k-user"}, _text(shown, record, at, text))
        case Text(text=text) if record.summary:
            return _folded(shown, record, at, "k-summary", words("Summary"), text)
        case Text(text=text):
            return _folded(shown, record, at, "k-user", words("Inserted by a program"), text)
        case Thinking(thinking=text):
            return _folded(shown, record, at, "k-thinking", words("Thinking"), text)
        case RedactedThinking():
            return tag("li", {"class": "call soft"}, words("Thinking that the provider encrypted"))
        case ToolUse():
            return _call(shown, record, at, block)
        case ToolResult(tool_use_id=id) if id in shown.calls:
            return None  # shown with its call
        case ToolResult():
            return _result_alone(shown, record, at, block)
        case Image():
            return tag("li", {"class": "soft small"}, _pictures(shown, record, at, block), _raw_link(shown, record))
        case Document():
            return tag("li", {"class": "soft small"}, words("A document."), " ", _raw_link(shown, record))
        case Unknown(kind=kind):
            return tag("li", {"class": "soft small"}, bdi(kind), " ", _raw_link(shown, record))


def _call(shown: ShownTurn, record: Message, at: int, block: ToolUse) -> Html:
    words, found = shown.words, shown.results.get(block.id)
    failed = found is not None and found[2].is_error
    amount = words("no result in this turn") if found is None else size(_size(found[2]))
    summary = tag(
        "summary",
        {"class": "call"},
        tag("span", {"class": f"sw k-{group_of(block.name)}"}),
        tag("span", None, bdi(block.name)),
        tag("span", {"class": "mono"}, _telling(block.input, shown.opened.session.project)),
        tag("span", {"class": "small bad" if failed else "small soft"}, words("failed") if failed else amount),
    )
    text = _text(shown, *found[:2], found[2].text) if found is not None and (found[2].text or not _size(found[2])) else None
    result = (text, _pictures(shown, *found)) if found is not None else None
    more = tag("div", {"class": "more"}, _text(shown, record, at, _block_text(block)), result, _raw_link(shown, record))
    return tag("li", None, tag("details", {"id": _id(record, at)}, summary, more))


def _result_alone(shown: ShownTurn, record: Message, at: int, block: ToolResult) -> Html:
    """Return a result whose call is in another turn, or in none: a user may write while a tool runs."""
    label = shown.words("failed" if block.is_error else "result of a call in another turn")
    made = _folded(shown, record, at, "k-other", label, block.text)
    return join((made, tag("li", None, pictures))) if (pictures := _pictures(shown, record, at, block)) else made


def _id(record: Message | Attachment, at: int) -> str:
    """Return the id of what a block unfolds: the script keeps it open while the turn grows."""
    return f"b-{record.uuid}-{at}"


def _size(result: ToolResult) -> int:
    return len(result.text) + sum(one.size for one in pictures_of(result))


def _pictures(shown: ShownTurn, record: Message, at: int, block: Block) -> list[Html]:
    """Return a line for each picture in a block. A click loads it; one of an unsafe type is only named."""
    words, made = shown.words, list[Html]()
    for number, one in enumerate(pictures_of(block)):
        about = f"({one.type or cut(one.claimed, TYPE_CHARS)}, {size(one.size)})"
        url = f"{shown.base}/pictures/{quote(record.uuid, safe='')}/{at}/{number}"
        link = tag("a", {"class": "btn sm", "href": url, "data-load": url}, f"{words('Show the picture')} {about}")
        made.append(tag("p", None, link if one.type else (words("A picture that the page does not show"), " ", bdi(about))))
    return made


def picture(site: Site, request: Request, opened: OpenSession) -> Response:
    """One picture: for a click as a part of the page, and with `bytes` itself."""
    wanted, at, number = (request.path_params[name] for name in ("record", "index", "number"))
    block = _find_block(opened, wanted, at)
    found = pictures_of(block)[number : number + 1] if block is not None else []
    data = found[0].bytes() if found else None
    if data is None:
        return part_or_page(site, request, opened, tag("p", None, words_for(request)("This address does not exist.")), 404)
    if "bytes" in request.query_params:
        return Response(data, media_type=found[0].type)
    alt = f"{found[0].type}, {size(found[0].size)}"
    return part_or_page(site, request, opened, tag("p", None, tag("img", {"src": f"{request.url.path}?bytes=1", "alt": alt})))


def _telling(given: Any, project: str) -> Html:
    about = argument_of(given)
    return file_name(about.text, project) if about.is_path else bdi(cut(about.text, LINE_CHARS))


def _folded(shown: ShownTurn, record: Message | Attachment, at: int, kind: str, label: str, text: str) -> Html:
    summary = tag(
        "summary",
        {"class": "call"},
        tag("span", {"class": f"sw {kind}"}),
        tag("span", {"class": "soft"}, bdi(label)),
        tag("span", {"class": "mono"}, bdi(cut(text, LINE_CHARS))),
        tag("span", {"class": "small soft"}, size(len(text))),
    )
    more = tag("div", {"class": "more"}, _text(shown, record, at, text))
    return tag("li", None, tag("details", {"id": _id(record, at)}, summary, more))


def _text(shown: ShownTurn, record: Message | Attachment, at: int, text: str) -> Html:
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
    label = words(
        "Show the other {size}" if end - start <= CHUNK else "Show {part} more of {size}",
        size=size(end - start),
        part=size(CHUNK),
    )
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
        return part_or_page(site, request, opened, tag("p", None, words("This address does not exist.")), 404)
    whole = _block_text(block)
    part = tag("pre", {"dir": "auto"}, whole[start : start + CHUNK])
    more = _rest(words, request.url.path, start + CHUNK, len(whole)) if start + CHUNK < len(whole) else None
    return part_or_page(site, request, opened, join((part, more)))


def _find_block(opened: OpenSession, wanted: str, at: int) -> Block | None:
    found = opened.find(wanted)
    if found is None or not isinstance(found[1], Message | Attachment) or at >= len(found[1].blocks):
        return None
    return found[1].blocks[at]


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


def _raw_link(shown: ShownTurn, record: Message) -> Html:
    url = f"{shown.base}/records/{quote(record.uuid, safe='')}"
    return tag("p", None, tag("a", {"class": "small", "href": url, "data-load": url}, shown.words("Show the record as JSON")))


def record(site: Site, request: Request, opened: OpenSession) -> Response:
    """One record as it is in the file."""
    found = raw_record(opened.session.path, request.path_params["record"])
    words = words_for(request)
    if found is None:
        return part_or_page(site, request, opened, tag("p", None, words("This address does not exist.")), 404)
    if wants_json(request):
        return json_response(found)
    text = msgspec.json.format(msgspec.json.encode(found), indent=2).decode()
    return part_or_page(site, request, opened, tag("pre", {"dir": "auto"}, text))
