"""Expand: show the content behind a summary, a folded turn or a cleared result again, page by page.

This tool decides nothing: the conversation knows what it took out of view. Facts: node, page, pages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ..core.blocks import Wire
from ..core.errors import LaminaError
from ..core.prompt_files import prompt_text
from ..language.wording import counted, shorten
from .tool import Builtin, Context, ToolOutput, failure

NOT_HERE = "Nothing to expand: nothing has been removed from this conversation."

SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "node": {"type": "string", "minLength": 4, "description": "The id given in the summary, the folded turn or the marker"},
        "page": {"type": "integer", "minimum": 1, "description": "Page number (default 1)"},
        "find": {"type": "string", "minLength": 2, "description": "Show only paragraphs with these words, from all pages"},
    },
    "required": ["node"],
}

# The limit for search results; a model that needs more asks for a page.
MOST_FOUND = 20_000


class ExpandedPage(NamedTuple):
    text: str
    number: int  # from 1
    pages: int


# Takes a node and a page and returns one page; page None returns the whole text, for a search.
ExpandNode: TypeAlias = Callable[[str, int | None], ExpandedPage]


def tool() -> Builtin:
    return Builtin(name="Expand", description=prompt_text(__file__, "expand"), schema=SCHEMA, read_only=True, act=_act)


def _act(arguments: Wire, context: Context) -> ToolOutput:
    if context.expand is None:
        return failure(NOT_HERE)
    node, wanted = str(arguments["node"]), arguments.get("find")
    try:
        opened = context.expand(node, None if wanted else arguments.get("page", 1))
    except LaminaError as error:
        return failure(str(error))
    if wanted:
        return ToolOutput(find_paragraphs(opened.text, str(wanted)), facts={"node": node})
    more = f"\n[Page {opened.number} of {opened.pages}.]" if opened.pages > 1 else ""
    return ToolOutput(f"{opened.text}{more}", facts={"node": node, "page": opened.number, "pages": opened.pages})


def find_paragraphs(text: str, wanted: str) -> str:
    """Return the paragraphs that contain all the words, ignoring case, newest last."""
    words = wanted.casefold().split()
    parts = [part for part in text.split("\n\n") if all(word in part.casefold() for word in words)]
    if not parts:
        return f"No paragraph contains {wanted!r}."
    shown: list[str] = []
    room = MOST_FOUND
    for part in parts:
        short = _shortened(part, words)
        room -= len(short)
        if room < 0:
            shown.append(f"[{counted(len(parts) - len(shown), 'more paragraph')} found; use narrower words.]")
            break
        shown.append(short)
    return "\n\n".join(shown)


def _shortened(part: str, words: list[str]) -> str:
    """Shorten a long paragraph, such as a tool's output without blank lines, to its matching lines, or to its beginning."""
    most = MOST_FOUND // 4
    if len(part) <= most:
        return part
    lines = [line for line in part.splitlines() if all(word in line.casefold() for word in words)]
    return shorten("\n".join(lines) or part, most, " …")
