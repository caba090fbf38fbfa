"""Every kind of click on the page. Each is made several times from the same view, and the median is shown.

Where a page is loaded, a click ends with the browser's own time of its first paint: to look into a new page from outside takes 50 ms and
more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from page_meter import MARK, MOST, MOST_LOADED, Cost, Meter
from playwright.sync_api import Error, Page


class Click(NamedTuple):
    """A click: the address of the view it is made in, what is done there, and the element that shows that it has been answered."""

    name: str
    view: str
    act: Callable[[Page], object]
    shows: str = ""
    ready: str = ""  # that is waited for before the click
    first: Callable[[Page], object] = lambda page: None  # that is done before the click, such as typing into a form
    loads: bool = False  # a page whose first paint shows the answer
    most: float = MOST
    once: bool = False  # what it changes is not taken back, so it is measured once


def press(selector: str) -> Callable[[Page], object]:
    return lambda page: page.locator(selector).first.dispatch_event("click")


def choose(selector: str, value: str) -> Callable[[Page], object]:
    return lambda page: page.locator(selector).select_option(value, force=True)


def submit(selector: str) -> Callable[[Page], object]:
    """Send the form of a field."""
    return lambda page: page.locator(selector).evaluate("field => field.form.requestSubmit()")


def write(selector: str, text: str) -> Callable[[Page], object]:
    """Type a word at once."""
    return lambda page: page.locator(selector).fill(text, force=True)


def key(name: str) -> Callable[[Page], object]:
    return lambda page: page.keyboard.press(name)


def undone(change: Callable[[Page], object]) -> Callable[[Page], object]:
    """Make a change and wait for its sentence. The next view takes it back before the same change is made again."""

    def act(page: Page) -> None:
        change(page)
        page.locator("#status:not([hidden]) #undo").wait_for()

    return act


def mark_undo(page: Page) -> None:
    page.evaluate("document.getElementById('undo').dataset.before = ''")


def take_back(page: Page) -> None:
    """Undo what the last click changed, if it did."""
    if page.locator("#status:not([hidden]) #undo").count():
        mark_undo(page)
        page.locator("#undo").dispatch_event("click")
        page.wait_for_selector(TAKEN_BACK)


TOLD = "#status:not([hidden])"
TAKEN_BACK = f"{TOLD}:not(:has(#undo[data-before]))"
CHART = "#chart path.area"
NEW_CHART = f"{CHART}:not([data-before])"
VIEW = "h1:not([data-before])"
LISTED = "#sessions-found:not([data-before])"


def clicks(long: str, small: str, memory: str, dream: str) -> list[Click]:
    """Return all clicks. `long` and `small` are addresses of sessions, `memory` that of a memory with a history, `dream` of a dream."""
    views = [Click(f"go to {name or 'overview'}", "/settings", press(f'.top nav a[href="/{name}"]'), VIEW) for name in NAMES]
    return [
        Click("a page with nothing in it", "/settings", to_nothing, "h1", loads=True, most=MOST_LOADED),
        *views,
        Click("overview: another period", "/", choose("select[name=days]", "30"), VIEW),
        Click("sessions: filter by words (types)", "/sessions", write(".bar2 input[name=q]", "redis"), LISTED),
        Click("sessions: filter by project", "/sessions", choose("select[name=project]", "/work/project-3"), LISTED),
        Click("sessions: filter by agent", "/sessions", choose("select[name=source]", "codex"), LISTED),
        *[Click(f"sessions: {sort} first", "/sessions", choose("select[name=sort]", sort), LISTED) for sort in SORTS],
        Click("sessions: the next page", "/sessions", press("a[rel=next]"), VIEW),
        Click("sessions: open a small one", "/sessions?source=codex", press(".list > li > a"), VIEW),
        Click("sessions: open the long one, its title", "/sessions?sort=longest", press(f'a[href="{long}"]'), VIEW),
        Click("sessions: open the long one, its chart", "/sessions?sort=longest", press(f'a[href="{long}"]'), NEW_CHART),
        Click("a small session by its address, its chart", "/sessions", visit(small), CHART, most=MOST_LOADED),
        Click("a long session by its address, its chart", "/sessions", visit(long), CHART, most=MOST_LOADED),
        Click("session: select a request, its panel", f"{long}?r=4000", key("ArrowLeft"), '#req[data-number="3999"]', BLOCKS),
        Click("session: ... and its blocks", f"{long}?r=4000", key("ArrowLeft"), f'#req[data-number="3999"] {BLOCKS}', BLOCKS),
        Click(
            "session: a request far away, its blocks", f"{long}?r=4000", key("Home"), f'#req[data-number="1"] {BLOCKS}', BLOCKS
        ),
        Click("session: the next decision", f"{long}?r=4000", key("]"), '#req:not([data-number="4000"])', BLOCKS),
        Click("session: put a kind on the floor", f"{long}?r=4000", press("#kinds button[data-kind=files]"), FLOOR, BLOCKS),
        Click("session: zoom in", f"{long}?r=4000", key("+"), NEW_CHART, BLOCKS),
        Click("session: open a turn", long, press("#d3 > summary"), "#d3 .ev .call", CHART),
        Click("session: later turns", long, press("#conv .pages a"), ".turns > li:not([data-before])", CHART),
        Click(
            "session: filter by a rare word (types)", long, write("#filter input[name=find]", "nowhere"), "#conv-turns > p", CHART
        ),
        Click("session: filter by a common word (types)", long, write("#filter input[name=find]", "make"), MATCHED, CHART),
        Click("session: show as table", long, press("#as-table summary"), "#as-table tbody tr", CHART),
        Click("session: open the whole request", f"{long}?r=4000", press('#req a[href*="/requests/"]'), VIEW, BLOCKS),
        Click("session: replay it", small, press("a.btn.main"), VIEW),
        Click("memories: filter by type", "/memories", press('.side a[href*="type=project"]'), VIEW),
        Click("memories: filter by evidence", "/memories", press('.side a[href*="evidence=stale"]'), VIEW),
        Click("memories: filter by author", "/memories", press('.side a[href*="by="]'), VIEW),
        Click("memories: never recalled", "/memories", press('.side a[href*="use=never"]'), VIEW),
        Click("memories: one project", "/memories", press('.side a[href*="project=-work-project-3"]'), VIEW),
        Click("memories: the next page", "/memories", press("a[rel=next]"), VIEW),
        Click("memories: search (types)", "/memories", write("#memory-search input[name=q]", "port 8123"), ".whyhit"),
        Click("memories: a search that is opened", "/memories", to_search, ".whyhit", loads=True, most=MOST_LOADED),
        Click("memories: open one", "/memories", press(".card"), VIEW),
        Click("memories: open one from a search", "/memories?q=service+77", press(".card"), VIEW),
        Click("memories: edit one", memory, press('a[href*="edit="]'), "form.editor"),
        Click("memories: save a change", f"{memory}?edit=1", undone(press("form.editor button.main")), "#undo", first=rewrite),
        Click("memories: remove one", memory, undone(press('form[action$="/remove"] button')), "#undo"),
        Click("memories: write a new one", "/memories", press('a[href^="/memories/new"]'), VIEW),
        Click("memories: duplicates", "/memories", press('a[href^="/memories/duplicates"]'), VIEW),
        Click("memories: trash", "/memories", press('a[href^="/memories/trash"]'), VIEW),
        Click("memories: forget a subject", "/memories", press('a[href^="/memories/forget"]'), VIEW),
        Click("inbox: the message it came from", "/memories", press('.prop a[href*="/messages/"]'), VIEW),
        Click("inbox: accept", "/memories", undone(press('[data-hotkey="a"]')), "#undo"),
        Click("inbox: refuse", "/memories", undone(press('[data-hotkey="x"]')), "#undo"),
        Click("search everything", "/sessions", submit(".search input"), VIEW, first=write(".search input", "redis cache")),
        Click(
            "search everything, other words",
            "/sessions",
            submit(".search input"),
            VIEW,
            first=write(".search input", "service port"),
        ),
        Click("dreams: open one", "/dreams", press(f'a[href="{dream}"]'), VIEW),
        Click("settings: turn a switch", "/settings", undone(press('[id="lamina.recall"] [role=switch]')), "#undo"),
        Click("another language", "/memories", press(".lang"), VIEW, loads=True),
    ]


NAMES = ("", "sessions", "memories", "dreams", "replay", "settings")
SORTS = ("dearest", "longest", "fullest")
BLOCKS = "#blocks:not([aria-busy])"
MATCHED = "#conv-count >> match"
FLOOR = "#kinds button[aria-pressed=true]"


def visit(path: str) -> Callable[[Page], object]:
    return lambda page: page.goto(f"{origin(page)}{path}", wait_until="commit")


def to_nothing(page: Page) -> None:
    page.goto(f"{origin(page)}/nothing")


def to_search(page: Page) -> None:
    page.goto(f"{page.url}?q=service+77")


def origin(page: Page) -> str:
    return "/".join(page.url.split("/")[:3])


def rewrite(page: Page) -> None:
    page.locator("textarea[name=body]").fill(f"Changed at {time.time()}.", force=True)


def measure(meter: Meter, base: str, all_clicks: list[Click], times: int, only: str = "") -> list[tuple[str, Cost]]:
    """Make each click several times, and show its median cost and the slowest."""
    page, found = meter.page, list[tuple[str, Cost]]()
    for one in all_clicks:
        if only not in one.name:
            continue
        try:
            for _ in range(1 if one.once else times):
                page.goto(base + one.view)
                page.locator(one.ready or "h1").first.wait_for()
                one.first(page)
                page.evaluate(MARK)
                meter.click(one.act, one.shows, loads=one.loads)
                if not one.once:
                    take_back(page)
            found.append((one.name, meter.show(one.name, one.most)))
        except Error as error:
            meter.costs.clear()
            print(f"{one.name:44} could not be measured: {str(error).splitlines()[0]}", flush=True)
    return found
