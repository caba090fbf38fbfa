"""The inbox on the page: reason, message and difference before the buttons; each decision and its undo."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from lamina.memory.store.contract import ChangeReason

from .conftest import Watched
from .made_home import WINDOW_SESSION, make_home
from .made_memories import MadeOnce, make_memories, make_proposals, open_memory
from .serving import Served, serving
from .test_memories import data, get, post, raw, undo

NEW = "prefers-table-driven-tests.md"
GRAFANA = "grafana-board-for-checkout.md"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    return MadeOnce(tmp_path_factory.mktemp("home"), make_memories, make_proposals)


@pytest.fixture
def home(made: MadeOnce) -> Path:
    return made.put_back()


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    with serving(home) as page:
        yield page


def waiting(served: Served) -> dict[str, Any]:
    return {one["name"]: one for one in data(served, "/memories")["waiting"]}


@pytest.mark.spec("V3")
def test_a_proposal_shows_its_reason_the_quoted_message_and_the_difference(tmp_path: Path) -> None:
    session = make_home(tmp_path, others=0)
    make_memories(tmp_path)
    message = next(row.split('"uuid": "')[1][:36] for row in session.read_text("utf-8").splitlines() if '"type": "user"' in row)
    make_proposals(tmp_path, WINDOW_SESSION, message)
    url = f"/sessions/claude-code/{WINDOW_SESSION}"
    with serving(tmp_path) as page:
        get(page, "/sessions")
        shown = get(page, "/memories").text
        to_turn = get(page, f"{url}/messages/{message}")
    assert "you corrected the region" in shown
    assert "“Orders over 1,000 are rounded twice." in shown
    assert f"{url}/messages/{message}" in shown
    assert to_turn.headers["location"] == f"{url}?turn=1&show={message}"
    assert "<mark>us-east-1</mark>" in shown
    assert 'aria-label="3 waiting"' in shown


@pytest.mark.spec("V3", "V6")
def test_each_decision_has_an_undo_that_lets_the_proposal_wait_again(served: Served, home: Path) -> None:
    before, asked = raw(home), waiting(served)
    assert len(asked) == 3
    for name, action in ((name, action) for name in asked for action in ("accept", "refuse")):
        done = post(served, f"/changes/inbox/{action}", ids=asked[name]["token"])
        assert done.status_code == 200, done.text
        assert name not in waiting(served)
        undo(served, done)
        assert waiting(served) == asked
    assert raw(home) == before
    every = post(served, "/changes/inbox/accept", ids=" ".join(one["token"] for one in asked.values()))
    assert ("eu-west-1" in raw(home), bool(raw(home, NEW)), raw(home, GRAFANA)) == (True, True, "")
    with serving(home) as later:
        assert [one["accepted"] for one in data(later, "/memories/trash")["decided"]] == [True, True, True]
        assert "Decided proposals" in get(later, "/memories/trash").text
        undo(later, every)
        assert data(later, "/memories/trash")["decided"] == []
    assert (raw(home) == before, raw(home, NEW), bool(raw(home, GRAFANA))) == (True, "", True)
    assert waiting(served) == asked


def test_the_number_of_proposals_in_the_navigation_is_right_after_each_decision(served: Served) -> None:
    tokens = [one["token"] for one in waiting(served).values()]
    for left, token in ((2, tokens[0]), (1, tokens[1])):
        assert f'aria-label="{left + 1} waiting"' in get(served, "/memories").text
        post(served, "/changes/inbox/refuse", ids=token)
        assert f'aria-label="{left} waiting"' in get(served, "/memories").text


def test_an_edited_proposal_is_saved_as_the_users_own_text(served: Served, home: Path) -> None:
    asked = waiting(served)["Prefers table-driven tests"]
    shown = get(served, f"/memories?proposal={asked['id']}").text
    assert "Write tests as tables.\n</textarea>" in shown
    fields = {"ids": asked["token"], "type": "feedback", "description": "Tables.", "body": "Only for pure functions."}
    done = post(served, "/changes/inbox/edit", **fields)
    assert "Only for pure functions." in raw(home, NEW)
    with open_memory(home) as memory:
        why = memory.log(NEW)[0].why
    assert why is not None
    assert why.who == "user"
    undo(served, done)
    assert not raw(home, NEW)
    assert len(waiting(served)) == 3


@pytest.mark.spec("V6")
def test_a_proposal_that_was_decided_or_renewed_elsewhere_is_not_applied(served: Served, home: Path) -> None:
    asked = waiting(served)
    change = asked["Deploys to staging"]
    with open_memory(home) as memory:
        memory.save("Deploys to staging", type="project", description="by hand", body="Changed by hand.\n")
        memory.reject(asked["Prefers table-driven tests"]["id"])
    told = post(served, "/changes/inbox/accept", ids=change["token"])
    assert (told.status_code, "has changed since" in told.json()["message"]) == (400, True)
    assert post(served, "/changes/inbox/accept", ids=change["token"]).status_code == 409, "the diff is a new one now"
    gone = post(served, "/changes/inbox/accept", ids=asked["Prefers table-driven tests"]["token"])
    assert (gone.status_code, "already decided" in gone.json()["message"]) == (400, True)
    assert post(served, "/changes/inbox/back", ids="000000000000").status_code == 400
    assert "Changed by hand." in raw(home)
    with serving(home, read_only=True) as page:
        assert "data-change" not in get(page, "/memories").text
        assert post(page, "/changes/inbox/accept", ids=waiting(page)["Deploys to staging"]["token"]).status_code == 403


@pytest.mark.exhaustive
def test_the_keyboard_accepts_and_refuses_the_proposal_that_has_the_focus(served: Served, home: Path, watched: Watched) -> None:
    page = watched.page()
    page.goto(served.link.replace("/?", "/memories?"))
    expect(page.locator(".prop")).to_have_count(3)
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator(".prop").nth(1)).to_be_focused()
    page.keyboard.press("x")
    expect(page.locator("#status")).to_contain_text("Refused “Prefers table-driven tests”.")
    expect(page.locator(".prop").nth(1)).to_be_focused()
    page.keyboard.press("u")
    expect(page.locator("#status")).to_contain_text("waits again")
    expect(page.locator(".prop").nth(1)).to_be_focused()
    page.keyboard.press("a")
    expect(page.locator("#status")).to_contain_text("Accepted “Prefers table-driven tests”.")
    assert raw(home, NEW)
    page.keyboard.press("u")
    expect(page.locator("#status")).to_contain_text("waits again")
    assert not raw(home, NEW)
    expect(page.locator(".prop").nth(1)).to_be_focused()
    page.keyboard.press("e")
    expect(page.locator(".prop input[name=description]")).to_be_focused()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("axe")
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_contain_text("Accepted “Prefers table-driven tests”.")
    assert "description: axe\n" in raw(home, NEW)


@pytest.mark.spec("V3", "U4")
def test_recent_changes_of_clients_are_shown_and_taken_back(served: Served, home: Path) -> None:
    why = ChangeReason("agent", "saved by cursor over MCP", client="cursor")
    with open_memory(home) as memory:
        memory.save("audit", type="project", description="The audit ends in May", body="The audit ends in May.", why=why)
        memory.save("Uses pnpm, not npm", type="project", description="Install with npm", body="Install with npm.", why=why)
    shown = get(served, "/memories").text
    assert "Recent changes by MCP clients" in shown
    assert "It waits: cursor did not write this memory" in shown
    [recent] = data(served, "/memories")["recent"]
    assert (recent["name"], recent["client"]) == ("audit", "cursor")
    done = post(served, "/changes/inbox/undo", id=recent["id"])
    assert done.json()["message"] == "Took back the change of “audit” by cursor."
    assert data(served, "/memories")["recent"] == []
    assert post(served, "/changes/inbox/undo", id=recent["id"]).status_code == 400
    with open_memory(home) as memory:
        assert memory.get("audit") is None
