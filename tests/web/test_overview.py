"""The overview: figures, money by day and model, what runs, cache breaks by cause, empty states, in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import expect

from . import patient
from .conftest import Watched
from .looks import bad_contrast, small_or_unnamed
from .made_home import ASKED, ClaudeSession, make_home, small_session
from .serving import Served, serving

# Each drives a browser; the frame, a session, memories and the inbox are in the README's run.
pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("home")
    make_home(root, now=datetime.now(UTC) - timedelta(hours=1), others=9)
    running = root / ".claude" / "projects" / "-run" / "00000000-0000-4000-8000-00000000000b.jsonl"
    small_session(running, str(root / "run"), ASKED[1], datetime.now(UTC), 3).write(datetime.now(UTC))
    with serving(root) as page:
        yield page


def get(served: Served, path: str) -> httpx2.Response:
    return patient.get(served.base + path, cookies=served.cookies())


@pytest.mark.spec("V4")
def test_money_by_day_and_model_adds_up_and_a_project_can_be_chosen(served: Served) -> None:
    data = get(served, "/?format=json&days=30").json()
    total = sum(one["usd_read"] + one["usd_written"] + one["usd_output"] for one in data["days"])
    listed = get(served, "/sessions?format=json").json()["sessions"]
    assert total == pytest.approx(sum(one["cost_usd"] for one in listed))
    shown = get(served, "/?days=30").text
    assert f"Last 30 days: {len(listed)} sessions, ${total:,.2f} at list price" in shown
    project = listed[0]["project"]
    only = get(served, f"/?format=json&days=30&project={project}").json()
    assert {one["project"] for one in only["days"]} == {project}
    assert get(served, "/?days=999999&project=nowhere").status_code == 200


@pytest.mark.spec("V4", "V2")
def test_the_chart_the_running_session_and_the_causes_are_shown(watched: Watched, served: Served) -> None:
    page = watched.page()
    page.goto(served.link)
    page.wait_for_selector("#days path.area")
    expect(page.locator("#day")).to_contain_text("written $")
    expect(page.locator("#causes table")).to_contain_text(
        "Results cleared2 times"
    )  # when they arrive, the newest day is shown again
    page.keyboard.press("Home")
    expect(page.locator("#day")).to_contain_text("no costs recorded")
    expect(page.locator(".row:has(progress)")).to_contain_text("Yes, fix it in tax.py")
    expect(page.locator("progress")).to_have_attribute("max", "200000")
    again = [int(one.replace(",", "")) for one in page.locator("#causes td:nth-child(3)").all_inner_texts()]
    expect(page.locator("#causes")).to_contain_text(f"The cache broke 3 times: {sum(again):,} tokens were written again.")
    assert page.locator("text=/The cache broke .* times/").count() == 1
    page.click("#as-table summary")
    assert page.locator("#as-table tbody tr").count() == 7
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for width in (1_400, 360):
            page.set_viewport_size({"width": width, "height": 900})
            assert (bad_contrast(page), small_or_unnamed(page)) == ([], [])
            page.wait_for_function("width => document.documentElement.scrollWidth <= width", arg=width)  # the chart is drawn anew
    page.set_viewport_size({"width": 1_600, "height": 900})
    days = page.locator("#days text").filter(has_text=re.compile("^[0-9]+ [A-Z]"))
    expect(days).to_have_count(7)
    assert len(set(days.all_text_contents())) == 7, "each day once"
    page.set_viewport_size({"width": 1_400, "height": 900})
    page.locator("#causes a").first.click()
    page.wait_for_selector("#chart svg path.area")


@pytest.mark.spec("V4", "B9")
def test_background_work_by_layer_and_the_newest_memory_are_shown(tmp_path: Path) -> None:
    from lamina.core.budget import LedgerLine
    from lamina.disk.home.ledger import UsageLedger

    now, ledger = datetime.now(UTC).timestamp(), UsageLedger(tmp_path / ".lamina")
    ledger.add(LedgerLine(now, "dream", "shop", model="claude-sonnet-4-5", input=9_000, output=70, usd=0.25))
    ledger.add(LedgerLine(now, "dream", "shop", model="claude-sonnet-4-5", input=1_000, output=30, usd=0.10))
    ledger.add(LedgerLine(now, "extraction", "shop", model="someone's", input=500, output=5))
    memory = tmp_path / ".lamina" / "projects" / "-p" / "memory" / "project_port.md"
    memory.parent.mkdir(parents=True)
    memory.write_text("---\nname: port\ndescription: The service listens on 8000.\ntype: project\n---\nIt does.\n")
    with serving(tmp_path) as page:
        shown = get(page, "/").text
    assert 'href="/memories/-p/project_port.md"' in shown
    assert "<td><bdi>dream</bdi></td><td>2</td><td>0</td><td>10,000 uncached</td><td>100</td><td>$0.35</td>" in shown
    assert (
        "<td><bdi>extraction</bdi></td><td>1</td><td>0</td><td>500 uncached</td><td>5</td><td>Price unknown for 1 call.</td>"
        in shown
    )


@pytest.mark.spec("V4")
def test_a_period_without_costs_offers_the_newest_one_with_costs(tmp_path: Path) -> None:
    start = datetime(2026, 2, 14, 12, tzinfo=UTC)
    path = tmp_path / ".claude" / "projects" / "-p" / "00000000-0000-4000-8000-00000000000d.jsonl"
    small_session(path, "/p", ASKED[0], start, 3).write(datetime.now(UTC))
    with serving(tmp_path) as page:
        empty, newest = get(page, "/?project=/p").text, get(page, "/?days=7&until=2026-02-14&project=/p").text
        days = get(page, "/?days=7&until=2026-02-14&format=json").json()["days"]
        assert get(page, "/?until=0001-01-01").status_code == get(page, "/?until=x").status_code == 200
    assert 'href="/?days=7&amp;until=2026-02-14&amp;project=%2Fp"' in empty
    assert "no costs recorded" in empty
    assert "$0.00" not in empty
    assert "7 days up to 14 Feb 2026: 1 session, $" in newest
    assert [one["day"] for one in days] == ["2026-02-14"]


def test_caches_that_expired_in_pauses_are_one_cause_with_its_cost(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "projects" / "-p" / "00000000-0000-4000-8000-00000000000d.jsonl"
    made = ClaudeSession(path, "/p", start=datetime.now(UTC) - timedelta(hours=3))
    for minutes in (1, 12, 31):
        made.pause(minutes)
        made.cached = 0
        made.user(ASKED[0])
        made.answer({"type": "text", "text": "Done."})
    made.write()
    with serving(tmp_path) as page:
        shown = patient.wait_for(lambda: found if "Show the worst" in (found := get(page, "/").text) else "")
    row = re.search(r"<tr><td><bdi>Cache expired in a pause</bdi></td><td>2 times</td><td>([\d,]+)</td><td>(.*?)</td>", shown)
    assert row is not None
    # Sonnet, in dollars a million: written 3.75, read 0.30.
    assert row[2] == f"${int(row[1].replace(',', '')) * 3.45e-6:.2f}"


def test_an_empty_home_has_an_overview_that_says_so(tmp_path: Path) -> None:
    with serving(tmp_path, read_only=True) as empty:
        shown = get(empty, "/").text
        for sentence in ("no costs recorded", "Nothing waits for you.", "No session runs.", "Nothing remembered yet."):
            assert sentence in shown
    assert not (tmp_path / ".lamina").exists()


@pytest.mark.spec("V5")
def test_news_leave_the_chart_at_the_day_that_was_chosen(tmp_path: Path, watched: Watched) -> None:
    now = datetime.now(UTC)
    make_home(tmp_path, now=now - timedelta(hours=1), others=9)
    with serving(tmp_path) as served:
        page = watched.page()
        page.goto(served.link)
        expect(page.locator("html")).to_have_attribute("data-live", "1")
        expect(page.locator("#causes [role=status]")).to_have_count(0)
        page.locator(".scrub").focus()
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
        chosen = page.locator("#day").inner_text()
        path = tmp_path / ".claude" / "projects" / "-new" / "00000000-0000-4000-8000-00000000000d.jsonl"
        small_session(path, str(tmp_path / "new"), "A session that was not there before", now, 5).write(now)
        expect(page.locator("main")).to_contain_text("A session that was not there before")
        expect(page.locator("#day")).to_have_text(chosen)
        expect(page.locator(".scrub")).to_be_focused()
        page.keyboard.press("ArrowRight")
        expect(page.locator("#day")).not_to_have_text(chosen)


@pytest.mark.spec("V6")
@pytest.mark.parametrize("width", [360, 1_400])
def test_each_label_below_the_chart_is_a_day_of_it(watched: Watched, served: Served, width: int) -> None:
    page = watched.page()
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(served.link)
    page.wait_for_selector("#days path.area")
    days = json.loads(page.locator("#days").get_attribute("data-series") or "")["columns"]
    labels = page.locator("#days text").all_text_contents()
    below = labels[labels.index(days[0]) :]
    assert len(days) == 7
    assert len(below) > 1
    assert set(below) <= set(days)


@pytest.mark.spec("V4")
def test_a_day_without_costs_says_so_instead_of_a_share_of_nothing(tmp_path: Path) -> None:
    yesterday = datetime.now(UTC) - timedelta(days=1)
    path = tmp_path / ".claude" / "projects" / "-old" / "00000000-0000-4000-8000-00000000000e.jsonl"
    small_session(path, str(tmp_path / "old"), ASKED[1], yesterday - timedelta(minutes=5), 3).write(yesterday)
    with serving(tmp_path) as served:
        found = re.search(r'id="day" role="status">([^<]+)<', get(served, "/").text)
        assert found is not None
        assert re.fullmatch(r"\d+ [A-Z][a-z]+: no costs recorded", found[1])
