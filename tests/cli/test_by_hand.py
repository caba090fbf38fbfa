"""`lamina sessions undo | expand | pin` on a recorded session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lamina.session.session import Session

from .running import failed, here, misused


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("LAMINA_HOME", str(tmp_path / "home"))
    return place


@pytest.fixture
def session(work: Path, tmp_path: Path) -> str:
    """A recorded session that was compacted by hand."""
    with Session("offline", home=tmp_path / "home", cwd=work, window=12_000, policy="classic") as session:
        for number in range(30):
            session.add_user(f"The port of service {number} is {8000 + number}. " + "word " * 100)
            session.ask()
        assert session.compact("keep the ports").done
    return session.id


def shown(*arguments: str) -> Any:
    done = here("sessions", *arguments, "--json")
    assert done.returncode == 0, done
    return json.loads(done.stdout)


@pytest.mark.spec("B1")
def test_what_a_summary_stands_for_is_shown_and_the_compaction_taken_back(session: str) -> None:
    decisions = shown("show", session)["decisions"]
    node = decisions[-1]["id"]
    opened = shown("expand", session, node[:8])
    assert "The port of service 3 is 8003." in opened["text"]
    assert opened["page"] == 1
    text = here("sessions", "expand", session[:8], node).stdout
    assert "The port of service 3 is 8003." in text
    before = shown("show", session)
    undone = shown("undo", session)
    assert (undone["undone"], undone["kind"], undone["session_id"]) == (node, "compaction", session)
    after = shown("show", session)
    assert "The port of service 3 is 8003." in str(after["messages"])
    assert "The port of service 3 is 8003." not in str(before["messages"])
    assert failed(here("sessions", "undo", session))


@pytest.mark.spec("B2")
def test_a_pin_is_kept_and_listed_and_taken_back(session: str) -> None:
    pinned = shown("pin", session, "never push to main")
    assert pinned["pins"] == {pinned["pinned"]: "never push to main"}
    assert "never push to main" in here("sessions", "pin", session).stdout
    assert shown("undo", session, pinned["pinned"][:8])["kind"] == "pin"
    assert shown("pin", session)["pins"] == {}


@pytest.mark.spec("C10")
def test_turns_are_listed_taken_out_and_brought_back(session: str) -> None:
    shown("undo", session)
    turns = shown("snip", session)["turns"]
    assert [turn["number"] for turn in turns] == list(range(1, 31))
    assert turns[2]["words"].startswith("The port of service 2 is 8002.")
    assert "The port of service 2 is 8002." in here("sessions", "snip", session).stdout
    done = shown("snip", session, "3-4")
    assert done["tokens"] < done["tokens_before"]
    left = str(shown("show", session)["messages"])
    assert "8003" not in left
    assert "8004" in left
    assert "8003" in shown("expand", session, done["snipped"])["text"]
    assert shown("undo", session)["kind"] == "snip"
    for wrong in ("0", "4-2", "31", "x", "2-y"):
        assert misused(here("sessions", "snip", session, wrong))


def test_what_is_not_there_is_said_in_one_sentence(session: str) -> None:
    assert misused(here("sessions", "expand", session, "ffffffff"))
    assert misused(here("sessions", "undo", session, "ffffffff"))
    assert misused(here("sessions", "expand", session, shown("show", session)["decisions"][-1]["id"], "--page", "99"))
    assert misused(here("sessions", "pin", session, "--message", "nowhere"))
    assert misused(here("sessions", "undo", "00000000"))


@pytest.mark.spec("C10")
def test_turns_are_listed_where_a_summary_stands_for_all_of_them(session: str) -> None:
    assert shown("snip", session)["turns"] == []
    assert misused(here("sessions", "snip", session, "1"))
