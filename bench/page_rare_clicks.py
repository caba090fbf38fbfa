"""Clicks that people make less often: parts of long turns and requests, history, trash, undo, forgetting, settings, replays, dreams."""

from __future__ import annotations

import time
from collections.abc import Callable

from page_clicks import (
    BLOCKS,
    CHART,
    NEW_CHART,
    TAKEN_BACK,
    TOLD,
    VIEW,
    Click,
    choose,
    key,
    mark_undo,
    origin,
    press,
    submit,
    undone,
    write,
)
from playwright.sync_api import Page

RESTORE = 'form[action$="/restore"] button'
REMOVE = 'form[action$="/remove"] button'
# A request of the busy session that holds some hundreds of blocks.
FULL = 110
BUDGET = "lamina.budgetCalls"
# An element that was not there before.
NEW = ":not([data-before])"
# Opens an address that the view does not link to.
FOLLOW = "href => { const a = document.createElement('a'); a.href = href; document.querySelector('main').append(a); a.click(); }"


def rare_clicks(long: str, busy: str, small: str, memory: str, project: str) -> list[Click]:
    """`busy` is a session with a turn of many calls, `project` the name of one with a pair of duplicates; the rest as for `clicks`."""
    chosen, request, pairs = f"{long}?r=4000", f"{long}/requests/4000", f"/memories/duplicates?project={project}"
    whole = f"{busy}/requests/{FULL}"
    return [
        Click("overview: one project", "/?days=90", lambda page: page.locator("#pick-project").select_option(index=1), VIEW),
        Click("overview: show as table", "/?days=90", press("#as-table summary"), "#as-table[open] table"),
        Click("session: by time", chosen, press("[data-axis=time]"), NEW_CHART, BLOCKS),
        Click("session: a mark", chosen, press(".btn.mark"), '#req:not([data-number="4000"])', BLOCKS),
        Click("session: open a block", chosen, press("#blocks summary"), "#blocks details[open]", BLOCKS),
        Click("session: open a turn of many calls", busy, press("#d1 > summary"), "#d1 .ev .call", CHART),
        Click("session: ... and a part of it", busy, press("#d1-60 > summary"), "#d1-60 .call", CHART, open_turn),
        Click("session: a request of many blocks", f"{busy}?r={FULL}", press('#req a[href*="/requests/"]'), VIEW, BLOCKS),
        Click("request: more of its blocks", whole, press("#all-50 > summary"), "#all-50 li", "#all-50"),
        Click("request: compare with the first", whole, submit("[name=against]"), VIEW, first=write("[name=against]", "1")),
        Click("request: compare with one far away", request, submit("[name=against]"), VIEW, first=write("[name=against]", "10")),
        Click("request: the one before", request, press('main a.btn[href*="/requests/3999"]'), VIEW),
        Click("request: a record as JSON", request, open_first("details a.small"), "pre", loads=True),
        Click("memories: save a new one", "/memories/new", undone(press("form.editor button.main")), "#undo", first=fill_in),
        Click("memories: restore a version", memory, undone(press(RESTORE)), "#undo"),
        Click("memories: undo", memory, press("#undo"), TAKEN_BACK, first=remove, once=True),
        Click("trash: restore", "/memories/trash", undone(press(RESTORE)), "#undo"),
        Click("forget: find what few name", "/memories/forget", submit("#subject"), VIEW, first=write("#subject", "terraform")),
        Click("duplicates: of a project", "/memories", lambda page: page.evaluate(FOLLOW, pairs), VIEW),
        Click("duplicates: merge", pairs, undone(press('.pair [data-hotkey="a"]')), "#undo", ".pair"),
        Click("duplicates: keep one", pairs, undone(press(f".pair {REMOVE}")), "#undo", ".pair"),
        Click("duplicates: not duplicates", pairs, undone(press('.pair [data-hotkey="x"]')), "#undo", ".pair"),
        Click("settings: save a value", "/settings", undone(press(f'[id="save-{BUDGET}"]')), "#undo", first=another_budget),
        Click(
            "settings: filter", "/settings", submit("#filter input[name=q]"), VIEW, first=write("#filter input[name=q]", "dream")
        ),
        Click("search: exact text", "/search?q=redis", press("[name=exact]"), VIEW),
        Click("search: open a result", "/search?q=redis", press("a.result"), VIEW),
        Click("replay: most expensive first", "/replay", choose("#filter select", "dearest"), f".choose label{NEW}"),
        Click("replay: start", f"/replay?session={small.removeprefix('/sessions/')}", press("#choice button.main"), VIEW),
        Click("dreams: start one", "/dreams", press("#start"), TOLD),
        Click("keyboard shortcuts", "/settings", key("?"), "dialog[open]"),
    ]


# It plays all sessions of the period in the background.
SAVING = Click("overview: what would have been saved", "/", press("#save"), TOLD, once=True)


def open_turn(page: Page) -> None:
    press("#d1 > summary")(page)
    page.locator("#d1-60").wait_for()


def remove(page: Page) -> None:
    undone(press(REMOVE))(page)
    mark_undo(page)


def open_first(selector: str) -> Callable[[Page], object]:
    return lambda page: page.goto(f"{origin(page)}{page.locator(selector).first.get_attribute('href')}")


def fill_in(page: Page) -> None:
    for name in ("name", "description", "body"):
        page.locator(f".editor [name={name}]").fill(f"Written at {time.time()}.")


def another_budget(page: Page) -> None:
    page.locator(f'[id="set-{BUDGET}"]').fill(str(100 + int(time.time()) % 1_000))
