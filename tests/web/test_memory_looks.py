"""The views of memories, the inbox and dreams: contrast, names and sizes of controls, both themes, narrow and wide, two languages."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from .looks import bad_contrast, small_or_unnamed
from .made_memories import make_dream, make_memories, make_proposals
from .serving import serving
from .test_memories import address, data, place


@pytest.mark.exhaustive
@pytest.mark.parametrize(("scheme", "width"), [("light", 1_400), ("dark", 1_400), ("light", 360), ("dark", 360)])
def test_every_view_has_contrast_names_and_sizes_and_no_sideways_scrolling(
    browser: Browser, tmp_path: Path, scheme: str, width: int
) -> None:
    make_memories(tmp_path)
    make_dream(tmp_path)
    make_proposals(tmp_path)
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    with serving(tmp_path) as served:
        page = context.new_page()
        page.goto(served.link)
        dream = data(served, "/dreams")["dreams"][0]["url"]
        one, new = address(tmp_path), f"/memories/new?project={place(tmp_path)}"
        search, forget = "/memories?q=staging&lang=zh", "/memories/forget?subject=staging"
        for path in (
            "/memories",
            search,
            one,
            f"{one}?edit=1",
            new,
            "/memories/duplicates",
            "/memories/trash",
            forget,
            "/dreams",
            dream,
        ):
            page.goto(served.base + path)
            assert bad_contrast(page) == [], path
            assert small_or_unnamed(page) == [], path
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    context.close()


@pytest.mark.exhaustive
@pytest.mark.parametrize("width", [1_400, 360])
def test_the_fields_of_a_form_are_as_wide_as_the_form(browser: Browser, tmp_path: Path, width: int) -> None:
    make_memories(tmp_path)
    context = browser.new_context(viewport={"width": width, "height": 900})
    with serving(tmp_path) as served:
        page = context.new_page()
        page.goto(served.link)
        for path in (f"{address(tmp_path)}?edit=1", "/memories/new", "/memories/forget"):
            page.goto(served.base + path)
            form = page.locator("form.editor").first
            fields = form.locator("label > :is(input, select, textarea)").all()
            assert fields
            outer = form.bounding_box()
            assert outer is not None
            for field in fields:
                box = field.bounding_box()
                assert box is not None
                assert box["width"] == pytest.approx(outer["width"], abs=1), path
    context.close()
