"""One block of Markdown as lines for a terminal, by rich: headings at the left edge, code unchanged, tables that fit.

Imported with the first answer of a chat. Nothing is dropped or cut: HTML becomes text, a line of code is never wrapped, and a
block that cannot fit or would lose a letter (the definition of a link) is shown as it was written.
"""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from io import StringIO
from typing import Any, ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Heading, ListItem, Markdown, MarkdownElement, TableElement
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.theme import Theme

_THEME = Theme(
    {
        "markdown.code": "cyan",
        "markdown.code_block": "cyan",
        "markdown.h1": "bold underline",
        "markdown.h2": "bold",
        "markdown.h3": "bold",
        "markdown.h4": "bold",
        "markdown.h5": "bold",
        "markdown.h6": "bold",
        "markdown.item.bullet": "none",
        "markdown.item.number": "none",
        "markdown.block_quote": "dim",
        "markdown.link": "none",
        "markdown.link_url": "underline",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
    }
)
_TRAILING = re.compile(r"(?: |\x1b\[[0-9;]*m)+$", re.MULTILINE)
_STYLES = re.compile(r"\x1b\[[0-9;]*m")
_EDGES = re.compile(r"\A(?:(?:\x1b\[[0-9;]*m)*\n)+|(?:\n(?:\x1b\[[0-9;]*m)*)+\Z")
# What an encoding without them gets instead.
_ASCII = str.maketrans({"•": "*", "▌": "|", "─": "-", "━": "=", "…": "..."})
_SHOWN_AS = {"html_inline": "text", "softbreak": "hardbreak", "image": "text"}
# A column is readable from this width on, with the gap beside it.
LEAST_COLUMN = 6
# Columns that rich takes for a level of nesting; a number takes up to nine digits.
_INDENTS = {"bullet_list": 3, "ordered_list": 11, "blockquote": 4}


class _Heading(Heading):
    LEVEL_ALIGN: ClassVar = {}


class _Code(CodeBlock):
    """Code as it is, below its language: neither padded nor wrapped, so that it can be copied."""

    @classmethod
    def create(cls, markdown: Markdown, token: Any) -> _Code:
        return cls(token.info.strip(), "")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.lexer_name:
            yield Segment(self.lexer_name, Style(dim=True))
            yield Segment.line()
        for line in str(self.text).rstrip("\n").split("\n"):
            yield Segment(line, self.style)
            yield Segment.line()


class _Table(TableElement):
    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for table in super().__rich_console__(console, options):
            if isinstance(table, Table):
                for column in table.columns:
                    column.overflow = "fold"
            yield table


class _NumberedItem(ListItem):
    """An item whose number has its dot."""

    def render_number(self, console: Console, options: ConsoleOptions, number: int, last_number: int) -> RenderResult:
        for at, part in enumerate(super().render_number(console, options, number, last_number)):
            yield Segment(f"{part.text[1:-1]}. ", part.style) if at == 0 and isinstance(part, Segment) else part


class _AnswerMarkdown(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "html_block": _Code,
        "table_open": _Table,
        "list_item_open": _NumberedItem,
    }

    def __init__(self, text: str) -> None:
        super().__init__(text, hyperlinks=False)
        for token in self.parsed:
            for child in token.children or ():
                if child.type == "image":
                    child.content = f"{child.content} ({child.attrs.get('src')})"
                    child.children = None
                child.type = _SHOWN_AS.get(child.type, child.type)

    @property
    def least_width(self) -> int:
        """The width that the widest table and the deepest nesting need."""
        cells, depth, least = 0, 0, LEAST_COLUMN
        for token in self.parsed:
            cells = 0 if token.type == "tr_open" else cells + (token.type in ("th_open", "td_open"))
            depth += token.nesting * _INDENTS.get(token.type.rpartition("_")[0], 0)
            least = max(least, cells * LEAST_COLUMN, depth + LEAST_COLUMN)
        return least


class _File(StringIO):
    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding


class Renderer:
    def __init__(self, *, colours: bool, encoding: str) -> None:
        self._colours = colours
        self._encoding = encoding

    def __call__(self, block: str, width: int) -> str:
        """Return the block as whole lines."""
        markdown = _AnswerMarkdown(block)
        if markdown.least_width > width:
            return f"{block}\n"
        file = _File(self._encoding)
        console = Console(
            file=file,
            width=width,
            color_system="standard" if self._colours else None,
            force_terminal=True,
            legacy_windows=False,
            theme=_THEME,
        )
        console.print(markdown, crop=False)
        lines = _EDGES.sub("", _TRAILING.sub(lambda found: found[0].replace(" ", ""), file.getvalue()))
        if _letters(unescape(block)) - _letters(_STYLES.sub("", lines)):
            return f"{block}\n"
        return f"{lines if self._encoding.lower().startswith('utf') else lines.translate(_ASCII)}\n"


def _letters(text: str) -> Counter[str]:
    return Counter(filter(str.isalnum, text))
