"""The way back from an undo of a dream: every byte that the undo removed, or one sentence and no change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from lamina.memory.store.topic import INDEX

from . import patient
from .made_memories import MadeOnce, make_memories, open_memory
from .serving import Served, serving
from .test_memories import data, get, place, post, undo

GONE = "- [Gone](gone.md) — this file is missing\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    return MadeOnce(tmp_path_factory.mktemp("home"), make_memories)


@pytest.fixture
def home(made: MadeOnce, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return made.put_back()


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    with serving(home) as page:
        yield page


def directory(home: Path) -> Path:
    return home / ".lamina" / "projects" / place(home) / "memory"


def memories(home: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory(home).glob("*.md")}


def break_index(home: Path) -> None:
    """Add a line that a dream removes from the index, and one of the user's."""
    index = directory(home) / INDEX
    index.write_text(f"# Shop\n{GONE}{index.read_text('utf-8')}", "utf-8")


def ask_first(home: Path) -> None:
    (home / ".lamina" / "settings.json").write_text('{"lamina": {"memoryMode": {"private": "confirm"}}}', "utf-8")


def dreamt(served: Served, home: Path) -> dict[str, Any]:
    """Run a dream and return it with its changes."""
    assert post(served, "/changes/dreams/start", place=place(home)).status_code == 200

    def look() -> dict[str, Any]:
        found = data(served, "/dreams")["dreams"]
        return dict(found[0]) if found and found[0]["status"] != "running" else {}

    dream = patient.wait_for(look)
    assert dream["status"] == "completed"
    return dream | {"changes": data(served, dream["url"])["changes"]}


def accept_all(served: Served) -> None:
    shown = get(served, "/memories").text
    for ids in [part.partition('"')[0] for part in shown.split('name="ids" value="')[1:2]]:
        answer = post(served, "/changes/inbox/accept", ids=ids)
        assert answer.status_code == 200, answer.text


def undo_whole(served: Served, home: Path, dream: dict[str, Any]) -> httpx2.Response:
    return post(served, "/changes/dreams/undo", place=place(home), dream=dream["id"])


def undo_one(served: Served, home: Path, dream: dict[str, Any]) -> httpx2.Response:
    files = [one["file"] for one in dream["changes"] if one["before"] != one["after"]]
    return post(served, "/changes/dreams/undo-one", place=place(home), dream=dream["id"], files="\n".join(files))


def status(served: Served, dream: dict[str, Any]) -> str:
    return str(data(served, dream["url"])["status"])


@pytest.mark.spec("V3", "B4")
@pytest.mark.parametrize("approved", [False, True], ids=["index", "approved"])
def test_undo_redo_and_undo_again_restore_every_byte(served: Served, home: Path, approved: bool) -> None:
    if approved:
        ask_first(home)
    else:
        break_index(home)
    before = memories(home)
    dream = dreamt(served, home)
    assert approved or (INDEX in dream["files"] and GONE.encode() not in memories(home)[INDEX])
    if approved:
        assert memories(home) == before
        accept_all(served)
    after = memories(home)
    assert after.keys() != before.keys()
    undone = undo_whole(served, home, dream)
    assert (memories(home), status(served, dream)) == (before, "undone")
    again = undo(served, undone)
    assert again.json()["message"].startswith("Done again: "), again.text
    assert (memories(home), status(served, dream)) == (after, "completed")
    undone = undo(served, again)
    assert undone.status_code == 200, undone.text
    assert (memories(home), status(served, dream)) == (before, "undone")
    assert undo(served, undone).status_code == 200
    assert memories(home) == after


@pytest.mark.spec("V3", "B4")
def test_one_change_is_undone_then_the_whole_dream_and_both_come_again(served: Served, home: Path) -> None:
    break_index(home)
    before = memories(home)
    dream, after = dreamt(served, home), memories(home)
    one = undo_one(served, home, dream)
    between = memories(home)
    whole = undo_whole(served, home, dream)
    assert memories(home) == before
    early = undo(served, one)
    assert (early.status_code, early.json()["message"]) == (
        400,
        f"dream {dream['id']}: was undone as a whole since; apply that again first.",
    )
    assert memories(home) == before
    assert undo(served, whole).status_code == 200
    assert (memories(home), status(served, dream)) == (between, "completed")
    assert undo(served, one).status_code == 200
    assert memories(home) == after


