"""Markdown of an answer: blocks are rendered as they complete, nothing is lost, and everything fits. All pure."""

from __future__ import annotations

from collections import Counter
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from lamina.cli.terminal.markdown import LONGEST, MarkdownStream
from lamina.cli.terminal.screen import Style

ANSWER = """\
# Plan
Some **bold** and `code` for List<String>,
on two lines.

- first
- second
  - nested
1. one

```python
def f():
    return "a long line of code that no terminal of forty columns can show"
```
| name | 大小 |
|---|---:|
| a | 12 |

> quoted
"""


def tagged(text: str, style: Style) -> str:
    return f"<{style}>{text}</{style}>" if text and style != "plain" else text


def shown(pieces: list[str], width: int = 40, encoding: str = "utf-8") -> str:
    stream = MarkdownStream(lambda text, _: text, colours=False, encoding=encoding)
    return "".join(stream.feed(piece, width) for piece in pieces) + stream.end(width)


@pytest.mark.spec("T7")
def test_headings_lists_code_and_tables_are_rendered() -> None:
    assert (
        shown([ANSWER])
        == """\
Plan
Some bold and code for List<String>,
on two lines.

 • first
 • second
    • nested
1. one

python
def f():
    return "a long line of code that no terminal of forty columns can show"
 name  大小
 ──────────
 a       12

▌ quoted
"""
    )


def test_without_utf_8_the_marks_are_ascii() -> None:
    text = shown([ANSWER.replace("大小", "size")], encoding="ascii")
    assert text.isascii()
    assert " * first" in text
    assert "|a    |  12|" in text


def test_a_block_is_written_when_it_is_complete_and_code_line_by_line() -> None:
    stream = MarkdownStream(tagged, colours=False, encoding="utf-8")
    assert stream.feed("One **para", 40) == ""
    assert stream.unfinished == "One **para"
    assert stream.feed("graph**\n\n```sh\nls", 40) == "One paragraph\n\n<dim>sh</dim>\n"
    assert stream.feed(" -l\n", 40) == "<cyan>ls -l</cyan>\n"
    assert stream.feed("```\n- item", 40) == ""
    assert stream.end(40) == " • item\n"


def test_code_inside_an_item_belongs_to_it() -> None:
    assert shown(["- a\n\n  ```\n  # no heading\n\n  - no item\n  ```\n- b\n"]) == " • a\n   # no heading\n\n   - no item\n • b\n"


def test_colours_are_those_of_the_terminal_and_no_link_is_clickable() -> None:
    stream = MarkdownStream(tagged, colours=True, encoding="utf-8")
    text = stream.feed("**b** `c` [x](http://evil.example/)\n", 60) + stream.end(60)
    assert text == "\x1b[1mb\x1b[0m \x1b[36mc\x1b[0m x (\x1b[4mhttp://evil.example/\x1b[0m)\n"


def test_a_block_that_is_too_long_to_parse_is_shown_as_it_is() -> None:
    words = "**word** " * LONGEST
    assert "".join(shown([words], 80).split()) == "".join(words.split())


@pytest.mark.parametrize(
    "text", ["[x]: http://y.example\n", "<div>\n<b>x</b>\n</div>\n", "- - - - - - a\n", f"{'|a' * 7}|\n{'|-' * 7}|\n"]
)
def test_a_block_that_would_lose_its_text_is_shown_as_written(text: str) -> None:
    assert shown([text], 16) == text


PIECES = [
    *"ab7中`*_#->|<&[]!\\= \n\n",
    "zq",
    "```",
    "~~~",
    "**",
    "1. ",
    "- ",
    "|-|",
    "<b>",
    "&amp;",
    "](u)",
    "[x]:y",
    "~~",
    "    ",
    "\n\n",
]


@given(
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
    st.integers(10, 60),
    st.data(),
)
def test_no_letter_is_lost_however_an_answer_is_cut(text: str, width: int, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    found = shown([text], width)
    assert shown([text[:at], text[at:]], width) == found, "pieces make no difference"
    assert not Counter(filter(str.isalpha, unescape(text))) - Counter(filter(str.isalpha, unescape(found)))


@given(
    st.text(st.sampled_from("ab中文字，。 "), max_size=200), st.sampled_from(["", "- ", "> ", "# ", "12. "]), st.integers(24, 50)
)
def test_no_line_is_wider_than_the_terminal(text: str, lead: str, width: int) -> None:
    assert all(get_cwidth(line) < width for line in shown([lead + text], width).split("\n"))
