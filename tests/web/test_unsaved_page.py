"""Text that is not saved yet: the page asks before it leaves it, and what else changes leaves it alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Dialog, Page, expect

from .conftest import Watched
from .made_memories import make_memories, make_proposals, open_memory
from .serving import serving

# Each drives a browser.
pytestmark = pytest.mark.exhaustive


@pytest.fixture
def page(watched: Watched, tmp_path: Path) -> Iterator[Page]:
    make_memories(tmp_path)
    make_proposals(tmp_path)
    with serving(tmp_path) as served:
        made = watched.page()
        made.goto(served.link)
        yield made


TYPED = "One file for each region.\n"


def edit(page: Page) -> None:
    page.click('.top nav a[href="/memories"]')
    page.locator(".card", has_text="Terraform state").click()
    page.click("#edit")
    expect(page.locator("form.editor input[name=description]")).to_be_focused()
    expect(page.locator("form.editor input[name=description]")).to_be_in_viewport()
    page.fill("textarea[name=body]", TYPED)


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
    expect(page.locator("textarea[name=body]")).to_have_value(TYPED)
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


def undo(page: Page, told: str) -> None:
    page.click("#undo")
    expect(page.locator("#status")).to_contain_text(told)


def test_undo_leaves_the_text_of_an_open_form_alone(page: Page) -> None:
    page.click('.top nav a[href="/memories"]')
    page.locator(".prop [data-hotkey=x]").first.click()
    expect(page.locator("#undo")).to_be_visible()
    edit(page)
    page.locator("select[name=type]").select_option("reference")
    undo(page, "waits again")
    expect(page.locator(".top nav .count")).to_have_text("3")
    expect(page.locator("textarea[name=body]")).to_have_value(TYPED)
    expect(page.locator("select[name=type]")).to_have_value("reference")
    page.click("form.editor button.main")
    expect(page.locator("#memory .text")).to_contain_text(TYPED.strip())


def test_undo_in_another_view_leaves_the_text_of_an_open_form_alone(page: Page, watched: Watched) -> None:
    edit(page)
    page.click("form.editor button.main")
    expect(page.locator("#undo")).to_be_visible()
    page.click("#edit")
    page.fill("textarea[name=body]", "Typed later.\n")
    page.on("dialog", lambda dialog: dialog.accept())
    undo(page, "Restored")
    expect(page.locator("textarea[name=body]")).to_have_value("Typed later.\n")
    page.click("form.editor button.main")
    expect(page.locator(".both .version")).to_have_text("One file per region.\n")
    expect(page.locator(".both textarea[name=body]")).to_have_value("Typed later.\n")
    watched.expect("409")


def test_undo_of_a_new_memory_leaves_the_text_that_is_typed_into_it(page: Page, watched: Watched) -> None:
    page.click('.top nav a[href="/memories"]')
    page.click("[data-hotkey=n]")
    page.fill("input[name=name]", "Release day")
    page.fill("textarea[name=body]", "Friday.\n")
    page.click("form.editor button.main")
    page.click("#edit")
    page.fill("textarea[name=body]", "Thursday.\n")
    undo(page, "to the trash")
    expect(page.locator("textarea[name=body]")).to_have_value("Thursday.\n")
    page.click("form.editor button.main")
    expect(page.locator(".both textarea[name=body]")).to_have_value("Thursday.\n")
    watched.expect("404", "409")


def test_the_page_asks_before_it_leaves_a_conflict_that_is_not_decided(page: Page, tmp_path: Path, watched: Watched) -> None:
    edit(page)
    with open_memory(tmp_path, "infra") as memory:
        memory.save("Terraform state", type="project", description="State.", body="Changed by somebody else.\n")
    page.click("form.editor button.main")
    expect(page.locator(".both .version")).to_be_visible()
    page.once("dialog", lambda dialog: dialog.dismiss())
    with page.expect_event("dialog"):
        page.evaluate("""setTimeout(() => document.querySelector('.top nav a[href="/dreams"]').click())""")
    expect(page.locator(".both textarea[name=body]")).to_have_value(TYPED)
    page.click(".both button.main")
    expect(page.locator("#memory .text")).to_contain_text(TYPED.strip())
    watched.expect("409")


def test_whoever_keeps_the_other_version_of_a_memory_is_not_asked_again(page: Page, tmp_path: Path, watched: Watched) -> None:
    edit(page)
    with open_memory(tmp_path, "infra") as memory:
        memory.save("Terraform state", type="project", description="State.", body="Changed by somebody else.\n")
    page.click("form.editor button.main")
    page.on("dialog", lambda dialog: dialog.dismiss())
    page.get_by_role("link", name="Keep theirs").click()
    expect(page.locator("#memory .text")).to_contain_text("Changed by somebody else.")
    watched.expect("409")


def test_whoever_keeps_the_other_value_of_a_setting_sees_it(page: Page, tmp_path: Path, watched: Watched) -> None:
    page.click('.top nav a[href="/settings"]')
    row = page.locator('[id="lamina.notes.firstAt"]')
    row.locator("input.val").fill("13000")
    (tmp_path / ".lamina" / "settings.json").write_text('{"lamina": {"notes": {"firstAt": 7000}}}', "utf-8")
    page.keyboard.press("Enter")
    row.get_by_role("link", name="Keep it").click()
    expect(row.locator("input.val")).to_have_value("7000")
    expect(row).to_be_in_viewport()
    watched.expect("409")


def test_a_choice_stays_while_the_view_follows_and_is_left_without_a_question(page: Page) -> None:
    page.click('.top nav a[href="/dreams"]')
    choice = page.locator("select[name=place]")
    other = choice.evaluate("one => one.options[one.options.length - 1].value")
    assert choice.input_value() != other
    choice.select_option(other)
    choice.blur()
    page.evaluate("{ window.kept = document.querySelector('main h1'); lamina.refresh(); }")
    page.wait_for_function("() => !window.kept.isConnected")
    expect(choice).to_have_value(other)
    page.on("dialog", lambda dialog: dialog.dismiss())
    page.click('.top nav a[href="/sessions"]')
    page.wait_for_url("**/sessions")


def test_going_back_and_staying_keeps_the_way_forward(page: Page) -> None:
    edit(page)
    page.fill("textarea[name=body]", page.locator("textarea[name=body]").evaluate("one => one.defaultValue"))
    address = page.url
    page.click('.top nav a[href="/dreams"]')
    page.wait_for_url("**/dreams")
    page.click('.top nav a[href="/settings"]')
    page.wait_for_url("**/settings")
    page.evaluate("history.go(-2)")
    page.fill("textarea[name=body]", TYPED)
    for steps in (-1, -2, 1):
        page.once("dialog", lambda dialog: dialog.dismiss())
        with page.expect_event("dialog"):
            page.evaluate(f"setTimeout(() => history.go({steps}))")
        page.wait_for_url(address)
        expect(page.locator("textarea[name=body]")).to_have_value(TYPED)
    page.once("dialog", lambda dialog: dialog.accept())
    page.evaluate("setTimeout(() => history.go(2))")
    page.wait_for_url("**/settings")
    expect(page.locator("h1")).to_have_text("Settings")


def test_an_undo_that_comes_too_late_shows_the_memory_with_its_history(page: Page, tmp_path: Path, watched: Watched) -> None:
    edit(page)
    page.click("form.editor button.main")
    expect(page.locator("#undo")).to_be_visible()
    page.click('.top nav a[href="/dreams"]')
    page.wait_for_url("**/dreams")
    with open_memory(tmp_path, "infra") as memory:
        memory.save("Terraform state", type="project", description="State.", body="Changed by somebody else.\n")
    undo(page, "Changed by the command line just now. Nothing was lost. The history of “Terraform state” has every version.")
    expect(page.locator("#memory .text")).to_contain_text("Changed by somebody else.")
    expect(page.locator("#memory .hist li")).to_have_count(3)
    watched.expect("409")
