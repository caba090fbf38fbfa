"""The blocks of a request as rows of a list."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from ..history.request_blocks import RequestBlock, RequestBlocks
from ..language.text import Text
from . import labels
from .conversation import turn_address
from .html import Html, bdi, cut, file_name, tag
from .numbers import price, tokens
from .session_data import OpenSession
from .session_list import address
from .words import Words

# Labels of blocks that say no more than their kind.
PLAIN = ("message", "answer", "thinking")


def block_rows(
    words: Words, opened: OpenSession, found: RequestBlocks, shown: Sequence[RequestBlock], sign: str = ""
) -> list[Html]:
    """Return a row for each block: its name and size, and unfolded why it is there, since when, its cost and its text."""
    most = max((block.tokens for block in found.blocks), default=1) or 1
    return [_row(words, opened, found, block, sign, most) for block in shown]


def _row(words: Words, opened: OpenSession, found: RequestBlocks, block: RequestBlock, sign: str, most: int) -> Html:
    text = tag("span", {"class": "soft"}, bdi(cut(block.about or block.words, 90)))
    named = file_name(block.file, opened.session.project) if block.file else text
    mark = tag("span", {"class": "bad" if sign == "−" else "good"}, f"{sign} ") if sign else None
    width = max(1.5, min(100.0, 100 * block.tokens / most))
    picture = tag(
        "svg",
        {"class": "bar", "viewBox": "0 0 100 5", "preserveAspectRatio": "none", "aria-hidden": "true"},
        tag("rect", {"class": f"k-{block.kind}", "width": f"{width:.1f}", "height": 5}),
    )
    summary = tag(
        "summary",
        None,
        tag("span", {"class": f"sw k-{block.kind}", "title": words(labels.BLOCK_KINDS[block.kind])}),
        tag(
            "span",
            {"class": "what"},
            tag("b", None, mark, bdi(block_label(words, block))),
            " ",
            tag("span", {"class": "tag"}, words("older copy")) if block.older_copy else None,
            named,
        ),
        picture,
        tag("span", {"class": "num"}, tokens(block.tokens)),
    )
    return tag("li", None, tag("details", None, summary, _more(words, opened, found, block)))


def block_label(words: Words, block: RequestBlock) -> str:
    """Return the tool of a call or result, or the kind of the block."""
    if block.tool:
        return words("{tool} call", tool=block.tool) if block.kind == "call" else block.tool
    return (
        words(labels.BLOCK_KINDS[block.kind])
        if block.kind.startswith("unrecorded") or block.label in PLAIN
        else words(block.label)
    )


def _more(words: Words, opened: OpenSession, found: RequestBlocks, block: RequestBlock) -> Html:
    since = found.number + 1 - block.entered_at
    facts: list[tuple[str, str | Html]] = [
        (words("Why it is here"), bdi(words(block.why))),
        (
            words("In the window"),
            words("since request {at} ({n} request)|since request {at} ({n} requests)", at=block.entered_at, n=max(1, since)),
        ),
        (
            words("Carried so far" if words.billing == "list" else Text("Carried so far##use")),
            price(words, block.carried_usd if words.billing == "list" else block.carried_units),
        ),
        (words("Cache"), words(labels.CACHED[block.cached])),
    ]
    turn = _turn_of(opened, block.entered_at)
    if block.record is not None:
        base = address(opened.session)
        facts.append(
            (
                words("Comes from"),
                tag(
                    "a",
                    {"href": turn_address(base, turn, show=block.record, r=found.number)},
                    words("turn {turn}", turn=turn),
                ),
            )
        )
    listed = [(tag("dt", None, name), tag("dd", None, value)) for name, value in facts]
    raw = f"{address(opened.session)}/records/{quote(block.record, safe='')}" if block.record is not None else None
    link = (
        tag("p", None, tag("a", {"class": "small", "href": raw, "data-load": raw}, words("Show the record as JSON")))
        if raw
        else None
    )
    text = tag("pre", {"dir": "auto"}, block.words) if block.words else None
    return tag("div", {"class": "more"}, tag("dl", None, listed), text, link)


def _turn_of(opened: OpenSession, number: int) -> int:
    points = opened.series.requests
    return points[min(max(1, number), len(points)) - 1].turn
