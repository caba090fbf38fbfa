"""Which lines are planned and which are refused, by rule and not by list."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.tools.permissions.readonly.conftest import Tree

from lamina.language.text import Text, render
from lamina.tools.permissions.readonly.plan import ReadOnlyPlan, plan_readonly, read_only_lists
from lamina.tools.permissions.readonly.tokenizer import CommandRefusal

pytestmark = pytest.mark.spec("G2")


def plan(line: str, tree: Tree) -> ReadOnlyPlan:
    found = plan_readonly(line, cwd=tree.memory, roots=tree.roots)
    assert isinstance(found, ReadOnlyPlan), found
    return found


def argv(line: str, tree: Tree) -> list[tuple[str, ...]]:
    return [stage.argv for pipeline in plan(line, tree).pipelines for stage in pipeline.stages]


def refused(line: str, tree: Tree) -> Text:
    found = plan_readonly(line, cwd=tree.memory, roots=tree.roots)
    assert isinstance(found, CommandRefusal), found
    return found.why


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("git log", "git 不是只读命令（cat, cut, "),
        ("git log", "）；这里不允许 git，因为仓库可以让它运行程序。"),
        ("touch a", "）；请使用其中之一。"),
        ("cat a > b", "命令在引号外含有2>/dev/null 和 2>&1 之外的重定向；"),
        ("cat 'a", "有一个单引号没有闭合。"),
        ("ls --wide", "ls --wide 不在只读选项的清单上；"),
        ("cat /etc/hosts", "/etc/hosts 在可读目录之外；"),
    ],
)
def test_a_refusal_is_shown_in_chinese(line: str, why: str, tree: Tree) -> None:
    assert why in render(refused(line, tree), "zh")


NOT_READ_ONLY = {
    "runs another program": [
        "xargs rm",
        "env ls",
        "sh -c ls",
        "bash x",
        "nohup ls",
        "time ls",
        "sudo ls",
        "command ls",
        "exec ls",
        "eval ls",
        "parallel ls",
        "python3 -c 1",
        "perl -e 1",
        "vim x",
        "man ls",
        "ssh host ls",
        "nice ls",
        "strace ls",
        "watch ls",
        "make",
        "npm test",
    ],
    "is a builtin or a keyword": [
        "cd logs",
        "export A=b",
        "declare -x A",
        "read A",
        "set -e",
        "source x",
        "trap x EXIT",
        "ulimit -c 0",
        "alias a=b",
        "exit",
        "if ls",
        "while ls",
        "for a in b",
        "! ls",
        "time",
        "coproc ls",
        "[ a ]",
        "test a",
        ": x",
        "printf a",
        "A=b ls",
        "A=b",
    ],
    "writes": [
        "tee x",
        "cp a b",
        "mv a b",
        "rm a",
        "touch a",
        "ln -s a b",
        "dd of=a",
        "install a b",
        "truncate -s0 a",
        "split a",
        "mkdir a",
    ],
    "is left out on purpose": [
        "git status",
        "git log",
        "sed -n 1p MEMORY.md",
        "awk 1 MEMORY.md",
        "rg x",
        "less MEMORY.md",
        "jq . x",
    ],
    "is not spelled plainly": [
        "'ls'",
        '"ls"',
        "l's'",
        "/bin/ls",
        "./ls",
        "LS",
        "ls.exe",
        "l?",
        "l*",
        "[l]s",
        "\\!",
        "ls:",
        "ｌｓ",
        "lѕ",
        "'' ls",
        "-l",
    ],
}


@pytest.mark.parametrize(
    "line", [pytest.param(line, id=f"{why}: {line}") for why, lines in NOT_READ_ONLY.items() for line in lines]
)
def test_a_command_that_is_not_on_the_list_is_refused_wherever_it_stands(line: str, tree: Tree) -> None:
    for whole in (line, f"ls; {line}", f"ls | {line}", f"ls && {line}", f"ls nothing || {line}", f"{line} | wc"):
        assert refused(whole, tree)


BAD_OPTIONS = {
    "find runs or writes": [
        r"find . -exec ls '{}' +",
        "find . '-exec' ls ';'",
        "find . -execdir ls '{}' ';'",
        "find . -ok ls ';'",
        "find . -okdir ls ';'",
        "find . -delete",
        "find . -fprint x",
        "find . -fprint0 x",
        "find . -fprintf x %p",
        "find . -fls x",
        "find -files0-from x",
    ],
    "find follows links or hides an action behind a value": [
        "find -L . -name x",
        "find -H .",
        "find . -follow",
        "find . -name -delete -delete",
        "find . -name",
        "find . -maxdepth x -print",
        "find . -type f,x",
        "find . -name a b",
        "find -D exec .",
        "find -O3 .",
        "find . -newer",
        "find . -newerXY x",
        "find . -size 1x",
        "find . -perm 'x y'",
        "find - -name a",
    ],
    "grep reads patterns or names from a file, follows links, or reads devices": [
        "grep -f role.md MEMORY.md",
        "grep -frole.md MEMORY.md",
        "grep --file=role.md MEMORY.md",
        "grep --file role.md MEMORY.md",
        "grep -R x .",
        "grep --dereference-recursive x .",
        "grep -nR x .",
        "grep -D read x .",
        "grep --devices=read x .",
        "grep -d recurse x .",
        "grep --null-data x MEMORY.md",
        "grep --exclude-from=role.md -r x .",
        "grep --fi=role.md MEMORY.md",
    ],
    "sort writes, runs a program or reads names": [
        "sort -o x MEMORY.md",
        "sort -ox MEMORY.md",
        "sort -ro x MEMORY.md",
        "sort --output=x MEMORY.md",
        "sort --output x MEMORY.md",
        "sort --o=x MEMORY.md",
        "sort --compress-program=x MEMORY.md",
        "sort --comp=x MEMORY.md",
        "sort -T . MEMORY.md",
        "sort --temporary-directory=. MEMORY.md",
        "sort --files0-from=x",
        "sort --random-source=x MEMORY.md",
        "sort -S 1% MEMORY.md",
        "sort -k '1 -o x' MEMORY.md",
    ],
    "never ends": [
        "tail -f MEMORY.md",
        "tail -F MEMORY.md",
        "tail -nf MEMORY.md",
        "tail --follow MEMORY.md",
        "tail --follow=name MEMORY.md",
        "tail --retry MEMORY.md",
        "tail --pid=1 x",
    ],
    "reads names from a file": ["wc --files0-from=MEMORY.md", "wc --files0-from=-", "wc --files0-f=x"],
    "writes its second operand": ["uniq MEMORY.md x", "uniq - x", "uniq -c MEMORY.md x", "uniq -- MEMORY.md x", "uniq *.md"],
    "follows links inside": ["ls -L", "ls -lH", "ls --dereference", "ls --dereference-command-line"],
    "is an abbreviation": [
        "ls --al",
        "ls --rec",
        "grep --recurs x .",
        "cat --numb MEMORY.md",
        "head --lin=1 MEMORY.md",
        "stat --form=%n MEMORY.md",
    ],
    "has a value it does not take": [
        "ls --color=x",
        "ls --all=x",
        "head -n x MEMORY.md",
        "head -n",
        "head -n 99999999999999 MEMORY.md",
        "grep -m -1 x MEMORY.md",
        "cut -f x MEMORY.md",
        "cut -d ab -f1 MEMORY.md",
        "grep -A",
        "grep --include",
        "tail -c 1kB MEMORY.md",
    ],
    "is unknown": [
        "ls -~",
        "ls -l-",
        "cat -z MEMORY.md",
        "pwd -x",
        "tr -x a b",
        "ls --hyperlink",
        "cat --help",
        "ls --version",
        "stat --cached=never MEMORY.md",
    ],
}


@pytest.mark.parametrize(
    "line", [pytest.param(line, id=f"{why}: {line}") for why, lines in BAD_OPTIONS.items() for line in lines]
)
def test_an_option_that_is_not_spelled_on_the_list_is_refused(line: str, tree: Tree) -> None:
    assert refused(line, tree).endswith(".")


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "/",
        "//etc/passwd",
        "../outside/secret.md",
        "..",
        "../..",
        "logs/../../outside",
        "./../outside/secret.md",
        "/proc/self/environ",
        "/proc",
        "/proc/self/cwd/MEMORY.md",
        "/proc/self/fd/0",
        "/dev/stdin",
        "/dev/null",
        "/dev/fd/0",
        "/dev/tcp/localhost/1",
        "/sys",
        "file:///etc/passwd",
        "http://localhost/x",
        "''",
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        "cat",
        "ls",
        "stat",
        "head -n 1",
        "tail",
        "wc -l",
        "find",
        "grep x",
        "grep -r x",
        "sort",
        "uniq",
        "cut -f1",
        "diff MEMORY.md",
        "du",
        "file",
        "tree",
    ],
)
def test_no_command_looks_outside_the_roots(command: str, path: str, tree: Tree) -> None:
    assert refused(f"{command} {path}", tree)


def test_a_sibling_whose_name_begins_like_a_root_is_outside(tree: Tree) -> None:
    (tree.memory.parent / "memory-2").mkdir()
    assert "outside" in refused("ls ../memory-2", tree)


def test_links_are_judged_by_where_they_lead(tree: Tree) -> None:
    (tree.memory / "out").symlink_to(tree.outside)
    (tree.memory / "secret").symlink_to("../outside/secret.md")
    (tree.memory / "in").symlink_to(tree.memory / "logs")
    (tree.memory / "round").symlink_to("round")
    (tree.memory / "self").symlink_to("/proc/self/cwd")
    for path in ("out", "out/secret.md", "secret", "in/../../outside", "round", "self", "self/x"):
        assert refused(f"cat {path}", tree)
    assert plan("cat in/2025/01/2025-01-02.md", tree).reads[0].path == str(tree.memory / "logs/2025/01/2025-01-02.md")


@pytest.mark.parametrize(
    "path", ["/proc/self/environ", "/proc/self/cwd/MEMORY.md", "/dev/stdin", "/sys/kernel", "/", "self", "self/MEMORY.md"]
)
def test_the_kernel_s_files_are_refused_even_where_everything_is_a_root(
    path: str, tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree.memory / "self").symlink_to("/proc/self/cwd")
    monkeypatch.chdir(tree.memory)
    for command in ("cat", "ls", "grep -r x", "find"):
        assert isinstance(plan_readonly(f"{command} {path}", cwd=tree.memory, roots=[Path("/")]), CommandRefusal)


def test_a_wildcard_does_not_look_into_a_directory_outside(tree: Tree) -> None:
    (tree.memory / "out").symlink_to(tree.outside)
    for line in ("cat out/*", "cat */secret.md", "ls ../*/secret.md", "ls /*", "ls /etc/*"):
        assert "outside" in refused(line, tree) or "file system root" in refused(line, tree)


def test_what_opening_could_block_or_start_is_refused(tree: Tree) -> None:
    os.mkfifo(tree.memory / "pipe.md")
    assert "could block" in refused("cat pipe.md", tree)
    assert "could block" in refused("grep x *.md", tree)
    assert plan("ls -l pipe.md", tree).reads


@pytest.mark.parametrize("line", ["ls", "find", "find -name x", "grep -r x", "pwd", "ls -R"])
def test_a_command_that_looks_here_needs_here_to_be_readable(line: str, tree: Tree) -> None:
    refusal = plan_readonly(line, cwd=tree.outside, roots=tree.roots)
    assert isinstance(refusal, CommandRefusal)
    assert isinstance(plan_readonly(line, cwd=tree.memory, roots=tree.roots), ReadOnlyPlan)


def test_no_roots_means_nothing_can_be_read(tree: Tree) -> None:
    assert isinstance(plan_readonly("ls", cwd=tree.memory, roots=[]), CommandRefusal)


def test_options_come_before_two_dashes_and_operands_behind(tree: Tree) -> None:
    assert argv("grep type: . -rn --include='*.md'", tree) == [("grep", "-rn", "--include=*.md", "--", "type:", ".")]
    assert argv("grep -n -- '-delete' MEMORY.md", tree) == [("grep", "-n", "--", "-delete", "MEMORY.md")]
    assert argv("grep -n -e a -e b MEMORY.md", tree) == [("grep", "-n", "-e", "a", "-e", "b", "--", "MEMORY.md")]
    assert argv("head -20 MEMORY.md", tree) == [("head", "-n", "20", "--", "MEMORY.md")]
    assert argv("grep -3 x MEMORY.md", tree) == [("grep", "-C", "3", "--", "x", "MEMORY.md")]
    assert argv("ls -la", tree) == [("ls", "-la")]


def test_files_named_like_options_are_passed_as_files(tree: Tree) -> None:
    for name in ("-exec", "--files0-from=x", "-rf", "+1", "(", "!", "@x"):
        (tree.outside / name).write_text("x")
    here = plan_readonly("wc -l *", cwd=tree.outside, roots=[tree.outside])
    assert isinstance(here, ReadOnlyPlan)
    assert here.pipelines[0].stages[0].argv == (
        "wc",
        "-l",
        "--",
        "./!",
        "./(",
        "./+1",
        "./--files0-from=x",
        "./-exec",
        "./-rf",
        "./@x",
        "secret.md",
    )
    found = plan_readonly("find * -name x", cwd=tree.outside, roots=[tree.outside])
    assert isinstance(found, ReadOnlyPlan)
    assert found.pipelines[0].stages[0].argv[1:8] == ("./!", "./(", "./+1", "./--files0-from=x", "./-exec", "./-rf", "./@x")


@pytest.mark.parametrize("name", ["a\nb.md", "a\x1b[2J.md", "a\u202eb.md", "a\u00a0b.md"])
def test_a_name_with_invisible_characters_ends_the_plan(name: str, tree: Tree) -> None:
    (tree.memory / name).write_text("x")
    assert "invisible" in refused("cat *.md", tree)
    assert plan("cat M*.md", tree).reads


def test_a_wildcard_outside_the_file_names_must_mean_itself(tree: Tree) -> None:
    assert argv("find . -name *.none", tree) == [("find", ".", "-name", "*.none")]
    assert argv("grep -r x . --include=*.md", tree)
    assert "single quotes" in refused("find . -name *.md", tree)
    assert "single quotes" in refused("grep M* MEMORY.md", tree)
    (tree.memory / "--include=a.md").write_text("x")
    assert "single quotes" in refused("grep -r x . --include=*.md", tree)


def test_reads_say_what_is_looked_at_and_how(tree: Tree) -> None:
    found = plan("grep -rn x logs | head -5; ls ../transcripts; stat role.md", tree).reads
    assert [(Path(place.path).name, place.contents, place.tree) for place in found] == [
        ("logs", True, True),
        ("transcripts", False, False),
        ("role.md", False, False),
    ]


def test_commands_that_only_read_their_input_look_at_nothing(tree: Tree) -> None:
    assert plan("tail -5", tree).reads == ()
    assert plan("cat - | sort | uniq -c | tr a b | cut -c1-3 | wc -l", tree).reads == ()


def test_everything_is_refused_on_windows(tree: Tree) -> None:
    assert isinstance(plan_readonly("ls", cwd=tree.memory, roots=tree.roots, windows=True), CommandRefusal)


def test_too_many_matches_refuse_instead_of_being_cut(tree: Tree) -> None:
    for number in range(1_001):
        (tree.outside / f"f{number}").touch()
    refusal = plan_readonly("cat f*", cwd=tree.outside, roots=[tree.outside])
    assert isinstance(refusal, CommandRefusal)
    assert "1,000" in refusal.why


WORDS = st.sampled_from(
    [
        *read_only_lists().commands,
        "-exec",
        "-delete",
        "-o",
        "--output=x",
        "-f",
        "-n",
        "5",
        ".",
        "..",
        "/",
        "/etc",
        "../outside",
        "*",
        "*.md",
        "'a b'",
        "x",
        "-",
        "--",
        "|",
        ";",
        "&&",
        "2>&1",
        "-r",
        "-la",
        "-name",
        "-type",
        "f",
        "!",
        r"\(",
        r"\)",
        "out",
        "MEMORY.md",
    ]
)


ACTIONS = {"find": {"-exec", "-delete"}, "sort": {"-o", "--output=x"}, "tree": {"-o"}, "date": {"-f", "5"}}


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS, min_size=1, max_size=9).map(" ".join))
def test_a_plan_names_only_listed_programs_and_looks_only_inside_the_roots(tree: Tree, line: str) -> None:
    found = plan_readonly(line, cwd=tree.memory, roots=tree.roots)
    if isinstance(found, CommandRefusal):
        assert found.why
        return
    for pipeline in found.pipelines:
        for stage in pipeline.stages:
            assert stage.argv[0] in read_only_lists().commands
            assert not ACTIONS.get(stage.argv[0], set()) & set(stage.argv[1:]) - set(_data(stage.argv))
    assert all(
        Path(place.path).is_relative_to(tree.memory) or Path(place.path).is_relative_to(tree.transcripts) for place in found.reads
    )


def _data(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The words that a program takes as they are: behind `--`, and values of options."""
    behind = argv[argv.index("--") + 1 :] if "--" in argv else ()
    return behind + tuple(word for before, word in pairwise(argv) if before in ("-name", "-type", "-n", "-e"))


def test_macos_has_a_stat_and_a_date_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    linux = read_only_lists.__wrapped__().commands
    monkeypatch.setattr("sys.platform", "darwin")
    macos = read_only_lists.__wrapped__().commands
    assert {name for name in linux if linux[name] != macos[name]} == {"date", "stat"}
    assert list(linux) == list(macos)
