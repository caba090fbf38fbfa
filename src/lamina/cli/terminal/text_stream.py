"""Words of an answer as they come, broken between words and lightly coloured: headings, code, what is meant to be bold.

Nothing is added but line breaks and colours and nothing left out but the blank a line would end with, so what is copied from the
terminal is what was said. A word is held back until it is whole. Inside a fenced block lines are left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from rich.cells import cell_len

from .screen import Style

_MARKS = re.compile(r"(`+|\*\*)")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_HEADING = re.compile(r"#{1,6}\Z")


class TextStream:
    def __init__(self, styled: Callable[[str, Style], str]) -> None:
        self._styled = styled
        self._column = 0
        self._line = ""  # as far as it has come, without breaks of ours
        self._word = ""
        self._fenced = False
        self._heading = self._code = self._bold = False

    def feed(self, text: str, width: int) -> str:
        """What may be written now."""
        out: list[str] = []
        for char in text:
            if char == "\n":
                out += [self._flush(width), "\n"]
                self._newline()
            elif char == " ":
                out.append(self._flush(width))
                out.append(self._blank(width))
            elif not self._fenced and not char.isascii() and cell_len(char) > 1:
                # Scripts without blanks may be broken between any two characters.
                out.append(self._flush(width))
                self._word = char
                out.append(self._flush(width))
            else:
                self._word += char
        return "".join(out)

    def end(self, width: int) -> str:
        """The answer is whole: the last word, and the left edge again."""
        rest = self._flush(width)
        at_left = not self._column
        self._newline()
        self._fenced = False
        return rest if at_left else f"{rest}\n"

    def _blank(self, width: int) -> str:
        self._line += " "
        self._column += 1
        return " " if self._fenced or self._column < width else ""

    def _flush(self, width: int) -> str:
        word, self._word = self._word, ""
        if not word:
            return ""
        if not self._line and _HEADING.match(word):
            self._heading = True
        self._line += word
        wide = cell_len(word)
        broken = "\n" if not self._fenced and self._column and self._column + wide > width else ""
        self._column = wide if broken else self._column + wide
        return broken + self._coloured(word)

    def _coloured(self, word: str) -> str:
        if self._fenced or _FENCE.match(self._line):
            return self._styled(word, "cyan")
        out: list[str] = []
        for part in _MARKS.split(word):
            if part.startswith("`"):
                out.append(self._styled(part, "cyan"))
                self._code = not self._code
            elif part == "**" and not self._code:
                out.append(self._styled(part, "bold"))
                self._bold = not self._bold
            elif part:
                out.append(self._styled(part, "cyan" if self._code else "bold" if self._bold or self._heading else "plain"))
        return "".join(out)

    def _newline(self) -> None:
        """A mark that was not closed ends with its line."""
        if _FENCE.match(self._line):
            self._fenced = not self._fenced
        self._line, self._column = "", 0
        self._heading = self._code = self._bold = False
