"""The tokenizer: what bash reads as these words it accepts, everything it might read otherwise it refuses."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lamina.tools.permissions.readonly.tokenizer import (
    MAX_COMMANDS,
    MAX_LENGTH,
    MAX_WORDS,
    CommandPart,
    CommandRefusal,
    ShellWord,
    split_command,
)

pytestmark = pytest.mark.spec("G2")


def texts(line: str) -> list[list[str]]:
    parts = split_command(line)
    assert not isinstance(parts, CommandRefusal), parts
    return [[word.text for word in part.words] for part in parts]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ls", [["ls"]]),
        ("  ls   -l  ", [["ls", "-l"]]),
        ("grep 'a  b' x", [["grep", "a  b", "x"]]),
        ("grep \"a b\"c'd' x", [["grep", "a bcd", "x"]]),
        ("grep '' x", [["grep", "", "x"]]),
        ("grep 'it\"s $HOME `x`' x", [["grep", 'it"s $HOME `x`', "x"]]),
        ('grep "it\'s; | && # (x)" x', [["grep", "it's; | && # (x)", "x"]]),
        (r'grep "a\|b\\c\"d" x', [["grep", r'a\|b\c"d', "x"]]),
        ('grep "end$" x', [["grep", "end$", "x"]]),
        (r'echo "price: \$5" "\$x" "a\$" "\$(x)" "\\\$x"', [["echo", "price: $5", "$x", "a$", "$(x)", r"\$x"]]),
        (r'grep "a$\|b$" x', [["grep", r"a$\|b$", "x"]]),
        ('grep -E "^(a|b$|c$)" x', [["grep", "-E", "^(a|b$|c$)", "x"]]),
        (r"find . \( -name a \) \! -name b", [["find", ".", "(", "-name", "a", ")", "!", "-name", "b"]]),
        ("find . ! -name b", [["find", ".", "!", "-name", "b"]]),
        ("ls|wc;ls&&ls||ls", [["ls"], ["wc"], ["ls"], ["ls"], ["ls"]]),
        ("cat 项目_数据库.md café", [["cat", "项目_数据库.md", "café"]]),
        ("grep -c ^- x", [["grep", "-c", "^-", "x"]]),
        ("a=1,2:3@4%5+6 b", [["a=1,2:3@4%5+6", "b"]]),
    ],
)
def test_words_are_those_of_the_shell(line: str, words: list[list[str]]) -> None:
    assert texts(line) == words


def test_joints_and_redirections_are_kept_apart_from_the_words() -> None:
    parts = split_command("ls 2>/dev/null | wc 2>&1 && cat x 2>&1 2>/dev/null; ls")
    assert isinstance(parts, tuple)
    assert [(part.joint, part.errors) for part in parts] == [
        ("", "dropped"),
        ("|", "joined"),
        ("&&", "dropped"),
        (";", "shown"),
    ]


def test_unquoted_wildcards_are_marked_and_quoted_ones_are_not() -> None:
    parts = split_command("ls *.m? '*'x\"?\"[ab]")
    assert parts == (CommandPart("", (ShellWord("ls"), ShellWord("*.m?", (0, 3)), ShellWord("*x?[ab]", (3,), plain=False))),)


# One line for each way a shell has to do something else than it seems; # stands for the place of a control or odd character.
REFUSED = {
    "write": ["ls > x", "ls >x", "ls >> x", "ls >| x", "ls >! x", "ls &> x", "ls >& x", "ls 1> x", "ls 2> x", "ls <> x"],
    "write behind an allowed redirection": [
        "ls 2>&1x",
        "ls 2>/dev/nul",
        "ls 2>/dev/null/x",
        "ls 2>/dev/null>x",
        "ls 2>&12",
        "ls 2>&-",
    ],
    "read": ["cat < x", "cat <<E", "cat <<<x", "cat 0< x"],
    "substitute": ["ls $(x)", "ls `x`", 'ls "$(x)"', 'ls "`x`"', "ls <(x)", "ls >(x)", "ls $((1))", "ls $[1]", 'ls "$[1]"'],
    "expand a variable": [
        "ls $x",
        "ls ${x}",
        'ls "$x"',
        'ls "${x}"',
        "ls $1",
        'ls "$@"',
        'ls "$?"',
        'ls "$$"',
        'ls "$!"',
        "ls$IFS-l",
    ],
    "quote in the way of bash": [
        "ls $'a'",
        'ls $"a"',
        "ls \\x",
        "ls a\\ b",
        "ls \\",
        "ls 'a",
        'ls "a',
        'ls "\\\\$x"',
        'ls "\\`x"',
    ],
    "expand braces or a home": ["ls {a,b}", "ls a{1..3}", "ls ~", "ls ~root", "ls ~/x", "ls x~", "ls a=~/x"],
    "group": ["(ls)", "{ ls; }", "ls ()", "ls() x", "((1))", "[[ a ]]&", "case x in x) ls"],
    "go to the background": ["ls &", "ls & ls", "ls&", "ls |& wc", "& ls"],
    "have no command": [
        "",
        " ",
        ";",
        "ls;;",
        "ls; ;",
        "ls; 2>&1",
        "ls &&",
        "ls |",
        "| ls",
        "ls ;; ls",
        "ls && && ls",
        "2>/dev/null",
        "ls | 2>&1",
    ],
    "comment": ["ls # x", "ls #", "#ls", "ls a#b"],
    "expand history": ["ls !!", "ls !x", "!ls", "ls a!b", "ls !$"],
    "match with more than wildcards": ["ls @(a|b)", "ls !(a)", "ls +(a)"],
    "hold a control character": [f"ls{c}x" for c in "\0\a\b\t\n\v\f\r\x1b\x7f\x85"] + ["ls 'a\nb'", 'ls "a\tb"', "ls\\\nx"],
    "hold odd white space": [f"ls{c}x" for c in "\u00a0\u1680\u2000\u2003\u2009\u200a\u2028\u2029\u202f\u205f\u3000"]
    + ["ls 'a\u00a0b'"],
    "hold invisible characters": [f"ls '{c}'" for c in "\u200b\u200d\u202e\u2066\ufeff\u00ad\ue000\ud800\U000e0041\uffff\u0378"],
    "look like something else": [
        "ls；ls",
        "ls｜wc",
        "ls –la",
        "ls −la",
        "ls －la",
        "ls ﹣la",
        "ls 〉x",
        "ｌｓ",
        "ls ＄x",
        "ls ‘x’",
        "ls “x”",
    ],
}


@pytest.mark.parametrize(
    "line", [pytest.param(line, id=f"{what}: {line!a}") for what, lines in REFUSED.items() for line in lines]
)
def test_whatever_a_shell_could_read_otherwise_is_refused(line: str) -> None:
    refused = split_command(line)
    assert isinstance(refused, CommandRefusal)
    assert refused.why.endswith(".")
    assert refused.why.isprintable()


@pytest.mark.parametrize(
    ("fits", "over"),
    [
        ("ls " + "a" * (MAX_LENGTH - 3), "ls " + "a" * (MAX_LENGTH - 2)),
        ("ls" + " a" * (MAX_WORDS - 1), "ls" + " a" * MAX_WORDS),
        ("ls" + ";ls" * (MAX_COMMANDS - 1), "ls" + ";ls" * MAX_COMMANDS),
    ],
)
def test_every_cap_refuses(fits: str, over: str) -> None:
    assert not isinstance(split_command(fits), CommandRefusal)
    assert isinstance(split_command(over), CommandRefusal)


PIECES = [
    *"ab01-./=:@%+,_^] '\"\\|&;<>(){}[]*?!#$`~\t\n",
    "\u00a0",
    "é",
    "数",
    "；",
    "\u200b",
    "2>&1",
    "2>/dev/null",
    "\\(",
    "$(",
]
# Most random lines are refused; these pieces are accepted nearly everywhere.
GOOD = [
    "-x",
    " 'b c'",
    '"d e"',
    '"f$"',
    r'"g\|h"',
    r'"k \$5 \${l} \$(m)"',
    r"\(",
    r"\)",
    " ! ",
    " * ",
    "i?",
    "[j]",
    "''",
    r'"n\"o\\"',
    " 2>&1 ",
    " 2>/dev/null ",
    " ",
]
NEXT = [" | qq ", "|qq ", " ; qq ", ";qq ", " && qq ", "&&qq ", " || qq ", " 2>&1|qq "]
LINES = st.lists(st.sampled_from(PIECES), max_size=14).map("".join)
COMMANDS = st.lists(st.sampled_from(GOOD + NEXT) | st.sampled_from(PIECES), max_size=10).map(lambda found: "qq " + "".join(found))
MILD = st.lists(st.sampled_from(GOOD + NEXT), max_size=12).map(lambda found: "qq " + "".join(found))


@given(st.text() | LINES)
def test_no_text_makes_it_raise(line: str) -> None:
    assert isinstance(split_command(line), tuple | CommandRefusal)


def words_of_bash(line: str, cwd: Path, code: int) -> list[list[str]]:
    """The words of each `qq` as bash cuts them, written to a descriptor that pipes and redirections don't touch."""
    script = f"set -f; PATH=; exec 3>words; qq() {{ printf '%s\\0' \"$@\" $'\\1' >&3; return {code}; }}\n{line}\n"
    bash = ["/bin/bash", "--norc", "--noprofile", "-c", script]
    done = subprocess.run(bash, cwd=cwd, env={"LC_ALL": "C.UTF-8"}, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert b"syntax error" not in done.stderr, done.stderr
    commands, words = list[list[str]](), list[str]()
    for word in (cwd / "words").read_text("utf-8").split("\0")[:-1]:
        if word == "\1":
            commands.append(words)
            words = []
        else:
            words.append(word)
    return sorted(commands)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("empty")


@settings(max_examples=300)
@given(COMMANDS | MILD)
def test_what_is_accepted_has_the_words_that_bash_sees(empty: Path, line: str) -> None:
    parts = split_command(line)
    joints = {part.joint for part in parts} if isinstance(parts, tuple) else set()
    # Commands that a failure or a success skips can't be seen, and one that is no `qq` is not run here.
    if isinstance(parts, CommandRefusal) or joints >= {"&&", "||"} or any(part.words[0].text != "qq" for part in parts):
        return
    seen = words_of_bash(line, empty, code=1 if "||" in joints else 0)
    assert seen == sorted([word.text for word in part.words[1:]] for part in parts)


def test_enough_of_the_lines_that_bash_is_shown_are_accepted() -> None:
    accepted = list[str]()

    @settings(max_examples=200)
    @given(MILD)
    def look(line: str) -> None:
        if isinstance(split_command(line), tuple):
            accepted.append(line)

    look()
    assert len(accepted) > 50
    assert any(len(line) > 30 for line in accepted)
