"""Running a plan gives what bash gives, and ends whatever happens."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.tools.permissions.readonly.conftest import Tree

from lamina.tools.permissions.readonly.plan import Pipeline, PlannedProgram, ReadOnlyPlan, plan_readonly
from lamina.tools.permissions.readonly.run import ReadOnlyResult, run_readonly

pytestmark = pytest.mark.spec("G2")

SAME = [
    "ls",
    "ls -la",
    "ls -1",
    "ls -a *.md",
    "ls -R",
    "ls nothing",
    "ls nothing 2>/dev/null",
    "ls 'two words' logs",
    "ls --color=never -l",
    "ls -l */",
    "ls .*.md",
    "cat MEMORY.md role.md",
    "cat -n MEMORY.md",
    "cat nothing",
    "cat logs",
    "cat 'two words/note.md'",
    "cat *.none",
    'cat two" "words/*.md',
    "head -2 MEMORY.md",
    "head -n 2 *.md",
    "head -n -2 MEMORY.md",
    "head -c 10 MEMORY.md",
    "head -qn1 *.md",
    "tail -3 ../transcripts/s1.jsonl",
    "tail -n +118 ../transcripts/s1.jsonl",
    "tail -c 20 ../transcripts/s1.jsonl",
    "wc MEMORY.md",
    "wc -l *.md",
    "wc -lc MEMORY.md",
    "stat -c '%n %s' MEMORY.md",
    "stat --format='%s %n' role.md",
    "stat -c %n *.md nothing",
    "find .",
    "find . -name '*.md' -type f",
    "find . -type f ! -name MEMORY.md",
    r"find . -type f \( -name '*.md' -o -name '*.txt' \)",
    "find . -name '*.md' -size +0 -mtime +1",
    "find . -maxdepth 1 -printf '%f %s\\n'",
    "find logs -newer MEMORY.md",
    "find . -newermt 2020-01-01 -name 'r*'",
    "find . -path './logs/*' -prune -o -name '*.md' -print",
    "find logs 'two words' -name '*.md' -print0",
    "grep -rn database .",
    "grep -rni 'database' . --include='*.md'",
    "grep -c '^- ' MEMORY.md",
    'grep -E "^type: (user|project)$" role.md',
    "grep -F '$HOME/.cache' MEMORY.md",
    "grep -rn 'foo\\|bar' .",
    'grep -rn "foo\\|bar" .',
    "grep -v '^#' MEMORY.md | head -n 2",
    'grep -n "it\'s" MEMORY.md',
    "grep -n -- '-delete' MEMORY.md",
    "grep -rn '数据库' .",
    "grep -l user *.md",
    "grep -o 'da[a-z]*' MEMORY.md | sort | uniq -c | sort -rn",
    "grep -A1 -B1 foo rules.md",
    "grep -2 foo rules.md",
    "grep -q user role.md && ls logs",
    "grep -q nothing role.md && ls logs",
    "grep -q nothing role.md || ls logs",
    "grep nothing role.md; ls logs",
    "ls nothing || ls nothing2 && ls logs",
    "ls logs && ls nothing || ls 'two words'",
    "ls nothing && ls logs; pwd",
    "ls nothing 2>&1 | wc -l",
    "ls nothing 2>/dev/null | wc -l",
    "cat nothing 2>&1",
    "cat MEMORY.md | cat - role.md",
    "cat",
    "wc -l",
    "cut -d: -f1 counts.txt",
    "sort counts.txt",
    "sort -t: -k2 -n counts.txt",
    "sort -u counts.txt | uniq",
    "cat counts.txt | tr a-z A-Z",
    "cat counts.txt | tr -d ':' | cut -c1-2",
    "pwd",
    "cat ../transcripts/s1.jsonl | head -1",
    "cat ../transcripts/s1.jsonl ../transcripts/s1.jsonl | head -c 100 | wc -c",
    "ls [MR]*.md",
    "ls [!MR]*.md",
    "ls r[a-u]*.md",
    "ls ?ole.md *.txt",
    "ls logs/*/*/*.md",
    "ls .hidden.md",
    'ls "*.md"',
    "ls -- MEMORY.md",
    "head MEMORY.md -n 1",
    "grep user -c role.md",
]


def bash(line: str, cwd: Path) -> ReadOnlyResult:
    done = subprocess.run(
        ["/bin/bash", "--norc", "--noprofile", "-c", line],
        cwd=cwd,
        env={"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return ReadOnlyResult(done.returncode, done.stdout, done.stderr)


def ours(line: str, tree: Tree) -> ReadOnlyResult:
    plan = plan_readonly(line, cwd=tree.memory, roots=tree.roots)
    assert isinstance(plan, ReadOnlyPlan), plan
    return run_readonly(plan)


@pytest.mark.parametrize("line", SAME)
def test_the_output_and_the_code_are_those_of_bash(line: str, tree: Tree) -> None:
    assert ours(line, tree) == bash(line, tree.memory)


PARTS = st.sampled_from(
    [
        "ls logs",
        "ls nothing",
        "grep -q user role.md",
        "grep -q none role.md",
        "cat counts.txt",
        "wc -l",
        "ls nothing 2>&1",
        "sort",
    ]
)
JOINTS = st.sampled_from([" | ", " && ", " || ", "; "])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(PARTS, JOINTS), min_size=1, max_size=6), PARTS)
def test_any_chain_of_commands_does_what_bash_does(tree: Tree, chain: list[tuple[str, str]], last: str) -> None:
    line = "".join(map("".join, chain)) + last
    here, there = ours(line, tree), bash(line, tree.memory)
    assert (here.exit_code, here.stdout) == (there.exit_code, there.stdout)
    assert sorted(here.stderr.splitlines()) == sorted(there.stderr.splitlines())


def test_a_run_changes_nothing(tree: Tree) -> None:
    before = sorted((str(path), path.lstat().st_mtime_ns) for path in tree.memory.rglob("*"))
    for line in SAME:
        ours(line, tree)
    assert sorted((str(path), path.lstat().st_mtime_ns) for path in tree.memory.rglob("*")) == before


def raw(*argv: str, cwd: Path) -> ReadOnlyPlan:
    """A plan that could not be made from a line: programs that misbehave."""
    return ReadOnlyPlan(" ".join(argv), str(cwd), (Pipeline("always", (PlannedProgram(argv, "shown"),)),), ())


def test_programs_see_two_variables_no_input_and_no_other_descriptor(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    monkeypatch.setenv("LD_PRELOAD", "")
    read, write = os.pipe()
    os.set_inheritable(read, True)
    try:
        assert sorted(run_readonly(raw("env", cwd=tree.memory)).stdout.split()) == [b"LC_ALL=C.UTF-8", b"PATH=/usr/bin:/bin"]
        assert run_readonly(raw("ls", "/dev/fd", cwd=tree.memory)).stdout.split() == [b"0", b"1", b"2", b"3"]
    finally:
        os.close(read)
        os.close(write)


def test_programs_do_not_read_the_input_of_the_person_s_terminal(tree: Tree) -> None:
    read, write = os.pipe()
    os.write(write, b"typed")
    os.close(write)
    kept = os.dup(0)
    os.dup2(read, 0)
    try:
        assert run_readonly(raw("cat", cwd=tree.memory)).stdout == b""
    finally:
        os.dup2(kept, 0)
        os.close(kept)
        os.close(read)


def test_a_program_of_the_working_directory_or_the_path_is_never_taken(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tree.memory / "ls"
    fake.write_text("#!/bin/sh\necho fake\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tree.memory}:{os.environ['PATH']}")
    assert b"fake" not in ours("ls logs", tree).stdout


def test_a_program_that_is_not_there_is_a_result(tree: Tree) -> None:
    assert run_readonly(raw("no-such-program", cwd=tree.memory)) == ReadOnlyResult(
        127, b"", b"no-such-program: command not found\n"
    )


def test_a_directory_that_is_gone_is_a_result(tree: Tree) -> None:
    done = run_readonly(raw("ls", cwd=tree.memory / "gone"))
    assert done.exit_code == 126
    assert done.stderr.startswith(b"ls: ")


def children() -> set[str]:
    """The live processes that this one started."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are counted in /proc")
