"""A click comes first: long work waits while a view is made, and two views of one file share its reading."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.types import Message, Receive, Scope, Send

from lamina.web import views_made
from lamina.web.site import Site
from lamina.web.slow_work import SlowWork
from lamina.web.views_made import CountedViews, Stopped, ViewsMade, Work

from .patient import PATIENCE
from .serving import environ_of


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views_made, "HOLD", PATIENCE)


def test_work_in_the_background_waits_while_a_view_is_made() -> None:
    views, done = ViewsMade(), list[int]()
    views.change(1)
    work = threading.Thread(target=lambda: done.extend(views.after(range(200))))
    work.start()
    assert not done
    views.change(-1)
    work.join(PATIENCE)
    assert done == [*range(200)]


def test_what_waits_for_quiet_waits_for_views_and_for_their_data_and_ends_with_the_server() -> None:
    views, done = ViewsMade(), threading.Event()

    def work() -> None:
        views.wait_for_quiet(0.01, PATIENCE)
        done.set()

    for kind in (Work.VIEW, Work.DATA):
        done.clear()
        views.change(1, kind)
        waiting = threading.Thread(target=work)
        waiting.start()
        assert not done.wait(0.1)
        views.change(-1, kind)
        assert done.wait(PATIENCE)
    views.stopping = lambda: True
    with pytest.raises(Stopped):
        views.wait_for_quiet(PATIENCE, PATIENCE)


def test_somebody_who_never_stops_clicking_is_not_waited_for_without_end() -> None:
    views = ViewsMade()
    views.change(1)
    views.wait_for_quiet(PATIENCE, 0.01)


@pytest.mark.parametrize("waited_for", [Work.INDEX, Work.DATA])
def test_while_a_view_waits_its_work_goes_on_and_later_work_waits(waited_for: Work) -> None:
    views, done, go = ViewsMade(), set[Work](), threading.Event()

    def view() -> None:
        views.change(1)
        views_made._asked_for.set(Work.VIEW)
        with views.waiting(waited_for):
            started.set()
            go.wait(PATIENCE)
        views.change(-1)

    def work(kind: Work) -> None:
        views.wait(kind)
        done.add(kind)

    started = threading.Event()
    threads = [threading.Thread(target=view)]
    threads[0].start()
    started.wait(PATIENCE)
    for kind in (Work.INDEX, Work.DATA, Work.LATER):
        threads.append(threading.Thread(target=work, args=(kind,)))
        threads[-1].start()
    for kind, thread in zip((Work.INDEX, Work.DATA), threads[1:3], strict=True):
        if kind <= waited_for:
            thread.join(PATIENCE)
    assert done == {kind for kind in (Work.INDEX, Work.DATA) if kind <= waited_for}
    go.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert done == {Work.INDEX, Work.DATA, Work.LATER}


@pytest.mark.parametrize(("path", "counted"), [("/sessions", 1), ("/sessions/a/b/requests/3/blocks", 0), ("/live", 0)])
def test_a_view_does_not_wait_for_itself_and_what_comes_behind_is_none(path: str, counted: int) -> None:
    views, seen = ViewsMade(), list[int]()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        views.wait()
        seen.append(views.count)

    async def nothing() -> Message:
        raise AssertionError("nothing is received")

    async def ignored(message: Message) -> None:
        return None

    asyncio.run(CountedViews(app, views)({"type": "http", "path": path}, nothing, ignored))
    assert (seen, views.count) == ([counted], 0)


def test_two_views_of_one_file_share_what_is_made_of_it(tmp_path: Path) -> None:
    site, made, go = Site(cwd=tmp_path, environ=environ_of(tmp_path)), list[object](), threading.Event()
    path = tmp_path / "file"
    path.write_text("words", "utf-8")
    found: list[object] = []

    def make() -> object:
        made.append(object())
        go.wait(PATIENCE)
        return made[-1]

    def threads() -> Iterator[threading.Thread]:
        for _ in range(3):
            thread = threading.Thread(target=lambda: found.append(site.kept("words", str(path), make)))
            thread.start()
            yield thread

    started = [*threads()]
    go.set()
    for thread in started:
        thread.join(PATIENCE)
    assert len(made) == 1
    assert found == made * 3
    site.close()


def test_later_work_waits_a_moment_for_the_next_click(monkeypatch: pytest.MonkeyPatch) -> None:
    views, done = ViewsMade(), list[Work]()

    def work(kind: Work) -> None:
        views.wait(kind)
        done.append(kind)

    monkeypatch.setattr(views_made, "QUIET", PATIENCE)
    views.change(1)
    views.change(-1)
    threads = {kind: threading.Thread(target=work, args=(kind,)) for kind in (Work.LATER, Work.INDEX, Work.DATA)}
    for thread in threads.values():
        thread.start()
    threads[Work.INDEX].join(PATIENCE)
    threads[Work.DATA].join(PATIENCE)
    assert sorted(done) == [Work.INDEX, Work.DATA]
    monkeypatch.setattr(views_made, "QUIET", 0.0)
    views.change(0)  # wakes it
    threads[Work.LATER].join(PATIENCE)
    assert done[-1] is Work.LATER


def test_work_in_the_background_ends_when_the_server_stops_and_a_view_does_not() -> None:
    views, seen = ViewsMade(), list[str]()
    views.stopping = lambda: True

    with pytest.raises(Stopped):
        next(views.after(range(3)))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.extend(str(one) for one in views.after(range(2)))

    async def nothing() -> Message:
        raise AssertionError("nothing is received")

    async def ignored(message: Message) -> None:
        return None

    for path in ("/sessions", "/sessions/a/b/series", "/live"):
        asyncio.run(CountedViews(app, views)({"type": "http", "path": path}, nothing, ignored))
    assert seen == ["0", "1"] * 3


def test_slow_work_runs_once_and_is_given_once_and_no_stopping_server_waits_for_it() -> None:
    views, begun, go = ViewsMade(), list[int](), threading.Event()
    slow = SlowWork(views)

    def make() -> int:
        begun.append(len(begun))
        assert go.wait(PATIENCE)
        if len(begun) == 2:
            raise ValueError("the second one fails")
        return begun[-1]

    assert slow.ask("key", make, 0) is None
    assert slow.ask("key", make, 0) is None
    views.stopping = lambda: True
    assert slow.ask("key", make, PATIENCE) is None
    views.stopping = lambda: False
    go.set()
    first = slow.ask("key", make, PATIENCE)
    assert first is not None
    assert (first.result(), begun) == (0, [0])
    second = slow.ask("key", make, PATIENCE)
    assert second is not None
    with pytest.raises(ValueError, match="second"):
        second.result()
