"""Patterns for paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.tools.globs import MAX_ALTERNATIVES, components, expand, matches


@pytest.mark.parametrize(
    ("pattern", "path", "answer"),
    [
        ("*.py", "a.py", True),
        ("*.py", "d/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "d/e/a.py", True),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/d/e/a.py", True),
        ("src/**/*.py", "lib/a.py", False),
        ("src/**", "src/d/a", True),
        ("**/test/**", "a/test/b", True),
        ("**/test/**", "a/tests/b", False),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("[ab].txt", "b.txt", True),
        ("[!ab].txt", "b.txt", False),
        ("*", ".hidden", True),
        ("./a/*", "a/b", True),
        ("A.py", "a.py", False),
    ],
)
def test_a_pattern_matches_what_it_means(pattern: str, path: str, answer: bool) -> None:
    assert matches(components(pattern), path.split("/")) == answer


@pytest.mark.parametrize(
    ("pattern", "patterns"),
    [
        ("*.py", ["*.py"]),
        ("*.{ts,tsx}", ["*.ts", "*.tsx"]),
        ("{a,b}/{c,d}", ["a/c", "a/d", "b/c", "b/d"]),
        ("{a,{b,c}}", ["a", "b", "c"]),
        ("{a", ["{a"]),
        ("a,b", ["a,b"]),
    ],
)
def test_braces_stand_for_alternatives(pattern: str, patterns: list[str]) -> None:
    assert sorted(expand(pattern)) == patterns


def test_braces_can_not_explode() -> None:
    assert len(expand("{a,b}" * 30)) <= MAX_ALTERNATIVES


@pytest.mark.parametrize(
    ("pattern", "path"),
    [("*a" * 40 + "b", "a" * 255), ("/".join(["**"] * 100) + "/x", "/".join("a" * 100)), ("**/a/" * 40, "/".join("a" * 100))],
)
def test_a_pattern_that_is_meant_to_take_forever_does_not(pattern: str, path: str) -> None:
    assert matches(components(pattern), path.split("/")) == (pattern == "**/a/" * 40)


@given(st.lists(st.sampled_from(["a", "b", "*", "**"]), max_size=5), st.lists(st.sampled_from("ab"), max_size=5))
def test_matching_is_what_trying_everything_finds(pattern: list[str], path: list[str]) -> None:
    def slowly(rest: list[str], names: list[str]) -> bool:
        if not rest:
            return not names
        if rest[0] == "**":
            return slowly(rest[1:], names) or (bool(names) and slowly(rest, names[1:]))
        return bool(names) and rest[0] in ("*", names[0]) and slowly(rest[1:], names[1:])

    assert matches(pattern, path) == slowly(pattern, path)
