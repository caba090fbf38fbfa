"""A window of 360 pixels: long values move to the next line as a whole, and nothing makes the page wider."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from .conftest import Watched
from .made_home import HEAD, WINDOW_SESSION, ClaudeSession, make_home
from .serving import Served, serving

pytestmark = pytest.mark.exhaustive

# Whether a text stands on one line.
ON_ONE_LINE = """one => { const range = document.createRange(); range.selectNodeContents(one);
    return new Set([...range.getClientRects()].map(box => Math.round(box.bottom))).size === 1; }"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("home-of-somebody-with-a-long-name")
    made = ClaudeSession(make_home(root, others=0), str(root / "work" / "shop-api"))
    made.user("Look at every file.")
    made.window += 120_000
    made.answer({"type": "text", "text": "I have read them all."})
    made.cached = HEAD
    made.answer({"type": "text", "text": "And once more."})
    for kind in ("file-history-snapshot", "progress", "queue-operation", "saved-hook-context"):
        made.row(kind)
    made.write()
    (root / ".lamina").mkdir(exist_ok=True)
    (root / ".lamina" / "settings.json").write_text(json.dumps({"lamina": {"billing": "list"}}), "utf-8")
    with serving(root) as page:
        yield page


@pytest.fixture
def narrow(watched: Watched, served: Served) -> Page:
    page = watched.page()
    page.set_viewport_size({"width": 360, "height": 760})
    page.goto(served.link)
    return page


@pytest.mark.spec("V6")
def test_the_figures_of_a_request_and_its_other_records_fit(narrow: Page, served: Served) -> None:
    narrow.goto(f"{served.base}/sessions/claude-code/{WINDOW_SESSION}")
    narrow.wait_for_selector("#chart svg path.area")
    figures = narrow.locator("#tot > *").all()
    assert len(figures) > 2
    for figure in figures:
        assert figure.evaluate(ON_ONE_LINE), figure.inner_text()
    narrow.click("#d1 > summary")
    expect(narrow.locator("#d1 summary.btn")).to_contain_text("saved-hook-context")
    assert narrow.evaluate("document.documentElement.scrollWidth") == 360


@pytest.mark.spec("V6")
def test_a_value_is_whole_beside_the_file_that_it_comes_from(narrow: Page, served: Served) -> None:
    narrow.goto(f"{served.base}/settings")
    row = narrow.locator('[id="lamina.billing"]')
    expect(row).to_contain_text("settings.json")
    assert row.locator(".value").evaluate(ON_ONE_LINE)
