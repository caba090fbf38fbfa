"""Markdown of an answer, rendered while it streams in.

Owns the split into blocks: a block is written once it is complete, and code line by line. `unfinished` holds the end of a block
that is still arriving. No word of an answer is lost: HTML is shown as text, and a line break stays a line break. rich is imported with the
first block, so that a chat starts without it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from .screen import MOST_BELOW, Style, fold_text

if TYPE_CHECKING:
    from .markdown_render import Renderer

_FENCE = re.compile(r"(?P<indent> *)(?P<mark>`{3,}|~{3,})(?P<info>[^`]*)")
_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)")
# A block longer than this is shown as it is: parsing it would hold up the answer. A longer line is broken.
LONGEST = 20_000


class _Fence(NamedTuple):
    mark: str
    nested: bool  # inside a list item, and rendered with it

    def closed_by(self, line: str) -> bool:
        text = line.strip()
        return text.startswith(self.mark) and not text.strip(self.mark[0])


class MarkdownStream:
    """Turns pieces of an answer into lines for the terminal."""

    def __init__(self, styled: Callable[[str, Style], str], *, colours: bool, encoding: str) -> None:
        self._styled = styled
        self._colours = colours
        self._encoding = encoding
        self._render: Renderer | None = None
        self._width = 0
        self._reset()

    def _reset(self) -> None:
        self._line = ""  # the current line, not yet ended
        self._block: list[str] = []  # lines of the current block
        self._fence: _Fence | None = None
        self._gap = False  # a blank line precedes the next block
        self._begun = False  # something of this answer was written

    @property
    def unfinished(self) -> str:
        """The end of what has arrived and is not written yet."""
        return "\n".join([*self._block[-MOST_BELOW:], self._line])

    def feed(self, text: str, width: int) -> str:
        """Add text and return what can be written now."""
        self._width = width - 1
        *ended, self._line = (self._line + text).split("\n")
        out = "".join(map(self._end_line, ended))
        if len(self._line) > LONGEST:
            out += self._end_line(self._line) + self._end_block()
            self._line = ""
        return out

    def end(self, width: int) -> str:
        """Finish the answer and return the rest of it."""
        self._width = width - 1
        rest = self._end_line(self._line) if self._line else ""
        rest += self._end_block()
        self._reset()
        return rest

    def _end_line(self, line: str) -> str:
        if self._fence is not None:
            return self._in_fence(line, self._fence)
        if not line.strip():
            return self._blank()
        in_item = bool(self._block) and bool(_ITEM.match(self._block[0]))
        indented = line.startswith(("  ", "\t"))
        if found := _FENCE.fullmatch(line):
            nested = in_item and indented
            self._fence = _Fence(found["mark"], nested)
            if nested:
                self._block.append(line)
                return ""
            label = self._styled(found["info"].strip(), "dim")
            return self._end_block() + (self._written(f"{label}\n") if label else "")
        if _HEADING.match(line) and not (in_item and indented):
            out = self._end_block()
            self._block.append(line)
            return out + self._end_block()
        starts = bool(_ITEM.match(line)) and not (in_item and indented)
        after_gap = in_item and self._block[-1] == "" and not indented
        out = self._end_block() if starts or after_gap else ""
        self._block.append(line)
        return out

    def _in_fence(self, line: str, fence: _Fence) -> str:
        if fence.closed_by(line):
            self._fence = None
            if fence.nested:
                self._block.append(line)
            return ""
        if fence.nested:
            self._block.append(line)
            return ""
        return self._written(f"{self._styled(line, 'cyan')}\n")

    def _blank(self) -> str:
        """A blank line ends every block but a list item, which may go on below it."""
        if self._block and _ITEM.match(self._block[0]):
            self._block.append("")
            return ""
        out = self._end_block()
        self._gap = True
        return out

    def _end_block(self) -> str:
        lines, self._block = self._block, []
        if not lines:
            return ""
        gap = lines[-1] == ""
        out = self._written(self._rendered("\n".join(lines).rstrip("\n")))
        self._gap = self._gap or gap
        return out

    def _written(self, text: str) -> str:
        gap = "\n" if self._gap and self._begun else ""
        self._gap, self._begun = False, True
        return gap + text

    def _rendered(self, block: str) -> str:
        if len(block) > LONGEST:
            return "".join(f"{line}\n" for one in block.split("\n") for line in fold_text(one, self._width))
        if self._render is None:
            from .markdown_render import Renderer

            self._render = Renderer(colours=self._colours, encoding=self._encoding)
        return self._render(block, self._width)
