"""The replay view: choose, watch the table grow, stop, save as one file; in a browser and on a read-only page."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import expect

from lamina.history.catalogue import Catalogue
from lamina.replay.html import BEGINNING
from lamina.replay.report import ReplayReport
from lamina.web import replay_jobs
from lamina.web.replay_jobs import ReplayJob, ReplayJobs
from lamina.web.replay_view import MOST_SESSIONS
from lamina.web.session_index import WAIT

from . import patient
from .conftest import Watched
from .looks import bad_contrast, small_or_unnamed
from .made_home import START, long_session, make_home, small_session
from .patient import PATIENCE
from .serving import Served, serving

# Each drives a browser; the frame, a session, memories and the inbox are in the README's run.
pytestmark = pytest.mark.exhaustive

SMALL = [f"b0000000-0000-4000-8000-00000000000{at}" for at in range(3)]
LONG = "c0000000-0000-4000-8000-000000000001"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp("home")
    make_small_home(root)
    with serving(root, read_only=True) as page:
        yield page


def make_small_home(root: Path) -> None:
    folder = root / ".claude" / "projects" / "-work-shop"
    for at, id in enumerate(SMALL):
        small_session(folder / f"{id}.jsonl", "/work/shop", f"<b>Session {at}</b>", START + timedelta(hours=at), seed=at).write()
    long_session(folder / f"{LONG}.jsonl", "/work/shop", 400).write()


def get(served: Served, path: str) -> httpx2.Response:
    return patient.get(served.base + path, cookies=served.cookies())


def post(served: Served, path: str, *names: str) -> httpx2.Response:
    fields = dict.fromkeys(names, "1")
    return patient.post(
        served.base + path, json=fields, cookies=served.cookies(), headers={"X-Lamina-Secret": served.keys.secret}
    )


def finished(served: Served, address: str) -> dict[str, Any]:
    """Return the run once it has ended."""

    def look() -> dict[str, Any] | None:
        run: dict[str, Any] = get(served, f"{address}&format=json").json()
        return run if run["state"] != "running" else None

    return patient.wait_for(look) or {}


def saving(served: Served) -> ReplayJob:
    """Ask what Lamina would have saved, and return the job once it has ended."""
    assert post(served, "/overview/saving").status_code == 200
    job = patient.wait_for(lambda: served.site.replays.get("saving"))
    assert job is not None
    patient.wait_for(lambda: not job.running)
    return job


@pytest.mark.spec("V4")
def test_a_chosen_session_is_replayed_while_the_page_watches_and_saved_as_one_file(watched: Watched, served: Served) -> None:
    page = watched.page()
    page.goto(served.link)
    page.goto(f"{served.base}/sessions/claude-code/{SMALL[0]}")
    page.click("a.btn.main")
    expect(page.locator(".choose input:checked")).to_have_count(1)
    expect(page.locator(".choose li").first).to_contain_text("<b>Session 0</b>")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        assert (bad_contrast(page), small_or_unnamed(page)) == ([], [])
    page.focus(".options .btn.main")
    page.keyboard.press("Enter")
    save = page.locator("a[download]")
    save.wait_for()
    expect(page.locator(".figs dt").first).to_have_text("Lamina with balanced")
    assert page.locator(".data").first.locator("tbody tr").count() == 6
    assert page.locator(".steps polyline.p0").count() == 1, "the recording in grey"
    expect(page.locator(".steps h3")).to_have_text("<b>Session 0</b>")
    for width in (1_400, 360):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert (bad_contrast(page), small_or_unnamed(page)) == ([], [])
    table = page.locator(".figs").inner_text()
    with page.expect_download() as started:
        save.click()
    page.reload()
    assert page.locator(".figs").inner_text() == table, "a run is kept"
    text = Path(started.value.path()).read_text("utf-8")
    assert text.startswith(BEGINNING)
    assert "<script" not in text
    page.goto("about:blank")
    page.set_content(text)
    assert page.locator(".figs").inner_text() == table, "the file has the same parts"
    assert page.locator(".steps polyline").count() == 5


def test_the_same_choice_is_played_once_and_a_layer_that_is_off_is_a_row_of_its_own(served: Served) -> None:
    names = [f"session:claude-code/{id}" for id in SMALL[:2]]
    first = post(served, "/replay/start", *names, "policy:lean").json()["location"]
    run = finished(served, first)
    assert (run["state"], run["report"]["sessions"]) == ("done", 2)
    assert run["report"]["origins"] == {"claude-code": 2}
    assert list(run["report"]["policies"]) == ["recorded", "append", "balanced", "lean", "lamina"]
    assert post(served, "/replay/start", *reversed(names), "policy:lean").json()["location"].split("?")[0] == first.split("?")[0]
    assert "Session 1" in get(served, f"{first}&lang=zh").text
    assert "节省" in get(served, f"{first}&lang=zh").text
    more = post(served, "/replay/start", *names, "policy:lean", "without:notes").json()["location"]
    assert "lean without notes" in finished(served, more)["report"]["policies"]
    assert get(served, "/replay?format=json").json()["runs"][0]["state"] == "done"


def test_a_session_that_is_not_listed_yet_is_waited_for(tmp_path: Path) -> None:
    make_small_home(tmp_path)
    listed = threading.Event()
    with serving(tmp_path) as page:

        def hold_back(catalogue: Catalogue) -> None:
            listed.wait(PATIENCE)

        page.site.index.later(hold_back)
        threading.Timer(2 * WAIT, listed.set).start()  # longer than a list is waited for
        started = post(page, "/replay/start", f"session:claude-code/{SMALL[0]}")
        assert started.status_code == 200, started.text


def test_a_replay_whose_first_session_is_being_read_waits_for_no_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_small_home(tmp_path)
    reached, go = threading.Event(), threading.Event()
    whole = ReplayJobs._played

    def held(*given: Any) -> ReplayReport:
        reached.set()
        assert go.wait(PATIENCE)
        return whole(*given)

    monkeypatch.setattr(ReplayJobs, "_played", held)
    with serving(tmp_path) as page:
        started = post(page, "/replay/start", f"session:claude-code/{SMALL[0]}").json()["location"]
        assert reached.wait(PATIENCE)
        shown = get(page, started).text
        go.set()
        finished(page, started)
    assert "Waits for another replay" not in shown
    assert "Session 1 of 1: it is being read" in shown


def test_one_replay_runs_at_a_time_others_wait_and_each_can_be_stopped(served: Served) -> None:
    started = post(served, "/replay/start", f"session:claude-code/{LONG}", "policy:classic", "policy:thrifty").json()["location"]
    waiting = [
        post(served, "/replay/start", f"session:claude-code/{SMALL[2]}", f"without:{layer}").json()["location"]
        for layer in ("notes", "memory", "results")
    ]
    busy = post(served, "/replay/start", f"session:claude-code/{SMALL[2]}", "without:clearing")
    assert (busy.status_code, busy.json()["message"]) == (400, "Too many replays wait. Stop one or wait for its end.")
    assert "Waits for another replay to end." in get(served, waiting[-1]).text
    assert post(served, f"{started.split('?')[0]}/stop").json()["message"] == "The replay stops."
    assert finished(served, started)["state"] == "stopped"
    assert "Stopped. The table shows what was finished." in get(served, started).text
    assert [finished(served, one)["state"] for one in waiting] == ["done"] * 3
    assert post(served, "/replay/unknown/stop").status_code == 400


@pytest.mark.spec("V4")
def test_the_saving_is_found_in_the_background_and_kept_by_file(tmp_path: Path) -> None:
    make_home(tmp_path, now=datetime.now(UTC) - timedelta(hours=1), others=1)
    with serving(tmp_path) as page:
        assert "Find out" in get(page, "/").text
        assert saving(page).first.figures, "the first session was played"
        assert not saving(page).first.figures, "kept results are not played again"
        shown = get(page, "/").text
        assert "Lamina would have cost" in shown
        assert "Played 2 of 2 sessions." in shown
        assert re.search(r'id="saved">使用 Lamina 的费用[少多] \d+%：', get(page, "/?lang=zh").text)
        other = get(page, "/?days=30").text
        assert "Last 7 days · <bdi>All projects</bdi>" in other, "the saving names its own period, whatever the view shows"


def test_a_run_that_takes_too_long_ends_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_small_home(tmp_path)
    monkeypatch.setattr(replay_jobs, "MOST_SECONDS", 0.0)
    with serving(tmp_path) as page:
        address = post(page, "/replay/start", f"session:claude-code/{SMALL[0]}").json()["location"]
        assert finished(page, address)["state"] == "limited"
        assert "choose fewer sessions" in get(page, address).text


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], "Choose at least one session."),
        (["policy:lean"], "Choose at least one session."),
        ([f"session:claude-code/{at}" for at in range(MOST_SESSIONS + 1)], "Choose at most 40 sessions at a time."),
        ([f"session:claude-code/{SMALL[0]}", "policy:cheap"], "Unknown policy or layer: cheap."),
        (["session:claude-code/../../etc/passwd"], "The session claude-code/../../etc/passwd is no longer on disk."),
    ],
)
def test_a_bad_choice_gets_one_sentence(served: Served, names: list[str], message: str) -> None:
    answer = post(served, "/replay/start", *names)
    assert (answer.status_code, answer.json()["message"]) == (400, message)


def test_a_link_to_a_run_of_an_earlier_start_leads_to_the_same_choice(served: Served) -> None:
    lost = get(served, f"/replay/0123456789abcdef?session=claude-code/{SMALL[1]}&policy=lean")
    assert lost.status_code == 404
    assert f"/replay?session=claude-code/{SMALL[1]}&amp;policy=lean" in lost.text
    chosen = get(served, f"/replay?session=claude-code/{SMALL[1]}&policy=lean").text
    assert f'name="session:claude-code/{SMALL[1]}" value="1" checked' in chosen
    assert 'name="policy:lean" value="1" checked' in chosen
    assert 'name="policy:classic" value="1" checked' not in chosen


def test_the_filter_keeps_what_was_ticked(served: Served) -> None:
    ticked = f"session:claude-code/{SMALL[1]}=1&policy:lean=1&without:notes=1"
    for q in ("", "zzz"):
        shown = get(served, f"/replay?q={q}&sort=dearest&{ticked}").text
        for name in (f"session:claude-code/{SMALL[1]}", "policy:lean", "without:notes"):
            assert f'name="{name}" value="1" checked' in shown
        assert 'name="policy:classic" value="1" checked' not in shown
        assert 'data-with="choice"' in shown, "the filter sends the other form too"
        assert 'id="choice"' in shown


@pytest.mark.spec("V4")
def test_a_replay_and_the_saving_are_found_again_after_a_restart(tmp_path: Path) -> None:
    make_home(tmp_path, now=datetime.now(UTC) - timedelta(hours=1), others=1)
    with serving(tmp_path) as page:
        patient.wait_for(lambda: len(page.site.sessions().top) == 2)  # a busy machine lists the second file later
        names = [f"session:claude-code/{one.id}" for one in page.site.sessions().top]
        address = post(page, "/replay/start", *names, "policy:lean").json()["location"]
        report = finished(page, address)["report"]
        saving(page)
        shown, saved = get(page, address).text, get(page, "/").text
    with serving(tmp_path) as page:
        assert get(page, f"{address}&format=json").json()["report"] == report
        main = re.compile(r"<main.*</main>", re.DOTALL)
        assert main.findall(get(page, address).text) == main.findall(shown), "the table and the charts"
        assert "Played 2 of 2 sessions." in get(page, "/").text
        assert re.findall(r'id="saved">(.*?)<', get(page, "/").text) == re.findall(r'id="saved">(.*?)<', saved)
        assert get(page, "/replay?format=json").json()["runs"][0]["id"] in address
        assert post(page, "/replay/start", *names, "policy:lean").json()["location"].split("?")[0] == address.split("?")[0]
        assert get(page, f"{address}&format=json").json()["state"] == "done", "the same choice is not played again"
        assert not saving(page).first.figures, "nor are the sessions of the saving"
    kept = tmp_path / ".lamina" / "cache" / "replays"
    (kept / f"{address[8:24]}.json").write_text('{"id": 3', "utf-8")
    with serving(tmp_path) as page:
        assert get(page, address).status_code == 404, "a damaged file counts as missing"
        assert get(page, "/replay/..%2F..%2Fsettings").status_code == 404


@pytest.mark.spec("V6")
def test_a_read_only_replay_leaves_the_home_as_it_is(tmp_path: Path) -> None:
    make_small_home(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*"))}
    with serving(tmp_path, read_only=True) as page:
        address = post(page, "/replay/start", f"session:claude-code/{SMALL[0]}").json()["location"]
        assert finished(page, address)["report"]["sessions"] == 1
        without = patient.post(f"{page.base}/replay/start", json={}, cookies=page.cookies())
        assert without.status_code == 403
    assert {path: path.stat().st_mtime_ns for path in sorted(tmp_path.rglob("*"))} == before
