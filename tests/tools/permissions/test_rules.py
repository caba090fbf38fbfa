"""Rules as they stand in settings: what is read, what is broken, what each one matches."""

from __future__ import annotations

from pathlib import Path, PurePath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tools.permissions.house import rules

from lamina.tools.permissions.patterns import Bases, PathPattern, covers, quoted, read_pattern
from lamina.tools.permissions.readonly.tokenizer import CommandRefusal, split_command
from lamina.tools.permissions.request import CallRequest, host_of
from lamina.tools.permissions.rules import allowing, holding
from lamina.tools.permissions.shell_rules import ShellPattern, allows, holds_back, is_exactly, read_shell

BASES: Bases = {
    "cwd": (PurePath("/w/app"),),
    "settings": (PurePath("/w"),),
    "disk": (PurePath("/"),),
    "home": (PurePath("/home/u"),),
}


def pattern(text: str) -> PathPattern:
    found = read_pattern(text)
    assert isinstance(found, PathPattern), found
    return found


def shell(text: str) -> ShellPattern:
    found = read_shell(text)
    assert isinstance(found, ShellPattern), found
    return found


# Paths


@pytest.mark.parametrize(
    ("text", "matching", "others"),
    [
        ("./src/**", ["/w/app/src/a.py", "/w/app/src/b/c.py"], ["/w/app/src", "/w/app/srcs/a", "/w/src/a", "/w/app/x/src/a"]),
        ("src/a.py", ["/w/app/src/a.py"], ["/w/app/x/src/a.py", "/w/app/src/a.pyc"]),
        ("src", ["/w/app/src", "/w/app/src/a", "/w/app/x/src/y"], ["/w/app/srcs", "/w/src", "/home/src"]),
        (".env", ["/w/app/.env", "/w/app/x/.env", "/w/app/.env/x"], ["/w/app/.envrc", "/w/.env"]),
        ("*.py", ["/w/app/a.py", "/w/app/x/y.py"], ["/w/app/a.pyc", "/w/a.py"]),
        ("./*.py", ["/w/app/a.py"], ["/w/app/x/y.py"]),
        ("/docs/*.md", ["/w/docs/a.md"], ["/docs/a.md", "/w/app/docs/a.md", "/w/docs/x/a.md"]),
        ("//etc/hosts", ["/etc/hosts"], ["/w/etc/hosts", "/etc/hosts2"]),
        ("//w/**/x", ["/w/x", "/w/a/x", "/w/a/b/x/y"], ["/w/a/y"]),
        ("~/notes/", ["/home/u/notes", "/home/u/notes/a"], ["/home/u/x/notes", "/w/app/notes"]),
        ("**", ["/w/app/a", "/w/app/a/b"], ["/w/app", "/w/a"]),
        ("**/a", ["/w/app/a", "/w/app/x/a"], ["/w/app/b"]),
        ("a/**/b", ["/w/app/a/b", "/w/app/a/x/y/b"], ["/w/app/a/bb"]),
        ("./[ab]?.py", ["/w/app/ax.py"], ["/w/app/cx.py", "/w/app/a.py"]),
        ("./[^a].py", ["/w/app/b.py"], ["/w/app/a.py"]),
        (r"./\*.py", ["/w/app/*.py"], ["/w/app/a.py"]),
        ("./**/**/**/**/**/**/**/**/x", ["/w/app/a/b/c/d/e/x"], ["/w/app/" + "a/" * 60 + "b"]),
        ("./" + "*a" * 30, ["/w/app/" + "a" * 40], ["/w/app/" + "a" * 200 + "b"]),
    ],
)
def test_a_path_pattern_covers_what_gitignore_would(text: str, matching: list[str], others: list[str]) -> None:
    assert [path for path in matching if not covers(pattern(text), PurePath(path), BASES)] == []
    assert [path for path in others if covers(pattern(text), PurePath(path), BASES)] == []


@pytest.mark.parametrize("text", ["", "/", "//", "~/", "./", ".", "../x", "a/../b", "!x", "~other/x", "~"])
def test_a_path_pattern_that_means_nothing_safe_is_not_read(text: str) -> None:
    assert isinstance(read_pattern(text), str)


