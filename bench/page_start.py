"""Clicks in the first seconds of the server, one right after another, while sessions and memories are still being read.

A click on what nobody has read yet is answered when its title and the sentence that says so are shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from page_clicks import CHART, VIEW, press, submit, write
from page_meter import MARK, Meter
from playwright.sync_api import Page

# Opens a session that another view does not list.
FOLLOW = "href => { const a = document.createElement('a'); a.href = href; document.querySelector('main').append(a); a.click(); }"


SEARCH = "#memory-search"
FOUND = "#memory-found:not([data-before])"


class Step(NamedTuple):
    name: str
    act: Callable[[Page], object]
    ready: str = ""  # that is waited for before the click
    shows: str = VIEW


def go(view: str) -> Callable[[Page], object]:
    return press(f'.top nav a[href="/{view}"]')


def steps(long: str) -> list[Step]:
    def search(page: Page) -> None:
        write(".search input", "redis cache")(page)
        submit(".search input")(page)

    return [
        Step("sessions", go("sessions")),
        Step("open a session", press(".list > li > a"), ".list > li > a"),
        Step("memories", go("memories")),
        Step("open a memory", press(".card"), ".card"),
        Step("open the long session", lambda page: page.evaluate(FOLLOW, long)),
        Step("memories, while it is read", go("memories")),
        Step("search the memories (types)", write(f"{SEARCH} input[name=q]", "port 8123"), SEARCH, FOUND),
        Step("the long session again", lambda page: page.evaluate(FOLLOW, long)),
        Step("dreams, right after its chart", go("dreams"), CHART),
        Step("search everything", search),
        Step("settings", go("settings")),
        Step("replay", go("replay")),
        Step("overview", go("")),
        Step("sessions again", go("sessions")),
    ]


def forget_what_was_read(person: Path) -> None:
    """Remove the caches of memories; those of sessions are one directory."""
    for one in person.glob(".lamina/projects/*/memory/.history/heads.msgpack"):
        one.unlink()


def wait_until_listed(page: Page, base: str, long: str) -> None:
    while long not in page.request.get(f"{base}/sessions?format=json&sort=longest").text():
        time.sleep(0.05)


def impatient(meter: Meter, base: str, long: str, first: int) -> None:
    """Click through the views at once, from one of the steps on."""
    page, began = meter.page, time.perf_counter()
    for step in steps(long)[first:]:
        if step.ready:
            page.locator(step.ready).first.wait_for(state="attached")
        if "open the long" in step.name:
            wait_until_listed(page, base, long)
        page.evaluate(MARK)
        meter.click(step.act, step.shows)
        meter.show(f"after {time.perf_counter() - began:4.1f} s: {step.name}")
