"""Measures what happens in a browser: the time until an answer is painted, and the work of the server and of the browser for it.

On a busy machine the time until an answer means little; the CPU times of the server and of the browser are what counts. A click begins
with the browser's event, and ends when an element of the answer, not one of the view before, has been painted; both are measured in the
page. What the driver of the browser needs to find the element and to hear of its answer is none of a user's time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from typing import NamedTuple

from playwright.sync_api import CDPSession, Error, Page

# The most a click may take, and an address that is loaded: the browser begins a page anew. In milliseconds.
MOST = 200
MOST_LOADED = 300


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far, all its threads together, to the nanosecond (Linux numbers these clocks by process)."""
    return time.clock_gettime((~pid << 3) | 2)


class Cost(NamedTuple):
    wall: float
    server: float
    browser: float
    requests: float
    kilobytes: float
    nodes: float

    def __str__(self) -> str:
        return (
            f"{self.wall:>8.0f} ms   server {self.server:>5.0f} ms   browser {self.browser:>5.0f} ms   {self.requests:>3.0f} requests   "
            f"{self.kilobytes:>6.1f} kB   {self.nodes:>6.0f} nodes"
        )


class Meter:
    """Measures what is done in its `with` block, each time into `costs`."""

    def __init__(self, server: int, page: Page) -> None:
        self.page = page
        self.costs: list[Cost] = []
        self.made = self.late = 0  # all that were shown, and those over their limit
        self._server = server
        assert page.context.browser is not None
        self._browser: CDPSession = page.context.browser.new_browser_cdp_session()
        self._network: CDPSession = page.context.new_cdp_session(page)
        self._network.send("Network.enable")
        self._requests = self._bytes = 0
        self._network.on("Network.requestWillBeSent", lambda _: self._count(requests=1))
        self._network.on("Network.loadingFinished", lambda event: self._count(bytes=event["encodedDataLength"]))

    def _count(self, *, requests: int = 0, bytes: float = 0) -> None:
        self._requests += requests
        self._bytes += int(bytes)

    def _worked(self) -> dict[int, float]:
        """Return the CPU time of each process of the browser so far."""
        return {one["id"]: one["cpuTime"] for one in self._browser.send("SystemInfo.getProcessInfo")["processInfo"]}

    def _nodes(self) -> int:
        try:
            return int(self.page.evaluate("document.querySelectorAll('*').length"))
        except Error:  # a view that shows itself again
            return 0

    @contextmanager
    def measure(self) -> Iterator[None]:
        before, self._requests, self._bytes = self._worked(), 0, 0
        used, began = cpu_seconds(self._server), time.perf_counter()
        yield
        wall, worked = time.perf_counter() - began, cpu_seconds(self._server) - used
        after = self._worked()
        self.costs.append(
            Cost(
                1_000 * wall,
                1_000 * worked,
                1_000 * sum(spent - before.get(pid, 0.0) for pid, spent in after.items()),
                self._requests,
                self._bytes / 1_000,
                self._nodes(),
            )
        )

    def click(self, act: Callable[[Page], object], selector: str, *, loads: bool = False) -> None:
        """Do something in the page and measure it until an element of the answer is painted; `selector >> text` wants this text in it.

        Where another page is loaded, it is measured until the driver has heard of that; if its first paint shows the answer (`loads`),
        until then.
        """
        self.page.evaluate(WATCH, selector.partition(" >> ")[::2])
        with self.measure():
            act(self.page)
            wait_until_painted(self.page, selector)
        took = self.page.evaluate(FIRST_PAINT if loads else "() => window.clicked ? window.clicked.took : performance.now()")
        self.costs[-1] = self.costs[-1]._replace(wall=took)

    def show(self, name: str, most: float | None = MOST) -> Cost:
        """Print the median cost, and the slowest of several."""
        cost, slowest = Cost(*(median(column) for column in zip(*self.costs, strict=True))), max(one.wall for one in self.costs)
        self.made += len(self.costs)
        self.late += sum(most is not None and one.wall > most for one in self.costs)
        worst = f"   slowest {slowest:.0f} ms" if len(self.costs) > 1 else ""
        self.costs.clear()
        print(f"{name:44}{cost}{worst}{'   over ' + format(most, 'g') if most and slowest > most else ''}", flush=True)
        return cost


# Notes the time of the first event, and of the frame that shows an element.
WATCH = """([selector, text]) => {
    const clicked = window.clicked = {}, heard = new AbortController();
    for (const kind of ['click', 'keydown', 'input', 'change', 'submit'])
        addEventListener(kind, event => {
            clicked.began = event.timeStamp; heard.abort();
            sessionStorage.clicked = performance.timeOrigin + event.timeStamp;
        }, { capture: true, signal: heard.signal });
    const look = () => {
        if (clicked.began && [...document.querySelectorAll(selector)].some(one => one.textContent.includes(text)))
            setTimeout(() => { clicked.took = performance.now() - clicked.began; });
        else if (window.clicked === clicked) requestAnimationFrame(look);
    };
    delete sessionStorage.clicked;
    requestAnimationFrame(look);
}"""
# The time of the first paint of a page since the click that loaded it, or since the beginning of the navigation.
FIRST_PAINT = """() => new Promise(done => new PerformanceObserver(list => {
    const paint = list.getEntriesByName('first-contentful-paint')[0];
    if (paint) done(paint.startTime + performance.timeOrigin - (+sessionStorage.clicked || performance.timeOrigin));
}).observe({ type: 'paint', buffered: true }))"""
# Marks what is shown, so that an answer is not taken for it.
MARK = "() => document.querySelectorAll('main *').forEach(one => { one.dataset.before = ''; })"
PAINTED = "() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))"


# Looks in every frame: a locator looks after 20, 50, 100, 100 and then every 500 ms.
THERE = "([selector, text]) => [...document.querySelectorAll(selector)].some(one => one.textContent.includes(text))"


def wait_until_painted(page: Page, selector: str) -> None:
    """Wait for an element; `selector >> text` wants this text in it."""
    found, _, text = selector.partition(" >> ")
    page.wait_for_function(THERE, arg=[found, text])
    page.evaluate(PAINTED)