@pytest.mark.parametrize("approved", [False, True], ids=["index", "approved"])
def test_a_memory_that_was_edited_meanwhile_is_told_and_nothing_is_lost(served: Served, home: Path, approved: bool) -> None:
    if approved:
        ask_first(home)
    else:
        break_index(home)
    dream = dreamt(served, home)
    if approved:
        accept_all(served)
    after = memories(home)
    undone = undo_whole(served, home, dream)
    before = memories(home)
    name = next(one["file"] for one in dream["changes"] if one["before"] != one["after"])
    (directory(home) / name).write_bytes(before[name] + b"By hand.\n")
    mine = memories(home)
    told = undo(served, undone)
    assert told.status_code == 400
    assert told.json()["message"] == f"{name}: was changed since; nothing was applied again."
    assert (memories(home), status(served, dream)) == (mine, "undone")
    (directory(home) / name).write_bytes(before[name])
    assert undo(served, undone).status_code == 200
    assert memories(home) == after


def test_of_two_tabs_the_second_is_told_and_changes_nothing(served: Served, home: Path) -> None:
    break_index(home)
    dream, after = dreamt(served, home), memories(home)
    undone = undo_whole(served, home, dream)
    second = undo_whole(served, home, dream)
    assert (second.status_code, "is already undone" in second.json()["message"]) == (400, True)
    assert undo(served, undone).status_code == 200
    second = undo(served, undone)
    assert second.status_code == 400
    assert second.json()["message"] == f"dream {dream['id']}: has nothing to apply again; look at the dream to see its changes."
    assert memories(home) == after


def test_after_a_restart_the_page_of_the_dream_offers_the_way_back(home: Path) -> None:
    break_index(home)
    with serving(home) as page:
        dream, after = dreamt(page, home), memories(home)
        whole = undo_whole(page, home, dream)
    with serving(home, read_only=True) as page:
        assert "redo-dream" not in get(page, dream["url"]).text
        asked = whole.json()["undo"]
        assert post(page, asked["url"], **asked["fields"]).status_code == 403
        assert memories(home) != after
    with serving(home) as page:
        assert 'id="redo-dream"' in get(page, dream["url"]).text
        assert undo(page, whole).status_code == 200
        assert memories(home) == after
        assert "redo-dream" not in get(page, dream["url"]).text


def test_a_memory_that_takes_no_changes_is_not_changed_by_a_way_back(served: Served, home: Path) -> None:
    break_index(home)
    dream = dreamt(served, home)
    undone = undo_whole(served, home, dream)
    (home / ".lamina" / "settings.json").write_text('{"lamina": {"memoryMode": {"private": "read-only"}}}', "utf-8")
    before = memories(home)
    told = undo(served, undone)
    assert (told.status_code, "private memory is read-only" in told.json()["message"]) == (400, True)
    assert memories(home) == before


def test_what_was_added_meanwhile_keeps_its_line(served: Served, home: Path) -> None:
    break_index(home)
    dream, after = dreamt(served, home), memories(home)
    undone = undo_whole(served, home, dream)
    with open_memory(home) as memory:
        memory.save("Zed", type="project", description="The editor is Zed.", body="The editor is Zed.\n")
    index = directory(home) / INDEX
    index.write_text(f"{index.read_text('utf-8')}A line of mine.\n", "utf-8")
    assert undo(served, undone).status_code == 200
    rows = memories(home)[INDEX].decode().splitlines()
    assert [row for row in rows if "zed.md" not in row and row != "A line of mine."] == after[INDEX].decode().splitlines()
    assert ("- [Zed](zed.md) — The editor is Zed." in rows, "A line of mine." in rows) == (True, True)
    assert {file: text for file, text in memories(home).items() if file not in (INDEX, "zed.md")} == {
        file: text for file, text in after.items() if file != INDEX
    }
