"""Views of what is read for the first time: they answer at once that it is being read, and show the whole when it is there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import expect

import lamina.web.page
from lamina.session.followed_session import FollowedSession
from lamina.web import forget_view, search_view, session_data
from lamina.web.memory_index import MemoryIndex

from . import patient
from .conftest import Watched
from .made_home import WINDOW_SESSION, make_home
from .made_memories import make_memories
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
    ("path", "shown"),
    [
        ("/memories?", "Reading the memories"),
        ("/memories/-work-shop-api/payment.md?", "Reading the memories"),
        ("/search?q=lamp", "Searching"),
        ("/search?q=lamp&exact=1", "Searching"),
        ("/memories/forget?subject=lamp", "Looking for it"),
    ],
)
def test_what_takes_long_is_announced_and_whoever_waits_gets_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gate: threading.Event, path: str, shown: str
) -> None:
    make_home(tmp_path, others=0)
    make_memories(tmp_path)
    hold(monkeypatch, gate, MemoryIndex, "_look_in_background")
    hold(monkeypatch, gate, search_view, "_found")
    hold(monkeypatch, gate, forget_view, "_plan")
    with serving(tmp_path) as served:
        patient.wait_for(lambda: not served.site.index.current().of)
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
