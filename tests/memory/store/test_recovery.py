"""Several files put back as one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lamina.disk import crash_points as crash
from lamina.memory.store.contract import ChangeReason
from lamina.memory.store.directory import DirectoryStore
from lamina.memory.store.draft import Draft
from lamina.memory.store.history import hold_guard
from lamina.memory.store.journal import digest_of
from lamina.memory.store.recovery import FileToRestore, restore_files

ME = ChangeReason("user", "undone")


@pytest.mark.spec("B4")
def test_a_file_that_is_known_goes_back_and_another_stays(tmp_path: Path) -> None:
    where = tmp_path / "m"
    with DirectoryStore.open(where, durability="process") as store:
        for name in ("a", "b", "c"):
            store.save(Draft(name, "project", f"about {name}", "new"), why=ME)
        known = {name: {digest_of((where / f"{name}.md").read_bytes())} for name in ("a", "c")}
        wanted = [
            FileToRestore("c.md", None, known["c"]),
            FileToRestore("a.md", b"as it was", known["a"], 10**18),
            FileToRestore("b.md", b"as it was", {"another"}),
            FileToRestore("gone.md", b"back again", {""}, 10**18),
        ]
        with hold_guard(store.root):
            done = restore_files(store, wanted, index=lambda now, back: f"{now}# {len(back)}\n", why=ME)
        assert (done.back, done.left) == (("a.md", "gone.md", "c.md"), ("b.md",))
        assert (where / "a.md").read_bytes() == b"as it was"
        assert os.stat(where / "a.md").st_mtime_ns == 10**18
        assert (where / "gone.md").read_bytes() == b"back again"
        assert not (where / "c.md").exists()
        assert store.index().endswith("# 3\n")
        assert "](c.md)" not in store.index()
        assert [version.action for version in store.log("a.md")] == ["restore", "save"]
        with hold_guard(store.root):
            again = restore_files(store, wanted, index=lambda now, back: now, why=ME)
        assert again.back == done.back
        assert len(store.log("a.md")) == 2, "what is back already is not told again"


@pytest.mark.spec("B4", "Z3")
@pytest.mark.parametrize("file", ["a.md", "b.md"])
def test_a_person_who_saves_at_that_moment_wins(tmp_path: Path, file: str) -> None:
    where = tmp_path / "m"
    with DirectoryStore.open(where, durability="process") as store:
        for name in ("a", "b"):
            store.save(Draft(name, "project", f"about {name}", "new"), why=ME)
        known = {name: {digest_of((where / name).read_bytes())} for name in ("a.md", "b.md")}

        def edit(name: str, _: int) -> None:
            if name == "file.open":
                (where / file).write_text("by hand")

        with hold_guard(store.root), crash.watched(edit):
            done = restore_files(
                store,
                [FileToRestore("a.md", b"x", known["a.md"]), FileToRestore("b.md", None, known["b.md"])],
                index=lambda now, _: now,
                why=ME,
            )
        assert file in done.left
        assert (where / file).read_text() == "by hand"
