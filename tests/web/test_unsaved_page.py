"""Text that is not saved yet: the page asks before it leaves it, and what else changes leaves it alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Dialog, Page, expect

from .conftest import Watched
from .made_memories import make_memories
from .serving import serving

# Each drives a browser.
pytestmark = pytest.mark.exhaustive


@pytest.fixture
def page(watched: Watched, tmp_path: Path) -> Iterator[Page]:
    make_memories(tmp_path)
    with serving(tmp_path) as served:
        made = watched.page()
        made.goto(served.link)
        yield made


def edit(page: Page) -> None:
    page.click('.top nav a[href="/memories"]')
    page.locator(".card", has_text="Terraform state").click()
    page.click("#edit")
    page.fill("textarea[name=body]", "One file for each region.\n")


@pytest.mark.parametrize("way", ["document.querySelector('.top nav a[href=\"/dreams\"]').click()", "history.back()"])
def test_the_page_asks_before_it_leaves_text_that_is_not_saved(page: Page, way: str) -> None:
    edit(page)
    address, asked = page.url, list[str]()

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    page.once("dialog", stay)
    with page.expect_event("dialog"):
        page.evaluate(f"setTimeout(() => {way})")
    page.wait_for_url(address)
    expect(page.locator("textarea[name=body]")).to_have_value("One file for each region.\n")
    assert asked == ["Leave without saving your changes?"]
    page.once("dialog", lambda dialog: dialog.accept())
    page.evaluate(f"setTimeout(() => {way})")
    expect(page.locator("textarea[name=body]")).to_have_count(0)


def test_what_is_saved_is_left_without_a_question(page: Page) -> None:
    edit(page)
    asked = list[str]()

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", stay)
    page.click("form.editor button.main")
    expect(page.locator("textarea[name=body]")).to_have_count(0)
    page.click('.top nav a[href="/dreams"]')
    page.wait_for_url("**/dreams")
    assert asked == []


def test_a_setting_that_is_typed_stays_while_another_one_is_saved(page: Page) -> None:
    page.click('.top nav a[href="/settings"]')
    page.fill('[id="set-lamina.budgetTokens"]', "3000000")
    page.fill('[id="set-lamina.budgetCalls"]', "300")
    page.click('[id="save-lamina.budgetCalls"]')
    expect(page.locator("#undo")).to_be_visible()
    expect(page.locator('[id="set-lamina.budgetTokens"]')).to_have_value("3000000")
    page.evaluate("lamina.refresh()")
    page.click('[id="save-lamina.budgetTokens"]')
    expect(page.locator("#status")).to_contain_text("lamina.budgetTokens")
    expect(page.locator('[id="set-lamina.budgetCalls"]')).to_have_value("300")
