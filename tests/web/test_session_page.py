"""The sessions in a real browser: list, chart, request, conversation, live, keyboard, contrast, sizes, no scripts."""

from __future__ import annotations

import functools
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias

import pytest
from playwright.sync_api import Browser, Page, expect
from starlette.requests import Request
from starlette.responses import Response

from lamina.web import request_view
from lamina.web.session_data import SLOW_BYTES, Gone, OpenSession, OpenSessions
from lamina.web.site import Site

from ..history.agents import CODEX, codex_rows, codex_usage, write
from . import patient
from .conftest import Watched
from .looks import bad_contrast, small_or_unnamed
from .made_home import MODEL, WINDOW_SESSION, ClaudeSession, long_session, make_home, window_session
from .serving import Served, environ_of, serving

Theme: TypeAlias = Literal["light", "dark"]
ADDRESS = f"/sessions/claude-code/{WINDOW_SESSION}"
REPORT_SHEET = Path(__file__).parents[2] / "src" / "lamina" / "replay" / "report.css"
STATIC = Path(__file__).parents[2] / "src" / "lamina" / "web" / "static"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("home")
    make_home(root)
    with serving(root) as page:
        yield page


@pytest.fixture
def page(watched: Watched, served: Served) -> Page:
    made = watched.page()
    made.goto(served.link)
    made.goto(f"{served.base}/sessions")
    return made


def drawn(page: Page) -> None:
    page.wait_for_selector("#chart svg path.area")
    page.wait_for_selector("#blocks:not([aria-busy])")


@pytest.mark.spec("V1", "V2")
def test_a_session_is_found_in_the_list_and_its_requests_are_chosen_by_pointing_and_by_keys(page: Page, served: Served) -> None:
    assert "token" not in page.url
    page.fill(".bar2 input", "round orders")
    page.press(".bar2 input", "Enter")
    page.click("text=Round orders once")
    drawn(page)
    assert page.locator("path.area").count() > 6
    assert [one.inner_text() for one in page.locator(".mark").all()] == ["Cleared 6", "Cleared 9", "Compacted"]
    page.keyboard.press("]")
    expect(page.locator(".mark[aria-pressed=true]")).to_have_text("Compacted")
    compacted = int(page.url.rpartition("=")[2])
    expect(page.locator("#req")).to_have_attribute("data-number", str(compacted))
    expect(page.locator("#req .why")).to_contain_text("It paid.")
    for key, moved in (("ArrowRight", 1), ("ArrowLeft", 0), ("ArrowLeft", -1)):
        page.keyboard.press(key)
        expect(page.locator("#hr")).to_contain_text(f"Request {compacted + moved} of")
        expect(page.locator("#req")).to_have_attribute("data-number", str(compacted + moved))
    assert "tokens" in (page.locator(".scrub").get_attribute("aria-valuetext") or "")
    page.keyboard.press("Home")
    expect(page.locator("#hr")).to_contain_text("Request 1 of")
    page.reload()
    drawn(page)
    expect(page.locator("#hr")).to_contain_text("Request 1 of")


@pytest.mark.spec("V2")
def test_kinds_add_up_and_a_block_tells_why_it_is_there(page: Page, served: Served) -> None:
    page.goto(f"{served.base}{ADDRESS}?r=30")
    drawn(page)
    total = int(page.locator("#tot b").inner_text().replace(",", ""))
    parts = [int(one.inner_text().replace(",", "")) for one in page.locator("#kinds .num").all()]
    assert sum(parts) == total
    page.click("#kinds button[data-kind=shell]")
    assert page.locator("path.area").first.get_attribute("data-area") == "shell", "the chosen kind stands on the floor"
    row = page.locator("#blocks .rows").last.locator("li").nth(1)
    row.locator("summary").click()
    expect(row.locator("dl")).to_contain_text("Why it is here")
    expect(row.locator("dl")).to_contain_text("since request")
    page.click("text=Open the whole request")
    expect(page.locator("h1")).to_contain_text("Request 30 of")
    page.click("#all-50 > summary")
    expect(page.locator("#all-50 li").first).to_be_visible()
    shown = [int(one.inner_text().replace(",", "")) for one in page.locator("ol.rows summary .num").all()]
    assert sum(shown) == total
    page.fill("input[name=against]", "20")
    page.click("text=Compare >> nth=-1")
    expect(page.locator(".sec h2")).to_have_text("Since request 20")
    assert page.locator("ul.rows .bad").count() > 0, "results that were cleared in between went"


