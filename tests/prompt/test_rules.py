from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.prompt.rules import MOST_ENTRIES, RuleScope, ScopedRule, read_scope, rule_files, rules_for


@pytest.mark.parametrize(
    ("head", "globs"),
    [
        ("paths: src/*.ts", ["src/*.ts"]),
        ("paths: src/*.ts, '*.md'", ["src/*.ts", "*.md"]),
        ("paths: 'src/*.ts, lib/*.{c,h}'", ["src/*.ts", "lib/*.{c,h}"]),
        ("paths: **/*.ts", ["**/*.ts"]),
        ("paths: **/*.ts, **/*.tsx  # both", ["**/*.ts", "**/*.tsx"]),
        ("paths: {src,lib}/**", ["{src,lib}/**"]),
        ("paths:\n  - **/*.ts\n  - 'a'\n- b", None),
        ("paths:\n  - **/*.ts\n  - 'a'\n  - it's/*", ["**/*.ts", "a", "it's/*"]),
        ("paths:\n- *.it's", ["*.it's"]),
        ('paths: ["a", "b"]', ["a", "b"]),
        ("paths:", []),
        ("paths: []", []),
        ("description: x", []),
    ],
)
def test_globs_are_read_as_people_write_them(head: str, globs: list[str] | None) -> None:
    text = f"---\n{head}\n---\nBody"
    scope = read_scope(text)
    if globs is None:
        assert (scope.text, scope.globs) == (text, ())
        assert scope.problem is not None
    else:
        assert scope == RuleScope("Body", tuple(globs), None)


@pytest.mark.parametrize("head", ["paths: [{a: b}]", "paths: [[a]]", "paths:\n  a: b", "paths: &x a", "\tpaths: a"])
def test_globs_that_cannot_be_read_are_a_problem(head: str) -> None:
    scope = read_scope(f"---\n{head}\n---\nBody")
    assert scope.globs == ()
    assert scope.problem is not None


@pytest.mark.parametrize("text", ["Body", "---\nBody", ""])
def test_a_rule_without_front_matter_always_holds(text: str) -> None:
    scope = read_scope(text)
    assert (scope.text, scope.globs) == (text, ())


def test_rules_hold_for_files_that_fit_below_their_directory() -> None:
    api = ScopedRule(Path("/p/.claude/rules/api.md"), "project", Path("/p"), ("src/api/**", "*.md"))
    sub = ScopedRule(Path("/p/sub/.claude/rules/x.md"), "project", Path("/p/sub"), ("*.md",))
    assert rules_for([api, sub], Path("/p/src/api/a/b.ts")) == (api,)
    assert rules_for([api, sub], Path("/p/a.md")) == (api,)
    assert rules_for([api, sub], Path("/p/sub/a.md")) == (sub,)
    assert rules_for([api, sub], Path("/q/a.md")) == ()


@pytest.mark.spec("I1")
def test_rules_are_sorted_by_their_path(tmp_path: Path) -> None:
    for name in ("b.md", "a/z.md", "a.md", "c/d/e.md", "A.md", "x.txt", ".hidden/h.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    names = [path.relative_to(tmp_path).as_posix() for path in rule_files(tmp_path)]
    assert names == ["A.md", "a.md", "a/z.md", "b.md", "c/d/e.md"]


def test_a_circle_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.md").write_text("x")
    (tmp_path / "a" / "again").symlink_to(tmp_path)
    assert [path.name for path in rule_files(tmp_path)] == ["x.md"]


def test_a_directory_that_is_none_or_cannot_be_listed_has_no_rules(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert rule_files(tmp_path / "none") == []
    assert rule_files(tmp_path / "file") == []


def test_a_huge_directory_is_looked_at_in_part(tmp_path: Path) -> None:
    for number in range(MOST_ENTRIES + 5):
        os.link(_one(tmp_path), tmp_path / "rules" / f"{number:05}.md")
    assert len(rule_files(tmp_path / "rules")) == MOST_ENTRIES


def _one(tmp_path: Path) -> Path:
    (tmp_path / "rules").mkdir(exist_ok=True)
    one = tmp_path / "one.md"
    one.touch()
    return one
