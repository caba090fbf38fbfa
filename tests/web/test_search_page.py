"""Search over everything: results by rank, why they match, where they open, in a browser and read-only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import expect

from . import patient
from .conftest import Watched
from .looks import bad_contrast, small_or_unnamed
from .made_home import ClaudeSession, make_home
from .made_memories import make_memories
from .serving import Served, serving

# Each drives a browser; the frame, a session, memories and the inbox are in the README's run.
pytestmark = pytest.mark.exhaustive


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("home")
    make_home(root, others=6)
    with serving(root) as page:
        yield page


def get(served: Served, path: str) -> httpx2.Response:
    return patient.get(served.base + path, cookies=served.cookies())


@pytest.mark.spec("V1")
def test_a_result_says_why_it_matches_and_opens_at_its_turn(watched: Watched, served: Served) -> None:
    page = watched.page()
    page.goto(served.link)
    page.fill(".search input", "staging deploys")
    page.press(".search input", "Enter")
    first = page.locator(".result").first
    expect(first.locator("mark").first).to_have_text("Staging")
    expect(first).to_contain_text("Matches: staging, deploy")
    expect(page.locator("h1 + .meta")).to_contain_text("best match first")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        assert (bad_contrast(page), small_or_unnamed(page)) == ([], [])
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    first.click()
    expect(page.locator(".turns details[open] .mine")).to_contain_text("Staging moved to eu-west-1")


def test_a_result_without_the_words_in_its_text_says_where_they_are(watched: Watched, served: Served) -> None:
    page = watched.page()
    page.goto(served.link)
    page.goto(f"{served.base}/search?q=staging")
    answer = page.locator(".result", has_text="Assistant").first
    expect(answer).to_contain_text("Matches in the message before: staging")
    expect(answer.locator("mark")).to_have_text("Staging")
    for row in page.locator(".result").all():
        expect(row).to_contain_text("Matches")
    page.goto(f"{served.base}/search?q=staging&lang=zh")
    expect(page.locator(".result", has_text="助手").first).to_contain_text("前一条消息匹配：staging")


def test_a_memory_opens_from_the_search_and_the_overview(tmp_path: Path) -> None:
    make_home(tmp_path, others=1)
    make_memories(tmp_path)
    with serving(tmp_path) as page:
        found = [one for one in get(page, "/search?q=staging&format=json").json()["results"] if one["kind"] == "memory"]
        assert found
        for one in found:
            shown = get(page, one["url"])
            assert (shown.status_code, one["title"] in shown.text) == (200, True), one["url"]
            assert one["url"].startswith("/memories/")
        links = re.findall(r'href="(/memories/[^"]+\.md)"', get(page, "/").text)
        assert links
        assert {get(page, link).status_code for link in links} == {200}


def test_exact_text_nothing_found_and_strange_queries_have_answers(served: Served) -> None:
    exact = get(served, "/search?q=eu-west-1&exact=1&format=json").json()
    assert exact["results"]
    assert all("eu-west-1" in one["text"] for one in exact["results"])
    assert "Nothing matches “zebra”" in get(served, "/search?q=zebra").text
    assert "Search memories and sessions" in get(served, "/search").text
    for query in ("%22%22%22", "*", "a" * 5_000, "%00", "OR+AND+NEAR", "%F0%9F%98%80", "</script>"):
        answer = get(served, f"/search?q={query}")
        assert answer.status_code == 200, query
        assert "</script></bdi>" not in answer.text
        assert "--exact" not in answer.text, "an option of the command line"


def test_exact_text_in_results_of_tools_and_in_other_records_says_what_it_is(tmp_path: Path) -> None:
    made = ClaudeSession(tmp_path / ".claude" / "projects" / "-p" / "00000000-0000-4000-8000-00000000000e.jsonl", "/p")
    made.user("Look into it.")
    made.call("Read", {"file_path": "/p/a.py"}, 40)
    for row in made.rows:
        if row["type"] == "user" and isinstance(row["message"]["content"], list):
            row["message"]["content"][0]["content"] = "a zeppelin in a result"
    other = {
        "type": "strange",
        "uuid": "s1",
        "timestamp": "2026-11-01T10:00:00Z",
        "message": {"content": "a zeppelin in a record"},
    }
    role = {**other, "uuid": "s2", "type": "user", "message": {"role": "developer", "content": "a zeppelin of a developer"}}
    made.rows += [other, role]
    made.write()
    with serving(tmp_path) as page:
        answer = get(page, "/search?q=zeppelin&exact=1")
        assert answer.status_code == 200
        assert "Tool" in answer.text
        assert "Record" in answer.text
        speakers = {one["speaker"] for one in get(page, "/search?q=zeppelin&exact=1&format=json").json()["results"]}
        assert speakers >= {"tool", "strange", "developer"}


@pytest.mark.spec("V6")
def test_a_read_only_search_writes_nothing(tmp_path: Path) -> None:
    make_home(tmp_path, others=1)
    before = sorted(tmp_path.rglob("*"))
    with serving(tmp_path, read_only=True) as page:
        assert get(page, "/search?q=rounded+orders&format=json").json()["results"]
        assert get(page, "/search?q=rounded&exact=1&format=json").json()["results"]
    assert sorted(tmp_path.rglob("*")) == before