@pytest.mark.spec("V2")
def test_turns_open_filter_and_show_what_was_recorded(page: Page, served: Served) -> None:
    page.goto(served.base + ADDRESS)
    drawn(page)
    page.click("#d1 > summary")
    page.locator("#d1 .ev .call").first.wait_for()
    page.locator("#d1 .ev details").first.locator("summary").click()
    assert page.locator("#d1 .ev details[open] pre").first.is_visible()
    page.click("#d1 .rq a >> nth=0")
    expect(page.locator("#hr")).to_contain_text("Request 1 of")
    page.fill("#filter input[name=find]", "eu-west-1")
    expect(page.locator(".turns > li")).to_have_count(1)
    expect(page.locator(".turns")).to_contain_text("Staging moved")
    page.fill("#filter input[name=find]", "")
    page.check("#filter input[name=errors]")
    expect(page.locator(".turns > li")).to_have_count(1)
    expect(page.locator(".turns .sub .bad")).to_contain_text("failed")
    page.click("#as-table summary")
    expect(page.locator("table.data tbody tr")).to_have_count(int(page.locator(".scrub").get_attribute("max") or 0))


@pytest.mark.spec("V6")
def test_everything_works_from_the_keyboard(page: Page, served: Served) -> None:
    page.goto(served.base + ADDRESS)
    drawn(page)
    page.keyboard.press("g")
    page.keyboard.press("s")
    page.wait_for_url("**/sessions")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    drawn(page)
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.matches('.turns summary')")
    page.keyboard.press("o")
    page.locator(".ev .call").first.wait_for()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.matches('.search input')")
    page.keyboard.type("j0?")
    assert page.locator(".search input").input_value() == "j0?", "letters are letters in a field"
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


@pytest.mark.exhaustive
@pytest.mark.spec("V6")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1_400])
def test_texts_have_contrast_and_controls_have_names_and_a_size(
    browser: Browser, served: Served, theme: Theme, width: int
) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, locale="en-GB")
    page = context.new_page()
    page.goto(served.link)
    for path in ("/sessions", ADDRESS, f"{ADDRESS}/requests/30", "/nowhere"):
        page.goto(served.base + path)
        if path == ADDRESS:
            drawn(page)
            marks = [one.bounding_box() for one in page.locator(".mark").all()]
            assert {box["height"] for box in marks if box is not None} == {24}, "within their lane"
            page.click("#d2 > summary")
            page.locator("#d2 .ev .call").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} is wider than the window"
        assert bad_contrast(page) == [], path
        assert small_or_unnamed(page) == [], path
    context.close()


@pytest.mark.spec("V6")
def test_without_scripts_figures_turns_and_the_request_are_shown(browser: Browser, served: Served) -> None:
    context = browser.new_context(java_script_enabled=False, locale="zh-CN")
    page = context.new_page()
    page.goto(served.link)
    page.goto(f"{served.base}{ADDRESS}?r=30")
    assert page.locator(".figs > div").count() == 5
    assert page.locator(".turns > li").count() == 12
    assert page.locator("#kinds li").count() > 10
    assert page.locator("html").get_attribute("lang") == "zh-CN"
    assert "对话" in page.locator("#hc").inner_text()
    assert page.locator("text=正在读取各块").is_hidden(), "nothing waits for a script"
    assert page.locator("[data-axis=time]").is_hidden()
    table = page.locator("noscript a:text('以表格显示')")
    assert (table.get_attribute("href"), table.is_visible()) == (f"{ADDRESS}/table", True)
    assert "图表和修改需要脚本" in page.locator("noscript .notice").inner_text()
    assert page.locator("#chart").is_hidden(), "no empty place for a picture that is not drawn"
    page.goto(f"{served.base}{ADDRESS}/turns/2")
    assert page.locator(".ev .call").count() > 3
    page.click(".crumb a")
    assert page.url == served.base + ADDRESS
    context.close()


