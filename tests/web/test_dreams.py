"""Dreams on the page: start, watch, before and after with numbered facts, undo of one change and of all."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from lamina.disk.locks.dream_lock import DreamLock, HeldDreamLock
from lamina.layers.l6_dream.record import DreamRecord, DreamTurn, is_kill_requested, new_id, write_record
from lamina.memory.store.topic import INDEX

from . import patient
from .conftest import Watched
from .made_memories import make_memories, open_memory
from .serving import Served, serving
from .test_memories import data, get, place, post, raw, undo

# Each drives a browser; the frame, a session, memories and the inbox are in the README's run.
pytestmark = pytest.mark.exhaustive

LEFT, RIGHT = "uses-pnpm-not-npm.md", "package-manager.md"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    make_memories(tmp_path)
    return tmp_path


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    with serving(home) as page:
        yield page


def ended(served: Served) -> dict[str, Any]:
    """Return the newest dream once it has ended."""

    def look() -> dict[str, Any]:
        found = data(served, "/dreams")["dreams"]
        return dict(found[0]) if found and found[0]["status"] != "running" else {}

    return patient.wait_for(look)


@pytest.mark.spec("V3")
def test_a_dream_is_started_shown_as_before_and_after_and_undone_in_part_or_whole(served: Served, home: Path) -> None:
    empty = get(served, "/dreams").text
    assert "No dream yet." in empty
    assert "not yet, " in empty, "the list tells why no dream starts by itself"
    before = {file: raw(home, file) for file in (LEFT, RIGHT)}
    assert post(served, "/changes/dreams/start", place=place(home)).status_code == 200
    dream = ended(served)
    assert (dream["status"], len(dream["merged"])) == ("completed", 1)
    detail = data(served, dream["url"])
    assert detail["facts"]
    assert all(fact["now_in"] for fact in detail["facts"])
    shown = get(served, dream["url"]).text
    for words in ("2 memories became one", "found again in the result", "<sup>1</sup>", "Undo the whole dream", "of $"):
        assert words in shown, words
    merged = [one["file"] for one in detail["changes"] if one["before"] != one["after"]]
    fields = {"place": place(home), "dream": dream["id"]}
    one = post(served, "/changes/dreams/undo-one", **fields, files="\n".join(merged))
    assert one.status_code == 200, one.text
    assert {file: raw(home, file) for file in before} == before
    assert {change["state"] for change in data(served, dream["url"])["changes"] if change["file"] in merged} == {"undone"}
    dreamt = {file: raw(home, file) for file in (*merged, INDEX)}
    assert undo(served, one).json()["message"] == "Done again: 1 memory changed."
    assert {change["state"] for change in data(served, dream["url"])["changes"] if change["file"] in merged} == {"applied"}
    assert {file: raw(home, file) for file in (*merged, INDEX)} != dreamt
    assert post(served, "/changes/dreams/undo-one", **fields, files="\n".join(merged)).status_code == 200
    assert "undo-dream" not in get(served, dream["url"]).text, "nothing is left to undo"
    whole = post(served, "/changes/dreams/undo", **fields)
    assert whole.status_code == 200, whole.text
    assert ended(served)["status"] == "undone"
    again = post(served, "/changes/dreams/undo", **fields)
    assert (again.status_code, "already undone" in again.json()["message"]) == (400, True)


def test_a_dream_that_only_proposes_is_told_as_a_proposal_and_withdrawn(served: Served, home: Path) -> None:
    (home / ".lamina" / "settings.json").write_text('{"lamina": {"memoryMode": {"private": "confirm"}}}', "utf-8")
    before = {file: raw(home, file) for file in (LEFT, RIGHT)}
    assert post(served, "/changes/dreams/start", place=place(home)).status_code == 200
    dream = ended(served)
    shown = get(served, dream["url"]).text
    for words in ("2 memories would become one", "waits for your approval", "<dd>1 <small>", ">Withdraw</button>"):
        assert words in shown, words
    done = post(served, "/changes/dreams/undo", place=place(home), dream=dream["id"])
    assert done.json()["message"] == "1 proposal withdrawn."
    assert [one["accepted"] for one in data(served, "/memories/trash")["decided"]] == [False]
    assert undo(served, done).json()["message"] == "The proposal waits again."
    assert "waits for your approval" in get(served, dream["url"]).text
    done = post(served, "/changes/dreams/undo-one", place=place(home), dream=dream["id"], files=LEFT)
    assert done.json()["message"] == "1 proposal withdrawn."
    [decided] = data(served, "/memories/trash")["decided"]
    again = post(served, "/changes/inbox/back", ids=decided["id"])
    assert undo(served, again).json()["message"].startswith("Refused ")
    assert undo(served, again).status_code == 400, "it is decided"
    assert post(served, "/changes/dreams/undo", place=place(home), dream=dream["id"]).status_code == 200
    shown = get(served, dream["url"]).text
    for words in ("became one", "undo-dream", "Withdraw", "<dd>1 <small>"):
        assert words not in shown, words
    assert "not applied" in shown
    assert "1 proposal decided" in get(served, "/dreams").text
    assert {file: raw(home, file) for file in before} == before


def test_a_whole_dream_that_was_undone_by_mistake_is_put_in_force_again(served: Served, home: Path) -> None:
    def memories() -> dict[str, str]:
        directory = home / ".lamina" / "projects" / place(home) / "memory"
        return {path.name: path.read_text("utf-8") for path in directory.glob("*.md")}

    before = memories()
    assert post(served, "/changes/dreams/start", place=place(home)).status_code == 200
    dream, dreamt = ended(served), memories()
    assert dreamt != before
    fields = {"place": place(home), "dream": dream["id"]}
    done = post(served, "/changes/dreams/undo", **fields)
    assert memories() == before
    assert undo(served, done).status_code == 200
    assert (ended(served)["status"], memories()) == ("completed", dreamt)
    done = post(served, "/changes/dreams/undo", **fields)
    assert memories() == before
    with open_memory(home) as memory:
        memory.save("Uses pnpm, not npm", type="project", description="It is npm now.", body="It is npm now.\n")
    mine = memories()
    assert "was changed since; nothing was applied again" in undo(served, done).json()["message"]
    assert memories() == mine, "what was changed since then stays"


def test_an_empty_home_leads_to_a_first_memory_before_a_first_dream(tmp_path: Path) -> None:
    with serving(tmp_path) as page:
        shown = get(page, "/dreams").text
        assert "there are none yet" in shown
        assert 'href="/memories/new"' in shown


def test_a_running_dream_shows_its_phase_and_is_asked_to_stop(served: Served, home: Path) -> None:
    with open_memory(home) as memory:
        root = memory.store("private").store.root
        lock = DreamLock(root)
        hold = lock.acquire(lock.last_ns())
        assert isinstance(hold, HeldDreamLock)
        with hold:
            turns = (DreamTurn("Reading <the> notes.", 2),)
            record = DreamRecord(new_id(time.time()), time.time(), os.getpid(), "hand", phase="updating", turns=turns)
            write_record(root, record)
            assert data(served, "/dreams")["running"] == [place(home)]
            for path in ("/dreams", f"/dreams/{place(home)}/{record.id}"):
                shown = get(served, path).text
                assert "working on a copy" in shown
                assert "Reading &lt;the&gt; notes." in shown
            assert not is_kill_requested(root, record.id)
            told = post(served, "/changes/dreams/stop", place=place(home), dream=record.id)
            assert told.json()["message"].startswith("The dream stops.")
            assert is_kill_requested(root, record.id)


def test_an_interrupted_or_unknown_dream_is_told_and_a_read_only_page_starts_none(served: Served, home: Path) -> None:
    with open_memory(home) as memory:
        root = memory.store("private").store.root
        record = DreamRecord(new_id(time.time()), time.time(), 2**22 + 1, "hand", phase="updating")
        write_record(root, record)
    url = f"/dreams/{place(home)}/{record.id}"
    assert "interrupted" in get(served, url).text
    fields = {"place": place(home), "dream": record.id}
    told = post(served, "/changes/dreams/stop", **fields)
    assert (told.status_code, "no dream is running" in told.json()["message"]) == (400, True)
    assert "no longer kept" in get(served, f"/dreams/{place(home)}/20200101T0000-0000").text
    assert post(served, "/changes/dreams/undo-one", **fields, files=INDEX).status_code == 400
    with serving(home, read_only=True) as page:
        assert "data-change" not in get(page, "/dreams").text
        for change in ("start", "stop", "dismiss", "show-again", "undo", "undo-one", "redo"):
            assert post(page, f"/changes/dreams/{change}", **fields).status_code == 403


def test_the_page_follows_a_dream_that_is_started_on_it(served: Served, home: Path, watched: Watched) -> None:
    page = watched.page()
    page.goto(served.link.replace("/?", "/dreams?"))
    page.select_option("select[name=place]", place(home))
    page.focus("#start")
    page.keyboard.press("Enter")
    expect(page.locator(".drow", has_text="1 merged")).to_have_count(1)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("#undo-dream")
    page.focus("#undo-dream")
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_contain_text("Undone")
    page.focus("#redo-dream")
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_contain_text("Done again")
    expect(page.locator("#undo-dream")).to_be_visible()
    page.keyboard.press("u")
    expect(page.locator("#status")).to_contain_text("Undone")
    expect(page.locator("#redo-dream")).to_be_visible()
