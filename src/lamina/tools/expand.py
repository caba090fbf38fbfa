"""Expand: what a summary, a folded turn or a cleared result stands for, read again page by page.

Decides nothing: the conversation knows what it took out of view. Facts: node, page, pages.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from ..core.blocks import Wire
from ..core.errors import LaminaError
from ..core.prompt_files import prompt_text
from .tool import Builtin, Context, ToolOutput, failure

NOT_HERE = "Nothing was taken out of this conversation, so there is nothing to expand."

SCHEMA: Wire = {
    "type": "object",
    "properties": {
        "node": {"type": "string", "minLength": 4, "description": "The id that the summary, the folded turn or the marker names"},
        "page": {"type": "integer", "minimum": 1, "description": "Which page; the first where it is left out"},
        "find": {"type": "string", "minLength": 2, "description": "Show only the paragraphs that hold these words, of all pages"},
    },
    "required": ["node"],
}

# What is shown of a search at most; a model that needs more asks for a page.
MOST_FOUND = 20_000


class ExpandedPage(NamedTuple):
    text: str
    number: int  # from 1
    pages: int


# Node and page in, one page out; a page of None is the whole text, for a search.
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
    """The paragraphs that hold all the words, whatever their case, newest last."""
    words = wanted.casefold().split()
    parts = [part for part in text.split("\n\n") if all(word in part.casefold() for word in words)]
    if not parts:
        return f"Nothing in it holds {wanted!r}."
    shown: list[str] = []
    room = MOST_FOUND
    for part in parts:
        short = part if len(part) <= MOST_FOUND // 4 else f"{part[: MOST_FOUND // 4]} …"
        room -= len(short)
        if room < 0:
            shown.append(f"[{len(parts) - len(shown)} more paragraphs hold it; use narrower words.]")
            break
        shown.append(short)
    return "\n\n".join(shown)
