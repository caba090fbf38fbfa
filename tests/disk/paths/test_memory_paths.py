"""G1: which directories may hold memory, and which paths a model may name inside one. Tables by class, not by example only."""

from __future__ import annotations

import os
import unicodedata
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.core.errors import PathRefused
from lamina.disk.paths.file_names import fold
from lamina.disk.paths.memory_paths import check_child, check_root, root_of

HOME = "/home/kim"
ROOT = "/home/kim/.notes/p/memory"

BAD_ROOTS = {
    "empty": ["", " ", "\t", "\n", "\u3000"],
    "relative": ["notes", "./notes/a/b", "..", "../notes/a/b", "a/b/c/d"],
    "home itself": ["~", "~/", "~/.", "~//", "/home/kim", "/home/kim/", "/home/kim/.", "/HOME/KIM"],
    "another's home": ["~lee/notes/memory", "~root/notes"],
    "near the root": ["/", "/.", "//", "/x", "/x/y", "/x/./y/.", "/home"],
    "parent": ["/a/b/c/../../../etc", "/a/b/c/..", "~/../x/y/z", "/a/b/../c/d"],
    "system": [
        *("/etc/lamina/memory", "/usr/local/share/memory", "/dev/shm/a/b", "/proc/self/cwd/memory", "/sys/a/b", "/run/user/1/x"),
        *("/var/spool/cron/x", "/var/lib/a/memory", "/root/a/memory", "/boot/a/b", "/lib64/a/b", "/bin/a/b", "/snap/a/b"),
        *("/System/Library/memory", "/Library/a/b", "/Applications/a/b", "/private/etc/a/b", "/private/var/db/a", "/ETC/a/b"),
        *("/mnt/c/Windows/a", "/mnt/c/Program Files/a"),
    ],
    "keys and git": ["~/.ssh/memory", "/home/kim/.gnupg/x", "/home/kim/repo/.git/memory", "/home/kim/repo/.GIT/memory"],
    "windows": [
        "C:\\",
        "C:/",
        "C:\\Users\\kim\\notes",
        "c:/Users/kim/notes",
        "\\\\server\\share\\notes",
        "\\\\.\\C:",
        "\\\\?\\C:\\a\\b",
    ],
    "network": ["//server/share/notes", "///a/b/c", "////"],
    "url": ["file:///home/kim/notes", "https://host/a/b/c", "s3://bucket/a/b", "sftp://kim@host/a/b/c"],
    "variable": ["$HOME/a/b", "${HOME}/a/b", "/home/kim/$X/b", "%USERPROFILE%/a/b", "/home/kim/`id`/b", "/home/kim/%7e/b"],
    "controls": ["/home/kim/a\0b/c", "/home/kim/a\nb/c", "/home/kim/a\x1b[2J/c", "/home/kim/a\x7f/c", "/home/kim/a\x85/c"],
    "format": [
        "/home/kim/a\u202eb/c",
        "/home/kim/a\u200bb/c",
        "/home/kim/a\ufeff/c",
        "/home/kim/a\u2066b/c",
        "/home/kim/\u00ada/c",
    ],
    "surrogate": ["/home/kim/\ud800/notes", "/home/kim/\udcff/notes"],
    "white space": ["/home/kim/a\u00a0b/c", "/home/kim/a /c", "/home/kim/ a/c", "/home/kim/notes ", " /home/kim/notes"],
    "names": [
        "/home/kim/NUL/notes",
        "/home/kim/aux.d/notes",
        "/home/kim/a./notes",
        "/home/kim/.../notes",
        "/home/kim/PROGRA~1/x",
    ],
    "wildcards": ["/home/kim/*/notes", "/home/kim/a?/notes", "/home/kim/[a]/notes", "/home/kim/{a,b}/notes"],
    "unicode twins": ["/home/kim/cafe\u0301/notes", "/home/kim/\uff41/notes", "/home/kim/\ufb01/notes"],
    "overlong": ["/home/kim/" + "a" * 300, "/home/kim" + "/abcdefghi" * 120],
}
GOOD_ROOTS = {
    "/data/agents/a1/notes": "/data/agents/a1/notes",
    "~/notes/memory": "/home/kim/notes/memory",
    "~/memory": "/home/kim/memory",
    "/home/kim/.lamina/projects/x/memory/": "/home/kim/.lamina/projects/x/memory",
    "/srv//team/./notes": "/srv/team/notes",
    "/home/kim/My Notes/memory": "/home/kim/My Notes/memory",
    "/home/kim/项目/記憶": "/home/kim/项目/記憶",
    "/home/kim/café/notes": "/home/kim/café/notes",
    "/tmp/run-1/notes": "/tmp/run-1/notes",
    "/var/folders/zz/x/T/notes": "/var/folders/zz/x/T/notes",
    "/Users/kim/Library/com~apple~CloudDocs/memory": "/Users/kim/Library/com~apple~CloudDocs/memory",
    "/mnt/c/Users/kim/notes": "/mnt/c/Users/kim/notes",
}

