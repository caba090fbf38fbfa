"""docs/testing.md: its example runs, and every call and header it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lamina.core.cache import BREAK_HEADER, CACHE_EDITS_BETA, FORK_HEADER, SESSION_HEADER
from lamina.testing import MessagesServer

pytest_plugins = ["pytester", "lamina.testing.plugin"]


@pytest.fixture
def page(root: Path) -> str:
    return (root / "docs" / "testing.md").read_text(encoding="utf-8")


def test_the_example_runs(page: str, pytester: pytest.Pytester) -> None:
    example, *_ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    pytester.makepyfile(test_agent=example)
    pytester.runpytest_inprocess("-p", "no:xdist", "-W", "error").assert_outcomes(passed=3)


def test_every_name_on_the_page_exists(page: str) -> None:
    server = MessagesServer()
    for name in re.findall(r"messages_server\.(\w+)", page):
        assert hasattr(server, name), name
    for row in re.findall(r"^\| `(\w+)\(", page, re.MULTILINE):
        assert hasattr(server, row), row
    for header in (SESSION_HEADER, FORK_HEADER, BREAK_HEADER, CACHE_EDITS_BETA):
        assert header in page
