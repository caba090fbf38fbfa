"""The one function that decides: modes, roots, memory, forks, and names that deserve a question."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from tests.tools.permissions.house import MODES, House, build, call, rules, shown

from lamina.core.blocks import ToolUse
from lamina.tools.permissions.readonly.run import run_readonly
from lamina.tools.permissions.request import Allow, AskUser, Deny, Mode
from lamina.tools.permissions.rules import PermissionRules


@pytest.fixture
def house(tmp_path: Path) -> House:
    return build(tmp_path)


# Reading


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "asked",
    [
        call("Read", file_path="src/a.py"),
        call("Read", file_path="src/../src/a.py"),
        call("Grep", pattern="x"),
        call("Grep", pattern="x", path=None),
        call("Glob", pattern="**/*.py"),
        call("Glob", pattern="*.py", path="src"),
        call("Bash", command="ls -la src | head -3"),
        call("TodoWrite", todos=[]),
        call("Fetcher"),
    ],
    ids=shown,
)
def test_what_only_reads_inside_the_project_is_allowed_in_every_mode(asked: ToolUse, mode: Mode, house: House) -> None:
    assert isinstance(house.decide(asked, mode), Allow)


@pytest.mark.parametrize("mode", ["ask", "accept-edits", "read-only"])
def test_reading_outside_the_roots_asks(mode: Mode, house: House) -> None:
    inside = house.cwd / "link"
    inside.symlink_to(house.outside)
    for asked in (
        call("Read", file_path=str(house.outside / "x.txt")),
        call("Read", file_path="../../../outside/x.txt"),
        call("Read", file_path="link/x.txt"),
        call("Grep", pattern="x", path=str(house.outside)),
        call("Glob", pattern="*", path="link"),
        call("Glob", pattern=f"{house.outside}/*.txt"),
        call("Glob", pattern="../../../outside/*"),
        call("Glob", pattern="link/*"),
    ):
        assert isinstance(house.decide(asked, mode), AskUser), asked
        assert isinstance(house.decide(asked, mode, roots=(house.outside,)), Allow), asked


@pytest.mark.parametrize(
    "arguments",
    [
        {"pattern": "*/../../../outside/*"},
        {"pattern": "{/etc,src}/*"},
        {"pattern": "{src,../../..}/*"},
        {"pattern": "~/x"},
        {"path": "~"},
        {"path": ["src"]},
        {"path": "a\0b"},
    ],
    ids=str,
)
@pytest.mark.parametrize("fork", [True, False])
def test_a_search_whose_place_is_not_clear_is_denied(arguments: dict[str, Any], fork: bool, house: House) -> None:
    assert isinstance(house.decide(call("Glob", **{"pattern": "*", **arguments}), fork=fork), Deny)


@pytest.mark.parametrize(
    "name", [".ssh/id_ed25519", ".ssh/config", ".aws/credentials", ".netrc", "id_rsa", ".gnupg/x", ".SSH/id_rsa"]
)
def test_keys_are_not_read_unasked_even_inside_the_roots(name: str, house: House) -> None:
    asked = call("Read", file_path=str(house.cwd / name))
    assert isinstance(house.decide(asked), AskUser)
    assert isinstance(house.decide(asked, fork=True), Deny)
    (house.cwd / name).parent.mkdir(exist_ok=True)
    (house.cwd / name).write_text("key\n")
    assert isinstance(house.decide(call("Bash", command=f"cat {name}")), AskUser)
    assert isinstance(house.decide(call("Bash", command=f"cat {name}"), "read-only"), Deny)
    assert isinstance(house.decide(call("Bash", command=f"cat {name}"), fork=True), Deny)


@pytest.mark.spec("S11", "B4")
@pytest.mark.parametrize("name", [".history/journal-000001.jsonl", ".dreams/d/work/a.md", ".inbox/1.json", ".HISTORY/x.md"])
def test_the_bookkeeping_of_memory_is_not_read_unasked(name: str, house: House) -> None:
    path = house.memory / name
    path.parent.mkdir(parents=True)
    path.write_text("old\n")
    asked = call("Read", file_path=str(path))
    assert isinstance(house.decide(asked), Allow), "another program's directory of that name"
    (house.memory / ".memory.lock").touch()
    searched = call("Grep", pattern="x", path=str(path.parent))
    for each in (asked, searched, call("Bash", command=f"cat {path}"), call("Bash", command=f"grep -r x {house.memory}")):
        assert isinstance(house.decide(each), AskUser), each
        assert isinstance(house.decide(each, fork=True), Deny), each
    assert isinstance(house.decide(call("Grep", pattern="x", path=str(house.memory)), fork=True), Allow)
    assert isinstance(house.decide(asked, fork=True, memory_dir=path.parent), Allow), "the copy that a dream works on"


def test_a_search_through_a_tree_that_holds_keys_asks(house: House) -> None:
    assert isinstance(house.decide(call("Bash", command="grep -r x ."), fork=True), Allow)
    (house.cwd / ".ssh").mkdir()
    for asked in (call("Bash", command="grep -r x ."), call("Bash", command="grep -r x"), call("Grep", pattern="x")):
        assert isinstance(house.decide(asked), AskUser)
        assert isinstance(house.decide(asked, fork=True), Deny)
    assert isinstance(house.decide(call("Bash", command="grep -r x src"), fork=True), Allow)
    assert isinstance(house.decide(call("Bash", command="ls -a"), fork=True), Allow)


def test_a_process_s_environment_is_a_key_even_when_everything_is_a_root(house: House) -> None:
    for path in ("/proc/self/environ", "/dev/stdin", "/sys/x"):
        assert isinstance(house.decide(call("Read", file_path=path), roots=(Path("/"),)), AskUser)
        assert isinstance(house.decide(call("Read", file_path=path), roots=(Path("/"),), fork=True), Deny)
        assert isinstance(house.decide(call("Bash", command=f"cat {path}"), roots=(Path("/"),), fork=True), Deny)


# Changing


@pytest.mark.parametrize("tool", ["Edit", "Write"])
def test_each_mode_treats_a_change_in_its_own_way(tool: str, house: House) -> None:
    asked = call(tool, file_path=str(house.cwd / "src" / "a.py"))
    kinds = {mode: type(house.decide(asked, mode)) for mode in MODES}
    assert kinds == {"ask": AskUser, "accept-edits": Allow, "read-only": Deny, "all": Allow}
    away = call(tool, file_path=str(house.outside / "x.txt"))
    kinds = {mode: type(house.decide(away, mode)) for mode in MODES}
    assert kinds == {"ask": AskUser, "accept-edits": AskUser, "read-only": Deny, "all": Allow}


def test_a_link_out_of_the_project_is_outside_for_changes_too(house: House) -> None:
    (house.cwd / "x.txt").symlink_to(house.outside / "x.txt")
    (house.cwd / "dir").symlink_to(house.outside)
    for path in ("x.txt", "dir/new.txt"):
        assert isinstance(house.decide(call("Write", file_path=path), "accept-edits"), AskUser)


SENSITIVE = [
    ".git/config",
    ".git/hooks/pre-commit",
    ".GIT/config",
    ".git./config",
    "git~1/config",
    "sub/.git/config",
    ".bashrc",
    ".zshenv",
    ".profile",
    ".ssh/authorized_keys",
    "id_rsa",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".lamina/settings.json",
    ".claude/agents/a.md",
    ".env",
    ".env.local",
    "sub/.env",
    ".ENV",
    ".envrc",
    ".vscode/tasks.json",
    ".mcp.json",
    ".gitconfig",
    ".npmrc",
    "a\u200b.py",
    ".g\u200bit/config",
]


@pytest.mark.parametrize("name", SENSITIVE)
def test_names_that_deserve_a_question_ask_before_they_exist_and_whatever_a_rule_says(name: str, house: House) -> None:
    asked = call("Write", file_path=str(house.cwd / name))
    for generous in (PermissionRules(), rules(allow=["Edit", "Edit(**)", "Write"])):
        verdict = house.decide(asked, "accept-edits", generous)
        assert isinstance(verdict, AskUser)
        assert verdict.suggestion is None
        assert isinstance(house.decide(asked, "accept-edits", generous, fork=True), Deny)
    assert isinstance(house.decide(asked, "all"), Allow)


def test_a_plain_name_that_leads_to_a_sensitive_one_deserves_the_question_too(house: House) -> None:
    (house.cwd / ".git" / "hooks").mkdir(parents=True)
    (house.cwd / "hooks").symlink_to(".git/hooks")
    assert isinstance(house.decide(call("Write", file_path="hooks/pre-commit"), "accept-edits"), AskUser)


def test_lamina_s_own_files_ask_whatever_the_directory_is_called(house: House) -> None:
    own = house.base / "data"
    own.mkdir()
    asked = call("Write", file_path=str(own / "projects" / "s.jsonl"))
    assert isinstance(house.decide(asked, "accept-edits", roots=(own,)), Allow)
    assert isinstance(house.decide(asked, "accept-edits", roots=(own,), lamina_home=own), AskUser)


# Memory


@pytest.mark.spec("X6", "G1")
@pytest.mark.parametrize("fork", [True, False])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["MEMORY.md", "new.md", "team/rule.md", "logs/2025/01/2025-01-02.md", "数据库.md"])
def test_memory_files_may_be_written_by_everyone_in_every_mode(name: str, mode: Mode, fork: bool, house: House) -> None:
    for tool in ("Edit", "Write"):
        assert isinstance(house.decide(call(tool, file_path=str(house.memory / name)), mode, fork=fork), Allow)


NOT_MEMORY = [
    "x.txt",
    "x",
    "x.md.txt",
    "x.MD",
    ".hidden.md",
    ".git/x.md",
    ".consolidate-lock",
    "../x.md",
    "team/../../x.md",
    "../memory-2/x.md",
    "a$b.md",
    "con.md",
    "x.md ",
    "memory.md",
    "a\u202eb.md",
    "%2e%2e/x.md",
    "x:y.md",
    "",
    ".",
    "a/b/c/d/e/f/g/h/i.md",
    "-x.md",
    "x~1.md",
]


@pytest.mark.spec("X6", "G1")
@pytest.mark.parametrize("name", NOT_MEMORY)
def test_nothing_else_near_memory_may_be_written_by_a_fork_nor_unasked(name: str, house: House) -> None:
    asked = call("Write", file_path=os.path.join(house.memory, name))
    assert isinstance(house.decide(asked, "all", fork=True), Deny)
    assert isinstance(house.decide(asked, "accept-edits"), AskUser | Deny)


@pytest.mark.spec("G1")
def test_links_hard_directories_and_files_in_the_way_are_no_memory(house: House) -> None:
    (house.memory / "link.md").symlink_to(house.outside / "x.txt")
    (house.memory / "dir").symlink_to(house.outside)
    (house.memory / "directory.md").mkdir()
    for name in ("link.md", "dir/x.md", "directory.md", "MEMORY.md/x.md"):
        assert isinstance(house.decide(call("Write", file_path=str(house.memory / name)), fork=True), Deny)


def test_a_relative_path_means_the_working_directory_and_not_memory(house: House) -> None:
    assert isinstance(house.decide(call("Write", file_path="new.md"), fork=True), Deny)
    assert isinstance(house.decide(call("Write", file_path="new.md"), fork=True, cwd=house.memory), Allow)


def test_without_a_memory_directory_a_fork_writes_nothing(house: House) -> None:
    assert isinstance(house.decide(call("Write", file_path=str(house.memory / "a.md")), fork=True, memory_dir=None), Deny)


@pytest.mark.spec("F2")
def test_deny_rules_hold_for_memory_too(house: House) -> None:
    asked = call("Write", file_path=str(house.memory / "a.md"))
    assert isinstance(house.decide(asked, "all", rules(deny=["Edit(~/.lamina/**)"])), Deny)
    assert isinstance(house.decide(asked, "ask", rules(ask=["Edit"])), Allow)
    assert isinstance(house.decide(asked, "ask", rules(ask=["Edit"]), fork=True), Deny)


# Forks


@pytest.mark.spec("X6")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "asked",
    [
        call("Edit", file_path="src/a.py"),
        call("Write", file_path="/etc/passwd"),
        call("NotebookEdit", notebook_path="a.ipynb"),
        call("MultiEdit", file_path="src/a.py"),
        call("Bash", command="touch x"),
        call("Bash", command="ls > x"),
        call("Bash", command="git status"),
        call("Bash", command="cat ../../../outside/x.txt"),
        call("Bash"),
        call("Bash", command=["ls"]),
        call("Read", file_path="../../../outside/x.txt"),
        call("Read"),
        call("Read", file_path=""),
        call("WebFetch", url="https://example.com"),
        call("Agent", prompt="x"),
        call("TodoWrite", todos=[]),
        call("Fetcher"),
        call("mcp__a__b"),
        call("Unknown"),
        call(""),
    ],
    ids=shown,
)
def test_everything_else_is_denied_to_a_fork_in_every_mode_and_by_every_rule(asked: ToolUse, mode: Mode, house: House) -> None:
    generous = rules(allow=["Bash", "Edit", "Read", "WebFetch", "Agent", "Fetcher", "mcp__a", "Unknown", "TodoWrite"])
    verdict = house.decide(asked, mode, generous, fork=True)
    assert isinstance(verdict, Deny)
    assert verdict.why.endswith(".")


@pytest.mark.spec("X6", "G2")
def test_a_fork_s_command_comes_with_the_plan_that_runs_instead_of_a_shell(house: House) -> None:
    verdict = house.decide(call("Bash", command="cat src/a.py"), fork=True)
    assert isinstance(verdict, Allow)
    assert verdict.plan is not None
    assert run_readonly(verdict.plan).stdout == b"a\n"


def test_a_read_only_command_comes_with_its_plan_in_every_mode_but_all(house: House) -> None:
    for mode in MODES:
        verdict = house.decide(call("Bash", command="ls"), mode)
        assert isinstance(verdict, Allow)
        assert (verdict.plan is not None) == (mode != "all")


def test_a_fork_for_one_file_may_edit_that_file_and_do_nothing_else(house: House) -> None:
    notes = house.base / "home" / ".lamina" / "notes.md"
    assert isinstance(house.decide(call("Edit", file_path=str(notes)), fork=True, only_edit=notes), Allow)
    for asked in (
        call("Write", file_path=str(notes)),
        call("Read", file_path=str(notes)),
        call("Edit", file_path=str(house.memory / "a.md")),
        call("Bash", command="ls"),
    ):
        assert isinstance(house.decide(asked, fork=True, only_edit=notes), Deny)
    notes.symlink_to(house.outside / "x.txt")
    assert isinstance(house.decide(call("Edit", file_path=str(notes)), fork=True, only_edit=notes), Deny)


def test_a_fork_is_never_the_reason_for_a_question(house: House) -> None:
    given = rules(ask=["Bash", "Read(.env)"], deny=["Bash(rm:*)"])
    for asked in (call("Bash", command="ls"), call("Read", file_path=".env"), call("Bash", command="tool rm x")):
        assert isinstance(house.decide(asked, "ask", given, fork=True), Deny)
