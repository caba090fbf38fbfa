"""A browser for a module's tests, and pages that fail a test by a console error or a request that leaves this machine."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

import lamina.web.page

from .patient import PATIENCE
from .serving import Served

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


expect.set_options(timeout=PATIENCE * 1_000)


@pytest.fixture(scope="session", autouse=True)
def no_hurry() -> Iterator[None]:
    """Views wait for what is read the first time: on a busy machine, others would show that it is being read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lamina.web.page, "AT_ONCE", PATIENCE)
        yield


def find_browser() -> str | None:
    named = os.environ.get("LAMINA_TEST_BROWSER")
    return named or next((found for name in BROWSERS if (found := shutil.which(name)) is not None), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = find_browser()
    if path is None:
        pytest.skip("No browser found. Install chromium (apt-get install chromium), or set LAMINA_TEST_BROWSER to one.")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield started
        started.close()


class Watched:
    """A browser context whose pages must stay silent and on this machine."""

    def __init__(self, context: BrowserContext) -> None:
        self.context = context
        self.problems: list[str] = []
        self._expected: list[str] = []

    def expect(self, *words: str) -> None:
        """Pass over problems with one of these words, also those that the browser reports later: it logs every 404 and 409."""
        self._expected += words

    @property
    def unexpected(self) -> list[str]:
        return [one for one in self.problems if not any(word in one for word in self._expected)]

    def page(self) -> Page:
        made = self.context.new_page()
        made.set_default_timeout(PATIENCE * 1_000)
        made.on("console", lambda message: self._told(message.type, message.text))
        made.on("pageerror", lambda error: self.problems.append(str(error)))
        made.on("request", lambda request: self._check(request.url))
        return made

    def _told(self, kind: str, text: str) -> None:
        # A test's server may stop before its page is closed.
        if kind in ("error", "warning") and "net::ERR_CONNECTION_REFUSED" not in text:
            self.problems.append(text)

    def _check(self, url: str) -> None:
        if urlsplit(url).hostname not in ("127.0.0.1", None):
            self.problems.append(f"a request left this machine: {url}")


@pytest.fixture
def watched(browser: Browser) -> Iterator[Watched]:
    context = browser.new_context(viewport={"width": 1_400, "height": 1_000}, locale="en-GB", timezone_id="UTC")
    made = Watched(context)
    yield made
    context.close()
    assert made.unexpected == []


@pytest.fixture
def page(watched: Watched, served: Served) -> Page:
    """The first view of what a module's `served` serves."""
    made = watched.page()
    made.goto(served.link)
    return made
