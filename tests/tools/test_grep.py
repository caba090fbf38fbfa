"""Grep: with ripgrep and without, the same answer, but for .gitignore."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lamina.tools import grep
from lamina.tools.grep import find_ripgrep
from lamina.tools.tool import Context, ToolOutput

from .doing import ENVIRON, context

RIPGREP = find_ripgrep(ENVIRON)

# A small repository with everything that makes two searchers differ.
FILES: dict[str, bytes] = {
    "a.py": b"import os\n\ndef alpha():\n    return os.getcwd()\n\n\ndef beta():\n    return 1\n",
    "b.txt": b"Alpha beta\nALPHA\nalpha alpha\n",
    "crlf.txt": b"alpha\r\nbeta\r\n",
    "deep/c.py": b"x = 'alpha'\n" * 3 + b"end\n",
    "deep/e.js": b"const alpha = 1;\n",
    "deep/nested/d.md": b"# alpha\n\nno newline at end: alpha",
    "latin.txt": b"caf\xe9 alpha\n",
    "utf16.txt": "\ufeffalpha in UTF-16\n".encode("utf-16-le"),
    "bom.txt": b"\xef\xbb\xbfalpha first\n",
    "unicode.txt": "ÄLPHA Straße 漢字\n".encode(),
    "binary.bin": b"alpha\0alpha\n",
    "empty": b"",
    "long.txt": b"alpha" + b"x" * 5_000 + b"\n",
    ".hidden/h.txt": b"alpha hidden\n",
    "noise.log": b"alpha\n",
    "keep.log": b"alpha\n",
    "build/out.txt": b"alpha\n",
    "node_modules/m/index.js": b"alpha\n",
    "pkg/__pycache__/x.txt": b"alpha\n",
    ".git/HEAD": b"alpha\n",
    "sp ace/f.py": b"alpha = 1\n",
    "-dash.py": b"alpha = 2\n",
}


@pytest.fixture
def here(tmp_path: Path) -> Context:
    root = tmp_path / "tree"
    for age, (name, data) in enumerate(FILES.items()):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, ns=(age * 10**9, age * 10**9))
    (root / "link.py").symlink_to("a.py")
    (root / "linked").symlink_to("deep")
    os.mkfifo(root / "pipe")
    return context(root)


Search = Callable[..., ToolOutput]


@pytest.mark.spec("S11", "B4")
def test_copies_in_the_bookkeeping_of_a_memory_are_not_found(search: Search, tmp_path: Path) -> None:
    (tmp_path / ".memory.lock").touch()
    for name in ("a.md", ".history/index-1.md", ".dreams/d/work/a.md", ".inbox/1.json", "src/.history/b.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("we deploy on Thursdays\n")
    assert set(lines(search(context(tmp_path), "Thursdays"))) == {"a.md", "src/.history/b.md"}
    assert lines(search(context(tmp_path), "Thursdays", path=".dreams/d/work")) == [".dreams/d/work/a.md"], "a dream's own copy"


def searching(engine: str) -> Search:
    tool = grep.tool(find_ripgrep if engine == "ripgrep" else lambda _: None)

    def search(where: Context, pattern: str, **arguments: Any) -> ToolOutput:
        output = tool.run({"pattern": pattern, **arguments}, where)
        assert output.is_error or output.facts["engine"] == engine
        return output

    return search


NEEDS_RIPGREP = pytest.mark.skipif(RIPGREP is None, reason="ripgrep is not installed")


@pytest.fixture(params=["python", pytest.param("ripgrep", marks=NEEDS_RIPGREP)])
def search(request: pytest.FixtureRequest) -> Search:
    return searching(request.param)


def lines(output: ToolOutput) -> list[str]:
    assert isinstance(output.content, str)
    assert not output.is_error, output.content
    return output.content.split("\n")


CASES: list[dict[str, Any]] = [
    {"pattern": "alpha"},
    {"pattern": "alpha", "output_mode": "content"},
    {"pattern": "alpha", "output_mode": "count"},
    {"pattern": "ALPHA", "-i": True, "output_mode": "content"},
    {"pattern": "älpha", "-i": True, "output_mode": "content"},
    {"pattern": r"^def \w+\(\):$", "output_mode": "content"},
    {"pattern": r"^$", "output_mode": "count"},
    {"pattern": r"beta$", "output_mode": "content"},
    {"pattern": r"\balpha\b", "output_mode": "content", "glob": "*.txt"},
    {"pattern": r"\w+\s+=", "output_mode": "content"},
    {"pattern": "alpha", "glob": "*.{py,js}"},
    {"pattern": "alpha", "glob": "**/*.py"},
    {"pattern": "alpha", "glob": "deep/**"},
    {"pattern": "alpha", "glob": "!*.txt"},
    {"pattern": "alpha", "glob": "*.py *.md"},
    {"pattern": "alpha", "glob": "*.log"},
    {"pattern": "alpha", "glob": "deep/*.py"},
    {"pattern": "alpha", "type": "py"},
    {"pattern": "alpha", "type": "js", "glob": "*.py, *.js"},
    {"pattern": "alpha", "path": "deep"},
    {"pattern": "alpha", "path": "deep/c.py", "output_mode": "content"},
    {"pattern": "alpha", "path": "link.py", "output_mode": "content"},
    {"pattern": "alpha", "path": "-dash.py", "output_mode": "content"},
    {"pattern": "alpha", "path": "build"},
    {"pattern": "alpha", "path": "node_modules"},
    {"pattern": "return", "output_mode": "content", "-A": 1},
    {"pattern": "return", "output_mode": "content", "-B": 2},
    {"pattern": "def", "output_mode": "content", "-C": 1},
    {"pattern": "def", "output_mode": "content", "-C": 10, "-n": False},
    {"pattern": "alpha", "output_mode": "content", "-A": 1, "path": "deep"},
    {"pattern": r"def alpha.*?getcwd", "multiline": True, "output_mode": "content"},
    {"pattern": r"os\n\ndef", "multiline": True, "output_mode": "content", "-A": 1},
    {"pattern": r"\(\):\n", "multiline": True, "output_mode": "count"},
    {"pattern": r"def.*return", "multiline": True},
    {"pattern": "alpha", "output_mode": "content", "head_limit": 3},
    {"pattern": "alpha", "head_limit": "2"},
    {"pattern": "-dash", "output_mode": "content"},
    {"pattern": "nothing at all"},
]


@NEEDS_RIPGREP
@pytest.mark.parametrize("case", CASES, ids=str)
def test_both_engines_give_the_same_answer(here: Context, case: dict[str, Any]) -> None:
    with_it, without = (searching(engine)(here, **case) for engine in ("ripgrep", "python"))
    assert without.content == with_it.content
    assert without.facts | {"engine": ""} == with_it.facts | {"engine": ""}


def test_files_come_newest_first_and_dependencies_are_left_out(here: Context, search: Search) -> None:
    found = lines(search(here, "alpha"))
    expected = [name for name in FILES if b"alpha" in FILES[name] or name == "utf16.txt"]
    left_out = ("node_modules/", "pkg/", ".git/", "binary.bin")
    assert found == [name for name in reversed(expected) if not name.startswith(left_out)]


@NEEDS_RIPGREP
def test_ripgrep_leaves_out_what_gitignore_excludes(here: Context) -> None:
    (here.cwd / ".gitignore").write_text("*.log\n/build/\n!keep.log\n")
    found = lines(searching("ripgrep")(here, "alpha"))
    assert "keep.log" in found
    assert not {"noise.log", "build/out.txt"} & set(found)


def test_content_shows_path_number_and_line(here: Context, search: Search) -> None:
    assert lines(search(here, r"def (alpha|beta)", output_mode="content")) == ["a.py:3:def alpha():", "a.py:7:def beta():"]


def test_lines_around_a_match_are_shown_with_another_sign(here: Context, search: Search) -> None:
    found = lines(search(here, "return", output_mode="content", **{"-B": 1}))
    assert found == ["a.py-3-def alpha():", "a.py:4:    return os.getcwd()", "--", "a.py-7-def beta():", "a.py:8:    return 1"]


def test_count_shows_how_many_lines_match(here: Context, search: Search) -> None:
    assert lines(search(here, "alpha", output_mode="count", path="deep")) == ["deep/c.py:3", "deep/e.js:1", "deep/nested/d.md:2"]


def test_a_limit_says_that_there_is_more(here: Context, search: Search) -> None:
    output = search(here, "alpha", output_mode="content", head_limit=2)
    assert len(lines(output)) == 3
    assert lines(output)[-1] == "[2 shown, more available. Narrow the search or raise head_limit.]"
    assert output.facts["more"]


def test_long_lines_are_cut(here: Context, search: Search) -> None:
    [line] = lines(search(here, "alphax", output_mode="content"))
    assert line.startswith("long.txt:1:alphax")
    assert line.endswith("x…")
    assert len(line) < 600


def test_a_search_without_a_limit_is_bounded_all_the_same(tmp_path: Path, search: Search) -> None:
    (tmp_path / "f").write_text(("x" * 400 + "\n") * 10_000)
    output = search(context(tmp_path), "x", output_mode="content", head_limit=0)
    assert len(output.content) <= 50_000
    assert output.facts["more"]


def test_a_line_of_megabytes_is_bounded_too(tmp_path: Path, search: Search) -> None:
    (tmp_path / "f").write_bytes(b"x" * (20 << 20) + b"\n")
    [line] = lines(search(context(tmp_path), "xxx", output_mode="content"))
    assert len(line) < 600


def test_matches_are_found_behind_the_first_block_of_a_large_file(tmp_path: Path, search: Search) -> None:
    (tmp_path / "f").write_bytes(b"before\n" * 1_000_000 + b"needle\nafter\n")
    found = lines(search(context(tmp_path), "needle", output_mode="content", **{"-C": 1}))
    assert found == ["f-1000000-before", "f:1000001:needle", "f-1000002-after"]


@pytest.mark.parametrize("pattern", ["(", "[a", "*a", r"\p{Nonsense}"])
def test_a_pattern_that_is_none_is_refused_with_the_reason(here: Context, search: Search, pattern: str) -> None:
    output = search(here, pattern)
    assert output.is_error
    assert "regex parse error" in str(output.content)


@NEEDS_RIPGREP
@pytest.mark.parametrize(("pattern", "found"), [(r"(?<=def )beta", ["a.py"]), (r"(alpha) \1", ["b.txt"])])
def test_a_pattern_that_ripgrep_does_not_understand_goes_to_the_loop(here: Context, pattern: str, found: list[str]) -> None:
    output = grep.tool().run({"pattern": pattern}, here)
    assert lines(output) == found
    assert output.facts["engine"] == "python"


@NEEDS_RIPGREP
def test_a_line_end_in_the_pattern_asks_for_multiline(here: Context) -> None:
    output = searching("ripgrep")(here, r"os\n")
    assert output.content == "Grep: the pattern contains a line end. Set multiline to search across lines."


def test_a_pattern_that_takes_forever_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grep, "SECONDS", 0.4)
    (tmp_path / "f").write_text("a" * 200 + "!\n")
    output = searching("python")(context(tmp_path), r"^(a|a)+$")
    assert output.content == "No matches.\n[Stopped after 0 s. Search a smaller part.]"


def test_an_abort_stops_a_search(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a" * 200 + "!\n")

    class Soon:
        """Set between the check before the call and the first look during it."""

        def __init__(self) -> None:
            self.asked = 0

        def is_set(self) -> bool:
            self.asked += 1
            return self.asked > 1

    output = searching("python")(context(tmp_path, abort=Soon()), r"^(a|a)+$")
    assert output.content == "The call was stopped before it finished."


def test_a_missing_path_a_pipe_and_an_unknown_type_are_refused(here: Context) -> None:
    search = searching("python")
    assert "does not exist" in str(search(here, "x", path="no").content)
    assert "neither a file nor a directory" in str(search(here, "x", path="pipe").content)
    assert "Type 'klingon' is unknown without ripgrep" in str(search(here, "x", type="klingon").content)
    assert "NUL" in str(search(here, "\0").content)


@NEEDS_RIPGREP
def test_ripgreps_own_types_work_and_unknown_ones_are_refused(here: Context) -> None:
    search = searching("ripgrep")
    assert lines(search(here, "alpha", type="markdown")) == ["deep/nested/d.md"]
    assert "unrecognized file type" in str(search(here, "x", type="klingon").content)


@NEEDS_RIPGREP
def test_the_persons_own_ripgrep_settings_do_not_count(here: Context) -> None:
    (here.cwd.parent / "rc").write_text("--invert-match\n")
    steered = context(here.cwd, environ={**ENVIRON, "RIPGREP_CONFIG_PATH": str(here.cwd.parent / "rc")})
    assert lines(searching("ripgrep")(steered, "getcwd")) == ["a.py"]


@pytest.mark.parametrize("mode", ["content", "files_with_matches", "count"])
def test_a_file_that_may_not_be_read_tells_nothing_not_even_that_a_guess_was_right(
    tmp_path: Path, search: Search, mode: str
) -> None:
    (tmp_path / ".env").write_text("KEY=abc\n" * 3)
    (tmp_path / "a.txt").write_text("KEY is set elsewhere\n")
    where = context(tmp_path, may_read=lambda path: path.name != ".env")
    right, wrong = (search(where, f"KEY={guess}", output_mode=mode) for guess in ("a", "b"))
    assert (right.content, right.facts) == (wrong.content, wrong.facts)
    first = search(where, "KEY", output_mode=mode, head_limit=1)
    assert "a.txt" in str(first.content)
    assert first.facts["more"] is False


def test_a_program_named_rg_in_the_working_tree_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rg").write_text("#!/bin/sh\ntouch pwned\n")
    (tmp_path / "rg").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.executable", "")
    assert find_ripgrep({"PATH": "."}) is None
    assert find_ripgrep({"PATH": str(tmp_path)}) == str(tmp_path / "rg")
    assert find_ripgrep({}) is None


def test_without_any_program_to_search_with_that_is_said(here: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "")
    assert "Install ripgrep" in str(searching("python")(here, "x").content)
