"""Lines that try to get more than reading out of a read-only command, by the way they try it; and lines people write, which must run
and print what bash prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.tools.permissions.readonly.conftest import Tree
from tests.tools.permissions.readonly.test_run import bash, ours

from lamina.tools.permissions.readonly.plan import ReadOnlyPlan, plan_readonly

pytestmark = pytest.mark.spec("G2")

SPACES = ["\x85", "\xa0", "\u1680", "\u2002", "\u2028", "\u2029", "\u3000", "\ufeff", "\u200b", "\u2060", "\u180e"]
ATTACKS = {
    "another separator": [
        *(f"ls{space}touch x" for space in (*SPACES, "\t", "\n", "\r\n", "\v", "\f", "\0", "\x1c", "\x1b[A", "\x7f")),
        *("ls ；touch x", "ls ｜sh", "ls ＆＆ touch x", "ls ＞x", "ls –la", "ls\u037etouch x", "\ufeffls", "ls \u202etxt"),
    ],
    "a redirection": [
        *("ls>x", "ls>>x", "ls>|x", "ls<>x", "ls 1>x", "ls 2>x", "ls 2>>/dev/null", "ls 3>/dev/null", "ls 2>&2", "ls 2>&-"),
        *("ls 2>&10", "ls 2>/dev/null/", "ls 2>/dev/./null", "ls 2>/dev/null2", "ls 02>/dev/null", "ls 12>/dev/null"),
        *("ls {fd}>x", "ls >&2", "ls &>x", "ls &>>x", "ls <x", "ls <<<x", "ls <<x", "ls 2>/dev/stderr", "ls 2>/dev/tty"),
        *("ls 2> &1", "ls 2>  x", "ls 2> /dev/nullx", "ls 2> /dev/null/x", "ls 2 >/dev/null", "ls a2>/dev/null", "ls ''2>&1"),
        *("ls 2>'/dev/null'", "ls 2>/dev/null&touch x", "ls 2>&1&touch x", "ls 2>/dev/null>x", "ls; 2>/dev/null", "ls;>x"),
    ],
    "an expansion": [
        *("ls $x", 'ls "$x"', 'ls "${x}"', 'ls "$(x)"', 'ls "`x`"', "ls $[1]", 'ls "$[1]"', "ls $((1))", 'ls "$@"', 'ls "$?"'),
        *('ls "$$"', 'ls "$-"', 'ls "$!"', 'ls "$_"', "ls $'x'", 'ls $"x"', 'ls "\\\\$x"', 'ls "\\`x`"', "ls {a,b}", "ls {1..9}"),
        *("ls ~", "ls ~root", "ls a=~/x", "ls ~+", "ls ~-", "ls !!", "ls !$", "ls a!b", "!ls", "^ls^touch^", "ls #x", "ls a#b"),
        *("ls <(touch x)", "cat a.md >(sh)", "ls =(x)", "ls @(a|b)", "ls +(a)", "ls *(e:x:)", "ls *(N)", "ls **(.)", "ls (x)"),
    ],
    "an operator in an odd place": [
        *("ls |", "ls | | wc", "| ls", "&& ls", "; ls", "ls ;; ls", "ls;;", "ls;|ls", "ls & & ls", "ls &", "ls && && ls", ";"),
        *("ls |& wc", "ls ||", "ls && ;", "ls ; ;", "ls" + ";ls" * 8, "ls" + "|wc" * 8, "ls " + "a " * 300, "ls " + "a" * 5_000),
        *('ls "a', "ls 'a", "ls \\", 'ls "a\\', "l\\s", "ls \\-l", "ls \\;touch x"),
    ],
    "another name for a command": [
        *(
            '"l"s',
            "l''s",
            '"ls -l"',
            "./ls",
            "/bin/ls",
            "/usr/bin/../bin/ls",
            "LS",
            "l?",
            "[l]s",
            "lſ",
            "ls=x",
            "X=1 ls",
            "X+=1 ls",
        ),
        *("X[0]=1 ls", "-ls", "-- ls", "%1", "@ls", "ls:", "ls]", ".", "..", "*", "command ls", "builtin pwd", "exec ls"),
        *("busybox ls", "toybox ls", "stdbuf -o0 ls", "setsid ls", "flock x ls", "chrt 1 ls", "runuser -c ls", "systemd-run ls"),
        *("script -c ls", "ltrace ls", "enable -f x ls", "mapfile x", "readarray x", "fc -l", "history -w", "hash -p x ls"),
        *(
            "egrep x a",
            "zgrep x a",
            "rgrep x",
            "dir",
            "vdir",
            "tac x",
            "od x",
            "strings x",
            "dd if=x",
            "yes",
            "printf x",
        ),
    ],
    "find": [
        *("find . -newerma x", "find . -newerBt x", "find . -newer /etc/passwd", "find . -samefile ../outside/secret.md"),
        *("find . -anewer sec", "find . -cnewer out/secret.md", "find . -fls x", "find . -fprint0 x", "find . -files0-from a"),
        *(
            "find -LP .",
            "find -PL .",
            "find -PH .",
            "find -P -L .",
            "find -P -H out",
            "find . -follow",
            "find -Dexec .",
            "find -E .",
        ),
        *("find -f .", "find -x .", "find out", "find out/", "find up/outside", "find chain/outside", "find dev", "find null"),
        *(r"find . \( -delete \)", "find . ! -delete", "find . -not -exec x", "find . , -delete", "find . -o -fprint x"),
        *('find . "-ex"ec x', "find . -execut", "find . -dele", "find . -rm", "find -- .", "find . --help", "find . -perm /x/y"),
        *("find . -print -", "find . -quit x", "find . -printf", "find . -name", "find . -regextype ../x", "find . -user ../x"),
    ],
    "grep": [
        *(
            "grep -fa.md x",
            "grep -nf a.md x",
            "grep --fil=a.md x",
            "grep --f=a.md x",
            "grep -rR x .",
            "grep -dread x",
            "grep -Dread x",
        ),
        *(
            "grep --directories=recurse x .",
            "grep --dir=recurse x .",
            "grep --deref x .",
            "grep --exclude-f=a.md x .",
            "grep --rec x .",
        ),
        *("grep -S x", "grep -rO x .", "grep -zf a.md x", "grep --null-data x a.md", "grep --help", "grep -V", "grep -rn x out"),
        *("grep x sec", "grep -r x up", "grep -r x chain", "grep -r x dev", "grep x null", "grep -r x ..", "grep -e x -f a.md"),
        *("grep -e -f a.md -fa.md", "grep -- x ../outside/secret.md", "grep -A1B1 x a.md", "grep -Cx y a.md", "grep -m1x y a.md"),
    ],
    "sort and uniq": [
        *("sort -oMEMORY.md", "sort -no x a.md", "sort --out=x a.md", "sort -S1 a.md", "sort -T. a.md", "sort --temp=. a.md"),
        *(
            "sort --parallel=9 a.md",
            "sort --compress-prog=x a.md",
            "sort --files0=a.md",
            "sort -R a.md",
            "sort -m a.md",
            "sort sec",
        ),
        *("sort -k1 -o x a.md", "sort -k1o x a.md", "sort -t: -ox a.md", "sort -t -o a.md x", "sort -C -o x a.md", "sort null"),
        *(
            "uniq -cd - x",
            "uniq --count a.md x",
            "uniq a.md -- x",
            "uniq -f1 a.md x",
            "uniq +1 a.md x",
            "uniq --group a.md",
            "uniq *",
        ),
    ],
    "echo": [
        *("echo a > x", "echo a >> x", "echo a>x", "echo $x", 'echo "$(touch x)"', "echo `touch x`", "echo a | tee x"),
        *("echo a & ls",),
        *("echo --help", "echo --version", "echo ../*", "echo /etc/*", "echo out/*", "echo a | sh", "echo {a,b}", "echo ~"),
    ],
    "date": [
        *("date -s now", "date --set=now", "date --se=now", "date -us now", "date 010100002030", "date -u 0101", "date -- 0101"),
        *("date -f a.md", "date --file=a.md", "date -r a.md", "date --reference=a.md", "date '+%F' 0101", "date +%F +%T"),
        *("date -Ix",),
        *("date -d 'TZ=\"/etc/passwd\" now'", "date --date='TZ=\":/dev/zero\" now'", "date -j 0101", "date -v1d", "date --debug"),
    ],
    "diff": [
        *("diff -l a.md b.md", "diff --paginate a.md b.md", "diff --pag a.md b.md", "diff -ul a.md b.md", "diff sec a.md"),
        *("diff -X a.md . logs", "diff --exclude-from=a.md . logs", "diff --from-file=a.md b.md", "diff --to-file=a.md b.md"),
        *("diff . logs", "diff -r . logs", "diff -rq . logs", "diff MEMORY.md logs", "diff logs MEMORY.md", "diff --rec . logs"),
        *("diff --no-dereference -r . out", "diff -r --no-deref . logs", "diff MEMORY.md /etc/passwd", "diff null a.md"),
        *("diff a b c",),
        *("diff -D x a.md b.md", "diff --line-format=%L a.md b.md", "diff --help", "diff -v", "diff -S x . logs"),
        *("diff - up/outside",),
    ],
    "du": [
        *("du --files0-from=a.md", "du --files0-from=-", "du --files0=a.md", "du -X a.md .", "du --exclude-from=a.md ."),
        *("du -L .",),
        *("du -D out", "du -H out", "du --dereference .", "du --dereference-args out", "du out", "du up", "du ..", "du /"),
        *("du -sLh .",),
        *("du dev", "du /proc", "du -d x .", "du -Bx .", "du --time=birth .", "du --time-style=x .", "du --help", "du -A ."),
    ],
    "file": [
        *("file -C -m a.md", "file -C", "file --compile", "file -bC", "file -m a.md b.md", "file --magic-file=a.md b.md"),
        *("file -M a b",),
        *("file -z a.md", "file -Z a.md", "file -bz a.md", "file --uncompress a.md", "file -f a.md"),
        *("file --files-from a.md", "file -bf a"),
        *("file -s null", "file --special-files a.md", "file -p a.md", "file --preserve-date a.md", "file -S a.md"),
        *("file -L sec",),
        *("file sec", "file null", "file dev/zero", "file /etc/passwd", "file -P bytes=9 a.md", "file -d a.md", "file -c"),
        *("file -e ../x a",),
    ],
    "tree": [
        *("tree -o x", "tree -ao x", "tree -o=x", "tree -ox", "tree -R", "tree -L 1 -R -o x", "tree -l", "tree -al", "tree -H x"),
        *("tree -Po", "tree -Io x", "tree -L1 -o x", "tree -aL2", "tree --fromfile a.md", "tree --fromtabfile a.md"),
        *("tree --info",),
        *("tree --infofile a.md", "tree --gitfile a.md", "tree --gitignore", "tree -T x", "tree --output x", "tree out"),
        *("tree ..",),
        *("tree /", "tree dev", "tree up", "tree -L x", "tree --filelimit=x", "tree --sort=x", "tree --help"),
        *("tree --noreport -o x",),
    ],
    "head, tail, cat and the rest": [
        *(
            "tail -fn1 a.md",
            "tail -n1 -f a.md",
            "tail -1f a.md",
            "tail --fol a.md",
            "tail -s1 a.md",
            "tail -r a.md",
            "tail -b 1 a.md",
        ),
        *(
            "tail -n 1 dev/zero",
            "head -c 10 /dev/zero",
            "head -c 10 dev/urandom",
            "head null",
            "head -c10 /proc/self/mem",
            "head -c 1Q x",
        ),
        *(
            "cat /proc/self/root/etc/passwd",
            "cat /proc/thread-self/environ",
            "cat /dev/fd/3",
            "cat ///etc/passwd",
            "cat /./etc/passwd",
        ),
        *(
            "cat up/outside/secret.md",
            "cat out/../outside/secret.md",
            "cat chain/outside/secret.md",
            "cat sec",
            "cat null",
            "cat out/*",
        ),
        *(
            "cat up/*/secret.md",
            "cat ou?/secret.md",
            "cat [o]ut/secret.md",
            "cat */secret.md",
            "cat http://x/",
            "cat file:/etc/passwd",
        ),
        *(
            "wc --files a.md",
            "wc sec",
            "stat out",
            "stat -L sec",
            "stat dev",
            "stat --cached=always a.md",
            "ls -lL",
            "ls --deref",
        ),
        *(
            "ls -d out",
            "ls up",
            "ls -R up",
            "ls -d ..",
            "ls -l /proc/self/fd",
            "ls --zero",
            "cut -z -f1 a.md",
            "cut -f1 --outp=x a.md",
        ),
        *("tr a b < a.md", "tr a b c", "tr --del a", "pwd -L", "pwd x", "ls ['a-z']*", "ls [\\!a]*", "ls [[:alpha:]]*"),
    ],
}


@pytest.mark.parametrize("way", ATTACKS)
def test_what_is_more_than_reading_is_refused_in_every_spelling(way: str, tree: Tree) -> None:
    links: dict[str, str | Path] = {
        "out": tree.outside,
        "sec": tree.outside / "secret.md",
        "up": "..",
        "chain": "up",
        "dev": "/dev",
        "null": "/dev/null",
    }
    for name, target in links.items():
        (tree.memory / name).symlink_to(target)
    planned = {line: plan_readonly(line, cwd=tree.memory, roots=tree.roots) for line in ATTACKS[way]}
    assert [line for line, found in planned.items() if isinstance(found, ReadOnlyPlan)] == []


USUAL = [
    *("echo hello", 'echo "price: \\$5"', "echo ---", "echo -n a  b", "echo -e 'a\\nb'", "echo -x -n", "echo"),
    *("echo a --", "echo *.md"),
    *("echo 'a' && ls logs", "echo done; date -u -d @0", "echo what?", "echo '*'", 'echo "it\'s" | wc -c', "echo 2>/dev/null"),
    *("date -u -d 2024-01-31 +%F", "date -ud '2024-01-31 +1 day' +%s", "date -u -d @1700000000 -Iseconds", "date -u -I -d @0"),
    *("date -u --date='3 days ago' +%%", "date -u -d @0 --iso-8601=date", "date -u --rfc-3339=seconds -d @0", "date -R -u -d @0"),
    *("diff role.md rules.md", "diff -u role.md rules.md | tail -n +3", "diff -q role.md role.md"),
    *("diff -U1 -w role.md rules.md | wc -l",),
    *("diff -y -W 40 role.md rules.md", "cat role.md | diff - rules.md"),
    *("diff --brief role.md rules.md && echo same || echo other",),
    *("diff -r --no-dereference logs 'two words'", "diff role.md", "diff --color=never -i role.md rules.md"),
    *("diff -ruN --no-dereference . .",),
    *("du -sh .", "du -a logs | sort -n | tail -3", "du -h --max-depth=1 .", "du -d 1", "du -sk * | sort -rn"),
    *("du -sb MEMORY.md", "du -BM"),
    *("file MEMORY.md", "file -b *.md", "file -i role.md", "file --mime-type logs", "file -bi MEMORY.md counts.txt"),
    *("cat role.md | file -",),
    *("sort -u counts.txt", "sort counts.txt -rn", "uniq -d counts.txt", "cut -c1 counts.txt | sort | uniq -c"),
    *("sort -t : -k 2 counts.txt",),
    *("grep -Pzo 'type: user\\n---' role.md", "grep -zc user role.md", 'grep "\\$HOME" MEMORY.md', 'grep -c "a\\$b" MEMORY.md'),
    *(
        "ls -lah logs",
        "ls -ltr",
        "ls -1t | head -n 1",
        "ls -d logs/*/",
        "ls -a | grep -v '^\\.'",
        "ls -p | grep -v /",
        "ls logs;",
    ),
    *(
        "ls --full-time MEMORY.md",
        "ls -lS | head",
        "ls ; ls logs ;",
        "ls nothing 2> /dev/null || ls logs",
        "ls -l --time-style=+%Y",
    ),
    *(
        "head -c 1K ../transcripts/s1.jsonl",
        "tail -c 1k ../transcripts/s1.jsonl",
        "head --lines=3 MEMORY.md",
        "tail -q -n 1 *.md",
    ),
    *(
        "grep -rniE 'todo|database' .",
        "grep -rl type .",
        "grep -P '^\\w+:' role.md",
        "grep -x 'foo' rules.md",
        "grep -nA1 foo rules.md",
    ),
    *('grep "\\bfoo\\b" rules.md', 'grep "say \\"hi\\"" rules.md', "grep 'it'\"'\"'s' MEMORY.md", "grep -rnw '.' -e 'bar'"),
    *(
        "grep -rn x --include='*.md' --exclude-dir=logs . | head -20",
        "grep -E '^\\s*type:\\s+\\w+' role.md",
        "grep -e foo -e bar rules.md",
    ),
    *("find . -name '*.md' -not -path './logs/*' | sort", "find . -maxdepth 2 -name '*.md' | sort", "find . -regex '.*\\.txt$'"),
    *(
        "find . -name logs -prune -o -name '*.md' -print | sort",
        "find logs -name '*.md' -printf '%f\\n'",
        "find . -iname memory*",
    ),
    *("find . -perm -u+x -type d | sort", "find . -empty", "sort -t: -k1,1 -k2nr counts.txt", "cut -d ':' -f 2 counts.txt"),
    *(
        "cat role.md | tr '[:lower:]' '[:upper:]'",
        "cat role.md | tr [:lower:] [:upper:]",
        "cat role.md | tr -s ' ' '\\n' | sort | uniq -c",
    ),
    *(
        "stat -c '%a %n' MEMORY.md",
        "stat --printf='%s\\n' MEMORY.md",
        "wc -w MEMORY.md",
        "cat -A rules.md",
        "pwd; ls",
        "ls|wc -l",
    ),
]


@pytest.mark.parametrize("line", USUAL)
def test_what_people_write_prints_what_bash_prints(line: str, tree: Tree) -> None:
    assert ours(line, tree) == bash(line, tree.memory)


def test_files_named_like_options_and_expressions_change_no_command(tree: Tree) -> None:
    """Bash would take the names for options; here each is a file, whatever stands in the directory."""
    place = tree.outside / "tricky"
    place.mkdir()
    for name in ("-delete", "-exec", "-o", "--output=owned", "-fprint", "!", "(", ",", "-", "--", "-rf", "a"):
        (place / name).write_text(f"{name}\n")
    for line in ("find *", "sort *", "wc -l *", "cat *", "grep -c . *", "head -n 1 *", "ls *"):
        found = plan_readonly(line, cwd=place, roots=[place])
        assert isinstance(found, ReadOnlyPlan)
        words = found.pipelines[0].stages[0].argv
        assert {Path(word).name for word in words if word.startswith("./")} >= {
            "-delete",
            "-exec",
            "-o",
            "--output=owned",
            "-fprint",
        }
    assert sorted(path.name for path in place.iterdir()) == sorted(
        ["-delete", "-exec", "-o", "--output=owned", "-fprint", "!", "(", ",", "-", "--", "-rf", "a"]
    )


def test_a_wildcard_shows_a_link_that_leads_outside_and_does_not_follow_it(tree: Tree) -> None:
    (tree.memory / "out").symlink_to(tree.outside)
    (tree.memory / "in").symlink_to(tree.memory / "logs")
    shown = ours("ls -d */", tree)
    assert (shown.exit_code, shown.stdout) == (0, b"in/\nlogs/\nout\ntwo words/\n")
    long = ours("ls -ld --time-style=+ o*/", tree).stdout.decode()
    assert long.startswith("l")
    assert long.endswith(f"out -> {tree.outside}\n")
    assert b"\tout\n" in ours("du -s */", tree).stdout
    assert ours("du -s *", tree) == bash("du -s *", tree.memory)
    plan = plan_readonly("ls -d */", cwd=tree.memory, roots=tree.roots)
    assert isinstance(plan, ReadOnlyPlan)
    assert str(tree.memory / "out") in [read.path for read in plan.reads]
    for line in (
        "ls */",
        "ls -d out",
        "ls -d out/",
        "ls -d */secret.md",
        "ls -d out/*",
        "cat */",
        "ls -R */",
        "stat */",
        "du out",
        "du out/",
    ):
        assert not isinstance(plan_readonly(line, cwd=tree.memory, roots=tree.roots), ReadOnlyPlan), line


TREES = [
    "tree",
    "tree -L 2",
    "tree -a -I '.git|node_modules'",
    "tree -dL 1 logs",
    "tree --dirsfirst -P '*.md' --prune",
    "tree -sh logs",
]


@pytest.mark.parametrize("line", TREES)
def test_a_tree_is_planned_with_its_options_before_its_directories(line: str, tree: Tree) -> None:
    """It is not installed everywhere, so the plan is compared and not the output."""
    plan = plan_readonly(line, cwd=tree.memory, roots=tree.roots)
    assert isinstance(plan, ReadOnlyPlan)
    [stage] = plan.pipelines[0].stages
    assert " ".join(word for word in stage.argv if word != "--") == line.replace("'", "")
    assert [(read.contents, read.tree) for read in plan.reads] == [(False, True)]
