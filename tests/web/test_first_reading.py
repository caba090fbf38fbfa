"""Views of what is read for the first time: they answer at once that it is being read, and show the whole when it is there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import expect

import lamina.web.page
from lamina.history.catalogue import Catalogue
from lamina.history.followed_session import FollowedSession
from lamina.history.places import SourceFile
from lamina.web import forget_view, search_view, session_data
from lamina.web.memory_index import MemoryIndex
from lamina.web.session_index import SessionIndex

from . import patient
from .conftest import Watched
from .made_home import WINDOW_SESSION, make_home
from .made_memories import make_memories, make_proposals
from .patient import PATIENCE
from .serving import Served, serving

SESSION = f"/sessions/claude-code/{WINDOW_SESSION}"


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Reading goes on when it is set."""
    made = threading.Event()
    monkeypatch.setattr(lamina.web.page, "AT_ONCE", 0.0)
    yield made
    made.set()


def hold(monkeypatch: pytest.MonkeyPatch, gate: threading.Event, kind: object, name: str) -> None:
    whole = getattr(kind, name)

    def held(*given: object, **named: object) -> object:
        assert gate.wait(PATIENCE)
        return whole(*given, **named)

    monkeypatch.setattr(kind, name, held)


def get(served: Served, path: str, **headers: str) -> str:
    return str(patient.get(served.base + path, cookies=served.cookies(), headers=headers).text)


@pytest.mark.spec("V1")
@pytest.mark.parametrize(
    ("path", "work", "shown"),
    [
        ("/memories?", (MemoryIndex, "_look_in_background"), "Reading the memories"),
        ("/memories/-work-shop-api/payment.md?", (MemoryIndex, "_look_in_background"), "Reading the memories"),
        ("/memories?q=lamp", (MemoryIndex, "_make_searchable"), "Searching"),
        ("/memories?evidence=stale", (MemoryIndex, "_named_evidence"), "Reading the memories"),
        ("/search?q=lamp", (search_view, "_found"), "Searching"),
        ("/search?q=lamp&exact=1", (search_view, "_found"), "Searching"),
        ("/memories/forget?subject=lamp", (forget_view, "_plan"), "Looking for it"),
    ],
)
def test_what_takes_long_is_announced_and_whoever_waits_gets_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: threading.Event, path: str, work: tuple[object, str], shown: str
) -> None:
    make_home(tmp_path, others=0)
    make_memories(tmp_path)
    hold(monkeypatch, gate, *work)
    with serving(tmp_path) as served:
        patient.wait_for(lambda: not served.site.index.current().of)
        patient.wait_for(lambda: served.site.memories.is_read(0) or work[1] == "_look_in_background")
        first = get(served, path)
        assert 'id="opening"' in first
        assert shown in first
        with monkeypatch.context() as hurry:
            hurry.setattr(lamina.web.page, "PATIENCE", 0.0)
            program = patient.get(f"{served.base}{path}&format=json", cookies=served.cookies())
        assert (program.status_code, [*program.json()]) == (503, ["error"])
        found = list[str]()
        waiting = [
            threading.Thread(target=lambda ask=ask: found.append(ask()))
            for ask in (partial(get, served, path, Prefer="wait"), partial(get, served, f"{path}&format=json"))
        ]
        for thread in waiting:
            thread.start()
        assert 'id="opening"' in get(served, path), "who does not wait, is told again"
        gate.set()
        for thread in waiting:
            thread.join(PATIENCE)
        assert len(found) == 2
        assert not any('id="opening"' in text for text in found)
        assert 'id="opening"' not in get(served, path, Prefer="wait")


