"""The way from view to view in a real browser: nothing is loaded anew; address, title, focus, place and stream are those of the view."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from lamina.web import session_data

from .conftest import Watched
from .made_home import WINDOW_SESSION, make_home
from .made_memories import make_dream, make_memories, make_proposals
from .serving import Served, serving

# Each drives a browser; the views themselves are in the README's run.
pytestmark = pytest.mark.exhaustive

SESSION = f"/sessions/claude-code/{WINDOW_SESSION}"
DREAMS = '.top nav a[href="/dreams"][aria-current=page]'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("home")
    make_home(root, others=40)
    make_memories(root)
    make_dream(root)
    make_proposals(root)
    with serving(root) as page:
        yield page


@pytest.fixture
def page(watched: Watched, served: Served) -> Page:
    """A page that is marked: a page that is loaded anew has no mark."""
    made = watched.page()
    made.goto(served.link)
    made.evaluate("window.mark = 1")
    return made


def is_marked(page: Page) -> bool:
    return bool(page.evaluate("window.mark === 1"))


@pytest.mark.spec("V6")
def test_every_view_is_reached_by_its_link_without_a_load_and_comes_back(page: Page, served: Served) -> None:
    titles = dict[str, str]()
    for name in ("sessions", "memories", "dreams", "replay", "settings"):
        page.locator(f'.top nav a[href="/{name}"]').click()
        page.wait_for_url(f"{served.base}/{name}")
        expect(page.locator(".top nav [aria-current=page]")).to_have_attribute("href", f"/{name}")
        titles[name] = page.title()
        expect(page.locator("#view")).to_have_text(titles[name])
        assert page.evaluate("document.activeElement.id") == "main"
    assert len(set(titles.values())) == 5
    for name in ("replay", "dreams", "memories", "sessions"):
        page.go_back()
        expect(page).to_have_title(titles[name])
        assert page.url == f"{served.base}/{name}"
    page.go_back()
    page.wait_for_selector("#days svg path")
    page.go_forward()
    expect(page).to_have_title(titles["sessions"])
    assert is_marked(page)


def test_a_session_starts_anew_each_time_it_is_shown_and_ends_when_it_is_left(page: Page, served: Served) -> None:
    page.click('.top nav a[href="/sessions"]')
    link = page.locator(f'a[href="{SESSION}"]').first
    link.click()
    page.wait_for_selector("#chart svg path.area")
    page.wait_for_selector("#blocks:not([aria-busy])")
    page.keyboard.press("Home")
    expect(page.locator("#req")).to_have_attribute("data-number", "1")
    page.wait_for_url("**?r=1")
    expect(page.locator("body")).to_have_attribute("data-watch", f"session:claude-code/{WINDOW_SESSION}")
    page.click('.top nav a[href="/sessions"]')
    expect(page.locator("h1")).to_have_text("Sessions")
    page.keyboard.press("End")  # of a session that is not shown
    assert page.url == f"{served.base}/sessions"
    page.go_back()
    page.wait_for_selector("#chart svg path.area")
    expect(page.locator("#req")).to_have_attribute("data-number", "1")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#req")).to_have_attribute("data-number", "2")
    page.wait_for_url("**?r=2")
    assert is_marked(page)


def test_a_large_session_that_nobody_has_opened_is_shown_without_a_load(
    tmp_path: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_data, "SLOW_BYTES", 1_000)
    make_home(tmp_path, others=1)
    with serving(tmp_path) as served:
        page = watched.page()
        page.goto(f"{served.link}")
        page.evaluate("window.mark = 1")
        asked = list[str]()
        page.on("request", lambda request: asked.append(request.url))
        page.click('.top nav a[href="/sessions"]')
        page.locator(f'a[href="{SESSION}"]').first.click()
        page.wait_for_selector("#blocks:not([aria-busy])")
        assert is_marked(page)
        assert page.locator("main noscript").count() == 0, "a browser with scripts would show or follow what is in it"
        # What the index knows, then the whole; or at once the whole, if the data of the chart was asked for first.
        assert asked.count(served.base + SESSION) in (1, 2)


def test_back_returns_to_the_place_that_was_left_and_a_new_view_begins_at_its_top(page: Page, served: Served) -> None:
    page.set_viewport_size({"width": 1_000, "height": 400})
    page.click('.top nav a[href="/sessions"]')
    expect(page.locator("h1")).to_have_text("Sessions")
    row = page.locator(".list > li > a").nth(25)
    row.scroll_into_view_if_needed()
    left = page.evaluate("scrollY")
    assert left > 100
    row.click()
    page.wait_for_selector("#chart svg path.area")
    assert page.evaluate("scrollY") == 0
    page.go_back()
    expect(page.locator("h1")).to_have_text("Sessions")
    assert page.evaluate("scrollY") == left
    page.reload()
    page.wait_for_function(f"() => scrollY === {left}")


def test_a_card_that_is_opened_keeps_the_focus_and_its_place(page: Page) -> None:
    page.set_viewport_size({"width": 1_300, "height": 400})
    page.click('.top nav a[href="/memories"]')
    card = page.locator(".card").last
    address = card.get_attribute("href")
    card.scroll_into_view_if_needed()
    place = card.bounding_box()
    card.focus()
    page.keyboard.press("Enter")
    opened = page.locator(".card[aria-current]")
    expect(opened).to_have_attribute("href", address or "")
    assert page.evaluate("document.activeElement.matches('.card[aria-current]')")
    after = opened.bounding_box()
    assert place is not None
    assert after is not None
    assert abs(after["y"] - place["y"]) < 2
    assert is_marked(page)


def test_a_link_to_a_setting_marks_it_and_a_place_in_the_view_loads_nothing(page: Page, served: Served) -> None:
    page.evaluate("document.querySelector('main').append(Object.assign(document.createElement('a'), "
                  "{ href: '/settings#lamina.recall', id: 'made', textContent: 'x' }))")  # fmt: skip
    page.click("#made")
    page.wait_for_url("**/settings#lamina.recall")
    expect(page.locator('[id="lamina.recall"]')).to_be_in_viewport()
    assert page.evaluate("document.querySelector(':target').id") == "lamina.recall"
    requests = list[str]()
    page.on("request", lambda request: requests.append(request.url))
    page.locator(".skip").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/settings#main")
    page.go_back()
    page.wait_for_url("**/settings#lamina.recall")
    assert requests == []
    assert is_marked(page)


def test_a_search_goes_to_its_results_and_the_box_is_empty_elsewhere(page: Page, served: Served) -> None:
    page.fill(".search input", "staging")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=staging")
    expect(page.locator("h1")).to_be_visible()
    expect(page.locator(".search input")).to_have_value("staging")
    page.click('.top nav a[href="/dreams"]')
    expect(page.locator(DREAMS)).to_be_visible()
    expect(page.locator(".search input")).to_have_value("")
    page.go_back()
    expect(page.locator(".search input")).to_have_value("staging")
    assert is_marked(page)


def test_another_language_and_what_is_no_page_are_loaded(page: Page, served: Served, watched: Watched) -> None:
    page.click('.top nav a[href="/sessions"]')
    page.wait_for_url("**/sessions")
    page.locator(".bar2 select[name=sort]").select_option("dearest")
    page.wait_for_url("**/sessions?sort=dearest")
    page.click(".lang")
    expect(page.locator("h1")).to_have_text("会话")
    page.wait_for_url("**/sessions?sort=dearest")
    assert not is_marked(page)
    page.go_back()
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    page.click(".lang")
    expect(page.locator("html")).to_have_attribute("lang", "en")
    page.evaluate("document.querySelector('main').append(Object.assign(document.createElement('a'), "
                  "{ href: '/memories?format=json', id: 'made', textContent: 'x' }))")  # fmt: skip
    page.click("#made")
    page.wait_for_url("**/memories?format=json")
    expect(page.locator("body")).to_contain_text('"memories"')
    watched.expect("404")  # a browser asks for an icon of JSON


def test_a_view_that_is_left_before_it_came_is_given_up_and_not_shown(page: Page, served: Served) -> None:
    page.route("**/settings", lambda route: None, times=1)
    page.click('.top nav a[href="/settings"]')
    page.wait_for_selector("body[aria-busy]")
    with page.expect_event("requestfailed", lambda request: request.url.endswith("/settings")):
        page.click('.top nav a[href="/dreams"]')
    expect(page.locator(DREAMS)).to_be_visible()
    assert page.url == f"{served.base}/dreams"
    page.wait_for_function("() => document.body.ariaBusy === null")
    expect(page.locator("#status")).to_be_hidden()


def focused(page: Page) -> str | None:
    found: str | None = page.evaluate("document.activeElement.getAttribute('href')")
    return found


def test_back_returns_to_the_row_that_was_opened(page: Page) -> None:
    page.set_viewport_size({"width": 1_000, "height": 400})
    page.click('.top nav a[href="/sessions"]')
    expect(page.locator("h1")).to_have_text("Sessions")
    for _ in range(20):
        page.keyboard.press("j")
    address, left = focused(page), page.evaluate("scrollY")
    page.keyboard.press("Enter")
    page.wait_for_selector("#chart svg path.area")
    assert page.evaluate("document.activeElement.id") == "main"
    page.go_back()
    expect(page.locator("h1")).to_have_text("Sessions")
    page.wait_for_function("() => document.activeElement.matches('.srow')")
    assert (focused(page), page.evaluate("scrollY")) == (address, left)


def test_a_memory_that_is_closed_leaves_the_focus_and_the_list_where_they_were(page: Page) -> None:
    page.set_viewport_size({"width": 1_300, "height": 400})
    page.click('.top nav a[href="/memories"]')
    card = page.locator(".card").last
    address = card.get_attribute("href")
    card.click()
    before = page.locator(".card[aria-current]").bounding_box()
    page.locator("#memory .close").click()
    expect(page.locator("#memory")).to_have_count(0)
    assert focused(page) == address
    after = page.locator(".card").last.bounding_box()
    assert before is not None
    assert after is not None
    assert abs(after["y"] - before["y"]) < 2


def test_in_a_narrow_window_a_memory_that_is_opened_above_the_list_gets_the_focus(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 640})
    page.click('.top nav a[href="/memories"]')
    page.locator(".card").last.click()
    expect(page.locator("#memory")).to_be_in_viewport()
    assert page.evaluate("[document.activeElement.id, scrollY]") == ["main", 0]


def test_back_shows_what_was_unfolded_and_the_place_that_was_left(page: Page, served: Served) -> None:
    page.set_viewport_size({"width": 1_400, "height": 400})
    page.evaluate("address => document.querySelector('main').append(Object.assign(document.createElement('a'), "
                  "{ href: address, id: 'made', textContent: 'x' }))", f"{SESSION}#t7")  # fmt: skip
    page.click("#made")
    page.wait_for_function("() => document.activeElement.matches('#d7 > summary')")
    page.wait_for_selector("#blocks:not([aria-busy])")
    page.locator("#d2 > summary").click()
    page.wait_for_selector("#d2 .ev")
    page.locator("#d2 .ev > li").last.scroll_into_view_if_needed()
    left = page.evaluate("scrollY")
    page.keyboard.press("g")
    page.keyboard.press("d")
    expect(page.locator(DREAMS)).to_be_visible()
    page.go_back()
    page.wait_for_selector("#blocks:not([aria-busy])")
    expect(page.locator("#d2 .ev")).to_be_visible()
    expect(page.locator("#d7 .ev")).to_be_visible()
    assert page.evaluate("scrollY") == left
    page.go_forward()
    expect(page.locator(DREAMS)).to_be_visible()
    page.go_back()
    expect(page.locator("#d2 .ev")).to_be_visible()
    page.wait_for_function(f"() => scrollY === {left}")
