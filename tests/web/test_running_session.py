"""A session's page while its file grows, is replaced or is emptied, and what its address keeps."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from .conftest import Watched
from .made_home import WINDOW_SESSION, ClaudeSession, make_home, window_session
from .serving import Served, serving

pytestmark = pytest.mark.exhaustive

ADDRESS = f"/sessions/claude-code/{WINDOW_SESSION}"
REPLACED = "This session was replaced on disk. Showing the new one."
# Whether the end of the page is in view.
AT_END = "() => innerHeight + scrollY > document.documentElement.scrollHeight - 5"


@pytest.fixture
def session(tmp_path: Path) -> ClaudeSession:
    path = make_home(tmp_path, others=0)
    made = window_session(path, str(tmp_path / "work" / "shop-api"))
    made.write()
    return made


@pytest.fixture
def served(tmp_path: Path, session: ClaudeSession) -> Iterator[Served]:
    with serving(tmp_path) as page:
        yield page


@pytest.fixture
def opened(served: Served, watched: Watched) -> Callable[[str], Page]:
    """Opens the session with a query, and waits until it is shown and followed."""
    page = watched.page()
    page.goto(served.link)

    def go(query: str) -> Page:
        page.goto(served.base + ADDRESS + query)
        shown(page)
        return page

    return go


def shown(page: Page) -> None:
    page.wait_for_selector("#chart svg path.area")
    page.wait_for_selector("#blocks:not([aria-busy])")
    expect(page.locator("html")).to_have_attribute("data-live", "1")


def count_of(page: Page) -> int:
    return int(page.locator(".scrub").get_attribute("max") or 0)


def grow(session: ClaudeSession, requests: int) -> None:
    """Append as many requests to the last turn."""
    known = len(session.rows)
    for number in range(requests):
        session.call("Read", {"file_path": f"src/new_{known + number}.py"}, 200)
    with session.path.open("a", encoding="utf-8") as file:
        file.write("".join(lines(session)[known:]))


def lines(session: ClaudeSession) -> list[str]:
    return [json.dumps(row) + "\n" for row in session.rows]


def replace(path: Path, text: str) -> None:
    other = path.with_suffix(".new")
    other.write_text(text, "utf-8")
    os.replace(other, path)


def sentence(page: Page) -> str:
    return page.locator(".scrub").get_attribute("aria-valuetext") or ""


@pytest.mark.spec("V5")
@pytest.mark.parametrize("atomic", [False, True])
def test_a_session_that_is_replaced_right_after_it_was_opened_is_shown_anew(
    session: ClaudeSession, opened: Callable[[str], Page], atomic: bool
) -> None:
    page = opened("?r=53")
    kept = session.rows if atomic else session.rows[:60]
    count = len({row["message"]["id"] for row in kept if row["type"] == "assistant"})
    assert (count > 53) == atomic
    text = "".join(lines(session)[: len(kept)]).replace("rounded", "ROUNDED")
    if atomic:
        replace(session.path, text)
    else:
        session.path.write_text(text, "utf-8")
    expect(page.locator("#status")).to_have_text(REPLACED)
    expect(page.locator(".scrub")).to_have_attribute("max", str(count))
    expect(page.locator("#hr")).to_have_text(f"Request {count} of {count}")
    expect(page.locator(".scrub")).to_have_value(str(count))


@pytest.mark.spec("V5")
def test_a_session_that_is_emptied_shows_no_chart_until_it_has_requests_again(
    session: ClaudeSession, opened: Callable[[str], Page]
) -> None:
    page = opened("?r=53")
    count = count_of(page)
    page.evaluate("scrollTo(0, 0)")
    grow(session, 9)
    expect(page.locator("#new-below")).to_have_text("9 new")
    page.click("[data-axis=time]")
    session.path.write_text("", "utf-8")
    expect(page.locator("#figs")).to_have_text("This session has no requests yet.")
    expect(page.locator("#status")).to_have_text(REPLACED)
    expect(page.locator("#chart svg")).to_have_count(0)
    expect(page.locator("#req")).to_have_count(0)
    expect(page.locator("#new-below")).to_be_hidden()
    session.path.write_text("".join(lines(session)), "utf-8")
    expect(page.locator(".scrub")).to_have_attribute("max", str(count + 9))
    shown(page)
    expect(page.locator("[data-axis=request]")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#status")).to_have_text(REPLACED)
    number = page.locator("#req").get_attribute("data-number")
    expect(page.locator("#hr")).to_have_text(f"Request {number} of {count + 9}")
    expect(page.locator(".scrub")).to_have_value(str(number))


@pytest.mark.spec("V6")
def test_the_slider_says_the_request_in_a_sentence_of_plain_text(opened: Callable[[str], Page]) -> None:
    page = opened("?r=2")
    assert "<" not in sentence(page)
    before = sentence(page)
    assert before.startswith(f"Request 2 of {count_of(page)}, ")
    assert "tokens" in before
    for key, number in (("Home", 1), ("Shift+ArrowLeft", 1), ("End", count_of(page)), ("Shift+ArrowRight", count_of(page))):
        page.keyboard.press(key)
        expect(page.locator("#req")).to_have_attribute("data-number", str(number))
        said = page.locator("#req").get_attribute("data-sentence") or ""
        assert "tokens" in said
        expect(page.locator(".scrub")).to_have_attribute("aria-valuetext", said)


@pytest.mark.spec("V6")
def test_the_slider_says_the_sentence_of_a_request_that_is_left_and_chosen_again(opened: Callable[[str], Page]) -> None:
    page = opened("?r=20")
    with page.expect_response("**/requests/21/panel"):
        page.evaluate("""() => {
          const scrub = document.querySelector('.scrub');
          for (const value of [21, 20]) { scrub.value = value; scrub.dispatchEvent(new Event('input')); }
        }""")
    expect(page.locator(".scrub")).to_have_attribute("aria-valuetext", page.locator("#req").get_attribute("data-sentence") or "")


@pytest.mark.spec("V5")
def test_a_view_of_the_end_stays_there_while_a_turn_grows_and_otherwise_new_requests_are_counted(
    session: ClaudeSession, opened: Callable[[str], Page]
) -> None:
    page = opened("?r=9999")
    count = count_of(page)
    page.locator(".turns > li:last-child > details > summary").click()
    expect(page.locator(".turns > li:last-child .rq")).not_to_have_count(0)
    page.evaluate("scrollTo(0, 1e9)")
    for _ in range(2):
        grow(session, 8)
        count += 8
        expect(page.locator("#hr")).to_have_text(f"Request {count} of {count}")
        page.wait_for_function(AT_END)
        expect(page.locator("#new-below")).to_be_hidden()
    expect(page.locator(".turns > li:last-child")).to_contain_text(f"request {count},")
    page.evaluate("scrollTo(0, 300)")
    for added, waiting in ((5, 5), (2, 7)):
        grow(session, added)
        expect(page.locator("#new-below")).to_have_text(f"{waiting} new")
    assert page.evaluate("scrollY") == 300
    page.click("#new-below")
    page.wait_for_function(AT_END)
    expect(page.locator("#new-below")).to_be_hidden()
    page.evaluate("scrollTo(0, 300)")
    grow(session, 3)
    expect(page.locator("#new-below")).to_have_text("3 new")
    page.evaluate("scrollTo(0, 1e9)")
    expect(page.locator("#new-below")).to_be_hidden()


@pytest.mark.spec("V5")
def test_nothing_is_announced_below_if_the_newest_turn_is_not_listed(
    session: ClaudeSession, opened: Callable[[str], Page]
) -> None:
    page = opened("?r=30&find=eu-west-1")
    expect(page.locator(".turns > li")).to_have_count(1)
    page.evaluate("scrollTo(0, 0)")
    count = count_of(page)
    grow(session, 4)
    expect(page.locator("#hr")).to_have_text(f"Request 30 of {count + 4}")
    expect(page.locator("#new-below")).to_be_hidden()


def drag(page: Page, start: float, end: float) -> None:
    """Drag over a part of the plot."""
    box = page.locator(".hit").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * start, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * end, box["y"] + 50, steps=4)
    page.mouse.up()


def range_of(page: Page) -> list[int]:
    return [int(one.input_value()) for one in page.locator(".range input").all()]


@pytest.mark.spec("V2")
def test_the_range_is_in_the_address_and_stays_while_the_session_grows(
    session: ClaudeSession, opened: Callable[[str], Page]
) -> None:
    page = opened("?r=9999")
    count = count_of(page)
    drag(page, 0.3, 0.6)
    first, last = range_of(page)
    assert 1 < first < last < count
    assert f"from={first}&to={last}" in page.url
    page.reload()
    shown(page)
    assert range_of(page) == [first, last]
    expect(page.locator("#hr")).to_have_text(f"Request {count} of {count}")
    grow(session, 3)
    expect(page.locator("#hr")).to_have_text(f"Request {count + 3} of {count + 3}")
    assert range_of(page) == [first, last]
    page.fill("#filter input[name=find]", "eu-west-1")
    expect(page.locator(".turns > li")).to_have_count(1)
    page.wait_for_url(f"**find=eu-west-1**from={first}&to={last}**")
    page.keyboard.press("Escape")
    page.keyboard.press("0")
    page.wait_for_function("() => !/from=|to=/.test(location.search)")
    assert range_of(page) == [1, count + 3]
    drag(page, 0.5, 0.999)
    first = range_of(page)[0]
    assert first > 1
    assert f"from={first}" in page.url
    assert "to=" not in page.url, "a range up to the end has none"
    grow(session, 2)
    expect(page.locator(".scrub")).to_have_attribute("max", str(count + 5))
    assert range_of(page) == [first, count + 5]


@pytest.mark.spec("V2")
def test_a_range_that_the_session_does_not_have_shows_what_there_is(opened: Callable[[str], Page]) -> None:
    page = opened("")
    count = count_of(page)
    for query, expected in (
        ("?from=5000&to=9000", [1, count]),
        ("?from=20&to=9000", [20, count]),
        ("?from=-4&to=30", [1, 30]),
        ("?from=40&to=20", [40, 40]),
        ("?from=x&to=y", [1, count]),
        ("?from=2.5&to=1e9", [2, 2]),
    ):
        page = opened(query)
        assert range_of(page) == expected, query


@pytest.mark.spec("V2")
def test_a_range_that_follows_the_selection_keeps_its_width(opened: Callable[[str], Page]) -> None:
    page = opened("?r=40&from=31&to=50")
    count = count_of(page)
    page.keyboard.press("End")
    assert range_of(page) == [count - 19, count]
    page.keyboard.press("Home")
    assert range_of(page) == [1, 20]
    page.wait_for_function("() => /to=20/.test(location.search) && !/from=/.test(location.search)")


@pytest.mark.parametrize("request_", [1, 40, 9_999])
def test_zooming_out_shows_again_what_zooming_in_hid(opened: Callable[[str], Page], request_: int) -> None:
    page = opened(f"?r={request_}")
    count = count_of(page)
    for key, width in (("+", count // 2), ("+", count // 4), ("-", count // 4 * 2), ("-", count // 4 * 4), ("-", count)):
        page.keyboard.press(key)
        first, last = range_of(page)
        assert last - first + 1 == width, key


@pytest.mark.spec("V5")
def test_the_panel_of_an_earlier_request_follows_the_session_and_keeps_what_is_unfolded(
    session: ClaudeSession, opened: Callable[[str], Page]
) -> None:
    page = opened("?r=30")
    count = count_of(page)
    block = page.locator("#blocks details").nth(2)
    block.locator("summary").click()
    expect(block.locator(".more")).to_be_visible()
    top = page.locator("#req").evaluate("one => { one.scrollTop = 120; return one.scrollTop; }")
    assert top > 0
    for _ in range(2):
        grow(session, 2)
        count += 2
        expect(page.locator("#hr")).to_have_text(f"Request 30 of {count}")
        expect(page.locator(".scrub")).to_have_attribute(
            "aria-valuetext", page.locator("#req").get_attribute("data-sentence") or ""
        )
        assert sentence(page).startswith(f"Request 30 of {count}, ")
        expect(block.locator(".more")).to_be_visible()
        expect(block.locator("summary")).to_be_focused()
        assert page.locator("#req").evaluate("one => one.scrollTop") == top
    assert page.locator("#req .strip rect").count() > 12, "block by block"


@pytest.mark.spec("V5")
def test_the_last_request_that_is_being_read_is_not_left_for_a_newer_one(
    session: ClaudeSession, opened: Callable[[str], Page]
) -> None:
    page = opened("?r=9999")
    count = count_of(page)
    page.evaluate("scrollTo(0, 1e9)")
    block = page.locator("#blocks details").nth(2)
    block.locator("summary").click()
    page.locator("#hc").click()
    grow(session, 2)
    expect(page.locator("#hr")).to_have_text(f"Request {count} of {count + 2}")
    expect(page.locator("#new-below")).to_have_text("2 new")
    expect(block.locator(".more")).to_be_visible()
    expect(page.locator("#req a[aria-label='Next request']")).to_have_attribute("data-select", str(count + 1))
    page.click("#new-below")
    expect(page.locator("#hr")).to_have_text(f"Request {count + 2} of {count + 2}")
    expect(page.locator("#new-below")).to_be_hidden()
    page.locator("#kinds button").first.focus()
    grow(session, 1)
    expect(page.locator("#hr")).to_have_text(f"Request {count + 2} of {count + 3}")
    expect(page.locator("#kinds button").first).to_be_focused()
    expect(page.locator("#new-below")).to_have_text("1 new")
    page.locator("#kinds button").first.blur()
    grow(session, 1)
    expect(page.locator("#hr")).to_have_text(f"Request {count + 4} of {count + 4}")
    expect(page.locator("#new-below")).to_be_hidden()


@pytest.mark.spec("V6")
def test_a_kind_keeps_the_focus_when_it_is_drawn_on_the_floor(opened: Callable[[str], Page]) -> None:
    page = opened("?r=30")
    button = page.locator("#kinds button[data-kind=shell]")
    with page.expect_response("**/requests/30/panel"):
        button.click()
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(button).to_be_focused()


@pytest.mark.spec("V5")
def test_a_request_of_a_session_that_is_gone_says_so(
    session: ClaudeSession, opened: Callable[[str], Page], watched: Watched
) -> None:
    page = opened("?r=30")
    session.path.unlink()
    expect(page.locator("#status")).to_have_text("This session is no longer on disk.")
    page.evaluate("document.querySelector('#status').hidden = true")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#status")).to_be_visible()
    expect(page.locator("#status")).to_have_text("This session is no longer on disk.")
    watched.expect("404")


@pytest.mark.spec("V2")
def test_another_page_of_turns_keeps_the_marks_the_selection_the_range_and_the_unfolded_block(
    opened: Callable[[str], Page],
) -> None:
    page = opened("?r=40&from=11&to=90")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#req")).to_have_attribute("data-number", "41")
    page.wait_for_selector("#blocks:not([aria-busy])")
    block = page.locator("#blocks details").nth(2)
    block.locator("summary").click()
    marks = [one.bounding_box() for one in page.locator(".mark:visible").all()]
    assert len(marks) > 1
    page.evaluate("""() => {
      const pages = document.createElement('nav'), link = document.createElement('a');
      pages.className = 'pages'; link.href = '?r=40&turns=1'; link.textContent = 'Later turns';
      pages.append(link); document.querySelector('#conv-turns').append(pages);
    }""")
    page.click(".pages a")
    page.wait_for_function("() => /turns=1/.test(location.search) && /r=41&.*from=11&to=90/.test(location.search)")
    expect(page.locator("#hr")).to_contain_text("Request 41 of")
    expect(block.locator(".more")).to_be_visible()
    assert range_of(page) == [11, 90]
    page.evaluate("scrollTo(0, 0)")
    assert [one.bounding_box() for one in page.locator(".mark:visible").all()] == marks


@pytest.mark.spec("V5")
def test_a_turn_that_a_link_opened_stays_closed_once_it_is_closed(session: ClaudeSession, opened: Callable[[str], Page]) -> None:
    page = opened("?r=30&turn=3")
    count = count_of(page)
    expect(page.locator("#d3 .ev")).to_be_visible()
    grow(session, 1)
    expect(page.locator("#hr")).to_have_text(f"Request 30 of {count + 1}")
    expect(page.locator("#d3 .ev")).to_be_visible()
    assert "turn=3" in page.url
    page.click("#d3 > summary")
    grow(session, 1)
    expect(page.locator("#hr")).to_have_text(f"Request 30 of {count + 2}")
    assert page.locator("#d3").get_attribute("open") is None
    assert "turn=" not in page.url


@pytest.mark.spec("V5")
def test_selected_text_of_a_turn_stays_selected_while_the_session_grows(
    session: ClaudeSession, opened: Callable[[str], Page]
) -> None:
    page = opened("?r=9999")
    count = count_of(page)
    turn = page.locator(".turns > li > details").last
    turn.locator("summary").first.click()
    text = turn.locator(".slip p, .slip pre, .call").first
    text.evaluate("one => getSelection().selectAllChildren(one)")
    selected = page.evaluate("getSelection().toString()")
    assert selected.strip()
    page.evaluate("document.addEventListener('lamina:change', () => { window.heard = true; })")
    grow(session, 2)
    page.wait_for_function("() => window.heard")
    # An answer that is asked for after the page's own ones, so that theirs would be shown by now.
    page.evaluate(f"fetch('{ADDRESS}').then(answer => answer.text()).then(() => new Promise(requestAnimationFrame))")
    assert page.evaluate("getSelection().toString()") == selected
    expect(page.locator(".scrub")).to_have_attribute("max", str(count))
    page.evaluate("getSelection().empty()")
    expect(page.locator(".scrub")).to_have_attribute("max", str(count + 2))
    expect(turn).to_have_attribute("open", "")