BAD_CHILDREN = {
    "empty": ["", " ", ".", "./", "/"],
    "parent": ["..", "../x.md", "a/../x.md", "a/../../x.md", "a/..", f"{ROOT}/../x.md", f"{ROOT}/a/../../x.md"],
    "absolute": ["/etc/passwd", "/home/kim/.bashrc", "/dev/stdout", "/dev/fd/1", "/proc/self/root/etc/passwd", "/x.md"],
    "prefix sibling": [f"{ROOT}-evil/x.md", f"{ROOT}x.md", f"{ROOT}.md", "/home/kim/.notes/p/memor/x.md"],
    "root itself": [ROOT, f"{ROOT}/", f"{ROOT}/."],
    "case of the root": ["/home/kim/.notes/p/Memory/x.md", "/HOME/kim/.notes/p/memory/x.md"],
    "slashes": [f"/{ROOT}/x.md", f"{ROOT}//x.md", "a//x.md", "x.md/", "a/", "//x.md", "....//x.md"],
    "percent": ["%2e%2e/x.md", "..%2fx.md", "%252e%252e%252fx.md", "..%c0%afx.md", "a%00.md", "50%.md"],
    "backslash": ["..\\x.md", "a\\..\\..\\x.md", "\\x.md", "\\\\server\\share\\x.md", "C:\\x.md", "C:x.md", "c:/x.md"],
    "network and url": ["//server/share/x.md", "file:///etc/passwd", "https://host/x.md", "file:x.md"],
    "stream": ["x.md:hidden", "x.md::$DATA", ".git::$INDEX_ALLOCATION/config"],
    "short name": ["GIT~1/config", "MEMORY~1.MD", "PROGRA~1", "x~1.md"],
    "tilde": ["~/x.md", "~kim/x.md", "x.md~"],
    "device": [
        "CON",
        "con.md",
        "Prn.md",
        "AUX",
        "nul.txt",
        "COM1.md",
        "lpt9.md",
        "com0",
        "a/NUL/x.md",
        "CON .md",
        "COM\u00b9.md",
    ],
    "dots and spaces": ["x.md.", "x.md ", " x.md", "a./x.md", "a /x.md", "...", ".../x.md", "..../x.md", "a/ /x.md"],
    "hidden": [
        ".git/config",
        ".git",
        ".GIT/config",
        ".Git/x",
        ".gitattributes",
        ".gitmodules",
        ".x.md",
        "a/.b/x.md",
        ".consolidate-lock",
    ],
    "git twins": [".g\u200cit/config", "\uff0egit/config", ".git./config", ".git /config", "git~1/config"],
    "option": ["-rf", "--files0-from=x", "a/-exec", "- x.md"],
    "controls": ["x.md\0.txt", "a\nb.md", "a\rb.md", "\x1b[2Jx.md", "a\tb.md", "x\x7f.md"],
    "format": ["x\u202emd.exe", "x\u200b.md", "x\u200d.md", "\ufeffx.md", "x\u2060.md", "x\u00ad.md", "x\u061c.md", "x\u2066.md"],
    "invisible": ["x\u3164.md", "x\u115f.md", "x\ufe0f.md", "x\u034f.md", "x\u2800.md", "x\U000e0101.md", "x\U000e0041.md"],
    "white space": ["x\u00a0.md", "x\u2003.md", "x\u3000.md", "x\u2028.md", "x\u202f.md", "x\u1680.md"],
    "surrogate and private": ["x\ud800.md", "x\udc80.md", "x\uf03a.md", "x\U0010fffd.md", "x\ufffe.md", "x\ufdd0.md"],
    "decomposed": ["cafe\u0301.md", "u\u0308ber.md", "\u1112\u1161\u11ab.md", "\u212a.md"],
    "compatibility": ["\uff2dEMORY.md", "\ufb01le.md", "x\u2024md", "a\uff0fb.md", "\u2025/x.md", "\u2460.md", "x\uff05.md"],
    "case of a fixed name": ["memory.md", "Memory.md", "MEMORY.MD", "a/memory.md", "Team/x.md", "TEAM/x.md", "Logs/2026/01/x.md"],
    "like a slash": ["\u2044etc.md", "a\u2215b.md", "a\u29f8b.md", "a\u0338.md", "a\u2571b.md", "a\u2216b.md", "a\u29f5b.md"],
    "several at once": [
        *(
            "~/../x.md",
            "a/~/x.md",
            "-/x.md",
            "%2E%2E%2Fx.md",
            "..%5cx.md",
            "x.md#../y?",
            "\u2024\u2024/x.md",
            "con. md",
            "aux .txt",
        ),
        *("nul.tar.md", "LPT\u00b2.md", "conin$.md", "desktop.ini:x", "a\u2060/../x.md", "\u212bngstrom.md", ".\u200b./x.md"),
        *(f"{ROOT}/./x.md", f"{ROOT}/.git/x.md", f"{ROOT}\\x.md", f"file://{ROOT}/x.md", f" {ROOT}/x.md", f"{ROOT}/\0"),
    ],
    "wildcard": ["x?.md", "*.md", "[a].md", "{a,b}.md", "x<y.md", "a|b.md", 'a"b.md'],
    "variable": ["$HOME/x.md", "${X}.md", "`id`.md", "%X%.md"],
    "overlong": ["a" * 250, "é" * 130, "a/" * 7 + "b" * 241, "/".join(["x" * 200] * 6)],
    "deep": ["a/b/c/d/e/f/g/h/x.md", "/".join("abcdefghijklmnopqrstuvwxyz") + "/x.md"],
}
GOOD_CHILDREN = {
    "MEMORY.md": "MEMORY.md",
    "logs/2026/03/2026-03-31.md": "logs/2026/03/2026-03-31.md",
    "team/auth.md": "team/auth.md",
    f"{ROOT}/sub/topic.md": "sub/topic.md",
    f"{ROOT}/MEMORY.md": "MEMORY.md",
    "项目_数据库.md": "项目_数据库.md",
    "caf\u00e9.md": "café.md",
    "데이터.md": "데이터.md",
    "ข้อความสำคัญ.md": "ข้อความสำคัญ.md",
    "база-данных.md": "база-данных.md",
    "v1.2-notes.md": "v1.2-notes.md",
    "a.md": "a.md",
    "user's notes (2).md": "user's notes (2).md",
    "memory-of-tests.md": "memory-of-tests.md",
    "console.md": "console.md",
    "🚀.md": "🚀.md",
    "a/b/c/d/e/f/g/x.md": "a/b/c/d/e/f/g/x.md",
    "team.md": "team.md",
    "v..2.md": "v..2.md",
    "a & b.md": "a & b.md",
    "R+D=x, y.md": "R+D=x, y.md",
    "#1 (draft)!.md": "#1 (draft)!.md",
    "git.md": "git.md",
    "nullable.md": "nullable.md",
    "communication.md": "communication.md",
    "हिन्दी.md": "हिन्दी.md",
    "العربية.md": "العربية.md",
    "עברית.md": "עברית.md",
    "straße–plan.md": "straße–plan.md",
    "“quoted”.md": "“quoted”.md",
}