@pytest.mark.spec("V5")
def test_a_session_that_grows_shrinks_or_is_replaced_is_followed(tmp_path: Path, watched: Watched) -> None:
    path = make_home(tmp_path, others=0)
    session = window_session(path, str(tmp_path / "work" / "shop-api"))
    with serving(tmp_path) as served:
        page = watched.page()
        page.goto(served.link)
        page.goto(f"{served.base}{ADDRESS}?r=9999")
        drawn(page)
        count = int(page.locator(".scrub").get_attribute("max") or 0)
        expect(page.locator("html")).to_have_attribute("data-live", "1")
        known = len(session.rows)
        session.user("One more thing: write a changelog entry.")
        session.answer({"type": "text", "text": "The entry stands under Unreleased."})
        with open(path, "a", encoding="utf-8") as file:
            file.write("".join(json.dumps(row) + "\n" for row in session.rows[known:]))
        expect(page.locator(".scrub")).to_have_attribute("max", str(count + 1))
        expect(page.locator("#hr")).to_contain_text(f"Request {count + 1} of {count + 1}")
        expect(page.locator(".turns")).to_contain_text("One more thing")
        short = ClaudeSession(path, session.cwd)
        short.user("A new session under the same name")
        short.answer({"type": "text", "text": "Yes."})
        other = short.write().with_suffix(".new")
        other.write_bytes(path.read_bytes())
        os.replace(other, path)
        expect(page.locator("#status")).to_contain_text("This session was replaced on disk.")
        expect(page.locator(".scrub")).to_have_attribute("max", "1")
        drawn(page)
        path.unlink()
        expect(page.locator("#status")).to_contain_text("no longer on disk")
        gone = patient.get(served.base + ADDRESS, cookies=served.cookies())
        assert gone.status_code == 404
        # A fetch that was under way when the file went is answered by 404, which a browser logs.
        watched.expect("404")


@pytest.mark.exhaustive
@pytest.mark.spec("V2")
def test_a_long_session_is_zoomed_paged_and_drawn_by_time(tmp_path: Path, watched: Watched) -> None:
    path = make_home(tmp_path, others=0)
    long_session(path, str(tmp_path), 2_100).write()
    with serving(tmp_path) as served:
        page = watched.page()
        page.goto(served.link)
        page.goto(f"{served.base}{ADDRESS}?r=1000")
        drawn(page)
        ends = page.locator(".range input")
        assert [one.input_value() for one in ends.all()] == ["1", "2100"]
        page.keyboard.press("+")
        assert [one.input_value() for one in ends.all()] == ["475", "1524"]
        page.keyboard.press("0")
        box = page.locator(".hit").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] / 4, box["y"] + 50)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 50, steps=4)
        page.mouse.up()
        first, last = (int(one.input_value()) for one in ends.all())
        assert 500 < first < 550 < 1_000 < last < 1_100
        page.click("[data-axis=time]")
        assert page.locator("path.area").count() > 3
        expect(page.locator(".turns > li")).to_have_count(60)
        page.click("text=Later turns")
        expect(page.locator("#t101")).to_be_visible()
        page.click("#as-table summary")
        rows = page.locator("#as-table tbody tr th")
        expect(rows).to_have_count(200)
        page.click("#as-table a:text('Next')")
        expect(rows.first).to_have_text("201")
        page.click("#as-table a:text('Next')")
        expect(rows.first).to_have_text("401")
        expect(page.locator("#as-table")).to_contain_text("3 / 11")
        end = patient.get(f"{served.base}{ADDRESS}/table?page=11", cookies=served.cookies()).text
        assert (end.count('<th scope="row">'), f'href="{ADDRESS}/table?page=10"' in end, "page=12" in end) == (100, True, False)
        series = patient.get(f"{served.base}{ADDRESS}/series", cookies=served.cookies())
        assert len(series.content) < 400_000
        assert int(series.headers["content-length"]) < 80_000, "compressed on the way"


