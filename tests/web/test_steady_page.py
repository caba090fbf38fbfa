"""The page leaves alone what the user did not mean: fields while the view follows, and other items under a held key or a double click."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from .conftest import Watched
from .made_home import make_home
from .made_memories import make_memories, make_proposals
from .serving import Served, serving

# Each drives a browser.
pytestmark = pytest.mark.exhaustive

CHANGE = "document.dispatchEvent(new CustomEvent('lamina:change', { detail: {} }))"
FIELD = "#memory-search input"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    make_home(tmp_path, others=3)
    make_memories(tmp_path)
    make_proposals(tmp_path)
    with serving(tmp_path) as page:
        yield page


@pytest.fixture
def page(watched: Watched, served: Served) -> Page:
    """The memories, with a clock that stands still."""
    made = watched.page()
    made.goto(served.link)
    made.clock.install()
    made.goto(f"{served.base}/memories")
    made.clock.pause_at(made.evaluate("Date.now() + 1000"))
    return made


def remember(page: Page, selector: str) -> None:
    page.evaluate("selector => { window.kept = document.querySelector(selector); }", selector)


def is_kept(page: Page) -> bool:
    return bool(page.evaluate("window.kept.isConnected"))


def sent(page: Page) -> list[str]:
    """The addresses of the changes that are sent from now on."""
    posts = list[str]()
    page.on("request", lambda request: posts.append(request.url) if request.method == "POST" else None)
    return posts


def await_answer(page: Page) -> None:
    """Return when the server has answered once more: what was sent before it is known."""
    page.evaluate("fetch('/settings').then(answer => answer.text())")


def test_a_field_that_got_the_focus_is_not_replaced_until_it_is_left(page: Page) -> None:
    remember(page, FIELD)
    page.evaluate(CHANGE)
    page.locator(FIELD).press_sequentially("stag")
    page.clock.run_for(9_000)
    page.locator(FIELD).press_sequentially("ing")
    await_answer(page)
    assert is_kept(page)
    expect(page.locator(FIELD)).to_be_focused()
    expect(page.locator(FIELD)).to_have_value("staging")
    remember(page, "main h1")
    page.locator(FIELD).blur()
    page.clock.run_for(9_000)
    page.wait_for_function("() => !window.kept.isConnected")
    expect(page.locator(FIELD)).to_have_value("staging")


def test_a_field_that_gets_the_focus_while_the_view_is_fetched_is_not_replaced(page: Page, served: Served) -> None:
    remember(page, FIELD)
    held = list[Route]()
    page.route(f"{served.base}/memories", lambda route: held.append(route), times=1)
    with page.expect_request(f"{served.base}/memories"):
        page.evaluate(CHANGE)
        page.clock.run_for(9_000)
    page.locator(FIELD).press_sequentially("stag")
    with page.expect_request_finished():
        held[0].continue_()
    await_answer(page)
    assert is_kept(page)
    expect(page.locator(FIELD)).to_be_focused()
    expect(page.locator(FIELD)).to_have_value("stag")


def test_a_field_stays_as_it_is_while_the_users_own_change_is_on_its_way(page: Page) -> None:
    held = list[Route]()
    page.route("**/changes/inbox/refuse", lambda route: held.append(route), times=1)
    page.locator(".prop [data-hotkey=x]").first.click()
    page.locator(FIELD).press_sequentially("stag")
    page.wait_for_url("**/memories?q=stag")
    held[0].continue_()
    expect(page.locator(".prop")).to_have_count(2)
    expect(page.locator(FIELD)).to_be_focused()
    page.keyboard.type("ing")
    expect(page.locator(FIELD)).to_have_value("staging")


def test_what_was_found_stays_when_an_older_view_arrives_later(page: Page, served: Served) -> None:
    held = list[Route]()
    page.route(f"{served.base}/memories", lambda route: held.append(route), times=1)
    with page.expect_request(f"{served.base}/memories"):
        page.locator(".prop [data-hotkey=x]").first.click()
    page.locator(FIELD).press_sequentially("terraform")
    expect(page.locator(".card")).to_have_count(1)
    held[0].continue_()
    expect(page.locator(".prop")).to_have_count(2)
    expect(page.locator(".card")).to_have_count(1)
    expect(page.locator(FIELD)).to_be_focused()


def test_what_is_unfolded_stays_with_its_focus_while_the_view_follows(page: Page, served: Served) -> None:
    page.locator(".card", has_text="Deploys to staging").click()
    page.locator("#evidence summary").click()
    expect(page.locator("#evidence p")).to_be_visible()
    remember(page, "main h1")
    held = list[Route]()
    page.route(page.url, lambda route: held.append(route), times=1)
    with page.expect_request(page.url):
        page.evaluate(CHANGE)
        page.clock.run_for(9_000)
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#evidence p'))")
    with page.expect_request_finished():
        held[0].continue_()
    await_answer(page)
    assert is_kept(page)
    expect(page.locator("#evidence p")).to_be_visible()
    page.evaluate("getSelection().empty()")
    page.clock.run_for(9_000)
    page.wait_for_function("() => !window.kept.isConnected")
    expect(page.locator("#evidence p")).to_be_visible()
    expect(page.locator("#evidence summary")).to_be_focused()


def test_an_open_list_of_choices_stays_open_while_the_view_follows(page: Page, served: Served) -> None:
    page.goto(f"{served.base}/sessions")
    remember(page, "select[name=sort]")
    page.evaluate(CHANGE)
    page.locator("select[name=sort]").click()
    page.clock.run_for(9_000)
    await_answer(page)
    assert is_kept(page)


def test_ticks_stay_while_the_view_follows(page: Page, served: Served) -> None:
    page.goto(f"{served.base}/replay")
    tick = page.locator(".choose input").first
    tick.check()
    tick.blur()
    remember(page, "main h1")
    page.evaluate(CHANGE)
    page.clock.run_for(9_000)
    page.wait_for_function("() => !window.kept.isConnected")
    expect(tick).to_be_checked()


def test_selected_text_stays_selected_while_the_view_follows(page: Page) -> None:
    remember(page, "main h1")
    page.evaluate("getSelection().selectAllChildren(document.querySelector('.card .d'))")
    page.evaluate(CHANGE)
    page.clock.run_for(9_000)
    await_answer(page)
    assert is_kept(page)
    page.evaluate("getSelection().empty()")
    page.clock.run_for(9_000)
    page.wait_for_function("() => !window.kept.isConnected")


@pytest.mark.parametrize("key", ["a", "x", "Enter"])
def test_a_key_that_is_held_decides_once(page: Page, key: str) -> None:
    posts = sent(page)
    page.locator(".prop .btn").first.focus()
    page.keyboard.down(key)
    expect(page.locator(".prop")).to_have_count(2)
    expect(page.locator("#undo")).to_be_visible()
    for _ in range(3):
        page.keyboard.down(key)
    await_answer(page)
    assert len(posts) == 1
    page.keyboard.up(key)
    page.keyboard.press(key)
    expect(page.locator(".prop")).to_have_count(1)


def test_a_key_that_is_held_moves_on_in_a_list(page: Page) -> None:
    page.keyboard.down("j")
    page.keyboard.down("j")
    assert page.evaluate("document.activeElement === document.querySelectorAll('[data-row]')[1]")


def test_a_double_click_decides_once(page: Page) -> None:
    posts = sent(page)
    place = page.locator(".prop .btn.main").first.bounding_box()
    assert place is not None
    x, y = place["x"] + 5, place["y"] + 5
    page.mouse.click(x, y)
    expect(page.locator(".prop")).to_have_count(2)
    page.mouse.down(click_count=2)
    page.mouse.up(click_count=2)
    await_answer(page)
    assert len(posts) == 1
    page.locator("#undo").dblclick()
    expect(page.locator(".prop")).to_have_count(3)
    expect(page.locator("#status")).to_contain_text("waits again")
    await_answer(page)
    assert len(posts) == 2


def test_the_second_click_of_a_double_click_does_nothing_in_the_view_that_the_first_one_opened(
    page: Page, served: Served
) -> None:
    page.goto(f"{served.base}/sessions")
    place = page.locator('.top nav a[href="/dreams"]').bounding_box()
    assert place is not None
    page.evaluate("""document.querySelector('.top nav a[href="/dreams"]').addEventListener('click', () => {
      document.addEventListener('lamina:view', () => {
        const cover = Object.assign(document.createElement('a'), { href: '/settings', textContent: 'over' });
        Object.assign(cover.style, { position: 'fixed', inset: 0, zIndex: 99 });
        document.querySelector('main').append(cover);
      });
    })""")
    x, y = place["x"] + 5, place["y"] + 5
    page.mouse.click(x, y)
    page.wait_for_url("**/dreams")
    page.mouse.down(click_count=2)
    page.mouse.up(click_count=2)
    await_answer(page)
    expect(page.locator("body")).not_to_have_attribute("aria-busy", "true")
    assert page.url == f"{served.base}/dreams"
    page.mouse.click(x, y)
    page.wait_for_url("**/settings")


def test_the_language_and_the_theme_of_another_tab_are_taken_over(page: Page, served: Served, watched: Watched) -> None:
    other = watched.page()
    other.goto(f"{served.base}/sessions")
    other.click(".theme")
    theme = other.locator("html").get_attribute("data-theme")
    assert theme
    expect(page.locator("html")).to_have_attribute("data-theme", theme)
    other.click(".lang")
    expect(other.locator("h1")).to_have_text("会话")
    page.evaluate("lamina.refresh()")
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(page.locator(".top nav [aria-current=page]")).to_have_text("记忆 3")


def test_another_language_waits_while_text_is_not_saved(page: Page, served: Served) -> None:
    page.locator(".card", has_text="Terraform state").click()
    page.click("#edit")
    page.fill("textarea[name=body]", "Typed.\n")
    page.evaluate("fetch('/sessions?lang=zh').then(answer => answer.text())")
    page.evaluate("lamina.refresh()")
    expect(page.locator("#memory .close")).to_have_text("关闭")
    expect(page.locator("textarea[name=body]")).to_have_value("Typed.\n")