def test_a_pattern_that_holds_back_matches_in_either_case_and_from_the_root_of_the_disk() -> None:
    assert covers(pattern("/etc/**"), PurePath("/etc/passwd"), BASES, loosely=True)
    assert not covers(pattern("/etc/**"), PurePath("/etc/passwd"), BASES)
    assert covers(pattern("./Secret"), PurePath("/w/app/sEcReT/x"), BASES, loosely=True)
    assert covers(pattern("./secret"), PurePath("/W/App/secret"), BASES, loosely=True)
    assert not covers(pattern("./Secret"), PurePath("/w/app/secret"), BASES)
    assert covers(pattern("./cafe\u0301"), PurePath("/w/app/caf\u00e9"), BASES)


@given(
    st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1).filter(
        lambda name: name not in (".", "..")
    )
)
def test_a_quoted_name_matches_itself_and_nothing_else(name: str) -> None:
    found = pattern(f"./{quoted(name)}")
    assert covers(found, PurePath("/w/app") / name, BASES)
    assert not covers(found, PurePath("/w/app") / f"{name}x", BASES)


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_pattern_raises(text: str, path: str) -> None:
    found = read_pattern(text)
    if isinstance(found, PathPattern):
        covers(found, PurePath("/w/app") / path.replace("\0", ""), BASES, loosely=True)


# Commands


@pytest.mark.parametrize(
    ("text", "matching", "others"),
    [
        ("npm run test", ["npm run test", "npm  run 'test'"], ["npm run test x", "npm run", "'npm run test'", "npm run tests"]),
        ("npm run test:*", ["npm run test", "npm run test --watch x"], ["npm run tests", "npm run", "npm 'run test'"]),
        ("npm run test *", ["npm run test", "npm run test x"], ["npm run tests"]),
        ("ls*", ["ls", "lsof", "ls -l"], ["l"]),
        ("git * main", ["git push main", "git push origin main"], ["git main", "git push main2"]),
        ("* install", ["npm install", "pip x install"], ["install", "npm install x"]),
        ("curl https://a.example/:*", ["curl https://a.example/x", "curl https://a.example/"], ["curl https://a.example.evil/"]),
        ("git commit -m 'a b'", ['git commit -m "a b"', "git commit -m 'a b'"], ["git commit -m a b"]),
        (r"ls \*.md", ["ls *.md"], ["ls '*.md'", "ls a.md"]),
        ("a*" * 20 + "b", ["a" * 20 + "b"], ["a" * 300]),
    ],
)
def test_an_allowing_command_rule_matches_word_by_word(text: str, matching: list[str], others: list[str]) -> None:
    def matches(line: str) -> bool:
        parts = split_command(line)
        assert not isinstance(parts, CommandRefusal)
        return allows(shell(text), parts[0])

    assert [line for line in matching if not matches(line)] == []
    assert [line for line in others if matches(line)] == []


@pytest.mark.parametrize("line", ["x > y", "x $(y)", "a; b > c", "echo 'x\ty'"])
def test_a_line_that_nobody_can_cut_is_matched_by_exactly_itself(line: str) -> None:
    assert is_exactly(shell(line), line)
    assert is_exactly(shell(line), f" {line} ")
    assert not is_exactly(shell(line), f"{line} z")
    assert not is_exactly(shell(f"{line}:*"), line)


