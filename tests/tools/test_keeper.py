"""Files that something else writes: Write and Edit hand over to their keeper and tell what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from lamina.tools.tool import Context, FileChange, KeeperVerdict

from .doing import call, context, done, refused


class Keeper:
    """Keeps what ends in .kept: writes it in capitals, with a list beside it."""

    def __init__(self) -> None:
        self.asked: list[FileChange] = []

    def __call__(self, change: FileChange) -> KeeperVerdict | None:
        if change.path.suffix != ".kept":
            return None
        self.asked.append(change)
        if change.unread is not None:
            return KeeperVerdict(change.unread, is_error=True)
        data, listed = change.data.upper(), change.path.with_name("list")
        before = listed.read_bytes() if listed.exists() else b""
        change.path.write_bytes(data)
        listed.write_bytes(before + b"+")
        return KeeperVerdict("kept it", data, beside=(listed, before, before + b"+"), facts={"kind": "capitals"})


@pytest.fixture
def keeper() -> Keeper:
    return Keeper()


@pytest.fixture
def here(tmp_path: Path, keeper: Keeper) -> Context:
    return context(tmp_path, keeper=keeper)


def test_a_write_is_the_keepers_and_others_are_not(here: Context, keeper: Keeper) -> None:
    output = call("Write", here, file_path="a.kept", content="text")
    assert (output.content, output.is_error) == ("kept it", False)
    assert output.facts == {"path": str(here.cwd / "a.kept"), "bytes": 4, "kind": "capitals"}
    assert (here.cwd / "a.kept").read_text() == "TEXT"
    assert keeper.asked == [FileChange(here.cwd / "a.kept", b"text", None)]
    assert done("Write", here, file_path="b.txt", content="text").startswith("Created")
    assert len(keeper.asked) == 1


@pytest.mark.spec("X8")
def test_what_the_keeper_wrote_is_known_and_can_be_edited(here: Context) -> None:
    done("Write", here, file_path="a.kept", content="text")
    assert done("Edit", here, file_path="a.kept", old_string="TE", new_string="ne") == "kept it"
    assert (here.cwd / "a.kept").read_text() == "NEXT"


@pytest.mark.spec("X8")
def test_a_file_that_was_not_read_is_the_keepers_to_refuse(here: Context, keeper: Keeper) -> None:
    (here.cwd / "a.kept").write_text("precious")
    assert "Read it first" in refused("Write", here, file_path="a.kept", content="x")
    assert keeper.asked[0].before == b"precious"
    assert "Read it first" in refused("Edit", here, file_path="a.kept", old_string="p", new_string="q")
    assert len(keeper.asked) == 1


@pytest.mark.spec("X8")
def test_what_changed_beside_it_stays_known_to_who_knew_it(here: Context) -> None:
    done("Write", here, file_path="a.kept", content="one")
    assert "has not been read" in refused("Edit", here, file_path="list", old_string="+", new_string="-")
    done("Read", here, file_path="list")
    done("Write", here, file_path="b.kept", content="two")
    done("Edit", here, file_path="list", old_string="++", new_string="-")
    (here.cwd / "list").write_text("theirs")
    done("Write", here, file_path="c.kept", content="three")
    assert "since it was read" in refused("Edit", here, file_path="list", old_string="theirs", new_string="-")
