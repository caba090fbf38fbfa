"""Turns and requests that are longer than a browser shows at a click: their beginning and end, and the parts between when unfolded."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from lamina.web.turn_view import PART

from . import patient
from .conftest import Watched
from .made_home import WINDOW_SESSION, ClaudeSession, make_home
from .serving import Served, serving

ADDRESS = f"/sessions/claude-code/{WINDOW_SESSION}"
CALLS = 200


def long_turn(root: Path, calls: int = CALLS) -> ClaudeSession:
    """A session with one turn of so many calls, two records each; the file named after the 101st call stands in no other."""
    made = ClaudeSession(make_home(root, others=0), str(root / "work" / "shop-api"))
    made.user("Look at every file.")
    for number in range(calls):
        made.call("Read", {"file_path": f"src/file_{number}.py"}, 20)
    made.answer({"type": "text", "text": "I have read them all."})
    made.write()
    return made


def opened(served: Served, watched: Watched, address: str = ADDRESS) -> Page:
    page = watched.page()
    page.goto(served.link)
    page.goto(served.base + address)
    page.wait_for_selector("#chart svg path.area")
    return page


def fetch(served: Served, path: str) -> tuple[int, str]:
    answer = patient.get(served.base + path, cookies=served.cookies(), headers={"X-Lamina-Part": "1"})
    return answer.status_code, answer.text


def calls_in(text: str) -> list[int]:
    return [int(number) for number in re.findall(r'<summary class="call">(?:(?!</summary>).)*?file_(\d+)\.py', text)]


def test_a_long_turn_shows_its_beginning_and_end_and_its_parts_hold_every_call_once(tmp_path: Path) -> None:
    long_turn(tmp_path)
    with serving(tmp_path) as served:
        status, text = fetch(served, f"{ADDRESS}/turns/1")
        shown = calls_in(text)
        later = re.findall(r'data-load="([^"]*)"><summary', text)
        assert status == 200
        assert (shown[0], shown[-1]) == (0, CALLS - 1)
        assert 3 <= len(later) < CALLS * 2 // PART
        assert "I have read them all." in text
        for url in later:
            shown += calls_in(fetch(served, url)[1])
        assert sorted(shown) == [*range(CALLS)]
        labels = re.findall(r'btn sm">Requests (\d+) to (\d+), \d+ records', text)
        assert [int(start) for start, _ in labels[1:2]] == [int(labels[0][1]) + 1], "each label goes on where the one before ends"
        assert len(json.loads(fetch(served, f"{ADDRESS}/turns/1?format=json")[1])) == CALLS * 2 + 2, "programs get all"
        for wrong in ("from=99999", "from=x", "from=-1", "from=²"):
            assert fetch(served, f"{ADDRESS}/turns/1?{wrong}")[0] == 200


def test_a_turn_that_is_not_long_shows_everything(tmp_path: Path) -> None:
    long_turn(tmp_path, calls=80)
    with serving(tmp_path) as served:
        _, text = fetch(served, f"{ADDRESS}/turns/1")
        assert calls_in(text) == [*range(80)]
        assert "records<" not in text


def test_the_part_that_a_filter_found_is_shown_with_its_turn(tmp_path: Path) -> None:
    long_turn(tmp_path)
    with serving(tmp_path) as served:
        assert 100 not in calls_in(fetch(served, f"{ADDRESS}/turns/1")[1])
        assert 100 in calls_in(fetch(served, f"{ADDRESS}/turns/1?find=FILE_100.py")[1])


@pytest.mark.spec("V5")
def test_a_part_that_was_unfolded_stays_while_its_turn_grows_and_comes_back(tmp_path: Path, watched: Watched) -> None:
    session = long_turn(tmp_path)
    with serving(tmp_path) as served:
        page = opened(served, watched)
        page.click("#d1 > summary")
        page.click(f"#d1-{PART} > summary")
        part = page.locator(f"#d1-{PART} .call").first
        expect(part).to_be_visible()
        expect(page.locator("html")).to_have_attribute("data-live", "1")
        known = len(session.rows)
        session.call("Read", {"file_path": "src/new.py"}, 20)
        with open(session.path, "a", encoding="utf-8") as file:
            file.write("".join(json.dumps(row) + "\n" for row in session.rows[known:]))
        expect(page.locator("#d1 .ev")).to_contain_text(["new.py"])
        expect(part).to_be_visible()
        page.keyboard.press("g")
        page.keyboard.press("d")
        expect(page.locator("h1")).to_contain_text("Dreams")
        page.go_back()
        expect(page.locator(f"#d1-{PART} .call").first).to_be_visible()


@pytest.mark.spec("V2")
def test_a_request_with_many_blocks_shows_the_others_when_they_are_unfolded(tmp_path: Path, watched: Watched) -> None:
    long_turn(tmp_path, calls=150)
    with serving(tmp_path) as served:
        page = opened(served, watched, f"{ADDRESS}?r=150")
        page.click("text=Open the whole request")
        expect(page.locator("h1")).to_contain_text("Request 150 of")
        page.fill("input[name=against]", "1")
        page.click("text=Compare >> nth=-1")
        expect(page.locator(".sec h2")).to_have_text("Since request 1")
        came = int(re.sub(r"\D", "", (page.locator(".sec .good").inner_text()).split(" ")[0]))
        for start in (50, 200):
            page.click(f"#came-{start} > summary")
            expect(page.locator(f"#came-{start} > ul.rows > li").first).to_be_visible()
        assert page.locator("ul.rows b .good").count() == came
        for start in (50, 200):
            page.click(f"#all-{start} > summary")
            expect(page.locator(f"#all-{start} > ol.rows > li").first).to_be_visible()
        total = int(re.sub(r"\D", "", page.locator("#tot b").inner_text()))
        sizes = [int(one.replace(",", "")) for one in page.locator("ol.rows summary .num").all_inner_texts()]
        assert sum(sizes) == total
        assert fetch(served, f"{ADDRESS}/requests/150/rows/none")[0] == 404
        assert fetch(served, f"{ADDRESS}/requests/9999/rows/all")[0] == 404


def test_without_scripts_each_part_is_a_link(tmp_path: Path, browser: Browser) -> None:
    long_turn(tmp_path)
    with serving(tmp_path) as served:
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(served.link)
        page.goto(f"{served.base}{ADDRESS}/turns/1")
        page.click("noscript a >> nth=0")
        assert page.locator(".ev .call").count() > 10
        page.goto(f"{served.base}{ADDRESS}/requests/200")
        page.locator("noscript a").last.click()
        assert page.locator("ol.rows > li").count() > 10
        context.close()


def test_a_number_that_is_none_is_passed_over(tmp_path: Path) -> None:
    long_turn(tmp_path, calls=3)
    with serving(tmp_path) as served:
        for query in ("turns=²", "turns=٣", "r=²", f"turns={'9' * 5_000}", "turns=0"):
            status, text = fetch(served, f"{ADDRESS}?{query}")
            assert (status, 'id="t1"' in text) == (200, True), query
