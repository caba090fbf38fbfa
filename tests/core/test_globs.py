"""The glob engine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.globs import (
    BRACES_WITH_COMMA,
    MAX_ALTERNATIVES,
    compile_name,
    compile_path,
    expand_braces,
    match_path,
    quote_name,
    split_path,
)


def matches(pattern: str, path: str) -> bool:
    return match_path(compile_path(split_path(pattern)), path.split("/"))


@pytest.mark.parametrize(
    ("pattern", "name", "answer"),
    [
        ("", "", True),
        ("", "a", False),
        ("*", "", True),
        ("*", "a\nb", True),
        ("a*b*c", "a1b2c", True),
        ("a*b*c", "acb", False),
        ("?", "é", True),
        ("[!a-c]", "d", True),
        ("[!a-c]", "b", False),
        ("[]]", "]", True),
        ("[z-a]", "m", False),
        ("[a", "[a", True),
        ("A", "a", False),
    ],
)
def test_a_name_pattern_matches_a_whole_name(pattern: str, name: str, answer: bool) -> None:
    assert (compile_name(pattern).match(name) is not None) == answer


def test_a_name_pattern_can_ignore_case() -> None:
    assert compile_name("*.MD", ignore_case=True).match("a.md")


@given(st.text("ab*?[]!-"), st.text("ab*?[]!-"))
def test_a_quoted_name_matches_itself_alone(text: str, other: str) -> None:
    quoted = compile_name(quote_name(text))
    assert quoted.match(text)
    assert (quoted.match(other) is not None) == (text == other)


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
    assert matches(pattern, path) == answer


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
    assert sorted(expand_braces(pattern)) == patterns


@pytest.mark.parametrize(
    ("pattern", "patterns"),
    [
        ("{a}", ["{a}"]),
        ("{a}{b,c}", ["{a}b", "{a}c"]),
        ("{a,{b,c}}", ["a", "b", "c"]),
        ("{a},b}", ["a}", "b"]),
        ("{a", ["{a"]),
    ],
)
def test_braces_may_need_a_comma(pattern: str, patterns: list[str]) -> None:
    assert sorted(expand_braces(pattern, BRACES_WITH_COMMA)) == patterns


def test_braces_can_not_explode() -> None:
    assert len(expand_braces("{a,b}" * 30)) <= MAX_ALTERNATIVES


@pytest.mark.parametrize(
    ("pattern", "path"),
    [("*a" * 40 + "b", "a" * 255), ("/".join(["**"] * 100) + "/x", "/".join("a" * 100)), ("**/a/" * 40, "/".join("a" * 100))],
)
def test_a_pattern_that_is_meant_to_take_forever_does_not(pattern: str, path: str) -> None:
    assert matches(pattern, path) == (pattern == "**/a/" * 40)


@given(st.lists(st.sampled_from(["a", "b", "*", "**"]), max_size=5), st.lists(st.sampled_from("ab"), max_size=5))
def test_matching_is_what_trying_everything_finds(pattern: list[str], path: list[str]) -> None:
    def slowly(rest: list[str], names: list[str]) -> bool:
        if not rest:
            return not names
        if rest[0] == "**":
            return slowly(rest[1:], names) or (bool(names) and slowly(rest, names[1:]))
        return bool(names) and rest[0] in ("*", names[0]) and slowly(rest[1:], names[1:])

    assert match_path(compile_path(pattern), path) == slowly(pattern, path)
