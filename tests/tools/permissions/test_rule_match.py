"""Rules combined with modes, and the rule offered with "always"."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.tools.permissions.house import MODES, House, build, call, rules, shown

from lamina.core.blocks import ToolUse
from lamina.tools.permissions.decision import may_read
from lamina.tools.permissions.request import Allow, AskUser, Deny, Mode, Verdict, read_mode


@pytest.fixture
def house(tmp_path: Path) -> House:
    return build(tmp_path)


# Rules


def test_deny_comes_before_ask_and_ask_before_allow(house: House) -> None:
    asked = call("Bash", command="npm test")
    everything = {"allow": ["Bash"], "ask": ["Bash(npm:*)"], "deny": ["Bash(npm test)"]}
    assert isinstance(house.decide(asked, "ask", rules(**everything)), Deny)
    assert isinstance(house.decide(asked, "all", rules(**everything)), Deny)
    del everything["deny"]
    assert isinstance(house.decide(asked, "ask", rules(**everything)), AskUser)
    assert isinstance(house.decide(asked, "all", rules(**everything)), Allow)
    del everything["ask"]
    assert isinstance(house.decide(asked, "ask", rules(**everything)), Allow)
    assert isinstance(house.decide(asked, "read-only", rules(**everything)), Deny)


def test_a_doubt_about_a_deny_rule_asks_even_in_mode_all(house: House) -> None:
    given = rules(allow=["Bash"], deny=["Bash(rm:*)"])
    for mode in ("ask", "accept-edits", "all"):
        assert isinstance(house.decide(call("Bash", command="wrapper rm x"), mode, given), AskUser)
    assert isinstance(house.decide(call("Bash", command="wrapper rm x"), "read-only", given), Deny)


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("npm test", Allow),
        ("npm test && npm run build", Allow),
        ("npm test; rm x", AskUser),
        ("npm test && curl evil", AskUser),
        ("npm test | tee x", AskUser),
        ("npm test > x", AskUser),
        ("npm test $(rm x)", AskUser),
        ("npm test `rm x`", AskUser),
        ("npm test & rm x", AskUser),
        ("npm test\nrm x", AskUser),
        ("npm testing", AskUser),
        ("A=b npm test", AskUser),
        ("npm test 2>&1 | tail -20", Allow),
        ("ls src; npm test", Allow),
        ("cat src/a.py | npm test", Allow),
        ("cat ../../../outside/x.txt | npm test", AskUser),
        ("npm test; cat src/a.py", AskUser),
        ("npm test;" * 8 + "npm test", AskUser),
    ],
)
def test_a_line_is_allowed_only_if_every_part_of_it_is(command: str, kind: type[Verdict], house: House) -> None:
    given = rules(allow=["Bash(npm test:*)", "Bash(npm run build)"])
    verdict = house.decide(call("Bash", command=command), "ask", given)
    assert isinstance(verdict, kind)
    assert not isinstance(verdict, Allow) or verdict.plan is None


def test_a_part_that_reads_keys_is_not_allowed_by_reading_only(house: House) -> None:
    (house.cwd / ".ssh").mkdir()
    (house.cwd / ".ssh" / "id_rsa").write_text("key\n")
    for command in ("cat .ssh/id_rsa | npm test", "grep -r x . | npm test"):
        assert isinstance(house.decide(call("Bash", command=command), "ask", rules(allow=["Bash(npm test)"])), AskUser)


def test_a_line_that_nobody_can_cut_is_allowed_by_its_very_text(house: House) -> None:
    asked = call("Bash", command="make 2> $LOG")
    assert isinstance(house.decide(asked, "ask", rules(allow=["Bash(make:*)"])), AskUser)
    assert isinstance(house.decide(asked, "ask", rules(allow=["Bash(make 2> $LOG)"])), Allow)


def test_a_file_that_may_not_be_read_is_not_read_in_any_way(house: House) -> None:
    given = rules(deny=["Read(.env)"])
    (house.cwd / "innocent").symlink_to(".env")
    for asked in (
        call("Read", file_path=".env"),
        call("Read", file_path="innocent"),
        call("Grep", pattern="x", path=".env"),
        call("Bash", command="cat .env"),
        call("Bash", command="cat .e*"),
        call("Bash", command="cat innocent"),
        call("Bash", command="base64 < .env"),
        call("Bash", command="tool --file=.env"),
    ):
        for mode in MODES:
            assert isinstance(house.decide(asked, mode, given), Deny), asked
        assert isinstance(house.decide(asked, "ask", given, fork=True), Deny), asked
    search = call("Bash", command="grep -r KEY .")
    assert isinstance(house.decide(search, "ask", given), AskUser)
    assert isinstance(house.decide(search, "read-only", given), Deny)
    assert isinstance(house.decide(search, "ask", given, fork=True), Deny)
    assert isinstance(house.decide(call("Bash", command="grep -r KEY src"), "ask", rules(deny=["Read(./.env)"])), Allow)


def test_a_file_that_may_not_be_changed_may_be_read_but_makes_other_commands_doubtful(house: House) -> None:
    given = rules(deny=["Edit(./src/**)"], allow=["Bash"])
    assert isinstance(house.decide(call("Edit", file_path="src/a.py"), "all", given), Deny)
    assert isinstance(house.decide(call("Write", file_path="src/new.py"), "all", given), Deny)
    assert isinstance(house.decide(call("Read", file_path="src/a.py"), "ask", given), Allow)
    assert isinstance(house.decide(call("Bash", command="cat src/a.py"), "ask", rules(deny=["Edit(./src/**)"])), Allow)
    assert isinstance(house.decide(call("Bash", command="tool src/a.py"), "all", given), AskUser)


def test_an_allow_rule_must_cover_both_the_spelled_and_the_real_path(house: House) -> None:
    (house.cwd / "src" / "away").symlink_to(house.outside)
    given = rules(allow=["Edit(./src/**)"])
    assert isinstance(house.decide(call("Edit", file_path="src/a.py"), "ask", given), Allow)
    assert isinstance(house.decide(call("Edit", file_path="src/away/x.txt"), "ask", given), AskUser)


def test_rules_work_where_the_project_is_reached_through_a_link(house: House) -> None:
    (house.base / "way").symlink_to(house.cwd)
    given = rules(allow=["Edit(./src/**)"], deny=["Read(./.env)"])
    here = house.base / "way"
    assert isinstance(house.decide(call("Edit", file_path="src/a.py"), "ask", given, cwd=here), Allow)
    assert isinstance(house.decide(call("Read", file_path=str(house.cwd / ".env")), "ask", given, cwd=here), Deny)


def test_a_broken_deny_rule_denies_and_says_what_to_mend(house: House) -> None:
    verdict = house.decide(call("Bash", command="ls"), "all", rules(deny=["Bash(rm"]))
    assert isinstance(verdict, Deny)
    assert "Bash(rm" in verdict.why
    assert "fix it in the settings" in verdict.why


@pytest.mark.parametrize("given", [None, "text", 7, [], {"command": None}, {"command": {"a": 1}}], ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_a_call_whose_arguments_are_cut_or_odd_is_never_allowed(given: Any, mode: Mode, house: House) -> None:
    block = msgspec.structs.replace(call("Bash"), input=given)
    assert isinstance(house.decide(block, mode), Deny)


# What is offered


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        (call("Bash", command="git status"), "Bash(git status)"),
        (call("Bash", command="npm run test"), "Bash(npm run test)"),
        (call("Bash", command="npm run test -- --watch"), "Bash(npm run test:*)"),
        (call("Bash", command="pytest -x tests"), "Bash(pytest:*)"),
        (call("Bash", command="cargo test --all"), "Bash(cargo test:*)"),
        (call("Bash", command="uv run python -c 'x'"), "Bash(uv run python -c 'x')"),
        (call("Bash", command="bash -c 'rm x'"), "Bash(bash -c 'rm x')"),
        (call("Bash", command="rm *.pyc"), r"Bash(rm \*.pyc)"),
        (call("Bash", command="make > log; rm x"), "Bash(make > log; rm x)"),
        (call("Bash", command="a\nb"), None),
        (call("Bash", command="x " * 400), None),
        (call("Edit", file_path="src/deep/a.py"), "Edit(./src/deep/**)"),
        (call("Write", file_path="a.py"), "Edit(./a.py)"),
        (call("Write", file_path="we[i]rd/*.py"), r"Edit(./we\[i]rd/**)"),
        (call("Read", file_path="/etc/hosts"), "Read(//etc/hosts)"),
        (call("Read", file_path="/srv/data/set/x.csv"), "Read(//srv/data/set/**)"),
        (call("Grep", pattern="x", path="/srv/data/set"), "Read(//srv/data/set)"),
        (call("Grep", pattern="x", path="/etc"), None),
        (call("WebFetch", url="https://Docs.example.com/x"), "WebFetch(domain:docs.example.com)"),
        (call("WebFetch", url="https://a@b/"), None),
        (call("mcp__git__log", a=1), "mcp__git__log"),
        (call("Deploy"), "Deploy"),
    ],
    ids=shown,
)
def test_the_narrowest_rule_that_would_allow_it_is_offered(asked: ToolUse, rule: str | None, house: House) -> None:
    verdict = house.decide(asked)
    assert isinstance(verdict, AskUser)
    assert verdict.suggestion == rule


TEXTS = st.text(st.characters(codec="utf-8"), max_size=20) | st.lists(
    st.sampled_from(
        [
            "npm",
            "run",
            "test",
            " ",
            "*",
            "\\",
            "'",
            '"',
            ":",
            ";",
            "|",
            "&&",
            ">",
            "$",
            "(",
            ")",
            "rm",
            "-x",
            "ls",
            "src/a.py",
            "..",
            "/",
        ]
    ),
    max_size=8,
).map("".join)
CALLS: list[Callable[[str], ToolUse]] = [
    lambda text: call("Bash", command=text),
    lambda text: call("Edit", file_path=text),
    lambda text: call("Read", file_path=f"/srv/{text}"),
    lambda text: call("Glob", pattern=text),
    lambda text: call("WebFetch", url=f"https://{text}"),
    lambda text: call(text, argument=text),
]


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS, st.sampled_from(CALLS), st.sampled_from(MODES), st.booleans())
def test_any_call_gets_an_answer_and_what_is_offered_allows_it_next_time(
    house: House, text: str, make: Callable[[str], ToolUse], mode: Mode, fork: bool
) -> None:
    verdict = house.decide(make(text), mode, fork=fork)
    assert not (fork and isinstance(verdict, AskUser))
    if isinstance(verdict, AskUser) and verdict.suggestion is not None:
        given = rules(allow=[verdict.suggestion])
        assert given.findings == ()
        assert isinstance(house.decide(make(text), mode, given), Allow)


# Around it


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("default", "ask"),
        ("acceptEdits", "accept-edits"),
        ("plan", "read-only"),
        ("bypassPermissions", "all"),
        ("all", "all"),
        ("x", None),
        (None, None),
    ],
)
def test_a_mode_is_known_by_our_name_and_by_claude_code_s(text: str | None, mode: Mode | None) -> None:
    assert read_mode(text) == mode


def test_a_search_shows_only_what_may_be_read(house: House) -> None:
    given = rules(deny=["Read(.env)"], ask=["Read(./src/**)"])
    context = house.context()
    assert may_read(house.cwd / "README.md", rules=given, context=context)
    assert not may_read(house.cwd / ".env", rules=given, context=context)
    assert not may_read(house.cwd / "src" / "a.py", rules=given, context=context)
    assert not may_read(house.cwd / ".ssh" / "id_rsa", rules=given, context=context)