SURE = [
    "rm x",
    "rm",
    "  rm   -rf x",
    "ls; rm x",
    "ls && rm x",
    "ls | rm",
    "ls || rm x",
    "'rm' x",
    'r"m" x',
    "/bin/rm x",
    "./rm x",
    "RM x",
    "A=b rm x",
    "A=b C=d rm x",
    "sudo rm x",
    "sudo -u root rm x",
    "env A=b rm x",
    "timeout 5 rm x",
    "xargs rm",
    "find . -name y | xargs -0 rm -f",
    "find . -exec rm x ';'",
    "nohup nice rm x",
    "bash -c 'rm x'",
    'sh -c "ls; rm x"',
    "eval 'rm x'",
    "ssh host 'rm x'",
    "command rm x",
    "exec rm x",
    "time rm x",
    "! rm x",
    "$(rm x)",
    "echo $(rm x)",
    "`rm x`",
    "ls > y; rm x",
    "ls & rm x",
    "ls\nrm x",
    "(rm x)",
    "{ rm x; }",
    "if true; then rm x; fi",
    "x=$(ls) && rm x",
    "ls |& rm x",
    "for f in *; do rm $f; done",
    "\\rm x",
    "r\\m x",
    "ls; " * 60 + "rm x",
]
POSSIBLE = ["wrapper rm x", "git rm x", "make rm", "some-tool --then 'rm x'", "python3 -c 'import os; rm x'"]
OTHERS = ["ls", "rmdir x", "grep rm x", "echo rm", "cat rm", "ls rm.txt", "farm x", "npm run alarm"]


@pytest.mark.parametrize("line", SURE)
def test_a_forbidding_command_rule_finds_every_way_to_run_it(line: str) -> None:
    assert holds_back(shell("rm:*"), line) == "yes"
    assert holds_back(shell("rm *"), line) == "yes"


@pytest.mark.parametrize("line", POSSIBLE)
def test_what_an_unknown_program_may_run_is_doubtful(line: str) -> None:
    assert holds_back(shell("rm:*"), line) == "maybe"


@pytest.mark.parametrize("line", OTHERS)
def test_what_only_looks_similar_is_not_held_back(line: str) -> None:
    assert holds_back(shell("rm:*"), line) == "no"


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_command_rule_raises(text: str, line: str) -> None:
    found = read_shell(text)
    if isinstance(found, ShellPattern):
        holds_back(found, line)
        is_exactly(found, line)


# Whole rules


def test_a_rule_is_a_tool_or_a_tool_with_a_specifier() -> None:
    found = rules(
        allow=[
            "Bash",
            "Bash(*)",
            "Read(./a/**)",
            "Edit",
            "WebFetch(domain:example.com)",
            "mcp__git",
            "mcp__git__log",
            "Agent(Explore)",
        ]
    )
    assert found.findings == ()
    assert [(rule.tool, rule.specifier is None) for rule in found.allow] == [
        ("Bash", True),
        ("Bash", True),
        ("Read", False),
        ("Edit", True),
        ("WebFetch", False),
        ("mcp__git", True),
        ("mcp__git__log", True),
        ("Agent", False),
    ]


BROKEN = [
    "Bash(",
    "Bash)",
    "Bash()",
    "Bash( )",
    "Bash(:*)",
    "Bash(ls",
    "Read(!x)",
    "Read(../x)",
    "Edit(/)",
    "WebFetch(example.com)",
    "WebFetch(domain:)",
    "WebFetch(domain:a b)",
    "WebSearch(x)",
    "mcp__git__log(x)",
    "TodoWrite(x)",
    "Bash[ls]",
    "Bash ls",
]


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_rule_is_a_finding_and_closes_what_it_should_close(text: str) -> None:
    found = rules(allow=[text], ask=[text], deny=[text])
    assert [finding.key for finding in found.findings] == ["permissions.allow", "permissions.ask", "permissions.deny"]
    assert all(finding.text.startswith('Rule "') and finding.text.endswith(".") for finding in found.findings)
    assert found.allow == ()
    tool = found.deny[0].tool
    assert text.startswith(tool)
    assert holding(found.deny, CallRequest(tool, {}, command="anything" if tool == "Bash" else None), BASES)[0] == "yes"
    assert holding(found.ask, CallRequest(tool, {}, command="anything" if tool == "Bash" else None), BASES)[0] == "yes"
    assert holding(found.deny, CallRequest("SomethingElse", {}), BASES)[0] == "no"


@pytest.mark.parametrize("text", ["(", "", "   ", "()", "7x", "«Bash»", "(Bash)"])
def test_a_deny_rule_of_which_not_even_the_tool_can_be_read_denies_everything(text: str) -> None:
    found = rules(deny=[text], allow=["Bash"])
    assert "every call is denied" in found.findings[0].text
    for tool in ("Bash", "Read", "mcp__a__b"):
        assert holding(found.deny, CallRequest(tool, {}), BASES)[0] == "yes"