@pytest.mark.spec("G1")
def test_a_bad_root_is_refused_in_one_printable_sentence() -> None:
    for text in chain.from_iterable(BAD_ROOTS.values()):
        with pytest.raises(PathRefused) as caught:
            check_root(text, home=HOME)
        assert str(caught.value).isprintable(), ascii(text)


@pytest.mark.spec("G1")
@pytest.mark.parametrize(("text", "path"), GOOD_ROOTS.items())
def test_a_good_root_is_the_directory_it_names(text: str, path: str) -> None:
    assert root_of(text, HOME) == path
    assert check_root(text, home=HOME) == Path(os.path.realpath(path))


@pytest.mark.spec("G1")
def test_a_bad_child_is_refused_in_one_printable_sentence() -> None:
    for text in chain.from_iterable(BAD_CHILDREN.values()):
        with pytest.raises(PathRefused) as caught:
            check_child(ROOT, text)
        assert str(caught.value).isprintable(), ascii(text)


@pytest.mark.spec("G1")
@pytest.mark.parametrize(("text", "relative"), GOOD_CHILDREN.items())
def test_a_good_child_is_the_path_below_the_root(text: str, relative: str) -> None:
    assert str(check_child(ROOT, text)) == relative


@pytest.mark.parametrize("value", [None, 7, b"x.md", ["x.md"]])
def test_what_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(PathRefused):
        check_child(ROOT, value)
    with pytest.raises(PathRefused):
        check_root(value, home=HOME)