# How many of the marks that are shown have another element over their middle.
COVERED = """() => [...document.querySelectorAll('.mark:not([hidden])')].filter(one => {
    const { x, y, width, height } = one.getBoundingClientRect();
    return !one.contains(document.elementFromPoint(x + width / 2, y + height / 2));
}).length"""


@pytest.mark.exhaustive
@pytest.mark.spec("V2")
def test_no_mark_covers_another_and_those_without_room_appear_in_a_smaller_range(tmp_path: Path, watched: Watched) -> None:
    path = make_home(tmp_path, others=0)
    session = ClaudeSession(path, str(tmp_path))
    for _ in range(150):
        session.user("Go on")
        session.call("Read", {"file_path": "a.py"}, 4_000)
        session.clear(1)
    session.write()
    with serving(tmp_path) as served:
        page = watched.page()
        page.goto(served.link)
        page.goto(f"{served.base}{ADDRESS}?r=75")
        drawn(page)
        shown = page.locator(".mark:visible")
        assert 0 < shown.count() < page.locator(".mark").count() == 150
        assert page.evaluate(COVERED) == 0
        before = page.locator(".lane").bounding_box()
        page.keyboard.press("+")
        page.keyboard.press("+")
        expect(page.locator(".range input").first).not_to_have_value("1")
        within = page.evaluate(
            """() => [...document.querySelectorAll('.mark')].filter(one => {
                const [from, to] = [...document.querySelectorAll('.range input')].map(end => +end.value);
                return one.dataset.select >= from && one.dataset.select <= to;
            }).length"""
        )
        assert 0 < within < 150
        expect(shown).to_have_count(within)
        assert page.evaluate(COVERED) == 0
        after = page.locator(".lane").bounding_box()
        assert before is not None
        assert after is not None
        assert after["height"] < before["height"]


@pytest.mark.exhaustive
def test_a_hostile_transcript_is_shown_as_text(tmp_path: Path, watched: Watched) -> None:
    path = make_home(tmp_path, others=0)
    session = ClaudeSession(path, str(tmp_path))
    session.user("<img src=x onerror=alert(1)><script>alert(2)</script> \u202egnihton")
    session.call("Bash", {"command": "<script>alert(3)</script>"}, 30)
    session.answer({"type": "text", "text": "x" * 2_000_000})
    path.write_text("".join(json.dumps(row) + "\n" for row in session.rows) + '{"type": "user", broken\n', "utf-8")
    with serving(tmp_path) as served:
        page = watched.page()
        page.goto(served.link)
        page.goto(served.base + ADDRESS)
        drawn(page)
        expect(page.locator(".notice:visible")).to_contain_text("1 of 5 lines could not be read (line 5). The rest is shown.")
        page.click("#d1 > summary")
        rest = page.locator("text=Show 200 kB more of 2.0 MB")
        rest.wait_for()
        assert page.locator(".ev img, .ev script").count() == 0
        assert "<script>alert(2)</script>" in page.locator(".ev .mine").inner_text()
        rest.click()
        expect(page.locator(".ev .say pre")).to_have_count(2)
        assert page.locator("text=Show 200 kB more of 1.8 MB").is_visible()


