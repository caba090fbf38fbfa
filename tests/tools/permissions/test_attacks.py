"""Calls that try to get past the rules and modes, each list by the way it tries; and calls that only look as if they did."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tools.permissions.house import House, build, call, rules

from lamina.tools.permissions.request import Allow, AskUser, Deny, Verdict
from lamina.tools.permissions.shell_rules import ShellPattern, holds_back, read_shell


@pytest.fixture
def house(tmp_path: Path) -> House:
    return build(tmp_path)


def of(verdict: Verdict) -> str:
    return type(verdict).__name__


# A line of several commands, one of them allowed by a rule


BESIDE = [
    *("npm test; rm x", "npm test;rm x", "npm test &&rm x", "npm test||rm x", "npm test|sh", "npm test |& sh", "npm test & rm x"),
    *("npm test\nrm x", "npm test\r\nrm x", "npm test\u2028rm x", "npm test # \nrm x", "npm test \\\n; rm x", "npm test $(rm x)"),
    *("npm test `rm x`", 'npm test "$(rm x)"', "npm test <(rm x)", "npm test >x", "npm test >>x", "npm test 2>x", "npm test &>x"),
    *("npm test ${x:=$(rm y)}", "npm test $((a[$(rm x)]))", "(npm test; rm x)", "{ npm test; rm x; }", "npm test {a,;rm}"),
    *(
        "X=1 npm test",
        "PATH=. npm test",
        "LD_PRELOAD=./x npm test",
        "env npm test",
        "command npm test",
        "npm  'test;' rm",
        "npmtest",
    ),
    *("npm testx", "npm 'test x'", 'npm "test rm"*', "npm test; cat src/a.py", "cd /tmp && ls && npm test", "npm test<<<x"),
]


@pytest.mark.parametrize("line", BESIDE)
def test_nothing_slips_through_beside_a_command_that_is_allowed(line: str, house: House) -> None:
    given = rules(allow=["Bash(npm test:*)", "Bash(npm test)"])
    assert of(house.decide(call("Bash", command=line), "ask", given)) == "AskUser"
    assert of(house.decide(call("Bash", command=line), "accept-edits", given)) == "AskUser"
    assert of(house.decide(call("Bash", command=line), "read-only", given)) == "Deny"
    assert of(house.decide(call("Bash", command=line), "ask", given, fork=True)) == "Deny"


@pytest.mark.parametrize("line", ["find * && npm test", "sort * | npm test", "find ?* ; npm test", "ls [a-z]* && npm test"])
def test_a_wildcard_that_a_shell_would_expand_is_no_reading_beside_another_command(line: str, house: House) -> None:
    """Alone the line runs by its plan, where `-delete` is a file; beside npm a shell runs it, where it is an order."""
    (house.cwd / "-delete").write_text("")
    given = rules(allow=["Bash(npm test:*)"])
    assert of(house.decide(call("Bash", command=line), "ask", given)) == "AskUser"
    alone = house.decide(call("Bash", command="find * | wc -l"), "ask", given)
    assert isinstance(alone, Allow)
    assert alone.plan is not None
    assert "./-delete" in alone.plan.pipelines[0].stages[0].argv
    for plain in ("cat src/*.py | npm test", "ls ./* && npm test", "npm test *"):
        assert of(house.decide(call("Bash", command=plain), "ask", given)) == "Allow", plain


# Commands that a rule forbids


def denied(line: str) -> str:
    pattern = read_shell("rm:*")
    assert isinstance(pattern, ShellPattern)
    return holds_back(pattern, line)


SURELY = [
    *(
        "rm x",
        "r''m x",
        '"rm" x',
        "\\rm x",
        "r\\m x",
        "/bin/rm x",
        "/bin/../bin/rm x",
        "RM x",
        "rm\tx",
        "rm;",
        "rm<x",
        "true|rm x",
    ),
    *(
        "a;rm x",
        "a\nrm x",
        "a&rm x",
        "a&&rm x",
        "a||rm x",
        "(rm x)",
        "{ rm x; }",
        "! rm x",
        "time rm x",
        "echo `rm x`",
        "echo $(rm x)",
    ),
    *(
        "X=1 rm x",
        "X=1 Y=2 rm x",
        "env X=1 rm x",
        "sudo -u root rm x",
        "command -p rm x",
        "nohup rm x",
        "exec -a x rm y",
        "xargs rm",
    ),
    *(
        'bash -c "rm x"',
        "sh -c 'true; rm x'",
        'eval "r""m x"',
        "find . -exec rm {} +",
        "echo a | xargs -I{} rm {}",
        "watch -n1 rm x",
    ),
    *("if true; then rm x; fi", "for i in 1; do rm x; done", "while rm x; do :; done", "f() (rm x); f", "2>/dev/null rm y"),
]
POSSIBLY = [
    *(
        "rm${IFS}x",
        "$'rm' x",
        '$"rm" x',
        "$(echo rm) x",
        "`echo rm` x",
        "$RM x",
        "${CMD} x",
        '"$RM" x',
        "{rm,-rf,x}",
        "/bin/r? x",
    ),
    *(
        "/bin/r* x",
        "r[m] x",
        "X=1 $RM x",
        "true && $RM x",
        "true\n$RM x",
        "! $RM x",
        "echo \"it's\"; $RM 'x'",
        "if $RM x; then :; fi",
    ),
    *("busybox rm x", "trap 'rm x' EXIT", ">x rm y", "wrapper rm x", "x" * 20_000),
]
# With names, values and quoted text in them, and no command that is made at run time.
NOT_AT_ALL = [
    *(
        "echo rm x",
        "cat rm",
        "ls ./rm",
        "grep rm x",
        "rmdir x",
        "farm x",
        "echo $HOME",
        'echo "$x, y"',
        "$VENV/bin/python -m pytest",
    ),
    *(
        '"$HOME/bin/tool" x',
        "x=$(date +%s); echo $x",
        "x=$(foo $bar) make",
        'for f in *.py; do echo "$f"; done',
        "[ $x = 1 ] && ls",
    ),
    *("[[ -n $x ]] || ls", "awk '{$1=1; print}' f", "jq '.a | $x' f", "python - <<EOF\nprint($x)\n$y\nEOF", "echo '$(rm x)'"),
    *("test -f *.py", "npm test -- --grep 'a|$b'", 'echo "a; $b"', "git log --format='%h | $x'", "export X=$Y"),
]


@pytest.mark.parametrize("line", SURELY)
def test_a_command_that_is_surely_forbidden_is_seen(line: str, house: House) -> None:
    assert denied(line) == "yes"
    assert isinstance(house.decide(call("Bash", command=line), "all", rules(deny=["Bash(rm:*)"])), Deny)


@pytest.mark.parametrize("line", POSSIBLY, ids=lambda line: line[:30])
def test_a_command_whose_name_is_known_only_when_it_runs_may_be_the_forbidden_one(line: str, house: House) -> None:
    assert denied(line) == "maybe"
    assert isinstance(house.decide(call("Bash", command=line), "all", rules(deny=["Bash(rm:*)"])), AskUser)


@pytest.mark.parametrize("line", NOT_AT_ALL)
def test_a_line_that_only_has_names_and_values_is_not_held_back(line: str) -> None:
    assert denied(line) == "no"


# Files


RUN_BY_OTHERS = [
    *(
        ".git/hooks/pre-commit",
        ".git/config",
        ".GIT/config",
        ".git./config",
        ".git /config",
        "git~1/config",
        "sub/.git",
        ".hg/hgrc",
    ),
    *(
        ".git::$INDEX_ALLOCATION/config",
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".Claude/SETTINGS.json",
        ".mcp.json",
    ),
    *(
        ".claude/agents/x.md",
        ".claude/hooks/x.sh",
        ".MCP.json",
        ".vscode/tasks.json",
        ".vscode/settings.json",
        ".idea/workspace.xml",
    ),
    *(".devcontainer/devcontainer.json", ".devcontainer.json", ".cursor/mcp.json", ".gemini/settings.json", ".codex/config.toml"),
    *(".husky/pre-commit", ".githooks/pre-push", ".pre-commit-config.yaml", "lefthook.yml", ".cargo/config.toml", ".yarnrc.yml"),
    *(".yarn/plugins/x.cjs", ".pnpmfile.cjs", ".npmrc", ".envrc", ".mise.toml", ".gdbinit", ".lldbinit", ".nvim.lua", ".exrc"),
    *(
        ".bashrc",
        ".zshenv",
        ".profile",
        ".config/git/config",
        ".config/autostart/x.desktop",
        ".local/bin/ls",
        ".xprofile",
        ".psqlrc",
    ),
    *(".env", ".env.production", ".lamina/settings.json", ".ssh/authorized_keys", ".netrc", ".gitmodules", "sub/.Rprofile"),
]
# Text like any other, whatever its name looks like.
ORDINARY = [
    *(
        "src/b.py",
        "git.py",
        "claude/settings.json",
        "vscode/tasks.json",
        ".gitignore",
        ".editorconfig",
        ".prettierrc",
        ".eslintrc.json",
    ),
    *(".github/workflows/ci.yml", ".env.example", ".env.sample", "env.py", "config/settings.json", "docs/.gitkeep", "my.bashrc"),
    *(
        "CLAUDE.md",
        "AGENTS.md",
        "package.json",
        "Makefile",
        ".dockerignore",
        "local/x",
        "cargo/config.toml",
        "bashrc",
        "mcp.json",
    ),
]


@pytest.mark.parametrize("name", RUN_BY_OTHERS)
def test_a_file_through_which_a_change_becomes_a_command_asks_whatever_allows_it(name: str, house: House) -> None:
    given = rules(allow=["Edit", "Write", "Edit(./**)"])
    for path in (name, str(house.cwd / name), f"src/../{name}"):
        assert of(house.decide(call("Write", file_path=path), "accept-edits", given)) == "AskUser", path
    assert of(house.decide(call("Write", file_path=name), "ask", given, fork=True)) == "Deny"
    (house.cwd / "plain.txt").symlink_to(house.cwd / name)
    assert of(house.decide(call("Write", file_path="plain.txt"), "accept-edits", given)) == "AskUser"


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_file_is_changed_without_a_question_where_changes_are_accepted(name: str, house: House) -> None:
    assert of(house.decide(call("Write", file_path=name), "accept-edits")) == "Allow"


def test_the_question_says_where_a_link_leads(house: House) -> None:
    (house.cwd / "plain.txt").symlink_to(house.outside / "x.txt")
    (house.cwd / "notes").symlink_to(house.cwd / ".vscode")
    (house.base / "way").symlink_to(house.cwd)
    for asked, there in (
        (call("Write", file_path="plain.txt"), house.outside / "x.txt"),
        (call("Read", file_path="plain.txt"), house.outside / "x.txt"),
        (call("Write", file_path="notes/tasks.json"), house.cwd / ".vscode" / "tasks.json"),
    ):
        verdict = house.decide(asked, "accept-edits")
        assert isinstance(verdict, AskUser)
        assert f"(which leads to {there})" in verdict.why
    for cwd in (house.cwd, house.base / "way"):
        verdict = house.decide(call("Write", file_path="src/new.py"), cwd=cwd)
        assert isinstance(verdict, AskUser)
        assert "leads to" not in verdict.why


def test_a_program_that_searches_a_whole_tree_meets_no_keys(house: House) -> None:
    search = call("Bash", command="grep -r x .")
    assert of(house.decide(search, fork=True)) == "Allow"
    (house.cwd / "someone").mkdir()
    (house.cwd / "someone" / ".ssh").mkdir()
    assert of(house.decide(search, fork=True)) == "Deny"
    assert of(house.decide(search)) == "AskUser"
    assert of(house.decide(call("Bash", command="grep -r x src"), fork=True)) == "Allow"
    (house.cwd / "src" / ".netrc").write_text("x\n")
    assert of(house.decide(call("Bash", command="grep -r x src"), fork=True)) == "Deny"
    assert of(house.decide(call("Bash", command="grep x src/a.py"), fork=True)) == "Allow"


# Deny rules and the ways around them


def test_a_file_that_is_denied_is_denied_by_every_way_to_it(house: House) -> None:
    (house.cwd / "secrets").mkdir()
    (house.cwd / "secrets" / "key.txt").write_text("k\n")
    (house.cwd / "way").symlink_to("secrets")
    (house.cwd / "src" / "deep").symlink_to("../way")
    (house.cwd / "file").symlink_to("secrets/key.txt")
    given = rules(allow=["Read", "Bash", "Edit"], deny=["Read(./secrets/**)", "Edit(./secrets/**)"])
    ways = ["secrets/key.txt", "./secrets/key.txt", "src/../secrets/key.txt", "way/key.txt", "src/deep/key.txt", "file"]
    ways += ["SECRETS/key.txt", "secrets//key.txt", str(house.cwd / "secrets" / "key.txt"), "secrets/./key.txt"]
    for path in ways:
        assert of(house.decide(call("Read", file_path=path), "all", given)) == "Deny", path
        assert of(house.decide(call("Edit", file_path=path), "all", given)) == "Deny", path
    for line in (
        "cat way/key.txt",
        "cat s*/key.txt",
        "cat <secrets/key.txt",
        "cp file x",
        "tar c ./secrets/key.txt",
        "a --f=way/key.txt",
    ):
        assert of(house.decide(call("Bash", command=line), "all", given)) == "Deny", line


@pytest.mark.parametrize(
    ("rule", "path", "kind"),
    [
        ("Read(//etc/**)", "/etc/hosts", "Deny"),
        ("Read(//ETC/**)", "/etc/hosts", "Deny"),
        ("Read(/etc/**)", "/etc/hosts", "Deny"),
        ("Read(//etc/**)", "etc/hosts", "Allow"),
        ("Read(**/*.pem)", "src/a/b.pem", "Deny"),
        ("Read(*.pem)", "src/a/B.PEM", "Deny"),
        ("Read(src/)", "src/a.py", "Deny"),
        ("Read(src)", "src/a.py", "Deny"),
        ("Read(src)", "srcs/a.py", "Allow"),
        ("Read(~/.config/**)", "~home/.config/x", "Deny"),
        ("Read(./src/*)", "src/x/y", "Deny"),
    ],
)
def test_deny_rules_for_paths_mean_what_they_mean_in_claude_code(rule: str, path: str, kind: str, house: House) -> None:
    spelled = path.replace("~home", str(house.base / "home"))
    found = house.decide(call("Read", file_path=spelled), "all", rules(deny=[rule]))
    assert of(found) == kind


@pytest.mark.parametrize(
    ("rule", "tool", "kind"),
    [
        ("mcp__github", "mcp__github__push", "Allow"),
        ("mcp__github__*", "mcp__github__push", "Allow"),
        ("mcp__github__push", "mcp__github__push", "Allow"),
        ("mcp__git", "mcp__github__push", "AskUser"),
        ("mcp__github__pu", "mcp__github__push", "AskUser"),
        ("mcp__github__push", "mcp__github__push_all", "AskUser"),
        ("mcp__*", "mcp__github__push", "AskUser"),
        ("mcp__github__push(x)", "mcp__github__push", "AskUser"),
    ],
)
def test_a_rule_for_a_server_s_tools_allows_those_and_no_others(rule: str, tool: str, kind: str, house: House) -> None:
    assert of(house.decide(call(tool), "ask", rules(allow=[rule]))) == kind


@pytest.mark.parametrize(
    "url",
    [
        *("https://evil.com/docs.example.com", "https://docs.example.com.evil.com/", "https://docs.example.com@evil.com/"),
        *("https://evil.com#@docs.example.com", "https://evil.com\\@docs.example.com", "https://docs.example.com%2eevil.com/"),
        *("//docs.example.com/", "file://docs.example.com/etc/passwd", "https://docs.example.com\n.evil.com", "javascript:x"),
        *("https://[::1]/docs.example.com", "https://docs。example。com", "https://xdocs.example.com/", "https://example.com/"),
    ],
)
def test_a_domain_rule_allows_that_host_and_nothing_that_looks_like_it(url: str, house: House) -> None:
    given = rules(allow=["WebFetch(domain:docs.example.com)"])
    assert of(house.decide(call("WebFetch", url=url), "ask", given)) == "AskUser"
    assert of(house.decide(call("WebFetch", url="https://docs.example.com/a?b"), "ask", given)) == "Allow"