def test_a_program_that_never_ends_is_ended_with_its_group(tree: Tree) -> None:
    before = children()
    done = run_readonly(raw("sh", "-c", "sleep 1000 & sleep 1000", cwd=tree.memory), timeout=0.2)
    assert done.ended == "time is up"
    assert done.exit_code == 137
    assert children() == before


def test_a_program_that_closes_its_output_and_stays_is_ended(tree: Tree) -> None:
    assert run_readonly(raw("sh", "-c", "exec >&- 2>&-; sleep 1000", cwd=tree.memory), timeout=0.2).ended == "time is up"


def test_output_is_cut_at_the_limit_and_the_program_ended(tree: Tree) -> None:
    done = run_readonly(raw("yes", cwd=tree.memory), max_output=1_000)
    assert done.ended == "too much output"
    assert done.stdout == b"y\n" * 500


def test_output_of_exactly_the_limit_is_whole(tree: Tree) -> None:
    size = (tree.memory / "MEMORY.md").stat().st_size
    done = run_readonly(raw("cat", "MEMORY.md", cwd=tree.memory), max_output=size)
    assert (done.ended, len(done.stdout)) == ("by itself", size)


def test_both_streams_share_the_limit(tree: Tree) -> None:
    done = run_readonly(raw("sh", "-c", "yes | head -c 600; yes | head -c 600 >&2", cwd=tree.memory), max_output=1_000)
    assert done.ended == "too much output"
    assert len(done.stdout) + len(done.stderr) == 1_000


class LaterEvent(threading.Event):
    """Set from the third look on: in the middle of a wait, whatever the clock says."""

    looks = 0

    def is_set(self) -> bool:
        self.looks += 1
        return self.looks > 2


@pytest.mark.parametrize("abort", [LaterEvent(), threading.Event()])
def test_an_abort_before_the_start_and_in_between_ends_it(tree: Tree, abort: threading.Event) -> None:
    if not isinstance(abort, LaterEvent):
        abort.set()
    assert run_readonly(raw("sleep", "1000", cwd=tree.memory), abort=abort).ended == "aborted"


def test_no_descriptor_is_left_open(tree: Tree) -> None:
    before = len(os.listdir("/dev/fd"))
    for line in ("ls | wc", "ls nothing || cat MEMORY.md | head -1", "pwd"):
        ours(line, tree)
    run_readonly(raw("yes", cwd=tree.memory), max_output=10)
    run_readonly(raw("ls", cwd=tree.memory / "gone"))
    assert len(os.listdir("/dev/fd")) == before


@pytest.mark.skipif(not Path("/proc/self/limits").exists(), reason="limits of another process are set on Linux only")
def test_a_program_may_not_make_a_file_even_if_a_plan_let_it(tree: Tree) -> None:
    script = "read x; echo x > made"
    plan = ReadOnlyPlan(
        "",
        str(tree.memory),
        (Pipeline("always", (PlannedProgram(("sleep", "0.2"), "shown"), PlannedProgram(("sh", "-c", script), "shown"))),),
        (),
    )
    run_readonly(plan)
    made = tree.memory / "made"
    assert not made.exists() or made.stat().st_size == 0
