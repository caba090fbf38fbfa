"""Grammar as data: expressions under headings, one alternative a line (language/patterns)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import lamina.language
from lamina.language.patterns import read_patterns

FILES = sorted(Path(lamina.language.__file__).parent.glob("*.txt"))


def test_there_are_files_to_check() -> None:
    assert {"connectives", "excluded_kinds", "memory_requests"} <= {path.stem for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_heading_is_an_expression(path: Path) -> None:
    text = path.read_text("utf-8")
    patterns = read_patterns(path.stem)
    assert list(patterns) == re.findall(r"^## (\w+)", text, re.MULTILINE)
    # A blank at the end of a line is invisible, and editors remove it: `[ ]` stands there.
    assert not re.search(r"[ \t]$", text, re.MULTILINE)
    assert not any("{" + name + "}" in pattern.pattern for name in patterns for pattern in patterns.values())


def test_alternatives_comments_flags_and_named_expressions() -> None:
    patterns = read_patterns("memory_requests")
    assert patterns["remember"].flags & re.IGNORECASE
    assert not patterns["polite"].flags & re.IGNORECASE
    assert patterns["order"].pattern in patterns["remember"].pattern
    assert patterns["forget_last"].pattern.count("|") > 1
    assert '"save" and "note"' not in patterns["order"].pattern
