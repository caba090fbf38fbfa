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
        later = re.findall(r'data-load="([^"]*)" class="script"><summary', text)
        assert status == 200
        assert (shown[0], shown[-1]) == (0, CALLS - 1)
        assert len(later) == -(-(CALLS * 2 + 2) // PART) - 3
        assert "I have read them all." in text
        for url in later:
            shown += calls_in(fetch(served, url)[1])
        assert sorted(shown) == [*range(CALLS)]
        labels = re.findall(r'btn sm">Requests (\d+) to (\d+), \d+ records', text)
        assert [int(start) for start, _ in labels[1:]] == [int(end) + 1 for _, end in labels[:-1]], "each goes on where one ends"
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


def test_a_result_whose_call_is_in_another_turn_is_shown_with_its_own(tmp_path: Path) -> None:
    session = long_turn(tmp_path, calls=1)
    call, result = next(row for row in session.rows if "tool_use" in json.dumps(row)), session.rows[2]
    session.rows.remove(result)
    session.user("Never mind, go on.")
    session.rows.append(result | {"parentUuid": session.parent})
    session.write()
    with serving(tmp_path) as served:
        assert "no result in this turn" in fetch(served, f"{ADDRESS}/turns/1")[1]
        text = fetch(served, f"{ADDRESS}/turns/2")[1]
        assert "result of a call in another turn" in text
        assert call["uuid"] not in text
        assert result["message"]["content"][0]["content"][:20] in text


def test_records_of_unknown_kinds_are_counted_and_shown_as_they_are(tmp_path: Path) -> None:
    session = long_turn(tmp_path, calls=1)
    others = [{"type": "mystery", "number": number, "payload": "<b>"} for number in range(60)]
    with open(session.path, "a", encoding="utf-8") as file:
        file.write("".join(json.dumps(row) + "\n" for row in others))
    with serving(tmp_path) as served:
        assert "Other records: mystery 60" in fetch(served, f"{ADDRESS}/turns/1")[1]
        _, first = fetch(served, f"{ADDRESS}/turns/1/others")
        assert first.count("<pre") == 50
        assert "&lt;b&gt;" in first
        (more,) = re.findall(r'data-load="([^"]*)"', first)
        assert fetch(served, more)[1].count("<pre") == 10
        assert json.loads(fetch(served, f"{ADDRESS}/turns/1/others?format=json")[1]) == others
        plain = json.loads(fetch(served, f"{ADDRESS}/turns/1?format=json")[1])
        assert [row["record"] for row in plain if row["kind"] == "foreign"] == others
        assert fetch(served, f"{ADDRESS}/turns/99/others?format=json")[1] == "[]"


@pytest.mark.exhaustive
@pytest.mark.spec("V2")
def test_a_link_to_a_message_opens_its_turn_and_its_part_wherever_they_are(tmp_path: Path, watched: Watched) -> None:
    made = ClaudeSession(make_home(tmp_path, others=0), str(tmp_path / "work" / "shop-api"))
    for number in range(70):
        made.user(f"Step {number}")
        made.answer({"type": "text", "text": "Done."})
    made.user("Look at every file.")
    for number in range(CALLS):
        made.call("Read", {"file_path": f"src/file_{number}.py"}, 20)
    made.answer({"type": "text", "text": "I have read them all."})
    made.write()
    with serving(tmp_path) as served:
        page = opened(served, watched, f"{ADDRESS}?r={70 + CALLS}")
        page.click("text=Open the whole request")
        page.click("#all-50 > summary")
        page.click("#all-200 > summary")
        block = page.locator("ol.rows > li", has_text="file_100.py").first
        block.locator("summary").first.click()
        block.locator("dl a").click()
        call = page.locator("#d71 .call", has_text="file_100.py")
        expect(call).to_be_in_viewport()
        page.goto(f"{served.base}/search?q=file_97.py&exact=1")
        page.locator("a.result").first.click()
        expect(page.locator("#d71 .call", has_text="file_97.py")).to_be_in_viewport()
        page.reload()
        expect(page.locator("#d71 .call", has_text="file_97.py")).to_be_in_viewport()
        record = next(row["uuid"] for row in made.rows if "file_55.py" in json.dumps(row))
        page.goto(f"{served.base}{ADDRESS}/messages/{record}")
        expect(page.locator("#d71 .call", has_text="file_55.py")).to_be_in_viewport()


@pytest.mark.exhaustive
@pytest.mark.spec("V5")
def test_what_is_read_stays_while_its_turn_grows_into_another_part(tmp_path: Path, watched: Watched) -> None:
    session = long_turn(tmp_path)
    with serving(tmp_path) as served:
        page = opened(served, watched)
        page.click("#d1 > summary")
        last = page.locator("#d1 .call", has_text=f"file_{CALLS - 20}.py")
        last.click()
        shown = page.locator("#d1 details[open] pre", has_text=f"file_{CALLS - 20}.py")
        expect(shown).to_be_visible()
        expect(page.locator("html")).to_have_attribute("data-live", "1")
        known = len(session.rows)
        for number in range(2 * PART):
            session.call("Read", {"file_path": f"src/new_{number}.py"}, 20)
        with open(session.path, "a", encoding="utf-8") as file:
            file.write("".join(json.dumps(row) + "\n" for row in session.rows[known:]))
        expect(page.locator("#d1 .call", has_text=f"new_{2 * PART - 1}.py")).to_be_visible()
        expect(shown).to_be_visible()


@pytest.mark.exhaustive
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


@pytest.mark.exhaustive
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
        assert len(json.loads(fetch(served, f"{ADDRESS}/requests/150/rows/all?format=json")[1])) == len(sizes)
        assert "Request 999 does not exist." in fetch(served, f"{ADDRESS}/requests/150?against=999")[1]
        assert fetch(served, f"{ADDRESS}/requests/150/rows/none")[0] == 404
        assert fetch(served, f"{ADDRESS}/requests/9999/rows/all")[0] == 404


@pytest.mark.spec("V2")
def test_the_last_part_of_a_list_is_the_rest(tmp_path: Path) -> None:
    long_turn(tmp_path)
    with serving(tmp_path) as served:

        def labels(start: int, language: str) -> list[str]:
            part = fetch(served, f"{ADDRESS}/requests/{CALLS}/rows/all?from={start}&lang={language}")[1]
            return re.findall(r'btn sm">(.*?)</summary>', part)

        count = len(json.loads(fetch(served, f"{ADDRESS}/requests/{CALLS}/rows/all?format=json")[1]))
        for start, english, chinese in (
            (count - 301, "Show the next 150 of 151 more", "再显示 150 块，还剩 151 块"),
            (count - 300, "Show the other 150", "显示其余 150 块"),
            (count - 151, "Show the other one", "显示其余 1 块"),
        ):
            assert (labels(start, "en"), labels(start, "zh")) == ([english], [chinese])
        assert labels(count - 150, "en") == []


@pytest.mark.exhaustive
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