def test_a_large_session_is_announced_again_while_an_earlier_view_of_it_still_waits(
    tmp_path: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    """A browser lets only one request for an address pass at a time, unless it is told not to keep the answer."""
    monkeypatch.setattr(session_data, "SLOW_BYTES", 1_000)
    make_home(tmp_path, others=1)
    hold(monkeypatch, gate, FollowedSession, "update")
    with serving(tmp_path) as served:
        page = watched.page()
        page.goto(served.link)
        for _ in range(2):
            page.click('.top nav a[href="/sessions"]')
            expect(page.locator("h1")).to_have_text("Sessions")
            page.locator(f'a[href="{SESSION}"]').first.click()
            expect(page.locator("#opening h1")).to_be_visible()
        gate.set()
        expect(page.locator("#session h1")).to_be_visible()


def test_a_search_that_was_opened_while_sessions_are_read_shows_what_it_finds(
    tmp_path: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    make_home(tmp_path, others=3)
    follow, read = SessionIndex._follow, threading.Event()

    def slowly(index: SessionIndex, catalogue: Catalogue, files: list[SourceFile], unread: list[str]) -> None:
        index._publish([], unread, 0, len(files))
        assert read.wait(PATIENCE)
        follow(index, catalogue, files, unread)

    monkeypatch.setattr(SessionIndex, "_follow", slowly)
    hold(monkeypatch, gate, search_view, "_found")
    with serving(tmp_path) as served:
        served.site.index.current(wait=0)
        patient.wait_for(lambda: served.site.index.listing.of)
        page = watched.page()
        page.goto(served.link.replace("/?", "/search?q=rounded&"))
        expect(page.locator("main")).to_contain_text("The search starts when they are done.")
        read.set()
        expect(page.locator("#opening")).to_contain_text("Searching…")
        gate.set()
        expect(page.locator("a.result").first).to_be_visible()


def test_a_search_that_is_typed_before_the_memories_are_ready_says_so_and_shows_them(
    tmp_path: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    make_memories(tmp_path)
    hold(monkeypatch, gate, MemoryIndex, "_make_searchable")
    with serving(tmp_path) as served:
        page = watched.page()
        page.goto(served.link.replace("/?", "/memories?"))
        page.fill("#memory-search input[name=q]", "pnpm")
        expect(page.locator("#memory-found")).to_have_text("Searching…")
        assert 'id="opening"' in get(served, "/memories?q=pnpm")
        gate.set()
        expect(page.locator("#memory-found .card").first).to_contain_text("pnpm")
        expect(page.locator("#memory-search input[name=q]")).to_be_focused()
        assert 'id="opening"' not in get(served, "/memories?q=pnpm", Prefer="wait")
        page.fill("#memory-search input[name=q]", "staging")
        expect(page.locator("#memory-found .card").first).to_contain_text("staging")


@pytest.fixture
def message(tmp_path: Path) -> str:
    """A message that a memory and a proposal came from."""
    session = make_home(tmp_path, others=0)
    made = next(row.split('"uuid": "')[1][:36] for row in session.read_text("utf-8").splitlines() if '"type": "user"' in row)
    make_memories(tmp_path)
    make_proposals(tmp_path, WINDOW_SESSION, made)
    return made


@pytest.mark.spec("V1")
def test_no_view_waits_until_the_sessions_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: threading.Event, message: str
) -> None:
    with monkeypatch.context() as held:
        hold(held, gate, SessionIndex, "_follow")
        with serving(tmp_path) as served:
            get(served, "/memories", Prefer="wait")
            link = f"/sessions/any/{WINDOW_SESSION}/messages/{message}"
            assert f'href="{link}"' in get(served, "/memories"), "the message is not known yet, and can be followed"
            for path in (SESSION, link):
                shown = get(served, path)
                assert 'id="opening"' in shown
                assert "The sessions are being read for the first time" in shown
            gate.set()
            patient.wait_for(lambda: served.site.index.is_complete)
            to_turn = patient.get(served.base + link, cookies=served.cookies())
            assert to_turn.headers["location"] == f"{SESSION}?turn=1&show={message}"
            assert f'href="{SESSION}/messages/{message}"' in get(served, "/memories")
            gone = get(served, "/sessions/any/10000000-0000-4000-8000-00000000000f/messages/1")
            assert "no longer on disk" in gone


def test_a_link_to_a_message_of_a_session_that_is_being_read_leads_there_and_back(
    tmp_path: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch, gate: threading.Event, message: str
) -> None:
    monkeypatch.setattr(session_data, "SLOW_BYTES", 1_000)
    hold(monkeypatch, gate, FollowedSession, "update")
    with serving(tmp_path) as served:
        page = watched.page()
        page.goto(served.link)
        patient.wait_for(lambda: served.site.index.is_complete)
        page.click('.top nav a[href="/memories"]')
        page.locator(f'a[href="{SESSION}/messages/{message}"]').first.click()
        expect(page.locator("#opening h1")).to_be_visible()
        gate.set()
        expect(page.locator("#session h1")).to_be_visible()
        expect(page).to_have_url(f"{served.base}{SESSION}?turn=1&show={message}")
        page.go_back()
        expect(page).to_have_url(f"{served.base}/memories")
        expect(page.locator("#inbox, .prop").first).to_be_visible()


def test_the_data_of_a_chart_and_its_view_do_not_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.web.views_made.HOLD", PATIENCE)
    make_home(tmp_path, others=0)
    with serving(tmp_path) as served:
        patient.wait_for(lambda: served.site.index.current().by_address)
        served.site.views.change(1)  # a view is being made, and may wait for the lock of the session
        done = list[str]()
        thread = threading.Thread(target=lambda: done.append(get(served, f"{SESSION}/turns/1")))
        thread.start()
        thread.join(PATIENCE)
        served.site.views.change(-1)
        assert done


@pytest.mark.spec("V5")
def test_a_view_that_follows_changes_waits_while_the_mouse_is_pressed(tmp_path: Path, watched: Watched) -> None:
    """Else the pressed link is replaced, and the click is lost."""
    make_home(tmp_path, others=3)
    with serving(tmp_path) as served:
        page = watched.page()
        page.goto(served.link)
        page.click('.top nav a[href="/sessions"]')
        expect(page.locator("h1")).to_have_text("Sessions")
        page.locator("html[data-live]").wait_for(state="attached")
        link = page.locator(f'a[href="{SESSION}"]').first
        link.hover()
        page.mouse.down()
        page.evaluate("() => document.addEventListener('lamina:change', () => { window.told = true; })")
        make_home(tmp_path, others=6)
        page.wait_for_function("() => window.told")
        page.wait_for_timeout(2_500)  # the longest time until a change is shown
        page.mouse.up()
        expect(page.locator("#session h1")).to_be_visible()