@pytest.mark.parametrize("text", ["*", "Ba*", "mcp__*", "*(x)"])
def test_an_allow_rule_may_not_name_tools_by_wildcard(text: str) -> None:
    found = rules(allow=[text])
    assert found.allow == ()
    assert "wildcard" in found.findings[0].text


def test_rules_that_hold_back_may_name_tools_by_wildcard_and_in_any_case() -> None:
    found = rules(deny=["mcp__*", "bash(rm:*)", "read(.env)"])
    assert found.findings == ()
    assert holding(found.deny, CallRequest("mcp__a__b", {}), BASES)[0] == "yes"
    assert holding(found.deny, CallRequest("Bash", {}, command="rm x"), BASES)[0] == "yes"
    assert holding(found.deny, CallRequest("Grep", {}, paths=(Path("/w/app/.env"),)), BASES)[0] == "yes"


@pytest.mark.parametrize(
    ("rule", "tools", "others"),
    [
        ("mcp__git", ["mcp__git__log", "mcp__git__a__b"], ["mcp__github__log", "Bash"]),
        ("mcp__git__*", ["mcp__git__log"], ["mcp__github__log"]),
        ("mcp__git__get_*", ["mcp__git__get_log"], ["mcp__git__set_log"]),
        ("mcp__git__log", ["mcp__git__log"], ["mcp__git__logs", "mcp__git__log__all"]),
        ("Edit", ["Edit", "Write", "NotebookEdit"], ["Read", "Bash"]),
        ("Write", ["Write"], ["Edit"]),
        ("Read", ["Read", "Grep", "Glob"], ["Edit", "Bash"]),
    ],
)
def test_a_rule_speaks_of_the_tools_it_covers(rule: str, tools: list[str], others: list[str]) -> None:
    found = rules(allow=[rule]).allow
    assert [tool for tool in tools if allowing(found, CallRequest(tool, {}), BASES) is None] == []
    assert [tool for tool in others if allowing(found, CallRequest(tool, {}), BASES) is not None] == []


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://example.com/a?b#c", "example.com"),
        ("http://Example.COM:8080", "example.com"),
        ("https://example.com./", "example.com"),
        ("https://example.com@evil.example/", None),
        ("https://evil.example\\@example.com/", None),
        ("https://example.com%2eevil.example/", None),
        ("https://exämple.com/", None),
        ("https://example.com /", None),
        ("ftp://example.com/", None),
        ("//example.com/", None),
        ("javascript:alert(1)", None),
        (7, None),
    ],
)
def test_the_host_of_an_address_is_read_only_where_everyone_reads_the_same(url: object, host: str | None) -> None:
    assert host_of(url) == host


@pytest.mark.parametrize(
    ("rule", "host", "allowed", "denied"),
    [
        ("WebFetch(domain:example.com)", "example.com", True, True),
        ("WebFetch(domain:example.com)", "www.example.com", False, True),
        ("WebFetch(domain:*.example.com)", "www.example.com", True, True),
        ("WebFetch(domain:*.example.com)", "example.com", False, True),
        ("WebFetch(domain:example.com)", "notexample.com", False, False),
        ("WebFetch(domain:example.com)", None, False, True),
    ],
)
def test_a_domain_rule_allows_narrowly_and_forbids_widely(rule: str, host: str | None, allowed: bool, denied: bool) -> None:
    asked = CallRequest("WebFetch", {}, host=host)
    assert (allowing(rules(allow=[rule]).allow, asked, BASES) is not None) is allowed
    assert (holding(rules(deny=[rule]).deny, asked, BASES)[0] == "yes") is denied


@given(st.lists(st.text(max_size=20) | st.sampled_from(["Bash(", "Read(**)", "Edit(/x)", "Bash(a:*)"]), max_size=5))
def test_no_list_of_rules_raises(texts: list[str]) -> None:
    found = rules(allow=texts, ask=texts, deny=texts)
    assert len(found.deny) == len(found.ask) == len(texts)
