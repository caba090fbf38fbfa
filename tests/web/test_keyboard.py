"""Every view with the keyboard alone: each control is reached, shows its focus and is in view; and what one does with each view."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from .conftest import Watched
from .made_home import WINDOW_SESSION, make_home
from .made_memories import make_dream, make_memories, make_proposals
from .serving import Served, serving

# It drives a browser over all views.
pytestmark = pytest.mark.exhaustive

SESSION = f"/sessions/claude-code/{WINDOW_SESSION}"
# Marks the controls that Tab should reach, and returns how many there are. One of the radio buttons of a group is enough.
MARK = """() => {
  const all = [...document.querySelectorAll('a[href],button,input:not([type=hidden]),select,textarea,summary,[tabindex="0"]')];
  const shown = e => e.checkVisibility({ checkVisibilityCSS: true }) && !e.closest('dialog:not([open])');
  const seen = all.filter(e => !e.disabled && e.tabIndex >= 0 && shown(e));
  seen.forEach((e, at) => { e.dataset.walk = at; });
  return seen.length;
}"""
# The control that has the focus, and what is wrong with it.
LOOK = """() => {
  const e = document.activeElement, name = `${e.localName}.${e.className} ${(e.innerText || e.name || '').slice(0, 30)}`;
  const shown = [e, e.closest('.find'), e.closest('.chart')?.querySelector('svg')].some(one => {
    const style = one && getComputedStyle(one);
    return style && style.outlineStyle === 'solid' && parseFloat(style.outlineWidth) >= 2;
  });
  const box = e.getBoundingClientRect(), top = document.querySelector('.top');
  const over = top.contains(e) || getComputedStyle(top).position !== 'sticky' ? 0 : top.getBoundingClientRect().bottom;
  const problems = [];
  if (!shown) problems.push(`no focus shown: ${name}`);
  if (box.bottom <= over || box.top >= innerHeight) problems.push(`out of view: ${name}`);
  return [e.dataset.walk ?? '', problems];
}"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("home")
    make_home(root, others=3)
    make_memories(root)
    make_dream(root)
    make_proposals(root)
    with serving(root) as page:
        yield page


def walk(page: Page, key: str) -> tuple[set[str], set[str]]:
    """Press a key until the focus leaves the page, and return the controls that were not reached, and the problems seen."""
    page.mouse.move(0, 0)
    count = page.evaluate(MARK)
    reached, problems = set[str](), set[str]()
    for _ in range(count + 20):
        page.keyboard.press(key)
        at, found = page.evaluate(LOOK)
        if at in reached:
            break
        if at:
            reached.add(at)
            problems |= set(found)
    missed = {str(at) for at in range(count)} - reached
    names = page.evaluate(
        "all => all.map(at => document.querySelector(`[data-walk='${at}']`)?.outerHTML.slice(0, 90))", sorted(missed)
    )
    return {name for name in names if name}, problems


@pytest.mark.spec("V6")
def test_tab_reaches_every_control_of_every_view_and_shows_where_it_is(served: Served, watched: Watched) -> None:
    page = watched.page()
    page.goto(served.link)
    job = served.site.replays.start([one.path for one in served.site.sessions().top], ["lean"])
    while job.running:
        time.sleep(0.05)
    memory = next(one for one in page.goto(f"{served.base}/memories?format=json").json()["memories"])["url"]  # type: ignore[union-attr]
    views = ["/", "/sessions", SESSION, f"{SESSION}/requests/20?against=10", "/memories", memory, "/dreams"]
    views += ["/search?q=staging", "/replay", f"/replay/{job.id}", "/settings?q=lamina.b", "/nowhere"]
    for view in views:
        page.goto(served.base + view)
        if view == SESSION:
            page.wait_for_selector("#blocks:not([aria-busy])")
        for key in ("Tab", "Shift+Tab"):
            assert walk(page, key) == (set(), set()), (view, key)
    watched.expect("404")


@pytest.mark.spec("V6")
def test_a_user_without_a_mouse_searches_replays_and_changes_settings(served: Served, watched: Watched) -> None:
    page = watched.page()
    press = page.keyboard.press
    page.goto(served.link)
    for key, view in (("s", "sessions"), ("m", "memories"), ("d", "dreams"), ("r", "replay"), (",", "settings")):
        press("g")
        press(key)
        page.wait_for_url(f"{served.base}/{view}")
    press("g")
    press("o")
    page.wait_for_url(f"{served.base}/")
    press("/")
    page.keyboard.type("staging")
    press("Enter")
    page.wait_for_url("**/search?q=staging")
    press("j")
    press("j")
    press("k")
    assert page.evaluate("document.activeElement === document.querySelector('.result')")
    press("Enter")
    expect(page.locator(".crumb, .card[aria-current]").first).to_be_visible()
    page.goto(f"{served.base}/replay")
    page.locator(".choose input").first.focus()
    press("Space")
    page.get_by_role("searchbox", name="Filter sessions").focus()
    press("Enter")
    page.wait_for_url("**/replay?sort=newest&**")
    expect(page.locator(".choose input").first).to_be_checked()
    page.locator(".choose input").first.focus()
    press("Enter")
    page.locator("a[download]").wait_for()
    press("g")
    press(",")
    page.wait_for_url("**/settings")
    letters = page.get_by_role("switch", name="Single-letter keys")
    for state in ("false", "true"):
        page.get_by_role("button", name="Keyboard shortcuts").focus()
        press("Enter")
        letters.focus()
        press("Space")
        expect(letters).to_have_attribute("aria-checked", state)
        press("Escape")
        expect(page.locator("#keys")).to_be_hidden()
        press("?")
        assert page.locator("#keys").is_visible() == (state == "true"), "letters that are off can be switched on again"
    press("Escape")
