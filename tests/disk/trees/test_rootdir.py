"""RootDir: nothing outside the root is read or written, whatever is named and whatever is swapped in between."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from lamina.core.errors import DiskError, PathRefused
from lamina.disk import crash_points as crash
from lamina.disk.dirfd import Dir
from lamina.disk.trees.rootdir import ListedEntry, RootDir

from ..processes import needs_fork, together

LIMIT = 1 << 20


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


def test_what_is_written_is_read_back_and_listed(root: Path) -> None:
    with RootDir.open(root) as tree:
        tree.replace("a/b/x.md", b"hello")
        tree.replace("y.md", b"")
        assert tree.read_bytes("a/b/x.md", LIMIT) == b"hello"
        assert tree.read_bytes("a/b/x.md", 2) == b"he"
        info = tree.stat("a/b/x.md")
        assert info is not None
        assert info.st_size == 5
        assert tree.listdir("a/b") == [ListedEntry("x.md", False, 5, info.st_mtime_ns)]
        assert [(entry.name, entry.is_dir) for entry in tree.listdir()] == [("a", True), ("y.md", False)]
        fd = tree.open_read("a/b/x.md")
        assert os.read(fd, 10) == b"hello"
        os.close(fd)


def test_what_is_missing_is_a_value_and_not_an_error(root: Path) -> None:
    with RootDir.open(root) as tree:
        assert tree.read_bytes("no/x.md", LIMIT) is None
        assert tree.stat("no/x.md") is None
        assert tree.listdir("no/no") == []
        assert not tree.unlink("no/x.md")
        with pytest.raises(DiskError, match="no such file"):
            tree.open_read("x.md")
        assert tree.listdir() == []
    with pytest.raises(DiskError):
        RootDir.open(root / "no", create=False)


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_directories_are_0700_and_files_0600(root: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        with RootDir.open(root) as tree:
            tree.replace("a/x.md", b"x")
            tree.append("a/log", [b"x"])
    finally:
        os.umask(before)
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (root, *root.rglob("*"))}
    assert found == {"root": 0o700, "a": 0o700, "x.md": 0o600, "log": 0o600}


@pytest.mark.spec("G1")
@pytest.mark.parametrize(
    "rel", ["", "..", "../x", "a/../../x", "/etc/passwd", "a//b", "a/", ".", "a/./b", "x\0y", "a/" * 20 + "x"]
)
def test_a_path_that_could_leave_the_root_is_refused(root: Path, rel: str) -> None:
    with RootDir.open(root) as tree:
        actions: list[Callable[[], object]] = [
            lambda: tree.read_bytes(rel, LIMIT),
            lambda: tree.open_read(rel),
            lambda: tree.replace(rel, b"x"),
            lambda: tree.replace_if(rel, b"x", expected=None),
            lambda: tree.append(rel, [b"x"]),
            lambda: tree.unlink(rel),
            lambda: tree.stat(rel),
            lambda: tree.rename(rel, "y"),
            lambda: tree.rename("y", rel),
        ]
        for act in actions:
            with pytest.raises(PathRefused):
                act()
    assert sorted(os.listdir(root.parent)) == ["root"]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A directory with a precious file that nobody may touch."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.md").write_bytes(b"precious")
    return tmp_path / "outside"


def untouched(outside: Path) -> bool:
    return os.listdir(outside) == ["x.md"] and (outside / "x.md").read_bytes() == b"precious"


def every_action(tree: RootDir, rel: str) -> list[Callable[[], object]]:
    return [
        lambda: tree.read_bytes(rel, LIMIT),
        lambda: tree.open_read(rel),
        lambda: tree.replace(rel, b"evil"),
        lambda: tree.replace_if(rel, b"evil", expected=b"precious"),
        lambda: tree.append(rel, [b"evil"]),
        lambda: tree.unlink(rel),
        lambda: tree.rename(rel, "moved"),
    ]


@pytest.mark.spec("G1")
def test_links_to_directories_and_files_are_refused_by_every_call(root: Path, outside: Path) -> None:
    with RootDir.open(root) as tree:
        (root / "dir").symlink_to(outside)
        (root / "x.md").symlink_to(outside / "x.md")
        os.link(outside / "x.md", root / "hard.md")
        for rel in ("dir/x.md", "x.md", "hard.md"):
            for act in every_action(tree, rel):
                with pytest.raises(PathRefused):
                    act()
        with pytest.raises(PathRefused):
            tree.listdir("dir")
        (root / "hard.md").unlink()
        assert tree.listdir() == []
    assert untouched(outside)


def test_the_root_itself_may_not_be_a_link(root: Path, outside: Path) -> None:
    root.symlink_to(outside)
    with pytest.raises(PathRefused):
        RootDir.open(root)
    assert untouched(outside)


def test_fifos_and_directories_are_refused_and_nothing_blocks(root: Path) -> None:
    with RootDir.open(root) as tree:
        os.mkfifo(root / "fifo")
        (root / "d.md").mkdir()
        for rel in ("fifo", "d.md"):
            for act in every_action(tree, rel):
                with pytest.raises(DiskError):
                    act()
        assert [entry.name for entry in tree.listdir()] == ["d.md"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a file away")
def test_another_users_files_are_refused_unless_the_directory_is_shared(root: Path) -> None:
    with RootDir.open(root) as tree:
        tree.replace("x.md", b"theirs")
        os.chown(root / "x.md", 12_345, 12_345)
        with pytest.raises(PathRefused, match="another user"):
            tree.read_bytes("x.md", LIMIT)
        os.chown(root, 12_345, 12_345)
    with pytest.raises(PathRefused, match="another user"):
        RootDir.open(root)
    with RootDir.open(root, shared=True) as tree:
        assert tree.read_bytes("x.md", LIMIT) == b"theirs"
        tree.replace("x.md", b"ours")


@pytest.mark.spec("G1")
@pytest.mark.parametrize("victim", ["sub", "sub/deep", "sub/deep/x.md"])
@pytest.mark.parametrize("action", ["replace", "replace_if", "append", "read"])
def test_a_link_swapped_in_at_any_point_touches_nothing_outside(tmp_path: Path, outside: Path, victim: str, action: str) -> None:
    """At the k-th point of the call the directory or file is moved away and a link to the outside put in its place; for all k."""
    (outside / "deep").mkdir()
    (outside / "deep" / "x.md").write_bytes(b"precious")
    for number in range(1, 100):
        root = tmp_path / f"root{number}"
        target = outside / victim.removeprefix("sub").lstrip("/")
        seen = 0

        def swap(_: str, __: int, number: int = number, root: Path = root, target: Path = target) -> None:
            nonlocal seen
            seen += 1
            if seen == number:
                (root / victim).rename(root / "moved")
                (root / victim).symlink_to(target)

        with RootDir.open(root) as tree:
            tree.replace("sub/deep/x.md", b"old")
            with crash.watched(swap):
                try:
                    if action == "replace":
                        tree.replace("sub/deep/x.md", b"new")
                    elif action == "replace_if":
                        tree.replace_if("sub/deep/x.md", b"new", expected=b"old")
                    elif action == "append":
                        tree.append("sub/deep/x.md", [b"new"])
                    else:
                        assert tree.read_bytes("sub/deep/x.md", LIMIT) == b"old"
                except DiskError:
                    pass
        assert (outside / "deep" / "x.md").read_bytes() == b"precious"
        assert sorted(path.name for path in outside.rglob("*")) == ["deep", "x.md", "x.md"]
        if seen < number:
            assert number > 2
            return
    pytest.fail("the call never ended")


@needs_fork
def test_a_process_that_swaps_links_all_the_time_gets_nothing_written_outside(root: Path, outside: Path) -> None:
    root.mkdir()

    def swap(turn: int) -> None:
        """Links in the places of the directory and of the file, for a moment each."""
        for name, target in (("sub", outside), ("x.md", outside / "x.md")):
            with suppress(OSError):
                os.rename(root / name, root / f"away{turn}{name}")
            with suppress(OSError):
                os.symlink(target, root / name)
                os.unlink(root / name)

    def write(tree: RootDir) -> None:
        for rel in ("sub/x.md", "x.md"):
            with suppress(DiskError):
                tree.replace(rel, b"new", durability="process")
                assert tree.read_bytes(rel, LIMIT) in (None, b"new")
                tree.append(rel, [b"more"], durability="process")
                tree.unlink(rel)

    def act(number: int) -> None:
        with RootDir.open(root) as tree:
            for turn in range(300):
                write(tree) if number else swap(turn)

    together(2, act)
    assert untouched(outside)


@pytest.mark.parametrize(
    ("first", "second"), [("x.md", "X.md"), ("topic.md", "Topic.MD"), ("é.md", "e\u0301.md"), ("straße.md", "STRASSE.md")]
)
def test_a_twin_that_differs_only_in_case_or_unicode_form_is_not_made(root: Path, first: str, second: str) -> None:
    with RootDir.open(root) as tree:
        tree.replace(first, b"first")
        actions: list[Callable[[], object]] = [
            lambda: tree.replace(second, b"x"),
            lambda: tree.replace_if(second, b"x", expected=None),
            lambda: tree.append(second, [b"x"]),
            lambda: tree.rename("other", second),
            lambda: tree.replace(f"{second}/y", b"x"),
        ]
        tree.replace("other", b"x")
        for act in actions:
            with pytest.raises(PathRefused, match="spelling"):
                act()
        tree.replace(first, b"again")
    assert sorted(os.listdir(root)) == sorted([first, "other"])


def test_a_twin_of_a_directory_on_the_way_is_not_made(root: Path) -> None:
    with RootDir.open(root) as tree:
        tree.replace("team/x.md", b"x")
        with pytest.raises(PathRefused, match="spelling"):
            tree.replace("Team/y.md", b"x")
    assert os.listdir(root) == ["team"]


def test_a_file_that_another_process_makes_meanwhile_is_no_twin_of_itself(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    look = Dir.stat

    def made_behind_the_look(self: Dir, name: str) -> os.stat_result | None:
        found = look(self, name)
        if name == "log" and found is None:
            os.close(os.open(root / "log", os.O_CREAT | os.O_WRONLY, 0o600))
        return found

    with RootDir.open(root) as tree:
        monkeypatch.setattr(Dir, "stat", made_behind_the_look)
        tree.append("log", [b"a line"], durability="process")
    assert (root / "log").read_bytes() == b"a line\n"


def test_a_file_moves_within_the_root_and_replaces_nothing(root: Path) -> None:
    with RootDir.open(root) as tree:
        tree.replace("x.md", b"x")
        tree.replace("y.md", b"y")
        tree.rename("x.md", ".trash/1/x.md")
        assert tree.read_bytes(".trash/1/x.md", LIMIT) == b"x"
        with pytest.raises(PathRefused, match="exists"):
            tree.rename("y.md", ".trash/1/x.md")
        with pytest.raises(DiskError, match="no such file"):
            tree.rename("gone.md", "z.md")
        assert tree.unlink("y.md")
        tree.mkdir("d/e")
        assert [entry.name for entry in tree.listdir()] == [".trash", "d"]


@needs_fork
def test_many_processes_update_and_append_through_the_root_and_lose_nothing(root: Path) -> None:
    def act(number: int) -> None:
        with RootDir.open(root) as tree:
            for line in (b"%d %d" % (number, turn) for turn in range(20)):
                with tree.guard(".g.lock", timeout=600):
                    old = tree.read_bytes("i/MEMORY.md", LIMIT)
                    assert tree.replace_if("i/MEMORY.md", (old or b"") + line + b"\n", expected=old, durability="process")
                tree.append("i/log", [line], durability="process")

    together(6, act)
    expected = sorted(b"%d %d" % (number, turn) for number in range(6) for turn in range(20))
    assert sorted((root / "i" / "MEMORY.md").read_bytes().splitlines()) == expected
    assert sorted(line for line in (root / "i" / "log").read_bytes().splitlines() if line) == expected


def test_listing_from_two_threads_of_control_does_not_share_a_position(root: Path) -> None:
    with RootDir.open(root) as tree:
        for number in range(30):
            tree.replace(f"{number:02}.md", b"", durability="process")
        with tree.directory() as top:
            one, two = iter(top.entries()), iter(top.entries())
        names = {next(one).name, next(two).name} | {entry.name for entry in one} | {entry.name for entry in two}
        assert len(names) == 30
        assert len(tree.listdir()) == 30


def test_a_sweep_cleans_the_whole_tree_and_follows_no_link(root: Path, outside: Path) -> None:
    with RootDir.open(root) as tree:
        tree.replace("a/b/x.md", b"x")
        for place in (root, root / "a", root / "a" / "b", outside):
            (place / ".lamina-0123456789abcdef.tmp").touch()
        (root / "link").symlink_to(outside)
        assert tree.sweep() == 3
    assert (outside / ".lamina-0123456789abcdef.tmp").exists()


def test_a_root_that_was_removed_under_us_is_an_error_of_ours(root: Path) -> None:
    with RootDir.open(root) as tree:
        root.rmdir()
        with pytest.raises(DiskError):
            tree.replace("x.md", b"x")
        assert tree.read_bytes("x.md", LIMIT) is None


def test_reading_a_large_file_takes_only_its_head(root: Path) -> None:
    with RootDir.open(root) as tree:
        with open(root / "big.md", "wb") as file:
            file.truncate(1 << 34)
        head = tree.read_bytes("big.md", 4_096)
        assert head == bytes(4_096)