@pytest.mark.parametrize(
    ("text", "home", "allowed"),
    [
        ("~/notes/memory", "/root", True),
        ("~/memory", "/root", False),
        ("/root/notes/memory", "/home/kim", False),
        ("~/notes/memory", "/var/lib/agent", True),
        ("/var/lib/other/memory", "/var/lib/agent", False),
        ("/home/kim/work", "/home/kim/work/account", False),
        ("/data/a/b", "/", True),
        ("/etc/a/b", "/", False),
        ("~/local/memory", "/usr", False),
    ],
)
def test_where_the_home_is_decides_what_is_a_system_directory(text: str, home: str, allowed: bool) -> None:
    if allowed:
        assert root_of(text, home)
        return
    with pytest.raises(PathRefused):
        root_of(text, home)


@pytest.mark.parametrize("text", ["C:\\Users\\kim\\notes", "C:/Users/kim/notes", "~/notes/memory"])
def test_on_windows_a_drive_is_the_beginning_of_an_absolute_path(text: str) -> None:
    assert root_of(text, "C:\\Users\\kim", windows=True).replace("\\", "/").startswith("C:/Users/kim/notes")


@pytest.mark.parametrize("text", ["C:\\", "C:\\x\\y", "C:\\Windows\\a\\b", "C:\\Users\\kim", "\\Users\\kim\\notes", "C:notes"])
def test_on_windows_drive_roots_and_system_directories_are_refused(text: str) -> None:
    with pytest.raises(PathRefused):
        root_of(text, "C:\\Users\\kim", windows=True)


class TestLinks:
    @pytest.mark.spec("G1")
    def test_a_root_that_leads_to_a_system_directory_by_a_link_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to("/etc")
        with pytest.raises(PathRefused, match="system directory"):
            check_root(f"{tmp_path}/link/a/b", home=HOME)

    def test_a_root_that_is_the_home_by_a_link_is_refused(self, tmp_path: Path) -> None:
        home = tmp_path / "a" / "b" / "home"
        home.mkdir(parents=True)
        (tmp_path / "a" / "b" / "link").symlink_to(home)
        with pytest.raises(PathRefused, match="home"):
            check_root(str(tmp_path / "a" / "b" / "link"), home=home)

    def test_a_root_behind_a_harmless_link_is_its_real_path(self, tmp_path: Path) -> None:
        (tmp_path / "real" / "x").mkdir(parents=True)
        (tmp_path / "link").symlink_to(tmp_path / "real")
        assert check_root(f"{tmp_path}/link/x/memory", home=HOME) == tmp_path / "real" / "x" / "memory"

    @pytest.mark.spec("G1")
    def test_a_child_through_a_link_is_refused_wherever_the_link_leads(self, tmp_path: Path) -> None:
        root = tmp_path / "root"
        (root / "real").mkdir(parents=True)
        (root / "outside").symlink_to("/etc")
        (root / "inside").symlink_to(root / "real")
        (root / "dangling.md").symlink_to(root / "nothing")
        for text in ("outside/passwd", "inside/x.md", "dangling.md", f"{root}/outside/passwd"):
            with pytest.raises(PathRefused, match="symbolic link"):
                check_child(root, text)
        assert str(check_child(root, "real/x.md")) == "real/x.md"

    def test_a_directory_or_a_fifo_in_the_place_of_a_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "x.md").mkdir()
        (tmp_path / "file").touch()
        os.mkfifo(tmp_path / "fifo")
        for text in ("x.md", "file/y.md", "fifo"):
            with pytest.raises(PathRefused):
                check_child(tmp_path, text)


@given(
    text=st.text(max_size=60) | st.lists(st.sampled_from(["..", ".", "", "a", "~", "C:", ROOT, "x.md"]), max_size=8).map("/".join)
)
def test_whatever_the_text_an_accepted_child_is_below_the_root_and_has_one_spelling(text: str) -> None:
    try:
        relative = check_child(ROOT, text)
    except PathRefused:
        return
    assert relative.parts
    assert os.path.normpath(f"{ROOT}/{relative}") == f"{ROOT}/{relative}"
    assert Path(ROOT) in Path(os.path.normpath(f"{ROOT}/{relative}")).parents
    assert unicodedata.normalize("NFC", str(relative)) == str(relative)
    assert not any(part.startswith(".") for part in relative.parts)


@given(text=st.text(max_size=40).map(lambda text: f"/home/kim/{text}"))
def test_whatever_the_text_an_accepted_root_is_a_normal_path_with_three_components(text: str) -> None:
    try:
        path = root_of(text, HOME)
    except PathRefused:
        return
    assert os.path.normpath(path) == path
    assert len(Path(path).parts) > 3
    assert not fold(HOME).startswith(fold(path))
