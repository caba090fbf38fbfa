"""The frame in a real browser: the first look of the stream, a server started again, the focus, ways back, narrow windows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from .conftest import Watched
from .made_home import WINDOW_SESSION, make_home, window_session
from .made_memories import make_memories, make_proposals
from .serving import Served, serving

# Each drives a browser; the frame, a session, memories and the inbox are in the README's run.
pytestmark = pytest.mark.exhaustive

ADDRESS = f"/sessions/claude-code/{WINDOW_SESSION}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("home")
    make_home(root, others=1)
    make_memories(root)
    make_proposals(root)
    with serving(root) as page:
        yield page


def focused(page: Page) -> str:
    found: str = page.evaluate("(document.activeElement.getAttribute('aria-label') || document.activeElement.textContent).trim()")
    return found


@pytest.mark.spec("V5")
def test_what_changed_before_the_stream_began_is_shown(tmp_path: Path, watched: Watched) -> None:
    path = make_home(tmp_path, others=0)
    session = window_session(path, str(tmp_path / "work" / "shop-api"))
    held: list[Route] = []
    with serving(tmp_path) as served:
        page = watched.page()
        page.goto(served.link)
        page.route("**/live?*", lambda route: held.append(route), times=1)
        page.goto(f"{served.base}{ADDRESS}?r=9999")
        page.wait_for_selector("#chart svg path.area")
        count = int(page.locator(".scrub").get_attribute("max") or 0)
        known = len(session.rows)
        session.user("Said before the stream began.")
        session.answer({"type": "text", "text": "Yes."})
        with open(path, "a", encoding="utf-8") as file:
            file.write("".join(json.dumps(row) + "\n" for row in session.rows[known:]))
        assert held
        held[0].continue_()
        expect(page.locator(".scrub")).to_have_attribute("max", str(count + 1))
        expect(page.locator("#req")).to_have_attribute("data-number", str(count + 1))
        page.wait_for_selector("#blocks:not([aria-busy])")
        path.unlink()
        notice = page.locator("#main .notice")
        expect(notice).to_contain_text("This session is no longer on disk.")
        expect(page.locator("#main .live")).to_have_count(0)
        watched.expect("404")
        page.clock.install()
        page.clock.fast_forward(20_000)
        notice.get_by_role("link", name="Back to the sessions").click()
        page.wait_for_url("**/sessions")


@pytest.mark.spec("V6")
def test_a_page_left_open_says_that_the_server_was_started_again(page: Page, served: Served, watched: Watched) -> None:
    page.goto(f"{served.base}/memories")
    cookie = served.keys.cookie
    served.keys.cookie = "of another run"
    try:
        page.get_by_role("button", name="Accept").first.click()
        expect(page.locator("#status")).to_have_text("The server was started again. Open the new link from its terminal.")
    finally:
        served.keys.cookie = cookie
        watched.expect("401")


@pytest.mark.spec("V5")
def test_a_page_whose_server_stopped_says_so_whatever_is_tried(tmp_path: Path, watched: Watched) -> None:
    make_memories(tmp_path)
    page = watched.page()
    with serving(tmp_path) as served:
        page.goto(served.link)
        page.goto(f"{served.base}/memories")
        expect(page.locator("html")).to_have_attribute("data-live", "1")
    status = page.locator("#status")
    expect(status).to_contain_text("Not live: the server stopped.")
    page.locator("main [data-find] input[type=search]").fill("staging")
    expect(status).to_contain_text("The server did not answer.")
    page.evaluate("document.getElementById('status').textContent = ''")
    page.locator('.top nav a[href="/sessions"]').click()
    expect(status).to_contain_text("The server did not answer.")


@pytest.mark.spec("V6")
def test_the_focus_goes_to_the_next_proposal_and_back_with_an_undo(page: Page, served: Served) -> None:
    page.goto(f"{served.base}/memories")
    buttons = page.locator(".prop [data-hotkey=x]")
    expect(buttons).to_have_count(3)
    names = [one.get_attribute("aria-label") for one in buttons.all()]
    buttons.nth(0).focus()
    page.keyboard.press("Enter")
    expect(buttons).to_have_count(2)
    expect(page.locator("#undo")).to_be_visible()
    assert focused(page) == names[1]
    page.locator("#undo").focus()
    page.keyboard.press("Enter")
    expect(buttons).to_have_count(3)
    expect(page.locator("#status")).to_contain_text("waits again")
    assert focused(page) == names[0]


@pytest.mark.spec("V6")
def test_the_focus_stays_at_a_setting_that_was_saved_undone_or_in_conflict(page: Page, served: Served, watched: Watched) -> None:
    page.goto(f"{served.base}/settings")
    row = page.locator('[id="lamina.notes.firstAt"]')
    row.locator("input.val").fill("12000")
    row.get_by_role("button", name="Save").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#undo")).to_be_visible()
    assert focused(page) == "Save"
    inside = "document.activeElement.closest('.setting')?.id"
    assert page.evaluate(inside) == "lamina.notes.firstAt"
    page.locator("#undo").focus()
    page.keyboard.press("Enter")
    expect(row.locator("input.val")).not_to_have_value("12000")
    page.wait_for_function(f"{inside} === 'lamina.notes.firstAt'")
    assert served.site.home is not None
    (served.site.home / "settings.json").write_text('{"lamina": {"notes": {"firstAt": 7000}}}', "utf-8")
    row.locator("input.val").fill("13000")
    page.keyboard.press("Enter")
    expect(row).to_contain_text("In the file: 7,000")
    assert page.evaluate("document.activeElement.matches('.setting button')")
    watched.expect("409")


def test_every_view_is_named_in_a_narrow_window_and_a_long_title_leaves_the_buttons_in_a_row(page: Page, served: Served) -> None:
    page.goto(served.base + ADDRESS)
    page.locator("h1").evaluate("title => { title.textContent = 'A very long title of a session '.repeat(20); }")
    tops = {one.evaluate("it => it.getBoundingClientRect().top") for one in page.locator(".head .btns > *").all()}
    assert len(tops) == 1
    brand = page.locator(".brand").bounding_box()
    assert brand is not None
    for width in (360, 641, 768, 1_000, 1_101):
        page.set_viewport_size({"width": width, "height": 800})
        for control in page.locator(".top :is(nav a, .search, button)").all():
            box = control.bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width, (width, control.inner_text())
        narrow = page.locator(".brand").bounding_box()
        assert narrow is not None
        assert narrow["width"] == brand["width"], "the name stays on one line"


def test_a_way_back_leads_where_it_says_and_addresses_have_no_lone_question_mark(
    page: Page, served: Served, watched: Watched
) -> None:
    page.goto(f"{served.base}/memories/nowhere/nothing.md")
    watched.expect("404")
    page.get_by_role("link", name="Back to the memories").click()
    page.wait_for_url("**/memories")
    assert page.locator('a[href$="?"], input[value$="?"]').count() == 0
    page.locator(".card").first.click()
    page.wait_for_selector(".close")
    assert page.locator('a[href$="?"], input[value$="?"]').count() == 0


def test_a_chosen_language_is_kept_but_not_in_the_address_and_the_search_shows_its_focus(page: Page, served: Served) -> None:
    page.goto(f"{served.base}/sessions?sort=dearest")
    page.click(".lang")
    expect(page.locator("h1")).to_have_text("会话")
    page.wait_for_url("**/sessions?sort=dearest")
    page.reload()
    expect(page.locator("h1")).to_have_text("会话")
    page.keyboard.press("/")
    outline = page.locator(".search .find").evaluate("it => getComputedStyle(it).outline")
    assert "solid" in outline
    assert "2px" in outline
