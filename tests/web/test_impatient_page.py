"""The page under an impatient user: history while a view is on its way, failed views, double clicks, and an input method."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Request, Route, expect

from .conftest import Watched
from .made_home import WINDOW_SESSION, make_home
from .made_memories import make_memories
from .serving import Served, serving

# Each drives a browser; the views themselves are in the README's run.
pytestmark = pytest.mark.exhaustive

SESSION = f"/sessions/claude-code/{WINDOW_SESSION}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("home")
    make_home(root, others=30)
    make_memories(root)
    with serving(root) as page:
        yield page


def go(page: Page, name: str) -> None:
    page.click(f'.top nav a[href="/{name}"]')
    expect(page.locator(".top nav [aria-current=page]")).to_have_attribute("href", f"/{name}")


def hold(page: Page, address: str) -> list[Route]:
    """Hold back the next answer of an address."""
    held = list[Route]()
    page.route(address, lambda route: held.append(route), times=1)
    return held


def step_back(page: Page) -> None:
    """Go back without waiting for the view."""
    before = page.url
    page.evaluate("history.back()")
    page.wait_for_function("before => location.href !== before", arg=before)


def let_go(page: Page, held: list[Route], *, busy: bool = False) -> None:
    with page.expect_request_finished():
        held[0].continue_()
    if not busy:
        expect(page.locator("body")).not_to_have_attribute("aria-busy", "true")


def test_back_and_forward_at_once_end_at_the_view_that_is_named(page: Page, served: Served) -> None:
    go(page, "sessions")
    held = hold(page, f"{served.base}/")
    with page.expect_request(f"{served.base}/"):
        step_back(page)
    page.evaluate("history.forward()")
    page.wait_for_url("**/sessions")
    let_go(page, held)
    expect(page.locator("h1")).to_have_text("Sessions")
    assert page.url == f"{served.base}/sessions"


def test_forward_returns_to_the_place_that_was_left_by_back(page: Page) -> None:
    page.set_viewport_size({"width": 1_000, "height": 400})
    go(page, "settings")
    go(page, "sessions")
    page.evaluate("scrollTo(0, 400)")
    page.wait_for_function("() => history.state?.y === 400")
    page.go_back()
    expect(page.locator("h1")).to_have_text("Settings")
    page.go_forward()
    expect(page.locator("h1")).to_have_text("Sessions")
    page.wait_for_function("() => scrollY === 400")


def test_back_from_an_anchor_returns_to_the_place_that_was_left(page: Page) -> None:
    go(page, "settings")
    page.click('main a[href="#dreams"]')
    page.wait_for_function("() => history.state?.y > 0")
    page.go_back()
    page.wait_for_function("() => scrollY === 0")


def test_a_view_that_failed_on_the_way_back_leaves_the_shown_one_live(page: Page, served: Served, watched: Watched) -> None:
    go(page, "memories")
    go(page, "dreams")
    page.route(f"{served.base}/memories", lambda route: route.abort(), times=1)
    page.go_back()
    expect(page.locator("#status")).to_contain_text("The server did not answer.")
    page.evaluate("lamina.refresh()")
    expect(page.locator(".top nav [aria-current=page]")).to_have_attribute("href", "/dreams")
    watched.expect("ERR_FAILED")


def test_what_a_view_finds_after_it_was_left_does_not_change_the_address(page: Page, served: Served) -> None:
    go(page, "sessions")
    go(page, "memories")
    held = list[Route]()
    page.route(re.compile("/memories[?]q=stag$|/sessions$"), lambda route: held.append(route))
    with page.expect_request("**/memories?q=stag"):
        page.locator("form[data-find] input[type=search]").fill("stag")
    with page.expect_request(f"{served.base}/sessions"):
        step_back(page)
    let_go(page, held[:1], busy=True)
    let_go(page, held[1:])
    expect(page.locator("h1")).to_have_text("Sessions")
    assert page.url == f"{served.base}/sessions"


def test_a_request_that_is_chosen_while_its_session_is_left_does_not_change_the_address(page: Page, served: Served) -> None:
    go(page, "sessions")
    page.locator(f'a[href="{SESSION}"]').first.click()
    page.wait_for_selector("#blocks:not([aria-busy])")
    held = hold(page, f"{served.base}/sessions")
    with page.expect_request(f"{served.base}/sessions"):
        step_back(page)
    page.keyboard.press("ArrowLeft")
    let_go(page, held)
    expect(page.locator("h1")).to_have_text("Sessions")
    assert page.url == f"{served.base}/sessions"


def test_a_double_click_saves_once(page: Page) -> None:
    go(page, "memories")
    page.locator(".card", has_text="Terraform state").click()
    page.click("#edit")
    posts = list[Request]()
    page.on("request", lambda request: posts.append(request) if request.method == "POST" else None)
    page.fill("textarea[name=body]", "One file for each region.\n")
    page.locator("form.editor button.main").dblclick()
    expect(page.locator("#undo")).to_be_visible()
    expect(page.locator("textarea[name=body]")).to_have_count(0)
    assert len(posts) == 1


def test_letters_of_an_input_method_are_found_once_they_are_words(page: Page) -> None:
    go(page, "memories")
    asked = list[str]()
    page.on("request", lambda request: asked.append(request.url))
    page.locator("form[data-find] input[type=search]").focus()
    keyboard = page.context.new_cdp_session(page)
    for letters in ("c", "ce", "ceshi"):
        keyboard.send("Input.imeSetComposition", {"text": letters, "selectionStart": len(letters), "selectionEnd": len(letters)})
    keyboard.send("Input.insertText", {"text": "测试"})
    page.wait_for_url("**/memories?q=%E6%B5%8B%E8%AF%95")
    assert [one.rpartition("?")[2] for one in asked if "q=" in one] == ["q=%E6%B5%8B%E8%AF%95"]


def test_back_to_an_anchor_in_another_language_loads_it(page: Page, served: Served) -> None:
    go(page, "settings")
    page.click('main a[href="#dreams"]')
    page.wait_for_url("**/settings#dreams")
    go(page, "sessions")
    page.evaluate("fetch('/sessions?lang=zh').then(answer => answer.text())")
    page.evaluate("history.back()")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    page.wait_for_url("**/settings#dreams")
    expect(page.locator("h1")).to_have_text("设置")
