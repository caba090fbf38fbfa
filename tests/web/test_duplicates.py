"""Duplicates and contradictions on the page: each decision and its undo."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from lamina.web import duplicates_data

from . import patient
from .conftest import Watched
from .made_memories import make_memories, open_memory
from .serving import Served, serving
from .test_memories import data, get, place, post, raw, undo

# Each drives a browser; the frame, a session, memories and the inbox are in the README's run.
pytestmark = pytest.mark.exhaustive

HERE = "/memories/duplicates"
PNPM, MANAGER = "uses-pnpm-not-npm.md", "package-manager.md"


@pytest.fixture(autouse=True)
def compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for each comparison, however busy the machine is."""
    monkeypatch.setattr(duplicates_data, "PATIENCE", patient.PATIENCE)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    make_memories(tmp_path)
    with open_memory(tmp_path) as memory:
        body = "The API listens on port 8080 in all of our environments, also on the machines of developers.\n"
        memory.save("API port", type="project", description="Where the API listens", body=body)
        memory.save("Port of the API", type="project", description="The port", body=body.replace("8080", "9090"))
    return tmp_path


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    with serving(home) as page:
        yield page


def pair(served: Served, home: Path, file: str) -> dict[str, str]:
    found = next(one for one in data(served, HERE)["pairs"] if file in (one["left"], one["right"]))
    return {"place": place(home), "left": found["left"], "right": found["right"], "digests": " ".join(found["digests"])}


@pytest.mark.spec("V3")
def test_a_pair_is_merged_as_one_act_or_called_distinct_and_both_can_be_undone(served: Served, home: Path) -> None:
    before = {file: raw(home, file) for file in (PNPM, MANAGER)}
    fields = pair(served, home, PNPM)
    merged = post(served, "/changes/memories/merge", **fields)
    assert merged.status_code == 200, merged.text
    assert not raw(home, fields["right"])
    for sentence in ("Install packages with pnpm, not npm.", "CI fails on package-lock.json."):
        assert raw(home, fields["left"]).partition("\n---\n")[2].count(sentence) == 1
    assert undo(served, merged).status_code == 200
    assert {file: raw(home, file) for file in before} == before
    apart = post(served, "/changes/memories/distinct", **pair(served, home, PNPM), distinct="1")
    assert all(PNPM not in (one["left"], one["right"]) for one in data(served, HERE)["pairs"])
    undo(served, apart)
    assert pair(served, home, PNPM) == fields
    one = {"place": fields["place"], "file": fields["right"], "digest": fields["digests"].split()[1], "back": HERE}
    back = undo(served, post(served, "/changes/memories/remove", **one))
    assert back.json()["location"] == HERE
    assert pair(served, home, PNPM) == fields
    with open_memory(home) as memory:
        memory.save("Package manager", type="project", description="changed", body="Changed by hand.\n")
    assert post(served, "/changes/memories/merge", **fields).status_code == 409
    assert "Changed by hand." in raw(home, MANAGER)


def test_sentences_that_may_contradict_each_other_stand_below_the_pair(served: Served, home: Path) -> None:
    found = next(one for one in data(served, HERE)["pairs"] if "api-port.md" in (one["left"], one["right"]))
    assert "8080" in str(found["contradictions"])
    assert "9090" in str(found["contradictions"])
    assert "may contradict each other" in get(served, HERE).text
    with serving(home, read_only=True) as page:
        assert "data-change" not in get(page, HERE).text


def test_the_keyboard_keeps_one_of_a_pair_and_brings_the_other_back(served: Served, home: Path, watched: Watched) -> None:
    page = watched.page()
    page.goto(served.link.replace("/?", f"{HERE}?"))
    expect(page.locator(".pair")).to_have_count(2)
    tops = (
        page.locator(".pair").first.locator("footer button").evaluate_all("all => all.map(it => it.getBoundingClientRect().top)")
    )
    assert len(set(tops)) == 1, "the buttons of a pair stand in a row"
    page.keyboard.press("j")
    expect(page.locator(".pair").first).to_be_focused()
    page.keyboard.press("x")
    expect(page.locator("#status")).to_contain_text("not duplicates")
    expect(page.locator(".pair")).to_have_count(1)
    page.keyboard.press("u")
    expect(page.locator(".pair")).to_have_count(2)
    page.get_by_role("button", name="Keep left").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#status")).to_contain_text("to the trash")
    expect(page.locator(".pair")).to_have_count(1)
    page.keyboard.press("u")
    expect(page.locator("#status")).to_contain_text("Restored")


def test_a_large_memory_is_compared_whole_in_the_background(
    served: Served, home: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(duplicates_data, "PATIENCE", 0.0)
    monkeypatch.setattr(duplicates_data, "MOST_PAIRS", 1)
    page = watched.page()
    page.goto(served.link.replace("/?", f"{HERE}?"))
    expect(page.locator(".pair")).to_have_count(1)
    expect(page.locator("main")).to_contain_text("The first 1 of 2 pairs")
    with open_memory(home) as memory:
        memory.remove("Port of the API")
    expect(page.locator(".pair")).to_contain_text("pnpm")
    expect(page.locator("main")).to_contain_text("1 pair")
    expect(page.locator("main")).not_to_contain_text("Comparing")
