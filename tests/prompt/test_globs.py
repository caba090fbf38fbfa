from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.globs import MAX_ALTERNATIVES
from lamina.prompt.rules import matches


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.md", "a.md"),
        ("*.md", ".md"),
        ("a?c", "abc"),
        ("[a-c]x", "bx"),
        ("[!a-c]x", "dx"),
        ("[]]", "]"),
        ("[b-a!c]", "!"),
        ("**", "a/b/c"),
        ("**/*.ts", "a.ts"),
        ("**/*.ts", "a/b/c.ts"),
        ("src/**", "src/a/b"),
        ("src/", "src/a/b"),
        ("./src/*", "src/a"),
        ("src/**/*.ts", "src/a.ts"),
        ("a/**/b/**/c", "a/x/b/y/b/c"),
        ("*.{ts,tsx}", "a.tsx"),
        ("{src,lib/{a,b}}/*.c", "lib/b/x.c"),
        ("a**b", "axxb"),
        ("**/vendor/**", "/p/vendor/x/CLAUDE.md"),
        ("/p/**/CLAUDE.md", "/p/a/CLAUDE.md"),
        (r"\*", "*"),
        ("[a", "[a"),
        ("{a", "{a"),
    ],
)
def test_what_fits(pattern: str, path: str) -> None:
    assert matches(pattern, path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.md", "a/b.md"),
        ("*.md", "a.mdx"),
        ("src/*", "src/a/b"),
        ("src/**/*.ts", "lib/a.ts"),
        ("a?c", "ac"),
        ("[a-c]x", "dx"),
        ("[!a-c]x", "ax"),
        ("[b-a!c]", "x"),
        ("*.{ts,tsx}", "a.js"),
        ("**/b", "a/c"),
        ("a", "A"),
        ("", "a"),
        (r"\*", "a"),
        ("x" * 5_000, "x" * 5_000),
    ],
)
def test_what_does_not_fit(pattern: str, path: str) -> None:
    assert not matches(pattern, path)


@given(st.text("ab*?", max_size=8), st.text("ab", max_size=8))
def test_names_fit_as_the_standard_library_says(pattern: str, name: str) -> None:
    if name and pattern not in ("", "**"):
        assert matches(pattern, name) == fnmatch.fnmatchcase(name, pattern)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 500, "a" * 250 + "b"),
        ("**/" * 300 + "x", "a/" * 300 + "y"),
        ("{a,b}" * 200, "a" * 200),
        ("{" * 500 + "," * 500, "a"),
    ],
)
def test_a_hostile_pattern_ends(pattern: str, path: str) -> None:
    assert matches(pattern, path) in (True, False)


def test_braces_beyond_the_limit_are_left_out() -> None:
    pattern = "{" + ",".join(f"n{number}" for number in range(MAX_ALTERNATIVES + 10)) + "}"
    assert matches(pattern, "n1")
    assert not matches(pattern, f"n{MAX_ALTERNATIVES + 5}")