def test_the_scripts_and_styles_stay_small_and_make_no_markup_from_text() -> None:
    files = [*STATIC.glob("*.js"), *STATIC.glob("*.css")]
    assert sum(len(file.read_bytes()) for file in (*files, REPORT_SHEET)) < 60 * 1_024, (
        "of all views together, before they are compressed"
    )
    for file in files:
        text = file.read_text("utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "http:", "https:"):
            assert word not in text.replace("No innerHTML", "").replace("http://www.w3.org/2000/svg", ""), (file.name, word)


@pytest.mark.spec("V2")
def test_a_session_says_what_its_transcript_or_its_page_leaves_out(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "projects" / "-p" / "00000000-0000-4000-8000-00000000000c.jsonl"
    made = ClaudeSession(path, "/p")
    made.call("Read", {"file_path": "/p/a.py"}, 300)
    made.answer({"type": "text", "text": "## Done\n\n1. **Ran** `make` <b>\n\n" + "A long report. " * 60}, output=3)
    made.answer({"type": "text", "text": "From a subagent."})
    made.rows[-1]["isSidechain"] = True
    made.write()
    with path.open("a") as file:
        file.write('{"torn": \n')
    child = ClaudeSession(path.with_suffix("") / "subagents" / "agent-1.jsonl", "/p")
    child.user("Look around")
    child.answer({"type": "text", "text": "Nothing."})
    for row in child.rows:
        row |= {"isSidechain": True, "sessionId": path.stem, "agentId": "1"}
    child.write()
    with serving(tmp_path) as page:
        shown = patient.get(f"{page.base}/sessions/claude-code/{path.stem}", cookies=page.cookies()).text
        turn = patient.get(f"{page.base}/sessions/claude-code/{path.stem}/turns/1", cookies=page.cookies()).text
        below = re.search(r'href="(/sessions/claude-code/agent[^"]*)"', shown)
        assert below is not None
        above = patient.get(page.base + below[1], cookies=page.cookies()).text
        assert f'<a href="/sessions/claude-code/{path.stem}">' in above, "a subagent leads back to its session"
    for sentence in (
        "in 1 turn<",
        "1 of 5 lines could not be read (line 5). The rest is shown.",
        "Without a message from you",
        "output ≥ ",
        "holds only the beginning of the output count of 1 answer.",
        "The file also holds 1 request of subagents (",
        "1 subagent has a file of its own (",
    ):
        assert sentence in shown, sentence
    assert "<b><bdi>Done</bdi></b>" in turn
    assert '<ol start="1"><li><bdi><b>Ran</b> <code class="mono">make</code> &lt;b&gt;</bdi></li></ol>' in turn
    assert "A long report." in turn


def test_a_session_names_its_calls_beside_the_conversation(tmp_path: Path) -> None:
    write(tmp_path / ".codex" / "sessions" / "rollout-1.jsonl", [*codex_rows("/p"), codex_usage(80_000, 0, 0, 20)])
    with serving(tmp_path) as page:
        shown = patient.get(f"{page.base}/sessions/codex/{CODEX}", cookies=page.cookies()).text
    assert "1 call beside the conversation ($0.10). It is part of the cost in the list of sessions" in shown


def test_a_copy_of_a_subagents_file_is_not_another_subagent(tmp_path: Path) -> None:
    path = make_home(tmp_path, others=0)
    for name in ("agent-1", "agent-2"):
        child = ClaudeSession(path.with_suffix("") / "subagents" / f"{name}.jsonl", "/p")
        child.user("Look around")
        child.answer({"type": "text", "text": "Nothing."})
        for row in child.rows:
            row |= {"isSidechain": True, "sessionId": path.stem, "agentId": "1"}
        child.write()
    with serving(tmp_path) as page:
        shown = patient.get(page.base + ADDRESS, cookies=page.cookies()).text
    assert "1 subagent has a file of its own (" in shown


def test_a_transcript_without_token_counts_has_no_cost(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "projects" / "-p" / "00000000-0000-4000-8000-00000000000c.jsonl"
    made = ClaudeSession(path, "/p")
    made.user("Hello")
    made.call("Read", {"file_path": "/p/a.py"}, 300)
    for row in made.rows:
        row["message"].pop("usage", None)
    made.write()
    with serving(tmp_path) as page:
        for view in (
            "/sessions",
            "/replay",
            f"/sessions/claude-code/{path.stem}",
            f"/sessions/claude-code/{path.stem}/requests/1",
        ):
            shown = patient.get(page.base + view, cookies=page.cookies()).text
            assert "Hello" in shown
            for untrue in ("$0.00", "0.0% from cache", ">0.0%<", "nothing was written twice"):
                assert untrue not in shown, view


def test_a_window_of_unknown_size_has_no_free_rest(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "projects" / "-p" / "00000000-0000-4000-8000-00000000000c.jsonl"
    made = ClaudeSession(path, "/p")
    made.call("Read", {"file_path": "/p/a.py"}, 300)
    for model, told in ((MODEL, True), ("nobody-knows-1", False)):
        path.write_text(made.write().read_text("utf-8").replace(MODEL, model), "utf-8")
        with serving(tmp_path) as page:
            shown = patient.get(f"{page.base}/sessions/claude-code/{path.stem}", cookies=page.cookies()).text
        assert (" free<" in shown, "of the 200,000 window" in shown) == (told, told)


def test_a_request_of_a_file_that_was_replaced_meanwhile_is_missing(tmp_path: Path) -> None:
    path = make_home(tmp_path, others=0)
    site = Site(cwd=tmp_path, environ=environ_of(tmp_path))
    session = site.index.current(wait=60).by_address["claude-code", path.stem]
    opened = OpenSession(site, session, site.settings)
    opened.update()
    short = ClaudeSession(path, str(tmp_path))
    short.user("Another session")
    short.answer({"type": "text", "text": "Yes."})
    short.write()
    request = Request({"type": "http", "path_params": {"number": 40}, "query_string": b"", "headers": []})
    assert request_view.blocks(site, request, opened).status_code == 404
    site.close()


def test_a_view_of_a_file_that_is_replaced_or_removed_while_it_is_read_is_made_again(tmp_path: Path) -> None:
    path = make_home(tmp_path, others=0)
    site = Site(cwd=tmp_path, environ=environ_of(tmp_path))
    site.index.current(wait=60)
    scope = {"type": "http", "path_params": {"source": "claude-code", "id": path.stem}, "query_string": b"", "headers": []}
    changes = [path.with_suffix(".new"), None]
    other = ClaudeSession(path.with_suffix(".new"), str(tmp_path))
    other.user("Another session")
    other.answer({"type": "text", "text": "Yes."})
    other.write()
    seen = []

    def view(opened: OpenSession) -> Response:
        """Count the requests, change the file, and read the last one: its window was read before the change."""
        seen.append(len(opened.series.requests))
        if changes and (new := changes.pop(0)) is not None:
            os.replace(new, path)
            return Response(opened.requests.blocks(seen[0]).model)
        path.unlink()
        return Response(opened.requests.blocks(1).model)

    with pytest.raises(Gone):
        OpenSessions(site).answer(Request(scope), view)
    assert (len(seen), seen[1]) == (2, 1), "with the window of the new file"
    site.close()


@pytest.mark.exhaustive
@pytest.mark.spec("V6")
def test_a_large_session_answers_at_once_and_is_read_only_once(tmp_path: Path, watched: Watched) -> None:
    path = make_home(tmp_path, others=0)
    long_session(path, str(tmp_path), 2_100).write()
    assert path.stat().st_size > SLOW_BYTES
    with serving(tmp_path) as served:
        get = functools.partial(patient.get, cookies=served.cookies())
        assert 'id="opening"' in get(served.base + ADDRESS).text, "what the index knows, while the file is read"
        assert "2,100" in get(served.base + ADDRESS, headers={"Prefer": "wait"}).text
        served.site.index.use(lambda index: None)  # what is kept, is written
    with serving(tmp_path) as served:
        page = watched.page()
        page.goto(served.link)
        page.goto(f"{served.base}/sessions")
        while served.site.index.current().of:
            page.wait_for_timeout(50)
        assert 'id="chart"' in patient.get(served.base + ADDRESS, cookies=served.cookies()).text, "nothing is read again"
        assert served.site.windows.load(str(path)) is not None
        with path.open("a", encoding="utf-8") as file:
            file.write(path.read_text("utf-8").splitlines()[-1] + "\n")
        assert served.site.windows.load(str(path)) is None, "of another version of the file"
        page.goto(served.base + ADDRESS)
        drawn(page)
    assert stat.S_IMODE(os.stat(tmp_path / ".lamina" / "cache" / "sessions.sqlite").st_mode) == 0o600


@pytest.mark.exhaustive
def test_a_large_session_opens_with_scripts_and_without_them(tmp_path: Path, browser: Browser) -> None:
    path = make_home(tmp_path, others=0)
    long_session(path, str(tmp_path), 2_100).write()
    for scripts in (True, False):
        with serving(tmp_path, read_only=True) as served:
            context = browser.new_context(java_script_enabled=scripts)
            page = context.new_page()
            page.goto(served.link)
            page.goto(served.base + ADDRESS)
            expect(page.locator(".figs > div")).to_have_count(5)
            context.close()
